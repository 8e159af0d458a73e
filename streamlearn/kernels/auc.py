"""Arithmetic of AUCRO: class statistics in one pass, closed-form weights on a schedule, centred scores.

A learner's numbers are one float64 *arena*, because every array argument costs a call 0.1 us::

    header | vectors [N_VECTORS, capacity] | T of class 0 | T of class 1 | workspace, like T

`capacity` is the number of features in whole blocks of 8; columns beyond the width hold zeros. A symmetric matrix is
its upper triangle in *block rows*: block row b holds its 8 rows from column 8 b on, one after the other. So loops run
elementwise over contiguous columns, which vectorises without letting the compiler reorder a sum: one row and many rows
give the same bits. Covariances are ``G = factor T``: forgetting multiplies the factor only.
"""

from __future__ import annotations

import math

import numpy as np

from streamlearn.contracts import CodeArray, FloatArray
from streamlearn.kernels.jit import kernel

BLOCK = 8
HEADER = 32
# Header, the same in auc_sgd: state (from WEIGHT on two slots each, for class 0 and 1), then parameters.
COUNT, SOLVED_AT, OFFSET, LLR, PRIOR, Q, MOVED, LOSS, RADIUS2 = range(9)
WEIGHT, SEEN, FACTOR, SPREAD = 10, 12, 14, 16
DECAY, CLASS_CLOCK, CLIP, EVERY, REGULARIZATION, RATE, SCALING, DIAGONAL, CAPACITY, RAW = range(20, 30)
# Vectors, the same in auc_sgd; CENTRE takes two rows. Those from X on are workspace.
SHIFT, PEAK, MEAN, VARIANCE, SECOND, LOW, HIGH, W, SCALED_W, MINIMUM, MAXIMUM, CENTRE = range(12)
X, U, DELTA, S = range(13, 17)
N_VECTORS = 17

HUGE = 1e150  # values saturate here: squares of differences stay below the largest double
MANY = 1e300  # marks a feature that took more than two values
N_BEFORE_CLIP = 3.0  # the fourth event is the first to be clipped
TINY = 1e-14  # a spread below this fraction of the largest value is rounding, not signal
SMALLEST = 1e-140  # a spread below this counts as none: weights times values stay below the largest double
FACTOR_FLOOR = 2.0**-20  # keeps T below 4 HUGE^2 2^20
PIVOT_FLOOR = 1e-12
Q_CEILING = 1.0 - 1e-6
POOLING = 0.2  # strength of the pull to the pooled covariance, in events per feature
UNIT_RIDGE = 1e-8
STALENESS = 1.0 / 256.0  # of a class mean's weight; at 1/128 electricity loses .001 of AUC
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
def _matrix(F: FloatArray, which: int) -> FloatArray:
    """Return T of class 0 or 1, or the workspace (2), as a flat view."""
    start = HEADER + N_VECTORS * int(F[CAPACITY])
    size = (F.size - start) // 3
    return F[start + which * size : start + (which + 1) * size]


@kernel
def _take_row(F: FloatArray, V: FloatArray, x: FloatArray) -> None:
    """Write the shifted, clipped event to V[X]; update the running mean, variance, range and clipping bounds.

    The bounds applied to an event are those from before it, as when it was scored.
    """
    m, n = x.size, F[COUNT]
    if n == 0.0:
        V[SHIFT, :m] = x
    shift, peak, raw, clipped, low, high = V[SHIFT], V[PEAK], V[U], V[X], V[LOW], V[HIGH]
    for j in range(m):
        raw[j] = min(max(x[j] - shift[j], -HUGE), HUGE)
    for j in range(m):
        peak[j] = max(peak[j], min(abs(x[j]), HUGE))
    for j in range(m):
        clipped[j] = min(max(raw[j], low[j]), high[j])
    mean, variance, r = V[MEAN], V[VARIANCE], 1.0 / (n + 1.0)
    for j in range(m):
        d = raw[j] - mean[j]
        mean[j] += r * d
        variance[j] = (1.0 - r) * (variance[j] + r * d * d)
    second = V[SECOND]
    for j in range(m):  # the first value is 0 by the shift; 0 here = no second value yet
        known = raw[j] if second[j] == 0.0 else second[j]
        second[j] = known if raw[j] == known or raw[j] == 0.0 else MANY
    if F[CLIP] and n + 1.0 >= N_BEFORE_CLIP:
        for j in range(m):
            width = F[CLIP] * math.sqrt(variance[j]) if second[j] == MANY else 2.0 * HUGE
            low[j] = max(mean[j] - width, -HUGE)
            high[j] = min(mean[j] + width, HUGE)


