"""Forecasts from the arena of AUCRO (layout in auc.py); functions of one name are the same, word for word."""

from __future__ import annotations

import math

import numpy as np

from streamlearn.contracts import FloatArray
from streamlearn.kernels.jit import kernel

HEADER, MEMORY_HEADER = 16, 24
SEEN, CAPACITY, MEMORY_SIZE, N_MEMORIES, RAW = 1, 7, 8, 9, 10
LLR, WEIGHT, CLASS_CLOCK, COLUMN = 0, 6, 13, 17
SHIFT, LOW, HIGH, X, U = 0, 5, 6, 9, 10
W, CENTRE = 0, 2
N_COMMON, N_OWN = 13, 4
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
def _common(F: FloatArray) -> FloatArray:
    """Return the common vectors of arena F as a view, float64[N_COMMON, capacity]."""
    return F[HEADER : HEADER + N_COMMON * int(F[CAPACITY])].reshape(N_COMMON, int(F[CAPACITY]))


@kernel
def _memory(F: FloatArray, e: int) -> FloatArray:
    """Return the block of memory e as a view; its header comes first."""
    start = HEADER + N_COMMON * int(F[CAPACITY]) + e * int(F[MEMORY_SIZE])
    return F[start : start + int(F[MEMORY_SIZE])]


@kernel
def _own(H: FloatArray, cap: int, which: int) -> FloatArray:
    """Return a vector of a memory as a view, float64[capacity]. A reshape to two dimensions would take 0.03 us."""
    return H[MEMORY_HEADER + which * cap : MEMORY_HEADER + (which + 1) * cap]


@kernel
def _clip_row(V: FloatArray, x: FloatArray) -> None:
    """Write the shifted, clipped event to V[X]."""
    shift, low, high, clipped = V[SHIFT], V[LOW], V[HIGH], V[X]
    for j in range(x.size):
        clipped[j] = min(max(x[j] - shift[j], low[j]), high[j])


@kernel
def _dot(a: FloatArray, b: FloatArray) -> float:
    """Return ``a . b`` (lengths a multiple of 4) as four partial sums: a fixed order, four times the speed of one."""
    s0 = s1 = s2 = s3 = 0.0
    for j in range(0, a.size, 4):
        s0 += a[j] * b[j]
        s1 += a[j + 1] * b[j + 1]
        s2 += a[j + 2] * b[j + 2]
        s3 += a[j + 3] * b[j + 3]
    return (s0 + s1) + (s2 + s3)


@kernel
def _score(V: FloatArray, H: FloatArray) -> float:
    """Return a memory's centred score ``w . (x - (c0 + c1)/2)`` of the event in V[X]."""
    x, u = V[X], V[U]
    c0, c1 = _own(H, x.size, CENTRE), _own(H, x.size, CENTRE + 1)
    for j in range(u.size):
        u[j] = x[j] - (0.5 * c0[j] + 0.5 * c1[j])
    return float(min(max(_dot(_own(H, u.size, W), u), -HUGE), HUGE))


@kernel
def _chance(F: FloatArray, H: FloatArray, score: float) -> float:
    """Return P(class 1) of a score, with the odds of the class counts as the memory's clock sees them."""
    n0, n1 = (F[SEEN], F[SEEN + 1]) if H[CLASS_CLOCK] else (H[WEIGHT], H[WEIGHT + 1])
    t = score * H[LLR] + (math.log(n1 + 0.5) - math.log(n0 + 0.5))
    e = math.exp(-abs(t))
    return 1.0 / (1.0 + e) if t >= 0.0 else e / (1.0 + e)


@kernel
def margins(F: FloatArray, rows: FloatArray, ratios: FloatArray) -> int:
    """Write the ratios of `rows`, float64[n, n_features], to `ratios`, float64[n, >= n_memories]; scores where F[RAW].

    Returns -1, or the first row with a NaN or an infinity; so does the function below.
    """
    V = _common(F)
    for i in range(rows.shape[0]):
        _clip_row(V, rows[i])
        for e in range(int(F[N_MEMORIES])):
            H = _memory(F, e)
            ratios[i, int(H[COLUMN])] = _score(V, H) * (1.0 if F[RAW] else H[LLR])
    return _first_bad(rows)


@kernel
def probabilities(F: FloatArray, rows: FloatArray, out: FloatArray) -> int:
    """Write P(class 1) by the first memory, float64[n], of `rows`, float64[n, n_features], to `out`."""
    V, H = _common(F), _memory(F, 0)
    for i in range(rows.shape[0]):
        _clip_row(V, rows[i])
        out[i] = _chance(F, H, _score(V, H))
    return _first_bad(rows)


@kernel
def probability(F: FloatArray, row: FloatArray) -> float:
    """Return P(class 1) of `row`, float64[1, n_features]; NaN where a value is NaN or infinite."""
    if _first_bad(row) >= 0:
        return math.nan
    V, H = _common(F), _memory(F, 0)
    _clip_row(V, row[0])
    return _chance(F, H, _score(V, H))
