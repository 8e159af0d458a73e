"""Arithmetic of AUCRO on the diagonal of the covariance, for wide events of few values: O(nonzeros) an event.

An event is its nonzero values in ascending columns. A feature has one record, so that it lies in one place of memory::

    header F: common header | one header a memory
    record R[j]: common numbers | for each memory: its own numbers

What an event without the feature would change is made up for when the feature comes again: k events at 0 merge into a
mean and a variance in one step (Chan, Golub & LeVeque 1983), and forgetting multiplies weights by one common factor.
Weights of the event's own features are solved at once; all of them, in a *sweep*, whenever as many nonzeros passed as
there are features, which costs O(1) a nonzero. All depends on the nonzeros alone, not on how they were batched.
"""

from __future__ import annotations

import math

from streamlearn.contracts import CodeArray, FloatArray, IntArray
from streamlearn.kernels.jit import kernel

# Common header, the same in auc_means. SEEN, WEIGHT, SCALE, SCORE, SPREAD, JUDGED take two slots, for class 0 and 1.
HEADER, MEMORY_HEADER = 16, 32
COUNT, SEEN = 0, 1
CLIP, WIDTH, RAW, N_MEMORIES, NONZEROS, SCALING, LOGS, N_LOGS = range(3, 11)
# Header of a memory, likewise: state, then parameters. COLUMN is its place among the ratios of a bank.
LLR, OFFSET, RHO, SOLVED_AT, FADE, SHRINK = range(6)
WEIGHT, SCALE, SCORE, SPREAD = 6, 8, 10, 12
DECAY, CLASS_CLOCK, EVERY, REGULARIZATION, RATE, COLUMN = range(14, 20)
JUDGED = 28  # weights of the scores in SCORE and SPREAD, by class
# Record: TIMES it was not 0; MEAN and VARIANCE over all of the first AT events; two values other than 0.
TIMES, AT, MEAN, VARIANCE, PEAK, FIRST, SECOND, METRIC, LOG, N_COMMON = range(10)
# Own numbers: weight, mean and variance of class 0 and of class 1, as of its last event with the feature.
OWN_WEIGHT, OWN_MEAN, OWN_VARIANCE, CLASS_SIZE = 0, 1, 2, 3
W, MIDDLE, N_OWN = 6, 7, 8
HUGE = 1e150  # values saturate here: squares of differences stay below the largest double
MANY = 1e300  # marks a feature that took more than two values other than 0
N_BEFORE_CLIP = 3.0  # the fourth value is the first to be clipped
TINY = 1e-14  # a spread below this fraction of the largest value is rounding, not signal
SMALLEST = 1e-140  # a spread below this counts as none: weights times values stay below the largest double
POOLING = 0.2  # strength of the pull to the pooled variance, in events per feature
UNIT_RIDGE = 1e-8
NO_ZEROS = 1e-11  # events at 0 that weigh less than this are rounding: a mean of 1e9 would make a variance of them
FEWEST = 1e-3  # events that calibration takes itself to be made of, at least
SCALE_FLOOR = 1e-60  # of the common factor of forgetting


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
def _known(weight: float, total: float) -> float:
    """Return the share of a class's weight that a feature's numbers are made of; the rest were zeros."""
    f = weight / total if total > 0.0 else 0.0
    return 1.0 if f > 1.0 - NO_ZEROS else f


@kernel
def _fold(R: FloatArray, j: int, at: int, x: float, total: float, scale: float) -> None:
    """Add a value to the numbers of a class, whose weight with this event is `total`, in R[j, at ...]."""
    f, mean = _known(R[j, at + OWN_WEIGHT] * scale, total - 1.0), R[j, at + OWN_MEAN]
    variance, r = f * R[j, at + OWN_VARIANCE] + f * (1.0 - f) * mean * mean, 1.0 / total
    d = x - f * mean
    R[j, at + OWN_MEAN] = f * mean + r * d
    R[j, at + OWN_VARIANCE] = (1.0 - r) * (variance + r * d * d)
    R[j, at + OWN_WEIGHT] = total / scale


@kernel
def _solve(F: FloatArray, H: FloatArray, R: FloatArray, j: int, own: int) -> tuple[float, float]:
    """Set the weight of feature j; return what it adds to the offset, and its part of ``delta . w``.

    As auc.py does on the diagonal: ``w = delta / ((1 + rho) (A_jj + rho/W D_jj))``.
    """
    f0 = _known(R[j, own + OWN_WEIGHT] * H[SCALE], H[WEIGHT])
    f1 = _known(R[j, own + CLASS_SIZE + OWN_WEIGHT] * H[SCALE + 1], H[WEIGHT + 1])
    m0, m1 = R[j, own + OWN_MEAN], R[j, own + CLASS_SIZE + OWN_MEAN]
    v0 = f0 * R[j, own + OWN_VARIANCE] + f0 * (1.0 - f0) * m0 * m0
    v1 = f1 * R[j, own + CLASS_SIZE + OWN_VARIANCE] + f1 * (1.0 - f1) * m1 * m1
    w0, w1, kappa = H[WEIGHT], H[WEIGHT + 1], POOLING * F[WIDTH]
    total, delta = w0 + w1, f1 * m1 - f0 * m0
    pooled = kappa / total * (1.0 / (w0 + kappa) + 1.0 / (w1 + kappa))
    a = w0 * v0 * (1.0 / (w0 + kappa) + pooled) + w1 * v1 * (1.0 / (w1 + kappa) + pooled) + delta * delta
    f, mean = R[j, AT] / F[COUNT], R[j, MEAN]
    floor = max(TINY * R[j, PEAK], SMALLEST) ** 2
    R[j, own + W], R[j, own + MIDDLE] = 0.0, 0.5 * (f0 * m0) + 0.5 * (f1 * m1)
    if a > floor:
        everything = f * R[j, VARIANCE] + f * (1.0 - f) * mean * mean
        R[j, own + W] = delta / ((a + H[RHO] / total * everything) * (1.0 + H[RHO]))
    return R[j, own + W] * R[j, own + MIDDLE], delta * R[j, own + W]


