import json

import numpy as np
import pytest

from streamlearn.evaluation import METRICS, SubspaceError, make_metric

COST = {"reject_auc", "reject_rate", "reject_risk", "risk"}
PAIRS = {"auc", "reject_auc", "reject_rate", "reject_risk"}


def specs():
    for short in METRICS:
        cost = ["d=0.4"] if short in COST else []
        if short == "reject_curve":
            options = [["exact_events=64"], ["r_max=0.3"]]
        elif short in PAIRS:
            options = [["exact_events=64"], ["window=37"], ["fading=0.98", "exact_events=64"], []]
        else:
            options = [[], ["window=37"], ["fading=0.98"]]
        for option in options:
            parameters = ",".join(cost + option)
            yield f"{short}:{parameters}" if parameters else short


SPECS = list(specs())
N = 900


def feed_of(metric):
    rng = np.random.default_rng(2)
    y = (rng.random(N) < 0.4).astype(np.int8)
    scores = rng.normal(size=N) + y
    y[rng.random(N) < 0.05] = -1
    forecasts = {
        "score": scores,
        "log_odds": scores,
        "probability": 1.0 / (1.0 + np.exp(-scores)),
        "prediction": np.where(np.abs(scores) < 0.3, np.nan, scores > 0.0),
        "value": scores,
    }[metric.takes]
    return (rng.normal(size=N) if metric.takes == "value" else y), forecasts


def same(a, b):
    assert a.keys() == b.keys()
    for key, value in a.items():
        np.testing.assert_array_equal(value, b[key], err_msg=key)
        assert type(value) is type(b[key])


@pytest.mark.parametrize("spec", SPECS)
def test_a_metric_restored_in_mid_stream_equals_one_that_never_stopped(spec):
    whole = make_metric(spec)
    y, forecasts = feed_of(whole)
    for k in (0, 1, 50, 433, N):
        first = make_metric(spec)
        first.update_many(y[:k], forecasts[:k])
        second = make_metric(spec)
        second.update_many(y[:5], forecasts[:5])
        second.restore(first.state())
        same(second.state(), first.state())
        second.update_many(y[k:], forecasts[k:])
        whole.reset()
        whole.update_many(y, forecasts)
        same(second.state(), whole.state())
        assert second.get() == whole.get()
        assert second.interval() == whole.interval()


@pytest.mark.parametrize("spec", SPECS)
def test_one_by_one_and_any_batches_leave_the_same_state(spec):
    one, many = make_metric(spec), make_metric(spec)
    y, forecasts = feed_of(one)
    for a, b in zip(y.tolist(), forecasts.tolist(), strict=True):
        one.update(a, b)
    for part in np.array_split(np.arange(N), [3, 3, 64, 500]):
        many.update_many(y[part], forecasts[part])
    same(one.state(), many.state())
    assert one.get() == many.get()


@pytest.mark.parametrize("spec", SPECS)
def test_reading_changes_nothing_and_states_are_copies(spec):
    metric, unread = make_metric(spec), make_metric(spec)
    y, forecasts = feed_of(metric)
    for part in np.array_split(np.arange(N), 9):
        metric.update_many(y[part], forecasts[part])
        unread.update_many(y[part], forecasts[part])
        metric.get()
        metric.interval()
        for value in metric.state().values():
            if isinstance(value, np.ndarray):
                value.fill(7)
    same(metric.state(), unread.state())


@pytest.mark.parametrize("spec", SPECS)
def test_a_clone_and_a_reset_metric_are_as_new(spec):
    metric = make_metric(spec)
    fresh = metric.state()
    metric.update_many(*feed_of(metric))
    same(metric.clone().state(), fresh)
    assert metric.clone().params() == metric.params()
    metric.reset()
    same(metric.state(), fresh)


@pytest.mark.parametrize("spec", SPECS)
def test_a_state_is_flat_and_plain(spec):
    metric = make_metric(spec)
    metric.update_many(*feed_of(metric))
    for value in metric.state().values():
        assert isinstance(value, np.ndarray | int | float | str)
        if not isinstance(value, np.ndarray):
            json.dumps(value)
        else:
            assert value.dtype in (np.float64, np.int64, np.int8)


@pytest.mark.parametrize("spec", SPECS)
def test_inputs_are_not_changed_or_kept(spec):
    metric = make_metric(spec)
    y, forecasts = feed_of(metric)
    a, b = y.copy(), forecasts.copy()
    metric.update_many(a, b)
    np.testing.assert_array_equal(a, y)
    np.testing.assert_array_equal(b, forecasts)
    before = metric.state()
    a.fill(0)
    b.fill(0.0)
    same(metric.state(), before)


def test_subspace_error_is_restored_too():
    error, other = SubspaceError(np.eye(4)[:2]), SubspaceError(np.eye(4)[2:])
    error.update(np.ones((1, 4)))
    other.restore(error.state())
    error.update(np.eye(4)[1:3])
    other.update(np.eye(4)[1:3])
    assert error.get() == other.get()
