"""Records of features: the class statistics of wide events behind AUCRO and its bank."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import CodeArray, FloatArray
from streamlearn.features.entries import SparseRows
from streamlearn.kernels import auc, auc_means, auc_wide
from streamlearn.kernels.rows import first_bad_row
from streamlearn.learners.auc.arena import capacity
from streamlearn.learners.auc.moments import Moments
from streamlearn.learners.entries import nonzeros_of


def entries(X: FloatArray | SparseRows) -> SparseRows | int:
    """Return rows by their nonzeros, or the first one that is not finite."""
    if isinstance(X, SparseRows):
        return X
    bad = first_bad_row(X)
    if bad >= 0:
        return bad
    return nonzeros_of(X)


class Records:
    """Class statistics of each feature, and the weights made of them, for one or several memories.

    Parameters
    ----------
    form : {"diagonal", "means"}
        The exact solution on variances alone, or steps against class means.
    n_memories : int

    Attributes
    ----------
    F : float64[header_size + n_memories * memory_header_size]
    R : float64[capacity, record_size]
    """

    def __init__(self, form: Literal["diagonal", "means"], n_memories: int = 1) -> None:
        self.form = form
        self.n_memories = n_memories
        self._class_size = auc_wide.CLASS_SIZE if form == "diagonal" else 1
        self.F: FloatArray = np.zeros(auc_wide.HEADER + n_memories * auc_wide.MEMORY_HEADER)
        self.R: FloatArray = np.zeros((capacity(0), auc_wide.N_COMMON + n_memories * self._kernels.N_OWN))
        for e in range(n_memories):
            H = self.memory(e)
            H[auc_wide.SCALE : auc_wide.SCALE + 2] = H[auc_wide.SHRINK] = H[auc_wide.FADE] = 1.0
        self.write_sizes()

    @property
    def _kernels(self) -> Any:
        return auc_wide if self.form == "diagonal" else auc_means

    @classmethod
    def of(cls, moments: Moments) -> Records:
        """Return the variances that moments of whole covariances hold; weights are solved with the next event."""
        made = cls("diagonal", moments.n_memories)
        made.widen(moments.n_features)
        made._take(moments)
        return made

    def header(self) -> FloatArray:
        """Return the common header, a view."""
        return self.F[: auc_wide.HEADER]

    def memory(self, e: int) -> FloatArray:
        """Return the header of memory e, a view."""
        return self.F[auc_wide.HEADER :].reshape(self.n_memories, -1)[e]  # type: ignore[no-any-return]

    def own(self, e: int) -> FloatArray:
        """Return what memory e knows of each feature, float64[capacity, n_own], a view."""
        start = auc_wide.N_COMMON + e * self._kernels.N_OWN
        return self.R[:, start : start + self._kernels.N_OWN]

    def write_sizes(self) -> None:
        """Write what kernels rely on to the header."""
        self.F[auc_wide.N_MEMORIES] = self.n_memories
        self.F[auc_wide.WIDTH] = min(max(self.F[auc_wide.WIDTH], 0.0), len(self.R))

    def widen(self, n_features: int) -> None:
        """Make room for columns that were 0 for ever; the kernels count those that came."""
        if capacity(n_features) > len(self.R):
            R = np.zeros((capacity(n_features), self.R.shape[1]))
            R[: len(self.R)] = self.R
            self.R = R

    def keep(self, memories: Sequence[int]) -> None:
        """Keep but these memories."""
        headers, owns = [self.memory(e).copy() for e in memories], [self.own(e).copy() for e in memories]
        self.n_memories = len(memories)
        self.F = np.concatenate([self.header(), *headers])
        self.R = np.ascontiguousarray(np.hstack([self.R[:, : auc_wide.N_COMMON], *owns]))
        self.write_sizes()

    def swap_classes(self) -> None:
        """Exchange the classes; only one of them has been seen, so there are no weights yet."""
        _swap(self.F, auc_wide.SEEN, auc_wide.SEEN + 1)
        for e in range(self.n_memories):
            H = self.memory(e)
            for slot in (auc_wide.WEIGHT, auc_wide.SCALE):
                _swap(H, slot, slot + 1)
            if self.form == "means":
                _swap(H, auc_means.GRAM, auc_means.GRAM + 2)
            for k in range(self._class_size):
                _swap(self.own(e).T, k, k + self._class_size)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the state as views."""
        return {"header": self.F, "records": self.R}

    def run(self, X: FloatArray | SparseRows, codes: CodeArray, ratios: FloatArray, chances: FloatArray) -> int:
        """Forecast and learn each row; return -1, or the first row that is not finite."""
        rows = entries(X)
        if isinstance(rows, int):
            return rows
        self._kernels.run(self.F, self.R, rows.pointers, rows.columns, rows.values, codes, ratios, chances)
        return -1

    def _take(self, moments: Moments) -> None:
        """Take all that moments know of each feature alone, and how its new weights fare by what they know beside."""
        old, m = moments.F, moments.n_features
        n = self.F[auc_wide.COUNT] = old[auc.COUNT]
        self.F[auc_wide.SEEN : auc_wide.SEEN + 2] = old[auc.SEEN : auc.SEEN + 2]
        self.F[auc_wide.WIDTH] = m
        common, R = moments.common()[:, :m], self.R[:m]
        shift, second = common[auc.SHIFT], common[auc.SECOND]
        R[:, auc_wide.AT] = R[:, auc_wide.TIMES] = n
        R[:, auc_wide.MEAN], R[:, auc_wide.VARIANCE] = shift + common[auc.MEAN], common[auc.VARIANCE]
        R[:, auc_wide.PEAK] = common[auc.PEAK]
        other = shift + second
        zeros = (shift == 0.0) | (other == 0.0)  # else the two values, if there are but two, are none of them 0
        R[:, auc_wide.FIRST] = np.where(shift == 0.0, other, shift)
        R[:, auc_wide.SECOND] = np.where(
            second == auc.MANY, auc_wide.MANY, np.where(zeros | (second == 0.0), 0.0, other)
        )
        R[zeros, auc_wide.TIMES] = max(n - 1.0, 0.0)
        for e in range(self.n_memories):
            H, own = self.memory(e), self.own(e)[:m]
            H[auc_wide.WEIGHT : auc_wide.WEIGHT + 2] = moments.memory(e)[auc.WEIGHT : auc.WEIGHT + 2]
            H[auc_wide.REGULARIZATION] = moments.memory(e)[auc.REGULARIZATION]
            for k in range(2):
                if H[auc_wide.WEIGHT + k] > 0.0:
                    at = k * auc_wide.CLASS_SIZE
                    own[:, at + auc_wide.OWN_WEIGHT] = H[auc_wide.WEIGHT + k]
                    own[:, at + auc_wide.OWN_MEAN] = shift + moments.own(e)[auc.CENTRE + k, :m]
                    own[:, at + auc_wide.OWN_VARIANCE] = np.diag(moments.covariance(e, k))
        if (old[auc.SEEN : auc.SEEN + 2] > 0.0).all():
            auc_wide.sweep(self.F, self.R)
            self._judge(moments)

    def _judge(self, moments: Moments) -> None:
        """Calibrate the new weights by the whole covariances, which say how their scores spread."""
        for e in range(self.n_memories):
            H, own = self.memory(e), self.own(e)[: moments.n_features]
            w = own[:, auc_wide.W]
            for k in range(2):
                mean = own[:, k * auc_wide.CLASS_SIZE + auc_wide.OWN_MEAN]
                # Sums of numpy, not products of BLAS: their order does not depend on the number of threads.
                spread = (w * (moments.covariance(e, k) * w).sum(axis=1)).sum()
                H[auc_wide.SCORE + k], H[auc_wide.SPREAD + k] = (w * mean).sum() - H[auc_wide.OFFSET], spread
                H[auc_wide.JUDGED + k] = H[auc_wide.WEIGHT + k]
            auc_wide.set_ratio(H)


def _swap(array: FloatArray, first: int, second: int) -> None:
    array[[first, second]] = array[[second, first]]
