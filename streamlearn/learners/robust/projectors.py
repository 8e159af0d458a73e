"""The geometric median of subspaces, through their projectors."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import FloatArray, IntArray
from streamlearn.kernels.robust_median import weiszfeld
from streamlearn.kernels.robust_subspace import projector_distance
from streamlearn.learners.robust.blas import one_blas_thread
from streamlearn.learners.robust.filters import TOLERANCE, ProximalFilter
from streamlearn.learners.robust.subspace import top_eigenvectors

RECENT = 50
"""Batches that tell the order of directions and the usual scores where the recursion remembers no single one."""


class ProjectorFilter(Protocol):
    """What holds a stream of subspaces together."""

    @property
    def n_batches(self) -> int:
        """Subspaces so far."""
        ...

    def widen(self, n_features: int) -> None:
        """Append features that were 0 for ever."""
        ...

    def push(self, components: FloatArray, scales: FloatArray) -> None:
        """Take a subspace float64[n_components, n_features] and the scale of its rows' scores float64[n_components]."""
        ...

    def components(self) -> FloatArray:
        """Return the present subspace float64[n_components, n_features]; zeros before the first. Not to be changed."""
        ...

    def scales(self) -> FloatArray:
        """Return the scales of the scores in the last batches float64[n_batches, n_components]."""
        ...

    def last(self) -> tuple[float, float]:
        """Return distance and weight of the last subspace; zeros before the first."""
        ...

    def usual_distance(self) -> float:
        """Return the median distance of subspaces to the present one."""
        ...

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the state (not copies)."""
        ...

    def changed(self) -> None:
        """Take note that the arrays were filled from outside."""
        ...


class ProjectorWindow:
    """The last subspaces, and the leading eigenvectors of the geometric median of their projectors.

    Frobenius distances between projectors follow from the components, so no matrix of n_features^2 numbers is kept.

    Parameters
    ----------
    window : int
    n_components : int
    """

    def __init__(self, window: int, n_components: int) -> None:
        self._ring = np.zeros((window, n_components, 0))
        self._scales = np.zeros((window, n_components))
        self._squares = np.zeros((window, window))
        self._count = np.zeros(1, dtype=np.int64)
        self._weights, self._distances = np.zeros(window), np.zeros(window)
        self._scratch = np.zeros((2, window))
        self._components = np.zeros((n_components, 0))
        self._fresh = self._solved = True

    @property
    def n_batches(self) -> int:
        """Subspaces so far."""
        return int(self._count[0])

    def __len__(self) -> int:
        return min(self.n_batches, len(self._ring))

    def widen(self, n_features: int) -> None:
        """Append features that were 0 for ever: no distance changes."""
        grow = n_features - self._ring.shape[2]
        self._ring = np.pad(self._ring, ((0, 0), (0, 0), (0, grow)))
        self._components = np.pad(self._components, ((0, 0), (0, grow)))

    def push(self, components: FloatArray, scales: FloatArray) -> None:
        """Take a subspace float64[n_components, n_features] and the scale of its rows' scores float64[n_components]."""
        slot = self.n_batches % len(self._ring)
        self._ring[slot], self._scales[slot] = components, scales
        self._count[0] += 1
        for k in range(len(self)):
            self._squares[slot, k] = self._squares[k, slot] = projector_distance(components, self._ring[k])
        self._fresh = self._solved = False

    def components(self) -> FloatArray:
        """Return the present subspace float64[n_components, n_features]; zeros before the first. Not to be changed."""
        if not self._fresh:
            if len(self):
                self._components = self._leading()
            self._fresh = True
        return self._components

    def _solve(self) -> None:
        if not self._solved:
            if len(self):
                weiszfeld(self._squares, len(self), TOLERANCE, self._weights, self._distances, self._scratch)
            self._solved = True

    def _stacked(self) -> FloatArray:
        """Return rows float64[n_batches * n_components, p] whose Gram matrix is the weighted mean of the projectors."""
        self._solve()
        n, d, p = len(self), *self._components.shape
        stacked: FloatArray = (np.sqrt(self._weights[:n])[:, None, None] * self._ring[:n]).reshape(n * d, p)
        return stacked

    def _leading(self) -> FloatArray:
        stacked = self._stacked()
        n, d, p = len(stacked), *self._components.shape
        with one_blas_thread():
            if p <= n:
                basis = top_eigenvectors(stacked.T @ stacked, d)
            else:
                # Orthonormal again, also where there are fewer directions than asked for.
                basis = np.linalg.qr((top_eigenvectors(stacked @ stacked.T, d) @ stacked).T)[0].T
            return self.by_variance(basis)

    def by_variance(self, basis: FloatArray) -> FloatArray:
        """Turn a basis within its subspace: the median of projectors alone knows no order of directions."""
        scales = self.scales()
        largest = float(scales.max(initial=0.0))
        if largest > 0.0:
            inner = basis @ (self._stacked() * (scales / largest).reshape(-1, 1)).T
            basis = top_eigenvectors(inner @ inner.T, len(basis)) @ basis
        heaviest = np.abs(basis).argmax(axis=1)
        signs = np.where(basis[np.arange(len(basis)), heaviest] < 0.0, -1.0, 1.0)
        return np.ascontiguousarray(basis * signs[:, None])

    def scales(self) -> FloatArray:
        """Return the scales of the scores float64[n_batches in the window, n_components]."""
        return self._scales[: len(self)]

    def last(self) -> tuple[float, float]:
        """Return the last subspace's distance to the present one, and its share in it."""
        if not len(self):
            return 0.0, 0.0
        self._solve()
        slot = (self.n_batches - 1) % len(self._ring)
        return float(self._distances[slot]), float(self._weights[slot])

    def usual_distance(self) -> float:
        """Return the median distance of the window's subspaces to the present one."""
        self._solve()
        return float(np.median(self._distances[: len(self)])) if len(self) else 0.0

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the state (not copies)."""
        return {
            "subspaces": self._ring,
            "subspace_scales": self._scales,
            "subspace_squares": self._squares,
            "subspace_count": self._count,
        }

    def changed(self) -> None:
        """Take note that the arrays were filled from outside."""
        self._fresh = self._solved = False


class ProjectorRecursion:
    """The leading eigenvectors of the geometric median of all projectors, by one proximal step each.

    The matrices are kept as their lower triangles, off the diagonal times sqrt 2: distances are those of the whole
    matrices, and new features append numbers at the end. So memory grows with n_features^2, by half of it for each of
    the first subspaces and twice for the recursion.

    Parameters
    ----------
    n_components : int
    steps : ProximalFilter
        Without any row.
    """

    def __init__(self, n_components: int, steps: ProximalFilter) -> None:
        self._steps = steps
        self._recent = ProjectorWindow(RECENT, n_components)
        self._components = np.zeros((n_components, 0))
        self._fresh = True

    @property
    def n_batches(self) -> int:
        """Subspaces so far."""
        return self._recent.n_batches

    def widen(self, n_features: int) -> None:
        """Append features that were 0 for ever."""
        self._recent.widen(n_features)
        self._steps.widen(n_features * (n_features + 1) // 2)
        self._components = np.pad(self._components, ((0, 0), (0, n_features - self._components.shape[1])))

    def push(self, components: FloatArray, scales: FloatArray) -> None:
        """Take a subspace float64[n_components, n_features] and the scale of its rows' scores float64[n_components]."""
        self._recent.push(components, scales)
        rows, columns, sizes = _triangle(components.shape[1])
        with one_blas_thread():
            projector = components.T @ components
        self._steps.extend((projector[rows, columns] * sizes).reshape(1, -1))
        self._fresh = False

    def components(self) -> FloatArray:
        """Return the present subspace float64[n_components, n_features]; zeros before the first. Not to be changed."""
        if not self._fresh:
            d, p = self._components.shape
            rows, columns, sizes = _triangle(p)
            matrix = np.zeros((p, p))
            matrix[rows, columns] = matrix[columns, rows] = self._steps.centre() / sizes
            with one_blas_thread():
                self._components = self._recent.by_variance(top_eigenvectors(matrix, d))
            self._fresh = True
        return self._components

    def scales(self) -> FloatArray:
        """Return the scales of the scores in the last batches float64[n_batches, n_components]."""
        return self._recent.scales()

    def last(self) -> tuple[float, float]:
        """Return the last subspace's distance to the one before it, and the step towards it."""
        return self._steps.last()

    def usual_distance(self) -> float:
        """Return the running median of the distances."""
        return self._steps.usual_distance()

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the state (not copies)."""
        return {**self._recent.arrays(), **{f"projector_{name}": a for name, a in self._steps.arrays().items()}}

    def changed(self) -> None:
        """Take note that the arrays were filled from outside."""
        self._recent.changed()
        self._steps.changed()
        self._fresh = self.n_batches == 0


def _triangle(p: int) -> tuple[IntArray, IntArray, FloatArray]:
    """Return rows and columns of the lower triangle of a p x p matrix row by row, and the weights of its entries."""
    rows, columns = np.tril_indices(p)
    return rows, columns, np.where(rows == columns, 1.0, np.sqrt(2.0))
