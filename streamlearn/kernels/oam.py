"""Arithmetic of online AUC maximisation with reservoir buffers: one pass over the pairs of an event.

The state is one float64 array: ``header | vectors [N_VECTORS, capacity] | buffer of class 0 | buffer of class 1``, each
buffer [size, capacity] of raw events. Scaling and calibration are the same, word for word, in every kernel file of this
layout: the compiler's cache does not notice an edit in another file.
"""

from __future__ import annotations

import math

import numpy as np

from streamlearn.contracts import CodeArray, FloatArray
from streamlearn.kernels.jit import kernel

# Header, the same in all kernels of this layout: counts, scaling, calibration of the score.
COUNT, SCALING, LIMIT, SEEN = 0, 1, 2, 3  # SEEN takes two slots: events of class 0, of class 1
SLOPE, BIAS, H_BB, H_BS, H_SS, SCORE_MEAN, SCORE_VARIANCE, SCORED = range(5, 13)  # the slope less its start, 1
NONE, STANDARD, RANGE = 0.0, 1.0, 2.0

# Vectors, likewise.
CENTRE, SCALE, VARIANCE, LOW, HIGH, Z = range(6)

EXPONENT = np.uint64(0x7FF0000000000000)
LARGE = 1e300
HUGE = 1e100  # values saturate here: products of three of them stay below the largest double
MAX_LOGIT = 30.0
CALIBRATION_MEMORY = 1000.0  # events; the score that is calibrated changes while the learner learns
MIN_CURVATURE = 1e-3

# Header and vectors of this file.
SIZE, C, SEQUENTIAL, SEED, DRAWS, PULLED, SPREAD, SPREAD_COUNT = range(13, 21)
HEADER = 21
W, PULL, D = range(6, 9)
N_VECTORS = 9
SCORING = W

MASK = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)
ROUND_MULTIPLIER = np.uint64(0xD256D193)
ROUND_KEY = np.uint64(0x9E3779B9)
ROUNDS = 10
TO_UNIT = 2.0**-53


@kernel
def _first_bad_row(X: FloatArray) -> int:
    """Return the first row of X with a NaN or an infinity, -1 if there is none; by exponent bits, which vectorises."""
    bits = X.view(np.uint64)
    for i in range(X.shape[0]):
        bad = 0
        for j in range(X.shape[1]):
            bad |= (bits[i, j] & EXPONENT) == EXPONENT
        if bad:
            return i
    return -1


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
def _observe(F: FloatArray, V: FloatArray, x: FloatArray) -> None:
    """Take one event into the scaling: running mean and variance (Welford), or running range.

    A feature that never varied gets scale 0. The limit of a scaled value is what it could be at most had it been among
    the n events seen: sqrt(n) standard deviations (Samuelson's inequality), or the end of the range.
    """
    F[COUNT] += 1.0
    n = F[COUNT]
    centre, scale, variance, low, high = V[CENTRE], V[SCALE], V[VARIANCE], V[LOW], V[HIGH]
    if F[SCALING] == STANDARD:
        r = 1.0 / n
        for j in range(x.size):
            d = min(max(x[j], -HUGE), HUGE) - centre[j]
            centre[j] += r * d
            variance[j] = (1.0 - r) * (variance[j] + r * d * d)
            scale[j] = 1.0 / math.sqrt(variance[j]) if variance[j] > 0.0 else 0.0
        F[LIMIT] = math.sqrt(n)
    elif F[SCALING] == RANGE:
        for j in range(x.size):
            v = min(max(x[j], -HUGE), HUGE)
            low[j] = v if n == 1.0 else min(low[j], v)
            high[j] = v if n == 1.0 else max(high[j], v)
            centre[j] = 0.5 * low[j] + 0.5 * high[j]
            scale[j] = 1.0 / max(0.5 * high[j] - 0.5 * low[j], 1.0 / LARGE) if high[j] > low[j] else 0.0
        F[LIMIT] = 1.0
    else:
        for j in range(x.size):
            scale[j] = 1.0
        F[LIMIT] = HUGE


@kernel
def _rescale(F: FloatArray, V: FloatArray, x: FloatArray) -> None:
    """Write the scaled event to V[Z]."""
    centre, scale, z, limit = V[CENTRE], V[SCALE], V[Z], F[LIMIT]
    for j in range(x.size):
        z[j] = min(max((x[j] - centre[j]) * scale[j], -limit), limit)


