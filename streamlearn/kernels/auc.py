"""Arithmetic of AUCRO: class statistics in one pass, closed-form weights on a schedule, centred scores.

A learner's numbers are one float64 *arena*, because every array argument costs a call 0.1 us::

    header | common vectors [N_COMMON, capacity] | one block a memory | workspace
    block: its header | own vectors [N_OWN, capacity] | T of class 0 | T of class 1

AUCRO has one memory; a bank of several, forgetting at different rates, shares what does not depend on forgetting.
`capacity` is the number of features in whole blocks of 8; columns beyond the width hold zeros. A symmetric matrix is
its upper triangle in *block rows*: block row b holds its 8 rows from column 8 b on. So loops run elementwise over
contiguous columns, which vectorises without reordering sums: one row and many give the same bits. ``G = factor T``.
"""

from __future__ import annotations

import math

import numpy as np

from streamlearn.contracts import CodeArray, FloatArray
from streamlearn.kernels.jit import kernel

BLOCK = 8
# Header, the same in auc_sgd and auc_score. SEEN, WEIGHT, FACTOR, SPREAD take two slots each, for class 0 and 1.
HEADER = 16
COUNT, SEEN = 0, 1
CLIP, SCALING = 4, 5
CAPACITY, MEMORY_SIZE, N_MEMORIES, RAW = range(7, 11)
# Header of a memory, likewise: state, then parameters. COLUMN is its place among the ratios of a bank.
MEMORY_HEADER = 24
LLR, SOLVED_AT, MOVED, LOSS = range(4)
WEIGHT, FACTOR, SPREAD = 6, 8, 10
DECAY, CLASS_CLOCK, EVERY, REGULARIZATION, RATE, COLUMN = range(12, 18)
# Common vectors, those from X on are workspace; own vectors, where CENTRE takes two rows.
SHIFT, PEAK, MEAN, VARIANCE, SECOND, LOW, HIGH, MINIMUM, MAXIMUM, X, U, DELTA, S = range(13)
W, SCALED_W, CENTRE, N_COMMON, N_OWN = 0, 1, 2, 13, 4
HUGE = 1e150  # values saturate here: squares of differences stay below the largest double
MANY = 1e300  # marks a feature that took more than two values
N_BEFORE_CLIP = 3.0  # the fourth event is the first to be clipped
TINY = 1e-14  # a spread below this fraction of the largest value is rounding, not signal
SMALLEST = 1e-140  # a spread below this counts as none: weights times values stay below the largest double
FACTOR_FLOOR = 2.0**-20  # keeps T below 4 HUGE^2 2^20
PIVOT_FLOOR, Q_CEILING, UNIT_RIDGE = 1e-12, 1.0 - 1e-6, 1e-8
POOLING = 0.2  # strength of the pull to the pooled covariance, in events per feature
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
def _scatter(H: FloatArray, cap: int, label: int) -> FloatArray:
    """Return T of a class in a memory as a flat view."""
    start = MEMORY_HEADER + N_OWN * cap
    size = (H.size - start) // 2
    return H[start + label * size : start + (label + 1) * size]


@kernel
def _clip_row(V: FloatArray, x: FloatArray) -> None:
    """Write the shifted, clipped event to V[X]."""
    shift, low, high, clipped = V[SHIFT], V[LOW], V[HIGH], V[X]
    for j in range(x.size):
        clipped[j] = min(max(x[j] - shift[j], low[j]), high[j])


@kernel
def _take_row(F: FloatArray, V: FloatArray, x: FloatArray, label: int) -> None:
    """Write the event to V[X], shifted and clipped as when it was scored; update counts, moments, clipping bounds."""
    m, n = x.size, F[COUNT]
    F[COUNT], F[SEEN + label] = n + 1.0, F[SEEN + label] + 1.0
    if n == 0.0:
        V[SHIFT, :m] = x
    _clip_row(V, x)
    shift, peak, raw, second, low, high = V[SHIFT], V[PEAK], V[U], V[SECOND], V[LOW], V[HIGH]
    for j in range(m):
        raw[j] = min(max(x[j] - shift[j], -HUGE), HUGE)
        peak[j] = max(peak[j], min(abs(x[j]), HUGE))
    mean, variance, r = V[MEAN], V[VARIANCE], 1.0 / (n + 1.0)
    for j in range(m):
        d = raw[j] - mean[j]
        mean[j] += r * d
        variance[j] = (1.0 - r) * (variance[j] + r * d * d)
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
        v, n = u[start:], u.size - start
        for r in range(0, BLOCK, 2):
            first, second = T[k : k + n], T[k + n : k + 2 * n]
            a0, a1 = a * v[r], a * v[r + 1]
            for j in range(n):
                first[j] += a0 * v[j]
                second[j] += a1 * v[j]
            k += 2 * n


