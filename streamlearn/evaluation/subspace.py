"""How far an estimated subspace is from the true one."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from streamlearn.contracts import FloatArray, Snapshot
from streamlearn.errors import BadShape, BadSnapshot, BadValue


class SubspaceError:
    """Distance of projectors ``||P - P*||_F / ||P*||_F``: 0 for the same subspace, sqrt(2) for orthogonal ones.

    Needs the true subspace, so it is for data whose truth is known. The rows of a basis span its subspace; they need
    not be orthonormal.

    Parameters
    ----------
    reference : float64[n_components, n_features]
        Basis of the true subspace.

    Examples
    --------
    >>> from streamlearn.evaluation import SubspaceError
    >>> error = SubspaceError([[1.0, 0.0]])
    >>> error.update([[2.0, 0.0]])
    >>> error.get()
    0.0
    """

    name = "subspace_error"

    def __init__(self, reference: ArrayLike) -> None:
        self.reference = reference
        self._true = _orthonormal(reference)
        self._value = math.nan

    def update(self, basis: ArrayLike) -> None:
        """Take the present estimate, float64[k, n_features]; the value is that of the last one."""
        found = _orthonormal(basis)
        if found.shape[1] != self._true.shape[1]:
            raise BadShape(f"SubspaceError: basis must have {self._true.shape[1]} columns, got {found.shape[1]}")
        # ||P - Q||^2 = ||(I - P) Q||^2 + ||(I - Q) P||^2: nothing cancels, unlike in k + k* - 2 ||U U*'||^2.
        missed = _outside(self._true, found)
        added = _outside(found, self._true)
        self._value = math.hypot(missed, added) / math.sqrt(len(self._true))

    def get(self) -> float:
        """Return the last distance; NaN before the first."""
        return self._value

    def state(self) -> Snapshot:
        """Return the flat state."""
        return {"metric": self.name, "reference": self._true.copy(), "value": self._value}

    def restore(self, state: Snapshot) -> None:
        """Become what `state` describes."""
        if state.get("metric") != self.name:
            raise BadSnapshot(f"SubspaceError: state must be of {self.name!r}, got {state.get('metric')!r}")
        self._true = np.array(state["reference"], np.float64)
        self._value = float(state["value"])


def _orthonormal(basis: ArrayLike) -> FloatArray:
    """Return orthonormal rows spanning the same space."""
    rows = np.array(basis, np.float64)
    if rows.ndim != 2 or not 0 < len(rows) <= rows.shape[1]:
        raise BadShape(f"SubspaceError: a basis must be [k, n_features] with 0 < k <= n_features, got {rows.shape}")
    if not np.isfinite(rows).all():
        raise BadValue("SubspaceError: a basis must be finite, got NaN or infinity")
    _, singular, v = np.linalg.svd(rows / max(float(np.abs(rows).max()), np.finfo(float).tiny), full_matrices=False)
    if singular[-1] <= np.finfo(float).eps * rows.shape[1] * singular[0]:
        raise BadValue("SubspaceError: the rows of a basis must be linearly independent")
    return np.asarray(v, np.float64)


def _outside(rows: FloatArray, of: FloatArray) -> float:
    """Return the Frobenius norm of the part of `rows` outside the space of the orthonormal rows `of`."""
    return float(np.linalg.norm(rows - (rows @ of.T) @ of))