@kernel
def _linear(F: FloatArray, V: FloatArray, w: FloatArray, x: FloatArray) -> float:
    """Return ``w . z`` with z the scaled event, in a fixed order of four partial sums; writes nothing."""
    centre, scale, limit = V[CENTRE], V[SCALE], F[LIMIT]
    s0 = s1 = s2 = s3 = 0.0
    whole = x.size - x.size % 4
    for j in range(0, whole, 4):
        s0 += w[j] * min(max((x[j] - centre[j]) * scale[j], -limit), limit)
        s1 += w[j + 1] * min(max((x[j + 1] - centre[j + 1]) * scale[j + 1], -limit), limit)
        s2 += w[j + 2] * min(max((x[j + 2] - centre[j + 2]) * scale[j + 2], -limit), limit)
        s3 += w[j + 3] * min(max((x[j + 3] - centre[j + 3]) * scale[j + 3], -limit), limit)
    rest = 0.0
    for j in range(whole, x.size):
        rest += w[j] * min(max((x[j] - centre[j]) * scale[j], -limit), limit)
    return ((s0 + s1) + (s2 + s3)) + rest


@kernel
def _sigmoid(t: float) -> float:
    """Return ``1 / (1 + exp(-t))``."""
    return 1.0 / (1.0 + math.exp(min(-t, 700.0)))


@kernel
def _standard_score(F: FloatArray, f: float) -> float:
    """Return ``sign(t) log(1 + |t|)``, t the score f in standard deviations of the scores before it: tails flatten."""
    if F[SCORE_VARIANCE] <= 0.0:
        return 0.0
    t = (min(max(f, -HUGE), HUGE) - F[SCORE_MEAN]) / math.sqrt(F[SCORE_VARIANCE])
    return math.copysign(math.log1p(abs(t)), t)


@kernel
def _log_odds(F: FloatArray, f: float) -> float:
    """Return the log-odds of the positive class at score f: prior odds and the calibration line."""
    prior = math.log(F[SEEN + 1] + 0.5) - math.log(F[SEEN] + 0.5)
    logit = prior + (F[BIAS] + (1.0 + F[SLOPE]) * _standard_score(F, f))
    return float(min(max(logit, -MAX_LOGIT), MAX_LOGIT))


@kernel
def _calibrate(F: FloatArray, f: float, label: int) -> None:
    """Take one Newton step on the calibration line (Platt 1999, online) with the score f made before learning.

    Written so that exchanging the classes negates every residual exactly.
    """
    t, logit = _standard_score(F, f), _log_odds(F, f)
    p, q = _sigmoid(logit), _sigmoid(-logit)
    residual = q if label == 1 else -p
    fade, curvature = 1.0 - 1.0 / CALIBRATION_MEMORY, max(p * q, MIN_CURVATURE)
    F[H_BB] = fade * F[H_BB] + curvature
    F[H_BS] = fade * F[H_BS] + curvature * t
    F[H_SS] = fade * F[H_SS] + curvature * t * t
    bb, ss = F[H_BB] + 1.0, F[H_SS] + 1.0
    scaled = residual / (bb * ss - F[H_BS] * F[H_BS])
    F[BIAS] += (ss - F[H_BS] * t) * scaled
    F[SLOPE] += (bb * t - F[H_BS]) * scaled
    F[SCORED] += 1.0
    r = max(1.0 / F[SCORED], 1.0 / CALIBRATION_MEMORY)
    d = min(max(f, -HUGE), HUGE) - F[SCORE_MEAN]
    F[SCORE_MEAN] += r * d
    F[SCORE_VARIANCE] = (1.0 - r) * (F[SCORE_VARIANCE] + r * d * d)


@kernel
def philox(counter: int, seed: int) -> np.uint64:
    """Return 64 random bits of this counter: Philox2x32-10 (Salmon, Moraes, Dror & Shaw 2011), key `seed`.

    A function of its arguments alone, so the whole state of the generator is a count. Products of 32-bit halves do not
    overflow, compiled or interpreted.
    """
    low, high = np.uint64(counter) & MASK, np.uint64(counter) >> HALF
    key = np.uint64(seed) & MASK
    for _ in range(ROUNDS):
        product = ROUND_MULTIPLIER * low
        low, high = (product >> HALF) ^ key ^ high, product & MASK
        key = (key + ROUND_KEY) & MASK
    return (high << HALF) | low


