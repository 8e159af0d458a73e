"""Arithmetic of AUCRO by stochastic gradient, as published: class statistics, running scaling, one step an event.

Layout of the arena and the functions that have a namesake in auc.py are the same as there, word for word: the
compiler's cache does not notice an edit in another file. There is no workspace matrix.
"""

from __future__ import annotations

import math

import numpy as np

from streamlearn.contracts import CodeArray, FloatArray
from streamlearn.kernels.jit import kernel

BLOCK = 8
HEADER = 32
# Header, the same in auc: state (from WEIGHT on two slots each, for class 0 and 1), then parameters.
COUNT, SOLVED_AT, OFFSET, LLR, PRIOR, Q, MOVED, LOSS, RADIUS2 = range(9)
WEIGHT, SEEN, FACTOR, SPREAD = 10, 12, 14, 16
DECAY, CLASS_CLOCK, CLIP, EVERY, REGULARIZATION, RATE, SCALING, DIAGONAL, CAPACITY, RAW = range(20, 30)
# Vectors, the same in auc; CENTRE takes two rows. Those from X on are workspace.
SHIFT, PEAK, MEAN, VARIANCE, SECOND, LOW, HIGH, W, SCALED_W, MINIMUM, MAXIMUM, CENTRE = range(12)
X, U, DELTA, S = range(13, 17)
N_VECTORS = 17

HUGE = 1e150  # values saturate here: squares of differences stay below the largest double
MANY = 1e300  # marks a feature that took more than two values
N_BEFORE_CLIP = 3.0  # the fourth event is the first to be clipped
TINY = 1e-14  # a spread below this fraction of the largest value is rounding, not signal
SMALLEST = 1e-140  # a spread below this counts as none: weights times values stay below the largest double
FACTOR_FLOOR = 2.0**-20  # keeps T below 4 HUGE^2 2^20
Q_CEILING = 1.0 - 1e-6
EXPONENT = np.uint64(0x7FF0000000000000)
NONE, STANDARD, RANGE = 0.0, 1.0, 2.0
LARGE = 1e300  # gradients saturate here
COMPARATOR = 1.0  # size of the weights that the automatic step bets on, in scaled features


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
    """Return T of class 0 or 1 as a flat view."""
    start = HEADER + N_VECTORS * int(F[CAPACITY])
    size = (F.size - start) // 2
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
def _scales(F: FloatArray, V: FloatArray, m: int) -> None:
    """Write to V[S] what the m features are multiplied by: 1/sd, 2/range, or 1; 0 where there is no spread yet."""
    s, peak, variance, x, low, high = V[S], V[PEAK], V[VARIANCE], V[X], V[MINIMUM], V[MAXIMUM]
    if F[SCALING] == STANDARD:
        for j in range(m):
            spread = math.sqrt(variance[j])
            s[j] = 1.0 / spread if spread > max(TINY * peak[j], SMALLEST) else 0.0
    elif F[SCALING] == RANGE:
        for j in range(m):
            low[j], high[j] = min(low[j], x[j]), max(high[j], x[j])
            spread = 0.5 * high[j] - 0.5 * low[j]
            s[j] = 1.0 / spread if spread > max(TINY * peak[j], SMALLEST) else 0.0
    else:
        s[:m] = 1.0


@kernel
def _times(T: FloatArray, z: FloatArray, out: FloatArray) -> None:
    """Write the product of the symmetric T (a triangle) and z to out, float64[capacity]; eight rows a pass."""
    out[:] = 0.0
    k = 0
    for start in range(0, z.size, BLOCK):
        v, o = z[start:], out[start:]
        n = v.size
        P = T[k : k + BLOCK * n].reshape(BLOCK, n)
        p0, p1, p2, p3, p4, p5, p6, p7 = P[0], P[1], P[2], P[3], P[4], P[5], P[6], P[7]
        a0, a1, a2, a3, a4, a5, a6, a7 = v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]
        for j in range(BLOCK, n):  # the mirror image of what lies right of the block
            o[j] += ((a0 * p0[j] + a1 * p1[j]) + (a2 * p2[j] + a3 * p3[j])) + (
                (a4 * p4[j] + a5 * p5[j]) + (a6 * p6[j] + a7 * p7[j])
            )
        s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
        for j in range(n):
            a = v[j]
            s0 += p0[j] * a
            s1 += p1[j] * a
            s2 += p2[j] * a
            s3 += p3[j] * a
            s4 += p4[j] * a
            s5 += p5[j] * a
            s6 += p6[j] * a
            s7 += p7[j] * a
        o[0] += s0
        o[1] += s1
        o[2] += s2
        o[3] += s3
        o[4] += s4
        o[5] += s5
        o[6] += s6
        o[7] += s7
        k += BLOCK * n


