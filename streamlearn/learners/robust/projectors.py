"""The geometric median of subspaces, through their projectors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import FloatArray
from streamlearn.kernels.robust_median import weiszfeld
from streamlearn.kernels.robust_subspace import projector_distance
from streamlearn.learners.robust.blas import one_blas_thread
from streamlearn.learners.robust.filters import TOLERANCE
from streamlearn.learners.robust.subspace import top_eigenvectors


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
        self._fresh = True

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
        self._fresh = False

    def components(self) -> FloatArray:
        """Return the present subspace float64[n_components, n_features]; zeros before the first. Not to be changed."""
        if not self._fresh:
            if len(self):
                weiszfeld(self._squares, len(self), TOLERANCE, self._weights, self._distances, self._scratch)
                self._components = self._leading()
            self._fresh = True
        return self._components

    def _leading(self) -> FloatArray:
        n, d, p = len(self), *self._components.shape
        stacked = (np.sqrt(self._weights[:n])[:, None, None] * self._ring[:n]).reshape(n * d, p)
        with one_blas_thread():
            if p <= n * d:
                basis = top_eigenvectors(stacked.T @ stacked, d)
            else:
                # Orthonormal again, also where there are fewer directions than asked for.
                basis = np.linalg.qr((top_eigenvectors(stacked @ stacked.T, d) @ stacked).T)[0].T
            return self._by_variance(basis, stacked)

    def _by_variance(self, basis: FloatArray, stacked: FloatArray) -> FloatArray:
        """Turn the basis within its subspace: the median of projectors alone knows no order of directions."""
        scales = self._scales[: len(self)]
        largest = float(scales.max(initial=0.0))
        if largest > 0.0:
            inner = basis @ (stacked * (scales / largest).reshape(-1, 1)).T
            basis = top_eigenvectors(inner @ inner.T, len(basis)) @ basis
        heaviest = np.abs(basis).argmax(axis=1)
        signs = np.where(basis[np.arange(len(basis)), heaviest] < 0.0, -1.0, 1.0)
        return np.ascontiguousarray(basis * signs[:, None])

    def scales(self) -> FloatArray:
        """Return the scales of the scores float64[n_batches in the window, n_components]."""
        return self._scales[: len(self)]

    def weights(self) -> FloatArray:
        """Return the share of each subspace of the ring in the median."""
        self.components()
        return self._weights[: len(self)]

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
        self._fresh = False