@kernel
def _fold(F: FloatArray, V: FloatArray, H: FloatArray, label: int) -> None:
    """Add the event in V[X] to a memory's statistics of its class; older events weigh H[DECAY] less.

    ``W <- g W + 1, r = 1/W, u = x - c, c <- c + r u, G <- (1 - r)(G + r u u')`` with ``G = factor T``.
    """
    H[WEIGHT + 1 - label] *= 1.0 if H[CLASS_CLOCK] else H[DECAY]
    H[WEIGHT + label] = H[DECAY] * H[WEIGHT + label] + 1.0
    r = 1.0 / H[WEIGHT + label]
    H[MOVED] += r
    x, u = V[X], V[U]
    centre, scatter = _own(H, x.size, CENTRE + label), _scatter(H, x.size, label)
    if r >= 1.0:  # the first of its class, or all before it faded beyond the last digit
        centre[:] = x
        scatter[:] = 0.0
        H[FACTOR + label] = 1.0
        return
    a = r / H[FACTOR + label]
    for j in range(u.size):
        d = x[j] - centre[j]
        u[j] = d
        centre[j] += r * d
    _rank_one(scatter, u, a)
    H[FACTOR + label] *= 1.0 - r
    if H[FACTOR + label] < FACTOR_FLOOR:
        for j in range(scatter.size):
            scatter[j] *= H[FACTOR + label]
        H[FACTOR + label] = 1.0


@kernel
def _assemble(T0: FloatArray, T1: FloatArray, R: FloatArray, a0: float, a1: float, V: FloatArray, rho: float) -> None:
    """Write ``S (a0 T0 + a1 T1 + delta delta') S + rho I`` to the triangle R."""
    k, delta, scale = 0, V[DELTA], V[S]
    for start in range(0, delta.size, BLOCK):
        d, s, n = delta[start:], scale[start:], delta.size - start
        for r in range(BLOCK):
            first, second, row, dr, sr = T0[k : k + n], T1[k : k + n], R[k : k + n], d[r], s[r]
            for j in range(n):
                row[j] = (a0 * first[j] + a1 * second[j] + dr * d[j]) * sr * s[j]
            row[r] += rho
            k += n


@kernel
def _four_rows(P: FloatArray, n: int, at: int) -> tuple[float, float, float, float]:
    """Eliminate four rows of n, whose diagonal begins in column `at`; it takes the *inverse* pivots, returned too."""
    p0, p1, p2, p3 = P[at:n], P[n + at : 2 * n], P[2 * n + at : 3 * n], P[3 * n + at : 4 * n]
    i0 = 1.0 / max(p0[0], PIVOT_FLOOR)
    l01, l02, l03 = i0 * p0[1], i0 * p0[2], i0 * p0[3]
    i1 = 1.0 / max(p1[1] - l01 * p0[1], PIVOT_FLOOR)
    u12, u13 = p1[2] - l01 * p0[2], p1[3] - l01 * p0[3]
    l12, l13 = i1 * u12, i1 * u13
    i2 = 1.0 / max(p2[2] - (l02 * p0[2] + l12 * u12), PIVOT_FLOOR)
    u23 = p2[3] - (l02 * p0[3] + l12 * u13)
    l23 = i2 * u23
    i3 = 1.0 / max(p3[3] - (l03 * p0[3] + l13 * u13 + l23 * u23), PIVOT_FLOOR)
    for j in range(p0.size):  # no square roots: their latency would be half the time of a small model
        p1[j] -= l01 * p0[j]
        p2[j] -= l02 * p0[j] + l12 * p1[j]
        p3[j] -= l03 * p0[j] + l13 * p1[j] + l23 * p2[j]
    p0[0], p1[1], p2[2], p3[3] = i0, i1, i2, i3
    return i0, i1, i2, i3


