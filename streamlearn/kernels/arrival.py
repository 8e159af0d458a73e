"""Ranks of events among the last unlabelled ones, as they were when the event came."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import CodeArray, FloatArray, IntArray
from streamlearn.kernels.jit import kernel


@kernel
def ranks_among(x: FloatArray, window: FloatArray, n: int, least: int, out: FloatArray) -> None:
    """Write (number below - number above) / 2 n for each feature of one row: its mid-rank, centred, in [-1/2, 1/2].

    Parameters
    ----------
    x : float64[n_features]
    window : float64[>= n, n_features]
    n : int
        Rows of the window that count.
    least : int
        With fewer rows all ranks are 0.
    out : float64[n_features]
        Written.
    """
    for j in range(len(x)):
        out[j] = 0.0
    if n < max(least, 1):
        return
    for i in range(n):
        for j in range(len(x)):
            out[j] += (1.0 if window[i, j] < x[j] else 0.0) - (1.0 if window[i, j] > x[j] else 0.0)
    for j in range(len(x)):
        out[j] /= 2.0 * n


@kernel
def arrival_ranks(
    X_test: FloatArray,
    X_learn: FloatArray,
    codes: CodeArray,
    window: FloatArray,
    count: IntArray,
    least: int,
    two: bool,
    test_ranks: FloatArray,
    learn_ranks: FloatArray,
) -> None:
    """Write the ranks of rows in order, each among the unlabelled rows before it, which move the window on.

    Parameters
    ----------
    X_test, X_learn : float64[n_rows, n_features]
    codes : int8[n_rows]
        Of X_learn; a row with -1 joins the window.
    window : float64[size, n_features]
        Ring of the last unlabelled rows; changed.
    count : int64[1]
        Unlabelled rows so far; changed.
    least : int
    two : bool
        The rows to test are not those to learn.
    test_ranks, learn_ranks : float64[n_rows, n_features]
        Written, the first one only with `two`.
    """
    size = window.shape[0]
    for i in range(X_learn.shape[0]):
        n = min(count[0], size)
        ranks_among(X_learn[i], window, n, least, learn_ranks[i])
        if two:
            ranks_among(X_test[i], window, n, least, test_ranks[i])
        if codes[i] < 0:
            slot = count[0] % size
            for j in range(X_learn.shape[1]):
                window[slot, j] = X_learn[i, j]
            count[0] += 1


@kernel
def ranks_now(X: FloatArray, window: FloatArray, count: int, least: int, out: FloatArray) -> None:
    """Write the ranks of rows among the window as it stands.

    Parameters
    ----------
    X : float64[n_rows, n_features]
    window : float64[size, n_features]
    count, least : int
    out : float64[n_rows, n_features]
        Written.
    """
    n = min(count, window.shape[0])
    for i in range(X.shape[0]):
        ranks_among(X[i], window, n, least, out[i])


@kernel
def has_more_values(X: FloatArray, most: int, found: NDArray[np.bool_]) -> None:
    """Tell which features have more than `most` different values.

    Parameters
    ----------
    X : float64[n_rows, n_features]
    most : int
    found : bool[n_features]
        Written.
    """
    values = np.empty(most + 1)
    for j in range(X.shape[1]):
        n = 0
        for i in range(X.shape[0]):
            new = True
            for k in range(n):
                if values[k] == X[i, j]:
                    new = False
                    break
            if new:
                values[n] = X[i, j]
                n += 1
                if n > most:
                    break
        found[j] = n > most
