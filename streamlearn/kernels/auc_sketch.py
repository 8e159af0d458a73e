"""Arithmetic of AUCRO on a sketch of the covariance, by Frequent Directions: O(m k) an event of m features.

Rows whose outer products sum to the scatter of a class (Welford's ``sqrt(1 - r) (x - c)``: the mean is taken out
exactly, and the sketch is of the covariance and not of the second moment) fill a buffer of 2 k rows, which sketch.py
shrinks when it is full. Variances are kept beside it, so what the sketch loses is lost off the diagonal alone. Layout
and the functions that have a namesake in auc_wide.py are
the same as there, word for word: the compiler's cache does not notice an edit in another file.
"""

from __future__ import annotations

import math

import numpy as np

from streamlearn.contracts import CodeArray, FloatArray, IntArray
from streamlearn.kernels.jit import kernel

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
NO_ZEROS = 1e-11  # events at 0 that weigh less than this are rounding: a mean of 1e9 would make a variance of them
FEWEST = 1e-3  # events that calibration takes itself to be made of, at least
FILLED = 20  # rows in the buffer of each class
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
def _rescale(F: FloatArray, H: FloatArray, R: FloatArray, B: FloatArray, own: int) -> None:
    """Multiply the common factors of forgetting into the weights and the rows they belong to."""
    for k in range(2):
        for j in range(int(F[WIDTH])):
            R[j, own + k * CLASS_SIZE + OWN_WEIGHT] *= H[SCALE + k]
        root = math.sqrt(H[SCALE + k])
        for i in range(B.shape[1]):
            for j in range(int(F[WIDTH])):
                B[k, i, j] *= root
        H[SCALE + k] = 1.0


@kernel
def _insert(
    F: FloatArray, H: FloatArray, R: FloatArray, b: FloatArray, own: int, label: int, columns: IntArray, x: FloatArray
) -> None:
    """Write what an event adds to the scatter of its class, in units near its features' spread, to the row b.

    ``sqrt(1 - r) (x - c)``, c without the event, over the root of what all rows fade by.
    """
    total, at = H[WEIGHT + label], own + label * CLASS_SIZE
    root = math.sqrt((1.0 - 1.0 / total) / H[SCALE + label])
    for j in range(int(F[WIDTH])):
        f = _known(R[j, at + OWN_WEIGHT] * H[SCALE + label], total - 1.0)
        b[j] = -root * f * R[j, at + OWN_MEAN] * R[j, METRIC]
    for k in range(columns.size):
        b[columns[k]] += root * x[k] * R[columns[k], METRIC]


@kernel
def _score(F: FloatArray, R: FloatArray, e: int, columns: IntArray, values: FloatArray) -> float:
    """Return a memory's centred score ``w . x - w . (c0 + c1)/2`` of an event."""
    total, own = 0.0, N_COMMON + e * N_OWN
    for k in range(columns.size):
        total += R[columns[k], own + W] * _clipped(F, R, columns[k], values[k])
    return float(min(max(total - _memory(F, e)[OFFSET], -HUGE), HUGE))


@kernel
def _learn_row(
    F: FloatArray, R: FloatArray, S: FloatArray, columns: IntArray, values: FloatArray, label: int, x: FloatArray
) -> bool:
    """Learn one event; tell whether a buffer is full, or weights are due. x, float64[>= n_entries], is scratch."""
    both, n, full = F[SEEN] > 0.0 and F[SEEN + 1] > 0.0, F[COUNT], False
    for e in range(int(F[N_MEMORIES])):
        H = _memory(F, e)
        score = _score(F, R, e, columns, values) if both else 0.0
        if _age(H, label):
            _rescale(F, H, R, S[e], N_COMMON + e * N_OWN)
        if both:
            _calibrate(H, score, label)
    F[SEEN + label] += 1.0
    for k in range(columns.size):
        j = columns[k]
        x[k] = _clipped(F, R, j, values[k])
        _take_value(R, j, values[k], n)
        if R[j, METRIC] == 0.0 and R[j, VARIANCE] > max(TINY * R[j, PEAK], SMALLEST) ** 2:
            R[j, METRIC] = 1.0 / math.sqrt(R[j, VARIANCE])
    F[COUNT] = n + 1.0
    for e in range(int(F[N_MEMORIES])):
        H, own = _memory(F, e), N_COMMON + e * N_OWN
        _insert(F, H, R, S[e, label, int(H[FILLED + label])], own, label, columns, x)
        for k in range(columns.size):
            _fold(R, columns[k], own + label * CLASS_SIZE, x[k], H[WEIGHT + label], H[SCALE + label])
        H[FILLED + label] += 1.0
        full = full or H[FILLED + label] == S.shape[2]
    return full or is_due(F, S.shape[2])


@kernel
def is_due(F: FloatArray, n_rows: int) -> bool:
    """Tell whether to set the weights anew: after as many events as a buffer has rows, and by sixteenths of all."""
    H = _memory(F, 0)
    wait = H[EVERY] if H[EVERY] else min(float(n_rows), max(1.0, F[COUNT] // 16.0))
    first = F[SEEN] == 1.0 or F[SEEN + 1] == 1.0
    return bool(F[SEEN] and F[SEEN + 1] and (F[COUNT] - H[SOLVED_AT] >= wait or first))


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
    S: FloatArray,
    start: int,
    pointers: IntArray,
    columns: IntArray,
    values: FloatArray,
    codes: CodeArray,
    ratios: FloatArray,
    chances: FloatArray,
) -> int:
    """Do as `auc_wide.run` from event `start` on, until a buffer is full or weights are due; return where to go on.

    S, float64[n_memories, 2, 2 k, capacity], are the buffers of both classes.
    """
    x = np.empty(R.shape[0])
    for i in range(start, codes.size):
        a, b = pointers[i], pointers[i + 1]
        if ratios.size or chances.size:
            _forecast(F, R, columns[a:b], values[a:b], i, ratios, chances)
        if codes[i] >= -1 and b > a:
            F[WIDTH] = max(F[WIDTH], columns[b - 1] + 1.0)
        if codes[i] >= 0 and _learn_row(F, R, S, columns[a:b], values[a:b], int(codes[i]), x):
            return i + 1
    return codes.size
