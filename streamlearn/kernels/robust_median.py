"""Geometric medians: of a window by its matrix of squared distances, and of a stream by proximal steps."""

from __future__ import annotations

import numpy as np

from streamlearn.contracts import FloatArray, IntArray
from streamlearn.kernels.jit import kernel

_LARGEST = 1e150  # coordinates are clipped here, squared distances at its square: sums of them cannot overflow
_LARGEST_SQUARE = 1e300
_LANES = 8
_WIDE_LANES = 64
_LONG = 512  # coordinates from which on running sums in memory are faster than in registers
_MAX_ITERATIONS = 2000
_QUANTILE_MARKERS = 5
_SCALE_SPEED = 2.0  # steps of the log of a scale that forgets, over those of its centre: it must be ahead


@kernel
def squared_distance(a: FloatArray, b: FloatArray) -> float:
    """Return ||a - b||^2, at most 1e300.

    Eight running sums: they vectorise without reordering, so the result does not depend on who asks.

    Parameters
    ----------
    a, b : float64[n]
    """
    n = len(a)
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
    whole = n - n % _LANES
    for i in range(0, whole, _LANES):
        s0 += (a[i] - b[i]) ** 2
        s1 += (a[i + 1] - b[i + 1]) ** 2
        s2 += (a[i + 2] - b[i + 2]) ** 2
        s3 += (a[i + 3] - b[i + 3]) ** 2
        s4 += (a[i + 4] - b[i + 4]) ** 2
        s5 += (a[i + 5] - b[i + 5]) ** 2
        s6 += (a[i + 6] - b[i + 6]) ** 2
        s7 += (a[i + 7] - b[i + 7]) ** 2
    for i in range(whole, n):
        s0 += (a[i] - b[i]) ** 2
    return float(min(((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7)), _LARGEST_SQUARE))


@kernel
def _long_squared_distance(a: FloatArray, b: FloatArray, lanes: FloatArray) -> float:
    """Return ||a - b||^2, at most 1e300, by 64 running sums."""
    n = len(a)
    lanes[:] = 0.0
    whole = n - n % _WIDE_LANES
    for start in range(0, whole, _WIDE_LANES):
        for k in range(_WIDE_LANES):
            off = a[start + k] - b[start + k]
            lanes[k] += off * off
    for i in range(whole, n):
        lanes[i - whole] += (a[i] - b[i]) ** 2
    half = _WIDE_LANES // 2
    while half:
        for k in range(half):
            lanes[k] += lanes[k + half]
        half //= 2
    return float(min(lanes[0], _LARGEST_SQUARE))


@kernel
def window_push(X: FloatArray, points: FloatArray, squares: FloatArray, count: IntArray) -> None:
    """Put rows into a ring of points and keep its matrix of squared distances.

    Parameters
    ----------
    X : float64[n_rows, n_features]
    points : float64[window, n_features]
        The ring; changed.
    squares : float64[window, window]
        ||points[i] - points[j]||^2; changed.
    count : int64[1]
        Rows taken since the start; changed.
    """
    window, dim = points.shape
    lanes = np.empty(_WIDE_LANES)
    passed = max(len(X) - window, 0)  # rows that would leave the ring again
    count[0] += passed
    for i in range(passed, len(X)):
        slot = count[0] % window
        for j in range(dim):
            points[slot, j] = min(max(X[i, j], -_LARGEST), _LARGEST)
        count[0] += 1
        for k in range(min(count[0], window)):
            if dim < _LONG:
                squares[slot, k] = squared_distance(points[slot], points[k])
            else:
                squares[slot, k] = _long_squared_distance(points[slot], points[k], lanes)
            squares[k, slot] = squares[slot, k]


