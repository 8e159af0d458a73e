"""AUCRO merged from parts is AUCRO on all rows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamlearn import AUCRO, OPAUC
from streamlearn.errors import BadLabel, BadParameter
from streamlearn.learners.auc.merge import merge_aucro
from tests.naive import auc as naive_auc
from tests.naive import merge as naive


def make_rows(n, m=4, seed=0, shift=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m)) * np.arange(1, m + 1) + shift
    y = (X - shift) @ np.linspace(1.0, -0.5, m) + rng.normal(size=n) > 0
    return X, y


def parts_of(X, y, cuts, **params):
    pieces = np.split(np.arange(len(y)), cuts)
    return [AUCRO(**{"clip": None, **params}).learn_many(X[piece], y[piece]) for piece in pieces if len(piece)]


@given(cuts=st.lists(st.integers(0, 120), max_size=5).map(sorted), shift=st.sampled_from([0.0, 1e6]))
@settings(max_examples=20, deadline=None)
def test_counts_means_and_covariances_are_those_of_all_rows_for_any_cut(cuts, shift):
    X, y = make_rows(120, m=3, shift=shift)
    merged, _ = merge_aucro(parts_of(X, y, cuts), "mean", 0.5)
    moments = merged._moments
    for label in (0, 1):
        n, mean, covariance = naive.moments(X[y == bool(label)].tolist())
        assert moments.memory(0)[6 + label] == n
        found = moments.own(0)[2 + label, :3] + moments.common()[0, :3]
        assert found == pytest.approx(mean, rel=1e-12, abs=1e-12)
        assert moments.covariance(0, label) == pytest.approx(np.array(covariance), rel=1e-9, abs=1e-9 * max(1, shift))


def test_the_merged_model_is_the_minimiser_over_all_rows():
    X, y = make_rows(150)
    merged, _ = merge_aucro(parts_of(X, y, [20, 70, 71, 90]), "mean", 0.5)
    events = naive_auc.Events(clip=None)
    for x, label in zip(X, y, strict=True):
        events.add(x, int(label))
    for x in X[:10]:
        _, ratio, chance = naive_auc.exact(events, x)
        assert merged.score_one(x) == pytest.approx(ratio, rel=1e-6, abs=1e-9)
        assert merged.predict_proba_one(x)[True] == pytest.approx(chance, rel=1e-6)


def test_the_merged_model_goes_on_as_one_that_saw_all_rows():
    X, y = make_rows(400)
    merged, _ = merge_aucro(parts_of(X[:300], y[:300], [100, 200], solve_every=1), "mean", 0.5)
    whole = AUCRO(clip=None, solve_every=1).learn_many(X[:300], y[:300])
    merged.learn_many(X[300:], y[300:])
    whole.learn_many(X[300:], y[300:])
    assert merged.score_many(X) == pytest.approx(whole.score_many(X), rel=1e-8, abs=1e-10)


def test_features_and_labels_are_matched_by_what_they_are_called():
    X, y = make_rows(200)
    labels = np.where(y, "yes", "no").tolist()
    names = ["a", "b", "c", "d"]
    events = [dict(zip(names, row, strict=True)) for row in X.tolist()]
    only_yes = [i for i in range(100) if labels[i] == "yes"]
    rest = [i for i in range(200) if i not in only_yes]
    first = AUCRO(clip=None).learn_many([events[i] for i in only_yes], [labels[i] for i in only_yes])
    second = AUCRO(clip=None)
    for i in rest:
        second.learn_one(dict(reversed(events[i].items())), labels[i])
    whole = AUCRO(clip=None, solve_every=1).learn_many(events, labels)
    merged, _ = merge_aucro([first, second], "mean", 0.5)
    scores = [merged.score_one(event) for event in events]
    assert scores == pytest.approx([whole.score_one(event) for event in events], rel=1e-8)
    assert merged.predict_one(events[0]) in ("yes", "no")


def test_a_feature_that_a_part_never_saw_was_zero_there():
    X, y = make_rows(200)
    X[:100, 2] = 0.0
    merged, _ = merge_aucro(parts_of(X, y, [100]), "mean", 0.5)
    whole = AUCRO(clip=None, solve_every=1).learn_many(X, y)
    assert merged.score_many(X) == pytest.approx(whole.score_many(X), rel=1e-8, abs=1e-10)


def test_parts_of_one_class_each_make_a_whole_model():
    X, y = make_rows(200)
    order = np.argsort(y, kind="stable")
    for how in ("mean", "median", "trimmed"):
        merged, _ = merge_aucro(parts_of(X[order], y[order], [int((~y).sum())]), how, 0.0)
        whole = AUCRO(clip=None, solve_every=1).learn_many(X, y)
        assert merged.score_many(X) == pytest.approx(whole.score_many(X), rel=1e-8, abs=1e-10)


@pytest.mark.parametrize("solver", ["exact", "sgd"])
def test_the_median_and_the_trimmed_mean_withstand_poisoned_parts_and_the_mean_does_not(solver):
    X, y = make_rows(4000, seed=3)
    cuts = np.arange(200, 4000, 200)
    bad = np.arange(4000) < 1800  # 9 of 20 parts
    poisoned = X * np.where(bad, 20.0, 1.0)[:, None]
    turned = np.where(bad, ~y, y)

    def auc(model):
        scores = model.score_many(X)
        return np.mean(scores[y][:, None] > scores[~y][None, ::7])

    clean = auc(merge_aucro(parts_of(X, y, cuts, solver=solver), "mean", 0.5)[0])
    found = {
        how: merge_aucro(parts_of(poisoned, turned, cuts, solver=solver), how, 0.5)[0]
        for how in ("mean", "median", "trimmed")
    }
    assert auc(found["median"]) > clean - 0.01
    assert auc(found["trimmed"]) > clean - 0.01
    if solver == "exact":
        assert auc(found["mean"]) < clean - 0.05
    accuracy = np.mean(np.array([found["trimmed"].predict_one(x) for x in X[1800:2200]]) == y[1800:2200])
    assert accuracy > 0.8  # centres and probabilities are those of good parts as well


def test_weights_of_sgd_are_averaged_by_count():
    X, y = make_rows(300)
    parts = [OPAUC(clip=None, scale="none").learn_many(X[a:b], y[a:b]) for a, b in ((0, 100), (100, 300))]
    merged, found = merge_aucro(parts, "mean", 0.5)
    weights = [part._moments.own(0)[0, :4] for part in parts]
    assert found.shares.tolist() == [1 / 3, 2 / 3]
    assert merged._moments.own(0)[0, :4] == pytest.approx((weights[0] + 2 * weights[1]) / 3, rel=1e-12)


def test_earlier_rows_fade_by_the_later_ones():
    X, y = make_rows(300)
    params = {"half_life": 50, "clip": None, "solve_every": 1}
    before = AUCRO(**params).learn_many(X[:200], y[:200])
    later = AUCRO(**params).learn_many(X[200:], y[200:])
    merged, _ = merge_aucro([later], "mean", 0.5, before)
    whole = AUCRO(**params).learn_many(X, y)
    assert merged.score_many(X) == pytest.approx(whole.score_many(X), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("scale", ["standard", "range"])
def test_a_merged_model_survives_saving(scale, tmp_path):
    X, y = make_rows(200)
    merged, _ = merge_aucro(parts_of(X, y, [50], solver="sgd", scale=scale), "median", 0.5)
    again = AUCRO.from_state(merged.state())
    merged.learn_many(X, y)
    again.learn_many(X, y)
    assert again.score_many(X).tobytes() == merged.score_many(X).tobytes()


def test_parts_that_learned_nothing_count_for_nothing():
    X, y = make_rows(100)
    merged, _ = merge_aucro([AUCRO(clip=None), *parts_of(X, y, [])], "median", 0.5)
    whole = AUCRO(clip=None, solve_every=1).learn_many(X, y)
    assert merged.score_many(X) == pytest.approx(whole.score_many(X), rel=1e-8)
    assert merge_aucro([AUCRO(), AUCRO()], "mean", 0.5)[0].score_one({"a": 1.0}) == 0.0


def test_models_that_are_not_alike_are_refused():
    with pytest.raises(BadParameter, match="must be alike"):
        merge_aucro([AUCRO(), AUCRO(half_life=10)], "mean", 0.5)
    with pytest.raises(BadParameter, match="got none"):
        merge_aucro([], "mean", 0.5)
    with pytest.raises(BadParameter, match="reject must be 'cost'"):
        merge_aucro([AUCRO(reject="rate")], "mean", 0.5)
    a, b = AUCRO().learn_one({"a": 1.0}, "x"), AUCRO().learn_many([{"a": 1.0}, {"a": 2.0}], ["y", "z"])
    with pytest.raises(BadLabel, match="third"):
        merge_aucro([a, b], "mean", 0.5)
