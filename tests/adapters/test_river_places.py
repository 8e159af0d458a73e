"""The estimators inside River: pipelines, unions, ensembles, samplers, drift, selection, progressive validation."""

from __future__ import annotations

import datetime as dt
from collections import deque

import numpy as np
import pandas as pd
import polars as pl
import pytest
from river import (
    compose,
    drift,
    ensemble,
    evaluate,
    imblearn,
    linear_model,
    metrics,
    model_selection,
    multiclass,
    preprocessing,
    utils,
)

from streamlearn.learners.registry import make_learner
from tests.adapters.river_streams import CLASSIFIERS, REGRESSORS, SMALL, TRANSFORMERS, events, make, targets

CHANCE = 0.5
N = 300


def accuracy(model, stream, delay=None):
    return evaluate.progressive_val_score(stream, model, metrics.Accuracy(), delay=delay).get()


def many_classes(n=N, seed=3):
    rng = np.random.default_rng(seed)
    kinds = ["ant", "bee", "cat"]
    y = rng.integers(3, size=n)
    X = rng.normal(size=(n, 3)) + 3.0 * np.eye(3)[y]
    return [({f"f{j}": v for j, v in enumerate(row)}, kinds[k]) for row, k in zip(X.tolist(), y, strict=True)]


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_behind_a_scaler(name):
    model = preprocessing.StandardScaler() | make(name)

    assert accuracy(model, events(N)) > CHANCE + 0.2
    assert model.clone()[name].learner.n_features == 0


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_behind_a_union_of_transformers(name):
    union = compose.TransformerUnion(compose.Select("f0", "f1"), preprocessing.StandardScaler())

    assert accuracy(union | make(name), events(N)) > CHANCE + 0.2


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_one_against_the_rest(name):
    model = multiclass.OneVsRestClassifier(make(name))
    score = accuracy(model, many_classes())
    frame = pd.DataFrame([x for x, _ in many_classes(60)])
    batches = multiclass.OneVsRestClassifier(make(name))
    batches.learn_many(frame, pd.Series([y for _, y in many_classes(60)]))

    assert score > 1 / 3 + 0.3
    assert set(batches.predict_many(frame)) <= {"ant", "bee", "cat"}
    assert batches.predict_proba_many(frame).sum(axis=1).tolist() == pytest.approx([1.0] * 60)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_bagged(name):
    assert accuracy(ensemble.BaggingClassifier(make(name), n_models=3, seed=0), events(N)) > CHANCE + 0.2


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_retrained_at_drift(name):
    stream = events(N) + [(x, not y) for x, y in events(N, seed=1)]
    # A new event is wrong half as often as the detector's threshold before the concepts change, nearly always after.
    model = drift.DriftRetrainingClassifier(make(name), drift.binary.DDM(warm_start=30, drift_threshold=2.0))
    first = model.model
    for x, y in stream:
        model.learn_one(x, y)

    assert model.model is not first
    assert model.predict_proba_one({"f0": 2.0, "f1": -60.0})[False] > CHANCE


@pytest.mark.parametrize(
    "sampler",
    [imblearn.RandomUnderSampler, imblearn.RandomOverSampler, imblearn.RandomSampler],
)
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_in_a_sampler(name, sampler):
    rate = {"sampling_rate": 0.8} if sampler is imblearn.RandomSampler else {}
    model = sampler(make(name), desired_dist={False: 0.5, True: 0.5}, seed=1, **rate)

    assert accuracy(model, events(N)) > CHANCE + 0.2


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_in_a_hard_sampler(name):
    model = imblearn.HardSamplingClassifier(make(name), size=20, p=0.3, seed=1)

    assert accuracy(model, events(N)) > CHANCE + 0.2


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_selected_among_models(name):
    key = sorted(make(name)._get_params().keys() & {"max_features"})[0]
    grid = utils.expand_param_grid(make(name), {key: [100, 200]})
    bandit = model_selection.BanditClassifier(grid, metric=metrics.Accuracy(), policy=_policy(len(grid)))
    halving = model_selection.SuccessiveHalvingClassifier(grid, metric=metrics.Accuracy(), budget=N, eta=2)

    for model in (bandit, halving):
        assert accuracy(model, events(N)) > CHANCE + 0.2
        assert getattr(model.best_model, key) in (100, 200)


