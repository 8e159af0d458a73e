"""Warming up changes nothing and tells when it takes long."""

import threading

import pytest

from streamlearn import AUCRO, AdaptiveAUCRO, LogisticReject, ORLRegressor
from streamlearn.evaluation import make_metric
from streamlearn.runtime import warm
from streamlearn.runtime.tracks import Track
from tests.contract import same


@pytest.mark.parametrize(
    "learner",
    [
        AdaptiveAUCRO(),
        AUCRO(positive="yes", max_features=1),
        AUCRO(positive=0),
        LogisticReject(positive=7),
        LogisticReject(positive=True),
    ],
    ids=repr,
)
def test_no_track_is_changed(learner):
    track = Track("t", learner, [make_metric("auc"), make_metric("logloss")])
    before = track.state()
    warm.warm_up([track], print)
    assert same(before, track.state())


def test_a_regressor_rehearses_with_numbers():
    track = Track("t", ORLRegressor(), [make_metric("mae")])
    before = track.state()
    warm.warm_up([track], print)
    assert same(before, track.state())


def test_what_takes_long_is_told(monkeypatch):
    told = threading.Event()
    monkeypatch.setattr(warm, "TELL_AFTER_S", 0.0)
    monkeypatch.setattr(warm, "_rehearse", lambda *_: told.wait(60))
    warm.warm_up([Track("t", AUCRO(), [make_metric("auc")])], lambda text: told.set() if text else None)
    assert told.is_set()
