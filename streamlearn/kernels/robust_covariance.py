"""Trimmed inner products of all pairs of columns, and medians of columns, by counting instead of sorting.

The threshold of a pair is an order statistic. It is found by shrinking a bracket with exact counts, three thresholds a
pass: counts of a comparison vectorise, selection does not. Counted are the products' sizes rounded to single precision,
which keeps their order; once few are inside, their exact sizes are gathered and sorted. The sum of what is kept runs
over 128 fixed lanes. So the result depends neither on the bracket's start nor on the threads, and is that of a stable
sort by size up to the rounding of the sum.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import FloatArray, IntArray
from streamlearn.kernels.jit import kernel, parallel_kernel, prange

_LANES = 128
_FEW = 40  # values in the bracket that are cheaper to sort than to count again
_BLOCK = 64
_SAMPLE = 128
TILE = 4  # columns a side: eight columns of 10,000 rows stay in a second-level cache of 1 MB
_LARGEST = 1e150  # values are clipped here: their products and sums of these stay finite
_LARGEST_KEY = 3e38  # near the end of single precision
_FLAT_ROUNDS = 3  # passes by interpolation before the bracket is cut at values that occur

Keys = NDArray[np.floating]
"""Numbers that are compared instead of the values: these themselves, or rounded to single precision (twice as fast)."""


@kernel
def _count3(keys: Keys, t: Keys, counts: FloatArray) -> None:
    """Write how many keys are <= t[0], t[1], t[2] into counts[:3]."""
    t1, t2, t3 = t[0], t[1], t[2]
    c1 = c2 = c3 = np.int32(0)
    for i in range(len(keys)):
        v = keys[i]
        c1 = np.int32(c1 + (v <= t1))
        c2 = np.int32(c2 + (v <= t2))
        c3 = np.int32(c3 + (v <= t3))
    counts[0], counts[1], counts[2] = c1, c2, c3


@kernel
def _gather(keys: Keys, a: Keys, b: FloatArray | None, t: Keys, most: int, out: FloatArray) -> int:
    """Write the values whose keys are in (t[3], t[4]] to `out` in order, until there are `most`; return how many.

    The values are |a b|, or a where b is None.
    """
    lo, hi = t[3], t[4]
    n = len(keys)
    found = 0
    whole = n - n % _BLOCK
    for start in range(0, whole, _BLOCK):
        hits = np.int32(0)
        for i in range(start, start + _BLOCK):
            hits = np.int32(hits + ((keys[i] > lo) & (keys[i] <= hi)))
        if hits:
            for i in range(start, start + _BLOCK):
                out[found] = a[i] if b is None else abs(a[i] * b[i])
                found += (keys[i] > lo) & (keys[i] <= hi)
            if found >= most:
                return found
    for i in range(whole, n):
        if lo < keys[i] <= hi and found < most:
            out[found] = a[i] if b is None else abs(a[i] * b[i])
            found += 1
    return found


@kernel
def _sort(values: FloatArray, n: int) -> None:
    """Sort values[:n] by insertion."""
    for i in range(1, n):
        v, k = values[i], i
        while k > 0 and values[k - 1] > v:
            values[k] = values[k - 1]
            k -= 1
        values[k] = v


@kernel
def _first_thresholds(keys: Keys, rank: int, hint: float, slope: float, held: FloatArray, t: Keys) -> None:
    """Write three thresholds around the rank-th smallest key into t[:3]: about the hint, else from a sample."""
    n = len(keys)
    share = rank / n
    if slope > 0.0:
        wide = slope * (2.0 * np.sqrt(2.0 * rank * (1.0 - share)) + 4.0)
        t[0], t[1], t[2] = hint - wide, hint, hint + wide
        return
    m = min(n, _SAMPLE)
    for i in range(m):
        held[i] = keys[i * (n // m)]
    _sort(held, m)
    off = 2.5 * np.sqrt(m * share * (1.0 - share)) + 1.0
    t[0] = held[max(int(m * share - off), 0)]
    t[1] = held[min(int(m * share), m - 1)]
    t[2] = held[min(int(m * share + off), m - 1)]


@kernel
def _thresholds_that_occur(held: FloatArray, m: int, share: float, above: bool, t: Keys) -> None:
    """Write the number below a quantile of held[:m], it, and another quantile into t[:3]: ties are settled at once."""
    _sort(held, m)
    off = 2.0 * np.sqrt(m * share * (1.0 - share)) + 1.0
    t[1] = held[min(int(m * share), m - 1)]
    t[0] = np.nextafter(t[1], t[3])
    t[2] = held[min(max(int(m * share + (off if above else -off)), 0), m - 1)]


@kernel
def _order_statistic(
    keys: Keys,
    a: FloatArray,
    b: FloatArray | None,
    rank: int,
    t: Keys,
    counts: FloatArray,
    held: FloatArray,
    found: FloatArray,
) -> bool:
    """Find the rank-th smallest value exactly, by keys that grow with the values; return whether it was found.

    Not where too many float32 keys equal that of the value: it is then alone in the bracket.

    Parameters
    ----------
    keys : float32[n] or float64[n]
        Without NaN.
    a, b : float64[n], float64[n] or None
        The values: |a b|, or a. Where the keys are float64 they are the values.
    rank : int
        From 1 to n.
    t : dtype of the keys, [5]
        Three thresholds to start with, then the bracket (lo, hi] that holds the rank; changed.
    counts : float64[3]
        How many keys are <= t[:3]; changed. What is started with changes the cost, never the result.
    held : float64[>= 192]
        Scratch.
    found : float64[5]
        The value, how many are <= it, the distance of neighbours here (0 = unknown), how many keys are <= lo, and the
        next greater value (infinite where it is not in the bracket); written.
    """
    t[3], t[4] = -np.inf, np.inf
    below, within = 0, len(keys)
    rounds = 0
    while True:
        rounds += 1
        for k in range(3):
            count = int(counts[k])
            if count < rank:
                if t[k] > t[3]:
                    t[3], below = t[k], count
            elif t[k] < t[4]:
                t[4], within = t[k], count
        inside = within - below
        if inside <= _FEW:
            break
        if np.nextafter(t[3], t[4]) >= t[4]:
            found[0], found[1], found[2], found[3], found[4] = t[4], within, 0.0, below, np.inf
            return keys.itemsize == held.itemsize
        need = rank - below
        if t[3] > -np.inf and t[4] < np.inf and rounds <= _FLAT_ROUNDS:
            width = t[4] - t[3]
            half = width * ((1.2 * np.sqrt(inside) + 3.0) / inside)
            t[1] = t[3] + width * ((need - 0.5) / inside)
            t[0], t[2] = max(t[1] - half, t[3]), min(t[1] + half, t[4])
        else:
            m = _gather(keys, keys, None, t, _SAMPLE, held)
            _thresholds_that_occur(held, m, need / inside, rounds % 2 == 1, t)
        _count3(keys, t, counts)
    m = _gather(keys, a, b, t, _FEW + _BLOCK, held)
    _sort(held, m)
    at = rank - below
    while at < m and held[at] == held[at - 1]:
        at += 1
    found[0], found[1], found[2], found[3] = held[at - 1], below + at, (held[m - 1] - held[0]) / m, below
    found[4] = held[at] if at < m else np.inf
    return True


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
def _keys(a: FloatArray, b: FloatArray, t: Keys, keys: Keys, counts: FloatArray) -> None:
    """Write |a[i] b[i]| in single precision into `keys`, and count those <= t[:3] in the same pass."""
    t1, t2, t3 = t[0], t[1], t[2]
    c1 = c2 = c3 = np.int32(0)
    for i in range(len(keys)):
        v = np.float32(min(abs(a[i] * b[i]), _LARGEST_KEY))
        keys[i] = v
        c1 = np.int32(c1 + (v <= t1))
        c2 = np.int32(c2 + (v <= t2))
        c3 = np.int32(c3 + (v <= t3))
    counts[0], counts[1], counts[2] = c1, c2, c3


@kernel
def _among_equal_keys(
    a: FloatArray, b: FloatArray, keep: int, keys: Keys, t: Keys, small: FloatArray, held: FloatArray
) -> None:
    """Find the threshold where single precision cannot: many ties, or sizes beyond its range."""
    exact, t64, counts, found = np.empty(len(a)), small[0], small[1], small[2]
    for i in range(len(a)):
        exact[i] = abs(a[i] * b[i])
    m = _gather(keys, exact, None, t, _SAMPLE, held)
    t64[3] = -np.inf
    _thresholds_that_occur(held, m, (keep - found[3]) / (found[1] - found[3]), True, t64)
    _count3(exact, t64, counts)
    _order_statistic(exact, exact, None, keep, t64, counts, held, found)


@kernel
def _pair(
    a: FloatArray,
    b: FloatArray,
    keep: int,
    hint: float,
    slope: float,
    keys: Keys,
    t: Keys,
    lanes: FloatArray,
    small: FloatArray,
    held: FloatArray,
) -> float:
    """Return the mean of the `keep` products of smallest size; threshold and slope stay in small[2, :3:2]."""
    n = len(a)
    counts, found = small[1], small[2]
    if keep >= n:
        found[0] = found[2] = 0.0
        return _sum_kept(a, b, np.inf, lanes) / n
    if slope > 0.0:
        _first_thresholds(keys, keep, hint, slope, held, t)
        _keys(a, b, t, keys, counts)
    else:
        t[:] = 0.0
        _keys(a, b, t, keys, counts)
        _first_thresholds(keys, keep, hint, slope, held, t)
        _count3(keys, t, counts)
    if not _order_statistic(keys, a, b, keep, t, counts, held, found):
        _among_equal_keys(a, b, keep, keys, t, small, held)
    total = _sum_kept(a, b, found[0], lanes)
    surplus = int(found[1]) - keep
    i = n - 1
    while surplus > 0:
        # Among equal sizes a stable sort keeps the earlier rows.
        if abs(a[i] * b[i]) == found[0]:
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
    keys, t = np.empty(len(a), dtype=np.float32), np.empty(5, dtype=np.float32)
    lanes, small, held = np.empty(_LANES), np.empty((3, 5)), np.empty(_SAMPLE + _BLOCK)
    return _pair(a, b, len(a) - n_trim, 0.0, 0.0, keys, t, lanes, small, held)


@kernel
def _tile(
    columns: FloatArray, places: IntArray, keep: int, first: int, second: int, hints: FloatArray, out: FloatArray
) -> None:
    """Fill the pairs of two groups of `TILE` columns, each pair once."""
    m, n = columns.shape
    keys, t = np.empty(n, dtype=np.float32), np.empty(5, dtype=np.float32)
    lanes, small, held = np.empty(_LANES), np.empty((3, 5)), np.empty(_SAMPLE + _BLOCK)
    for a in range(first, min(first + TILE, m)):
        for b in range(max(second, a), min(second + TILE, m)):
            i, j = places[a], places[b]
            if i >= 0 and j >= 0:
                mean = _pair(columns[a], columns[b], keep, hints[0, i, j], hints[1, i, j], keys, t, lanes, small, held)
                out[i, j] = mean
                out[j, i] = mean
                hints[0, i, j], hints[1, i, j] = small[2, 0], small[2, 2]


@kernel
def trimmed_covariance(
    columns: FloatArray, places: IntArray, tiles: IntArray, n_trim: int, hints: FloatArray, out: FloatArray
) -> None:
    """Fill entries of the matrix of trimmed inner products: mean of all products but the `n_trim` of largest size.

    Parameters
    ----------
    columns : float64[m, n]
        One variable a row, centred, without NaN, of size at most 1e150. Not all p need be there at once.
    places : int64[m]
        Row of the matrix that each stands for, or -1 for none.
    tiles : int64[n_tiles, 2]
        Where the groups of `TILE` variables begin whose pairs are to be filled, the lesser first.
    n_trim : int
        From 0 to n - 1.
    hints : float64[2, p, p]
        Thresholds and slopes of the last batch, zeros at first; changed. They save time and do not touch the result.
    out : float64[p, p]
        Both triangles are written.
    """
    for t in range(len(tiles)):
        _tile(columns, places, columns.shape[1] - n_trim, tiles[t, 0], tiles[t, 1], hints, out)


@parallel_kernel
def trimmed_covariance_parallel(
    columns: FloatArray, places: IntArray, tiles: IntArray, n_trim: int, hints: FloatArray, out: FloatArray
) -> None:
    """Fill what `trimmed_covariance` fills, bit for bit, on all of Numba's threads.

    Each gets a stretch of the list. A loop over the whole square that skips its lower half would give the first of two
    threads 72 % of the work.
    """
    for t in prange(len(tiles)):
        _tile(columns, places, columns.shape[1] - n_trim, tiles[t, 0], tiles[t, 1], hints, out)


@kernel
def _median(column: FloatArray, hint: float, slope: float, held: FloatArray, small: FloatArray) -> float:
    """Return the median of a column; the lower middle value and the slope there stay in small[2, :3:2]."""
    n = len(column)
    rank = (n + 1) // 2
    t, counts, found = small[0], small[1], small[2]
    _first_thresholds(column, rank, hint, slope, held, t)
    _count3(column, t, counts)
    _order_statistic(column, column, None, rank, t, counts, held, found)
    if n % 2 or found[1] > rank:
        return float(found[0])
    upper = found[4]
    if upper == np.inf:
        for i in range(n):
            if column[i] > found[0]:
                upper = min(upper, column[i])
    return float(0.5 * found[0] + 0.5 * upper)


@kernel
def _transpose(X: FloatArray, first: int, block: int, out: FloatArray) -> None:
    """Write 64 rows of some columns of X into columns of `out`, clipped."""
    n = len(X)
    for i in range(block * 64, min(block * 64 + 64, n)):
        for j in range(len(out)):
            out[j, i] = min(max(X[i, first + j], -_LARGEST), _LARGEST)


@kernel
def _centre(column: FloatArray, j: int, hints: FloatArray, medians: FloatArray) -> None:
    """Take the median from one column, in place."""
    small, held = np.empty((3, 5)), np.empty(_SAMPLE + _BLOCK)
    medians[j] = _median(column, hints[0, j], hints[1, j], held, small)
    hints[0, j], hints[1, j] = small[2, 0], small[2, 2]
    column -= medians[j]


@kernel
def centred_columns(X: FloatArray, first: int, hints: FloatArray, medians: FloatArray, out: FloatArray) -> None:
    """Transpose some columns of a batch and take its median from each.

    Parameters
    ----------
    X : float64[n, p]
        Without NaN.
    first : int
        The first of these columns.
    hints : float64[2, p]
        Medians and slopes of the last batch, zeros at first; changed. They save time and do not touch the result.
    medians : float64[p]
        Written where these columns are.
    out : float64[m, n]
        X[:, first : first + m].T - medians, clipped to size 1e150; written.
    """
    for block in range((len(X) + 63) // 64):
        _transpose(X, first, block, out)
    for j in range(len(out)):
        _centre(out[j], first + j, hints, medians)


@parallel_kernel
def centred_columns_parallel(
    X: FloatArray, first: int, hints: FloatArray, medians: FloatArray, out: FloatArray
) -> None:
    """Fill what `centred_columns` fills, bit for bit, on all of Numba's threads."""
    for block in prange((len(X) + 63) // 64):
        _transpose(X, first, block, out)
    for j in prange(len(out)):
        _centre(out[j], first + j, hints, medians)
