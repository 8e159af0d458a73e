"""Trees as arrays: grown here or taken from scikit-learn, their leaf values, votes without a row's own label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import FloatArray, IntArray
from streamlearn.kernels import forest as kernels
from streamlearn.kernels import nodes as layout
from streamlearn.kernels.boost import N_NODES, boost, pack
from streamlearn.kernels.grow import grow_forest, rank_values

Floats32 = NDArray[np.float32]
BoolArray = NDArray[np.bool_]

Descents = tuple[kernels.Words, kernels.Keys, kernels.Tiles]

_ANY_DEPTH = 1_000_000


@dataclass(frozen=True)
class Trees:
    """Trees that vote together.

    Attributes
    ----------
    nodes : int32[n_nodes, 4]
        As in `streamlearn.kernels.forest`; indices count from the first of these nodes.
    roots : int32[n_trees]
    values : float64[n_leaves, n_columns]
    link : int
        From the sum of leaf values to the vote.
    offset : float
        Where the sum starts.
    """

    nodes: kernels.Keys
    roots: kernels.Keys
    values: FloatArray
    link: int = kernels.MEAN
    offset: float = 0.0

    @cached_property
    def descents(self) -> Descents:
        """The same trees as descents read them."""
        return descents(self.nodes, self.roots)

    @property
    def n_columns(self) -> int:
        """Number of votes that these trees give."""
        return int(self.values.shape[1])

    def leaves(self, keys: kernels.Keys) -> IntArray:
        """Return the leaf of each row in each tree: int64[n_rows, n_trees]."""
        out = np.empty((len(keys), len(self.roots)), dtype=np.int64)
        kernels.forest_leaves(*self.descents, laid_out(keys), *scratch(), out)
        found: IntArray = self.nodes[out, 3].astype(np.int64)
        return found

    @cached_property
    def _group(self) -> tuple[FloatArray, IntArray, FloatArray]:
        """Values node by node, and these trees as the only group of a model."""
        groups = np.array([[0, len(self.roots), self.n_columns, 0, self.link, 0]])
        return at_nodes(self.nodes[:, 3], self.values), groups, np.array([self.offset])

    def votes(self, keys: kernels.Keys) -> FloatArray:
        """Return float64[n_rows, n_columns]."""
        out = np.empty((len(keys), self.n_columns))
        kernels.tree_votes(*self.descents, *self._group, laid_out(keys), *scratch(), out)
        return out

    def votes_without(self, keys: kernels.Keys, used: BoolArray) -> FloatArray:
        """Return the mean leaf value of the trees that did not see the row: float64[n_rows, n_columns].

        Parameters
        ----------
        keys : int32[n_rows, n_features]
        used : bool[n_rows, n_trees]
            Rows that each tree was grown on. A row that all trees saw gets 0.
        """
        unseen = ~used
        chosen = self.values[self.leaves(keys)]
        total = np.einsum("nt,ntk->nk", unseen.astype(np.float64), chosen)
        votes: FloatArray = total / np.maximum(unseen.sum(axis=1), 1)[:, None]
        return np.clip(votes, -1.0, 1.0) if self.link == kernels.CLIPPED_MEAN else votes

    def without_first(self, n: int) -> Trees:
        """Return the same trees without the first n, at least one being left."""
        at = int(self.roots[n])
        nodes = self.nodes[at:].copy()
        nodes[:, 2] -= at
        leaf = nodes[:, 3]
        first = int(leaf[leaf >= 0].min())
        leaf[leaf >= 0] -= first
        return Trees(nodes, self.roots[n:] - np.int32(at), self.values[first:], self.link, self.offset)


def descents(nodes: kernels.Keys, roots: kernels.Keys) -> Descents:
    """Return the same trees as descents read them: steps, starts, tops; in halves of 16 bits where those are enough."""
    largest = int((nodes[:, 2] - np.arange(len(nodes))).max(initial=0))
    fits = max(largest, kernels.TILE * int(nodes[:, 0].max(initial=0))) < 1 << 16
    n = 2 * len(nodes)
    steps: kernels.Words = np.empty(n, dtype=np.uint32) if fits else np.empty(n, dtype=np.uint64)
    starts, tops = np.empty((len(roots), 2), dtype=np.int32), np.empty((len(roots), layout.N_TOP), dtype=np.uint32)
    layout.descents(nodes, roots, np.empty(len(nodes), dtype=np.int32), steps, starts, tops)
    return steps, starts, tops


def at_nodes(leaf: NDArray[np.int32], values: FloatArray) -> FloatArray:
    """Return leaf values node by node, 0 at inner nodes: float64[n_nodes n_columns].

    Parameters
    ----------
    leaf : int32[n_nodes]
        Index of each leaf, negative at inner nodes.
    values : float64[n_leaves, n_columns]
    """
    out = np.zeros((len(leaf), values.shape[1]))
    out[leaf >= 0] = values[leaf[leaf >= 0]]
    return out.ravel()


def scratch() -> tuple[NDArray[np.uint32], IntArray]:
    """Return what descents of a tile write to on their way."""
    return np.empty(kernels.TILE, dtype=np.uint32), np.empty(kernels.TILE, dtype=np.int64)


def laid_out(keys: kernels.Keys) -> kernels.Tiles:
    """Return the keys of rows in tiles: uint32[n_tiles, 128 n_features], for at least one feature."""
    tiles = empty_tiles(*keys.shape)
    kernels.lay_out(keys, tiles)
    return tiles


def empty_tiles(n_rows: int, n_features: int) -> kernels.Tiles:
    """Return room for the keys of rows in tiles; for one feature where there is none, as leaves look at the first."""
    return np.zeros((-(-n_rows // kernels.TILE), kernels.TILE * max(n_features, 1)), dtype=np.uint32)


def merged(parts: Sequence[Trees]) -> Trees:
    """Return the trees of several parts as one part that votes together, with the first one's link."""
    nodes, roots, at, n_leaves = [], [], 0, 0
    for part in parts:
        moved = part.nodes.copy()
        moved[:, 2] += at
        moved[moved[:, 3] >= 0, 3] += n_leaves
        nodes.append(moved)
        roots.append(part.roots + np.int32(at))
        at += len(moved)
        n_leaves += len(part.values)
    values = np.concatenate([part.values for part in parts])
    return Trees(np.concatenate(nodes), np.concatenate(roots).astype(np.int32), values, parts[0].link, 0.0)


