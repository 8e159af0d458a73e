"""Votes of flattened trees against scikit-learn bit for bit, growing against exhaustive references."""

import math
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import ExtraTreesClassifier, GradientBoostingClassifier, RandomForestClassifier
from sklearn.tree import DecisionTreeRegressor

from streamlearn.kernels import forest as kernels
from streamlearn.kernels import nodes as walks
from streamlearn.kernels.grow import mixed, rank_values
from streamlearn.learners.muffled.model import Model
from streamlearn.learners.muffled.sample import ordered
from streamlearn.learners.muffled.trees import (
    Ranked,
    Trees,
    at_nodes,
    descents,
    empty_tiles,
    flatten,
    grow_boosted,
    keys_of,
    merged,
    scratch,
)
from tests.naive import muffled as naive

# Interpreted, products of 64-bit seeds warn where compiled ones wrap around.
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered")

INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT") == "1"
N_ROWS = 40 if INTERPRETED else 400
N_TREES = 11 if INTERPRETED else 37
floats32 = st.floats(width=32, allow_nan=False, allow_infinity=False)


def data(seed=0, n=N_ROWS, m=6, grid=None):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m))
    if grid:
        X = np.round(X * grid) / grid
    y = (X[:, 0] * X[:, 1] + X[:, 2] + 0.5 * rng.normal(size=n) > 0).astype(int)
    return X.astype(np.float32), y


def keys_of_rows(X):
    return ordered(np.ascontiguousarray(X, dtype=np.float32) + np.float32(0.0))


@given(floats32, floats32)
def test_keys_have_the_order_of_their_numbers(a, b):
    ka, kb = keys_of_rows([[a, b]])[0]
    assert (ka < kb) == (a < b)
    assert (ka == kb) == (a == b)  # -0.0 and 0.0 are one number


@given(floats32, st.floats(-1e30, 1e30) | floats32)
def test_a_key_is_at_most_the_threshold_key_exactly_where_the_number_is_at_most_the_threshold(x, threshold):
    key, limit = keys_of_rows([[x]])[0, 0], keys_of(np.array([float(threshold)]))[0]
    assert (key <= limit) == (float(np.float32(x)) <= threshold)