@kernel
def _step(F: FloatArray, V: FloatArray, label: int) -> None:
    """Take one gradient step on the mean pairwise loss of the event in V[X] against the other class.

    Scaled by S, with d = c - x the difference to the other class's mean and G its covariance,
    ``grad = lambda w +- d + d (d . w) + G w`` (alpha = 1), then w is projected on ``|w| <= 1/sqrt(lambda)``.
    """
    other = 1 - label
    sign = 1.0 if label == 1 else -1.0
    s, w, x, d, Gw, raw = V[S], V[SCALED_W], V[X], V[U], V[DELTA], V[W]
    c, T, factor, regularization = V[CENTRE + other], _matrix(F, other), F[FACTOR + other], F[REGULARIZATION]
    for j in range(w.size):
        d[j] = (c[j] - x[j]) * s[j]
    for j in range(w.size):
        raw[j] = w[j] * s[j]
    _times(T, raw, Gw)
    spread = factor * _dot(raw, Gw)
    F[SPREAD + other] = spread
    dw = _dot(d, w)
    rate = F[RATE] if F[RATE] > 0.0 else _safe_rate(F, T, factor, s, _dot(d, d))
    F[LOSS] = min(F[DECAY] * F[LOSS] + 0.5 * ((1.0 + sign * dw) ** 2 + spread), LARGE)
    for j in range(w.size):
        gradient = regularization * w[j] + sign * d[j] + d[j] * dw + factor * Gw[j] * s[j]
        w[j] -= rate * min(max(gradient, -LARGE), LARGE)
    _project(w, 1.0 / math.sqrt(regularization))


@kernel
def _safe_rate(F: FloatArray, T: FloatArray, factor: float, s: FloatArray, dd: float) -> float:
    """Return the step of Theorem 3, below 1/theta of the event's own loss: ``theta = lambda + |d|^2 + tr G``.

    ``1/(theta + sqrt(theta^2 + 2 theta L/D^2))`` with the loss so far for the unknown loss of the best weights.
    """
    trace, k = 0.0, 0
    for j in range(s.size):
        trace += T[k + j % BLOCK] * s[j] * s[j]
        k += s.size - j + j % BLOCK
    theta = F[REGULARIZATION] + dd + factor * trace
    return float(1.0 / (theta + math.sqrt(theta) * math.sqrt(theta + 2.0 * F[LOSS] / COMPARATOR**2)))


@kernel
def _project(w: FloatArray, radius: float) -> None:
    """Scale w back to the ball of this radius, in place."""
    largest = 0.0
    for j in range(w.size):
        largest = max(largest, abs(w[j]))
    if largest * math.sqrt(w.size) <= radius:
        return
    total = 0.0
    for j in range(w.size):
        total += (w[j] / largest) ** 2
    norm = largest * math.sqrt(total)
    if norm > radius:
        for j in range(w.size):
            w[j] *= radius / norm


@kernel
def _calibrate(F: FloatArray, V: FloatArray, m: int) -> None:
    """Set the weights for shifted features, and what turns their score into a log-likelihood ratio.

    Along w the classes differ by q with variances v0, v1: ``q' = min(q^2/(q^2 + v0 + v1), H/(H + m))`` and the ratio is
    ``2 q'/((1 - q') q)`` times the score; for the exact minimiser that is ``2/(1 - q)``.
    """
    w, s, scaled, delta = V[W], V[S], V[SCALED_W], V[DELTA]
    for j in range(w.size):
        w[j] = scaled[j] * s[j]
        delta[j] = V[CENTRE + 1, j] - V[CENTRE, j]
    q = _dot(delta, w)
    F[LLR] = 0.0
    if q > 0.0:
        harmonic = 2.0 * F[WEIGHT] * F[WEIGHT + 1] / (F[WEIGHT] + F[WEIGHT + 1])
        explained = q / (q + (F[SPREAD] + F[SPREAD + 1]) / q)
        kept = min(explained, harmonic / (harmonic + m), Q_CEILING)
        F[LLR] = min(2.0 * kept / (1.0 - kept) / q, HUGE)


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
    """Learn one event: statistics of its class, then a step against the other, once there is one."""
    _take_row(F, V, x)
    _fold(F, V, label)
    _scales(F, V, x.size)
    if F[SEEN] and F[SEEN + 1]:
        _step(F, V, label)
        _calibrate(F, V, x.size)
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