@dataclass(frozen=True, slots=True)
class Grown:
    """Trees with what is known of every node.

    Attributes
    ----------
    nodes, roots
        As in `Trees`.
    means, weights : float64[n_nodes]
        Mean target and weight of the rows in each node.
    """

    nodes: kernels.Keys
    roots: kernels.Keys
    means: FloatArray
    weights: FloatArray

    def soft(self, prior: float) -> FloatArray:
        """Return the nodes' values drawn to the prior: (n q + prior) / (n + 1).

        Drawn to 0 instead, votes on rare classes would rank by the size of the leaf.
        """
        return (self.weights * self.means + prior) / (self.weights + 1.0)

    def trees(self, values: FloatArray, link: int = kernels.MEAN) -> Trees:
        """Return these trees with the given values of all nodes, float64[n_nodes, n_columns], at the leaves."""
        leaf = self.nodes[:, 3]
        at_leaves = np.empty((int(leaf.max()) + 1, values.shape[1]))
        at_leaves[leaf[leaf >= 0]] = values[leaf >= 0]
        return Trees(self.nodes, self.roots, at_leaves, link)


@dataclass(frozen=True, slots=True)
class Ranked:
    """Rows ready for growing trees.

    Attributes
    ----------
    values : float32[n_rows, n_features]
    ranks : int32[n_features, n_rows]
    distinct : float32[n_features, n_rows]
    n_distinct : int64[n_features]
    """

    values: Floats32
    ranks: NDArray[np.int32]
    distinct: Floats32
    n_distinct: IntArray

    @classmethod
    def of(cls, values: Floats32) -> Ranked:
        """Rank the values of each feature."""
        n, m = values.shape
        ranks, distinct = np.empty((m, n), dtype=np.int32), np.empty((m, n), dtype=np.float32)
        n_distinct = np.empty(m, dtype=np.int64)
        rank_values(values, ranks, distinct, n_distinct)
        return cls(values, ranks, distinct, n_distinct)

    def grow(
        self,
        y: FloatArray,
        seed: int,
        *,
        n_trees: int,
        share: float,
        least: int = 1,
        deepest: int = _ANY_DEPTH,
        random_thresholds: bool = False,
        weights: FloatArray | None = None,
        n_bootstrap: int | None = None,
    ) -> tuple[Grown, BoolArray]:
        """Grow trees of least squared error.

        Parameters
        ----------
        y : float64[n_rows]
        seed : int
            64 bits.
        n_trees : int
        share : float
            Of the features, drawn for each split; 0 = their square root.
        least : int
            Rows in a leaf.
        deepest : int
        random_thresholds : bool
            One random threshold a feature.
        weights : float64[n_rows] or None
        n_bootstrap : int or None
            So many of the first rows are drawn with replacement, the others are always there; None = all are drawn.

        Returns
        -------
        Grown
        used : bool[n_rows, n_trees]
        """
        n, m = self.values.shape
        n_try = max(1, int(share * m) if share else int(np.sqrt(m)))
        capacity = n_trees * (2 * n - 1)
        nodes, roots = np.empty((capacity, 4), dtype=np.int32), np.empty(n_trees, dtype=np.int32)
        means, node_weights = np.empty(capacity), np.empty(capacity)
        used = np.empty((n, n_trees), dtype=np.bool_)
        size = grow_forest(
            self.values,
            self.ranks,
            self.distinct,
            self.n_distinct,
            np.ones(n) if weights is None else weights,
            n if n_bootstrap is None else n_bootstrap,
            y,
            np.uint64(seed),
            n_try,
            least,
            deepest,
            random_thresholds,
            nodes,
            roots,
            means,
            node_weights,
            used,
        )
        return Grown(nodes[:size].copy(), roots, means[:size].copy(), node_weights[:size].copy()), used

    def order(self) -> NDArray[np.int32]:
        """Return for each feature the rows by increasing value: int32[n_features, n_rows]."""
        return np.argsort(self.ranks, axis=1, kind="stable").astype(np.int32)


