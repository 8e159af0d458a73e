"""Specialists of trees: nodes that vote where they are awake, and scale groups of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamlearn.contracts import FloatArray, IntArray
from streamlearn.kernels import forest as kernels
from streamlearn.kernels import nodes as walks
from streamlearn.learners.muffled.trees import Grown
from streamlearn.learners.muffled.wilson import wilson_lower_bound

SCALES = (3.0, 10.0, 30.0)
"""Scale groups ask the deepest ancestor with at least so many labels."""


def scale_values(grown: Grown, soft: FloatArray, scales: Sequence[float] = SCALES) -> FloatArray:
    """Return for each node the value of its deepest ancestor that holds at least s rows: float64[n_nodes, n_scales].

    Parameters
    ----------
    grown : Grown
    soft : float64[n_nodes]
        Values of the nodes.
    scales : sequence of float
        Rows, counted as often as the tree saw them.
    """
    found = np.empty((len(grown.nodes), len(scales)), dtype=np.int64)
    walks.deepest_with(grown.nodes, grown.roots, grown.weights, np.asarray(scales, dtype=np.float64), found)
    return soft[found]


def awake(grown: Grown, tree: int, keys: kernels.Keys) -> Any:
    """Return which nodes of one tree each row passes: scipy.sparse.csc_array[n_rows, n_nodes_of_all_trees] of ones.

    Parameters
    ----------
    grown : Grown
    tree : int
    keys : int32[n_rows, n_features]
    """
    from scipy.sparse import csc_array  # noqa: PLC0415 - the import costs 30 ms and only fits need it

    root = int(grown.roots[tree])
    stop = int(grown.roots[tree + 1]) if tree + 1 < len(grown.roots) else len(grown.nodes)
    passed = np.empty((2, len(keys) * ((stop - root) // 2 + 1)), dtype=np.int64)
    n = walks.awake_nodes(grown.nodes, root, keys, passed)
    return csc_array((np.ones(n), (passed[0, :n], passed[1, :n])), shape=(len(keys), len(grown.nodes)))


@dataclass(frozen=True, slots=True)
class Specialists:
    """Nodes of trees as members of the game.

    A node votes as its whole tree where it is awake, times a sign and a scale, and 0 where it sleeps.

    Attributes
    ----------
    nodes : int64[n_kept]
        The roots among them, which are the trees themselves.
    factors : float64[n_kept]
        Sign times scale, stored: scales are those of the unlabelled events at fitting, whatever is scored later.
    b : float64[n_kept]
        Wilson's bound of the correlation while awake.
    """

    nodes: IntArray
    factors: FloatArray
    b: FloatArray


def select_specialists(
    grown: Grown, tree: int, held_out: Any, correct: FloatArray, unlabelled: Any, failure_prob: float, *, nodes: bool
) -> Specialists:
    """Return the root of one tree and, with `nodes`, those whose correlation on held-out labels is surely not 0.

    Parameters
    ----------
    grown : Grown
    tree : int
    held_out, unlabelled : sparse [n_rows, n_nodes]
        Which nodes the rows pass.
    correct : float64[n_held_out]
        Vote of the tree times label: 1 or -1.
    failure_prob : float
    nodes : bool
        Look at the nodes below the root as well.
    """
    counts = np.asarray(held_out.sum(axis=0)).ravel()
    c = np.divide(held_out.T @ correct, counts, where=counts > 0, out=np.zeros(len(counts)))
    b = wilson_lower_bound(np.clip(np.abs(c), 0.0, 1.0), counts, failure_prob)
    n_awake = np.asarray(unlabelled.sum(axis=0)).ravel()
    # (1 / n) F z is then the mean correlation while awake; a node that no unlabelled event wakes is of no use.
    scale = np.divide(unlabelled.shape[0], n_awake, where=n_awake > 0, out=np.zeros(len(n_awake)))
    root = int(grown.roots[tree])
    kept = np.flatnonzero((b > 0.0) & (scale > 0.0)) if nodes else np.empty(0, dtype=np.int64)
    chosen = np.concatenate([[root], kept[kept != root]]).astype(np.int64)
    sign = np.where(c < 0.0, -1.0, 1.0)  # a correlation of exactly 0 keeps its row
    return Specialists(chosen, (sign * scale)[chosen], b[chosen])


def node_weights_at_leaves(grown: Grown, nodes: IntArray, weights: FloatArray) -> FloatArray:
    """Return for each node the summed weights of the chosen nodes on its path from the root: float64[n_nodes].

    So a tree with weighted nodes is one number a leaf.
    """
    sums = np.zeros(len(grown.nodes))
    np.add.at(sums, nodes, weights)
    walks.path_sums(grown.nodes, sums)
    return sums
