"""Flattened trees and linear members: their votes on rows, without the library that fitted them.

Eight rows go down a tree together, always as far as its deepest leaf is: leaves lead to themselves, so nothing is asked
on the way and no branch is guessed wrong. A single row goes down eight trees together likewise.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import FloatArray, IntArray
from streamlearn.kernels.jit import kernel

Keys = NDArray[np.int32]

MEAN, LOGIT, SUM, CLIPPED_MEAN = 0, 1, 2, 3
"""Links from the leaf values of a group of trees to its vote."""
FIRST_TREE, STOP_TREE, N_VALUES, BASE, LINK, COLUMN = 0, 1, 2, 3, 4, 5
"""Columns of `groups`: trees, values a leaf, where they start, link, first column written."""
N_FIELDS = 6
CENTRE, SPREAD, MEAN_OF, SD_OF = 0, 1, 2, 3
"""Rows of `affine`: keys are those of (x - centre) / spread; linear members see ((x - c) / s - mean) / sd."""

_LARGEST = 3e38  # below the greatest float32, so that a clipped value is finite there
LANES = 8
"""Rows that go down a tree together."""
_BLOCKS = 16  # of eight rows: their keys and one tree fit into the nearest cache
N_SCRATCH = _BLOCKS * LANES
"""Leaves of one tree written at a time."""
LINEAR_CLIP = 8.0
"""Standardised values of linear members end here: one gross value cannot outvote all others."""


@kernel
def row_keys(X: FloatArray, affine: FloatArray, values: NDArray[np.float32]) -> None:
    """Write (x - centre) / spread as float32, clipped to finite and without negative zero.

    Parameters
    ----------
    X : float64[n_rows, n_features]
    affine : float64[4, n_features]
    values : float32[n_rows, n_features]
        Written. Seen as int32 they become keys by `order_keys`.
    """
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            v = (X[i, j] - affine[CENTRE, j]) / affine[SPREAD, j]
            values[i, j] = np.float32(min(max(v, -_LARGEST), _LARGEST)) + np.float32(0.0)


@kernel
def order_keys(bits: Keys) -> None:
    """Turn the bits of float32 numbers into integers of the same order, in place.

    Parameters
    ----------
    bits : int32[n_rows, n_features]
        Changed.
    """
    for i in range(bits.shape[0]):
        for j in range(bits.shape[1]):
            bits[i, j] ^= (bits[i, j] >> 31) & 0x7FFFFFFF


@kernel
def lay_out(keys: Keys, lanes: Keys) -> None:
    """Write the keys of rows in lanes of eight, feature by feature.

    Parameters
    ----------
    keys : int32[n_rows, n_features]
    lanes : int32[n_blocks, 8 n_features]
        The key of row 8 b + l and feature j goes to [b, 8 j + l]; written where there are rows.
    """
    for i in range(keys.shape[0]):
        block, lane = i // LANES, i % LANES
        for j in range(keys.shape[1]):
            lanes[block, LANES * j + lane] = keys[i, j]


@kernel
def _step(steps: Keys, at: np.uint64, x: Keys, lane: int) -> np.uint64:
    # Unsigned: a signed index costs a test for negative ones at every load.
    right = x[np.uint64(steps[at]) + np.uint64(lane)] > steps[at + np.uint64(1)]
    return np.uint64(steps[at + np.uint64(2)]) + (np.uint64(4) if right else np.uint64(0))


@kernel
def _leaves_of_blocks(steps: Keys, starts: Keys, t: int, lanes: Keys, first: int, stop: int, leaves: IntArray) -> None:
    """Write the leaves of the rows of some blocks in one tree; eight descents hide the latency of their loads."""
    root, depth, k, at = _root(starts, t), starts[t, 1], np.uint64(3), np.uint64(0)
    for block in range(first, stop):
        x = lanes[block]
        a = b = c = d = e = f = g = h = root
        for _ in range(depth):
            a, b, c, d = _step(steps, a, x, 0), _step(steps, b, x, 1), _step(steps, c, x, 2), _step(steps, d, x, 3)
            e, f, g, h = _step(steps, e, x, 4), _step(steps, f, x, 5), _step(steps, g, x, 6), _step(steps, h, x, 7)
        for place in (a, b, c, d, e, f, g, h):
            leaves[at] = steps[place + k]
            at += np.uint64(1)


@kernel
def _root(starts: Keys, t: int) -> np.uint64:
    return np.uint64(starts[t, 0])


@kernel
def _leaves_of_row(steps: Keys, starts: Keys, first: int, stop: int, x: Keys, leaves: IntArray) -> None:
    """Write the leaves of the row in lane 0, in each of the trees.

    Sixteen at a time: unlike those of a block of rows, the nodes of all trees do not stay in the nearest cache.
    """
    t, i, z = first, 0, np.uint64(3)
    while t + 16 <= stop:
        a, b, c, d = _root(starts, t), _root(starts, t + 1), _root(starts, t + 2), _root(starts, t + 3)
        e, f, g, h = _root(starts, t + 4), _root(starts, t + 5), _root(starts, t + 6), _root(starts, t + 7)
        k, m, n, p = _root(starts, t + 8), _root(starts, t + 9), _root(starts, t + 10), _root(starts, t + 11)
        q, r, s, v = _root(starts, t + 12), _root(starts, t + 13), _root(starts, t + 14), _root(starts, t + 15)
        for _ in range(starts[t : t + 16, 1].max()):
            a, b, c, d = _step(steps, a, x, 0), _step(steps, b, x, 0), _step(steps, c, x, 0), _step(steps, d, x, 0)
            e, f, g, h = _step(steps, e, x, 0), _step(steps, f, x, 0), _step(steps, g, x, 0), _step(steps, h, x, 0)
            k, m, n, p = _step(steps, k, x, 0), _step(steps, m, x, 0), _step(steps, n, x, 0), _step(steps, p, x, 0)
            q, r, s, v = _step(steps, q, x, 0), _step(steps, r, x, 0), _step(steps, s, x, 0), _step(steps, v, x, 0)
        for at in (a, b, c, d, e, f, g, h, k, m, n, p, q, r, s, v):
            leaves[i] = steps[at + z]
            i += 1
        t += 16
    while t < stop:
        a = _root(starts, t)
        for _ in range(starts[t, 1]):
            a = _step(steps, a, x, 0)
        leaves[i] = steps[a + z]
        i += 1
        t += 1


@kernel
def forest_leaves(steps: Keys, starts: Keys, lanes: Keys, scratch: IntArray, leaves: IntArray) -> None:
    """Write the leaf of every row in every tree.

    Parameters
    ----------
    steps, starts : int32[4 n_nodes], int32[n_trees, 2]
        As `streamlearn.kernels.nodes.descents` writes them.
    lanes : int32[n_blocks, 8 n_features]
    scratch : int64[128]
    leaves : int64[n_rows, n_trees]
        Index among the member's leaves; written.
    """
    for first in range(0, lanes.shape[0], _BLOCKS):
        stop = min(first + _BLOCKS, lanes.shape[0])
        rows = leaves[LANES * first : LANES * stop]
        for t in range(starts.shape[0]):
            _leaves_of_blocks(steps, starts, t, lanes, first, stop, scratch)
            for i in range(rows.shape[0]):
                rows[i, t] = scratch[i]


@kernel
def _add_values(values: FloatArray, leaves: IntArray, out: FloatArray) -> None:
    """Add to each row the values of its leaf."""
    k = np.uint64(out.shape[1])
    for i in range(out.shape[0]):
        at = np.uint64(leaves[i]) * k
        for c in range(out.shape[1]):
            out[i, c] += values[at + np.uint64(c)]


@kernel
def _linked(total: float, n_trees: int, link: int) -> float:
    if link == MEAN:
        return total / n_trees
    if link == LOGIT:
        return math.tanh(0.5 * total)
    if link == SUM:
        return total
    return min(max(total / n_trees, -1.0), 1.0)


@kernel
def tree_votes(
    steps: Keys,
    starts: Keys,
    values: FloatArray,
    groups: IntArray,
    offsets: FloatArray,
    lanes: Keys,
    leaves: IntArray,
    out: FloatArray,
) -> None:
    """Write the votes of groups of trees; sums run over the trees in order, for one row as for many.

    Parameters
    ----------
    steps, starts : int32[4 n_nodes], int32[n_trees, 2]
        As `streamlearn.kernels.nodes.descents` writes them.
    values : float64[n_values]
    groups : int64[n_groups, 6]
    offsets : float64[n_groups]
        Where the sums over the trees start: so they round as those of scikit-learn's boosting do.
    lanes : int32[n_blocks, 8 n_features]
        Keys of the rows, as `lay_out` writes them.
    leaves : int64[max(128, n_trees)]
        Scratch.
    out : float64[n_rows, n_columns]
        The groups' columns are written.
    """
    for block in range(0, lanes.shape[0], _BLOCKS):
        end = min(block + _BLOCKS, lanes.shape[0])
        rows = out[LANES * block : LANES * end]
        for g in range(groups.shape[0]):
            first, stop, k, column = groups[g, FIRST_TREE], groups[g, STOP_TREE], groups[g, N_VALUES], groups[g, COLUMN]
            part, own = rows[:, column : column + k], values[groups[g, BASE] :]
            part[:] = offsets[g]
            if out.shape[0] == 1:
                _leaves_of_row(steps, starts, first, stop, lanes[0], leaves)
                for t in range(stop - first):
                    for c in range(k):
                        part[0, c] += own[np.uint64(leaves[t] * k + c)]
            else:
                for t in range(first, stop):
                    _leaves_of_blocks(steps, starts, t, lanes, block, end, leaves)
                    _add_values(own, leaves, part)
            for i in range(part.shape[0]):
                for c in range(k):
                    part[i, c] = _linked(part[i, c], stop - first, groups[g, LINK])


@kernel
def linear_votes(
    X: FloatArray, affine: FloatArray, linear: FloatArray, z: FloatArray, first: int, out: FloatArray
) -> None:
    """Write tanh(t / 2) for t = bias + sum (w z + q z^2): votes of logistic and Gaussian members.

    Parameters
    ----------
    X : float64[n_rows, n_features]
    affine : float64[4, n_features]
    linear : float64[n_members, 1 + 2 n_features]
        bias, w, q of each.
    z : float64[n_features]
        Scratch.
    first : int
        First column written.
    out : float64[n_rows, n_columns]
    """
    m = X.shape[1]
    if linear.shape[0] == 0:
        return
    for i in range(X.shape[0]):
        for j in range(m):
            v = ((X[i, j] - affine[CENTRE, j]) / affine[SPREAD, j] - affine[MEAN_OF, j]) / affine[SD_OF, j]
            z[j] = min(max(v, -LINEAR_CLIP), LINEAR_CLIP)
        for a in range(linear.shape[0]):
            total = linear[a, 0]
            for j in range(m):
                total += z[j] * (linear[a, 1 + j] + linear[a, 1 + m + j] * z[j])
            out[i, first + a] = math.tanh(0.5 * total)


@kernel
def scores(
    X: FloatArray,
    affine: FloatArray,
    steps: Keys,
    starts: Keys,
    values: FloatArray,
    groups: IntArray,
    offsets: FloatArray,
    linear: FloatArray,
    weights: FloatArray,
    numbers: NDArray[np.float32],
    lanes: Keys,
    leaves: IntArray,
    z: FloatArray,
    votes: FloatArray,
    out: FloatArray,
) -> None:
    """Write the weighted sum of all members' votes.

    Parameters
    ----------
    X : float64[n_rows, n_features]
    affine, steps, starts, values, groups, offsets, linear
        As in `tree_votes` and `linear_votes`.
    weights : float64[n_columns]
        Columns of the trees first, then those of the linear members.
    numbers : float32[n_rows, n_features]
        Scratch.
    lanes : int32[n_blocks, 8 n_features]
        Scratch; blocks for all rows.
    leaves, z : int64[max(128, n_trees)], float64[n_features]
        Scratch.
    votes : float64[n_rows, n_columns]
        Written.
    out : float64[n_rows]
        Written.
    """
    row_keys(X, affine, numbers)
    keys = numbers.view(np.int32)
    order_keys(keys)
    lay_out(keys, lanes)
    tree_votes(steps, starts, values, groups, offsets, lanes, leaves, votes)
    linear_votes(X, affine, linear, z, len(weights) - linear.shape[0], votes)
    for i in range(X.shape[0]):
        total = 0.0
        for c in range(len(weights)):
            total += weights[c] * votes[i, c]
        out[i] = total
