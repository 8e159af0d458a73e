"""Flattened trees node by node: laying them out, the way down, sums along paths.

A tree is a block of ``int32[n_nodes, 4]``: (feature, key, left, leaf). The right child stands behind the left one, so a
step is ``left + (row key > key)``; a leaf is its own left child with the greatest key, so that a descent may overshoot
without harm. Keys are float32 numbers as integers of the same order: scikit-learn compares float32 values with float64
thresholds, and ``x <= threshold`` holds exactly where it holds for the greatest float32 not above the threshold.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import FloatArray, IntArray
from streamlearn.kernels.jit import kernel

Keys = NDArray[np.int32]

NO_KEY = 2147483647
"""No key of a row is greater."""
LEAST_KEY = -2147483648
TILE = 128
"""Rows of a tile of `streamlearn.kernels.forest`."""
TOP_NODES = 7
N_TOP = 3 * TOP_NODES + 1
"""Numbers of the first levels of a tree."""


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
            nodes[at, 1] = NO_KEY
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
def descents(
    nodes: Keys, roots: Keys, depths: Keys, steps: NDArray[Any], starts: Keys, tops: NDArray[np.uint32]
) -> None:
    """Write what descents read: steps from node to child in place of indices, so that a node takes two words.

    Parameters
    ----------
    nodes : int32[n_nodes, 4]
        Children stand behind their parents.
    roots : int32[n_trees]
    depths : int32[n_nodes]
        Scratch.
    steps : uint32[2 n_nodes] or uint64[2 n_nodes]
        Of each node first 128 times its feature and, in the upper half of the word, how far behind it its left child
        stands; then its key, unsigned. Written.
    starts : int32[n_trees, 2]
        Root, and steps to the deepest leaf. Written.
    tops : uint32[n_trees, 22]
        Of the first seven nodes of a tree, level by level, 128 times the feature, then the keys; then the eight nodes
        of the fourth level, counted from the root. A leaf stands for its own children. Written.
    """
    half = np.uint64(4 * steps.itemsize)
    for t in range(len(roots)):
        first = roots[t]
        stop = roots[t + 1] if t + 1 < len(roots) else nodes.shape[0]
        depths[first] = 0
        deepest = 0
        for i in range(first, stop):
            left = np.uint64(nodes[i, 2] - i) << half
            steps[2 * i] = left | np.uint64(TILE * nodes[i, 0])
            steps[2 * i + 1] = np.uint64(np.int64(nodes[i, 1]) - LEAST_KEY)
            deepest = max(deepest, depths[i])
            if nodes[i, 3] < 0:
                depths[nodes[i, 2]] = depths[i] + 1
                depths[nodes[i, 2] + 1] = depths[i] + 1
        starts[t, 0] = first
        starts[t, 1] = deepest
        _write_top(nodes, first, tops[t])


@kernel
def _write_top(nodes: Keys, root: int, top: NDArray[np.uint32]) -> None:
    """Write the first seven nodes of a tree and the eight below them."""
    place = np.zeros(2 * TOP_NODES + 1, dtype=np.int64)
    place[0] = root
    for k in range(TOP_NODES):
        i = place[k]
        inner = nodes[i, 3] < 0
        top[k] = np.uint32(TILE * nodes[i, 0])
        top[TOP_NODES + k] = np.uint32(np.int64(nodes[i, 1]) - LEAST_KEY)
        place[2 * k + 1] = nodes[i, 2]
        place[2 * k + 2] = nodes[i, 2] + 1 if inner else nodes[i, 2]
    for k in range(TOP_NODES + 1):
        top[2 * TOP_NODES + k] = np.uint32(place[TOP_NODES + k] - root)


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
            at = nodes[at, 2] + (1 if keys[i, nodes[at, 0]] > nodes[at, 1] else 0)
            passed[0, n], passed[1, n] = i, at
            n += 1
    return n
