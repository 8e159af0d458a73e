import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score, log_loss

from streamlearn.errors import BadParameter, BadShape, BadValue
from streamlearn.evaluation import (
    MAE,
    METRICS,
    RMSE,
    Accuracy,
    Coverage,
    Kappa,
    KappaM,
    KappaT,
    LogLoss,
    Risk,
    SubspaceError,
    make_metric,
)
from tests.naive import evaluation as naive

DECISIONS = [
    (Accuracy, naive.accuracy),
    (Coverage, naive.coverage),
    (Kappa, naive.kappa),
    (KappaM, naive.kappa_m),
    (KappaT, naive.kappa_t),
]
MEMORIES = [{}, {"window": 150}, {"fading": 0.99}]


def decided(n, seed):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.3).astype(np.int8)
    y[n // 2 :] |= (rng.random(n - n // 2) < 0.7).astype(np.int8)
    decisions = np.where(rng.random(n) < 0.7, y, 1 - y).astype(float)
    decisions[rng.random(n) < 0.1] = np.nan
    return y, decisions


@pytest.mark.parametrize("memory", MEMORIES, ids=str)
@pytest.mark.parametrize(("metric", "reference"), DECISIONS)
def test_metrics_of_decisions_are_those_of_their_definitions(metric, reference, memory):
    y, decisions = decided(400, 1)
    actual = metric(**memory)
    actual.update_many(y, decisions)
    expected = reference(y.tolist(), decisions.tolist(), naive.event_weights(len(y), **memory))
    np.testing.assert_allclose(actual.get(), expected, rtol=1e-11)


@pytest.mark.parametrize("memory", MEMORIES, ids=str)
def test_risk_charges_an_error_one_and_an_abstention_its_cost(memory):
    y, decisions = decided(400, 2)
    actual = Risk(0.3, **memory)
    actual.update_many(y, decisions)
    expected = naive.risk(y.tolist(), decisions.tolist(), naive.event_weights(len(y), **memory), d=0.3)
    np.testing.assert_allclose(actual.get(), expected, rtol=1e-11)


@pytest.mark.parametrize("memory", MEMORIES, ids=str)
@pytest.mark.parametrize(("metric", "reference"), [(MAE, naive.mae), (RMSE, naive.rmse)])
def test_errors_of_numbers_are_those_of_their_definitions(metric, reference, memory):
    rng = np.random.default_rng(3)
    y, values = rng.normal(size=400), rng.normal(size=400)
    actual = metric(**memory)
    actual.update_many(y, values)
    expected = reference(y.tolist(), values.tolist(), naive.event_weights(len(y), **memory))
    np.testing.assert_allclose(actual.get(), expected, rtol=1e-11)


@pytest.mark.parametrize("memory", MEMORIES, ids=str)
def test_log_loss_is_that_of_its_definition(memory):
    rng = np.random.default_rng(4)
    y, p = rng.integers(0, 2, 400).astype(np.int8), rng.random(400)
    actual = LogLoss(**memory)
    actual.update_many(y, p)
    expected = naive.logloss(y.tolist(), p.tolist(), naive.event_weights(len(y), **memory))
    np.testing.assert_allclose(actual.get(), expected, rtol=1e-11)


def test_kappa_and_log_loss_are_scikit_learns():
    rng = np.random.default_rng(5)
    y, p = rng.integers(0, 2, 300), rng.random(300)
    p[:2] = [0.0, 1.0]
    kappa, loss = Kappa(), LogLoss()
    kappa.update_many(y, (p > 0.4).astype(float))
    loss.update_many(y, p)
    np.testing.assert_allclose(kappa.get(), cohen_kappa_score(y, p > 0.4), rtol=1e-12)
    np.testing.assert_allclose(loss.get(), log_loss(y, p), rtol=1e-12)


@pytest.mark.parametrize("metric", [Accuracy, Kappa, KappaM, KappaT])
def test_abstaining_on_everything_leaves_the_value_undefined(metric):
    actual = metric()
    actual.update_many([1, 0, 1], [np.nan] * 3)
    assert math.isnan(actual.get())


def test_abstaining_on_everything_is_coverage_nought_at_the_price_of_the_cost():
    coverage, risk = Coverage(), Risk(0.25)
    for metric in (coverage, risk):
        metric.update_many([1, 0, 1], [np.nan] * 3)
    assert (coverage.get(), risk.get()) == (0.0, 0.25)


def test_an_abstention_changes_no_metric_of_decisions():
    for metric in (Accuracy, Kappa):
        with_it, without = metric(), metric()
        with_it.update_many([1, 0, 1, 0, 1], [1.0, np.nan, 0.0, 0.0, np.nan])
        without.update_many([1, 1, 0], [1.0, 0.0, 0.0])
        assert with_it.get() == without.get()


def test_kappa_t_of_the_classifier_that_repeats_the_last_label_is_nought_but_for_the_first_event():
    y = np.array([1, 1, 0, 0, 0, 1, 0, 1, 1], np.int8)
    kappa = KappaT()
    kappa.update_many(y[:1], np.array([np.nan]))
    kappa.update_many(y[1:], y[:-1].astype(float))
    assert kappa.get() == 0.0


def test_kappas_are_undefined_where_the_baseline_makes_no_error():
    for metric in (KappaT, KappaM):
        kappa = metric()
        kappa.update_many([1], [np.nan])
        kappa.update_many([1, 1, 1], [1.0, 0.0, 1.0])
        assert math.isnan(kappa.get())


def test_a_huge_error_leaves_a_window_without_a_trace():
    for metric in (MAE, RMSE):
        window, plain = metric(window=3), metric()
        window.update_many([0.0, 0.1, 0.2, 0.3], [1e300, 0.2, 0.4, 0.6])
        plain.update_many([0.1, 0.2, 0.3], [0.2, 0.4, 0.6])
        assert window.get() == plain.get()
        assert math.isfinite(plain.get())


def test_a_squared_error_past_the_largest_double_is_infinite_and_not_nan():
    rmse = RMSE()
    rmse.update_many([0.0, 0.0], [1e200, 1.0])
    assert rmse.get() == math.inf


def test_a_probability_outside_the_unit_interval_is_refused_and_changes_nothing():
    loss = LogLoss()
    loss.update(1, 0.5)
    with pytest.raises(BadValue, match=r"^LogLoss: forecasts must be in \[0, 1\], got 1.5"):
        loss.update(1, 1.5)
    np.testing.assert_allclose(loss.get(), math.log(2.0), rtol=1e-15)


@given(st.lists(st.tuples(st.integers(-1, 1), st.floats(0.0, 1.0)), max_size=30), st.integers(1, 10))
def test_a_window_is_a_fresh_metric_over_the_last_labelled_events(pairs, window):
    labelled = [(y, p) for y, p in pairs if y >= 0]
    sliding, fresh = LogLoss(window=window), LogLoss()
    sliding.update_many(np.array([y for y, _ in pairs], np.int8), np.array([p for _, p in pairs], np.float64))
    last = labelled[-window:]
    fresh.update_many(np.array([y for y, _ in last], np.int8), np.array([p for _, p in last], np.float64))
    np.testing.assert_array_equal(sliding.get(), fresh.get())


def test_every_metric_of_the_registry_can_be_made_from_text_and_tells_its_name():
    assert make_metric("auc:window=1000").name == "auc_window_1000"
    assert make_metric("reject_auc: d = 0.4").name == "reject_auc_0.4"
    assert make_metric("kappa_t:fading=0.999").name == "kappa_t_fading_0.999"
    for short, metric in METRICS.items():
        needs_cost = short in ("risk", "reject_auc", "reject_rate", "reject_risk")
        made = make_metric(f"{short}:d=0.3" if needs_cost else short)
        assert type(made) is metric
        assert math.isnan(made.get())


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("auk", "metric: the name must be one of auc, .* got 'auk'"),
        ("", "metric: the name must be one of"),
        ("auc:widow=5", "AUC: parameters must be window, fading, exact_events, each once, got 'widow'"),
        ("auc:window=5,window=6", "AUC: parameters must be .* got 'window'"),
        ("auc:window", "AUC: window must be a number, got ''"),
        ("auc:window=many", "AUC: window must be a number, got 'many'"),
        ("auc:window=2.5", "AUC: window must be an integer >= 1, got 2.5"),
        ("auc:fading=nan", r"AUC: fading must be None or in \(0, 1\), got nan"),
        ("reject_auc", "RejectAUC: d must be given, as in reject_auc:d=0.4, got 'reject_auc'"),
        ("reject_auc:d=0.7", r"RejectAUC: d must be in \(0, 0.5\], got 0.7"),
    ],
)
def test_a_text_that_makes_no_metric_is_refused_with_the_reason(spec, message):
    with pytest.raises(BadParameter, match=f"^{message}"):
        make_metric(spec)