@kernel
def _eliminate(R: FloatArray, x: FloatArray) -> None:
    """Bring the triangle R and the right-hand side x, float64[capacity], to echelon form, eight rows at a time."""
    k, cap = 0, x.size
    for start in range(0, cap, BLOCK):
        n = cap - start
        P, b = R[k : k + BLOCK * n], x[start:]
        i0, i1, i2, i3 = _four_rows(P, n, 0)
        p0, p1, p2, p3 = P[4:n], P[n + 4 : 2 * n], P[2 * n + 4 : 3 * n], P[3 * n + 4 : 4 * n]
        for r in range(4):
            row = P[(4 + r) * n + 4 : (5 + r) * n]
            a0, a1, a2, a3 = i0 * p0[r], i1 * p1[r], i2 * p2[r], i3 * p3[r]
            for j in range(n - 4):
                row[j] -= (a0 * p0[j] + a1 * p1[j]) + (a2 * p2[j] + a3 * p3[j])
        i4, i5, i6, i7 = _four_rows(P[4 * n :], n, 4)
        for r in range(0, BLOCK, 2):  # the right-hand side, two rows a pass
            p, q, v = P[r * n + r : (r + 1) * n], P[(r + 1) * n + r : (r + 2) * n], b[r:]
            a0 = v[0] * p[0]
            v[1] -= a0 * p[1]
            a1 = v[1] * q[1]
            for j in range(2, n - r):
                v[j] -= a0 * p[j] + a1 * q[j]
        k = at = k + BLOCK * n
        for s in range(BLOCK, n, BLOCK):
            p0, p1, p2, p3 = P[s:n], P[n + s : 2 * n], P[2 * n + s : 3 * n], P[3 * n + s : 4 * n]
            p4, p5, p6, p7 = P[4 * n + s : 5 * n], P[5 * n + s : 6 * n], P[6 * n + s : 7 * n], P[7 * n + s :]
            for r in range(BLOCK):
                a0, a1, a2, a3 = i0 * p0[r], i1 * p1[r], i2 * p2[r], i3 * p3[r]
                a4, a5, a6, a7 = i4 * p4[r], i5 * p5[r], i6 * p6[r], i7 * p7[r]
                row = R[at : at + n - s]
                for j in range(n - s):
                    four = (a0 * p0[j] + a1 * p1[j]) + (a2 * p2[j] + a3 * p3[j])
                    row[j] -= four + ((a4 * p4[j] + a5 * p5[j]) + (a6 * p6[j] + a7 * p7[j]))
                at += n - s