def grow_boosted(
    values: Floats32, order: NDArray[np.int32], y: FloatArray, *, n_trees: int, rate: float
) -> tuple[Trees, FloatArray]:
    """Grow boosted trees of depth three for the logistic loss.

    Parameters
    ----------
    values : float32[n_rows, n_features]
    order : int32[n_features, n_learned]
        Rows that are learned, by increasing value of each feature; both classes among them.
    y : float64[n_rows]
        1 or -1.
    n_trees, rate : int, float

    Returns
    -------
    Trees
    log_odds : float64[n_rows]
        Of all rows, those not learned included.
    """
    positive = (y > 0).astype(np.float64)
    n_positive = positive[order[0]].sum()
    offset = float(np.log(n_positive) - np.log(order.shape[1] - n_positive))
    raw = np.full(len(values), offset)
    features = np.empty((n_trees, N_NODES), dtype=np.int64)
    thresholds, leaves = np.empty((n_trees, N_NODES)), np.empty((n_trees, N_NODES))
    scratch = np.empty(len(values), dtype=np.int64), np.empty(len(values))
    boost(values, order, positive, rate, raw, features, thresholds, leaves, *scratch)
    nodes, roots = np.empty((N_NODES * n_trees, 4), dtype=np.int32), np.empty(n_trees, dtype=np.int32)
    at_leaves = np.empty(N_NODES * n_trees)
    keys = keys_of(thresholds.ravel()).reshape(thresholds.shape)
    size, n_leaves = pack(features, keys, leaves, nodes, roots, at_leaves)
    return Trees(nodes[:size].copy(), roots, at_leaves[:n_leaves, None].copy(), kernels.LOGIT, offset), raw


def keys_of(thresholds: FloatArray) -> kernels.Keys:
    """Return for each threshold the key of the greatest float32 not above it: int32[n]."""
    rounded = thresholds.astype(np.float32) + np.float32(0.0)
    keys = rounded.copy().view(np.int32)
    layout.threshold_keys(thresholds, rounded, keys)
    return keys


def flatten(trees: Sequence[Any], values: Sequence[FloatArray]) -> Grown:
    """Return fitted trees of scikit-learn as arrays.

    Parameters
    ----------
    trees : sequence of sklearn.tree._tree.Tree
        The ``tree_`` of each estimator.
    values : sequence of float64[n_nodes]
        What every node of each tree says; becomes `Grown.means`.
    """
    total = sum(tree.node_count for tree in trees)
    nodes, roots = np.empty((total, 4), dtype=np.int32), np.empty(len(trees), dtype=np.int32)
    means, weights = np.empty(total), np.empty(total)
    at = n_leaves = 0
    for t, (tree, value) in enumerate(zip(trees, values, strict=True)):
        stop = at + tree.node_count
        places = np.empty(tree.node_count, dtype=np.int64)
        left, right, feature = (
            np.asarray(a, dtype=np.int64) for a in (tree.children_left, tree.children_right, tree.feature)
        )
        thresholds = keys_of(np.ascontiguousarray(tree.threshold, dtype=np.float64))
        n_leaves += layout.flatten_tree(left, right, feature, thresholds, at, n_leaves, nodes[at:stop], places)
        means[at:stop] = value[places]
        weights[at:stop] = np.asarray(tree.weighted_n_node_samples)[places]
        roots[t] = at
        at = stop
    return Grown(nodes, roots, means, weights)
