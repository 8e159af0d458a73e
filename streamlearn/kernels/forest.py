"""Flattened trees and linear members: their votes on rows, without the library that fitted them.

A tree is a block of ``int32[n_nodes, 4]``: (feature, key, left, leaf). The right child stands behind the left one, so a
step is ``left + (row key > key)``; a leaf is its own left child with the greatest key, so that a descent may overshoot
without harm. Keys are float32 numbers as integers of the same order: scikit-learn compares float32 values with float64
thresholds, and ``x <= threshold`` holds exactly where it holds for the greatest float32 not above the threshold.
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
_NO_KEY = 2147483647
_LANES = 8
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
def flatten_tree(
    left: IntArray,
    right: IntArray,
    feature: IntArray,
    threshold_keys: Keys,
    node_base: int,
    leaf_base: int,
    nodes: Keys,
    places: IntArray,
) -> int:
    """Lay one tree out breadth first with siblings side by side; return its number of leaves.

    Parameters
    ----------
    left, right, feature : int64[n_nodes]
        As scikit-learn has them; left < 0 marks a leaf.
    threshold_keys : int32[n_nodes]
    node_base, leaf_base : int
        Index of the root in the whole table, and of the first leaf among all leaves of the member.
    nodes : int32[n_nodes, 4]
        Written.
    places : int64[n_nodes]
        For each place of the new table the old node; written.
    """
    places[0] = 0
    stop, leaves = 1, 0
    for at in range(len(left)):
        old = places[at]
        if left[old] < 0:
            nodes[at, 0] = 0
            nodes[at, 1] = _NO_KEY
            nodes[at, 2] = node_base + at
            nodes[at, 3] = leaf_base + leaves
            leaves += 1
        else:
            nodes[at, 0] = feature[old]
            nodes[at, 1] = threshold_keys[old]
            nodes[at, 2] = node_base + stop
            nodes[at, 3] = -1
            places[stop] = left[old]
            places[stop + 1] = right[old]
            stop += 2
    return leaves


@kernel
def threshold_keys(thresholds: FloatArray, rounded: NDArray[np.float32], keys: Keys) -> None:
    """Write for each threshold the key of the greatest float32 not above it.

    Parameters
    ----------
    thresholds : float64[n]
    rounded : float32[n]
        The same, rounded to nearest, without negative zero.
    keys : int32[n]
        Bits of `rounded`; changed to keys.
    """
    for i in range(len(keys)):
        keys[i] ^= (keys[i] >> 31) & 0x7FFFFFFF
        if np.float64(rounded[i]) > thresholds[i]:
            keys[i] -= 1


@kernel
def _next(nodes: Keys, i: int, row: Keys) -> int:
    # Unsigned: a signed index costs a test for negative ones at every load.
    at = np.uint64(i)
    return int(nodes[at, 2]) + (1 if row[np.uint64(nodes[at, 0])] > nodes[at, 1] else 0)


@kernel
def _leaves_of_row(nodes: Keys, roots: Keys, first: int, stop: int, row: Keys, leaves: IntArray) -> None:
    """Write the leaf of one row in each of the trees; eight descents at a time hide the latency of their loads."""
    t = first
    while t + _LANES <= stop:
        a, b, c, d = roots[t], roots[t + 1], roots[t + 2], roots[t + 3]
        e, f, g, h = roots[t + 4], roots[t + 5], roots[t + 6], roots[t + 7]
        moved = 1
        while moved:
            a1, b1, c1, d1 = _next(nodes, a, row), _next(nodes, b, row), _next(nodes, c, row), _next(nodes, d, row)
            e1, f1, g1, h1 = _next(nodes, e, row), _next(nodes, f, row), _next(nodes, g, row), _next(nodes, h, row)
            moved = (a1 ^ a) | (b1 ^ b) | (c1 ^ c) | (d1 ^ d) | (e1 ^ e) | (f1 ^ f) | (g1 ^ g) | (h1 ^ h)
            a, b, c, d, e, f, g, h = a1, b1, c1, d1, e1, f1, g1, h1
        k = t - first
        leaves[k], leaves[k + 1], leaves[k + 2], leaves[k + 3] = nodes[a, 3], nodes[b, 3], nodes[c, 3], nodes[d, 3]
        leaves[k + 4], leaves[k + 5], leaves[k + 6], leaves[k + 7] = nodes[e, 3], nodes[f, 3], nodes[g, 3], nodes[h, 3]
        t += _LANES
    while t < stop:
        i = roots[t]
        while nodes[i, 3] < 0:
            i = _next(nodes, i, row)
        leaves[t - first] = nodes[i, 3]
        t += 1


@kernel
def forest_leaves(nodes: Keys, roots: Keys, keys: Keys, leaves: IntArray) -> None:
    """Write the leaf of every row in every tree.

    Parameters
    ----------
    nodes : int32[n_nodes, 4]
    roots : int32[n_trees]
    keys : int32[n_rows, n_features]
    leaves : int64[n_rows, n_trees]
        Index among the member's leaves; written.
    """
    for i in range(keys.shape[0]):
        _leaves_of_row(nodes, roots, 0, len(roots), keys[i], leaves[i])


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
    nodes: Keys,
    roots: Keys,
    values: FloatArray,
    groups: IntArray,
    offsets: FloatArray,
    keys: Keys,
    leaves: IntArray,
    out: FloatArray,
) -> None:
    """Write the votes of groups of trees; sums run over the trees in order, for one row as for many.

    Parameters
    ----------
    nodes : int32[n_nodes, 4]
    roots : int32[n_trees]
    values : float64[n_values]
    groups : int64[n_groups, 6]
    offsets : float64[n_groups]
        Where the sums over the trees start.
    keys : int32[n_rows, n_features]
    leaves : int64[n_trees]
        Scratch.
    out : float64[n_rows, n_columns]
        The groups' columns are written.
    """
    for i in range(keys.shape[0]):
        for g in range(groups.shape[0]):
            first, stop, k = groups[g, FIRST_TREE], groups[g, STOP_TREE], groups[g, N_VALUES]
            base, link, column = groups[g, BASE], groups[g, LINK], groups[g, COLUMN]
            _leaves_of_row(nodes, roots, first, stop, keys[i], leaves)
            for c in range(k):
                # A sum that starts at the offset rounds as that of scikit-learn's boosting does.
                total = offsets[g]
                for t in range(stop - first):
                    total += values[base + leaves[t] * k + c]
                out[i, column + c] = _linked(total, stop - first, link)


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
    nodes: Keys,
    roots: Keys,
    values: FloatArray,
    groups: IntArray,
    offsets: FloatArray,
    linear: FloatArray,
    weights: FloatArray,
    numbers: NDArray[np.float32],
    leaves: IntArray,
    z: FloatArray,
    votes: FloatArray,
    out: FloatArray,
) -> None:
    """Write the weighted sum of all members' votes.

    Parameters
    ----------
    X : float64[n_rows, n_features]
    affine, nodes, roots, values, groups, offsets, linear
        As in `tree_votes` and `linear_votes`.
    weights : float64[n_columns]
        Columns of the trees first, then those of the linear members.
    numbers : float32[n_rows, n_features]
        Scratch.
    leaves, z : int64[n_trees], float64[n_features]
        Scratch.
    votes : float64[n_rows, n_columns]
        Written.
    out : float64[n_rows]
        Written.
    """
    row_keys(X, affine, numbers)
    keys = numbers.view(np.int32)
    order_keys(keys)
    tree_votes(nodes, roots, values, groups, offsets, keys, leaves, votes)
    linear_votes(X, affine, linear, z, len(weights) - linear.shape[0], votes)
    for i in range(X.shape[0]):
        total = 0.0
        for c in range(len(weights)):
            total += weights[c] * votes[i, c]
        out[i] = total


@kernel
def deepest_with(nodes: Keys, roots: Keys, weights: FloatArray, least: FloatArray, found: IntArray) -> None:
    """For each node find its deepest ancestor (itself included) that holds at least so many rows.

    Parameters
    ----------
    nodes : int32[n_nodes, 4]
        Children stand behind their parents.
    roots : int32[n_trees]
    weights : float64[n_nodes]
        Rows in each node.
    least : float64[n_scales]
    found : int64[n_nodes, n_scales]
        Written; the root where no node has enough.
    """
    for t in range(len(roots)):
        for s in range(len(least)):
            found[roots[t], s] = roots[t]
    for i in range(nodes.shape[0]):
        if nodes[i, 3] < 0:
            for child in range(nodes[i, 2], nodes[i, 2] + 2):
                for s in range(len(least)):
                    found[child, s] = child if weights[child] >= least[s] else found[i, s]


@kernel
def path_sums(nodes: Keys, sums: FloatArray) -> None:
    """Add to each node's number those of all its ancestors.

    Parameters
    ----------
    nodes : int32[n_nodes, 4]
        Children stand behind their parents.
    sums : float64[n_nodes]
        Changed.
    """
    for i in range(nodes.shape[0]):
        if nodes[i, 3] < 0:
            sums[nodes[i, 2]] += sums[i]
            sums[nodes[i, 2] + 1] += sums[i]


@kernel
def awake_nodes(nodes: Keys, root: int, keys: Keys, passed: IntArray) -> int:
    """Write the nodes of one tree that each row passes, row after row; return how many in all.

    Parameters
    ----------
    nodes : int32[n_nodes, 4]
    root : int
    keys : int32[n_rows, n_features]
    passed : int64[2, n_rows * (1 + greatest depth)]
        Row and node of each pass; written.
    """
    n = 0
    for i in range(keys.shape[0]):
        at = root
        passed[0, n], passed[1, n] = i, at
        n += 1
        while nodes[at, 3] < 0:
            at = _next(nodes, at, keys[i])
            passed[0, n], passed[1, n] = i, at
            n += 1
    return n
