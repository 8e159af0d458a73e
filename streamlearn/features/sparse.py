"""From matrices of ``scipy.sparse`` to rows of few values."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamlearn.errors import BadShape
from streamlearn.features.entries import SparseRows
from streamlearn.features.frames import refuse


def from_sparse(who: str, X: Any) -> SparseRows:
    """Return the rows of a matrix of ``scipy.sparse``, which is left alone.

    Entries of one place add up, as they do there; columns are sorted, zeros are left out.

    Raises
    ------
    BadShape
        Where it is not of two dimensions or not of real numbers.
    BadValue
        For a NaN or an infinity.
    """
    if len(X.shape) != 2 or X.dtype.kind not in "biuf":
        raise BadShape(f"{who}: X must be a sparse matrix of real numbers, got {X.dtype} of {len(X.shape)} dimensions")
    rows = X.tocsr()
    if rows.dtype != np.float64 or not rows.has_canonical_format or not (rows.data != 0).all():
        rows = rows.astype(np.float64) if rows.dtype != np.float64 else rows.copy()
        rows.sum_duplicates()
        rows.eliminate_zeros()
    bad = np.flatnonzero(~np.isfinite(rows.data))
    if len(bad):
        row = int(np.searchsorted(rows.indptr, bad[0], side="right")) - 1
        refuse(who, int(rows.indices[bad[0]]), row, float(rows.data[bad[0]]))
    columns, pointers = rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
    return SparseRows(pointers, columns, np.ascontiguousarray(rows.data), int(X.shape[1]))
