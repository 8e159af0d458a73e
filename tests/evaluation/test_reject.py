import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlearn.errors import BadParameter
from streamlearn.evaluation import AUC, RejectAUC, RejectCurve, RejectRate, RejectRisk
from tests.naive import evaluation as naive

METRICS = [(RejectAUC, naive.reject_auc), (RejectRate, naive.reject_rate), (RejectRisk, naive.reject_risk)]
COSTS = [0.5, 0.48, 0.4, 0.2, 0.01]

# Differences of these are exact, and none of them equals a threshold but 0.
odds = st.integers(-24, 24).map(lambda k: k / 8.0)
events = st.lists(st.tuples(st.integers(0, 1), odds), max_size=40)


def stream(n, seed):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.4).astype(np.int8)
    return y, rng.normal(size=n) + y - 0.5


def split(pairs):
    return np.array([y for y, _ in pairs], np.int8), np.array([s for _, s in pairs], np.float64)


@pytest.mark.parametrize(("metric", "reference"), METRICS)
@given(events, st.sampled_from(COSTS))
def test_values_are_those_of_a_loop_over_all_pairs(metric, reference, pairs, d):
    y, scores = split(pairs)
    actual = metric(d)
    actual.update_many(y, scores)
    np.testing.assert_allclose(actual.get(), reference(y.tolist(), scores.tolist(), d), atol=1e-12)


@pytest.mark.parametrize(("metric", "reference"), METRICS)
@given(events, st.sampled_from(COSTS), st.integers(1, 20))
def test_windowed_values_are_those_of_the_last_events(metric, reference, pairs, d, window):
    y, scores = split(pairs)
    actual = metric(d, window=window)
    actual.update_many(y, scores)
    expected = reference(y[-window:].tolist(), scores[-window:].tolist(), d)
    np.testing.assert_allclose(actual.get(), expected, atol=1e-12)


@pytest.mark.parametrize(("metric", "reference"), METRICS)
@pytest.mark.parametrize("d", COSTS)
def test_after_the_exact_phase_the_true_value_lies_in_a_certified_interval(metric, reference, d):
    y, scores = stream(1500, 1)
    actual = metric(d, exact_events=256)
    actual.update_many(y, scores)
    low, high = actual.interval()
    expected = reference(y.tolist(), scores.tolist(), d)
    assert low - 1e-12 <= expected <= high + 1e-12
    assert 0.0 < high - low < 0.1  # at 6 kB


def test_at_one_half_nothing_but_ties_is_rejected_and_the_auc_is_the_ordinary_one():
    y, scores = stream(500, 2)
    scores = np.round(scores, 1)
    plain, rejecting, rate = AUC(), RejectAUC(0.5), RejectRate(0.5)
    for metric in (plain, rejecting, rate):
        metric.update_many(y, scores)
    ties = sum(s == t for s in scores[y == 1] for t in scores[y == 0])
    assert rejecting.get() == plain.get()
    np.testing.assert_allclose(rate.get(), ties / ((y == 1).sum() * (y == 0).sum()), atol=1e-12)


def test_where_every_pair_is_rejected_the_auc_is_undefined_and_the_risk_is_the_cost():
    values = {}
    for metric in (RejectAUC(0.1), RejectRate(0.1), RejectRisk(0.1)):
        metric.update_many([1, 0, 1, 0], [0.4, 0.1, -0.3, 0.2])
        values[metric.name] = metric.get()
    assert math.isnan(values.pop("reject_auc_0.1"))
    assert values == {"reject_rate_0.1": 1.0, "reject_risk_0.1": 0.1}


@pytest.mark.parametrize("d", [0.0, 0.51, -0.1, math.nan, "half", None])
def test_a_cost_outside_its_range_is_refused(d):
    for metric in (RejectAUC, RejectRate, RejectRisk):
        with pytest.raises(BadParameter, match=rf"^{metric.__name__}: d must be in \(0, 0.5\], got"):
            metric(d)