@kernel
def _uniform(F: FloatArray) -> float:
    """Return the next uniform number in [0, 1); the counter is part of the state."""
    bits = philox(int(F[DRAWS]), int(F[SEED]))
    F[DRAWS] += 1.0
    return np.float64(bits >> np.uint64(11)) * TO_UNIT


@kernel
def _keep(F: FloatArray, buffer: FloatArray, x: FloatArray, label: int) -> None:
    """Offer an event to the buffer of its class, float64[size, capacity]: a uniform sample of all so far (Vitter 1985).

    Filled first; then the M-th event of its class takes a random slot with probability size / M.
    """
    size = int(F[SIZE])
    F[SEEN + label] += 1.0
    slot = int(F[SEEN + label]) - 1
    if slot >= size:
        slot = int(_uniform(F) * F[SEEN + label])
    if slot < size:
        row = buffer[slot]
        for j in range(x.size):
            row[j] = min(max(x[j], -HUGE), HUGE)


@kernel
def _difference(V: FloatArray, other: FloatArray, x: FloatArray) -> None:
    """Write the scaled difference of the event and one of the other class to V[D]; the centre cancels."""
    d, scale = V[D], V[SCALE]
    for j in range(x.size):
        d[j] = (min(max(x[j], -HUGE), HUGE) - other[j]) * scale[j]


@kernel
def _measure(F: FloatArray, V: FloatArray, others: FloatArray, x: FloatArray) -> None:
    """Take one pair of the event into the mean squared distance of pairs; slots in turn."""
    F[SPREAD_COUNT] += 1.0
    _difference(V, others[int(F[SPREAD_COUNT]) % others.shape[0]], x)
    F[SPREAD] += (_dot(V[D], V[D]) - F[SPREAD]) / F[SPREAD_COUNT]


@kernel
def _length(F: FloatArray) -> float:
    """Return ``D / sqrt(sum of squared gradient norms)``: the regret bound's step for weights of norm D.

    (Streeter & McMahan 2010.) D is one over the root mean square distance of pairs: weights whose margins stay within
    one on a usual pair. Infinite while there was no gradient, which the passive-aggressive step bounds.
    """
    if F[PULLED] <= 0.0 or F[SPREAD] <= 0.0:
        return LARGE
    return 1.0 / (math.sqrt(F[SPREAD]) * math.sqrt(F[PULLED]))


@kernel
def _sequential(V: FloatArray, others: FloatArray, x: FloatArray, sign: float, cap: float) -> None:
    """Take a passive-aggressive step of length at most `cap` on each pair in turn; V[PULL] sums the gradients.

    ``w += min(cap, hinge / |d|^2) d`` minimises ``|w' - w|^2 / 2 + cap max(0, 1 - w'.d)``.
    """
    w, d, pull = V[W], V[D], V[PULL]
    for i in range(others.shape[0]):
        _difference(V, others[i], x)
        hinge = 1.0 - sign * _dot(w, d)
        norm2 = _dot(d, d)
        if hinge > 0.0 and norm2 > 0.0:
            step = sign * min(cap, hinge / max(norm2, 1.0 / LARGE))
            for j in range(d.size):
                w[j] += step * d[j]
                pull[j] += d[j]


@kernel
def _gradient(V: FloatArray, others: FloatArray, x: FloatArray, sign: float) -> None:
    """Sum in V[PULL] the differences of all pairs within the margin, with the weights held still."""
    d, pull = V[D], V[PULL]
    for i in range(others.shape[0]):
        _difference(V, others[i], x)
        if sign * _dot(V[W], d) <= 1.0:
            for j in range(d.size):
                pull[j] += d[j]