@kernel
def _rank_one(T: FloatArray, u: FloatArray, a: float) -> None:
    """Add ``a u u'`` to the triangle T in place, two rows a pass: half the loads of u."""
    k = 0
    for start in range(0, u.size, BLOCK):
        v = u[start:]
        n = v.size
        for r in range(0, BLOCK, 2):
            first, second = T[k : k + n], T[k + n : k + 2 * n]
            a0, a1 = a * v[r], a * v[r + 1]
            for j in range(n):
                first[j] += a0 * v[j]
                second[j] += a1 * v[j]
            k += 2 * n


@kernel
def _fold(F: FloatArray, V: FloatArray, label: int) -> None:
    """Add the event in V[X] to the statistics of its class; older events weigh F[DECAY] less.

    ``W <- g W + 1, r = 1/W, u = x - c, c <- c + r u, G <- (1 - r)(G + r u u')`` with ``G = factor T``.
    """
    if F[CLASS_CLOCK]:
        F[WEIGHT + label] *= F[DECAY]
    else:
        F[WEIGHT] *= F[DECAY]
        F[WEIGHT + 1] *= F[DECAY]
    F[WEIGHT + label] += 1.0
    F[SEEN + label] += 1.0
    F[COUNT] += 1.0
    r = 1.0 / F[WEIGHT + label]
    F[MOVED] += r
    x, u, centre, T = V[X], V[U], V[CENTRE + label], _matrix(F, label)
    if r >= 1.0:  # the first of its class, or all before it faded beyond the last digit
        centre[:] = x
        T[:] = 0.0
        F[FACTOR + label] = 1.0
        return
    a = r / F[FACTOR + label]
    for j in range(u.size):
        u[j] = x[j] - centre[j]
    for j in range(u.size):
        centre[j] += r * u[j]
    if F[DIAGONAL]:
        for j in range(u.size):
            T[j] += a * u[j] * u[j]
    else:
        _rank_one(T, u, a)
    F[FACTOR + label] *= 1.0 - r
    if F[FACTOR + label] < FACTOR_FLOOR:
        for j in range(T.size):
            T[j] *= F[FACTOR + label]
        F[FACTOR + label] = 1.0


@kernel
def _four_rows(P: FloatArray, at: int) -> None:
    """Finish four rows, float64[4, n], whose diagonal begins in column `at`: ``L^-1 P``, one pass over the columns."""
    p0, p1, p2, p3 = P[0, at:], P[1, at:], P[2, at:], P[3, at:]
    i0 = 1.0 / math.sqrt(max(p0[0], PIVOT_FLOOR))
    u01, u02, u03 = i0 * p0[1], i0 * p0[2], i0 * p0[3]
    i1 = 1.0 / math.sqrt(max(p1[1] - u01 * u01, PIVOT_FLOOR))
    u12, u13 = i1 * (p1[2] - u01 * u02), i1 * (p1[3] - u01 * u03)
    i2 = 1.0 / math.sqrt(max(p2[2] - (u02 * u02 + u12 * u12), PIVOT_FLOOR))
    u23 = i2 * (p2[3] - (u02 * u03 + u12 * u13))
    i3 = 1.0 / math.sqrt(max(p3[3] - (u03 * u03 + u13 * u13 + u23 * u23), PIVOT_FLOOR))
    for j in range(p0.size):
        y0 = i0 * p0[j]
        y1 = i1 * (p1[j] - u01 * y0)
        y2 = i2 * (p2[j] - (u02 * y0 + u12 * y1))
        p3[j] = i3 * (p3[j] - (u03 * y0 + u13 * y1 + u23 * y2))
        p0[j], p1[j], p2[j] = y0, y1, y2
    p0[0], p1[1], p2[2], p3[3] = i0, i1, i2, i3


@kernel
def _cholesky(R: FloatArray, cap: int) -> None:
    """Replace the triangle R by U with ``U'U = R``, eight rows at a time; its diagonal holds the *inverse* pivots."""
    k = 0
    for start in range(0, cap, BLOCK):
        n = cap - start
        P = R[k : k + BLOCK * n].reshape(BLOCK, n)
        _four_rows(P[:4], 0)
        p0, p1, p2, p3 = P[0, 4:], P[1, 4:], P[2, 4:], P[3, 4:]
        for r in range(4):
            row, a0, a1, a2, a3 = P[4 + r, 4:], p0[r], p1[r], p2[r], p3[r]
            for j in range(n - 4):
                row[j] -= (a0 * p0[j] + a1 * p1[j]) + (a2 * p2[j] + a3 * p3[j])
        _four_rows(P[4:], 4)
        k += BLOCK * n
        _trail(P, R[k:], n)


