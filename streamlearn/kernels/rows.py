"""Checks on rows of features."""

from __future__ import annotations

import numpy as np

from streamlearn.contracts import FloatArray, IntArray
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


@kernel
def count_nonzeros(X: FloatArray, pointers: IntArray) -> None:
    """Write where the nonzero values of each row begin in a list of all of them.

    Parameters
    ----------
    X : float64[n_rows, n_features]
    pointers : int64[n_rows + 1], written
    """
    pointers[0] = 0
    for i in range(X.shape[0]):
        n = 0
        for j in range(X.shape[1]):
            n += X[i, j] != 0.0
        pointers[i + 1] = pointers[i] + n


@kernel
def list_nonzeros(X: FloatArray, columns: IntArray, values: FloatArray) -> None:
    """Write the column and the value of each nonzero, row by row; places as `count_nonzeros` says.

    Parameters
    ----------
    X : float64[n_rows, n_features]
    columns, values : int64[n_nonzeros], float64[n_nonzeros], written
    """
    k = 0
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            if X[i, j] != 0.0:
                columns[k], values[k] = j, X[i, j]
                k += 1


@kernel
def sort_entries(pointers: IntArray, columns: IntArray, values: FloatArray) -> None:
    """Sort the entries of each row by column, in place; columns of one row differ.

    Parameters
    ----------
    pointers : int64[n_rows + 1]
    columns, values : int64[n_entries], float64[n_entries], written
    """
    for i in range(pointers.size - 1):
        a, b = pointers[i], pointers[i + 1]
        gap = 1
        while gap * 3 < b - a:
            gap = gap * 3 + 1
        while gap > 0:  # Shell's sort: no allocation, and quick where a row is in order already
            for o in range(a + gap, b):
                column, value, k = columns[o], values[o], o
                while k >= a + gap and columns[k - gap] > column:
                    columns[k], values[k] = columns[k - gap], values[k - gap]
                    k -= gap
                columns[k], values[k] = column, value
            gap //= 3