@kernel
def _update(F: FloatArray, V: FloatArray, others: FloatArray, x: FloatArray, sign: float, weight: float) -> None:
    """Move the weights by the pairs of one event; each pair stands for `weight` pairs of the stream.

    With C given the step is ``C weight / 2`` as published, else ``_length(...) weight``.
    """
    w, pull = V[W], V[PULL]
    for j in range(pull.size):
        pull[j] = 0.0
    if F[C] == 0.0:
        _measure(F, V, others, x)
    if F[SEQUENTIAL]:
        cap = 0.5 * F[C] * weight if F[C] > 0.0 else min(_length(F) * weight, LARGE)
        _sequential(V, others, x, sign, cap)
        F[PULLED] += weight * weight * _dot(pull, pull)
    else:
        _gradient(V, others, x, sign)
        F[PULLED] += weight * weight * _dot(pull, pull)
        if F[PULLED] > 0.0:
            step = sign * weight * (0.5 * F[C] if F[C] > 0.0 else _length(F))
            for j in range(w.size):
                w[j] += step * pull[j]


@kernel
def _learn_row(F: FloatArray, V: FloatArray, x: FloatArray, label: int) -> None:
    """Learn one event: calibration, scaling, its pairs with the other buffer, then into its own buffer."""
    size = int(F[SIZE])
    own, others = _buffer(F, V.shape[1], label), _buffer(F, V.shape[1], 1 - label)
    filled = min(int(F[SEEN + 1 - label]), size)
    if filled and F[SEEN + label]:
        _calibrate(F, _linear(F, V, V[W], x), label)
    _observe(F, V, x)
    if filled:
        sign = 1.0 if label == 1 else -1.0
        _update(F, V, others[:filled], x, sign, F[SEEN + 1 - label] / filled)
    _keep(F, own, x, label)


@kernel
def _vectors(F: FloatArray) -> FloatArray:
    """Return the vectors of arena F as a view, float64[N_VECTORS, capacity]."""
    cap = (F.size - HEADER) // (N_VECTORS + 2 * int(F[SIZE]))
    return F[HEADER : HEADER + N_VECTORS * cap].reshape(N_VECTORS, cap)


@kernel
def _buffer(F: FloatArray, cap: int, label: int) -> FloatArray:
    """Return the buffer of a class as a view, float64[size, capacity]."""
    size = int(F[SIZE])
    start = HEADER + (N_VECTORS + label * size) * cap
    return F[start : start + size * cap].reshape(size, cap)


@kernel
def learn(F: FloatArray, rows: FloatArray, codes: CodeArray) -> int:
    """Learn `rows`, float64[n, n_features], in order; F changes in place; code -1 of `codes`, int8[n], is skipped.

    Returns -1, or the first row with a NaN or an infinity; then nothing has changed.
    """
    bad = _first_bad_row(rows)
    if bad < 0:
        V = _vectors(F)
        for i in range(rows.shape[0]):
            if codes[i] >= 0:
                _learn_row(F, V, rows[i], int(codes[i]))
    return bad


@kernel
def score(F: FloatArray, rows: FloatArray, scores: FloatArray) -> int:
    """Write the ranking scores of `rows`, float64[n, n_features], to `scores`, float64[n]; return as `learn`."""
    bad = _first_bad_row(rows)
    if bad < 0:
        V = _vectors(F)
        for i in range(rows.shape[0]):
            scores[i] = _linear(F, V, V[SCORING], rows[i])
    return bad


@kernel
def probability(F: FloatArray, rows: FloatArray, out: FloatArray) -> int:
    """Write P(positive) of `rows`, float64[n, n_features], to `out`, float64[n]; return as `learn`."""
    bad = _first_bad_row(rows)
    if bad < 0:
        V = _vectors(F)
        for i in range(rows.shape[0]):
            out[i] = _sigmoid(_log_odds(F, _linear(F, V, V[SCORING], rows[i])))
    return bad


@kernel
def test_then_learn(
    F: FloatArray, tested: FloatArray, learned: FloatArray, codes: CodeArray, scores: FloatArray, chances: FloatArray
) -> int:
    """For each row: score and P(positive) of ``tested[i]``, float64[n] each, then learn ``learned[i]``; as `learn`."""
    bad = max(_first_bad_row(tested), _first_bad_row(learned))
    if bad < 0:
        V = _vectors(F)
        for i in range(tested.shape[0]):
            scores[i] = _linear(F, V, V[SCORING], tested[i])
            chances[i] = _sigmoid(_log_odds(F, scores[i]))
            if codes[i] >= 0:
                _learn_row(F, V, learned[i], int(codes[i]))
    return bad
