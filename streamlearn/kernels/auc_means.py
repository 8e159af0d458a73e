"""Arithmetic of AUCRO without a covariance, for wide events of few values: one gradient step an event, O(nonzeros).

The paper's step (eq. (5)-(7)) on the event against the *mean* of the other class, its covariance left out: over the
events of both classes the curvature is that of the pairwise loss all the same, up to the weight of ``delta delta'``,
which changes the length of the minimiser and not its direction. Layout and the functions that have a namesake in
auc_wide.py are the same as there, word for word: the compiler's cache does not notice an edit in another file.

A feature's steps shrink with the root of the curvature that it was stepped on: seldom features are still learned when
frequent ones are settled, and correlated ones still find their place.

A step moves all weights along a class mean. What it adds to a weight is kept as a sum per class and worked in when
the feature comes again: between two of its events the sum of its values stands still, and only a common factor moves.
"""

from __future__ import annotations

import math

import numpy as np

from streamlearn.contracts import CodeArray, FloatArray, IntArray
from streamlearn.kernels.jit import kernel

# Common header, the same in auc_wide. SEEN, WEIGHT, SCALE, SCORE, SPREAD, JUDGED, DOT, DRIFT take two slots each.
HEADER, MEMORY_HEADER = 16, 32
COUNT, SEEN = 0, 1
CLIP, WIDTH, RAW, N_MEMORIES, NONZEROS, SCALING, LOGS, N_LOGS = range(3, 11)
# Header of a memory, likewise: state, then parameters. COLUMN is its place among the ratios of a bank.
LLR, OFFSET, RHO, SOLVED_AT, FADE, SHRINK = range(6)
WEIGHT, SCALE, SCORE, SPREAD = 6, 8, 10, 12
DECAY, CLASS_CLOCK, EVERY, REGULARIZATION, RATE, COLUMN = range(14, 20)
JUDGED = 28  # weights of the scores in SCORE and SPREAD, by class
DOT, DRIFT, GRAM = 20, 22, 24  # w . c_k; what the steps added along c_k; c_0 . c_0, c_0 . c_1, c_1 . c_1 in the metric
# Record: TIMES it was not 0; MEAN and VARIANCE over all of the first AT events; two values other than 0.
TIMES, AT, MEAN, VARIANCE, PEAK, FIRST, SECOND, METRIC, LOG, N_COMMON = range(10)
# Own numbers: sums of values of each class; the weight, as of when DRIFT was what is kept behind it; the curvature that
# was stepped on, and the squared scale that it leaves, as of the last event with the feature.
SUM, W, DRIFTED, CURVATURE, TRUST, N_OWN = 0, 2, 3, 5, 6, 7
HUGE = 1e150  # values saturate here: squares of differences stay below the largest double
MANY = 1e300  # marks a feature that took more than two values other than 0
N_BEFORE_CLIP = 3.0  # the fourth value is the first to be clipped
TINY = 1e-14  # a spread below this fraction of the largest value is rounding, not signal
SMALLEST = 1e-140  # a spread below this counts as none: weights times values stay below the largest double
FEWEST = 1e-3  # events that calibration takes itself to be made of, at least
SCALE_FLOOR = 1e-60  # of the common factor of forgetting
STANDARD = 1.0
POOLED = 10.0  # events that the common metric counts for, beside those of a feature itself
LARGE = 1e300  # curvatures saturate here
NOISE = 30.0  # curvature that halves the square of a feature's steps; chosen on 13 sets other than spam_stream


@kernel
def _memory(F: FloatArray, e: int) -> FloatArray:
    """Return the header of memory e as a view."""
    return F[HEADER + e * MEMORY_HEADER : HEADER + (e + 1) * MEMORY_HEADER]


@kernel
def _clipped(F: FloatArray, R: FloatArray, j: int, x: float) -> float:
    """Return the value x of feature j, cut to mean +- clip standard deviations of its values other than 0."""
    if F[CLIP] == 0.0 or R[j, SECOND] != MANY or R[j, TIMES] < N_BEFORE_CLIP:
        return min(max(x, -HUGE), HUGE)
    g, mean = R[j, AT] / R[j, TIMES], R[j, MEAN]
    width = F[CLIP] * math.sqrt(max(g * R[j, VARIANCE] - g * (g - 1.0) * mean * mean, 0.0))
    return float(min(max(x, g * mean - width, -HUGE), g * mean + width, HUGE))


