"""Labels that come late: the forecasts are those of a learner that is fed one event at a time, its labels late."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlearn.errors import BadLabel
from streamlearn.evaluation.blocks import Block
from streamlearn.evaluation.delayed import DelayedLearner
from streamlearn.evaluation.registry import make_metric
from streamlearn.runtime.tracks import Track
from tests.naive.logistic import NaiveLogistic

N_EVENTS = 60
NAMES = ("a", "b")


def events() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    values = rng.normal(size=(N_EVENTS, 2))
    labels = np.empty(N_EVENTS, dtype=object)
    labels[:] = (values[:, 0] > values[:, 1]).astype(int).tolist()
    labels[[7, 30]] = None
    return values, labels


def naive_forecasts(delay: int) -> list[float]:
    """Return P(positive) of each event by a learner that learns event t - delay behind the forecast of event t."""
    values, labels = events()
    learner = NaiveLogistic()
    out = []
    for t in range(N_EVENTS):
        out.append(learner.predict_proba_one(dict(zip(NAMES, values[t].tolist(), strict=True))).get(1, 0.5))
        if t >= delay:
            learner.learn_one(dict(zip(NAMES, values[t - delay].tolist(), strict=True)), labels[t - delay])
    return out


def edges_of(cuts: set[int]) -> list[tuple[int, int]]:
    return list(itertools.pairwise([0, *sorted(cuts), N_EVENTS]))


CUTS = st.sets(st.integers(1, N_EVENTS - 1), max_size=8)


@given(delay=st.integers(1, N_EVENTS + 5), cuts=CUTS, stop=st.integers(0, 9))
def test_forecasts_are_those_of_one_event_at_a_time_through_any_cut_and_restart(delay, cuts, stop):
    values, labels = events()
    learner = NaiveLogistic()
    delayed = DelayedLearner(learner, delay)

    found, learned = [], []
    for number, (start, end) in enumerate(edges_of(cuts)):
        block = Block(NAMES, values[start:end], labels[start:end])
        tested, due = delayed.run(block)
        found += tested.probabilities.tolist()
        learned += due.labels.tolist()
        if number == stop:
            saved, delayed = delayed.state(), DelayedLearner(learner, delay)
            delayed.restore(saved)
    learned += delayed.finish().labels.tolist()

    # before both labels were seen the one-event verbs answer {label: 1.0}
    settled = delay + 5
    assert found[settled:] == naive_forecasts(delay)[settled:]
    assert learned == labels.tolist()


@given(cuts=CUTS)
def test_what_is_measured_is_the_forecast_made_before_the_label_came(cuts):
    values, labels = events()
    track = Track("late", NaiveLogistic(), [make_metric("logloss")], delay=10)

    forecasts = []
    for start, end in edges_of(cuts):
        learned = track.test_then_learn(NAMES, values[start:end], labels[start:end])
        track.measure(learned)
        forecasts += learned.tested.probabilities.tolist()
    track.finish()

    known = [(p, y) for p, y in zip(forecasts, labels, strict=True) if y is not None]
    expected = -np.mean([np.log(p if y == 1 else 1.0 - p) for p, y in known])
    assert track.metrics[0].get() == pytest.approx(expected, rel=1e-12)
    assert (track.events, track.labelled) == (N_EVENTS, N_EVENTS - 2)


def test_a_third_label_is_seen_although_the_first_two_still_wait():
    track = Track("late", NaiveLogistic(), [make_metric("auc")], delay=10)
    track.test_then_learn(NAMES, np.zeros((2, 2)), np.array([0, 1]))

    track.check(NAMES, np.zeros((1, 2)), np.array([1]))
    with pytest.raises(BadLabel, match="third"):
        track.check(NAMES, np.zeros((1, 2)), np.array([2]))


def test_waiting_events_keep_columns_that_others_do_not_have():
    delayed = DelayedLearner(NaiveLogistic(), 5)
    delayed.run(Block(("a",), np.array([[1.0]]), np.array([1])))

    whole = delayed.with_waiting(Block(("b", "a"), np.array([[2.0, 3.0]]), np.array([0])))

    assert whole.names == ("a", "b")
    assert whole.values.tolist() == [[1.0, 0.0], [3.0, 2.0]]
    assert whole.labels.tolist() == [1, 0]
