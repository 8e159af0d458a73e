"""Arithmetic of AUCRO by stochastic gradient, as published: class statistics, running scaling, one step an event.

Layout of the arena and the functions that have a namesake in auc.py are the same as there, word for word: the
compiler's cache does not notice an edit in another file. But a matrix is kept whole, row by row: a product with half
of it needs sums along rows, which do not vectorise and take longer than the other half. Only the first memory is used,
and there is no workspace.
"""

from __future__ import annotations

import math

import numpy as np

from streamlearn.contracts import CodeArray, FloatArray
from streamlearn.kernels.jit import kernel

BLOCK = 8
# Header, the same in auc and auc_score. SEEN, WEIGHT, FACTOR, SPREAD take two slots each, for class 0 and 1.
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
W, SCALED_W, CENTRE = range(3)
N_COMMON, N_OWN = 13, 4

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
    """Add ``a u u'`` to T, float64[capacity * capacity], in place, two rows a pass: half the loads of u."""
    n = u.size
    for r in range(0, n, 2):
        first, second = T[r * n : (r + 1) * n], T[(r + 1) * n : (r + 2) * n]
        a0, a1 = a * u[r], a * u[r + 1]
        for j in range(n):
            first[j] += a0 * u[j]
            second[j] += a1 * u[j]


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
    """Write the product of the symmetric T and z to out, float64[capacity]; eight rows a pass."""
    out[:] = 0.0
    n = z.size
    for r in range(0, n, BLOCK):
        P = T[r * n : (r + BLOCK) * n]
        p0, p1, p2, p3 = P[:n], P[n : 2 * n], P[2 * n : 3 * n], P[3 * n : 4 * n]
        p4, p5, p6, p7 = P[4 * n : 5 * n], P[5 * n : 6 * n], P[6 * n : 7 * n], P[7 * n :]
        a0, a1, a2, a3 = z[r], z[r + 1], z[r + 2], z[r + 3]
        a4, a5, a6, a7 = z[r + 4], z[r + 5], z[r + 6], z[r + 7]
        for j in range(n):
            out[j] += ((a0 * p0[j] + a1 * p1[j]) + (a2 * p2[j] + a3 * p3[j])) + (
                (a4 * p4[j] + a5 * p5[j]) + (a6 * p6[j] + a7 * p7[j])
            )


@kernel
def _step(V: FloatArray, H: FloatArray, label: int) -> None:
    """Take one gradient step on the mean pairwise loss of the event in V[X] against the other class.

    Scaled by S, with d = c - x the difference to the other class's mean and G its covariance,
    ``grad = lambda w +- d + d (d . w) + G w`` (alpha = 1), then w is projected on ``|w| <= 1/sqrt(lambda)``.
    """
    other = 1 - label
    sign = 1.0 if label == 1 else -1.0
    s, x, d, Gw = V[S], V[X], V[U], V[DELTA]
    w, raw, c, T = (
        _own(H, s.size, SCALED_W),
        _own(H, s.size, W),
        _own(H, s.size, CENTRE + other),
        _scatter(H, s.size, other),
    )
    factor, regularization = H[FACTOR + other], H[REGULARIZATION]
    for j in range(w.size):
        d[j] = (c[j] - x[j]) * s[j]
        raw[j] = w[j] * s[j]
    _times(T, raw, Gw)
    spread = factor * _dot(raw, Gw)
    H[SPREAD + other] = spread
    dw = _dot(d, w)
    rate = H[RATE] if H[RATE] > 0.0 else _safe_rate(H, T, factor, s, _dot(d, d))
    H[LOSS] = min(H[DECAY] * H[LOSS] + 0.5 * ((1.0 + sign * dw) ** 2 + spread), LARGE)
    for j in range(w.size):
        gradient = regularization * w[j] + sign * d[j] + d[j] * dw + factor * Gw[j] * s[j]
        w[j] -= rate * min(max(gradient, -LARGE), LARGE)
    _project(w, 1.0 / math.sqrt(regularization))


@kernel
def _safe_rate(H: FloatArray, T: FloatArray, factor: float, s: FloatArray, dd: float) -> float:
    """Return the step of Theorem 3, below 1/theta of the event's own loss: ``theta = lambda + |d|^2 + tr G``.

    ``1/(theta + sqrt(theta^2 + 2 theta L/D^2))`` with the loss so far for the unknown loss of the best weights.
    """
    trace = 0.0
    for j in range(s.size):
        trace += T[j * (s.size + 1)] * s[j] * s[j]
    theta = H[REGULARIZATION] + dd + factor * trace
    return float(1.0 / (theta + math.sqrt(theta) * math.sqrt(theta + 2.0 * H[LOSS] / COMPARATOR**2)))


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
def _calibrate(V: FloatArray, H: FloatArray, m: int) -> None:
    """Set the weights for shifted features, and what turns their score into a log-likelihood ratio.

    Along w the classes differ by q with variances v0, v1: ``q' = min(q^2/(q^2 + v0 + v1), H/(H + m))`` and the ratio is
    ``2 q'/((1 - q') q)`` times the score; for the exact minimiser that is ``2/(1 - q)``.
    """
    s, delta = V[S], V[DELTA]
    w, scaled, c0, c1 = (
        _own(H, s.size, W),
        _own(H, s.size, SCALED_W),
        _own(H, s.size, CENTRE),
        _own(H, s.size, CENTRE + 1),
    )
    for j in range(w.size):
        w[j] = scaled[j] * s[j]
        delta[j] = c1[j] - c0[j]
    q = _dot(delta, w)
    H[LLR] = 0.0
    if q > 0.0:
        harmonic = 2.0 * H[WEIGHT] * H[WEIGHT + 1] / (H[WEIGHT] + H[WEIGHT + 1])
        explained = q / (q + (H[SPREAD] + H[SPREAD + 1]) / q)
        kept = min(explained, harmonic / (harmonic + m), Q_CEILING)
        H[LLR] = min(2.0 * kept / (1.0 - kept) / q, HUGE)


@kernel
def settle(F: FloatArray, weights: FloatArray) -> None:
    """Take weights of unscaled features, float64[n_features], from outside: scaled weights, spreads and calibration.

    Statistics, SPREAD and, for a range, V[MINIMUM] and V[MAXIMUM] must be there.
    """
    V, H, m = _common(F), _memory(F, 0), weights.size
    V[X] = V[MINIMUM]  # the range of scaling takes in V[X]
    _scales(F, V, m)
    s, scaled = V[S], _own(H, V.shape[1], SCALED_W)
    for j in range(m):
        if s[j] == 0.0 and weights[j] != 0.0:
            s[j] = 1.0
        scaled[j] = weights[j] / s[j] if s[j] != 0.0 else 0.0
    _calibrate(V, H, m)


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
def _learn_row(F: FloatArray, V: FloatArray, x: FloatArray, label: int) -> None:
    """Learn one event: statistics of its class, then a step against the other, once there is one."""
    _take_row(F, V, x, label)
    H = _memory(F, 0)
    _fold(F, V, H, label)
    _scales(F, V, x.size)
    if F[SEEN] and F[SEEN + 1]:
        _step(V, H, label)
        _calibrate(V, H, x.size)


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