@kernel
def _take_value(R: FloatArray, j: int, given: float, n: float) -> None:
    """Take a value, unclipped, into the common numbers of feature j; n events came before."""
    x = min(max(given, -HUGE), HUGE)
    f, mean = (R[j, AT] / n if n else 0.0), R[j, MEAN]
    variance, r = f * R[j, VARIANCE] + f * (1.0 - f) * mean * mean, 1.0 / (n + 1.0)
    d = x - f * mean
    R[j, MEAN] = f * mean + r * d
    R[j, VARIANCE] = (1.0 - r) * (variance + r * d * d)
    R[j, PEAK] = max(R[j, PEAK], abs(x))
    R[j, TIMES] += 1.0
    R[j, AT] = n + 1.0
    if R[j, FIRST] == 0.0:
        R[j, FIRST] = x
    elif x != R[j, FIRST] and x != R[j, SECOND]:
        R[j, SECOND] = x if R[j, SECOND] == 0.0 else MANY


@kernel
def _age(H: FloatArray, label: int) -> bool:
    """Let a memory's weights fade by one event and count it; tell whether a common factor ran low."""
    other = 1 - label
    if not H[CLASS_CLOCK]:
        H[WEIGHT + other] *= H[DECAY]
        H[SCALE + other] *= H[DECAY]
    H[WEIGHT + label] = H[DECAY] * H[WEIGHT + label] + 1.0
    H[SCALE + label] *= H[DECAY]
    return bool(H[SCALE] < SCALE_FLOOR or H[SCALE + 1] < SCALE_FLOOR)


@kernel
def _calibrate(H: FloatArray, score: float, label: int) -> None:
    """Take a score made before its event was learned."""
    H[JUDGED + 1 - label] *= 1.0 if H[CLASS_CLOCK] else H[DECAY]
    H[JUDGED + label] = H[DECAY] * H[JUDGED + label] + 1.0
    r = 1.0 / H[JUDGED + label]
    d = score - H[SCORE + label]
    H[SCORE + label] += r * d
    H[SPREAD + label] = (1.0 - r) * (H[SPREAD + label] + r * d * d)
    set_ratio(H)


@kernel
def set_ratio(H: FloatArray) -> None:
    """Set what turns scores into log-likelihood ratios, from the scores that were made before.

    For normal scores of one variance the ratio is ``2 q/(v0 + v1)`` times the centred score, q being the difference of
    the class means. As much is added to the variances as q could be off; q counts as one standard error at least.
    """
    harmonic = 2.0 * H[JUDGED] * H[JUDGED + 1] / (H[JUDGED] + H[JUDGED + 1])
    spread, q = H[SPREAD] + H[SPREAD + 1], H[SCORE + 1] - H[SCORE]
    harmonic = max(harmonic, FEWEST)
    doubt = 4.0 * q * q / harmonic
    q = max(q, math.sqrt(spread / harmonic))
    H[LLR] = min(2.0 * q / (spread + doubt), HUGE) if spread + doubt > 0.0 else 0.0


@kernel
def _weight(H: FloatArray, R: FloatArray, j: int, own: int) -> float:
    """Return the weight of feature j, with all that the steps since its last event added along the class means."""
    moved = R[j, own + SUM] * (H[DRIFT] - R[j, own + DRIFTED])
    moved += R[j, own + SUM + 1] * (H[DRIFT + 1] - R[j, own + DRIFTED + 1])
    return float(H[SHRINK] * (R[j, own + W] + R[j, own + TRUST] * moved))


@kernel
def _settle(H: FloatArray, R: FloatArray, j: int, own: int) -> None:
    """Work into the weight of feature j what `_weight` says."""
    R[j, own + W] = _weight(H, R, j, own) / H[SHRINK]
    R[j, own + DRIFTED], R[j, own + DRIFTED + 1] = H[DRIFT], H[DRIFT + 1]


@kernel
def _has_spread(R: FloatArray, j: int) -> bool:
    return bool(R[j, VARIANCE] > max(TINY * R[j, PEAK], SMALLEST) ** 2)  # more than one value, beyond rounding


@kernel
def _take_spread(F: FloatArray, R: FloatArray, j: int) -> None:
    """Bring the logarithm of ``(share of events with feature j) / variance``, and the sum of them, up to date."""
    if _has_spread(R, j):
        known, log = R[j, METRIC] > 0.0, math.log(R[j, TIMES] / R[j, AT]) - math.log(R[j, VARIANCE])
        F[LOGS] += log - (R[j, LOG] if known else 0.0)
        F[N_LOGS] += 0.0 if known else 1.0
        R[j, LOG] = log


