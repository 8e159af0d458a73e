"""Arithmetic of holding a reject rate on a stream: fading quantile sketches of certainty and of pair margins.

The state is one float64 array: ``header | masses of event bins | masses of pair bins | last scores of class 0, 1``.
Bins are spaced evenly in the logarithm (Masson, Rim & Lee 2019): a quantile is right to 2 % of its size, in fixed
memory. The quantile that is read moves with the rate that came out (Gibbs & Candes 2021), so that what the sketch gets
wrong while the stream drifts, or at ties, does not add up: over T events the rate is off by at most about 1/(GAIN T).
"""

from __future__ import annotations

import math

from streamlearn.contracts import CodeArray, FloatArray
from streamlearn.kernels.jit import kernel

# Header: level and mass of the events' sketch, then of the pairs'; what a new event weighs; scores kept of each class.
LEVEL, MASS, PAIR_LEVEL, PAIR_MASS, UNIT, KEPT = 0, 1, 2, 3, 4, 5
HEADER = 8
N_BINS = 384
RING = 8  # scores of the other class that an event is compared with; more of them are of too old a model
EVENTS, PAIRS = HEADER, HEADER + N_BINS
SCORES = HEADER + 2 * N_BINS
SIZE = SCORES + 2 * RING

SMALLEST = 1e-4  # the first bin ends here: certainties of .500025
LOG_RATIO = 0.04  # the last bin begins at 1e-4 exp(0.04 * 382) = 433, beyond all margins that differ in effect
GROWTH = 2.0 ** (1.0 / 1000.0)  # an event weighs half after 1000 more
LARGE = 1e100
GAIN = 0.01
SUREST = 1.0 - 2.0**-53


@kernel
def _bin(value: float) -> int:
    """Return the bin of a size."""
    if not value > SMALLEST:
        return 0
    return min(1 + int(math.log(value / SMALLEST) / LOG_RATIO), N_BINS - 1)


@kernel
def _edge(b: int) -> float:
    """Return where a bin begins."""
    return SMALLEST * math.exp((b - 1) * LOG_RATIO) if b > 0 else 0.0


@kernel
def _quantile(masses: FloatArray, mass: float, level: float) -> float:
    """Return the size below which the share `level` of the mass lies, linear inside its bin; 0 while there is none."""
    wanted, below = level * mass, 0.0
    if wanted <= 0.0:
        return 0.0
    for b in range(masses.size):
        if below + masses[b] >= wanted and masses[b] > 0.0:
            low = _edge(b)
            return float(low + (_edge(b + 1) - low) * (wanted - below) / masses[b])
        below += masses[b]
    return _edge(masses.size)


@kernel
def event_cost(R: FloatArray) -> float:
    """Return the cost d for which ``P(label) < 1 - d`` abstains at the held rate; 1/2 while nothing is known."""
    bar = _quantile(R[EVENTS:PAIRS], R[MASS], R[LEVEL])
    return 1.0 / (1.0 + math.exp(bar)) if bar < 700.0 else 1.0 / LARGE


@kernel
def pair_bar(R: FloatArray) -> float:
    """Return the margin within which pairs are rejected at the held rate."""
    return _quantile(R[PAIRS:SCORES], R[PAIR_MASS], R[PAIR_LEVEL])


@kernel
def start(R: FloatArray, rate: float) -> None:
    """Set R, float64[SIZE], to the state before any event."""
    R[:] = 0.0
    R[LEVEL] = R[PAIR_LEVEL] = rate
    R[UNIT] = 1.0


@kernel
def swap_classes(R: FloatArray) -> None:
    """Exchange the classes; only one of them has been seen, so no sketch holds anything yet."""
    first, second = R[SCORES : SCORES + RING], R[SCORES + RING : SIZE]
    for j in range(RING):
        first[j], second[j] = 0.0 - second[j], 0.0 - first[j]
    R[KEPT], R[KEPT + 1] = R[KEPT + 1], R[KEPT]


@kernel
def _take_event(R: FloatArray, rate: float, sure: float, cost: float) -> None:
    """Add the certainty of one event, and move the level by what was decided on it."""
    abstained = 1.0 if cost < 0.5 and sure < 1.0 - cost else 0.0
    R[LEVEL] = min(max(R[LEVEL] + GAIN * (rate - abstained), 0.0), 1.0)
    sure = min(sure, SUREST)
    R[EVENTS + _bin(math.log(sure / (1.0 - sure)))] += R[UNIT]
    R[MASS] += R[UNIT]


@kernel
def _take_pairs(R: FloatArray, rate: float, score: float, other: int, bar: float) -> None:
    """Add the margins of one event to the last of the other class, together weighing one event."""
    kept = int(min(R[KEPT + other], RING))
    first, rejected = SCORES + other * RING, 0.0
    for j in range(kept):
        margin = abs(score - R[first + j])
        rejected += 1.0 if margin <= bar else 0.0
        R[PAIRS + _bin(margin)] += R[UNIT] / kept
    R[PAIR_MASS] += R[UNIT]
    R[PAIR_LEVEL] = min(max(R[PAIR_LEVEL] + GAIN * (rate - rejected / kept), 0.0), 1.0)


@kernel
def _fade(R: FloatArray) -> None:
    """Let the next event weigh more than all before it, instead of those less."""
    R[UNIT] *= GROWTH
    if R[UNIT] > LARGE:
        for k in range(EVENTS, SCORES):
            R[k] /= R[UNIT]
        R[MASS] /= R[UNIT]
        R[PAIR_MASS] /= R[UNIT]
        R[UNIT] = 1.0


@kernel
def observe(
    R: FloatArray,
    rate: float,
    codes: CodeArray,
    chances: FloatArray,
    scores: FloatArray,
    costs: FloatArray,
    bars: FloatArray,
) -> None:
    """Take events in order, by the forecasts made before they were learned; those without a label change nothing.

    Parameters
    ----------
    R : float64[SIZE], changed in place
    rate : float
        The share of events, and of pairs of one event of each class, to reject.
    codes : int8[n]
    chances, scores : float64[n]
        P(class 1) and ranking score; all finite.
    costs, bars : float64[n]
        Take the cost and the pair bar as they were for each event.
    """
    cost, bar = event_cost(R), pair_bar(R)
    for i in range(codes.size):
        costs[i], bars[i] = cost, bar
        label = int(codes[i])
        if label < 0:
            continue
        if R[KEPT] > 0.0 and R[KEPT + 1] > 0.0:
            _take_event(R, rate, max(chances[i], 1.0 - chances[i]), cost)
            _take_pairs(R, rate, scores[i], 1 - label, bar)
            _fade(R)
            cost, bar = event_cost(R), pair_bar(R)
        slot = int(R[KEPT + label]) % RING
        R[SCORES + label * RING + slot] = scores[i]
        R[KEPT + label] += 1.0