def test_the_curve_is_that_of_a_loop_over_all_pairs_at_every_cost():
    y, scores = stream(200, 3)
    curve = RejectCurve()
    curve.update_many(y, scores)
    points = curve.points(COSTS)
    labels, values = y.tolist(), scores.tolist()
    for column, reference in (
        ("auc", naive.reject_auc),
        ("reject_rate", naive.reject_rate),
        ("risk", naive.reject_risk),
    ):
        expected = [reference(labels, values, d) for d in COSTS]
        for name in (column, f"{column}_low", f"{column}_high"):
            np.testing.assert_allclose(getattr(points, name), expected, atol=1e-12, err_msg=name)
    events = np.array([naive.event_rule(labels, values, d) for d in COSTS]).T
    names = ("event_reject_rate", "event_accuracy", "event_risk", "event_auc", "event_pair_reject_rate")
    for name, expected in zip(names, events, strict=True):
        np.testing.assert_allclose(getattr(points, name), expected, atol=1e-12, err_msg=name)


def test_the_curve_agrees_with_the_single_metrics_after_the_exact_phase():
    y, scores = stream(1500, 4)
    curve = RejectCurve(exact_events=256)
    curve.update_many(y, scores)
    points = curve.points(COSTS)
    labels, values = y.tolist(), scores.tolist()
    for i, d in enumerate(COSTS):
        assert points.auc_low[i] - 1e-12 <= naive.reject_auc(labels, values, d) <= points.auc_high[i] + 1e-12
        assert points.reject_rate_low[i] <= naive.reject_rate(labels, values, d) <= points.reject_rate_high[i]
        assert points.risk_low[i] <= naive.reject_risk(labels, values, d) <= points.risk_high[i]
        expected = naive.event_rule(labels, values, d)
        # Two groups of 8 in exact_events, one at each end of the rejected band.
        assert abs(points.event_reject_rate[i] - expected[0]) <= 2 * 8 / 256
    # All pairs are compared by rounded scores here, and at d = 0.01 hardly any pair is kept.
    assert (points.auc_high - points.auc_low <= 0.1)[points.d >= 0.2].all()


@pytest.mark.parametrize("r_max", [0.1, 0.5, 1.0])
def test_the_area_is_that_of_the_curve_between_its_points(r_max):
    y, scores = stream(300, 5)
    curve = RejectCurve(r_max=r_max)
    curve.update_many(y, scores)
    points = curve.points()
    expected = naive.curve_area(points.reject_rate.tolist(), points.auc.tolist(), r_max)
    # The midpoint rule of the reference has 20000 steps.
    np.testing.assert_allclose(curve.get(), expected, atol=1e-6)
    assert curve.area(r_max) == curve.get()


def test_a_perfect_ranker_has_area_one_and_an_empty_curve_has_none():
    curve = RejectCurve()
    assert math.isnan(curve.get())
    assert np.isnan(curve.points([0.3]).auc).all()
    curve.update_many([0, 0, 1, 1], [-2.0, -1.0, 1.0, 2.0])
    assert curve.get() == 1.0


def test_log_odds_of_certain_forecasts_are_ranked_and_two_equal_ones_are_rejected():
    curve, rate = RejectCurve(), RejectRate(0.3)
    for metric in (curve, rate):
        metric.update_many([1, 0, 1, 0], [np.inf, np.inf, 0.0, -np.inf])
    assert rate.get() == 0.25
    assert curve.points([0.3]).reject_rate.tolist() == [0.25]


@pytest.mark.parametrize("parameters", [{"r_max": 0.0}, {"r_max": 1.5}, {"exact_events": 10}])
def test_curve_parameters_that_break_their_rule_are_refused(parameters):
    with pytest.raises(BadParameter, match=f"^RejectCurve: {next(iter(parameters))} must be"):
        RejectCurve(**parameters)


def test_costs_outside_their_range_are_refused():
    with pytest.raises(BadParameter, match=r"^RejectCurve: costs must be in"):
        RejectCurve().points([0.2, 0.6])