@kernel
def _metric(F: FloatArray, R: FloatArray, j: int) -> float:
    """Return the squared scale of feature j, which has come; 0 while it has no spread.

    ``(share of events with it) / variance``: features that are never 0 are standardised, features that are seldom not 0
    keep their values, up to the unit. Its logarithm is pulled to the mean over all features, as if by POOLED events: a
    variance of a few events is not to be relied on.
    """
    if not _has_spread(R, j):
        return 0.0
    if F[SCALING] != STANDARD:
        return 1.0
    return math.exp((POOLED * (F[LOGS] / F[N_LOGS]) + R[j, TIMES] * R[j, LOG]) / (POOLED + R[j, TIMES]))


@kernel
def _trust(R: FloatArray, j: int, curvature: float) -> float:
    """Return the squared scale of the steps of feature j: its own, less for what was learned of its weight already.

    By the root, as in Duchi, Hazan & Singer 2011, but of the curvature, which no unit of the labels enters. Without
    the root, which is least squares as if features were independent, correlated features hardly come right.
    """
    return float(R[j, METRIC] / math.sqrt(1.0 + R[j, METRIC] * curvature)) if R[j, METRIC] > 0.0 else 0.0


@kernel
def sweep(F: FloatArray, R: FloatArray) -> None:
    """Settle all weights and sum anew what was kept up step by step, rounding with it."""
    m = int(F[WIDTH])
    for e in range(int(F[N_MEMORIES])):
        H, own = _memory(F, e), N_COMMON + e * N_OWN
        H[DOT], H[DOT + 1], H[GRAM], H[GRAM + 1], H[GRAM + 2] = 0.0, 0.0, 0.0, 0.0, 0.0
        f0 = H[SCALE] / H[WEIGHT] if H[WEIGHT] > 0.0 else 0.0
        f1 = H[SCALE + 1] / H[WEIGHT + 1] if H[WEIGHT + 1] > 0.0 else 0.0
        for j in range(m):
            w, c0, c1, p = _weight(H, R, j, own), f0 * R[j, own + SUM], f1 * R[j, own + SUM + 1], R[j, own + TRUST]
            R[j, own + W], R[j, own + DRIFTED], R[j, own + DRIFTED + 1] = w, 0.0, 0.0
            R[j, own + SUM] *= H[SCALE]
            R[j, own + SUM + 1] *= H[SCALE + 1]
            R[j, own + CURVATURE] *= H[FADE]
            H[DOT] += w * c0
            H[DOT + 1] += w * c1
            H[GRAM] += p * c0 * c0
            H[GRAM + 1] += p * c0 * c1
            H[GRAM + 2] += p * c1 * c1
        H[DRIFT], H[DRIFT + 1] = 0.0, 0.0
        H[SHRINK] = H[SCALE] = H[SCALE + 1] = H[FADE] = 1.0
        H[SOLVED_AT] = F[COUNT]
    F[LOGS], F[N_LOGS] = 0.0, 0.0
    for j in range(m):
        if R[j, METRIC] > 0.0:
            F[LOGS] += R[j, LOG]
            F[N_LOGS] += 1.0
    F[NONZEROS] = 0.0


@kernel
def begin(F: FloatArray, R: FloatArray) -> None:
    """Set scales and steps of all features to what follows from counts, spreads and curvatures that others wrote."""
    for j in range(int(F[WIDTH])):
        _take_spread(F, R, j)
        R[j, METRIC] = 1.0 if _has_spread(R, j) else 0.0
    for j in range(int(F[WIDTH])):
        R[j, METRIC] = _metric(F, R, j)
        for e in range(int(F[N_MEMORIES])):
            own = N_COMMON + e * N_OWN
            R[j, own + TRUST] = _trust(R, j, _memory(F, e)[FADE] * R[j, own + CURVATURE])
    sweep(F, R)


@kernel
def _product(F: FloatArray, R: FloatArray, e: int, columns: IntArray, values: FloatArray) -> float:
    """Return ``w . x`` of a memory, x clipped."""
    H, own, total = _memory(F, e), N_COMMON + e * N_OWN, 0.0
    for k in range(columns.size):
        total += _weight(H, R, columns[k], own) * _clipped(F, R, columns[k], values[k])
    return total


@kernel
def _score(F: FloatArray, R: FloatArray, e: int, columns: IntArray, values: FloatArray) -> float:
    """Return a memory's centred score ``w . x - w . (c0 + c1)/2`` of an event."""
    H = _memory(F, e)
    return float(min(max(_product(F, R, e, columns, values) - 0.5 * (H[DOT] + H[DOT + 1]), -HUGE), HUGE))


