"""Known traps of online learning and its evaluation, each with the right answer in one line."""

import math
from datetime import datetime

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

import streamlearn
from streamlearn import AUCRO, FSAUC, OPAUC, AdaptiveAUCRO, HingeReject, LogisticReject, OAMgd, OAMseq, load
from streamlearn.errors import BadLabel, BadShape, BadSnapshot, BadValue, NewerSnapshot
from streamlearn.evaluation import (
    AUC,
    METRICS,
    Accuracy,
    Coverage,
    KappaM,
    LogLoss,
    RejectAUC,
    Risk,
    make_metric,
    prequential,
)
from streamlearn.evaluation.blocks import Block
from streamlearn.evaluation.delayed import DelayedLearner
from streamlearn.snapshot import pack, split, unpack

SCORERS = [AUCRO, AdaptiveAUCRO, OPAUC, FSAUC, OAMseq, OAMgd, LogisticReject, HingeReject]
each = pytest.mark.parametrize("make", SCORERS, ids=lambda make: make.__name__)

NUMPYS = [np.datetime64("2024-01-01", "ns"), np.timedelta64(5, "ns"), np.complex128(1.0)]
"""What numpy would take for numbers."""


def events(n=200, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, (X[:, 0] - X[:, 1] + 0.5 * rng.normal(size=n) > 0.0).astype(int)


def same(a, b):
    return a.keys() == b.keys() and all(np.array_equal(a[k], b[k]) for k in a)


def auc_of(y, scores, **how):
    auc = AUC(**how)
    auc.update_many(y, scores)
    return auc.get()


# -- values


@each
def test_one_nan_among_clean_rows_is_refused_and_leaves_the_model_alone(make):
    X, y = events()
    model = make().learn_many(X, y)
    before, bad = model.state(), X.copy()
    bad[77, 1] = math.nan
    with pytest.raises(BadValue, match="row 77"):
        model.learn_many(bad, y)
    assert same(before, model.state())


@each
def test_values_of_mean_1e9_are_ranked_nearly_as_well_as_centred_ones(make):
    X, y = events(600)
    scaled = {"scale": "standard"} if "scale" in make.parameter_names() else None
    if scaled is None:
        pytest.skip("the learner leaves scaling to its caller")
    assert roc_auc_score(y[300:], make(**scaled).test_then_learn_many(X + 1e9, y)[300:]) > 0.8


@each
def test_a_constant_feature_that_is_left_once_leaves_finite_scores(make):
    X, y = events()
    X[:, 2], X[150, 2] = 5.0, 5.5
    assert np.isfinite(make().test_then_learn_many(X, y)).all()


@each
def test_a_first_value_of_5e19_leaves_finite_scores(make):
    X, y = events()
    X[0, 0] = 5e19
    assert np.isfinite(make().test_then_learn_many(X, y)).all()


@each
def test_nanosecond_timestamps_as_features_leave_finite_scores(make):
    X, y = events()
    X[:, 2] = 1.7e18 + 1e9 * np.arange(len(X))
    assert np.isfinite(make().test_then_learn_many(X, y)).all()


@each
def test_an_integer_past_the_largest_double_is_refused(make):
    with pytest.raises(BadValue, match="'a'"):
        make().learn_one({"a": 10**400}, 1)


@each
@pytest.mark.parametrize("value", [None, "1.5", b"1", datetime(2024, 1, 1), [1.0], *NUMPYS])
def test_what_is_no_number_is_refused_by_name(make, value):
    with pytest.raises(BadValue, match="'a'"):
        make().learn_one({"a": value}, 1)
    with pytest.raises(BadValue, match="'a'"):
        make().learn_many([{"a": value}], [1])


# -- labels


@each
@pytest.mark.parametrize("pair", [(False, True), (np.False_, np.True_), (np.int64(0), np.int64(1)), ("no", "yes")])
def test_any_two_labels_give_the_same_scores_and_come_back_as_they_are(make, pair):
    X, y = events()
    model = make()
    for x, label in zip(X, y, strict=True):
        model.learn_one(x, pair[label])
    plain = make().learn_many(X, y)
    assert model.score_many(X).tolist() == plain.score_many(X).tolist()
    assert {type(p) for p in (model.predict_one(x) for x in X) if p is not None} <= {type(pair[0])}


@each
def test_true_and_1_are_one_label(make):
    X, y = events(20)
    mixed = make()
    for i, (x, label) in enumerate(zip(X, y.tolist(), strict=True)):
        mixed.learn_one(x, bool(label) if i % 2 else label)
    assert mixed.score_many(X).tolist() == make().learn_many(X, y).score_many(X).tolist()


@each
def test_a_third_label_is_refused_and_leaves_the_model_alone(make):
    X, y = events()
    model = make().learn_many(X, y)
    before = model.state()
    with pytest.raises(BadLabel, match="third"):
        model.learn_one(X[0], 2)
    assert same(before, model.state())


@each
def test_no_label_is_no_class(make):
    X, y = events()
    with_gaps, plain = make(), make()
    for i, (x, label) in enumerate(zip(X, y.tolist(), strict=True)):
        with_gaps.learn_one(x, label)
        plain.learn_one(x, label)
        if i % 5 == 0:
            with_gaps.learn_one(x, None)
    assert (with_gaps.score_many(X) * plain.score_many(X) >= 0.0).all()


@each
def test_a_class_that_appears_late_is_learned(make):
    X, y = events(800)
    order = np.argsort(y[:300], kind="stable")
    X[:300], y[:300] = X[:300][order], y[:300][order]
    assert roc_auc_score(y[400:], make().test_then_learn_many(X, y)[400:]) > 0.7


@each
def test_a_stream_of_one_class_has_no_auc_and_names_that_class(make):
    X, _ = events(50)
    report = prequential((X, np.ones(50, int)), model := make(), ["auc"])
    assert math.isnan(report.values["auc"])
    assert model.predict_one(X[0]) in (1, None)


@each
def test_forecasts_before_anything_was_learned_are_defined(make):
    model = make()
    assert math.isfinite(model.score_one({"a": 1.0}))
    assert model.predict_one({"a": 1.0}) is None
    assert model.predict_proba_one({"a": 1.0}) == {}


# -- metrics


def test_auc_of_scores_within_002_is_scikit_learns():
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 500)
    scores = 0.49 + 0.02 * rng.random(500) + 0.002 * y
    assert auc_of(y, scores) == pytest.approx(roc_auc_score(y, scores), abs=1e-12)


