"""Labels that come after any number of events or any time, beside the obvious way."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd
import pytest

from streamlearn.errors import BadParameter, BadShape, BadValue
from streamlearn.evaluation import LogLoss, prequential
from tests.naive.logistic import NaiveLogistic

N = 200


def events():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(N, 2))
    return X, X[:, 0] > 0.3 * rng.normal(size=N), rng


def by_hand(X, y, ready, now):
    """Before row t learn all rows with ready <= now[t], in order; return the mean loss of the rows that have labels."""
    learner = NaiveLogistic(positive=True)
    waiting, losses = [], []

    def learn(limit):
        for when, row in sorted(entry for entry in waiting if entry[0] <= limit):
            waiting.remove((when, row))
            learner.learn_one(dict(enumerate(X[row].tolist())), bool(y[row]))

    for t in range(len(X)):
        learn(now[t])
        p = 1.0 / (1.0 + np.exp(-learner.score_one(dict(enumerate(X[t].tolist())))))
        if not np.isinf(ready[t]):
            losses.append(-np.log(p if y[t] else 1.0 - p))
        waiting.append((max(ready[t], now[t]), t))
    return np.mean(losses)


def measured(X, y, **how):
    loss = LogLoss()
    prequential((X, y), NaiveLogistic(positive=True), [loss], **how)
    return loss.get()


@pytest.mark.parametrize("batch_size", [1, 7, 1024])
def test_delays_of_their_own_for_each_event(batch_size):
    X, y, rng = events()
    delay = rng.geometric(0.05, N).astype(float) - 1.0
    delay[::9] = np.inf
    rows = np.arange(N, dtype=float)
    expected = by_hand(X, y, rows + 1.0 + delay, rows)
    np.testing.assert_allclose(measured(X, y, delay=delay, batch_size=batch_size), expected, rtol=1e-12)
    called = measured(X, y, delay=lambda x, y: 3 if x[0] > 0 else 40, batch_size=batch_size)
    expected = by_hand(X, y, rows + 1.0 + np.where(X[:, 0] > 0, 3, 40), rows)
    np.testing.assert_allclose(called, expected, rtol=1e-12)


@pytest.mark.parametrize("batch_size", [1, 7, 1024])
def test_delays_in_time(batch_size):
    X, y, rng = events()
    seconds = np.cumsum(rng.exponential(10.0, N)) // 5.0 * 5.0  # several at once
    expected = by_hand(X, y, seconds + 120.0, seconds)
    start = datetime(2024, 3, 1, tzinfo=UTC)
    moments = [start + timedelta(seconds=float(s)) for s in seconds]
    as_datetimes = measured(X, y, delay=timedelta(minutes=2), moment=moments, batch_size=batch_size)
    np.testing.assert_allclose(as_datetimes, expected, rtol=1e-12)
    assert measured(X, y, delay=120.0, moment=seconds, batch_size=batch_size) == pytest.approx(expected, rel=1e-12)
    by_pandas = pd.to_datetime(moments).to_numpy()
    assert measured(X, y, delay=120.0, moment=by_pandas, batch_size=batch_size) == pytest.approx(expected, rel=1e-12)


def test_columns_that_tell_times_are_no_features():
    X, y, rng = events()
    seconds, delays = np.cumsum(rng.exponential(1.0, N)), rng.exponential(20.0, N)
    frame = pd.DataFrame({"a": X[:, 0], "t": seconds, "b": X[:, 1], "wait": delays})
    learner = NaiveLogistic(positive=True)
    report = prequential((frame, y), learner, ["logloss"], delay="wait", moment="t")
    assert report.values["logloss"] == pytest.approx(by_hand(X, y, seconds + delays, seconds), rel=1e-12)
    assert learner.feature_names == ("a", "b")
    assert report.delay is None


def test_the_same_delay_in_every_form_gives_the_same_bits():
    X, y, _ = events()
    fixed = measured(X, y, delay=11)
    assert measured(X, y, delay=[11] * N) == fixed
    assert measured(X, y, delay=lambda x, y: 11) == fixed
    assert measured(X, y, delay=12.0, moment=np.arange(N)) == fixed  # due before event t, not behind it


def test_a_label_that_never_comes_is_not_measured_or_learned():
    X, y, _ = events()
    report = prequential((X, y), NaiveLogistic(), ["auc"], delay=[np.inf] * N)
    assert (report.n_events, report.n_labelled) == (N, 0)


def test_time_does_not_go_back():
    X, y, _ = events()
    seconds = np.arange(N, dtype=float)
    muddled = seconds.copy()
    muddled[50:60] -= 30.0
    straight = np.maximum.accumulate(muddled)
    assert measured(X, y, delay=5.0, moment=muddled) == measured(X, y, delay=5.0, moment=straight)


@pytest.mark.parametrize(
    ("how", "error", "message"),
    [
        ({"delay": timedelta(seconds=3)}, BadParameter, "moment must be given where delay is a time"),
        ({"delay": 1.5}, BadParameter, "delay must be a whole number of events unless moment is given, got 1.5"),
        ({"delay": True}, BadParameter, "delay must be a number, time, column, array or function, got True"),
        ({"delay": [1] * 3}, BadShape, "delay must have one value an event, got 3 for at least 200"),
        ({"delay": [-1] * N}, BadValue, "a delay must be >= 0, got -1.0"),
        ({"delay": "wait"}, BadShape, "delay must name a column of the stream, got 'wait'"),
        ({"delay": 1.0, "moment": [np.nan] * N}, BadValue, "a moment must be finite, got nan"),
    ],
)
def test_delays_that_break_their_rule_are_refused(how, error, message):
    X, y, _ = events()
    with pytest.raises(error, match=f"^prequential: {message}"):
        measured(X, y, **how)