@kernel
def _move_means(H: FloatArray, label: int, product: float, with_own: float, with_other: float, square: float) -> None:
    """Bring the products of class means with weights and with each other to the mean that this event moves."""
    r, g = 1.0 / H[WEIGHT + label], GRAM + 2 * label
    H[DOT + label] = (1.0 - r) * H[DOT + label] + r * product
    H[g] = (1.0 - r) * (1.0 - r) * H[g] + 2.0 * r * (1.0 - r) * with_own + r * r * square
    H[GRAM + 1] = (1.0 - r) * H[GRAM + 1] + r * with_other


@kernel
def _heaviness(F: FloatArray, H: FloatArray, label: int) -> float:
    """Return what an event of a class weighs beside others, 1 where classes are of one size, and 2 at most."""
    if H[CLASS_CLOCK]:
        return float(2.0 * F[SEEN + 1 - label] / (F[SEEN] + F[SEEN + 1]))
    return float(2.0 * H[WEIGHT + 1 - label] / (H[WEIGHT] + H[WEIGHT + 1]))


@kernel
def _step(
    H: FloatArray, label: int, heavy: float, product: float, x0: float, x1: float, square: float, trusted: float
) -> float:
    """Take a step for an event whose products with the class means and itself are given; return its factor.

    The entries of the event are left to the caller: ``w_j -= SHRINK factor TRUST_j x_j``. `trusted` is the share of
    their squared scale that the steps of its features still have; weights shrink by no more.
    """
    other = 1 - label
    sign = 1.0 if label == 1 else -1.0
    with_other, gram = (x0, H[GRAM]) if label == 1 else (x1, H[GRAM + 2])
    distance = max(square - 2.0 * with_other + gram, 0.0)
    miss = min(max(product - H[DOT + other] - sign, -HUGE), HUGE)
    rate = H[RATE] if H[RATE] > 0.0 else 1.0 / (NOISE + heavy * distance)
    kept = 1.0 - min(rate * trusted * H[REGULARIZATION], 0.5)
    H[SHRINK] *= kept
    move = rate * heavy * miss
    H[DOT] = kept * H[DOT] - move * (x0 - H[GRAM + other])
    H[DOT + 1] = kept * H[DOT + 1] - move * (x1 - H[GRAM + other + 1])
    factor = move / H[SHRINK]
    H[DRIFT + other] += factor * H[SCALE + other] / H[WEIGHT + other]
    return float(factor)


@kernel
def _take_values(F: FloatArray, R: FloatArray, columns: IntArray, values: FloatArray, clipped: FloatArray) -> None:
    """Take an event into the common numbers; write its values as they count."""
    n = F[COUNT]
    for k in range(columns.size):
        clipped[k] = _clipped(F, R, columns[k], values[k])
        for e in range(int(F[N_MEMORIES])):
            _settle(_memory(F, e), R, columns[k], N_COMMON + e * N_OWN)
        _take_value(R, columns[k], values[k], n)
        _take_spread(F, R, columns[k])
    for k in range(columns.size):
        R[columns[k], METRIC] = _metric(F, R, columns[k])
    F[COUNT] = n + 1.0


@kernel
def _learn_memory(
    F: FloatArray, R: FloatArray, e: int, columns: IntArray, x: FloatArray, label: int, product: float
) -> None:
    """Learn one event into a memory, whose weights have faded for it."""
    H, own = _memory(F, e), N_COMMON + e * N_OWN
    total, other = H[WEIGHT + label], 1 - label
    before = H[SCALE + label] / (total - 1.0) if total > 1.0 else 0.0
    after, theirs = H[SCALE + label] / total, H[SCALE + other] / H[WEIGHT + other] if H[WEIGHT + other] > 0.0 else 0.0
    with_own = with_other = square = 0.0
    for k in range(columns.size):
        j, p = columns[k], R[columns[k], own + TRUST]
        with_own += p * x[k] * (before * R[j, own + SUM + label])
        with_other += p * x[k] * (theirs * R[j, own + SUM + other])
        square += p * x[k] * x[k]
    _move_means(H, label, product, with_own, with_other, square)
    with_own = with_other = square = whole = 0.0
    for k in range(columns.size):
        j = columns[k]
        p = _trust(R, j, H[FADE] * R[j, own + CURVATURE])
        change = p - R[j, own + TRUST]
        R[j, own + TRUST] = p
        R[j, own + SUM + label] += x[k] / H[SCALE + label]
        mine, yours = after * R[j, own + SUM + label], theirs * R[j, own + SUM + other]
        H[GRAM + 2 * label] += change * mine * mine
        H[GRAM + 1] += change * mine * yours
        H[GRAM + 2 * other] += change * yours * yours
        with_own += p * x[k] * mine
        with_other += p * x[k] * yours
        square += p * x[k] * x[k]
        whole += R[j, METRIC] * x[k] * x[k]
    if F[SEEN] and F[SEEN + 1]:
        x0, x1 = (with_other, with_own) if label else (with_own, with_other)
        heavy = _heaviness(F, H, label)
        factor = _step(H, label, heavy, product, x0, x1, square, square / whole if whole > 0.0 else 0.0)
        gain = heavy / (NOISE * H[FADE]) if H[RATE] == 0.0 else 0.0
        for k in range(columns.size):
            j = columns[k]
            d = x[k] - theirs * R[j, own + SUM + other]
            R[j, own + W] -= factor * R[j, own + TRUST] * x[k]
            R[j, own + CURVATURE] = min(R[j, own + CURVATURE] + gain * d * d, LARGE)


