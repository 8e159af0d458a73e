"""Trimmed inner products of all pairs of columns, and medians of columns, by counting instead of sorting.

The threshold of a pair is an order statistic. It is found by shrinking a bracket with exact counts, three thresholds a
pass: counts of a comparison vectorise, selection does not. Once few values are inside they are gathered and sorted. The
sum of what is kept runs over 128 fixed lanes. So the result depends neither on the bracket's start nor on the threads,
and is that of a stable sort by size up to the rounding of the sum.
"""

from __future__ import annotations

import numpy as np

from streamlearn.contracts import FloatArray
from streamlearn.kernels.jit import kernel, parallel_kernel, prange

_LANES = 128
_FEW = 40  # values in the bracket that are cheaper to sort than to count again
_BLOCK = 64
_SAMPLE = 128
_TILE = 4  # columns a side: eight columns of 10,000 rows stay in a second-level cache of 1 MB
_LARGEST = 1e150  # values are clipped here: their products and sums of these stay finite
_FLAT_ROUNDS = 3  # passes by interpolation before the bracket is cut at values that occur


@kernel
def _count3(q: FloatArray, t1: float, t2: float, t3: float, counts: FloatArray) -> None:
    """Write how many of q are <= t1, t2, t3 into counts[:3]."""
    c1 = c2 = c3 = 0
    for i in range(len(q)):
        v = q[i]
        c1 += v <= t1
        c2 += v <= t2
        c3 += v <= t3
    counts[0], counts[1], counts[2] = c1, c2, c3


@kernel
def _gather(q: FloatArray, lo: float, hi: float, most: int, out: FloatArray) -> int:
    """Write the values in (lo, hi] to `out` in order, stopping once there are `most`; return how many."""
    n = len(q)
    found = 0
    whole = n - n % _BLOCK
    for start in range(0, whole, _BLOCK):
        hits = 0
        for i in range(start, start + _BLOCK):
            hits += (q[i] > lo) & (q[i] <= hi)
        if hits:
            for i in range(start, start + _BLOCK):
                out[found] = q[i]
                found += (q[i] > lo) & (q[i] <= hi)
            if found >= most:
                return found
    for i in range(whole, n):
        if lo < q[i] <= hi and found < most:
            out[found] = q[i]
            found += 1
    return found


@kernel
def _sort(values: FloatArray, n: int) -> None:
    """Sort values[:n] by insertion."""
    for i in range(1, n):
        v = values[i]
        k = i
        while k > 0 and values[k - 1] > v:
            values[k] = values[k - 1]
            k -= 1
        values[k] = v