@pytest.mark.parametrize("grid", [None, 2])
@pytest.mark.parametrize("cls", [RandomForestClassifier, ExtraTreesClassifier])
def test_forest_votes_equal_those_of_scikit_learn_bit_for_bit(cls, grid):
    X, y = data(grid=grid)
    fitted = cls(N_TREES, random_state=0).fit(X[: N_ROWS // 2], y[: N_ROWS // 2])
    trees = [estimator.tree_ for estimator in fitted.estimators_]
    grown = flatten(trees, [tree.value[:, 0, 1] for tree in trees])
    found = grown.trees(grown.means[:, None])
    assert found.votes(keys_of_rows(X))[:, 0].tolist() == fitted.predict_proba(X)[:, 1].tolist()
    row = X[3]
    leaves = found.leaves(keys_of_rows(X[3:4]))[0]
    values = [trees[t].value[naive.tree_leaf(trees[t], row), 0, 1] for t in range(N_TREES)]
    assert found.values[leaves, 0].tolist() == values


def test_boosted_votes_equal_those_of_scikit_learn():
    X, y = data()
    fitted = GradientBoostingClassifier(n_estimators=20, random_state=0).fit(X, y)
    trees = [estimator.tree_ for estimator in fitted.estimators_[:, 0]]
    grown = flatten(trees, [0.1 * tree.value[:, 0, 0] for tree in trees])
    prior = fitted.init_.class_prior_[1]
    part = grown.trees(grown.means[:, None], kernels.LOGIT)
    found = Trees(part.nodes, part.roots, part.values, kernels.SUM, math.log(prior / (1 - prior)))
    # The same sums in the same order from the same start, which is a logit of one rounding more.
    assert found.votes(keys_of_rows(X))[:, 0] == pytest.approx(fitted.decision_function(X), abs=1e-14)
    logit = Trees(part.nodes, part.roots, part.values, kernels.LOGIT, math.log(prior / (1 - prior)))
    assert logit.votes(keys_of_rows(X))[:, 0] == pytest.approx(2 * fitted.predict_proba(X)[:, 1] - 1, abs=1e-14)


@pytest.mark.parametrize("n_trees", [1, 7, 8, 9, 16, 19])
def test_one_row_gets_what_it_gets_among_many(n_trees):
    X, y = data(1)
    grown, _ = Ranked.of(X).grow(2.0 * y - 1, 5, n_trees=n_trees, share=0.0)
    found = grown.trees(np.column_stack([grown.means, grown.weights]))
    affine = np.ones((4, X.shape[1]))
    affine[[0, 2]] = 0.0
    line = np.arange(13.0) / 13.0
    model = Model.of(affine, [(("means", "weights"), found, np.array([1.0, 0.1]))], [("line", line, 0.5)])
    rows, out, one = X.astype(float), np.empty(len(X)), np.empty(1)
    many = model.score(rows, out)
    assert many[:, :2].tolist() == found.votes(keys_of_rows(X)).tolist()
    assert all(
        model.score(rows[i : i + 1], one).tolist() == [many[i].tolist()] and one == out[i] for i in range(N_ROWS)
    )
    for n in (2, 7, 8, 9, 33):
        assert model.score(rows[:n], np.empty(n)).tolist() == many[:n].tolist()


def test_trees_of_many_features_vote_in_wider_words_like_those_of_few():
    X, y = data(1)
    grown, _ = Ranked.of(X).grow(2.0 * y - 1, 5, n_trees=18, share=0.0)
    found = grown.trees(grown.means[:, None])
    nodes = found.nodes.copy()
    nodes[nodes[:, 3] < 0, 0] += 600
    wide = Trees(nodes, found.roots, found.values)
    assert [part.descents[0].dtype for part in (found, wide)] == [np.uint32, np.uint64]
    keys = keys_of_rows(X)
    far = np.hstack([np.zeros((len(X), 600), dtype=np.int32), keys])
    assert wide.votes(far).tolist() == found.votes(keys).tolist()
    affine = np.ones((4, 606))
    affine[[0, 2]] = 0.0
    model = Model.of(affine, [(("one",), wide, np.ones(1))])
    rows = np.hstack([np.zeros((len(X), 600)), X.astype(float)])
    out, one = np.empty(len(X)), np.empty(1)
    model.score(rows, out)
    assert out.tolist() == found.votes(keys)[:, 0].tolist()
    assert all(model.score(rows[i : i + 1], one)[0, 0] == out[i] == one[0] for i in range(9))


def test_descents_end_at_the_leaves_that_the_nodes_lead_to():
    X, y = data(16)
    grown, _ = Ranked.of(X).grow(2.0 * y - 1, 3, n_trees=9, share=0.0)
    keys = keys_of_rows(X[:11])
    expected = np.empty((11, 9), dtype=int)
    for t, root in enumerate(grown.roots.tolist()):
        for i in range(11):
            at = root
            while grown.nodes[at, 3] < 0:
                feature, key, left, _ = grown.nodes[at].tolist()
                at = left + int(keys[i, feature] > key)
            expected[i, t] = grown.nodes[at, 3]
    found = grown.trees(grown.means[:, None])
    assert found.leaves(keys).tolist() == expected.tolist()
    assert found.leaves(keys[:1]).tolist() == expected[:1].tolist()


def scores_of(X, affine, part, linear, weights):
    groups = np.array([[0, len(part.roots), part.n_columns, 0, part.link, 0]])
    out, votes = np.empty(len(X)), np.empty((len(X), len(weights)))
    numbers = np.empty(X.shape, dtype=np.float32)
    kernels.scores(
        X,
        affine,
        *descents(part.nodes, part.roots),
        at_nodes(part.nodes[:, 3], part.values),
        groups,
        np.array([part.offset]),
        linear,
        weights,
        numbers,
        empty_tiles(*X.shape),
        *scratch(),
        np.empty(X.shape[1]),
        votes,
        out,
    )
    return out, votes


def test_scores_are_weighted_votes_of_trees_and_linear_members():
    rng = np.random.default_rng(2)
    X, y = data(2)
    affine = np.vstack([rng.normal(size=6), rng.uniform(0.5, 2, 6), rng.normal(size=6), rng.uniform(0.5, 2, 6)])
    wide = X * affine[1] + affine[0]
    grown, _ = Ranked.of(X).grow(2.0 * y - 1, 3, n_trees=9, share=0.0)
    part = grown.trees(grown.means[:, None], kernels.CLIPPED_MEAN)
    linear = rng.normal(size=(2, 13))
    weights = np.array([0.5, 1.0, 2.0])
    out, votes = scores_of(wide, affine, part, linear, weights)
    z = np.clip(((wide - affine[0]) / affine[1] - affine[2]) / affine[3], -8, 8)
    t = linear[:, 0] + z @ linear[:, 1:7].T + (z * z) @ linear[:, 7:].T
    assert votes[:, 1:] == pytest.approx(np.tanh(t / 2), abs=1e-12)
    assert out == pytest.approx(votes @ weights, abs=1e-12)
    one, _ = scores_of(wide[4:5], affine, part, linear, weights)
    assert one[0] == out[4]


def test_extreme_rows_have_finite_keys():
    X = np.array([[1e308, -1e308, 0.0, 5e-324, -0.0, 1e200]])
    affine = np.ones((4, 6))
    affine[0], affine[1] = [-1e308, 1e308, 0, 0, 0, 0], 1e-300
    numbers = np.empty(X.shape, dtype=np.float32)
    kernels.row_keys(X, affine, numbers)
    assert np.isfinite(numbers).all()
    assert not np.signbit(numbers[0, 4])


# Growing


def test_ranks_stand_for_the_values():
    X, _ = data(3, grid=3)
    ranked = Ranked.of(X)
    for j in range(X.shape[1]):
        assert ranked.distinct[j, : ranked.n_distinct[j]].tolist() == sorted(set(X[:, j].tolist()))
        assert ranked.distinct[j][ranked.ranks[j]].tolist() == X[:, j].tolist()


@pytest.mark.parametrize("least", [1, 4])
@pytest.mark.parametrize("grid", [None, 2])
def test_a_tree_of_all_features_is_the_exhaustive_one(grid, least):
    rng = np.random.default_rng(4)
    X, _ = data(4, n=30, m=3, grid=grid)
    y, w = rng.normal(size=30), rng.uniform(0.5, 2, 30)
    grown, used = Ranked.of(X).grow(y, 1, n_trees=1, share=1.0, least=least, weights=w, n_bootstrap=0)
    assert used.all()
    expected = naive.least_squares_tree(X.astype(float).tolist(), y.tolist(), w.tolist(), least)
    assert grown.trees(grown.means[:, None]).votes(keys_of_rows(X))[:, 0] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("least", [1, 5])
def test_large_nodes_split_where_those_of_scikit_learn_do(least):
    rng = np.random.default_rng(5)
    X, _ = data(5)
    y = X[:, 0] * X[:, 1] + rng.normal(size=len(X))
    grown, _ = Ranked.of(X).grow(y, 1, n_trees=1, share=1.0, least=least, n_bootstrap=0, deepest=6)
    reference = DecisionTreeRegressor(min_samples_leaf=least, max_depth=6, random_state=0).fit(X, y)
    assert grown.trees(grown.means[:, None]).votes(keys_of_rows(X))[:, 0] == pytest.approx(
        reference.predict(X), abs=1e-9
    )


def test_bootstrapped_trees_know_what_they_saw_and_weigh_it():
    X, y = data(6)
    grown, used = Ranked.of(X).grow(2.0 * y - 1, 7, n_trees=N_TREES, share=0.0)
    expected = 1 - math.exp(-1)
    assert used.mean() == pytest.approx(expected, abs=4 * math.sqrt(0.1 / used.size) + 0.5 / len(X))
    assert grown.weights[grown.roots].tolist() == [len(X)] * N_TREES
    leaf = grown.nodes[:, 3] >= 0
    assert grown.weights[leaf].sum() == len(X) * N_TREES
    at = grown.trees(np.arange(len(grown.nodes))[:, None].astype(float)).leaves(keys_of_rows(X))
    pure = grown.trees(grown.means[:, None]).values[at, 0]
    assert (pure[used] == np.repeat(2 * y - 1, N_TREES).reshape(pure.shape)[used]).all()


def test_only_the_first_rows_are_drawn_where_asked():
    X, y = data(7)
    first = len(X) // 2
    _, used = Ranked.of(X).grow(2.0 * y - 1, 7, n_trees=5, share=0.0, n_bootstrap=first)
    assert used[first:].all()
    assert not used[:first].all()


@pytest.mark.parametrize("random_thresholds", [False, True])
def test_leaves_keep_enough_rows_and_trees_their_depth(random_thresholds):
    X, y = data(8)
    grown, _ = Ranked.of(X).grow(
        2.0 * y - 1, 9, n_trees=5, share=0.5, least=4, deepest=3, random_thresholds=random_thresholds, n_bootstrap=0
    )
    found = grown.trees(grown.means[:, None])
    leaves = found.leaves(keys_of_rows(X))
    assert min(np.bincount(leaves.ravel())) >= 4
    assert len(found.values) <= 5 * 8
    assert len(found.values) > 5


@pytest.mark.parametrize("random_thresholds", [False, True])
def test_exchanged_labels_give_the_same_trees_with_the_opposite_votes(random_thresholds):
    X, y = data(9)
    a, b = (
        Ranked.of(X).grow(sign * (2.0 * y - 1), 3, n_trees=4, share=0.0, random_thresholds=random_thresholds)[0]
        for sign in (1.0, -1.0)
    )
    assert (a.nodes == b.nodes).all()
    assert (a.means == -b.means).all()


def test_seeds_decide():
    X, y = data(10)
    a, b, c = (Ranked.of(X).grow(2.0 * y - 1, seed, n_trees=3, share=0.0)[0] for seed in (1, 1, 2))
    assert a.means.tolist() == b.means.tolist()
    assert a.means.tolist() != c.means.tolist()


def test_constant_features_make_a_single_leaf():
    grown, _ = Ranked.of(np.ones((8, 3), dtype=np.float32)).grow(
        np.array([1.0, -1.0] * 4), 0, n_trees=2, share=0.0, n_bootstrap=0
    )
    assert len(grown.nodes) == 2
    assert grown.means.tolist() == [0.0, 0.0]


def test_mixed_bits_are_fair():
    n = 500 if INTERPRETED else 20_000
    bits = np.array([int(mixed(np.uint64(5), k)) for k in range(n)], dtype=np.uint64)
    ones = np.unpackbits(bits.view(np.uint8)).mean()
    assert ones == pytest.approx(0.5, abs=4 * 0.5 / math.sqrt(64 * n))
    assert len(set(bits.tolist())) == n


# Boosting


@pytest.mark.parametrize("grid", [None, 2])
def test_boosting_is_the_slow_reference(grid):
    X, y = data(11, n=40, m=3, grid=grid)
    order = Ranked.of(X).order()
    trees, raw = grow_boosted(X, order, 2.0 * y - 1, n_trees=8, rate=0.1)
    expected = naive.boost(X.astype(float).tolist(), y.tolist(), 8, 0.1)
    assert raw == pytest.approx(expected, abs=1e-9)
    assert trees.votes(keys_of_rows(X))[:, 0] == pytest.approx(np.tanh(np.array(expected) / 2), abs=1e-9)


def test_boosting_scores_rows_that_it_does_not_learn():
    X, y = data(12)
    inside = np.arange(len(X)) % 4 > 0
    order = Ranked.of(X).order()
    learned = order[inside[order]].reshape(len(order), -1)
    trees, raw = grow_boosted(X, learned, 2.0 * y - 1, n_trees=10, rate=0.1)
    alone, _ = grow_boosted(X[inside], Ranked.of(X[inside]).order(), 2.0 * y[inside] - 1, n_trees=10, rate=0.1)
    assert trees.votes(keys_of_rows(X)).tolist() == alone.votes(keys_of_rows(X)).tolist()
    assert np.tanh(raw / 2) == pytest.approx(trees.votes(keys_of_rows(X))[:, 0], abs=1e-12)


# Nodes


def test_paths_scales_and_sums_follow_each_row_from_the_root():
    X, y = data(13)
    grown, _ = Ranked.of(X).grow(2.0 * y - 1, 3, n_trees=3, share=0.0)
    keys = keys_of_rows(X[:10])
    found = np.empty((len(grown.nodes), 2), dtype=np.int64)
    walks.deepest_with(grown.nodes, grown.roots, grown.weights, np.array([3.0, 10.0]), found)
    own = np.random.default_rng(0).normal(size=len(grown.nodes))
    sums = own.copy()
    walks.path_sums(grown.nodes, sums)
    for t, root in enumerate(grown.roots.tolist()):
        passed = np.full((2, 10 * 60), -1)
        n = walks.awake_nodes(grown.nodes, root, keys, passed)
        for i in range(10):
            path = [root]
            while grown.nodes[path[-1], 3] < 0:
                feature, key, left, _ = grown.nodes[path[-1]].tolist()
                path.append(left + int(keys[i, feature] > key))
            assert passed[1, :n][passed[0, :n] == i].tolist() == path
            assert sums[path[-1]] == pytest.approx(sum(own[v] for v in path), abs=1e-12)
            for s, least in enumerate((3, 10)):
                assert found[path[-1], s] == [v for v in path if grown.weights[v] >= least][-1]
        assert n > 10, t


def test_merged_trees_sum_what_their_parts_say():
    X, y = data(14)
    keys = keys_of_rows(X)
    parts = []
    for seed in range(3):
        grown, _ = Ranked.of(X).grow(2.0 * y - 1, seed, n_trees=2, share=0.0)
        parts.append(grown.trees(grown.means[:, None], kernels.SUM))
    assert merged(parts).votes(keys) == pytest.approx(sum(part.votes(keys) for part in parts), abs=1e-12)


def test_votes_without_are_means_over_the_trees_that_did_not_see_the_row():
    X, y = data(15, n=20)
    grown, used = Ranked.of(X).grow(2.0 * y - 1, 3, n_trees=4, share=0.0)
    used[0] = True
    part = grown.trees(grown.means[:, None])
    keys = keys_of_rows(X)
    each = part.values[part.leaves(keys), 0]
    expected = [
        sum(v for v, u in zip(row, seen, strict=True) if not u) / max(1, sum(~seen))
        for row, seen in zip(each, used, strict=True)
    ]
    assert part.votes_without(keys, used)[:, 0] == pytest.approx(expected, abs=1e-12)
    assert expected[0] == 0.0


def test_ranking_is_written_in_place():
    values = np.array([[2.0], [1.0], [2.0]], dtype=np.float32)
    ranks, distinct = np.empty((1, 3), dtype=np.int32), np.empty((1, 3), dtype=np.float32)
    n_distinct = np.empty(1, dtype=np.int64)
    rank_values(values, ranks, distinct, n_distinct)
    assert ranks.tolist() == [[1, 0, 1]]
    assert n_distinct.tolist() == [2]
