"""Trimmed inner products by exact counts of products: of a pair of columns, and of those with many equal products.

The threshold is found by shrinking a bracket with exact counts, three thresholds a pass. Counted are products in single
precision; once few are inside the bracket their exact sizes are gathered and sorted, and where single precision cannot
tell, the products themselves are counted. The sum of what is kept runs over 256 fixed lanes, as in `robust_covariance`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import FloatArray, IntArray
from streamlearn.kernels.jit import kernel, parallel_kernel, prange

_LANES = 256
_FEW = 40  # values in the bracket that are cheaper to sort than to count again
_BLOCK = 64
_SAMPLE = 128
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
def _gather(keys: Keys, a: Keys, t: Keys, most: int, out: FloatArray) -> int:
    """Write the values a whose keys are in (t[3], t[4]] to `out` in order, until there are `most`; return how many."""
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
                out[found] = a[i]
                found += (keys[i] > lo) & (keys[i] <= hi)
            if found >= most:
                return found
    for i in range(whole, n):
        if lo < keys[i] <= hi and found < most:
            out[found] = a[i]
            found += 1
    return found


@kernel
def _gather_products(keys: Keys, a: FloatArray, b: FloatArray, t: Keys, out: FloatArray) -> int:
    """Write |a b| where float32 keys, none negative, are in (t[3], t[4]] to `out` in order; return how many.

    The bits of such keys order as they do: the least difference to the bracket's lower end, taken as a number without a
    sign, says whether a block has any inside. Blocks are looked for first and read afterwards, a few at a time.
    """
    ends = np.array([t[3] + np.float32(0.0), t[4]], dtype=np.float32).view(np.int32)
    first = np.int32(max(ends[0] + 1, 0))  # keys are not below 0: no difference overflows
    width = np.uint32(ends[1] - first)
    bits = keys.view(np.int32)
    blocks = np.empty(_BLOCK, dtype=np.int64)
    n = len(keys)
    found = 0
    whole = n - n % _BLOCK
    for top in range(0, whole, _BLOCK * _BLOCK):
        n_blocks = 0
        for start in range(top, min(top + _BLOCK * _BLOCK, whole), _BLOCK):
            block = bits[start : start + _BLOCK]
            least = np.uint32(0xFFFFFFFF)
            for i in range(_BLOCK):
                least = min(least, np.uint32(block[i] - first))
            blocks[n_blocks] = start
            n_blocks += 1 if least <= width else 0
        for k in range(n_blocks):
            start = blocks[k]
            block, left, right = bits[start : start + _BLOCK], a[start : start + _BLOCK], b[start : start + _BLOCK]
            for i in range(_BLOCK):
                if np.uint32(block[i] - first) <= width:
                    out[found] = abs(left[i] * right[i])
                    found += 1
    for i in range(whole, n):
        if np.uint32(bits[i] - first) <= width:
            out[found] = abs(a[i] * b[i])
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
    found : float64[4]
        The value, how many are <= it, the distance of neighbours here (0 = unknown), and how many keys are <= lo;
        written.
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
            found[0], found[1], found[2], found[3] = t[4], within, 0.0, below
            return keys.itemsize == held.itemsize
        need = rank - below
        if t[3] > -np.inf and t[4] < np.inf and rounds <= _FLAT_ROUNDS:
            width = t[4] - t[3]
            half = width * ((1.2 * np.sqrt(inside) + 3.0) / inside)
            t[1] = t[3] + width * ((need - 0.5) / inside)
            t[0], t[2] = max(t[1] - half, t[3]), min(t[1] + half, t[4])
        else:
            m = _gather(keys, keys, t, _SAMPLE, held)
            _thresholds_that_occur(held, m, need / inside, rounds % 2 == 1, t)
        _count3(keys, t, counts)
    if b is None:
        m = _gather(keys, a, t, _FEW + _BLOCK, held)
    else:
        m = _gather_products(keys, a, b, t, held)
    _sort(held, m)
    at = rank - below
    while at < m and held[at] == held[at - 1]:
        at += 1
    found[0], found[1], found[2], found[3] = held[at - 1], below + at, (held[m - 1] - held[0]) / m, below
    return True


@kernel
def _sum_kept(a: FloatArray, b: FloatArray, threshold: float, lanes: FloatArray) -> float:
    """Return the sum of the products a[i] b[i] of size <= threshold, over fixed lanes."""
    n = len(a)
    lanes[:] = 0.0
    whole = n - n % _LANES
    for start in range(0, whole, _LANES):
        left, right = a[start : start + _LANES], b[start : start + _LANES]
        for k in range(_LANES):
            v = left[k] * right[k]
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
    m = _gather(keys, exact, t, _SAMPLE, held)
    t64[3] = -np.inf
    _thresholds_that_occur(held, m, (keep - found[3]) / (found[1] - found[3]), True, t64)
    _count3(exact, t64, counts)
    _order_statistic(exact, exact, None, keep, t64, counts, held, found)


@kernel
def _threshold(
    a: FloatArray,
    b: FloatArray,
    keep: int,
    hint: float,
    slope: float,
    keys: Keys,
    t: Keys,
    small: FloatArray,
    held: FloatArray,
) -> None:
    """Write the threshold of a pair, how many are not above it, and the slope there into small[2, :3]."""
    counts, found = small[1], small[2]
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


@kernel
def _mean_kept(a: FloatArray, b: FloatArray, keep: int, threshold: float, surplus: int, lanes: FloatArray) -> float:
    """Return the mean of the products of size <= threshold, without the last `surplus` of that very size."""
    total = _sum_kept(a, b, threshold, lanes)
    i = len(a) - 1
    while surplus > 0:
        # Among equal sizes a stable sort keeps the earlier rows.
        if abs(a[i] * b[i]) == threshold:
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
    keep = len(a) - n_trim
    if n_trim == 0:
        return _mean_kept(a, b, keep, np.inf, 0, lanes)
    _threshold(a, b, keep, 0.0, 0.0, keys, t, small, held)
    return _mean_kept(a, b, keep, small[2, 0], int(small[2, 1]) - keep, lanes)


@kernel
def _fill_pairs(
    columns: FloatArray, places: IntArray, keep: int, unsolved: IntArray, hints: FloatArray, out: FloatArray
) -> None:
    """Fill the pairs of columns of one tile."""
    n = columns.shape[1]
    keys, t = np.empty(n, dtype=np.float32), np.empty(5, dtype=np.float32)
    lanes, small, held = np.empty(_LANES), np.empty((3, 5)), np.empty(_SAMPLE + _BLOCK)
    for k in range(1, 1 + unsolved[0, 0]):
        a, b = columns[unsolved[k, 0]], columns[unsolved[k, 1]]
        i, j = places[unsolved[k, 0]], places[unsolved[k, 1]]
        _threshold(a, b, keep, hints[0, i, j], hints[1, i, j], keys, t, small, held)
        out[i, j] = out[j, i] = _mean_kept(a, b, keep, small[2, 0], int(small[2, 1]) - keep, lanes)
        hints[0, i, j], hints[1, i, j] = small[2, 0], small[2, 2]


@kernel
def trimmed_pairs(
    columns: FloatArray, places: IntArray, unsolved: IntArray, n_trim: int, hints: FloatArray, out: FloatArray
) -> None:
    """Fill the entries of the matrix of trimmed inner products that `trimmed_covariance` left.

    Parameters
    ----------
    columns : float64[m, n]
    places : int64[m]
    unsolved : int64[n_tiles, 1 + n, 2]
    n_trim : int
    hints : float64[2, p, p]
    out : float64[p, p]
        All as `trimmed_covariance` has them.
    """
    for t in range(len(unsolved)):
        _fill_pairs(columns, places, columns.shape[1] - n_trim, unsolved[t], hints, out)


@parallel_kernel
def trimmed_pairs_parallel(
    columns: FloatArray, places: IntArray, unsolved: IntArray, n_trim: int, hints: FloatArray, out: FloatArray
) -> None:
    """Fill what `trimmed_pairs` fills, bit for bit, on all of Numba's threads."""
    for t in prange(len(unsolved)):
        _fill_pairs(columns, places, columns.shape[1] - n_trim, unsolved[t], hints, out)
