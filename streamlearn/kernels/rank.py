"""Pair counts over a sliding window of (score, class) events: an ordered tree in flat arrays.

The tree is a treap (Seidel and Aragon 1996): a search tree in (score, slot) whose heap order in pseudo-random
priorities keeps the expected depth logarithmic whatever the scores do (sorted, tied, drifting). Node ``i + 1`` is
slot ``i`` of the window's ring and node 0 is the empty tree, so that its counts of 0 need no branch. All results are
integers and do not depend on the shape of the tree: a window rebuilt from its events equals one that never stopped.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamlearn.kernels.jit import kernel

ROOT, N_SEEN, HIGHER, LOWER, N_NEGATIVE, N_POSITIVE = 0, 1, 2, 3, 4, 5
"""Elements of `counters`. HIGHER (LOWER) counts the pairs whose positive is above (below) by more than tau."""
N_COUNTERS = 6

Floats = NDArray[np.float64]
Ints32 = NDArray[np.int32]
WindowArrays = tuple[NDArray[np.int64], Floats, Ints32, Ints32, Ints32, Ints32, NDArray[np.int8]]


@kernel
def _priority(n: int) -> int:
    """Return 31 pseudo-random bits for event number n: two rounds of a 31-bit multiply and shift."""
    x = (n * 0x2C1B3C6D + 0x12345678) & 0x7FFFFFFF
    x = ((x ^ (x >> 15)) * 0x297A2D39) & 0x7FFFFFFF
    x = ((x ^ (x >> 12)) * 0x2C1B3C6D) & 0x7FFFFFFF
    return x ^ (x >> 15)


@kernel
def _pairs(
    root: int, keys: Floats, links: Ints32, below: Ints32, score: float, code: int, tau: float
) -> tuple[int, int]:
    """Count the opposite class of `score` in the tree: how many lie lower, and higher, by more than tau.

    The test is on the rounded difference itself, which is monotone in the key, so that a pair counts alike whichever of
    its two events came first.
    """
    other = 1 - code
    lower = 0
    higher = 0
    a = root
    b = root
    while a | b:
        # Both searches run together and without branches: half of the branches would be mispredicted, and two
        # independent chains of loads overlap. At the empty node 0 a search stands still and adds 0.
        up = 1 if score - keys[a] > tau else 0
        right = links[a, 1]
        lower += up * (below[a, other] - below[right, other])
        a = right if up else links[a, 0]
        down = 1 if keys[b] - score > tau else 0
        left = links[b, 0]
        higher += down * (below[b, other] - below[left, other])
        b = left if down else links[b, 1]
    return lower, higher


@kernel
def _rotate_up(links: Ints32, below: Ints32, parent: int, child: int) -> None:
    """Make `child` the parent of `parent`; both keep their counts right. The caller mends the link from above."""
    side = 1 if links[parent, 1] == child else 0
    moved = links[child, 1 - side]
    for c in range(2):
        total = below[parent, c]
        below[parent, c] += below[moved, c] - below[child, c]
        below[child, c] = total
    links[parent, side] = moved
    links[child, 1 - side] = parent


@kernel
def _insert(
    root: int, keys: Floats, links: Ints32, below: Ints32, priorities: Ints32, path: Ints32, new: int, code: int
) -> int:
    """Put node `new` (key and priority already set) into the tree; return the root."""
    score = keys[new]
    links[new, 0] = 0
    links[new, 1] = 0
    below[new, code] = 1
    below[new, 1 - code] = 0
    depth = 0
    node = root
    side = 0
    while node:
        below[node, code] += 1
        path[depth] = node
        depth += 1
        side = 1 if (keys[node] < score) | ((keys[node] == score) & (node < new)) else 0
        node = links[node, side]
    if depth == 0:
        return new
    links[path[depth - 1], side] = new
    while depth > 0 and priorities[path[depth - 1]] < priorities[new]:
        depth -= 1
        parent = path[depth]
        _rotate_up(links, below, parent, new)
        if depth == 0:
            return new
        above = path[depth - 1]
        links[above, 1 if links[above, 1] == parent else 0] = new
    return root


@kernel
def _remove(root: int, keys: Floats, links: Ints32, below: Ints32, priorities: Ints32, old: int, code: int) -> int:
    """Take node `old` out of the tree; return the root."""
    score = keys[old]
    above = 0
    node = root
    while node != old:
        below[node, code] -= 1
        above = node
        node = links[node, 1 if (keys[node] < score) | ((keys[node] == score) & (node < old)) else 0]
    while links[old, 0] and links[old, 1]:
        left, right = links[old, 0], links[old, 1]
        child = left if priorities[left] > priorities[right] else right
        _rotate_up(links, below, old, child)
        below[child, code] -= 1
        if above:
            links[above, 1 if links[above, 1] == old else 0] = child
        else:
            root = child
        above = child
    child = int(links[old, 0] + links[old, 1])
    if above == 0:
        return child
    links[above, 1 if links[above, 1] == old else 0] = child
    return root


@kernel
def window_add(
    counters: NDArray[np.int64],
    keys: Floats,
    links: Ints32,
    below: Ints32,
    priorities: Ints32,
    path: Ints32,
    ring: NDArray[np.int8],
    codes: NDArray[np.int8],
    scores: Floats,
    tau: float,
) -> None:
    """Move the window over the events, oldest out and newest in, keeping both pair counts.

    Parameters
    ----------
    counters : int64[6]
        Updated in place: root, events seen, HIGHER and LOWER pairs, negatives and positives in the window.
    keys : float64[window + 1]
        Score of each node, updated in place; element 0 belongs to the empty tree, as in all node arrays.
    links : int32[window + 1, 2]
        Left and right child, updated in place.
    below : int32[window + 1, 2]
        Negatives and positives in the subtree, updated in place.
    priorities : int32[window + 1]
        Updated in place.
    path : int32[window + 1]
        Scratch.
    ring : int8[window]
        Class of each slot, updated in place.
    codes : int8[n]
        1 or 0.
    scores : float64[n]
        No NaN.
    tau : float
        Pairs whose scores differ by no more than this count neither way.
    """
    window = ring.shape[0]
    root = counters[ROOT]
    for i in range(codes.shape[0]):
        slot = counters[N_SEEN] % window
        node = slot + 1
        if counters[N_SEEN] >= window:
            old_code = ring[slot]
            root = _remove(root, keys, links, below, priorities, node, old_code)
            lower, higher = _pairs(root, keys, links, below, keys[node], old_code, tau)
            counters[HIGHER] -= lower if old_code == 1 else higher
            counters[LOWER] -= higher if old_code == 1 else lower
            counters[N_NEGATIVE + old_code] -= 1
        code = codes[i]
        lower, higher = _pairs(root, keys, links, below, scores[i], code, tau)
        counters[HIGHER] += lower if code == 1 else higher
        counters[LOWER] += higher if code == 1 else lower
        counters[N_NEGATIVE + code] += 1
        keys[node] = scores[i]
        ring[slot] = code
        priorities[node] = _priority(counters[N_SEEN])
        root = _insert(root, keys, links, below, priorities, path, node, code)
        counters[N_SEEN] += 1
    counters[ROOT] = root


def empty_window(window: int) -> WindowArrays:
    """Return the arrays of an empty window in the order `window_add` takes them (without `codes`, `scores`, `tau`).

    Returns
    -------
    tuple of arrays
        counters, keys, links, below, priorities, path, ring: about 33 bytes an event of the window.
    """
    n_nodes = window + 1
    return (
        np.zeros(N_COUNTERS, np.int64),
        np.zeros(n_nodes, np.float64),
        np.zeros((n_nodes, 2), np.int32),
        np.zeros((n_nodes, 2), np.int32),
        np.zeros(n_nodes, np.int32),
        np.zeros(n_nodes, np.int32),
        np.zeros(window, np.int8),
    )