@kernel
def sweep(F: FloatArray, R: FloatArray) -> None:
    """Set all weights."""
    m = int(F[WIDTH])
    for e in range(int(F[N_MEMORIES])):
        H, own = _memory(F, e), N_COMMON + e * N_OWN
        total = H[WEIGHT] + H[WEIGHT + 1]
        H[RHO] = (H[REGULARIZATION] if H[REGULARIZATION] >= 0.0 else m / total) + UNIT_RIDGE
        H[OFFSET] = 0.0
        for j in range(m):
            H[OFFSET] += _solve(F, H, R, j, own)[0]
        H[SOLVED_AT] = F[COUNT]
    F[NONZEROS] = 0.0


@kernel
def _rescale(F: FloatArray, H: FloatArray, R: FloatArray, own: int) -> None:
    """Multiply the common factors of forgetting into the weights they belong to."""
    for j in range(int(F[WIDTH])):
        for k in range(2):
            R[j, own + k * CLASS_SIZE + OWN_WEIGHT] *= H[SCALE + k]
    H[SCALE] = H[SCALE + 1] = 1.0


@kernel
def _score(F: FloatArray, R: FloatArray, e: int, columns: IntArray, values: FloatArray) -> float:
    """Return a memory's centred score ``w . x - w . (c0 + c1)/2`` of an event."""
    total, own = 0.0, N_COMMON + e * N_OWN
    for k in range(columns.size):
        total += R[columns[k], own + W] * _clipped(F, R, columns[k], values[k])
    return float(min(max(total - _memory(F, e)[OFFSET], -HUGE), HUGE))


@kernel
def _learn_row(F: FloatArray, R: FloatArray, columns: IntArray, values: FloatArray, label: int) -> None:
    """Learn one event."""
    both, n = F[SEEN] > 0.0 and F[SEEN + 1] > 0.0, F[COUNT]
    for e in range(int(F[N_MEMORIES])):
        H = _memory(F, e)
        score = _score(F, R, e, columns, values) if both else 0.0
        if _age(H, label):
            _rescale(F, H, R, N_COMMON + e * N_OWN)
        if both:
            _calibrate(H, score, label)
    F[SEEN + label] += 1.0
    both = F[SEEN] > 0.0 and F[SEEN + 1] > 0.0
    for k in range(columns.size):
        j = columns[k]
        F[COUNT] = n
        x = _clipped(F, R, j, values[k])
        _take_value(R, j, values[k], n)
        F[COUNT] = n + 1.0
        for e in range(int(F[N_MEMORIES])):
            H, own = _memory(F, e), N_COMMON + e * N_OWN
            _fold(R, j, own + label * CLASS_SIZE, x, H[WEIGHT + label], H[SCALE + label])
            if both:
                H[OFFSET] -= R[j, own + W] * R[j, own + MIDDLE]
                H[OFFSET] += _solve(F, H, R, j, own)[0]
    F[COUNT] = n + 1.0
    F[NONZEROS] += columns.size
    H = _memory(F, 0)
    due = F[COUNT] - H[SOLVED_AT] >= H[EVERY] if H[EVERY] else F[NONZEROS] >= F[WIDTH]
    if both and (due or F[SEEN + label] == 1.0):
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
    """For each event: forecast it, where there is room for that; then learn it.

    Parameters
    ----------
    F : float64[HEADER + n_memories * MEMORY_HEADER]
    R : float64[capacity, N_COMMON + n_memories * N_OWN]
    pointers : int64[n + 1]
        Event i has the entries ``pointers[i]`` to ``pointers[i + 1]``.
    columns, values : int64[n_entries], float64[n_entries]
        Ascending columns of each event, and their values: finite and not 0.
    codes : int8[n]
        0 or 1; -1 teaches nothing but the width; -2 is to be forecast and no more.
    ratios : float64[n, >= n_memories] or empty
        Written: log-likelihood ratios, or scores as they are where F[RAW].
    chances : float64[n] or empty
        Written: P(class 1) by the first memory.
    """
    for i in range(codes.size):
        a, b = pointers[i], pointers[i + 1]
        if ratios.size or chances.size:
            _forecast(F, R, columns[a:b], values[a:b], i, ratios, chances)
        if codes[i] >= -1 and b > a:
            F[WIDTH] = max(F[WIDTH], columns[b - 1] + 1.0)
        if codes[i] >= 0:
            _learn_row(F, R, columns[a:b], values[a:b], int(codes[i]))
