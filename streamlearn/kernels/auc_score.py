"""Forecasts from the arena of AUCRO (layout in auc.py); functions of one name are the same, word for word."""

from __future__ import annotations

import math

import numpy as np

from streamlearn.contracts import FloatArray
from streamlearn.kernels.jit import kernel

HEADER = 32
OFFSET, LLR, PRIOR = 2, 3, 4
CAPACITY, RAW = 28, 29
SHIFT, LOW, HIGH, W = 0, 5, 6, 7
N_VECTORS = 17
HUGE = 1e150
EXPONENT = np.uint64(0x7FF0000000000000)


@kernel
def _first_bad(rows: FloatArray) -> int:
    """Return the index of the first row with a NaN or an infinity, or -1; by exponent bits, which vectorises."""
    bits = rows.view(np.uint64)
    for i in range(rows.shape[0]):
        bad = 0
        for j in range(rows.shape[1]):
            bad |= (bits[i, j] & EXPONENT) == EXPONENT
        if bad:
            return i
    return -1


@kernel
def _vectors(F: FloatArray) -> FloatArray:
    """Return the vectors of arena F as a view, float64[N_VECTORS, capacity]."""
    cap = int(F[CAPACITY])
    return F[HEADER : HEADER + N_VECTORS * cap].reshape(N_VECTORS, cap)


@kernel
def _score_row(F: FloatArray, V: FloatArray, x: FloatArray) -> float:
    """Return the centred score ``w . (x - (c0 + c1)/2)`` of one event, clipped as in learning."""
    shift, low, high, w = V[SHIFT], V[LOW], V[HIGH], V[W]
    s0 = s1 = s2 = s3 = 0.0
    whole = x.size - x.size % 4
    for j in range(0, whole, 4):
        s0 += w[j] * min(max(x[j] - shift[j], low[j]), high[j])
        s1 += w[j + 1] * min(max(x[j + 1] - shift[j + 1], low[j + 1]), high[j + 1])
        s2 += w[j + 2] * min(max(x[j + 2] - shift[j + 2], low[j + 2]), high[j + 2])
        s3 += w[j + 3] * min(max(x[j + 3] - shift[j + 3], low[j + 3]), high[j + 3])
    for j in range(whole, x.size):
        s0 += w[j] * min(max(x[j] - shift[j], low[j]), high[j])
    return float(min(max(((s0 + s1) + (s2 + s3)) - F[OFFSET], -HUGE), HUGE))


@kernel
def _sigmoid(t: float) -> float:
    """Return 1/(1 + exp(-t)) without overflow."""
    e = math.exp(-abs(t))
    return 1.0 / (1.0 + e) if t >= 0.0 else e / (1.0 + e)


@kernel
def margins(F: FloatArray, rows: FloatArray, out: FloatArray) -> int:
    """Write to `out`, float64[n], the log-likelihood ratios of `rows`, float64[n, n_features]; raw scores where F[RAW].

    Returns -1, or the first row with a NaN or an infinity; so does the function below.
    """
    V = _vectors(F)
    factor = 1.0 if F[RAW] else F[LLR]
    for i in range(rows.shape[0]):
        out[i] = _score_row(F, V, rows[i]) * factor
    return _first_bad(rows)


@kernel
def probabilities(F: FloatArray, rows: FloatArray, out: FloatArray) -> int:
    """Write P(class 1), float64[n], of `rows`, float64[n, n_features], to `out`."""
    V = _vectors(F)
    for i in range(rows.shape[0]):
        out[i] = _sigmoid(_score_row(F, V, rows[i]) * F[LLR] + F[PRIOR])
    return _first_bad(rows)


@kernel
def probability(F: FloatArray, row: FloatArray) -> float:
    """Return P(class 1) of `row`, float64[1, n_features]; NaN where a value is NaN or infinite."""
    if _first_bad(row) >= 0:
        return math.nan
    return _sigmoid(_score_row(F, _vectors(F), row[0]) * F[LLR] + F[PRIOR])
