"""Muffled learners merged: forecasts of the parts in one game, judged by labels that they have not seen."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from sklearn.tree import DecisionTreeClassifier

from streamlearn import HedgeMower, HedgeMower1, Marvin
from streamlearn.errors import BadParameter
from streamlearn.learners.merging import merge_learners
from streamlearn.learners.muffled import merge as merging
from streamlearn.learners.registry import from_state

N, N_LABELLED = 600, 60
NAMES = [f"x{k}" for k in range(6)]


def events(seed, n=N, n_labelled=N_LABELLED, turned=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    truth = X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=n) > 0
    labels = ~truth if turned else truth
    return X, [bool(v) if k < n_labelled else None for k, v in enumerate(labels)], truth


def maker(kind=HedgeMower1, **changes):
    return kind(**{"n_trees": 15, "members": "forest,boosted,logistic", "unlabelled_members": "off", **changes})


def part(seed, kind=HedgeMower1, turned=False, **changes):
    X, y, _ = events(seed, turned=turned)
    return maker(kind, **changes).fit(X, y)


TEST_X, _, TEST_Y = events(99, n=2000)


def auc(model):
    return roc_auc_score(TEST_Y, model.score_many(TEST_X))


@pytest.fixture(scope="module")
def parts():
    return [part(seed) for seed in range(6)]


@pytest.mark.parametrize("how", ["mean", "median", "trimmed"])
def test_the_merged_model_is_near_that_of_one_process_and_better_than_the_worst_part(parts, how):
    whole = maker()
    rows = [events(seed)[:2] for seed in range(6)]
    whole.fit(np.concatenate([X for X, _ in rows]), [label for _, y in rows for label in y])
    merged = auc(merge_learners(parts, how=how).model)

    assert merged > min(map(auc, parts)) + 0.01
    assert merged > auc(whole) - 0.03


@pytest.mark.parametrize("kind", [HedgeMower, Marvin])
def test_the_other_kinds_are_merged_alike(kind):
    parts = [part(seed, kind) for seed in range(2)]

    merged = merge_learners(parts, how="mean").model
    assert merged.vote_names == ("part 1", "part 2")
    assert auc(merged) > min(map(auc, parts))


def test_parts_with_turned_labels_are_outvoted_by_the_median_and_give_no_events():
    parts = [part(seed, turned=seed < 2) for seed in range(5)]

    found = merge_learners(parts, how="median")
    assert found.found.trusted.tolist() == [False, False, True, True, True]
    assert auc(found.model) > min(map(auc, parts[2:]))
    assert found.model._buffers.n_labelled == 3 * N_LABELLED
    assert auc(found.model) > auc(merge_learners(parts, how="mean").model)


def test_merging_is_a_function_of_the_parts_and_changes_none(parts):
    before = [part.state() for part in parts]
    one, other = (merge_learners(parts).model.state() for _ in range(2))

    for a, b in ((one, other), *zip(before, [part.state() for part in parts], strict=True)):
        assert a.keys() == b.keys()
        assert all(np.array_equal(a[key], b[key]) for key in a)


def test_a_merged_model_is_saved_and_goes_on_as_if_never_saved(parts, tmp_path):
    merged = merge_learners(parts).model
    back = from_state(merged.state())
    X, y, _ = events(50, n_labelled=200)

    assert np.array_equal(back.score_many(TEST_X), merged.score_many(TEST_X))
    for model in (back, merged):
        model.learn_many(X, y)
    assert back.n_refits == merged.n_refits > 6
    assert np.array_equal(back.score_many(TEST_X), merged.score_many(TEST_X))


def test_a_score_is_the_weighted_sum_of_the_forecasts_of_the_parts(parts):
    merged = merge_learners(parts, how="mean").model
    forecasts = np.column_stack([np.clip(one.score_many(TEST_X), -1.0, 1.0) for one in parts])

    assert merged.score_many(TEST_X) == pytest.approx(forecasts @ merged.vote_weights, abs=1e-12)
    assert (merged.vote_weights >= 0.0).all()
    assert sorted(share.name for share in merged.partition_one(TEST_X[0]).shares) == sorted(merged.vote_names)
    assert 0.0 < merged.error_bound() <= 0.5


def test_no_label_judges_a_forecast_that_it_made():
    H, seen = np.array([[0.5, 0.2], [1.0, -0.5], [0.3, 0.4]]), np.array([[1, 0], [0, 1], [0, 1]], dtype=bool)
    game = merging.Game(H, np.array([1.0, -1.0, 1.0]), np.zeros((0, 2)), seen, np.array([0.5, 0.5]))

    # By hand: votes on others' labels, as means over these alone.
    assert game.honest().T @ game.y / 3 == pytest.approx([(-1.0 + 0.3) / 2, 0.2 / 1])
    assert game.evidence()[0] == 1.0


def test_buffers_hold_a_share_of_each_part():
    parts = [part(seed, labelled_buffer=90, unlabelled_buffer=100) for seed in range(3)]

    merged = merge_learners(parts, how="mean").model
    rows, _ = merged._buffers.labelled_in_order()
    newest = np.concatenate([one._buffers.labelled_in_order()[0][-30:] for one in parts])
    assert np.array_equal(rows, newest)
    assert merged._buffers.n_unlabelled == 100
    known = {row.tobytes() for one in parts for row in one._buffers.unlabelled}
    assert {row.tobytes() for row in merged._buffers.unlabelled} <= known


def test_parts_behind_an_earlier_model_count_beside_it(parts):
    before = merge_learners(parts[:3]).model
    merged = merge_learners(parts[3:], before=before).model

    assert len(merged.vote_names) == 6
    assert merged._buffers.n_labelled == 6 * N_LABELLED
    assert auc(merged) > min(map(auc, parts))


def test_more_forecasts_than_are_kept_leave_those_of_the_largest_weights(parts, monkeypatch):
    monkeypatch.setattr(merging, "MOST_PARTS", 4)

    assert len(merge_learners(parts).model.vote_names) == 4


def test_parts_without_a_model_give_their_events_to_one():
    rows = [events(seed, n=50, n_labelled=3)[:2] for seed in range(8)]
    parts = [maker().learn_many(X, y) for X, y in rows]
    assert not any(one.is_fitted for one in parts if one._buffers.both_classes is False)

    merged = merge_learners(parts, how="mean").model
    assert merged.is_fitted
    assert merged._buffers.n_labelled == 24


def test_features_are_joined_by_name():
    X, y, _ = events(0)
    first = maker().fit([dict(zip(NAMES, row, strict=True)) for row in X.tolist()], y)
    X, y, _ = events(1)
    second = maker().fit([dict(zip(reversed(NAMES), row, strict=True)) for row in X[:, ::-1].tolist()], y)

    merged = merge_learners([first, second], how="mean").model
    assert merged.feature_names == first.feature_names
    event = dict(zip(NAMES, TEST_X[0].tolist(), strict=True))
    votes = [np.clip(one.score_one(event), -1.0, 1.0) for one in (first, second)]
    assert merged.score_one(event) == pytest.approx(float(np.dot(votes, merged.vote_weights)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"estimator": "paper"}, "estimator must be 'rectified' to be merged"),
        ({"drift": True}, "drift must be False to be merged"),
        ({"members": [DecisionTreeClassifier()]}, "members must be names to be merged"),
    ],
)
def test_what_cannot_be_merged_is_said(changes, message):
    models = [maker(**changes).learn_many(*events(seed)[:2]) for seed in range(2)]

    with pytest.raises(BadParameter, match=message):
        merge_learners(models)