@kernel
def _first_thresholds(q: FloatArray, rank: int, hint: float, slope: float, held: FloatArray, t: FloatArray) -> None:
    """Write three thresholds around the rank-th smallest value into `t`: about the hint, else from a sample."""
    n = len(q)
    share = rank / n
    if slope > 0.0:
        wide = slope * (2.0 * np.sqrt(2.0 * rank * (1.0 - share)) + 4.0)
        t[0], t[1], t[2] = hint - wide, hint, hint + wide
        return
    m = min(n, _SAMPLE)
    for i in range(m):
        held[i] = q[i * (n // m)]
    _sort(held, m)
    off = 2.5 * np.sqrt(m * share * (1.0 - share)) + 1.0
    t[0] = held[max(int(m * share - off), 0)]
    t[1] = held[min(int(m * share), m - 1)]
    t[2] = held[min(int(m * share + off), m - 1)]


@kernel
def _order_statistic(
    q: FloatArray, rank: int, t: FloatArray, counts: FloatArray, held: FloatArray, found: FloatArray
) -> None:
    """Find the rank-th smallest value exactly.

    Parameters
    ----------
    q : float64[n]
        Without NaN.
    rank : int
        From 1 to n.
    t, counts : float64[3]
        Thresholds to start with and how many values are <= each; changed. They change the cost, never the result.
    held : float64[>= 192]
        Scratch.
    found : float64[3]
        The value, how many of q are <= it, and the distance between neighbours here (0 = unknown); written.
    """
    lo, below, hi, within = -np.inf, 0, np.inf, len(q)
    rounds = 0
    while True:
        rounds += 1
        for k in range(3):
            count = int(counts[k])
            if count < rank:
                if t[k] > lo:
                    lo, below = t[k], count
            elif t[k] < hi:
                hi, within = t[k], count
        inside = within - below
        if np.nextafter(lo, np.inf) >= hi:
            found[0], found[1], found[2] = hi, within, 0.0
            return
        if inside <= _FEW:
            break
        need = rank - below
        if lo > -np.inf and hi < np.inf and rounds <= _FLAT_ROUNDS:
            width = hi - lo
            t[1] = lo + width * ((need - 0.5) / inside)
            half = width * ((1.2 * np.sqrt(inside) + 3.0) / inside)
            t[0], t[2] = max(t[1] - half, lo), min(t[1] + half, hi)
        else:
            m = _gather(q, lo, hi, _SAMPLE, held)
            _sort(held, m)
            share = need / inside
            off = 2.0 * np.sqrt(m * share * (1.0 - share)) + 1.0
            # A value that occurs and the number just below it: many equal values are settled at once.
            t[1] = held[min(int(m * share), m - 1)]
            t[0] = np.nextafter(t[1], -np.inf)
            t[2] = held[min(max(int(m * share + (off if rounds % 2 else -off)), 0), m - 1)]
        _count3(q, t[0], t[1], t[2], counts)
    m = _gather(q, lo, hi, _FEW + _BLOCK, held)
    _sort(held, m)
    value = held[rank - below - 1]
    upto = below
    for i in range(m):
        upto += held[i] <= value
    found[0], found[1], found[2] = value, upto, (held[m - 1] - held[0]) / m


@kernel
def _sum_kept(a: FloatArray, b: FloatArray, threshold: float, lanes: FloatArray) -> float:
    """Return the sum of the products a[i] b[i] of size <= threshold, over fixed lanes."""
    n = len(a)
    lanes[:] = 0.0
    whole = n - n % _LANES
    for start in range(0, whole, _LANES):
        for k in range(_LANES):
            v = a[start + k] * b[start + k]
            lanes[k] += v if abs(v) <= threshold else 0.0
    for i in range(whole, n):
        v = a[i] * b[i]
        lanes[i - whole] += v if abs(v) <= threshold else 0.0
    half = _LANES // 2
    while half:
        for k in range(half):
            lanes[k] += lanes[k + half]
        half //= 2
    return float(lanes[0])


@kernel
def _sizes(a: FloatArray, b: FloatArray, t1: float, t2: float, t3: float, q: FloatArray, counts: FloatArray) -> None:
    """Write |a[i] b[i]| into q, and count those <= t1, t2, t3 in the same pass."""
    c1 = c2 = c3 = 0
    for i in range(len(q)):
        v = abs(a[i] * b[i])
        q[i] = v
        c1 += v <= t1
        c2 += v <= t2
        c3 += v <= t3
    counts[0], counts[1], counts[2] = c1, c2, c3


@kernel
def _pair(
    a: FloatArray,
    b: FloatArray,
    keep: int,
    hint: float,
    slope: float,
    q: FloatArray,
    lanes: FloatArray,
    small: FloatArray,
    held: FloatArray,
) -> float:
    """Return the mean of the `keep` products of smallest size; threshold and slope stay in small[2, :3:2]."""
    n = len(a)
    t, counts, found = small[0], small[1], small[2]
    if keep >= n:
        found[0] = found[2] = 0.0
        return _sum_kept(a, b, np.inf, lanes) / n
    if slope > 0.0:
        _first_thresholds(q, keep, hint, slope, held, t)
        _sizes(a, b, t[0], t[1], t[2], q, counts)
    else:
        _sizes(a, b, 0.0, 0.0, 0.0, q, counts)
        _first_thresholds(q, keep, hint, slope, held, t)
        _count3(q, t[0], t[1], t[2], counts)
    _order_statistic(q, keep, t, counts, held, found)
    total = _sum_kept(a, b, found[0], lanes)
    surplus = int(found[1]) - keep
    i = n - 1
    while surplus > 0:
        # Among equal sizes a stable sort keeps the earlier rows.
        if q[i] == found[0]:
            total -= a[i] * b[i]
            surplus -= 1
        i -= 1
    return total / keep


@kernel
def trimmed_product(a: FloatArray, b: FloatArray, n_trim: int) -> float:
    """Return the mean of the products a[i] b[i] without the `n_trim` of largest size.

    Parameters
    ----------
    a, b : float64[n]
        Without NaN, of size at most 1e150.
    n_trim : int
        From 0 to n - 1.
    """
    q, lanes, small, held = np.empty(len(a)), np.empty(_LANES), np.empty((3, 3)), np.empty(_SAMPLE + _BLOCK)
    return _pair(a, b, len(a) - n_trim, 0.0, 0.0, q, lanes, small, held)


@kernel
def _tile(columns: FloatArray, keep: int, first: int, second: int, hints: FloatArray, out: FloatArray) -> None:
    """Fill the pairs of two groups of `_TILE` columns, each pair once."""
    p, n = columns.shape
    q, lanes, small, held = np.empty(n), np.empty(_LANES), np.empty((3, 3)), np.empty(_SAMPLE + _BLOCK)
    for i in range(first * _TILE, min(first * _TILE + _TILE, p)):
        for j in range(max(second * _TILE, i), min(second * _TILE + _TILE, p)):
            mean = _pair(columns[i], columns[j], keep, hints[0, i, j], hints[1, i, j], q, lanes, small, held)
            out[i, j] = mean
            out[j, i] = mean
            hints[0, i, j], hints[1, i, j] = small[2, 0], small[2, 2]


@kernel
def trimmed_covariance(columns: FloatArray, n_trim: int, hints: FloatArray, out: FloatArray) -> None:
    """Fill the matrix of trimmed inner products: mean of all products but the `n_trim` of largest size.

    Parameters
    ----------
    columns : float64[p, n]
        One variable a row, centred, without NaN, of size at most 1e150.
    n_trim : int
        From 0 to n - 1.
    hints : float64[2, p, p]
        Thresholds and slopes of the last batch, zeros at first; changed. They save time and do not touch the result.
    out : float64[p, p]
        Symmetric; written.
    """
    p, n = columns.shape
    side = (p + _TILE - 1) // _TILE
    for first in range(side):
        for second in range(first, side):
            _tile(columns, n - n_trim, first, second, hints, out)


@parallel_kernel
def trimmed_covariance_parallel(columns: FloatArray, n_trim: int, hints: FloatArray, out: FloatArray) -> None:
    """Fill what `trimmed_covariance` fills, bit for bit, on all of Numba's threads."""
    p, n = columns.shape
    side = (p + _TILE - 1) // _TILE
    for t in prange(side * side):
        first, second = t // side, t % side
        if first <= second:
            _tile(columns, n - n_trim, first, second, hints, out)


@kernel
def _median(column: FloatArray, hint: float, slope: float, held: FloatArray, small: FloatArray) -> float:
    """Return the median of a column; the lower middle value and the slope there stay in small[2, :3:2]."""
    n = len(column)
    rank = (n + 1) // 2
    t, counts, found = small[0], small[1], small[2]
    _first_thresholds(column, rank, hint, slope, held, t)
    _count3(column, t[0], t[1], t[2], counts)
    _order_statistic(column, rank, t, counts, held, found)
    if n % 2 or found[1] > rank:
        return float(found[0])
    upper = np.inf
    for i in range(n):
        if column[i] > found[0]:
            upper = min(upper, column[i])
    return float(0.5 * found[0] + 0.5 * upper)


@kernel
def _transpose(X: FloatArray, block: int, out: FloatArray) -> None:
    """Write 64 rows of X into columns of `out`, clipped."""
    n, p = X.shape
    for i in range(block * 64, min(block * 64 + 64, n)):
        for j in range(p):
            out[j, i] = min(max(X[i, j], -_LARGEST), _LARGEST)


@kernel
def _centre(column: FloatArray, j: int, hints: FloatArray, medians: FloatArray) -> None:
    """Take the median from one column, in place."""
    small, held = np.empty((3, 3)), np.empty(_SAMPLE + _BLOCK)
    medians[j] = _median(column, hints[0, j], hints[1, j], held, small)
    hints[0, j], hints[1, j] = small[2, 0], small[2, 2]
    column -= medians[j]


@kernel
def centred_columns(X: FloatArray, hints: FloatArray, medians: FloatArray, out: FloatArray) -> None:
    """Transpose a batch and take the median from each column.

    Parameters
    ----------
    X : float64[n, p]
        Without NaN.
    hints : float64[2, p]
        Medians and slopes of the last batch, zeros at first; changed. They save time and do not touch the result.
    medians : float64[p]
        Written.
    out : float64[p, n]
        X.T - medians, clipped to size 1e150; written.
    """
    n, p = X.shape
    for block in range((n + 63) // 64):
        _transpose(X, block, out)
    for j in range(p):
        _centre(out[j], j, hints, medians)


@parallel_kernel
def centred_columns_parallel(X: FloatArray, hints: FloatArray, medians: FloatArray, out: FloatArray) -> None:
    """Fill what `centred_columns` fills, bit for bit, on all of Numba's threads."""
    n, p = X.shape
    for block in prange((n + 63) // 64):
        _transpose(X, block, out)
    for j in prange(p):
        _centre(out[j], j, hints, medians)
