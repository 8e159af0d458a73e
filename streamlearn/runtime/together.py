"""All learners of a job learn the same events: a block goes to every one of them, or bad events of it to none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import FeatureName, FloatArray
from streamlearn.runtime.screen import REFUSALS, Screened, screen
from streamlearn.runtime.tracks import Learned, Track


def learn_together(
    tracks: Sequence[Track], names: tuple[FeatureName, ...], values: FloatArray, labels: NDArray[Any]
) -> tuple[list[Learned], Screened]:
    """Forecast and learn the events of a block that no learner refuses.

    Parameters
    ----------
    tracks : sequence of Track
    names : tuple of str or int
    values : float64[n_events, n_names]
    labels : array [n_events]

    Returns
    -------
    list of Learned
        One a track; empty where no event was left.
    Screened
        Which events were learned, and why the others were not.
    """
    first, *others = tracks
    if first.refuses_whole_batches and len(values):
        # Blocks without a bad event are the rule, and checking costs a tenth of learning. The first learner takes a
        # block whole or raises with nothing changed, so only the others have to be asked before.
        try:
            for track in others:
                track.check(names, values, labels)
            learned = [first.test_then_learn(names, values, labels)]
        except REFUSALS:
            pass  # somebody refused an event and nobody has learned: found out below which one
        else:
            learned += [track.test_then_learn(names, values, labels) for track in others]
            return learned, Screened(np.arange(len(values), dtype=np.int64))
    screened = screen(tracks, names, values, labels)
    good = screened.good
    if not len(good):
        return [], screened
    if len(good) < len(values):
        values, labels = values[good], labels[good]
    return [track.test_then_learn(names, values, labels) for track in tracks], screened