def _policy(n_arms):
    from river import bandit

    return bandit.EpsilonGreedy(epsilon=0.2, decay=0.01, burn_in=n_arms, seed=1)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_progressive_validation_gets_the_forecasts_that_our_own_gets(name):
    stream, bare = events(N), make_learner(name, SMALL.get(name, {}))
    expected = []
    for start in range(0, N, 50):
        X, y = zip(*stream[start : start + 50], strict=True)
        values = np.array([list(x.values()) for x in X])
        expected += bare.test_then_learn_columns(tuple(X[0]), values, np.array(y)).probabilities.tolist()

    steps = evaluate.iter_progressive_val_score(stream, make(name), metrics.ROCAUC(), step=1, yield_predictions=True)

    assert [step["Prediction"][True] for step in steps] == expected


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_progressive_validation_with_late_labels_forecasts_before_it_learns(name):
    delay, stream, metric, model, waiting = 20, events(N), metrics.Accuracy(), make(name), deque()
    for x, y in stream:  # River hands out a label when the event `delay` later has been asked about
        if len(waiting) == delay:
            then, answer, guess = waiting.popleft()
            if guess is not None:
                metric.update(answer, guess)
            model.learn_one(then, answer)
        waiting.append((x, y, model.predict_one(x)))
    for then, answer, guess in waiting:
        metric.update(answer, guess)
        model.learn_one(then, answer)

    assert accuracy(make(name), stream, delay=delay) == metric.get() > CHANCE + 0.2


def test_progressive_validation_with_labels_late_in_time():
    start = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    stream = [({**x, "at": start + dt.timedelta(hours=k)}, y) for k, (x, y) in enumerate(events(N))]
    model = compose.Discard("at") | make("AdaptiveAUCRO")

    found = evaluate.progressive_val_score(
        stream, model, metrics.Accuracy(), moment="at", delay=dt.timedelta(hours=10, minutes=30)
    )

    assert found.get() > CHANCE + 0.2


def test_abstentions_are_left_out_of_rivers_metrics():
    stream = events(5 * N, noise=2.0)
    everything, sure = make("AdaptiveAUCRO"), make("AdaptiveAUCRO", reject_cost=0.2)

    assert accuracy(sure, stream) > accuracy(everything, stream) + 0.05


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_rolling_metrics_follow_the_estimator(name):
    windowed = utils.Rolling(metrics.Accuracy, window_size=50)
    model, recent = make(name), deque(maxlen=50)
    for x, y in events(N):
        guess = model.predict_one(x)
        if guess is not None:
            windowed.update(y, guess)
            recent.append(guess == y)
        model.learn_one(x, y)

    assert windowed.get() == pytest.approx(np.mean(recent))


@pytest.mark.parametrize("name", REGRESSORS)
def test_regressors_behind_a_scaler_beat_what_outliers_ruin(name):
    params = {"batch_size": 30} if name == "ORL" else {}
    robust = preprocessing.StandardScaler() | make(name, **params)
    plain = preprocessing.StandardScaler() | linear_model.LinearRegression()
    clean = [(x, y) for x, y in targets(N) if y < 100.0]

    errors = {}
    for title, model in (("robust", robust), ("plain", plain)):
        for x, y in targets(N):
            model.learn_one(x, y)
        errors[title] = np.mean([abs(model.predict_one(x) - y) for x, y in clean])

    assert errors["robust"] < errors["plain"] / 3


@pytest.mark.parametrize("name", REGRESSORS)
def test_regressors_in_ensembles_and_selection(name):
    bagged = ensemble.BaggingRegressor(make(name, max_features=50), n_models=2, seed=0)
    chosen = model_selection.GreedyRegressor([make(name, max_features=50), make(name, max_features=60)], metrics.MAE())
    for model in (bagged, chosen):
        for x, y in targets(N):
            model.learn_one(x, y)
        assert np.isfinite(model.predict_one(targets(1)[0][0]))


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_transformers_add_their_features_in_a_union(name):
    params = {"batch_size": 40} if name == "ORLPCA" else {}
    made = list(make(name, **params).transform_one({"f0": 1.0}))
    union = compose.Select("f0", "f1") + make(name, **params)
    model = union | linear_model.LogisticRegression()
    for x, y in events(N):
        model.learn_one(x, y)

    assert set(union.transform_one(events(1)[0][0])) >= {"f0", "f1", *made}
    frame = pd.DataFrame([x for x, _ in events(5)], index=[9, 8, 7, 6, 5])
    assert union.transform_many(frame).index.tolist() == [9, 8, 7, 6, 5]


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_pipeline_learns_frames(name, kind):
    model = preprocessing.StandardScaler() | make(name)
    stream = events(N)
    X, y = kind([x for x, _ in stream]), (pd.Series if kind is pd.DataFrame else pl.Series)([y for _, y in stream])
    for start in range(0, N, 50):
        model.learn_many(X[start : start + 50], y[start : start + 50])

    right = np.array(model.predict_many(X).to_list()) == np.array(y.to_list())
    assert right.mean() > CHANCE + 0.3
