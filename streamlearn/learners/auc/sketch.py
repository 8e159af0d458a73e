"""Class statistics of wide events with a sketch of each covariance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import CodeArray, FloatArray
from streamlearn.features.entries import SparseRows
from streamlearn.kernels import auc_sketch, sketch
from streamlearn.learners.auc.records import Records, entries


class Sketches(Records):
    """Records of variances, and for each memory and class a buffer of Frequent Directions of its scatter.

    Parameters
    ----------
    size : int
        Directions kept, k; a buffer has 2 k rows.
    n_memories : int

    Attributes
    ----------
    S : float64[n_memories, 2, 2 k, capacity]
    """

    def __init__(self, size: int, n_memories: int = 1) -> None:
        super().__init__("diagonal", n_memories)
        # Two rows at least: one to fill, and one that the shrinking takes.
        self.S: FloatArray = np.zeros((n_memories, 2, 2 * max(size, 2), len(self.R)))
        self._make_scratch()

    def _make_scratch(self) -> None:
        n_rows = self.S.shape[2]
        self._T = np.zeros((2 * n_rows + 1, len(self.R)))
        self._K = np.zeros((2 * n_rows + 1) ** 2)
        self._Q = np.zeros((2, n_rows, n_rows))
        self._v = np.zeros((3, len(self.R)))
        self._y = np.zeros(2 * n_rows + 1)

    def write_sizes(self) -> None:
        """Write what kernels rely on to the header."""
        super().write_sizes()
        for e in range(self.n_memories):
            H = self.memory(e)
            most = auc_sketch.HUGE if not hasattr(self, "S") else self.S.shape[2] - 1
            for k in range(2):
                H[auc_sketch.FILLED + k] = min(max(H[auc_sketch.FILLED + k], 0.0), most)

    def widen(self, n_features: int) -> None:
        """Make room for columns that were 0 for ever."""
        super().widen(n_features)
        if len(self.R) > self.S.shape[3]:
            S = np.zeros((*self.S.shape[:3], len(self.R)))
            S[..., : self.S.shape[3]] = self.S
            self.S = S
            self._make_scratch()

    def keep(self, memories: Sequence[int]) -> None:
        """Keep but these memories."""
        super().keep(memories)
        self.S = np.ascontiguousarray(self.S[list(memories)])

    def swap_classes(self) -> None:
        """Exchange the classes; only one of them has been seen."""
        super().swap_classes()
        self.S = np.ascontiguousarray(self.S[:, ::-1])
        for e in range(self.n_memories):
            filled = self.memory(e)[auc_sketch.FILLED : auc_sketch.FILLED + 2]
            filled[:] = filled[::-1].copy()

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the state as views."""
        return {**super().arrays(), "sketches": self.S}

    def scatter(self, e: int, label: int) -> FloatArray:
        """Return what the sketch holds of a class's covariance in memory e, float64[capacity, capacity]."""
        H, metric = self.memory(e), self.R[:, auc_sketch.METRIC]
        B = self.S[e, label] * np.where(metric > 0.0, 1.0 / np.where(metric > 0.0, metric, 1.0), 0.0)
        total: FloatArray = H[auc_sketch.SCALE + label] / H[auc_sketch.WEIGHT + label] * (B.T @ B)
        return total

    def run(self, X: FloatArray | SparseRows, codes: CodeArray, ratios: FloatArray, chances: FloatArray) -> int:
        """Forecast and learn each row; return -1, or the first row that is not finite."""
        rows = entries(X)
        if isinstance(rows, int):
            return rows
        at = 0
        while at < len(codes):
            at = auc_sketch.run(
                self.F, self.R, self.S, at, rows.pointers, rows.columns, rows.values, codes, ratios, chances
            )
            if codes[at - 1] >= 0:
                self._tend()
        return -1

    def sweep(self) -> None:
        """Set the weights by what the statistics are now."""
        sketch.sweep(self.F, self.R, self.S, self._T, self._K, self._v, self._y)

    def _tend(self) -> None:
        """Shrink the buffers that are full, and set the weights where they are due."""
        n = self.S.shape[2]
        for e in range(self.n_memories):
            H = self.memory(e)
            for k in range(2):
                if H[auc_sketch.FILLED + k] == n:
                    sketch.shrink(self.S[e, k], self._Q[0], self._Q[1], n // 2)
                    H[auc_sketch.FILLED + k] = n // 2 - 1
        if auc_sketch.is_due(self.F, n):
            self.sweep()
