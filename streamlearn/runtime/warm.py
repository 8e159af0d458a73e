"""Getting the kernels ready before the first event: loaded from the disk, or compiled on the first run of a machine."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from streamlearn.contracts import OnlineLearner
from streamlearn.learners.base import BinaryScorer
from streamlearn.runtime.drift import Clones
from streamlearn.runtime.tracks import Track

TELL_AFTER_S = 2.0
"""Loading takes a second at most; what takes longer is compiling."""
MESSAGE = "compiling kernels, which the first run on a machine does once ..."
N_ROWS = 8


def warm_up(tracks: Sequence[Track], say: Callable[[str], None]) -> None:
    """Let untrained copies of learners and metrics take a few made-up rows, so that no event waits for a compiler.

    Parameters
    ----------
    tracks : sequence of Track
        None of them is changed. A learner that cannot be cloned is left alone.
    say : function of str
        Told when it takes long.
    """
    timer = threading.Timer(TELL_AFTER_S, say, [MESSAGE])
    timer.daemon = True
    timer.start()
    try:
        for track in tracks:
            if isinstance(track.learner, Clones):
                _rehearse(track, cast("OnlineLearner", track.learner.clone()))
    finally:
        timer.cancel()


def _rehearse(track: Track, learner: OnlineLearner) -> None:
    copy = Track(track.title, learner, [metric.clone() for metric in track.metrics])
    labels = np.empty(N_ROWS, dtype=object)
    labels[:] = _two_labels(learner) * (N_ROWS // 2)
    values = np.linspace(-1.0, 1.0, N_ROWS).reshape(N_ROWS, 1)
    for start, stop in ((0, N_ROWS // 2), (N_ROWS // 2, N_ROWS)):
        copy.test_then_learn(("a",), values[start:stop], labels[start:stop])


def _two_labels(learner: OnlineLearner) -> list[Any]:
    positive = learner.positive if isinstance(learner, BinaryScorer) else None
    if positive is None:
        return [0.0, 1.0]
    return [positive, f"not {positive}" if isinstance(positive, str) else float(not positive)]
