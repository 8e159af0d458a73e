import math
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from river import linear_model

from streamlearn.errors import BadLabel, BadParameter, BadShape, BadValue
from streamlearn.evaluation import AUC, RejectCurve, prequential
from streamlearn.evaluation.blocks import blocks
from streamlearn.evaluation.forecasts import joined
from tests.naive import evaluation as naive
from tests.naive.logistic import NaiveLogistic

METRICS = ["auc", "auc:window=100", "accuracy", "coverage", "logloss", "kappa_t", "reject_auc:d=0.4"]


def events(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, X[:, 0] - 0.5 * X[:, 1] + 0.5 * rng.normal(size=n) > 0.0


def results(report):
    # As text, which tells doubles apart and lets NaN equal NaN.
    return [
        f"{report.n_events} {report.n_labelled} {report.n_abstained} {report.at.tolist()}",
        *(f"{name} {report.values[name]!r} {report.intervals[name]!r}" for name in report.values),
        *(f"{name} {values.tolist()!r}" for name, values in report.trajectories.items()),
    ]


def by_hand(X, y, delay):
    """Score row t, then learn row t - delay."""
    learner = NaiveLogistic(positive=True)
    scores = []
    for t in range(len(X)):
        scores.append(learner.score_one(dict(enumerate(X[t].tolist()))))
        if t >= delay:
            learner.learn_one(dict(enumerate(X[t - delay].tolist())), bool(y[t - delay]))
    return scores


@pytest.mark.parametrize("delay", [0, 1, 7, 48, 1000])
def test_each_event_is_forecast_by_a_model_that_knows_the_labels_that_have_come(delay):
    X, y = events()
    auc = AUC()
    prequential((X, y), NaiveLogistic(positive=True), [auc], delay=delay)
    expected = naive.auc(y.astype(int).tolist(), by_hand(X, y, delay))
    np.testing.assert_allclose(auc.get(), expected, rtol=1e-12)


@pytest.mark.parametrize("delay", [0, 1, 5, 64])
@pytest.mark.parametrize("batch_size", [1, 3, 50, 299])
def test_the_batch_size_changes_nothing(delay, batch_size):
    X, y = events()
    whole = prequential((X, y), NaiveLogistic(), METRICS, delay=delay, every=70)
    cut = prequential((X, y), NaiveLogistic(), METRICS, delay=delay, every=70, batch_size=batch_size)
    assert results(cut) == results(whole)


class InOneGo(NaiveLogistic):
    """Takes whole blocks of late labels, and counts them."""

    calls = 0

    def test_then_learn_late(self, names, test_values, late_values, late_labels, late_memo=None):
        assert late_memo.shape == (len(late_labels), 0)
        self.calls += 1
        rows = []
        for i in range(len(test_values)):
            forecast = self.score_columns(names, test_values[i : i + 1])
            tested = self.decide_columns(np.array([-1], np.int8), *forecast)
            late = self.test_then_learn_columns(names, late_values[i : i + 1], late_labels[i : i + 1])
            rows.append((replace(tested, codes=late.codes), late_labels[i : i + 1]))
        return joined(rows)[0], np.empty((len(rows), 0))


@pytest.mark.parametrize("batch_size", [7, 1024])
def test_a_learner_that_takes_late_labels_in_one_go_is_measured_alike(batch_size):
    X, y = events()
    quick = InOneGo()
    expected = results(prequential((X, y), NaiveLogistic(), METRICS, delay=20))
    assert results(prequential((X, y), quick, METRICS, delay=20, batch_size=batch_size)) == expected
    assert 0 < quick.calls < 60


@pytest.mark.parametrize("delay", [0, 5])
def test_after_the_run_the_learner_has_learned_every_event(delay):
    X, y = events()
    run, plain = NaiveLogistic(), NaiveLogistic()
    prequential((X, y), run, ["auc"], delay=delay)
    plain.learn_many(X, y)
    assert run.score_many(X).tolist() == plain.score_many(X).tolist()


def test_every_form_of_stream_gives_the_same_report():
    X, y = events(120)
    names = ["a", "b", "c"]
    dicts = [dict(zip(names, row, strict=True)) for row in X.tolist()]
    forms = {
        "mappings": list(zip(dicts, y.tolist(), strict=True)),
        "generator": ((x, label) for x, label in zip(dicts, y, strict=True)),
        "rows": (dicts, y),
        "pandas": (pd.DataFrame(X, columns=names), pd.Series(y)),
        "polars": (pl.DataFrame(X, schema=names), pl.Series(y)),
        "batches": [(pd.DataFrame(X[a : a + 50], columns=names), y[a : a + 50]) for a in range(0, 120, 50)],
        "mixed": [(dicts[0], y[0]), (dicts[1], y[1]), (dicts[2:], y[2:])],
    }
    expected = results(prequential((X, y), NaiveLogistic(), METRICS))
    for name, stream in forms.items():
        assert results(prequential(stream, NaiveLogistic(), METRICS)) == expected, name
    assert results(prequential(list(zip(X, y, strict=True)), NaiveLogistic(), METRICS)) == expected


def test_a_trajectory_is_what_the_metric_was_at_each_sample():
    X, y = events(250)
    report = prequential((X, y), NaiveLogistic(positive=True), ["auc"], every=100, batch_size=64)
    assert report.at.tolist() == [100, 200, 250]
    scores = by_hand(X, y, 0)
    expected = [naive.auc(y[:n].astype(int).tolist(), scores[:n]) for n in (100, 200, 250)]
    np.testing.assert_allclose(report.trajectories["auc"], expected, rtol=1e-12)
    assert report.values["auc"] == report.trajectories["auc"][-1]
    assert report.events_per_s > 0.0


def test_events_without_label_are_forecast_but_not_measured():
    X, y = events(200)
    labels = np.array([None if i % 4 == 3 else bool(label) for i, label in enumerate(y)], object)
    for delay in (0, 6):
        report = prequential((X, labels), NaiveLogistic(), ["auc"], delay=delay)
        assert (report.n_events, report.n_labelled) == (200, 150)
        assert 0.8 < report.values["auc"] <= 1.0


class Cautious(NaiveLogistic):
    """Abstains below a probability of 0.7."""

    reject_cost = 0.3


@pytest.mark.parametrize("delay", [0, 3])
def test_abstentions_are_counted_and_belong_to_no_class(delay):
    X, y = events(300)
    curve = RejectCurve()
    report = prequential((X, y), Cautious(), ["coverage", "accuracy", "risk:d=0.3", curve], delay=delay)
    assert 0 < report.n_abstained < 300
    np.testing.assert_allclose(report.values["coverage"], 1.0 - report.n_abstained / 300, rtol=1e-12)
    kept = 300 - report.n_abstained
    expected = ((1.0 - report.values["accuracy"]) * kept + 0.3 * report.n_abstained) / 300
    np.testing.assert_allclose(report.values["risk_0.3"], expected, rtol=1e-12)
    assert report.values["reject_curve"] == curve.get()


@pytest.mark.parametrize("delay", [0, 1, 9])
def test_river_classifiers_are_measured_by_their_verbs(delay):
    X, y = events(200)
    dicts = [dict(enumerate(row)) for row in X.tolist()]
    report = prequential((X, y), linear_model.LogisticRegression(), ["auc", "logloss", "accuracy"], delay=delay)
    model, probabilities = linear_model.LogisticRegression(), []
    for t, x in enumerate(dicts):
        probabilities.append(model.predict_proba_one(x)[True])
        if t >= delay:
            model.learn_one(dicts[t - delay], bool(y[t - delay]))
    labels = y.astype(int).tolist()
    np.testing.assert_allclose(report.values["auc"], naive.auc(labels, probabilities), rtol=1e-12)
    np.testing.assert_allclose(report.values["logloss"], naive.logloss(labels, probabilities, [1.0] * 200), rtol=1e-12)
    decisions = [float(p >= 0.5) for p in probabilities]
    np.testing.assert_allclose(report.values["accuracy"], naive.accuracy(labels, decisions, [1.0] * 200), rtol=1e-12)
    assert report.learner == "LogisticRegression"


@pytest.mark.parametrize("delay", [0, 4])
def test_river_regressors_are_measured_by_their_verbs(delay):
    X, _ = events(200)
    y = X[:, 0] * 2.0 + 1.0
    report = prequential((X, y), linear_model.LinearRegression(), ["mae", "rmse"], delay=delay, batch_size=30)
    model, forecasts = linear_model.LinearRegression(), []
    for t, row in enumerate(X.tolist()):
        forecasts.append(model.predict_one(dict(enumerate(row))))
        if t >= delay:
            model.learn_one(dict(enumerate(X[t - delay].tolist())), float(y[t - delay]))
    np.testing.assert_allclose(report.values["mae"], naive.mae(y.tolist(), forecasts, [1.0] * 200), rtol=1e-12)
    np.testing.assert_allclose(report.values["rmse"], naive.rmse(y.tolist(), forecasts, [1.0] * 200), rtol=1e-12)


def test_text_labels_need_the_positive_one_where_the_learner_does_not_know_it():
    X, y = events(100)
    named = np.where(y, "good", "bad").astype(object)
    plain = prequential((X, y), linear_model.LogisticRegression(), ["accuracy"])
    with pytest.raises(BadParameter, match=r"^prequential: positive must be given for labels other than"):
        prequential((X, named), linear_model.Perceptron(), ["accuracy"])
    named_wrong = named.copy()
    named_wrong[50] = "ugly"
    with pytest.raises(BadLabel, match=r"got a third label 'ugly'"):
        prequential((X, named_wrong), linear_model.LogisticRegression(), ["accuracy"], positive="good")
    assert 0.8 < plain.values["accuracy"] <= 1.0


@pytest.mark.parametrize("delay", [0, 3])
@pytest.mark.parametrize("batch_size", [1, 1024])
def test_text_labels_are_measured_like_bools_even_where_the_greater_one_comes_first(delay, batch_size):
    X, y = events(120)
    y[:10] = True
    named = np.where(y, "yes", "no").astype(object)
    assert named[0] > "no"
    expected = prequential((X, y), NaiveLogistic(), METRICS, delay=delay, batch_size=batch_size)
    actual = prequential((X, named), NaiveLogistic(), METRICS, delay=delay, batch_size=batch_size)
    np.testing.assert_allclose(
        [actual.values[name] for name in actual.values], [expected.values[name] for name in expected.values], rtol=1e-9
    )


def test_an_empty_stream_gives_an_empty_report():
    report = prequential([], NaiveLogistic(), ["auc"])
    assert (report.n_events, report.at.tolist()) == (0, [])
    assert math.isnan(report.values["auc"])


@pytest.mark.parametrize(
    ("stream", "error", "message"),
    [
        ([({"a": 1.0}, 1), ({"a": "1.5"}, 0)], BadValue, "feature 'a' must be a finite number, got '1.5' in row 1"),
        ([({"a": None}, 1)], BadValue, "feature 'a' must be a finite number, got None in row 0"),
        ((np.zeros((3, 2)), [1, 0]), BadShape, "y must have one label for each of 3 rows, got 2"),
        ([(np.zeros((2, 2, 2)), [1, 0])], BadShape, "X must be two-dimensional"),
        ([1, 2], BadShape, r"stream must give \(x, y\) pairs, got int"),
        ((pd.DataFrame({"a": ["x", "y"]}), [1, 0]), BadValue, "feature 'a' must be a finite number"),
        ([(object(), [1, 0])], BadShape, "X must be an array, a dataframe or mappings, got object"),
        ([({"a": np.datetime64("2024-01-01", "ns")}, 1)], BadValue, "feature 'a' must be .* got np.datetime64"),
        ([({"a": 10**400}, 1)], BadValue, "feature 'a' must be a finite number, got 1000.*0 in row 0"),
        (
            (np.array([["1.5", 2]] * 2, object), [1, 0]),
            BadValue,
            "feature 0 must be a finite number, got '1.5' in row 0",
        ),
        ((np.array([["2024-01-01"]] * 2, "M8[ns]"), [1, 0]), BadValue, "feature 0 must be a finite number, got "),
        ((np.ma.array([[1.0], [2.0]], mask=[[0], [1]]), [1, 0]), BadValue, "feature 0 must be .* got None in row 1"),
        ((pl.DataFrame({"a": [1, None]}), [1, 0]), BadValue, "feature 'a' must be a finite number, got None in row 1"),
        ((pa.table({"a": [1.5, None]}), [1, 0]), BadValue, "feature 'a' must be a finite number, got None in row 1"),
        ((pd.DataFrame({"a": pd.array([1, None])}), [1, 0]), BadValue, "feature 'a' must .* got None in row 1"),
        ((pd.DataFrame({"a": pd.Series([1, "2"], dtype=object)}), [1, 0]), BadValue, "feature 'a' .* got '2' in row 1"),
    ],
)
def test_a_stream_that_cannot_be_read_is_refused_with_the_place(stream, error, message):
    with pytest.raises(error, match=f"^prequential: {message}"):
        prequential(stream, NaiveLogistic(), ["auc"])


@pytest.mark.parametrize(
    "X",
    [
        pd.DataFrame({"a": pd.Series([1, 2.5, True], dtype=object)}),
        pd.DataFrame({"a": pd.array([1.0, 2.5, 1.0], "Float64")}),
        pl.DataFrame({"a": [Decimal("1.0"), Decimal("2.5"), Decimal("1.0")]}),
        pa.table({"a": [1.0, 2.5, 1.0]}),
        np.array([[1], [2.5], [True]], object),
    ],
    ids=["objects", "nullable", "decimals", "arrow", "array of objects"],
)
def test_numbers_in_any_kind_of_column_are_the_same_numbers(X):
    (block,) = blocks((X, [1, 0, 1]), 10)
    assert block.values.tolist() == [[1.0], [2.5], [1.0]]


@pytest.mark.parametrize("missing", [None, math.nan, np.nan, pd.NA, pd.NaT])
def test_whatever_means_no_label_is_no_label(missing):
    X, y = events(40)
    labels = y.astype(object)
    labels[3] = missing
    for learner in (NaiveLogistic(), linear_model.LogisticRegression()):
        assert prequential((X, labels), learner, ["auc"]).n_labelled == 39


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"delay": -1}, "delay must be >= 0, got -1"),
        ({"batch_size": 0}, "batch_size must be an integer >= 1, got 0"),
        ({"every": 1.5}, "every must be an integer >= 1, got 1.5"),
        ({"metrics": []}, "metrics must be at least one"),
        ({"metrics": ["auc", AUC()]}, "metrics must be at least one and differ in name"),
    ],
)
def test_parameters_that_break_their_rule_are_refused(parameters, message):
    with pytest.raises(BadParameter, match=f"^prequential: {message}"):
        prequential(events(10), NaiveLogistic(), **parameters)


def test_something_without_the_verbs_of_a_learner_is_refused():
    with pytest.raises(BadParameter, match=r"^prequential: learner must have learn_one, got object"):
        prequential(events(10), object(), ["auc"])


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (pd.DataFrame(np.ones((2, 2)), columns=["a", "a"]), [0, 1], "feature names must differ"),
        (pd.DataFrame({"a": [1.0, 2.0]}), pd.Series([0, 1], index=[1, 0]), "y must have the index of X"),
        (pd.DataFrame({"a": [1.0, 2.0]}), pd.DataFrame({"y": [0, 1]}), "y must be one-dimensional, got a frame"),
    ],
)
def test_frames_whose_columns_or_rows_could_be_mistaken_are_refused(X, y, message):
    with pytest.raises(BadShape, match=f"prequential: {message}"):
        prequential((X, y), NaiveLogistic(), ["auc"])