def test_auc_with_ties_counts_half_a_pair():
    assert auc_of([0, 1, 0, 1], [0.5, 0.5, 0.2, 0.9]) == 0.875


def test_auc_of_margins_of_3_needs_no_probabilities():
    y = np.array([0, 1, 0, 1, 1])
    assert auc_of(y, [-3.0, 3.0, 1.5, 2.5, -2.0]) == pytest.approx(5 / 6)


def test_a_windowed_auc_that_is_never_read_is_that_of_its_window():
    rng = np.random.default_rng(2)
    y, scores = rng.integers(0, 2, 900), rng.normal(size=900)
    assert auc_of(y, scores, window=50) == pytest.approx(roc_auc_score(y[-50:], scores[-50:]), abs=1e-12)


def test_restoring_the_state_before_an_update_reverts_it_bit_for_bit():
    for short, metric in METRICS.items():
        made = make_metric(f"{short}:d=0.3" if "d" in metric.__init__.__annotations__ and short != "auc" else short)
        values = [0.2, 0.7, 0.4]
        labels = [0.1, 0.5, 0.9] if made.takes == "value" else [0, 1, 0]
        decisions = [0.0, 1.0, 1.0]
        made.update_many(labels, decisions if made.takes == "prediction" else values)
        before = made.state()
        made.update(1, 1.0)
        made.restore(before)
        assert same(made.state(), before), short


def test_abstaining_on_everything_is_coverage_0_no_accuracy_and_risk_d():
    coverage, accuracy, risk = Coverage(), Accuracy(), Risk(0.2)
    for metric in (coverage, accuracy, risk):
        metric.update_many([0, 1, 1], [math.nan] * 3)
    assert (coverage.get(), risk.get()) == (0.0, pytest.approx(0.2))
    assert math.isnan(accuracy.get())


def test_rejecting_every_pair_leaves_no_auc():
    auc = RejectAUC(0.4)
    auc.update_many([0, 1], [0.0, 0.0])
    assert math.isnan(auc.get())


def test_a_certain_error_costs_36_nats_and_not_infinity():
    loss = LogLoss()
    loss.update(1, 0.0)
    assert loss.get() == pytest.approx(36.04, abs=0.01)


