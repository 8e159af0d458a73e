"""Arithmetic of the online rejecting classifiers: adaptive subgradient steps on the logistic and the bent hinge loss.

The state is one float64 array: ``header | vectors [N_VECTORS, capacity]``. Scaling and calibration are the same, word
for word, in every kernel file of this layout: the compiler's cache does not notice an edit in another file.
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
INTERCEPT, INTERCEPT_SQUARES, RATE, L2, LOSS = range(13, 18)
HEADER = 18
LOGISTIC, HINGE = 0.0, 1.0
W, SQUARES, STEP = range(6, 9)
N_VECTORS = 9

NEWTON_STEPS = 100  # a bound; three to six are usual
CLOSE = 1e-14


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
def logistic_force(m: float, r: float) -> float:
    """Return c in [0, 1] with ``c = sigmoid(-(m + r c))``: the pull of an event of margin m once it has moved it.

    That is the implicit step ``argmin log(1 + exp(-m')) + (m' - m)^2 / (2 r)``, so a step never overshoots, however
    long. Newton on the new margin m', within a bracket that halves where Newton leaves it.
    """
    low = m
    high = min(m + r * _sigmoid(-m), max(m, 0.0) + math.log(1.0 + r))
    at = high
    for _ in range(NEWTON_STEPS):
        s = _sigmoid(-at)
        error = at - m - r * s
        if error > 0.0:
            high = at
        else:
            low = at
        new = at - error / (1.0 + r * s * (1.0 - s))
        if not low <= new <= high:
            new = 0.5 * low + 0.5 * high
        moved = abs(new - at)
        at = new
        if moved <= CLOSE * (1.0 + abs(at)):
            break
    return _sigmoid(-at)


@kernel
def hinge_force(m: float, r: float, a: float) -> float:
    """Return the c that is a negative subgradient of ``max(0, 1 - z, 1 - a z)`` at ``z = m + r c``.

    That is the implicit step on the bent hinge loss: it stops at the kinks 0 and 1 where it would pass them.
    """
    if m >= 1.0:
        return 0.0
    if m + r * a <= 0.0:
        return a
    if m + r <= 0.0:
        return -m / r
    if m + r <= 1.0:
        return 1.0
    return (1.0 - m) / r


@kernel
def _adapt(F: FloatArray, V: FloatArray, force: float, n_features: int) -> float:
    """Add the squared gradient of the present event to its sums; return by how much force 1 moves its margin.

    V[STEP] becomes the step of force 1: ``eta_j z_j / sqrt(sum of squares)`` (Duchi, Hazan & Singer 2011). The bound
    ``sum_j (D_j^2 / (2 eta) + eta) ||g_j||`` is least at ``eta = D_j / sqrt 2``; margins of size sqrt 2 shared equally
    among m scaled features, ``D_j = sqrt(2 / m)``, give ``eta = 1 / sqrt m``.
    """
    z, squares, step = V[Z], V[SQUARES], V[STEP]
    rate = F[RATE] / math.sqrt(max(n_features, 1))
    for j in range(z.size):
        g = force * z[j]
        squares[j] += g * g
        step[j] = rate * z[j] / math.sqrt(squares[j]) if squares[j] > 0.0 else 0.0
    F[INTERCEPT_SQUARES] += force * force
    return _dot(step, z) + float(F[RATE]) / math.sqrt(F[INTERCEPT_SQUARES])


@kernel
def _shrink(F: FloatArray, V: FloatArray, n_features: int) -> None:
    """Apply the implicit step on ``l2/2 |w|^2``; the intercept is free."""
    w, squares = V[W], V[SQUARES]
    rate = F[L2] * F[RATE] / math.sqrt(max(n_features, 1))
    for j in range(w.size):
        if squares[j] > 0.0:
            w[j] /= 1.0 + rate / math.sqrt(squares[j])


@kernel
def _learn_row(F: FloatArray, V: FloatArray, x: FloatArray, label: int, a: float) -> None:
    """Learn one event: calibration, scaling, then one step on its loss."""
    if F[LOSS] == HINGE and F[SEEN] > 0.0 and F[SEEN + 1] > 0.0:
        _calibrate(F, _linear(F, V, V[W], x) + F[INTERCEPT], label)
    F[SEEN + label] += 1.0
    _observe(F, V, x)
    _rescale(F, V, x)
    w, step = V[W], V[STEP]
    sign = 1.0 if label == 1 else -1.0
    m = sign * (_dot(w, V[Z]) + F[INTERCEPT])
    force = _sigmoid(-m) if F[LOSS] == LOGISTIC else (a if m < 0.0 else 1.0 if m < 1.0 else 0.0)
    if force * force > 0.0:
        r = _adapt(F, V, force, x.size)
        c = sign * (logistic_force(m, r) if F[LOSS] == LOGISTIC else hinge_force(m, r, a))
        for j in range(w.size):
            w[j] += c * step[j]
        F[INTERCEPT] += c * F[RATE] / math.sqrt(F[INTERCEPT_SQUARES])
    if F[L2] > 0.0:
        _shrink(F, V, x.size)


@kernel
def _vectors(F: FloatArray) -> FloatArray:
    """Return the vectors of arena F as a view, float64[N_VECTORS, capacity]."""
    return F[HEADER:].reshape(N_VECTORS, (F.size - HEADER) // N_VECTORS)


@kernel
def learn(F: FloatArray, rows: FloatArray, codes: CodeArray, a: float) -> int:
    """Learn `rows`, float64[n, n_features], in order; F changes in place; code -1 of `codes`, int8[n], is skipped.

    Returns -1, or the first row with a NaN or an infinity; then nothing has changed.

    `a` is the slope ``(1 - d) / d`` of the bent hinge below 0; the logistic loss takes no notice.
    """
    bad = _first_bad_row(rows)
    if bad < 0:
        V = _vectors(F)
        for i in range(rows.shape[0]):
            if codes[i] >= 0:
                _learn_row(F, V, rows[i], int(codes[i]), a)
    return bad


@kernel
def score(F: FloatArray, rows: FloatArray, scores: FloatArray) -> int:
    """Write ``w . z + b`` of the scaled `rows`, float64[n, n_features], to `scores`, float64[n]; return as `learn`."""
    bad = _first_bad_row(rows)
    if bad < 0:
        V = _vectors(F)
        for i in range(rows.shape[0]):
            scores[i] = _linear(F, V, V[W], rows[i]) + F[INTERCEPT]
    return bad


@kernel
def _chance(F: FloatArray, f: float) -> float:
    """Return P(positive) at score f: the logistic loss is a likelihood, the hinge score goes through calibration."""
    return _sigmoid(f) if F[LOSS] == LOGISTIC else _sigmoid(_log_odds(F, f))


@kernel
def probability(F: FloatArray, rows: FloatArray, out: FloatArray) -> int:
    """Write P(positive) of `rows`, float64[n, n_features], to `out`, float64[n]; return as `learn`."""
    bad = _first_bad_row(rows)
    if bad < 0:
        V = _vectors(F)
        for i in range(rows.shape[0]):
            out[i] = _chance(F, _linear(F, V, V[W], rows[i]) + F[INTERCEPT])
    return bad


@kernel
def test_then_learn(
    F: FloatArray,
    tested: FloatArray,
    learned: FloatArray,
    codes: CodeArray,
    a: float,
    scores: FloatArray,
    chances: FloatArray,
) -> int:
    """For each row: score and P(positive) of ``tested[i]``, float64[n] each, then learn ``learned[i]``; as `learn`."""
    bad = max(_first_bad_row(tested), _first_bad_row(learned))
    if bad < 0:
        V = _vectors(F)
        for i in range(tested.shape[0]):
            scores[i] = _linear(F, V, V[W], tested[i]) + F[INTERCEPT]
            chances[i] = _chance(F, scores[i])
            if codes[i] >= 0:
                _learn_row(F, V, learned[i], int(codes[i]), a)
    return bad