def test_subspace_error_is_the_distance_of_the_projectors():
    rng = np.random.default_rng(6)
    for k in (1, 2, 4):
        true, found = rng.normal(size=(2, 6)), rng.normal(size=(k, 6))
        error = SubspaceError(true)
        assert math.isnan(error.get())
        error.update(found)
        p, q = (np.linalg.pinv(basis) @ basis for basis in (true, found))
        np.testing.assert_allclose(error.get(), np.linalg.norm(p - q) / np.linalg.norm(p), rtol=1e-10)


def test_subspace_error_does_not_depend_on_the_basis_and_keeps_small_angles():
    error = SubspaceError([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    error.update([[1e200, 1e200, 0.0], [1e200, -1e200, 0.0]])
    assert error.get() <= 1e-15
    error.update([[1.0, 0.0, 1e-9], [0.0, 1.0, 0.0]])
    np.testing.assert_allclose(error.get(), 1e-9, rtol=1e-6)


@pytest.mark.parametrize(
    ("basis", "error", "message"),
    [
        ([1.0, 0.0], BadShape, "a basis must be"),
        (np.eye(3), BadShape, "basis must have 2 columns"),
        ([[np.nan, 1.0]], BadValue, "a basis must be finite"),
        ([[1.0, 1.0], [2.0, 2.0]], BadValue, "rows of a basis must be linearly independent"),
        ([[0.0, 0.0]], BadValue, "rows of a basis must be linearly independent"),
    ],
)
def test_a_basis_that_spans_no_subspace_is_refused(basis, error, message):
    with pytest.raises(error, match=f"^SubspaceError: (the )?{message}"):
        SubspaceError([[1.0, 0.0]]).update(basis)
