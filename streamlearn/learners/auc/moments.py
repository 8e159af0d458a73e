"""The class statistics behind AUCRO and its bank as one aligned array that can grow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import FloatArray
from streamlearn.kernels import auc
from streamlearn.learners.auc.arena import BLOCK, capacity

ALIGNMENT = 64  # bytes: vector loads that cross a cache line cost twice
PAIRED = (auc.WEIGHT, auc.FACTOR, auc.SPREAD)


def triangle_size(cap: int) -> int:
    """Return the doubles in an upper triangle of `cap` columns, in block rows of 8."""
    n_blocks = cap // BLOCK
    return BLOCK * (n_blocks * cap - BLOCK * (n_blocks * (n_blocks - 1) // 2))


class Moments:
    """Counts, means and covariances of two classes in one or several memories, with the weights made of them.

    The layout is that of the kernels.

    Parameters
    ----------
    n_memories : int
    exact : bool
        For the exact solver: triangles, and a workspace of that size. Else whole matrices, as sgd wants them.

    Attributes
    ----------
    F : float64[arena_size]
    """

    def __init__(self, *, n_memories: int = 1, exact: bool) -> None:
        self.n_memories = n_memories
        self.exact = exact
        self._allocate(0)
        for e in range(n_memories):
            self.memory(e)[auc.FACTOR : auc.FACTOR + 2] = 1.0

    def _allocate(self, n_features: int) -> None:
        self.n_features = n_features
        self.capacity = capacity(n_features)
        self._matrix_size = triangle_size(self.capacity) if self.exact else self.capacity**2
        self._memory_size = auc.MEMORY_HEADER + auc.N_OWN * self.capacity + 2 * self._matrix_size
        workspace = self._matrix_size if self.exact else 0
        self.F = _aligned_zeros(self._first_memory() + self.n_memories * self._memory_size + workspace)
        self.write_sizes()
        common = self.common()
        common[auc.LOW], common[auc.HIGH] = -auc.HUGE, auc.HUGE

    def write_sizes(self) -> None:
        """Write the sizes to the header, which kernels rely on: a saved state that was copied in may be damaged."""
        F = self.F
        F[auc.CAPACITY] = self.capacity
        F[auc.MEMORY_SIZE], F[auc.N_MEMORIES] = self._memory_size, self.n_memories

    def _first_memory(self) -> int:
        return auc.HEADER + auc.N_COMMON * self.capacity

    def common(self) -> FloatArray:
        """Return what all memories share, float64[N_COMMON, capacity], a view."""
        return self.F[auc.HEADER : self._first_memory()].reshape(auc.N_COMMON, self.capacity)

    def memories(self) -> FloatArray:
        """Return the blocks of all memories, float64[n_memories, memory_size], a view."""
        start = self._first_memory()
        return self.F[start : start + self.n_memories * self._memory_size].reshape(self.n_memories, -1)

    def memory(self, e: int) -> FloatArray:
        """Return the block of memory e, which its header begins, a view."""
        block: FloatArray = self.memories()[e]
        return block

    def own(self, e: int) -> FloatArray:
        """Return the vectors of memory e, float64[N_OWN, capacity], a view."""
        end = auc.MEMORY_HEADER + auc.N_OWN * self.capacity
        return self.memory(e)[auc.MEMORY_HEADER : end].reshape(auc.N_OWN, self.capacity)

    def scatter(self, e: int) -> FloatArray:
        """Return the scatter of both classes in memory e as it is stored, float64[2, n_elements], a view."""
        return self.memory(e)[auc.MEMORY_HEADER + auc.N_OWN * self.capacity :].reshape(2, self._matrix_size)

    def widen(self, n_features: int) -> None:
        """Make room for columns that were 0 for ever."""
        if capacity(n_features) == self.capacity:
            self.n_features = n_features
        else:
            self._move(n_features, range(self.n_memories))

    def keep(self, memories: Sequence[int]) -> None:
        """Keep but these memories."""
        self._move(self.n_features, memories)

    def _move(self, n_features: int, kept: Sequence[int]) -> None:
        old = Moments.__new__(Moments)
        old.__dict__.update(self.__dict__)
        self.n_memories = len(kept)
        self._allocate(n_features)
        self.F[: auc.HEADER] = old.F[: auc.HEADER]
        self.write_sizes()
        self.common()[:, : old.capacity] = old.common()
        for mine, theirs in enumerate(kept):
            self.memory(mine)[: auc.MEMORY_HEADER] = old.memory(theirs)[: auc.MEMORY_HEADER]
            self.own(mine)[:, : old.capacity] = old.own(theirs)
            for source, target in zip(old.scatter(theirs), self.scatter(mine), strict=True):
                self._copy_scatter(old, source, target)

    def _copy_scatter(self, old: Moments, source: FloatArray, target: FloatArray) -> None:
        if not self.exact:
            target.reshape(self.capacity, -1)[: old.capacity, : old.capacity] = source.reshape(old.capacity, -1)
            return
        for (a, n), (b, m) in zip(_block_rows(old.capacity), _block_rows(self.capacity), strict=False):
            target[b : b + BLOCK * m].reshape(BLOCK, m)[:, :n] = source[a : a + BLOCK * n].reshape(BLOCK, n)

    def swap_classes(self) -> None:
        """Exchange the classes; only one of them has been seen, so there are no weights yet."""
        _swap(self.F, auc.SEEN)
        for e in range(self.n_memories):
            for slot in PAIRED:
                _swap(self.memory(e), slot)
            _swap(self.own(e), auc.CENTRE)
            _swap(self.scatter(e), 0)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the state as views, without the workspace."""
        return {"header": self.F[: auc.HEADER], "common": self.common()[: auc.X], "memories": self.memories()}

    def covariance(self, e: int, label: int) -> FloatArray:
        """Return the covariance of a class's clipped, shifted events in memory e, float64[n_features, n_features]."""
        m, factor, stored = self.n_features, self.memory(e)[auc.FACTOR + label], self.scatter(e)[label]
        full = np.zeros((self.capacity, self.capacity))
        if not self.exact:
            full[:] = stored.reshape(full.shape)
        else:
            for i, (a, n) in enumerate(_block_rows(self.capacity)):
                full[BLOCK * i : BLOCK * (i + 1), BLOCK * i :] = stored[a : a + BLOCK * n].reshape(BLOCK, n)
        covariance: FloatArray = factor * (np.triu(full) + np.triu(full, 1).T)[:m, :m]
        return covariance

    def set_covariance(self, e: int, label: int, covariance: FloatArray) -> None:
        """Store what `covariance` gives, with factor 1."""
        m, stored = self.n_features, self.scatter(e)[label]
        self.memory(e)[auc.FACTOR + label] = 1.0
        full = np.zeros((self.capacity, self.capacity))
        full[:m, :m] = covariance
        if not self.exact:
            stored[:] = full.ravel()
            return
        for i, (a, n) in enumerate(_block_rows(self.capacity)):
            stored[a : a + BLOCK * n] = full[BLOCK * i : BLOCK * (i + 1), BLOCK * i :].ravel()


def _swap(array: FloatArray, first: int) -> None:
    array[[first, first + 1]] = array[[first + 1, first]]


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