@kernel
def weiszfeld(
    squares: FloatArray, n: int, tolerance: float, w: FloatArray, distances: FloatArray, scratch: FloatArray
) -> float:
    """Find the geometric median of n points as a convex combination of them, from their squared distances alone.

    Weiszfeld's iteration with the safeguard of Vardi and Zhang (2000), started at the medoid. For weights w of sum 1
    and y = sum w_i p_i: ||p_i - y||^2 = (S w)_i - w'S w / 2, whatever the offset of the points.

    Parameters
    ----------
    squares : float64[>= n, >= n]
        S, squared distances.
    n : int
        Number of points, at least 1.
    tolerance : float
        Stop where the objective is provably within this fraction of its minimum.
    w : float64[>= n]
        The weights; written.
    distances : float64[>= n]
        Distances of the points to the median; written.
    scratch : float64[2, >= n]

    Returns
    -------
    gap : float
        Proven bound of (f - f_min) / f.
    """
    best, medoid = np.inf, 0
    for i in range(n):
        total = 0.0
        for j in range(n):
            total += np.sqrt(squares[i, j])
        if total < best:
            best, medoid = total, i
    w[:n] = 0.0
    w[medoid] = 1.0
    products, target = scratch[0], scratch[1]
    gap = 1.0
    for _ in range(_MAX_ITERATIONS):
        half = 0.0
        for i in range(n):
            products[i] = 0.0
            for j in range(n):
                products[i] += squares[i, j] * w[j]
            half += 0.5 * w[i] * products[i]
        largest = 0.0
        for i in range(n):
            distances[i] = np.sqrt(max(products[i] - half, 0.0))
            largest = max(largest, distances[i])
        at, inverse = 0, 0.0
        for i in range(n):
            # Nearer than this a point is the present one: below it the identity above has no digits left.
            if distances[i] <= 1e-8 * largest:
                at += 1
                target[i] = 0.0
            else:
                target[i] = 1.0 / distances[i]
                inverse += target[i]
        if inverse == 0.0:
            return 0.0
        moved = 0.0
        for i in range(n):
            target[i] /= inverse
        for i in range(n):
            row = 0.0
            for j in range(n):
                row += squares[i, j] * (target[j] - w[j])
            moved -= 0.5 * (target[i] - w[i]) * row
        pull = inverse * np.sqrt(max(moved, 0.0))
        excess = pull - at
        # f(y) - f_min <= excess ||y - y*|| and n ||y - y*|| <= 2 f(y).
        gap = max(2.0 * excess / n, 0.0)
        if gap <= tolerance:
            return float(gap)
        keep = min(at / pull, 1.0)
        for i in range(n):
            w[i] = (1.0 - keep) * target[i] + keep * w[i]
    return float(gap)


@kernel
def combine(points: FloatArray, n: int, w: FloatArray, out: FloatArray) -> None:
    """Write sum w_i points[i] into `out`, relative to the heaviest point so that a common offset costs no digits.

    Four points a pass: what it costs is to read and write.

    Parameters
    ----------
    points : float64[>= n, n_features]
    n : int
    w : float64[>= n]
        Of sum 1.
    out : float64[n_features]
        Written.
    """
    heaviest = 0
    for i in range(1, n):
        if w[i] > w[heaviest]:
            heaviest = i
    base = points[heaviest]
    out[:] = 0.0
    whole = n - n % 4
    for i in range(0, whole, 4):
        w0, w1, w2, w3 = w[i], w[i + 1], w[i + 2], w[i + 3]
        p0, p1, p2, p3 = points[i], points[i + 1], points[i + 2], points[i + 3]
        for j in range(len(out)):
            v = base[j]
            out[j] += (w0 * (p0[j] - v) + w1 * (p1[j] - v)) + (w2 * (p2[j] - v) + w3 * (p3[j] - v))
    for i in range(whole, n):
        p0 = points[i]
        for j in range(len(out)):
            out[j] += w[i] * (p0[j] - base[j])
    for j in range(len(out)):
        out[j] += base[j]


