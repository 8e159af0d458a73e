"""Checks on rows of features."""

from __future__ import annotations

import numpy as np

from streamlearn.contracts import FloatArray
from streamlearn.kernels.jit import kernel

_EXPONENT = np.uint64(0x7FF0000000000000)


@kernel
def first_bad_row(X: FloatArray) -> int:
    """Return the index of the first row with a NaN or an infinity, -1 if there is none.

    Looks at the exponent bits: integer operations vectorise, comparisons of floats with early exit do not.

    Parameters
    ----------
    X : float64[n_rows, n_features]
        C-contiguous.
    """
    bits = X.view(np.uint64)
    n_rows, n_features = X.shape
    for i in range(n_rows):
        bad = 0
        for j in range(n_features):
            bad |= (bits[i, j] & _EXPONENT) == _EXPONENT
        if bad:
            return i
    return -1