@kernel
def _back_substitute(R: FloatArray, x: FloatArray) -> None:
    """Solve the echelon form that `_eliminate` left: x, float64[capacity], becomes the solution."""
    k, cap = R.size, x.size
    for n in range(BLOCK, cap + 1, BLOCK):
        k -= BLOCK * n
        P, v = R[k : k + BLOCK * n], x[cap - n :]
        for r in range(BLOCK - 1, -1, -2):  # two rows a pass; half of them wait for the other
            p, q, u = P[r * n + r - 1 : (r + 1) * n], P[(r - 1) * n + r - 1 : r * n], v[r - 1 :]
            s0 = s1 = t0 = t1 = 0.0
            for j in range(2, n - r, 2):
                s0 += p[j] * u[j]
                t0 += q[j] * u[j]
                s1 += p[j + 1] * u[j + 1]
                t1 += q[j + 1] * u[j + 1]
            last = (u[1] - (s0 + s1)) * p[1]
            u[0], u[1] = (u[0] - (t0 + t1) - q[1] * last) * q[0], last


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
def _due(F: FloatArray, H: FloatArray, n_features: int) -> bool:
    """Tell whether to solve anew; it depends on the events so far alone, not on how they were batched.

    The weights may lag until the class means moved by `STALENESS` (an event moves its own by r = 1/W); and, so that
    solving costs no more than updating, for max(m/18, (m/32)^2) events, but not for more than a sixteenth of all.
    """
    wait = min(max(math.ceil(n_features / 18.0), math.ceil((n_features / 32.0) ** 2)), max(1.0, F[COUNT] // 16.0))
    still = H[MOVED] < STALENESS and not H[EVERY]
    return not still and F[COUNT] - H[SOLVED_AT] >= (H[EVERY] if H[EVERY] else wait)


@kernel
def solve(F: FloatArray, V: FloatArray, H: FloatArray, m: int) -> None:
    """Set a memory's weights of the m features to the minimiser of the pairwise square loss, from the statistics.

    ``A = G0~ + G1~ + delta delta'`` with each ``G~ = (W G + kappa P)/(W + kappa)``, P pooled, ``kappa = 0.2 m``;
    ``w = S (S A S + rho I)^-1 S delta``, ``rho = m/W``. S is diag(A + rho/W D)^-1/2, D the variances since the start:
    a feature that was constant for as long as the memory reaches would else get an unbounded weight.
    """
    w0, w1 = H[WEIGHT], H[WEIGHT + 1]
    total, kappa = w0 + w1, POOLING * m
    pooled = kappa / total * (1.0 / (w0 + kappa) + 1.0 / (w1 + kappa))
    a0 = H[FACTOR] * w0 * (1.0 / (w0 + kappa) + pooled)
    a1 = H[FACTOR + 1] * w1 * (1.0 / (w1 + kappa) + pooled)
    delta, s, floor, peak, variance = V[DELTA], V[S], V[U], V[PEAK], V[VARIANCE]
    cap, k, n_active = delta.size, 0, 0
    w, c0, c1 = _own(H, cap, W), _own(H, cap, CENTRE), _own(H, cap, CENTRE + 1)
    T0, T1 = _scatter(H, cap, 0), _scatter(H, cap, 1)
    for j in range(cap):
        at = k + j % BLOCK
        s[j] = a0 * T0[at] + a1 * T1[at]
        k += cap - j + j % BLOCK
    for j in range(cap):
        delta[j] = c1[j] - c0[j]
        s[j] += delta[j] * delta[j]
        floor[j] = max(TINY * peak[j], SMALLEST) ** 2
    for j in range(cap):
        n_active += s[j] > floor[j]
    rho = (H[REGULARIZATION] if H[REGULARIZATION] >= 0.0 else n_active / total) + UNIT_RIDGE
    for j in range(cap):
        s[j] = 1.0 / math.sqrt(s[j] + rho / total * variance[j]) if s[j] > floor[j] else 0.0
        w[j] = s[j] * delta[j]
    R = F[HEADER + N_COMMON * cap + int(F[N_MEMORIES]) * H.size :]
    _assemble(T0, T1, R, a0, a1, V, rho)
    _eliminate(R, w)
    _back_substitute(R, w)
    for j in range(cap):
        w[j] *= s[j]
    q, harmonic = min(max(_dot(delta, w), 0.0), Q_CEILING), 2.0 * w0 * w1 / total
    H[LLR] = 2.0 / (1.0 - min(q, harmonic / (harmonic + m)))
    H[SOLVED_AT], H[MOVED] = F[COUNT], 0.0


@kernel
def _learn_row(F: FloatArray, V: FloatArray, x: FloatArray, label: int) -> None:
    """Learn one event: statistics, then for each memory its own, and weights when they are due."""
    _take_row(F, V, x, label)
    for e in range(int(F[N_MEMORIES])):
        H = _memory(F, e)
        _fold(F, V, H, label)
        if F[SEEN] and F[SEEN + 1] and _due(F, H, x.size):
            solve(F, V, H, x.size)


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
def learn(F: FloatArray, rows: FloatArray, codes: CodeArray) -> int:
    """Learn `rows`, float64[n, n_features], in order into arena F; a row with code -1 teaches nothing.

    Returns -1, or the first row with a NaN or an infinity; then nothing was changed. So do the functions below.
    """
    bad, V = _first_bad(rows), _common(F)
    if bad >= 0:
        return bad
    for i in range(rows.shape[0]):
        if codes[i] >= 0:
            _learn_row(F, V, rows[i], int(codes[i]))
    return -1


@kernel
def test_then_learn(
    F: FloatArray, tested: FloatArray, learned: FloatArray, codes: CodeArray, ratios: FloatArray, chances: FloatArray
) -> int:
    """For each i: forecast ``tested[i]`` by the present model, then learn ``learned[i]`` with ``codes[i]``.

    `ratios`, float64[n, >= n_memories], takes the log-likelihood ratios, or the scores as they are where F[RAW];
    `chances` P(class 1) by the first memory, where it is not empty.
    """
    bad = max(_first_bad(tested), _first_bad(learned))
    if bad >= 0:
        return bad
    V = _common(F)
    for i in range(tested.shape[0]):
        _clip_row(V, tested[i])
        for e in range(int(F[N_MEMORIES])):
            H = _memory(F, e)
            score = _score(V, H)
            ratios[i, int(H[COLUMN])] = score * (1.0 if F[RAW] else H[LLR])
            if e == 0 and chances.size:
                chances[i] = _chance(F, H, score)
        if codes[i] >= 0:
            _learn_row(F, V, learned[i], int(codes[i]))
    return -1
