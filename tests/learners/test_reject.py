"""LogisticReject and HingeReject: their rules of abstaining, their parameters, their worth on real data."""

import csv
import gzip
import math
from pathlib import Path

import numpy as np
import pytest
from river import linear_model, preprocessing
from sklearn.metrics import log_loss, roc_auc_score

from streamlearn.errors import BadParameter
from streamlearn.learners.auc.reject import HingeReject, LogisticReject

DIABETES = Path(__file__).parents[3] / "shared" / "data" / "diabetes.csv.gz"


def stream(seed, n=400, m=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m)) * [1.0, 100.0, 0.01, 3.0] + [0.0, 1e4, 0.0, -2.0]
    chance = 1 / (1 + np.exp(-2 * X[:, 0] - 100 * X[:, 2]))
    return X, (rng.random(n) < chance).astype(int)


@pytest.mark.parametrize("cost", [0.05, 0.2, 0.4])
def test_logistic_abstains_between_its_cost_and_one_minus_it(cost):
    X, y = stream(1)
    model = LogisticReject(reject_cost=cost).learn_many(X, y)
    said = list(model.predict_many(X))
    assert {None, 0, 1} == set(said)
    for x, label in zip(X, said, strict=True):
        eta = 1 / (1 + math.exp(-model.score_one(x)))
        assert model.predict_proba_one(x)[1] == pytest.approx(eta, rel=1e-14)
        assert (label is None) == (cost < eta < 1 - cost)
        assert label == model.predict_one(x)


def test_the_logistic_band_is_that_of_log_odds():
    X, y = stream(2)
    cost = 0.15
    model = LogisticReject(reject_cost=cost).learn_many(X, y)
    bar = math.log((1 - cost) / cost)
    assert [p is None for p in model.predict_many(X)] == (np.abs(model.score_many(X)) < bar).tolist()


@pytest.mark.parametrize("threshold", [0.2, 0.5, 0.8])
def test_hinge_abstains_by_the_size_of_its_score(threshold):
    X, y = stream(3)
    model = HingeReject(reject_cost=0.2, threshold=threshold).learn_many(X, y)
    scores = model.score_many(X)
    said = list(model.predict_many(X))
    assert None in said
    for x, score, label in zip(X, scores, said, strict=True):
        assert label == (None if abs(score) <= threshold else int(score > 0))
        assert label == model.predict_one(x)
    tested = model.clone().test_then_learn_columns((0, 1, 2, 3), X, y)
    by_score = np.where(np.abs(tested.scores) <= threshold, np.nan, tested.scores > 0)
    assert np.array_equal(tested.decisions[20:], by_score[20:], equal_nan=True)


def test_hinge_never_abstains_at_one_half():
    X, y = stream(4)
    assert None not in list(HingeReject().learn_many(X, y).predict_many(X))


def test_what_is_decided_errs_less_than_abstaining_costs_and_cheap_abstaining_is_used_more():
    X, y = stream(5, n=4000)
    for make in (LogisticReject, HingeReject):
        rates = []
        for cost in (0.1, 0.2, 0.3, 0.4):
            tested = make(reject_cost=cost).test_then_learn_columns((0, 1, 2, 3), X, y)
            late = tested.decisions[2000:]
            kept = ~np.isnan(late)
            rates.append(1 - kept.mean())
            assert (late[kept] != y[2000:][kept]).mean() < cost
        assert rates == sorted(rates, reverse=True)


def test_the_cost_of_a_trained_model_may_be_changed_within_its_range():
    X, y = stream(6)
    model = LogisticReject().learn_many(X, y)
    before = model._arena.copy()
    assert None not in list(model.predict_many(X))
    model.reject_cost = 0.01
    assert None in list(model.predict_many(X))
    assert (model._arena == before).all()
    with pytest.raises(BadParameter, match=r"LogisticReject: reject_cost must be in \(0, 0.5\], got 0.6"):
        model.reject_cost = 0.6


@pytest.mark.parametrize(
    ("make", "params", "message"),
    [
        (LogisticReject, {"reject_cost": 0.0}, r"reject_cost must be in \(0, 0.5\], got 0.0"),
        (LogisticReject, {"learning_rate": -1.0}, r"learning_rate must be in \(0, 1e\+06\], got -1.0"),
        (LogisticReject, {"l2": -0.1}, r"l2 must be in \[0, 1e\+06\], got -0.1"),
        (LogisticReject, {"l2": float("nan")}, "l2 must be"),
        (LogisticReject, {"scale": "robust"}, r"scale must be one of \['none', 'range', 'standard'\], got 'robust'"),
        (HingeReject, {"threshold": 0.9, "reject_cost": 0.2}, r"threshold must be in \(0, 0.8\], got 0.9"),
        (HingeReject, {"threshold": 0}, "threshold must be"),
        (HingeReject, {"max_features": 0}, "max_features must be"),
    ],
)
def test_wrong_parameters_are_named(make, params, message):
    with pytest.raises(BadParameter, match=f"{make.__name__}: {message}"):
        make(**params)


@pytest.mark.parametrize("make", [LogisticReject, HingeReject])
def test_units_and_distance_from_zero_do_not_matter(make):
    X, y = stream(7)
    scores = make().test_then_learn_many(X, y)
    moved = make().test_then_learn_many(X * [1e-6, 1e3, 1.0, 7.0] + [0.0, 1e9, 0.0, 50.0], y)
    assert moved == pytest.approx(scores, rel=1e-3, abs=1e-3)


@pytest.mark.parametrize("make", [LogisticReject, HingeReject])
def test_l2_pulls_the_weights_to_zero(make):
    X, y = stream(8)
    spreads = [np.std(make(l2=l2).learn_many(X, y).score_many(X)) for l2 in (0.0, 0.1, 10.0)]
    assert spreads == sorted(spreads, reverse=True)
    assert spreads[2] < 0.5 * spreads[0]


@pytest.mark.skipif(not DIABETES.exists(), reason="the diabetes data set is not beside the repository")
@pytest.mark.parametrize("make", [LogisticReject, HingeReject])
def test_untuned_on_raw_data_no_worse_than_a_river_pipeline(make):
    with gzip.open(DIABETES, "rt") as file:
        table = np.array([[float(v) for v in row] for row in list(csv.reader(file))[1:]])
    X, y = table[:, :-1], table[:, -1] > 0
    river = preprocessing.StandardScaler() | linear_model.LogisticRegression()
    expected = np.empty(len(X))
    for i, (row, label) in enumerate(zip(X.tolist(), y.tolist(), strict=True)):
        x = dict(enumerate(row))
        expected[i] = river.predict_proba_one(x).get(True, 0.5)
        river.learn_one(x, label)
    tested = make().test_then_learn_columns(tuple(range(X.shape[1])), X, y)
    assert roc_auc_score(y, tested.scores) >= roc_auc_score(y, expected)
    assert log_loss(y, tested.probabilities) <= log_loss(y, expected)
