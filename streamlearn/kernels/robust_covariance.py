"""Trimmed inner products of all pairs of columns, by counting instead of sorting.

The threshold of a pair is an order statistic. It is found by shrinking a bracket with exact counts, two or three
thresholds a pass: counts of a comparison vectorise, selection does not. Counted are sums of the rounded binary
logarithms of two sizes, in 16 bits. Once few are inside the bracket, the exact sizes of those that could be the
threshold are gathered. Pairs that such sums cannot tell, as those with many equal products, are left to
`robust_selection`. The sum of what is kept runs over 256 fixed lanes. So the result depends neither on the bracket's
start nor on the threads, and is that of a stable sort by size up to the rounding of the sum.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import FloatArray, IntArray
from streamlearn.kernels.jit import kernel, parallel_kernel, prange

_LANES = 256
_SAMPLE = 128
TILE = 4  # columns a side: the logarithms of eight columns of 10,000 rows are 160 kB
_STRETCH = 4 * _LANES  # rows whose products are added up for all pairs of a tile in turn: 64 kB of eight columns
_FLAT_ROUNDS = 3  # passes by interpolation before the bracket is cut in four
_OCTAVE = 512  # steps of a logarithm per doubling, as in `robust_columns`
_NATURAL = _OCTAVE / np.log(2.0)
_LEAST = -(2**14)  # the least logarithm: what is smaller has it too
_MARGIN = 2  # steps; a sum of two logarithms errs by less than 1.2, and so do its order statistics
_NEAR = 160  # products in the bracket whose middle ones are then looked for
_MOST = 512  # products that are gathered at most
_COUNTED = 2**14  # rows that are counted in 16 bits

Logs = NDArray[np.int16]
"""Sizes as `_OCTAVE` times their binary logarithms, rounded."""

Flags = NDArray[np.uint8]


@kernel
def _count_sums(a: Logs, b: Logs, t: IntArray, counts: IntArray) -> None:
    """Write how many sums a[i] + b[i] are < t[0], t[1], t[2] into `counts`."""
    t1, t2, t3 = np.int16(t[0]), np.int16(t[1]), np.int16(t[2])
    counts[:3] = 0
    for start in range(0, len(a), _COUNTED):
        left, right = a[start : start + _COUNTED], b[start : start + _COUNTED]
        c1 = c2 = c3 = np.int16(0)
        for i in range(len(left)):
            v = np.int16(left[i] + right[i])
            c1 = np.int16(c1 + (v < t1))
            c2 = np.int16(c2 + (v < t2))
            c3 = np.int16(c3 + (v < t3))
        counts[0] += c1
        counts[1] += c2
        counts[2] += c3


@kernel
def _flag_sums(a: Logs, b: Logs, first: int, last: int, flags: Flags) -> tuple[int, int]:
    """Write which sums a[i] + b[i] are in [first, last] into `flags`; return how many are below, and how many in.

    Row i is bit i // m of byte i % m, with m = len(flags): whole vectors of rows share a bit.
    """
    n, m = len(a), len(flags)
    lo, width = np.int16(first), np.uint16(last - first)
    below = inside = 0
    flags[:] = 0
    for start in range(0, n, m):
        bit = np.uint8(1 << (start // m))
        stop = min(start + m, n)
        for part in range(start, stop, _COUNTED):
            left, right = a[part : min(part + _COUNTED, stop)], b[part : min(part + _COUNTED, stop)]
            out = flags[part - start : part - start + len(left)]
            c1 = c2 = np.int16(0)
            for i in range(len(left)):
                v = np.int16(left[i] + right[i])
                c1 = np.int16(c1 + (v < lo))
                hit = np.uint16(np.int32(v) - lo) <= width
                c2 = np.int16(c2 + hit)
                out[i] |= bit if hit else np.uint8(0)
            below += int(c1)
            inside += int(c2)
    return below, inside


@kernel
def _flagged(flags: Flags, places: IntArray) -> int:
    """Write the rows with flags to the beginning of `places`; return how many there are.

    Without a branch on what is found: words of eight bytes, bytes, and rows, are each written behind the last one that
    counts.
    """
    words = flags.view(np.uint64)
    rows, hits, cells = places[: _MOST + 1], places[_MOST + 1 : 2 * _MOST + 2], places[2 * _MOST + 2 :]
    one, n_hits, n_cells, found = np.uint64(1), np.uint64(0), np.uint64(0), np.uint64(0)  # no index below zero
    for k in range(len(words)):
        hits[n_hits] = k
        n_hits += np.uint64(words[k] != 0)
    for h in range(n_hits):
        first = np.uint64(8 * hits[h])
        for k in range(8):
            cells[n_cells] = first + np.uint64(k)
            n_cells += np.uint64(flags[first + np.uint64(k)] != 0)
    for c in range(n_cells):
        bits = np.uint64(flags[np.uint64(cells[c])])
        for k in range(8):
            rows[found] = cells[c] + k * len(flags)
            found += (bits >> np.uint64(k)) & one
    return int(found)


@kernel
def _ranked(held: FloatArray, m: int, rank: int, found: FloatArray) -> bool:
    """Write the rank-th smallest of held[:m] into found[0]; return whether the next one is the same."""
    wide = -(-m // 16) * 16  # whole vectors
    held[m:wide] = np.inf
    values = held[:wide]
    lo, hi = -np.inf, np.inf
    for k in range(m):
        v = values[k]
        if v <= lo or v >= hi:
            continue
        less = same = 0
        for i in range(wide):
            less += values[i] < v
            same += values[i] <= v
        if same < rank:
            lo = v
        elif less >= rank:
            hi = v
        else:
            found[0] = v
            return same > rank
    return True


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
def _first_sums(
    a: Logs, b: Logs, rank: int, hint: float, slope: float, scale: float, held: FloatArray, t: IntArray
) -> None:
    """Write three thresholds around the rank-th smallest sum a + b into `t`: about the hint, else from a sample."""
    n = len(a)
    share = rank / n
    if slope > 0.0 and 1e-300 < hint * scale < 1e300:
        wide = slope / hint * _NATURAL * (2.0 * np.sqrt(2.0 * rank * (1.0 - share)) + 4.0)
        half = np.int64(min(wide, 8.0 * _OCTAVE)) + 1
        t[1] = np.int64(np.floor(_OCTAVE * np.log2(hint * scale)))
        t[0], t[2] = t[1] - half, t[1] + half
        return
    m = min(n, _SAMPLE)
    for i in range(m):
        held[i] = np.int64(a[i * (n // m)]) + np.int64(b[i * (n // m)])
    _sort(held, m)
    off = 2.5 * np.sqrt(m * share * (1.0 - share)) + 1.0
    t[0] = np.int64(held[max(int(m * share - off), 0)])
    t[1] = np.int64(held[min(int(m * share), m - 1)])
    t[2] = np.int64(held[min(int(m * share + off), m - 1)]) + 1


@kernel
def _bracket_of_sums(a: Logs, b: Logs, rank: int, t: IntArray, counts: IntArray) -> None:
    """Shrink a bracket about the rank-th smallest sum a + b until few are inside, or it is narrow.

    Parameters
    ----------
    t : int64[5]
        Three thresholds to start with; then t[3] <= that sum < t[4].
    counts : int64[5]
        How many are < t; changed.
    """
    t[3], t[4], counts[3], counts[4] = 2 * _LEAST, -2 * _LEAST - 1, 0, len(a)
    rounds = 0
    while True:
        for k in range(3):
            t[k] = min(max(t[k], t[3]), t[4])
        _count_sums(a, b, t, counts)
        rounds += 1
        for k in range(3):
            if counts[k] < rank:
                if t[k] > t[3]:
                    t[3], counts[3] = t[k], counts[k]
            elif t[k] < t[4]:
                t[4], counts[4] = t[k], counts[k]
        inside, width = counts[4] - counts[3], t[4] - t[3]
        if inside <= _NEAR or width <= 2 * _MARGIN:
            return
        if rounds <= _FLAT_ROUNDS and 0 < counts[3] and counts[4] < len(a):
            middle = t[3] + width * ((rank - counts[3] - 0.5) / inside)
            half = width * ((1.2 * np.sqrt(inside) + 3.0) / inside)
            t[0], t[1], t[2] = np.int64(middle - half), np.int64(middle), np.int64(middle + half) + 1
        else:
            for k in range(3):
                t[k] = t[3] + (width * (k + 1)) // 4


@kernel
def _threshold(
    a: FloatArray,
    b: FloatArray,
    logs_a: Logs,
    logs_b: Logs,
    scale: float,
    least: float,
    keep: int,
    hint: float,
    slope: float,
    flags: Flags,
    whole: IntArray,
    held: FloatArray,
    found: FloatArray,
) -> bool:
    """Write the threshold of a pair, and the slope there, into `found`; return False where it cannot be proved.

    The sums err by less than 1.2 steps, so all below `first` are less than a product whose own logarithm is above
    `first` + 0.2, and likewise at the other end. Sums up to `least` may err more, but are not above what they say.
    """
    t, counts, places = whole[:5], whole[5:10], whole[10:]
    _first_sums(logs_a, logs_b, keep, hint, slope, scale, held, t)
    _bracket_of_sums(logs_a, logs_b, keep, t, counts)
    for margin in range(_MARGIN, 4 * _MARGIN, _MARGIN):
        inside, width = counts[4] - counts[3], t[4] - t[3]
        middle = t[3] + width * ((keep - counts[3] - 0.5) / inside)
        half = width * ((1.2 * np.sqrt(inside) + 3.0) / inside)
        first = max(np.int64(np.floor(middle - half)), t[3]) - margin
        last = min(np.int64(np.ceil(middle + half)), t[4] - 1) + margin
        if first <= least or last > -2 * _LEAST - 1:
            return False
        below, within = _flag_sums(logs_a, logs_b, first, last, flags)
        within += below
        if below >= keep:
            t[4], counts[4] = first, below
        elif within < keep:
            t[3], counts[3] = last + 1, within
        elif within - below > _MOST:
            return False
        else:
            m = _flagged(flags, places)
            for k in range(m):
                held[k] = abs(a[places[k]] * b[places[k]])
            tied = _ranked(held, m, keep - below, found)
            at = _OCTAVE * np.log2(found[0] * scale)
            if not tied and first + 0.5 <= at <= last - 0.5:
                found[1] = found[0] * (last - first + 1) / (_NATURAL * (within - below))
                return True
    return False


@kernel
def _add_kept(a: FloatArray, b: FloatArray, threshold: float, lanes: FloatArray) -> None:
    """Add the products a[i] b[i] of size <= threshold to the lanes, of which each has every 256th row."""
    n = len(a)
    whole = n - n % _LANES
    for start in range(0, whole, _LANES):
        left, right = a[start : start + _LANES], b[start : start + _LANES]
        for k in range(_LANES):
            v = left[k] * right[k]
            lanes[k] += v if abs(v) <= threshold else 0.0
    for i in range(whole, n):
        v = a[i] * b[i]
        lanes[i - whole] += v if abs(v) <= threshold else 0.0


@kernel
def _sum_of_lanes(lanes: FloatArray) -> float:
    """Return the sum of the lanes, which are changed."""
    half = _LANES // 2
    while half:
        for k in range(half):
            lanes[k] += lanes[k + half]
        half //= 2
    return float(lanes[0])


@kernel
def _tile(
    columns: FloatArray,
    logs: Logs,
    scales: FloatArray,
    places: IntArray,
    keep: int,
    first: int,
    second: int,
    hints: FloatArray,
    unsolved: IntArray,
    out: FloatArray,
) -> None:
    """Fill the pairs of two groups of `TILE` columns, each pair once: all thresholds, then all sums."""
    n = columns.shape[1]
    lanes, held, found = np.zeros((TILE * TILE, _LANES)), np.empty(_MOST), np.empty(2)
    flags, whole = np.empty(-(-n // 512) * 64, dtype=np.uint8), np.empty(13 + 3 * _MOST, dtype=np.int64)
    pairs, thresholds = np.empty((TILE * TILE, 2), dtype=np.int64), np.empty(TILE * TILE)
    n_pairs = n_unsolved = 0
    for a in range(first, min(first + TILE, len(places))):
        for b in range(max(second, a), min(second + TILE, len(places))):
            i, j = places[a], places[b]
            if i < 0 or j < 0:
                continue
            scale, least = scales[0, i] * scales[0, j], _LEAST + max(scales[1, i], scales[1, j])
            hint, slope = hints[0, i, j], hints[1, i, j]
            found[0], found[1] = np.inf, 0.0
            if keep == n or (
                scale > 0.0
                and _threshold(
                    columns[a], columns[b], logs[i], logs[j], scale, least, keep, hint, slope, flags, whole, held, found
                )
            ):
                pairs[n_pairs, 0], pairs[n_pairs, 1], thresholds[n_pairs] = a, b, found[0]
                hints[0, i, j], hints[1, i, j] = found[0] if keep < n else 0.0, found[1]
                n_pairs += 1
            else:
                n_unsolved += 1
                unsolved[n_unsolved, 0], unsolved[n_unsolved, 1] = a, b
    unsolved[0, 0] = n_unsolved
    for start in range(0, n, _STRETCH):
        rows = slice(start, start + _STRETCH)
        for k in range(n_pairs):
            _add_kept(columns[pairs[k, 0]][rows], columns[pairs[k, 1]][rows], thresholds[k], lanes[k])
    for k in range(n_pairs):
        i, j = places[pairs[k, 0]], places[pairs[k, 1]]
        out[i, j] = out[j, i] = _sum_of_lanes(lanes[k]) / keep


@kernel
def trimmed_covariance(
    columns: FloatArray,
    logs: Logs,
    scales: FloatArray,
    places: IntArray,
    tiles: IntArray,
    n_trim: int,
    hints: FloatArray,
    unsolved: IntArray,
    out: FloatArray,
) -> None:
    """Fill entries of the matrix of trimmed inner products: mean of all products but the `n_trim` of largest size.

    Parameters
    ----------
    columns : float64[m, n]
        One variable a row, centred, without NaN, of size at most 1e150. Not all p need be there at once.
    logs : int16[p, n]
        Logarithms of the sizes of all, times their scales, as `centred_columns` writes them.
    scales : float64[2, p]
        Scales, 0 where there are no logarithms, and a bound of each one's. They save time and do not touch
        the result.
    places : int64[m]
        Row of the matrix that each stands for, or -1 for none.
    tiles : int64[n_tiles, 2]
        Where the groups of `TILE` variables begin whose pairs are to be filled, the lesser first.
    n_trim : int
        From 0 to n - 1.
    hints : float64[2, p, p]
        Thresholds and slopes of the last batch, zeros at first; changed. They save time and do not touch the result.
    unsolved : int64[n_tiles, 1 + TILE * TILE, 2]
        For each tile how many pairs are not filled, and the rows of `columns` that they are of; written.
    out : float64[p, p]
        Both triangles are written.
    """
    keep = columns.shape[1] - n_trim
    for t in range(len(tiles)):
        _tile(columns, logs, scales, places, keep, tiles[t, 0], tiles[t, 1], hints, unsolved[t], out)


@parallel_kernel
def trimmed_covariance_parallel(
    columns: FloatArray,
    logs: Logs,
    scales: FloatArray,
    places: IntArray,
    tiles: IntArray,
    n_trim: int,
    hints: FloatArray,
    unsolved: IntArray,
    out: FloatArray,
) -> None:
    """Fill what `trimmed_covariance` fills, bit for bit, on all of Numba's threads.

    Each gets a stretch of the list. A loop over the whole square that skips its lower half would give the first of two
    threads 72 % of the work.
    """
    for t in prange(len(tiles)):
        _tile(
            columns, logs, scales, places, columns.shape[1] - n_trim, tiles[t, 0], tiles[t, 1], hints, unsolved[t], out
        )
