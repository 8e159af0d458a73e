"""Detectors of a change in the mean of a stream of losses: one pass over the values, all state in arrays.

Every kernel writes for each value whether a change was detected with it, and which way. The value behind a detection
finds the detector as new, so that a state with its flag up stands for a fresh one.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from streamlearn.kernels.jit import kernel

Floats = NDArray[np.float64]
Signs = NDArray[np.int8]

ADWIN_ROWS = 62
"""Row k of the exponential histogram has buckets of 2^k values."""


@kernel
def adwin(
    out: Signs,
    numbers: Floats,
    counts: NDArray[np.int64],
    buckets: Floats,
    values: Floats,
    delta: float,
    clock: int,
    least_window: int,
    grace: int,
) -> None:
    """ADWIN2 (Bifet and Gavalda 2007): the longest window whose halves nowhere differ in mean.

    Cuts lie between buckets; the oldest bucket is dropped until no cut is left.

    Parameters
    ----------
    out : int8[n]
        Output: 1 the mean rose, -1 it fell, 0 no change.
    numbers : float64[5]
        Flag, tick, width, total, variance (a sum of squares); updated in place.
    counts : int64[ADWIN_ROWS]
        Buckets in each row; updated in place.
    buckets : float64[2, ADWIN_ROWS, max_buckets + 1]
        Totals and variances, oldest first; updated in place.
    values : float64[n]
    delta : float
    clock : int
        Cuts are looked at every so many values.
    least_window : int
    grace : int
    """
    most = buckets.shape[2] - 1
    for i in range(values.shape[0]):
        if numbers[0] == 1.0:
            numbers[:] = 0.0
            counts[:] = 0
        value = values[i]
        # insert
        buckets[0, 0, counts[0]] = value
        buckets[1, 0, counts[0]] = 0.0
        counts[0] += 1
        numbers[2] += 1.0
        width = numbers[2]
        if width > 1.0:
            off = value - numbers[3] / (width - 1.0)
            numbers[4] += (width - 1.0) * off * off / width
        numbers[3] += value
        # compress
        row = 0
        while row < ADWIN_ROWS - 1 and counts[row] == most + 1:
            size = 2.0**row
            off = buckets[0, row, 0] / size - buckets[0, row, 1] / size
            k = counts[row + 1]
            buckets[0, row + 1, k] = buckets[0, row, 0] + buckets[0, row, 1]
            spread = size * size * off * off / (size + size)
            buckets[1, row + 1, k] = buckets[1, row, 0] + buckets[1, row, 1] + spread
            counts[row + 1] += 1
            counts[row] -= 2
            for j in range(counts[row]):
                buckets[0, row, j] = buckets[0, row, j + 2]
                buckets[1, row, j] = buckets[1, row, j + 2]
            row += 1
        # detect
        numbers[1] += 1.0
        changed = 0
        if numbers[1] % clock == 0.0 and numbers[2] > grace:
            reduced = True
            while reduced:
                reduced = False
                n0, n1, u0, u1 = 0.0, numbers[2], 0.0, numbers[3]
                oldest = ADWIN_ROWS - 1
                while oldest > 0 and counts[oldest] == 0:
                    oldest -= 1
                row = oldest
                while row >= 0 and not reduced:
                    size = 2.0**row
                    for k in range(counts[row]):
                        n0 += size
                        n1 -= size
                        u0 += buckets[0, row, k]
                        u1 -= buckets[0, row, k]
                        if n1 >= least_window and n0 >= least_window:
                            spread = numbers[4] / numbers[2]
                            confidence = math.log(2.0 * math.log(numbers[2]) / delta)
                            m = 1.0 / (n0 - least_window + 1.0) + 1.0 / (n1 - least_window + 1.0)
                            cut = math.sqrt(2.0 * m * spread * confidence) + 2.0 / 3.0 * confidence * m
                            if abs(u0 / n0 - u1 / n1) > cut:
                                reduced = True
                                changed = 1 if u1 / n1 > u0 / n0 else -1
                                break
                    row -= 1
                if reduced:
                    size = 2.0**oldest
                    u, v = buckets[0, oldest, 0], buckets[1, oldest, 0]
                    numbers[2] -= size
                    numbers[3] -= u
                    off = u / size - numbers[3] / numbers[2]
                    numbers[4] -= v + size * numbers[2] * off * off / (size + numbers[2])
                    counts[oldest] -= 1
                    for j in range(counts[oldest]):
                        buckets[0, oldest, j] = buckets[0, oldest, j + 1]
                        buckets[1, oldest, j] = buckets[1, oldest, j + 1]
        numbers[0] = abs(changed)
        out[i] = changed


@kernel
def page_hinkley(
    out: Signs, numbers: Floats, values: Floats, least: int, delta: float, threshold: float, alpha: float, sides: int
) -> None:
    """Page-Hinkley test (Page 1954) with forgetting, on either side.

    Parameters
    ----------
    out : int8[n]
        Output: 1 the mean rose, -1 it fell, 0 no change.
    numbers : float64[7]
        Flag, count, mean, sum and minimum upwards, sum and maximum downwards; updated in place.
    values : float64[n]
    least : int
        No detection before so many values.
    delta, threshold, alpha : float
        Tolerated change, size of the alarm, what a past deviation still counts one value later.
    sides : int
        1: rises, 2: falls, 3: both.
    """
    for i in range(values.shape[0]):
        if numbers[0] == 1.0 or numbers[1] == 0.0:
            numbers[:] = 0.0
            numbers[4] = math.inf
            numbers[6] = -1.0
        numbers[1] += 1.0
        numbers[2] += 1.0 / numbers[1] * (values[i] - numbers[2])
        off = values[i] - numbers[2]
        numbers[3] = alpha * numbers[3] + off - delta
        numbers[5] = alpha * numbers[5] + off + delta
        numbers[4] = min(numbers[4], numbers[3])
        numbers[6] = max(numbers[6], numbers[5])
        up = sides != 2 and numbers[3] - numbers[4] > threshold
        down = sides != 1 and numbers[6] - numbers[5] > threshold
        found = numbers[1] >= least and (up or down)
        out[i] = 0 if not found else 1 if up else -1
        numbers[0] = 1.0 if found else 0.0


@kernel
def ddm(out: Signs, numbers: Floats, values: Floats, warm_start: int, threshold: float) -> None:
    """Drift detection method (Gama et al. 2004): the error rate is `threshold` deviations above its best.

    Parameters
    ----------
    out : int8[n]
        Output: 1 the mean rose, -1 it fell, 0 no change.
    numbers : float64[5]
        Flag, count, error rate, best rate, its deviation; updated in place.
    values : float64[n]
        1 error, 0 none.
    warm_start : int
        No detection before more values than this.
    threshold : float
    """
    for i in range(values.shape[0]):
        if numbers[0] == 1.0 or numbers[1] == 0.0:
            numbers[:] = 0.0
            numbers[3] = math.inf
        numbers[1] += 1.0
        numbers[2] += 1.0 / numbers[1] * (values[i] - numbers[2])
        p = numbers[2]
        s = math.sqrt(max(p * (1.0 - p), 0.0) / numbers[1])
        found = False
        if numbers[1] > warm_start:
            if p + s <= numbers[3] + numbers[4]:
                numbers[3] = p
                numbers[4] = s
            found = p + s > numbers[3] + threshold * numbers[4]
        out[i] = 1 if found else 0
        numbers[0] = 1.0 if found else 0.0


@kernel
def eddm(out: Signs, numbers: Floats, values: Floats, warm_start: int, beta: float) -> None:
    """Early drift detection method (Baena-Garcia et al. 2006): errors come closer to each other than at their best.

    Parameters
    ----------
    out : int8[n]
        Output: 1 the mean rose, -1 it fell, 0 no change.
    numbers : float64[7]
        Flag, count, errors, place of the last error, mean and sum of squares of the distances, largest level; updated
        in place.
    values : float64[n]
        1 error, 0 none.
    warm_start : int
        No level before more values, no detection before more errors than this.
    beta : float
        Share of the largest level below which there is drift.
    """
    for i in range(values.shape[0]):
        if numbers[0] == 1.0 or numbers[1] == 0.0:
            numbers[:] = 0.0
            numbers[6] = -1.0
        numbers[1] += 1.0
        found = False
        if values[i] == 1.0:
            numbers[2] += 1.0
            distance = numbers[1] - numbers[3]
            before = numbers[4]
            numbers[4] += 1.0 / numbers[2] * (distance - before)
            numbers[5] += (distance - before) * (distance - numbers[4])
            if numbers[1] > warm_start:
                variance = numbers[5] / (numbers[2] - 1.0) if numbers[2] > 1.0 else 0.0
                level = numbers[4] + 2.0 * math.sqrt(max(variance, 0.0))
                if level > numbers[6]:
                    numbers[6] = level
                elif numbers[2] > warm_start:
                    found = level / numbers[6] < beta
            numbers[3] = numbers[1]
        out[i] = 1 if found else 0
        numbers[0] = 1.0 if found else 0.0


@kernel
def hddm_a(out: Signs, numbers: Floats, values: Floats, confidence: float, two_sided: bool) -> None:
    """HDDM with the A test (Frias-Blanco et al. 2015): Hoeffding bounds on the means before and after a cut.

    Parameters
    ----------
    out : int8[n]
        Output: 1 the mean rose, -1 it fell, 0 no change.
    numbers : float64[7]
        Flag, count and mean of all values, of those before the rise, of those before the fall; updated in place.
    values : float64[n]
        In [0, 1].
    confidence : float
        Chance of a false alarm.
    two_sided : bool
        Whether a fall is a change too.
    """
    for i in range(values.shape[0]):
        if numbers[0] == 1.0:
            numbers[:] = 0.0
        numbers[1] += 1.0
        numbers[2] += 1.0 / numbers[1] * (values[i] - numbers[2])
        n, mean = numbers[1], numbers[2]
        bound = math.sqrt(1.0 / (2.0 * n) * math.log(1.0 / confidence))
        for place, sign in ((3, 1.0), (5, -1.0)):
            if numbers[place] == 0.0:
                numbers[place], numbers[place + 1] = n, mean
            before = math.sqrt(1.0 / (2.0 * numbers[place]) * math.log(1.0 / confidence))
            if sign * numbers[place + 1] + before >= sign * mean + bound:
                numbers[place], numbers[place + 1] = n, mean
        found = 0
        for place, sign in ((3, 1.0), (5, -1.0)):
            if numbers[place] != n and (sign > 0.0 or two_sided):
                m = (n - numbers[place]) / numbers[place] * (1.0 / n)
                if sign * (mean - numbers[place + 1]) >= math.sqrt(m / 2.0 * math.log(2.0 / confidence)):
                    found = 1 if sign > 0.0 else -1
        out[i] = found
        numbers[0] = abs(found)


@kernel
def hddm_w(out: Signs, numbers: Floats, values: Floats, confidence: float, weight: float, two_sided: bool) -> None:
    """HDDM with the W test (Frias-Blanco et al. 2015): McDiarmid bounds on exponentially weighted means beside a cut.

    Parameters
    ----------
    out : int8[n]
        Output: 1 the mean rose, -1 it fell, 0 no change.
    numbers : float64[18]
        Flag, the two cuts, then (count, mean, sum of squared weights) of all values, of those before and behind the
        cut for a rise, and of those before and behind the cut for a fall; updated in place.
    values : float64[n]
        In [0, 1].
    confidence : float
        Chance of a false alarm.
    weight : float
        Of the latest value in a mean.
    two_sided : bool
        Whether a fall is a change too.
    """
    scale = math.log(1.0 / confidence)
    for i in range(values.shape[0]):
        if numbers[0] == 1.0 or numbers[3] == 0.0:
            numbers[:] = 0.0
            numbers[1], numbers[2] = math.inf, -math.inf
            numbers[5::3] = 1.0
        value, found = values[i], 0
        _weigh(numbers, 3, value, weight)
        eps = math.sqrt(numbers[5] * scale / 2.0)
        for side in range(2):
            sign = 1.0 - 2.0 * side
            before, behind = 6 + 6 * side, 9 + 6 * side
            edge = numbers[4] + sign * eps
            if sign * edge < sign * numbers[1 + side]:
                numbers[1 + side] = edge
                numbers[before : before + 3] = numbers[3:6]
                numbers[behind], numbers[behind + 1], numbers[behind + 2] = 0.0, 0.0, 1.0
            else:
                _weigh(numbers, behind, value, weight)
            bound = math.sqrt((numbers[before + 2] + numbers[behind + 2]) * scale / 2.0)
            told = side == 0 or (two_sided and found == 0)
            if told and numbers[behind] > 0.0 and sign * (numbers[behind + 1] - numbers[before + 1]) > bound:
                found = 1 - 2 * side
        out[i] = found
        numbers[0] = abs(found)


@kernel
def _weigh(numbers: Floats, at: int, value: float, weight: float) -> None:
    """Take a value into the count, mean and sum of squared weights that stand at a place, in place."""
    mean = numbers[at + 1]
    numbers[at + 1] = value if numbers[at] == 0.0 else weight * value + (1.0 - weight) * mean
    numbers[at + 2] = weight * weight + (1.0 - weight) ** 2 * numbers[at + 2]
    numbers[at] += 1.0
