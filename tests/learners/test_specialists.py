"""Specialists of trees: scale groups, selection by Wilson's bound, stored signs and scales."""

import numpy as np
import pytest

from streamlearn.kernels.forest import SUM
from streamlearn.learners.muffled.sample import ordered
from streamlearn.learners.muffled.specialists import (
    SCALES,
    awake,
    node_weights_at_leaves,
    scale_values,
    select_specialists,
)
from streamlearn.learners.muffled.trees import Ranked
from tests.naive import muffled as naive


def setting(seed=0, n=200, m=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(3 * n, m)).astype(np.float32)
    y = np.where(X[:, 0] + 0.8 * rng.normal(size=3 * n) > 0, 1.0, -1.0)
    grown, _ = Ranked.of(X[:n]).grow(y[:n], 1, n_trees=2, share=0.0)
    return grown, ordered(X), y, n


def path(grown, root, row):
    nodes = [root]
    while grown.nodes[nodes[-1], 3] < 0:
        feature, key, left, _ = grown.nodes[nodes[-1]].tolist()
        nodes.append(left + int(row[feature] > key))
    return nodes


def test_scale_groups_ask_the_deepest_ancestor_with_enough_labels():
    grown, keys, _, n = setting()
    soft = grown.soft(0.1)
    values = scale_values(grown, soft)
    for row in keys[n : n + 20]:
        nodes = path(grown, 0, row)
        for s, least in enumerate(SCALES):
            enough = [v for v in nodes if grown.weights[v] >= least]
            assert values[nodes[-1], s] == soft[enough[-1]]


def test_leaves_are_drawn_to_the_prior_by_one_label():
    grown, _, _, _ = setting()
    soft = grown.soft(-0.4)
    v = 5
    assert soft[v] == pytest.approx((grown.weights[v] * grown.means[v] - 0.4) / (grown.weights[v] + 1))


@pytest.mark.parametrize("tree", [0, 1])
def test_selected_nodes_are_those_whose_correlation_is_surely_not_zero(tree):
    grown, keys, y, n = setting(1)
    hard = np.where(grown.means >= 0, 1.0, -1.0)
    root = int(grown.roots[tree])
    held_out, unlabelled = keys[n : 2 * n], keys[2 * n :]
    vote = np.array([hard[path(grown, root, row)[-1]] for row in held_out])
    found = select_specialists(
        grown,
        tree,
        awake(grown, tree, held_out),
        vote * y[n : 2 * n],
        awake(grown, tree, unlabelled),
        0.05,
        nodes=True,
    )
    passes = {v: [] for v in range(len(grown.nodes))}
    for i, row in enumerate(held_out):
        for v in path(grown, root, row):
            passes[v].append(vote[i] * y[n + i])
    n_awake = np.zeros(len(grown.nodes))
    for row in unlabelled:
        n_awake[path(grown, root, row)] += 1
    expected = {root} | {
        v
        for v, products in passes.items()
        if products and n_awake[v] and naive.wilson(abs(np.mean(products)), len(products), 0.05) > 0
    }
    assert set(found.nodes.tolist()) == expected
    assert found.nodes[0] == root
    assert len(expected) > 1
    for v, factor, b in zip(found.nodes.tolist(), found.factors, found.b, strict=True):
        c = np.mean(passes[v])
        assert abs(factor) == pytest.approx(len(unlabelled) / n_awake[v])
        assert (factor < 0) == (c < 0)
        assert b == pytest.approx(naive.wilson(abs(c), len(passes[v]), 0.05), abs=1e-12)


def test_only_the_root_is_kept_without_nodes_and_a_wrong_tree_is_turned_round():
    grown, keys, y, n = setting(2)
    awake_rows = awake(grown, 0, keys[:n])
    found = select_specialists(grown, 0, awake_rows, -np.ones(n), awake_rows, 0.01, nodes=False)
    assert found.nodes.tolist() == [0]
    assert found.factors.tolist() == [-1.0]
    even = select_specialists(
        grown, 0, awake_rows, np.where(np.arange(n) % 2, 1.0, -1.0), awake_rows, 0.01, nodes=False
    )
    assert even.factors.tolist() == [1.0]  # a correlation of exactly 0 keeps its row
    assert even.b.tolist() == [0.0]
    assert (y != 0).all()


def test_weighted_nodes_become_one_number_a_leaf():
    grown, keys, _, n = setting(3)
    nodes, weights = np.array([0, 1, 2, int(grown.roots[1])]), np.array([0.5, 0.25, -2.0, 4.0])
    sums = node_weights_at_leaves(grown, nodes, weights)
    part = grown.trees(sums[:, None], SUM)
    for row, total in zip(keys[n : n + 20], part.votes(keys[n : n + 20])[:, 0], strict=True):
        passed = path(grown, 0, row) + path(grown, int(grown.roots[1]), row)
        assert total == pytest.approx(sum(w for v, w in zip(nodes, weights, strict=True) if v in passed))
