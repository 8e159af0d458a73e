"""Flattened trees and linear members: their votes on rows, without the library that fitted them.

Rows lie in tiles of 128, feature by feature. The first three levels of a tree are compared for a whole tile at once, a
vector of rows at a time; below, eight rows go down together, always as far as the deepest leaf is: leaves lead to
themselves, so nothing is asked on the way and no branch is guessed wrong. A single row goes down sixteen trees together
likewise.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import FloatArray, IntArray
from streamlearn.kernels.jit import kernel

Keys = NDArray[np.int32]
Words = NDArray[np.uint32] | NDArray[np.uint64]
Tiles = NDArray[np.uint32]

MEAN, LOGIT, SUM, CLIPPED_MEAN = 0, 1, 2, 3
"""Links from the leaf values of a group of trees to its vote."""
FIRST_TREE, STOP_TREE, N_VALUES, BASE, LINK, COLUMN = 0, 1, 2, 3, 4, 5
"""Columns of `groups`: trees, values a leaf, where they start, link, first column written."""
N_FIELDS = 6
CENTRE, SPREAD, MEAN_OF, SD_OF = 0, 1, 2, 3
"""Rows of `affine`: keys are those of (x - centre) / spread; linear members see ((x - c) / s - mean) / sd."""

_LARGEST = 3e38  # below the greatest float32, so that a clipped value is finite there
TILE = 128
"""Rows of a tile: their keys and one tree fit into the nearest cache."""
_LANES = 8
_ROW_LANES = 16  # of one row in many trees, whose nodes do not stay in the nearest cache
_TOP_LEVELS, _TOP_NODES = 3, 7
_SIGN = np.uint32(0x80000000)
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
def lay_out(keys: Keys, tiles: Tiles) -> None:
    """Write the keys of rows in tiles, feature by feature, as unsigned numbers of the same order.

    Parameters
    ----------
    keys : int32[n_rows, n_features]
    tiles : uint32[n_tiles, 128 n_features]
        The key of row 128 t + r and feature j goes to [t, 128 j + r]; written where there are rows.
    """
    for i in range(keys.shape[0]):
        for j in range(keys.shape[1]):
            tiles[i // TILE, TILE * j + i % TILE] = np.uint32(keys[i, j]) ^ _SIGN


@kernel
def _step(steps: Words, at: np.uint64, x: Tiles, lane: int) -> np.uint64:
    """Return the child of a node that a row goes to; unsigned: a signed index costs a test at every load."""
    word, half = np.uint64(steps[np.uint64(2) * at]), np.uint64(np.iinfo(steps.dtype).bits // 2)
    feature = word & ((np.uint64(1) << half) - np.uint64(1))
    right = np.uint64(x[feature + np.uint64(lane)]) > np.uint64(steps[np.uint64(2) * at + np.uint64(1)])
    return at + (word >> half) + np.uint64(right)


@kernel
def _row_step(steps: Words, at: np.uint64, x: Tiles) -> np.uint64:
    """Like `_step`, for one row whose keys lie side by side."""
    word, half = np.uint64(steps[np.uint64(2) * at]), np.uint64(np.iinfo(steps.dtype).bits // 2)
    feature = (word & ((np.uint64(1) << half) - np.uint64(1))) // np.uint64(TILE)
    right = np.uint64(x[feature]) > np.uint64(steps[np.uint64(2) * at + np.uint64(1)])
    return at + (word >> half) + np.uint64(right)


@kernel
def _first_levels(top: Tiles, x: Tiles, n: int, octants: Tiles) -> None:
    """Write which of the eight nodes of the fourth level each row of a tile comes to."""
    xa, xb, xc, xd = x[top[0] :], x[top[1] :], x[top[2] :], x[top[3] :]
    xe, xf, xg = x[top[4] :], x[top[5] :], x[top[6] :]
    ka, kb, kc, kd, ke, kf, kg = top[7], top[8], top[9], top[10], top[11], top[12], top[13]
    for r in range(n):
        d, e, f, g = np.uint32(xd[r] > kd), np.uint32(xe[r] > ke), np.uint32(xf[r] > kf), np.uint32(xg[r] > kg)
        left = e + np.uint32(2) if xb[r] > kb else d
        right = g + np.uint32(6) if xc[r] > kc else f + np.uint32(4)
        octants[r] = right if xa[r] > ka else left


@kernel
def _enter(below: Tiles, octants: Tiles, lane: int) -> np.uint64:
    return np.uint64(below[np.uint64(octants[lane])])


@kernel
def _leaves_of_tile(steps: Words, start: Keys, top: Tiles, x: Tiles, n: int, octants: Tiles, leaves: IntArray) -> None:
    """Write the leaves of the first rows of a tile in one tree, counted from its root.

    Eight descents hide the latency of their loads.
    """
    _first_levels(top, x, n, octants)
    own, low = steps[2 * start[0] :], top[2 * _TOP_NODES :]
    for first in range(0, n, _LANES):
        y, o, out = x[first:], octants[first:], leaves[first:]
        a, b, c, d = _enter(low, o, 0), _enter(low, o, 1), _enter(low, o, 2), _enter(low, o, 3)
        e, f, g, h = _enter(low, o, 4), _enter(low, o, 5), _enter(low, o, 6), _enter(low, o, 7)
        for _ in range(start[1] - _TOP_LEVELS):
            a, b, c, d = _step(own, a, y, 0), _step(own, b, y, 1), _step(own, c, y, 2), _step(own, d, y, 3)
            e, f, g, h = _step(own, e, y, 4), _step(own, f, y, 5), _step(own, g, y, 6), _step(own, h, y, 7)
        out[0], out[1], out[2], out[3], out[4], out[5], out[6], out[7] = a, b, c, d, e, f, g, h


@kernel
def _root(starts: Keys, t: int, stop: int) -> np.uint64:
    return np.uint64(starts[min(t, stop - 1), 0])


@kernel
def _leaves_of_row(steps: Words, starts: Keys, first: int, stop: int, x: Tiles, leaves: IntArray) -> None:
    """Write the leaf of a row in each of the trees, counted from the first of all nodes; the last tree fills up."""
    for t in range(first, stop, _ROW_LANES):
        a, b, c = _root(starts, t, stop), _root(starts, t + 1, stop), _root(starts, t + 2, stop)
        d, e, f = _root(starts, t + 3, stop), _root(starts, t + 4, stop), _root(starts, t + 5, stop)
        g, h, k = _root(starts, t + 6, stop), _root(starts, t + 7, stop), _root(starts, t + 8, stop)
        m, n, p = _root(starts, t + 9, stop), _root(starts, t + 10, stop), _root(starts, t + 11, stop)
        q, r, s = _root(starts, t + 12, stop), _root(starts, t + 13, stop), _root(starts, t + 14, stop)
        v = _root(starts, t + 15, stop)
        for _ in range(starts[t : min(t + _ROW_LANES, stop), 1].max()):
            a, b, c, d = _row_step(steps, a, x), _row_step(steps, b, x), _row_step(steps, c, x), _row_step(steps, d, x)
            e, f, g, h = _row_step(steps, e, x), _row_step(steps, f, x), _row_step(steps, g, x), _row_step(steps, h, x)
            k, m, n, p = _row_step(steps, k, x), _row_step(steps, m, x), _row_step(steps, n, x), _row_step(steps, p, x)
            q, r, s, v = _row_step(steps, q, x), _row_step(steps, r, x), _row_step(steps, s, x), _row_step(steps, v, x)
        i = t - first
        for at in (a, b, c, d, e, f, g, h, k, m, n, p, q, r, s, v):
            if i < stop - first:
                leaves[i] = at
            i += 1


@kernel
def forest_leaves(
    steps: Words, starts: Keys, tops: Tiles, tiles: Tiles, octants: Tiles, scratch: IntArray, leaves: IntArray
) -> None:
    """Write the leaf of every row in every tree.

    Parameters
    ----------
    steps, starts, tops
        As `streamlearn.kernels.nodes.descents` writes them.
    tiles : uint32[n_tiles, 128 n_features]
    octants, scratch : uint32[128], int64[128]
    leaves : int64[n_rows, n_trees]
        Index among all nodes; written.
    """
    for first in range(0, leaves.shape[0], TILE):
        rows = leaves[first : first + TILE]
        n = _in_lanes(rows.shape[0])
        for t in range(starts.shape[0]):
            _leaves_of_tile(steps, starts[t], tops[t], tiles[first // TILE], n, octants, scratch)
            for i in range(rows.shape[0]):
                rows[i, t] = starts[t, 0] + scratch[i]


@kernel
def _in_lanes(n: int) -> int:
    return (n + _LANES - 1) // _LANES * _LANES


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
    steps: Words,
    starts: Keys,
    tops: Tiles,
    values: FloatArray,
    groups: IntArray,
    offsets: FloatArray,
    tiles: Tiles,
    octants: Tiles,
    leaves: IntArray,
    out: FloatArray,
) -> None:
    """Write the votes of groups of trees; sums run over the trees in order, for one row as for many.

    Parameters
    ----------
    steps, starts, tops
        As `streamlearn.kernels.nodes.descents` writes them.
    values : float64[n_values]
        Of all nodes, inner ones included: as many a node as `groups` says.
    groups : int64[n_groups, 6]
    offsets : float64[n_groups]
        Where the sums over the trees start: so they round as those of scikit-learn's boosting do.
    tiles : uint32[n_tiles, 128 n_features]
        Keys of the rows, as `lay_out` writes them.
    octants, leaves : uint32[128], int64[128]
        Scratch.
    out : float64[n_rows, n_columns]
        The groups' columns are written.
    """
    for row in range(0, out.shape[0], TILE):
        rows, tile = out[row : row + TILE], tiles[row // TILE]
        n = _in_lanes(rows.shape[0])
        for g in range(groups.shape[0]):
            first, stop, k, column = groups[g, FIRST_TREE], groups[g, STOP_TREE], groups[g, N_VALUES], groups[g, COLUMN]
            part = rows[:, column : column + k]
            part[:] = offsets[g]
            for t in range(first, stop):
                _leaves_of_tile(steps, starts[t], tops[t], tile, n, octants, leaves)
                _add_values(values[groups[g, BASE] + k * (starts[t, 0] - starts[first, 0]) :], leaves, part)
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
    steps: Words,
    starts: Keys,
    tops: Tiles,
    values: FloatArray,
    groups: IntArray,
    offsets: FloatArray,
    linear: FloatArray,
    weights: FloatArray,
    numbers: NDArray[np.float32],
    tiles: Tiles,
    octants: Tiles,
    leaves: IntArray,
    z: FloatArray,
    votes: FloatArray,
    out: FloatArray,
) -> None:
    """Write the weighted sum of all members' votes.

    Parameters
    ----------
    X : float64[n_rows, n_features]
    affine, steps, starts, tops, values, groups, offsets, linear
        As in `tree_votes` and `linear_votes`.
    weights : float64[n_columns]
        Columns of the trees first, then those of the linear members.
    numbers, tiles : float32[n_rows, n_features], uint32[n_tiles, 128 n_features]
        Scratch; tiles for all rows.
    octants, leaves, z : uint32[128], int64[128], float64[n_features]
        Scratch.
    votes, out : float64[n_rows, n_columns], float64[n_rows]
        Written.
    """
    row_keys(X, affine, numbers)
    keys = numbers.view(np.int32)
    order_keys(keys)
    lay_out(keys, tiles)
    tree_votes(steps, starts, tops, values, groups, offsets, tiles, octants, leaves, votes)
    linear_votes(X, affine, linear, z, len(weights) - linear.shape[0], votes)
    for i in range(X.shape[0]):
        out[i] = _weighted(weights, votes[i])


@kernel
def _weighted(weights: FloatArray, votes: FloatArray) -> float:
    total = 0.0
    for c in range(len(weights)):
        total += weights[c] * votes[c]
    return total


@kernel
def score_row(
    X: FloatArray,
    floats: FloatArray,
    groups: IntArray,
    steps: Words,
    starts: Keys,
    leaves: IntArray,
    numbers: NDArray[np.float32],
    votes: FloatArray,
    out: FloatArray,
) -> None:
    """Write the score of one row, the same bits as among many; few arrays, since each one handed over takes its time.

    Parameters
    ----------
    X : float64[1, n_features]
    floats : float64[n]
        affine, z (scratch), linear, weights, offsets and values of `scores`, one after the other.
    groups : int64[n_groups, 6]
    steps, starts
        As in `scores`.
    leaves, numbers : int64[n_trees], float32[1, n_features]
        Scratch.
    votes, out : float64[1, n_columns], float64[1]
        Written.
    """
    m, n_groups = X.shape[1], groups.shape[0]
    n_linear = votes.shape[1] - groups[:, N_VALUES].sum()
    affine, z = floats[: 4 * m].reshape((4, m)), floats[4 * m : 5 * m]
    at = 5 * m + n_linear * (1 + 2 * m)
    linear, weights = floats[5 * m : at].reshape((n_linear, 1 + 2 * m)), floats[at : at + votes.shape[1]]
    at += votes.shape[1]
    offsets, values = floats[at : at + n_groups], floats[at + n_groups :]
    row_keys(X, affine, numbers)
    order_keys(numbers.view(np.int32))
    x = numbers.view(np.uint32)[0]
    for j in range(m):
        x[j] ^= _SIGN
    for g in range(n_groups):
        first, stop, k = groups[g, FIRST_TREE], groups[g, STOP_TREE], groups[g, N_VALUES]
        own, root = values[groups[g, BASE] :], starts[first, 0]
        _leaves_of_row(steps, starts, first, stop, x, leaves)
        for c in range(k):
            total = offsets[g]
            for t in range(stop - first):
                total += own[np.uint64((leaves[t] - root) * k + c)]
            votes[0, groups[g, COLUMN] + c] = _linked(total, stop - first, groups[g, LINK])
    linear_votes(X, affine, linear, z, votes.shape[1] - n_linear, votes)
    out[0] = _weighted(weights, votes[0])
