"""The class statistics behind AUCRO as one aligned array that can grow."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import FloatArray
from streamlearn.kernels import auc
from streamlearn.learners.auc.arena import BLOCK, capacity

ALIGNMENT = 64  # bytes: vector loads that cross a cache line cost twice
PAIRED = (auc.WEIGHT, auc.SEEN, auc.FACTOR, auc.SPREAD)


def triangle_size(cap: int) -> int:
    """Return the doubles in an upper triangle of `cap` columns, in block rows of 8."""
    n_blocks = cap // BLOCK
    return BLOCK * (n_blocks * cap - BLOCK * (n_blocks * (n_blocks - 1) // 2))


class Moments:
    """Counts, means and covariances of two classes, with the weights made of them; the layout is that of the kernels.

    Parameters
    ----------
    n_matrices : int
        2, or 3 where the kernel needs a workspace of the size of a covariance.
    diagonal_above : int or None
        Width beyond which only variances are kept.

    Attributes
    ----------
    F : float64[arena_size]
    """

    def __init__(self, *, n_matrices: int, diagonal_above: int | None = None) -> None:
        self.n_matrices = n_matrices
        self.diagonal_above = diagonal_above
        self._allocate(0)
        for which in (0, 1):
            self.F[auc.FACTOR + which] = 1.0

    def _allocate(self, n_features: int) -> None:
        self.n_features = n_features
        self.capacity = capacity(n_features)
        self.diagonal = self.diagonal_above is not None and n_features > self.diagonal_above
        self._matrix_size = self.capacity if self.diagonal else triangle_size(self.capacity)
        size = auc.HEADER + auc.N_VECTORS * self.capacity + self.n_matrices * self._matrix_size
        self.F = _aligned_zeros(size)
        self.F[auc.CAPACITY], self.F[auc.DIAGONAL] = self.capacity, self.diagonal
        vectors = self.vectors()
        vectors[auc.LOW], vectors[auc.HIGH] = -auc.HUGE, auc.HUGE

    def vectors(self) -> FloatArray:
        """Return float64[N_VECTORS, capacity], a view."""
        return self.F[auc.HEADER : auc.HEADER + auc.N_VECTORS * self.capacity].reshape(auc.N_VECTORS, self.capacity)

    def matrix(self, which: int) -> FloatArray:
        """Return the scatter of class 0 or 1 as it is stored, a view."""
        start = auc.HEADER + auc.N_VECTORS * self.capacity + which * self._matrix_size
        return self.F[start : start + self._matrix_size]

    def widen(self, n_features: int) -> None:
        """Make room for columns that were 0 for ever."""
        old = Moments.__new__(Moments)
        old.__dict__.update(self.__dict__)
        over = self.diagonal_above is not None and n_features > self.diagonal_above
        if capacity(n_features) == self.capacity and over == self.diagonal:
            self.n_features = n_features
            return
        self._allocate(n_features)
        kept = slice(0, auc.CAPACITY), slice(auc.CAPACITY + 1, auc.HEADER)
        for part in kept:
            self.F[part] = old.F[part]
        self.F[auc.DIAGONAL] = self.diagonal
        self.vectors()[:, : old.capacity] = old.vectors()
        for which in (0, 1):
            self._copy_matrix(old, which)

    def _copy_matrix(self, old: Moments, which: int) -> None:
        source, target = old.matrix(which), self.matrix(which)
        if self.diagonal:
            target[: old.capacity] = source if old.diagonal else source[_diagonal_places(old.capacity)]
            return
        for (a, n), (b, m) in zip(_block_rows(old.capacity), _block_rows(self.capacity), strict=False):
            target[b : b + BLOCK * m].reshape(BLOCK, m)[:, :n] = source[a : a + BLOCK * n].reshape(BLOCK, n)

    def swap_classes(self) -> None:
        """Exchange the classes; only one of them has been seen, so there are no weights yet."""
        F, V = self.F, self.vectors()
        for first in PAIRED:
            F[[first, first + 1]] = F[[first + 1, first]]
        F[auc.PRIOR] = 0.0 - F[auc.PRIOR]
        V[[auc.CENTRE, auc.CENTRE + 1]] = V[[auc.CENTRE + 1, auc.CENTRE]]
        kept = self.matrix(0).copy()
        self.matrix(0)[:] = self.matrix(1)
        self.matrix(1)[:] = kept

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the state as views, without the workspace."""
        return {
            "header": self.F[: auc.HEADER],
            "vectors": self.vectors()[: auc.X],
            "scatter_0": self.matrix(0),
            "scatter_1": self.matrix(1),
        }

    def restored(self) -> None:
        """Set the sizes in the header anew after a saved state was copied in: kernels rely on them."""
        self.F[auc.CAPACITY], self.F[auc.DIAGONAL] = self.capacity, self.diagonal

    def covariance(self, which: int) -> FloatArray:
        """Return the covariance of a class's clipped, shifted events, float64[n_features, n_features]."""
        m, factor, stored = self.n_features, self.F[auc.FACTOR + which], self.matrix(which)
        if self.diagonal:
            return np.diag(factor * stored[:m])
        full = np.zeros((self.capacity, self.capacity))
        for i, (a, n) in enumerate(_block_rows(self.capacity)):
            full[BLOCK * i : BLOCK * (i + 1), BLOCK * i :] = stored[a : a + BLOCK * n].reshape(BLOCK, n)
        upper = np.triu(full)
        covariance: FloatArray = factor * (upper + np.triu(full, 1).T)[:m, :m]
        return covariance


def _aligned_zeros(size: int) -> FloatArray:
    spare = ALIGNMENT // 8
    whole = np.zeros(size + spare)
    start = (-whole.ctypes.data // 8) % spare
    return whole[start : start + size]


def _block_rows(cap: int) -> list[tuple[int, int]]:
    """Return (start, columns) of each block row of a triangle."""
    rows, start = [], 0
    for n in range(cap, 0, -BLOCK):
        rows.append((start, n))
        start += BLOCK * n
    return rows


def _diagonal_places(cap: int) -> NDArray[np.int64]:
    """Return where the diagonal lies in a triangle of block rows."""
    return np.array([a + r * n + r for a, n in _block_rows(cap) for r in range(BLOCK)])