@kernel
def _trail(P: FloatArray, R: FloatArray, n: int) -> None:
    """Subtract ``P'P`` of one finished block row, float64[8, n], from the triangle R of the columns after it."""
    k = 0
    for start in range(BLOCK, n, BLOCK):
        p0, p1, p2, p3 = P[0, start:], P[1, start:], P[2, start:], P[3, start:]
        p4, p5, p6, p7 = P[4, start:], P[5, start:], P[6, start:], P[7, start:]
        for r in range(BLOCK):
            row = R[k : k + n - start]
            a0, a1, a2, a3, a4, a5, a6, a7 = p0[r], p1[r], p2[r], p3[r], p4[r], p5[r], p6[r], p7[r]
            for j in range(n - start):
                row[j] -= ((a0 * p0[j] + a1 * p1[j]) + (a2 * p2[j] + a3 * p3[j])) + (
                    (a4 * p4[j] + a5 * p5[j]) + (a6 * p6[j] + a7 * p7[j])
                )
            k += n - start


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
def _solve_factored(R: FloatArray, b: FloatArray) -> None:
    """Replace b, float64[capacity], by the solution of ``U'U x = b``, with U as `_cholesky` left it in R."""
    cap, k = b.size, 0
    for start in range(0, cap, BLOCK):
        v = b[start:]
        for r in range(BLOCK):
            row = R[k : k + v.size]
            a = v[r] * row[r]
            for j in range(r + 1, v.size):
                v[j] -= a * row[j]
            v[r] = a
            k += v.size
    for start in range(cap - BLOCK, -1, -BLOCK):
        v = b[start:]
        for r in range(BLOCK - 1, -1, -1):
            k -= v.size
            row = R[k : k + v.size]
            total = v[r] - _dot(row[BLOCK:], v[BLOCK:])
            for j in range(r + 1, BLOCK):
                total -= row[j] * v[j]
            v[r] = total * row[r]


@kernel
def _assemble(T0: FloatArray, T1: FloatArray, R: FloatArray, a0: float, a1: float, V: FloatArray, rho: float) -> None:
    """Write ``S (a0 T0 + a1 T1 + delta delta') S + rho I`` to the triangle R."""
    k = 0
    for start in range(0, V.shape[1], BLOCK):
        d, s = V[DELTA, start:], V[S, start:]
        n = d.size
        for r in range(BLOCK):
            first, second, row, dr, sr = T0[k : k + n], T1[k : k + n], R[k : k + n], d[r], s[r]
            for j in range(n):
                row[j] = (a0 * first[j] + a1 * second[j] + dr * d[j]) * sr * s[j]
            row[r] += rho
            k += n


