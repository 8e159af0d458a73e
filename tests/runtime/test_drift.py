"""Drift on the prequential loss: found, told, and answered at the same event wherever batches and restarts fall."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamlearn import contracts
from streamlearn.evaluation.drift import make_detector
from streamlearn.evaluation.registry import make_metric
from streamlearn.runtime.drift import REACT_EVERY, DriftRules, DriftWatch
from streamlearn.runtime.tracks import Track
from tests.naive.logistic import NaiveLogistic

N_EVENTS, CHANGE = 2600, 1300
NAMES = ("a", "b")
RULES = "adwin:delta=0.01"


def events():
    """Return a stream whose concept is turned round in the middle."""
    rng = np.random.default_rng(8)
    values = rng.normal(size=(N_EVENTS, 2))
    labels = (values[:, 0] > values[:, 1]).astype(object)
    labels[CHANGE:] = ~labels[CHANGE:].astype(bool)
    labels[::40] = None
    return values, labels


def track_of(reaction, delay=0, memory=300):
    rules = DriftRules(RULES, reaction, memory)
    return Track("naive", NaiveLogistic(), [make_metric("accuracy"), make_metric("auc")], delay=delay, drift=rules)


def run(track, cuts=(), restart=None):
    values, labels = events()
    forecasts = []
    for number, (start, stop) in enumerate(itertools.pairwise([0, *sorted(cuts), N_EVENTS])):
        learned = track.test_then_learn(NAMES, values[start:stop], labels[start:stop])
        track.measure(learned)
        forecasts += zip(learned.tested.probabilities.tolist(), learned.tested.predictions.tolist(), strict=True)
        if restart is not None and number == restart:
            saved, track = track.state(), track_of(track.drift.rules.reaction, track._delayed.delay)
            track.restore(saved)
    track.finish()
    return track, forecasts


@pytest.fixture(scope="module")
def whole():
    made = {}

    def of(reaction, delay=0):
        if (reaction, delay) not in made:
            made[reaction, delay] = run(track_of(reaction, delay))
        return made[reaction, delay]

    return of


def test_an_alert_leaves_learner_and_forecasts_alone(whole):
    track, forecasts = whole("alert")
    plain = Track("naive", NaiveLogistic(), [make_metric("accuracy")])
    values, labels = events()
    assert plain.test_then_learn(NAMES, values, labels).tested.probabilities.tolist() == [p for p, _ in forecasts]
    assert len(track.drift.found) >= 1
    assert track.drift.reacted == []


def test_drift_is_found_in_the_errors_made_before_learning(whole):
    track, forecasts = whole("alert")
    _, labels = events()
    said = [prediction for _, prediction in forecasts]
    wrong = [np.nan if None in (y, p) else float(p != y) for p, y in zip(said, labels, strict=True)]
    assert track.drift.found == (1 + make_detector(RULES).update_many(wrong)).tolist()
    assert CHANGE < track.drift.found[0] < CHANGE + 400


@pytest.mark.parametrize("reaction", ["reset", "shorten_memory"])
def test_the_learner_behind_a_reaction_is_an_untrained_one_that_learned_what_was_kept(reaction, whole):
    track, _ = whole(reaction)
    values, labels = events()
    (at,) = track.drift.reacted
    assert at % REACT_EVERY == 0
    assert at - REACT_EVERY < track.drift.found[0] <= at
    assert track.drift.rose[0]
    kept = at if reaction == "reset" else at - 300
    fresh = NaiveLogistic(positive=True)
    fresh.test_then_learn_columns(NAMES, values[kept:], labels[kept:])
    assert track.learner.score_columns(NAMES, values)[0].tolist() == fresh.score_columns(NAMES, values)[0].tolist()


@pytest.mark.parametrize("delay", [0, 70])
@pytest.mark.parametrize("reaction", ["alert", "reset", "shorten_memory"])
@settings(max_examples=6)
@given(cuts=st.sets(st.integers(1, N_EVENTS - 1), max_size=5), restart=st.integers(0, 5))
def test_neither_cuts_nor_restarts_show(reaction, delay, cuts, restart, whole):
    expected, forecasts = whole(reaction, delay)
    found, again = run(track_of(reaction, delay), cuts, restart)
    assert again == forecasts
    assert (found.drift.found, found.drift.reacted) == (expected.drift.found, expected.drift.reacted)
    assert [metric.get() for metric in found.metrics] == [metric.get() for metric in expected.metrics]
    assert found.learner.state().keys() == expected.learner.state().keys()


def test_drift_is_told_in_the_log(caplog):
    run(track_of("reset"))
    assert caplog.messages[0].startswith("naive: drift (adwin:delta=0.01) behind event 1314: its loss rose")
    assert f"naive: reset behind event {-(-1314 // REACT_EVERY) * REACT_EVERY}" in caplog.messages


def test_a_stream_that_drifts_for_ever_is_remembered_in_bounded_memory(monkeypatch):
    monkeypatch.setattr("streamlearn.runtime.drift.MAX_KEPT", 2)
    watch = DriftWatch("one", DriftRules("adwin"), numeric=False)
    codes = np.ones(8000, dtype=np.int8)
    decisions = (np.arange(8000) // 1000 % 2).astype(float)  # all right, all wrong, and so on
    nothing = np.zeros(8000)

    watch.take(contracts.Tested(codes, nothing, nothing, np.empty(8000, dtype=object), decisions), codes, 0)

    assert watch.n_found >= 7
    assert len(watch.found) == len(watch.rose) == 2
    again = DriftWatch("one", DriftRules("adwin"), numeric=False)
    again.restore(watch.state())
    assert (again.n_found, again.found) == (watch.n_found, watch.found)
