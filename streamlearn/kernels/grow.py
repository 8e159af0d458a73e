"""Growing trees by weighted squared error, straight into the layout in which they vote.

For two classes coded 1 and -1 squared error is half of the Gini impurity, so one grower makes the trees of random
forests (Breiman 2001), extremely randomised trees (Geurts, Ernst and Wehenkel 2006), weighted classification trees
and regression trees. Features come as dense ranks: a large node is split from sums by rank, without sorting; a small
one sorts its few ranks. All sums change sign exactly with the labels, so exchanged classes give the same tree.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import FloatArray, IntArray
from streamlearn.kernels.jit import kernel

Ints32 = NDArray[np.int32]
Floats32 = NDArray[np.float32]

_NO_KEY = 2147483647
_DRAWS = 1 << 40  # beyond all counts of splits
_BINS_A_ROW = 4  # up to so many ranks a row, sums by rank are cheaper than a sort


@kernel
def mixed(seed: np.uint64, count: int) -> np.uint64:
    """Return 64 pseudo-random bits for a seed and a count: splitmix64 (Steele, Lea and Flood 2014).

    Parameters
    ----------
    seed : uint64
    count : int
    """
    # Products wrap around: the constants are odd, so that every step is a bijection.
    x = seed * np.uint64(0xD1342543DE82EF95) + np.uint64(count) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@kernel
def _unit(bits: np.uint64) -> float:
    return float(bits >> np.uint64(11)) * 2.0**-53


@kernel
def rank_values(values: Floats32, ranks: Ints32, distinct: Floats32, n_distinct: IntArray) -> None:
    """Write dense ranks of each feature and the values that they stand for.

    Parameters
    ----------
    values : float32[n_rows, n_features]
    ranks : int32[n_features, n_rows]
        Written.
    distinct : float32[n_features, n_rows]
        Increasing; written up to `n_distinct`.
    n_distinct : int64[n_features]
        Written.
    """
    n = values.shape[0]
    for j in range(values.shape[1]):
        order = np.argsort(values[:, j], kind="mergesort")
        top = -1
        for o in range(n):
            v = values[order[o], j]
            if top < 0 or v > distinct[j, top]:
                top += 1
                distinct[j, top] = v
            ranks[j, order[o]] = top
        n_distinct[j] = top + 1


@kernel
def _key(x: np.float32, bits: Floats32) -> int:
    """Return a float32 as an integer of the same order."""
    bits[0] = x + np.float32(0.0)
    k = bits.view(np.int32)[0]
    return int(k ^ ((k >> 31) & 0x7FFFFFFF))


@kernel
def _best_split(
    ranks: Ints32,
    distinct: Floats32,
    bins: int,
    rows: IntArray,
    w: FloatArray,
    y: FloatArray,
    total_w: float,
    total: float,
    least: int,
    sums: FloatArray,
    packed: IntArray,
) -> tuple[float, int, int]:
    """Return the score of the best split of one feature and the ranks on its two sides; rank -1 where there is none.

    Parameters
    ----------
    ranks : int32[n_rows]
    distinct : float32[n_rows]
    bins : int
    rows : int64[n_node]
    w, y : float64[n_rows]
    total_w, total : float
        Sums of w and w y over the node.
    least : int
        Rows that each side keeps.
    sums : float64[3, n_rows]
        Zero; scratch, zero again afterwards.
    packed : int64[n_rows]
        Scratch.
    """
    n = len(rows)
    best, below, above = -np.inf, -1, -1
    a, a_w, a_sum, last = 0.0, 0.0, 0.0, -1
    if bins <= _BINS_A_ROW * n:
        for o in range(n):
            i = rows[o]
            r = ranks[i]
            sums[0, r] += 1.0
            sums[1, r] += w[i]
            sums[2, r] += w[i] * y[i]
        for r in range(bins):
            here = sums[0, r]
            if here == 0.0:
                continue
            if a >= least and n - a >= least:
                rest_w, rest = total_w - a_w, total - a_sum
                score = a_sum * a_sum / a_w + rest * rest / rest_w
                if score > best:
                    best, below, above = score, last, r
            a += here
            a_w += sums[1, r]
            a_sum += sums[2, r]
            last = r
            sums[0, r] = 0.0
            sums[1, r] = 0.0
            sums[2, r] = 0.0
        return best, below, above
    for o in range(n):
        packed[o] = (np.int64(ranks[rows[o]]) << 32) | o
    gap = 1
    while gap * 3 < n:
        gap = gap * 3 + 1
    while gap > 0:  # Shell's sort: no allocation, and on so few numbers faster than the library's
        for o in range(gap, n):
            moved = packed[o]
            k = o
            while k >= gap and packed[k - gap] > moved:
                packed[k] = packed[k - gap]
                k -= gap
            packed[k] = moved
        gap //= 3
    for o in range(n):
        r = packed[o] >> 32
        i = rows[packed[o] & 0xFFFFFFFF]
        if r > last and a >= least and n - a >= least:
            rest_w, rest = total_w - a_w, total - a_sum
            score = a_sum * a_sum / a_w + rest * rest / rest_w
            if score > best:
                best, below, above = score, last, r
        a += 1.0
        a_w += w[i]
        a_sum += w[i] * y[i]
        last = r
    return best, below, above


@kernel
def _random_split(
    values: Floats32,
    feature: int,
    rows: IntArray,
    w: FloatArray,
    y: FloatArray,
    low: float,
    high: float,
    total_w: float,
    total: float,
    least: int,
    draw: float,
) -> tuple[float, float]:
    """Return the score of one random threshold between the ends of a feature, and the threshold."""
    threshold = low + draw * (high - low)
    if threshold >= high:
        threshold = low
    a, a_w, a_sum = 0, 0.0, 0.0
    for o in range(len(rows)):
        i = rows[o]
        if np.float64(values[i, feature]) <= threshold:
            a += 1
            a_w += w[i]
            a_sum += w[i] * y[i]
    if a < least or len(rows) - a < least:
        return -np.inf, threshold
    rest = total - a_sum
    return a_sum * a_sum / a_w + rest * rest / (total_w - a_w), threshold


@kernel
def grow_tree(
    values: Floats32,
    ranks: Ints32,
    distinct: Floats32,
    n_distinct: IntArray,
    rows: IntArray,
    w: FloatArray,
    y: FloatArray,
    seed: np.uint64,
    n_try: int,
    least: int,
    deepest: int,
    random_thresholds: bool,
    base: int,
    leaf_base: int,
    nodes: Ints32,
    means: FloatArray,
    weights: FloatArray,
    sums: FloatArray,
    packed: IntArray,
    perm: IntArray,
    stack: IntArray,
) -> tuple[int, int]:
    """Grow one tree on rows of positive weight; return its numbers of nodes and leaves.

    Parameters
    ----------
    values : float32[n_rows, n_features]
    ranks, distinct, n_distinct
        As `rank_values` writes them.
    rows : int64[n_used]
        Reordered.
    w, y : float64[n_rows]
    seed : uint64
    n_try : int
        Features drawn for each split; drawing goes on while all of them are constant.
    least : int
        Rows in a leaf.
    deepest : int
        Depth of the deepest leaf allowed.
    random_thresholds : bool
        One random threshold a feature instead of the best one.
    base, leaf_base : int
        Index of the root in the whole table and of the first leaf.
    nodes : int32[>= 2 n_used - 1, 4]
        The table from `base` on; written.
    means, weights : float64[same]
        Mean y and weight of each node; written.
    sums : float64[3, n_rows]
        Zero; scratch.
    packed, perm, stack : int64[n_rows], int64[n_features], int64[n_used + 2, 4]
        Scratch.
    """
    m = values.shape[1]
    bits = np.zeros(1, dtype=np.float32)
    for j in range(m):
        perm[j] = j
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = 0, len(rows), 0, 0
    waiting, n_nodes, n_leaves, draws = 1, 1, 0, 0
    while waiting > 0:
        waiting -= 1
        start, stop, node, depth = stack[waiting, 0], stack[waiting, 1], stack[waiting, 2], stack[waiting, 3]
        mine = rows[start:stop]
        total_w, total = 0.0, 0.0
        smallest, largest = np.inf, -np.inf
        for o in range(len(mine)):
            i = mine[o]
            total_w += w[i]
            total += w[i] * y[i]
            smallest = min(smallest, y[i])
            largest = max(largest, y[i])
        means[node] = total / total_w
        weights[node] = total_w
        best, feature, threshold = -np.inf, -1, 0.0
        if smallest < largest and len(mine) >= 2 * least and depth < deepest:
            tried, constant = 0, 0
            while tried < m and (tried < n_try or tried <= constant):
                draws += 1
                pick = tried + int(_unit(mixed(seed, draws)) * (m - tried))
                j = perm[pick]
                perm[pick] = perm[tried]
                perm[tried] = j
                tried += 1
                low, high = ranks[j, mine[0]], ranks[j, mine[0]]
                for o in range(1, len(mine)):
                    low = min(low, ranks[j, mine[o]])
                    high = max(high, ranks[j, mine[o]])
                if low == high:
                    constant += 1
                    continue
                if random_thresholds:
                    draws += 1
                    score, cut = _random_split(
                        values,
                        j,
                        mine,
                        w,
                        y,
                        np.float64(distinct[j, low]),
                        np.float64(distinct[j, high]),
                        total_w,
                        total,
                        least,
                        _unit(mixed(seed, draws)),
                    )
                else:
                    score, below, above = _best_split(
                        ranks[j], distinct[j], n_distinct[j], mine, w, y, total_w, total, least, sums, packed
                    )
                    cut = 0.0
                    if below >= 0:
                        under, over = np.float64(distinct[j, below]), np.float64(distinct[j, above])
                        cut = 0.5 * (under + over)
                        if cut >= over:
                            cut = under
                if score > best:
                    best, feature, threshold = score, j, cut
        if feature < 0:
            nodes[node, 0], nodes[node, 1] = 0, _NO_KEY
            nodes[node, 2], nodes[node, 3] = base + node, leaf_base + n_leaves
            n_leaves += 1
            continue
        middle, end = start, stop
        while middle < end:
            if np.float64(values[rows[middle], feature]) <= threshold:
                middle += 1
            else:
                end -= 1
                rows[middle], rows[end] = rows[end], rows[middle]
        rounded = np.float32(threshold)
        key = _key(rounded, bits)
        if np.float64(rounded) > threshold:
            key -= 1
        nodes[node, 0], nodes[node, 1] = feature, key
        nodes[node, 2], nodes[node, 3] = base + n_nodes, -1
        for side in range(2):
            stack[waiting, 0] = middle if side == 0 else start
            stack[waiting, 1] = stop if side == 0 else middle
            stack[waiting, 2] = n_nodes + 1 - side
            stack[waiting, 3] = depth + 1
            waiting += 1
        n_nodes += 2
    return n_nodes, n_leaves


@kernel
def grow_forest(
    values: Floats32,
    ranks: Ints32,
    distinct: Floats32,
    n_distinct: IntArray,
    w: FloatArray,
    n_bootstrap: int,
    y: FloatArray,
    seed: np.uint64,
    n_try: int,
    least: int,
    deepest: int,
    random_thresholds: bool,
    nodes: Ints32,
    roots: Ints32,
    means: FloatArray,
    weights: FloatArray,
    used: NDArray[np.bool_],
) -> int:
    """Grow trees on bootstrap samples of the first rows and all of the others; return the number of nodes.

    Parameters
    ----------
    values, ranks, distinct, n_distinct, y, n_try, least, deepest, random_thresholds
        As in `grow_tree`.
    w : float64[n_rows]
        Weight of each row; times how often it was drawn, among the first.
    n_bootstrap : int
        So many of the first rows are drawn with replacement; 0 = every tree sees every row once.
    seed : uint64
    nodes : int32[capacity, 4]
        Capacity of (2 n_rows - 1) nodes a tree; written.
    roots : int32[n_trees]
        Written.
    means, weights : float64[capacity]
        Written.
    used : bool[n_rows, n_trees]
        Rows that each tree saw; written.
    """
    n, m = values.shape
    rows = np.empty(n, dtype=np.int64)
    times = np.empty(n)
    sums = np.zeros((3, n))
    packed = np.empty(n, dtype=np.int64)
    perm = np.empty(m, dtype=np.int64)
    stack = np.empty((n + 2, 4), dtype=np.int64)
    at, n_leaves = 0, 0
    for t in range(len(roots)):
        own = mixed(seed, t)
        draw_seed = mixed(own, _DRAWS)
        for i in range(n):
            times[i] = 0.0 if i < n_bootstrap else w[i]
        for k in range(n_bootstrap):
            i = int(_unit(mixed(draw_seed, k)) * n_bootstrap)
            times[i] += w[i]
        n_used = 0
        for i in range(n):
            used[i, t] = times[i] > 0.0
            if times[i] > 0.0:
                rows[n_used] = i
                n_used += 1
        roots[t] = at
        n_nodes, leaves = grow_tree(
            values,
            ranks,
            distinct,
            n_distinct,
            rows[:n_used],
            times,
            y,
            own,
            n_try,
            least,
            deepest,
            random_thresholds,
            at,
            n_leaves,
            nodes[at:],
            means[at:],
            weights[at:],
            sums,
            packed,
            perm,
            stack,
        )
        at += n_nodes
        n_leaves += leaves
    return at