def test_kappa_m_of_the_majority_class_is_worth_the_coin_of_the_first_event():
    kappa = KappaM()
    kappa.update_many([0] * 8 + [1] * 2, [0.0] * 10)
    assert kappa.get() == pytest.approx(1.0 - 2.0 / 2.5)


def test_events_without_forecast_or_label_are_not_measured():
    assert auc_of([0, 1, -1, 1], [0.1, 0.9, 0.0, math.nan]) == 1.0


# -- batches and columns


@each
def test_empty_and_one_row_batches_are_learned_like_any(make):
    X, y = events(30)
    model = make().learn_many(X[:0], y[:0])
    for i in range(30):
        model.learn_many(X[i : i + 1], y[i : i + 1])
    assert same(model.state(), make().learn_many(X, y).state())


@each
def test_a_batch_of_mismatched_length_is_refused_whole(make):
    X, y = events()
    model = make().learn_many(X, y)
    before = model.state()
    with pytest.raises(BadShape):
        model.learn_many(X, y[:-1])
    assert same(before, model.state())


@each
def test_the_order_of_columns_is_irrelevant(make):
    X, y = events()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    shuffled = make().learn_many(frame[["c", "a", "b"]], y)
    assert shuffled.score_many(frame).tolist() == make().learn_many(frame, y).score_many(frame).tolist()


@each
def test_a_missing_column_is_0_and_a_new_one_was_0_before(make):
    model = make().learn_many([{"a": 1.0}, {"a": -1.0}] * 20, [1, 0] * 20)
    assert model.score_one({"a": 1.0}) == model.score_one({"a": 1.0, "new": 7.0})
    assert model.score_one({}) == model.score_one({"a": 0.0})


# -- files


@each
def test_saved_in_mid_stream_and_loaded_equals_never_stopped(make, tmp_path):
    X, y = events()
    whole, first = make().learn_many(X, y), make().learn_many(X[:77], y[:77])
    first.save(tmp_path / "model")
    assert same(load(tmp_path / "model").learn_many(X[77:], y[77:]).state(), whole.state())


def test_a_file_of_a_newer_format_is_told_from_a_damaged_one(tmp_path, monkeypatch):
    model = AUCRO().learn_many(*events())
    monkeypatch.setattr("streamlearn.snapshot.FORMAT", 99)
    model.save(tmp_path / "newer")
    monkeypatch.undo()
    with pytest.raises(NewerSnapshot, match="use a newer streamlearn"):
        load(tmp_path / "newer")


def test_a_file_of_an_older_format_is_read(monkeypatch):
    content = split(FSAUC().learn_many(*events()).state())
    monkeypatch.setattr("streamlearn.snapshot.FORMAT", 0)
    old = pack("model", *content)
    monkeypatch.undo()
    assert unpack(old, "model")[0] == content[0]


def test_a_flipped_bit_is_seen(tmp_path):
    AUCRO().learn_many(*events()).save(tmp_path / "model")
    data = bytearray((tmp_path / "model").read_bytes())
    data[-9] ^= 1
    (tmp_path / "model").write_bytes(bytes(data))
    with pytest.raises(BadSnapshot, match="checksum"):
        load(tmp_path / "model")


# -- late labels


@pytest.mark.parametrize("make", [AUCRO, AdaptiveAUCRO, LogisticReject], ids=lambda make: make.__name__)
def test_labels_out_of_order_are_learned_in_the_order_they_come(make):
    X, y = events(40)
    delayed, ready = DelayedLearner(make()), np.arange(80, 40, -1.0)
    delayed.run(Block((0, 1, 2), X, y), ready, np.arange(41.0))
    assert delayed.finish().labels.tolist() == y[::-1].tolist()


def test_labels_that_never_come_leave_the_model_untrained():
    X, y = events(40)
    model = AUCRO()
    assert prequential((X, y), model, ["auc"], delay=[math.inf] * 40).n_labelled == 0
    assert model.label_pair() == (None, None)


def test_what_is_measured_is_the_forecast_made_before_the_label_came():
    X, y = events(60)
    report = prequential((X, y), OPAUC(), ["auc"], delay=60)
    assert report.values["auc"] == 0.5  # every forecast is that of an untrained model


def test_every_public_learner_is_in_the_package():
    assert {make.__name__ for make in SCORERS} <= set(streamlearn.__all__)