@kernel
def running_median(x: float, heights: FloatArray, places: FloatArray) -> None:
    """Take one value into a running median: the P-square algorithm of Jain and Chlamtac (1985).

    Parameters
    ----------
    x : float
    heights : float64[5]
        Marker heights, heights[2] is the median; changed. Below five values: the values, sorted.
    places : float64[6]
        Marker positions from 1, then the number of values so far; changed.
    """
    n = int(places[5])
    places[5] += 1.0
    if n < _QUANTILE_MARKERS:
        k = n
        while k > 0 and heights[k - 1] > x:
            heights[k] = heights[k - 1]
            k -= 1
        heights[k] = x
        for m in range(n + 1, _QUANTILE_MARKERS):
            heights[m] = heights[n]
        places[n] = n + 1.0
        return
    cell = 0
    if x < heights[0]:
        heights[0] = x
    elif x >= heights[4]:
        heights[4] = x
        cell = 3
    else:
        while x >= heights[cell + 1]:
            cell += 1
    for m in range(cell + 1, _QUANTILE_MARKERS):
        places[m] += 1.0
    for m in range(1, 4):
        off = 1.0 + m * 0.25 * n - places[m]
        step = 1.0 if off > 0 else -1.0
        room = places[m + 1] - places[m] if off > 0 else places[m - 1] - places[m]
        if off * step < 1.0 or room * step <= 1.0:
            continue
        left, here, right = places[m - 1], places[m], places[m + 1]
        up = (here - left + step) * (heights[m + 1] - heights[m]) / (right - here)
        down = (right - here - step) * (heights[m] - heights[m - 1]) / (here - left)
        raised = heights[m] + step / (right - left) * (up + down)
        if heights[m - 1] < raised < heights[m + 1]:
            heights[m] = raised
        else:
            other = m + int(step)
            heights[m] += step * (heights[other] - heights[m]) / (places[other] - here)
        places[m] += step


@kernel
def proximal(
    X: FloatArray,
    iterate: FloatArray,
    centre: FloatArray,
    heights: FloatArray,
    places: FloatArray,
    count: IntArray,
    c_a: float,
    rate: float,
    averaged: bool,
    last: FloatArray,
    distances: FloatArray,
    row: FloatArray,
) -> None:
    """Move the geometric median of a stream by one proximal step a row.

    The step is w = min(1, eta / d) towards the row: the exact proximal step of eta ||x - u||, so the median never
    leaves the convex hull of the rows. eta = s max(1 / t, rate) with s the running median of the distances d, or
    1 / (c_a t); averaged: eta = 2 s t^(-3/4), and the median is the average of the iterates (Cardot, Cenac and Zitt
    2013). With 1 for the 2 the iterates stay correlated over thousands of rows and the average gains nothing; with 4
    coherent bad rows throw the first ones far off. Distances to the average, not to the iterate, make s: else s feeds
    itself.

    Parameters
    ----------
    X : float64[n_rows, n_features]
    iterate, centre : float64[n_features]
        The last iterate, and the median; changed, and equal unless averaged.
    heights, places : float64[5], float64[6]
        The running median of the distances; changed.
    count : int64[1]
        Rows so far; changed.
    c_a : float
        0 for the automatic scale.
    rate : float
        Least step in units of s; 0 for none. With one the running median of the distances forgets too: it moves by
        factors of exp(2 rate).
    averaged : bool
    last : float64[2]
        Distance and weight of the last row; written.
    distances : float64[n_rows]
        Distances of the rows to the median before them; written.
    row : float64[n_features]
        Scratch.
    """
    for i in range(len(X)):
        for j in range(X.shape[1]):
            row[j] = min(max(X[i, j], -_LARGEST), _LARGEST)
        count[0] += 1
        t = float(count[0])
        distances[i] = np.sqrt(squared_distance(row, centre))
        d = np.sqrt(squared_distance(row, iterate))
        s = heights[2]
        eta = 2.0 * s * t**-0.75 if averaged else s * max(1.0 / t, rate)
        if c_a > 0.0:
            eta = 1.0 / (c_a * t)
        w = 1.0 if d <= eta else eta / d
        mix = 1.0 / t if averaged else 1.0
        for j in range(X.shape[1]):
            iterate[j] += w * (row[j] - iterate[j])
            centre[j] = centre[j] + mix * (iterate[j] - centre[j]) if averaged else iterate[j]
        if rate > 0.0 and s > 0.0:
            # The scale forgets as the centre does: after a jump it grows until the steps reach the new place.
            heights[2] = min(s * np.exp(_SCALE_SPEED * (rate if distances[i] > s else -rate)), _LARGEST)
        else:
            running_median(distances[i], heights, places)
        last[0], last[1] = distances[i], w