@kernel
def _learn_row(F: FloatArray, R: FloatArray, columns: IntArray, values: FloatArray, label: int, x: FloatArray) -> None:
    """Learn one event; x, float64[>= n_entries], is written."""
    both, low = F[SEEN] > 0.0 and F[SEEN + 1] > 0.0, False
    for e in range(int(F[N_MEMORIES])):
        H = _memory(F, e)
        H[OFFSET] = _product(F, R, e, columns, values)
        score = min(max(H[OFFSET] - 0.5 * (H[DOT] + H[DOT + 1]), -HUGE), HUGE)
        low = _age(H, label) or low
        H[FADE] *= H[DECAY]
        if both:
            _calibrate(H, score, label)
    F[SEEN + label] += 1.0
    _take_values(F, R, columns, values, x)
    for e in range(int(F[N_MEMORIES])):
        H = _memory(F, e)
        _learn_memory(F, R, e, columns, x, label, H[OFFSET])
        low = low or H[SHRINK] < SCALE_FLOOR or H[FADE] < SCALE_FLOOR
    F[NONZEROS] += columns.size
    H = _memory(F, 0)
    due = F[COUNT] - H[SOLVED_AT] >= H[EVERY] if H[EVERY] else F[NONZEROS] >= F[WIDTH]
    if due or low:
        sweep(F, R)


@kernel
def _chance(F: FloatArray, H: FloatArray, score: float) -> float:
    """Return P(class 1) of a score, with the odds of the class counts as the memory's clock sees them."""
    n0, n1 = (F[SEEN], F[SEEN + 1]) if H[CLASS_CLOCK] else (H[WEIGHT], H[WEIGHT + 1])
    t = score * H[LLR] + (math.log(n1 + 0.5) - math.log(n0 + 0.5))
    e = math.exp(-abs(t))
    return 1.0 / (1.0 + e) if t >= 0.0 else e / (1.0 + e)


@kernel
def _forecast(
    F: FloatArray, R: FloatArray, columns: IntArray, values: FloatArray, i: int, ratios: FloatArray, chances: FloatArray
) -> None:
    """Write the ratios of an event, or its scores where F[RAW], and its P(class 1), where there is room for them."""
    for e in range(int(F[N_MEMORIES])):
        H = _memory(F, e)
        score = _score(F, R, e, columns, values)
        if ratios.size:
            ratios[i, int(H[COLUMN])] = score * (1.0 if F[RAW] else H[LLR])
        if e == 0 and chances.size:
            chances[i] = _chance(F, H, score)


@kernel
def run(
    F: FloatArray,
    R: FloatArray,
    pointers: IntArray,
    columns: IntArray,
    values: FloatArray,
    codes: CodeArray,
    ratios: FloatArray,
    chances: FloatArray,
) -> None:
    """For each event: forecast it, where there is room for that; then learn it. Parameters as of `auc_wide.run`.

    R : float64[capacity, N_COMMON + n_memories * N_OWN]
    """
    x = np.empty(R.shape[0])
    for i in range(codes.size):
        a, b = pointers[i], pointers[i + 1]
        if ratios.size or chances.size:
            _forecast(F, R, columns[a:b], values[a:b], i, ratios, chances)
        if codes[i] >= -1 and b > a:
            F[WIDTH] = max(F[WIDTH], columns[b - 1] + 1.0)
        if codes[i] >= 0:
            _learn_row(F, R, columns[a:b], values[a:b], int(codes[i]), x)
