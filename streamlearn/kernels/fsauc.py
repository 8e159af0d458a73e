"""Arithmetic of fast stochastic AUC maximisation: primal-dual steps on the saddle form, in stages.

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
RADIUS, RATE = 13, 14
A, B, ALPHA, A_MEAN, B_MEAN, A_START, B_START, ALPHA_START = range(15, 23)
EPOCH, STAGES_LEFT, STAGE_LENGTH, STEPS, BALL, DUAL_BALL, BETA, FACTOR = range(23, 31)
MAX_NORM2, MEAN_NORM2 = 31, 32
HEADER = 33
W, W_START, W_MEAN, CENTRES = range(6, 10)  # CENTRES takes two: raw means of class 0, of class 1
N_VECTORS = 11
SCORING = W_MEAN

FIRST_EPOCH = 6.0  # log2 of its events: the shortest for which the schedule has a stage
CONFIDENCE = math.sqrt(2.0 * math.log(12.0 / 0.1))  # sqrt(2 ln(12 / delta)), delta = 0.1
MAX_K = 1e30  # the largest norm saturates here for the schedule: its fourth power stays finite


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
def n_stages(log2_n: float) -> int:
    """Return ``max(1, floor(log2(2 n / log2 n) / 2) - 1)``, the stages of an epoch of ``n = 2^log2_n`` events."""
    return max(1, math.floor(0.5 * (1.0 + log2_n - math.log2(log2_n))) - 1)


@kernel
def project_l1(w: FloatArray, radius: float) -> None:
    """Project w, float64[n], on the ball ``sum |w_j| <= radius`` in place (Michelot 1986): no sort, no memory.

    Sizes below the largest by a gap of `reach` or more become 0, the others ``reach - gap``; the reach falls until that
    no longer drops an entry. Gaps, unlike sizes, keep the radius in sight from however far.
    """
    total, largest = 0.0, 0.0
    for j in range(w.size):
        total += abs(w[j])
        largest = max(largest, abs(w[j]))
    if total <= radius:
        return
    reach, active, n = LARGE, w.size + 2, w.size + 1
    while n < active:  # not "until equal": an entry at the reach to the last digit may drop out and come back for ever
        active, n, total = n, 0, radius
        for j in range(w.size):
            if largest - abs(w[j]) < reach:
                total += largest - abs(w[j])
                n += 1
        reach = total / n
    for j in range(w.size):
        w[j] = math.copysign(max(reach - (largest - abs(w[j])), 0.0), w[j])


@kernel
def _begin_stage(F: FloatArray, V: FloatArray) -> None:
    """Start from the average of the stage before, the dual variable at its best response ``(c0 - c1) . w``."""
    mean, gap, c0, c1, scale = V[W_MEAN], V[Z], V[CENTRES], V[CENTRES + 1], V[SCALE]
    for j in range(mean.size):
        V[W, j] = V[W_START, j] = mean[j]
        gap[j] = min(max((c0[j] - c1[j]) * scale[j], -HUGE), HUGE)
    F[A], F[B], F[ALPHA] = F[A_MEAN], F[B_MEAN], _dot(gap, mean)
    F[A_START], F[B_START], F[ALPHA_START] = F[A], F[B], F[ALPHA]
    F[STEPS] = 0.0


@kernel
def _begin_epoch(F: FloatArray, V: FloatArray) -> None:
    """Set stages, balls and step for the next 2^EPOCH events."""
    F[EPOCH] = max(F[EPOCH] + 1.0, FIRST_EPOCH)
    k = min(math.sqrt(F[MAX_NORM2]), MAX_K)
    F[STAGES_LEFT] = n_stages(F[EPOCH])
    F[STAGE_LENGTH] = 2.0 ** F[EPOCH] // F[STAGES_LEFT]
    F[BALL] = 2.0 * math.sqrt(1.0 + 2.0 * k * k) * F[RADIUS]
    F[DUAL_BALL] = math.sqrt(8.0) * k * F[BALL]
    F[BETA] = 1.0 + 8.0 * k * k
    F[FACTOR] = 1.0
    _begin_stage(F, V)


@kernel
def _next_stage(F: FloatArray, V: FloatArray) -> None:
    """Halve the ball and the step as the schedule says, and start the next stage.

    Where the sample of a stage is too small for the bound, the dual ball and beta are infinite (LARGE); the step then
    stays as long as beta grows and is halved where both are infinite.
    """
    k, n0 = min(math.sqrt(F[MAX_NORM2]), MAX_K), F[STAGE_LENGTH]
    rarer = min(F[SEEN], F[SEEN + 1]) / (F[SEEN] + F[SEEN + 1])
    F[BALL] *= 0.5
    spread = rarer * n0 - CONFIDENCE * math.sqrt(n0)
    side = (2.0 + CONFIDENCE) * (1.0 + 2.0 * k)
    beta, F[DUAL_BALL] = LARGE, LARGE
    if spread > 0.0:
        F[DUAL_BALL] = math.sqrt(8.0) * k * (F[BALL] + 2.0 * side * F[RADIUS] / math.sqrt(spread))
        beta = 1.0 + 8.0 * k * k + 32.0 * k * k * side * side * n0 / spread
    ratio = 1.0 if beta == F[BETA] else beta / F[BETA]
    F[FACTOR] *= min(0.5 * math.sqrt(ratio), 1.0)
    F[BETA] = beta
    _begin_stage(F, V)


@kernel
def _gradient_step(F: FloatArray, V: FloatArray, label: int, eta: float) -> None:
    """Descend in (w, a, b) and ascend in alpha on one event, all from the same point, p the share of class 1."""
    w, z = V[W], V[Z]
    p = F[SEEN + 1] / (F[SEEN] + F[SEEN + 1])
    s = _dot(w, z)
    if label == 1:
        error = 2.0 * (1.0 - p) * (s - F[A])
        pull = error - 2.0 * (1.0 - p) * (1.0 + F[ALPHA])
        F[A] += eta * error
        F[ALPHA] -= eta * 2.0 * (1.0 - p) * (s + p * F[ALPHA])
    else:
        error = 2.0 * p * (s - F[B])
        pull = error + 2.0 * p * (1.0 + F[ALPHA])
        F[B] += eta * error
        F[ALPHA] += eta * 2.0 * p * (s - (1.0 - p) * F[ALPHA])
    for j in range(w.size):
        w[j] -= eta * pull * z[j]


@kernel
def _project(F: FloatArray, V: FloatArray) -> None:
    """Project on the box of the problem, then on the balls around the start of the stage."""
    w, start = V[W], V[W_START]
    side = F[RADIUS] * math.sqrt(F[MAX_NORM2])
    project_l1(w, F[RADIUS])
    F[A], F[B] = min(max(F[A], -side), side), min(max(F[B], -side), side)
    F[ALPHA] = min(max(F[ALPHA], -2.0 * side), 2.0 * side)
    a, b = F[A] - F[A_START], F[B] - F[B_START]
    far2 = a * a + b * b
    for j in range(w.size):
        far2 += (w[j] - start[j]) * (w[j] - start[j])
    if far2 > F[BALL] * F[BALL]:
        shrink = F[BALL] / math.sqrt(far2)
        F[A], F[B] = F[A_START] + shrink * a, F[B_START] + shrink * b
        for j in range(w.size):
            w[j] = start[j] + shrink * (w[j] - start[j])
    F[ALPHA] = min(max(F[ALPHA], F[ALPHA_START] - F[DUAL_BALL]), F[ALPHA_START] + F[DUAL_BALL])


@kernel
def _step_length(F: FloatArray, norm2: float) -> float:
    """Return the step for an event of squared norm `norm2`.

    Automatic: ``1 / (4 (1 + mean |z|^2))``, for which averaged constant-step least squares needs no knowledge of the
    spectrum (Bach & Moulines 2013), and never beyond the smoothness ``2 (1 + |z|^2)`` of the event's own loss; times
    the factor of the stage.
    """
    if F[RATE] > 0.0:
        return float(F[RATE] * F[FACTOR])
    return float(F[FACTOR] * min(0.25 / (1.0 + F[MEAN_NORM2]), 0.5 / (1.0 + norm2)))


@kernel
def _learn_row(F: FloatArray, V: FloatArray, x: FloatArray, label: int) -> None:
    """Learn one event: calibration, scaling, class means; once both classes were seen a step, and the average."""
    if F[SEEN] > 0.0 and F[SEEN + 1] > 0.0:
        _calibrate(F, _linear(F, V, V[W_MEAN], x), label)
    _observe(F, V, x)
    _rescale(F, V, x)
    F[SEEN + label] += 1.0
    c, r = V[CENTRES + label], 1.0 / F[SEEN + label]
    for j in range(x.size):
        c[j] += r * (min(max(x[j], -HUGE), HUGE) - c[j])
    norm2 = _dot(V[Z], V[Z])
    F[MAX_NORM2] = max(F[MAX_NORM2], norm2)
    F[MEAN_NORM2] += (norm2 - F[MEAN_NORM2]) / F[COUNT]
    if F[SEEN] == 0.0 or F[SEEN + 1] == 0.0:
        return
    if F[STEPS] == F[STAGE_LENGTH]:
        F[STAGES_LEFT] -= 1.0
        if F[STAGES_LEFT] > 0.0:
            _next_stage(F, V)
        else:
            _begin_epoch(F, V)
        _rescale(F, V, x)
    _gradient_step(F, V, label, _step_length(F, norm2))
    _project(F, V)
    F[STEPS] += 1.0
    w, mean, r = V[W], V[W_MEAN], 1.0 / F[STEPS]
    for j in range(w.size):
        mean[j] += r * (w[j] - mean[j])
    F[A_MEAN] += r * (F[A] - F[A_MEAN])
    F[B_MEAN] += r * (F[B] - F[B_MEAN])


@kernel
def _vectors(F: FloatArray) -> FloatArray:
    """Return the vectors of arena F as a view, float64[N_VECTORS, capacity]."""
    return F[HEADER:].reshape(N_VECTORS, (F.size - HEADER) // N_VECTORS)


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