@kernel
def _due(F: FloatArray, n_features: int) -> bool:
    """Tell whether to solve anew; it depends on the events so far alone, not on how they were batched.

    The weights may lag until the class means moved by `STALENESS` (an event moves its own by r = 1/W); and, so that
    solving costs no more than updating, for max(m/18, (m/32)^2) events, but not for more than a sixteenth of all.
    """
    waited = F[COUNT] - F[SOLVED_AT]
    if F[EVERY]:
        return bool(waited >= F[EVERY])
    affordable = max(math.ceil(n_features / 18.0), math.ceil((n_features / 32.0) ** 2))
    return bool(F[MOVED] >= STALENESS and waited >= min(affordable, max(1.0, F[COUNT] // 16.0)))


@kernel
def _solve(F: FloatArray, V: FloatArray, m: int) -> None:
    """Set the weights of the m features to the minimiser of the pairwise square loss, from the class statistics.

    ``A = G0~ + G1~ + delta delta'`` with each ``G~ = (W G + kappa P)/(W + kappa)``, P pooled, ``kappa = 0.2 m``;
    ``w = S (S A S + rho I)^-1 S delta``, ``rho = m/W``. S is diag(A + rho/W D)^-1/2, D the variances since the start: a
    feature that was constant for as long as the memory reaches would else get an unbounded weight.
    """
    w0, w1 = F[WEIGHT], F[WEIGHT + 1]
    total, kappa = w0 + w1, POOLING * m
    pooled = kappa / total * (1.0 / (w0 + kappa) + 1.0 / (w1 + kappa))
    a0 = F[FACTOR] * w0 * (1.0 / (w0 + kappa) + pooled)
    a1 = F[FACTOR + 1] * w1 * (1.0 / (w1 + kappa) + pooled)
    delta, s, w, T0, T1, R = V[DELTA], V[S], V[W], _matrix(F, 0), _matrix(F, 1), _matrix(F, 2)
    cap, n_active, k = V.shape[1], 0, 0
    for j in range(cap):
        delta[j] = V[CENTRE + 1, j] - V[CENTRE, j]
        at = j if F[DIAGONAL] else k + j % BLOCK
        s[j] = delta[j] * delta[j] + a0 * T0[at] + a1 * T1[at]
        k += cap - j + j % BLOCK
        n_active += s[j] > max(TINY * V[PEAK, j], SMALLEST) ** 2
    rho = (F[REGULARIZATION] if F[REGULARIZATION] >= 0.0 else n_active / total) + UNIT_RIDGE
    for j in range(cap):
        active = s[j] > max(TINY * V[PEAK, j], SMALLEST) ** 2
        s[j] = 1.0 / math.sqrt(s[j] + rho / total * V[VARIANCE, j]) if active else 0.0
        w[j] = s[j] * delta[j]
    if F[DIAGONAL]:
        for j in range(cap):
            w[j] /= 1.0 + rho
    else:
        _assemble(T0, T1, R, a0, a1, V, rho)
        _cholesky(R, cap)
        _solve_factored(R, w)
    for j in range(cap):
        w[j] *= s[j]
    F[Q] = min(max(_dot(delta, w), 0.0), Q_CEILING)
    harmonic = 2.0 * w0 * w1 / total
    F[LLR] = 2.0 / (1.0 - min(F[Q], harmonic / (harmonic + m)))
    F[SOLVED_AT], F[MOVED] = F[COUNT], 0.0


@kernel
def _centre_and_prior(F: FloatArray, V: FloatArray) -> None:
    """Set the offset that centres the score between the class means, and the prior log-odds."""
    c0, c1, middle = V[CENTRE], V[CENTRE + 1], V[U]
    for j in range(middle.size):
        middle[j] = 0.5 * c0[j] + 0.5 * c1[j]
    F[OFFSET] = _dot(V[W], middle)
    base = SEEN if F[CLASS_CLOCK] else WEIGHT
    F[PRIOR] = math.log(F[base + 1] + 0.5) - math.log(F[base] + 0.5)


@kernel
def _learn_row(F: FloatArray, V: FloatArray, x: FloatArray, label: int) -> None:
    """Learn one event: statistics, then weights when they are due."""
    _take_row(F, V, x)
    _fold(F, V, label)
    if F[SEEN] and F[SEEN + 1] and _due(F, x.size):
        _solve(F, V, x.size)
    _centre_and_prior(F, V)


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
def learn(F: FloatArray, rows: FloatArray, codes: CodeArray) -> int:
    """Learn `rows`, float64[n, n_features], in order into arena F; a row with code -1 teaches nothing.

    Returns -1, or the first row with a NaN or an infinity; then nothing was changed. So do the functions below.
    """
    bad, V = _first_bad(rows), _vectors(F)
    if bad >= 0:
        return bad
    for i in range(rows.shape[0]):
        if codes[i] >= 0:
            _learn_row(F, V, rows[i], int(codes[i]))
    return -1


@kernel
def test_then_learn(
    F: FloatArray, tested: FloatArray, learned: FloatArray, codes: CodeArray, scores: FloatArray, chances: FloatArray
) -> int:
    """For each i: forecast ``tested[i]`` by the present model, then learn ``learned[i]`` with ``codes[i]``.

    `scores`, float64[n], takes the log-likelihood ratios, or the scores as they are where F[RAW]; `chances` P(class 1).
    """
    bad = max(_first_bad(tested), _first_bad(learned))
    if bad >= 0:
        return bad
    V = _vectors(F)
    for i in range(tested.shape[0]):
        raw = _score_row(F, V, tested[i])
        scores[i] = raw * (1.0 if F[RAW] else F[LLR])
        chances[i] = _sigmoid(raw * F[LLR] + F[PRIOR])
        if codes[i] >= 0:
            _learn_row(F, V, learned[i], int(codes[i]))
    return -1
