"""Forecasts made before it was known which of two labels is the positive one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import Label, Snapshot, Tested
from streamlearn.evaluation.forecasts import Due, due_together
from streamlearn.evaluation.keeping import (
    forecasts_from_state,
    forecasts_to_state,
    labels_from_text,
    labels_to_text,
)
from streamlearn.snapshot import below, nest

Part = tuple[Tested, NDArray[Any]]

MOST_HELD = 100_000
"""A stream that shows one label only for longer is measured as the learner took it: held forecasts need memory."""


class EarlyForecasts:
    """Holds the first forecasts of a learner until both labels were seen, then hands them out in the final orientation.

    A learner that was not told its positive label takes the first one for the negative, and exchanges its classes when
    the second turns out to be the smaller one. Codes, scores and probabilities from before are then turned round here,
    as if it had been known from the start. Decisions from before both labels were known name the only label, or none.

    Parameters
    ----------
    learner : object
        With ``label_pair() -> (negative, positive)``; without it everything passes through.
    """

    def __init__(self, learner: Any) -> None:
        self._pair: Callable[[], tuple[Label | None, Label | None]] | None = getattr(learner, "label_pair", None)
        self._held: list[Due] = []
        self._n_held = 0
        self._both_at = 0  # forecasts made before this many others knew one label at most
        self._turn_at = 0  # and those made before this many others took the positive label for the negative
        self._negative: Label | None = None
        self._positive: Label | None = None

    def take(self, due: Due) -> Iterator[Part]:
        """Take events that were learned; give those that can be measured, in order."""
        if self._pair is not None:
            self._held.append(due)
            self._n_held += len(due)
            if None in self._pair() and self._n_held < MOST_HELD:
                return
            due = self._settle()
        if len(due):
            early = due.made_at < self._both_at
            yield self._turned(due, early) if early.any() else due.tested, due.labels

    def finish(self) -> Iterator[Part]:
        """Give what is still held at the end of a stream with one label or none."""
        yield from ((due.tested, due.labels) for due in self._held if len(due))
        self._held = []

    def state(self) -> Snapshot:
        """Return what is held, and what is still to be turned round."""
        names = labels_to_text([self._negative, self._positive])
        counts = {"holds": self._pair is not None, "both_at": self._both_at, "turn_at": self._turn_at}
        if not self._held:
            return {**counts, "names": names}
        held = due_together(self._held)
        places = {name: getattr(held, name).copy() for name in _PLACES}
        return {**counts, "names": names, **nest("held", {**forecasts_to_state(held.tested, held.labels), **places})}

    def restore(self, state: Snapshot) -> None:
        """Become what `state` describes."""
        if not state["holds"]:
            self._pair = None
        self._both_at, self._turn_at = int(state["both_at"]), int(state["turn_at"])
        self._negative, self._positive = labels_from_text(state["names"]).tolist()
        held = below("held", state)
        self._held = [Due(*forecasts_from_state(held), *(held[name] for name in _PLACES))] if held else []
        self._n_held = sum(map(len, self._held))

    def _settle(self) -> Due:
        """Stop holding: find out which forecasts were early and whether the classes were exchanged after them."""
        due = due_together(self._held)
        labelled = np.flatnonzero(due.tested.codes >= 0)
        self._negative, self._positive = self._pair() if self._pair is not None else (None, None)
        self._pair, self._held = None, []
        if None not in (self._negative, self._positive):
            first = due.labels[labelled[0]]
            second = next(int(i) for i in labelled if due.labels[i] != first)
            self._both_at = int(due.came_at[second])
            if first == self._positive and due.tested.codes[labelled[0]] == 0:
                self._turn_at = int(due.swap_at[second])
                codes = due.tested.codes.copy()
                codes[labelled[labelled < second]] = 1
                due = replace(due, tested=replace(due.tested, codes=codes))
        return due

    def _turned(self, due: Due, early: NDArray[np.bool_]) -> Tested:
        tested = due.tested
        decisions = tested.decisions.copy()
        decisions[early] = np.nan
        for code, label in ((0.0, self._negative), (1.0, self._positive)):
            named = np.array([prediction is not None and prediction == label for prediction in tested.predictions])
            decisions[early & named] = code
        turned = due.made_at < self._turn_at
        scores = np.where(turned, -tested.scores, tested.scores)
        probabilities = np.where(turned, 1.0 - tested.probabilities, tested.probabilities)
        return replace(tested, scores=scores, probabilities=probabilities, decisions=decisions)


_PLACES = ("made_at", "came_at", "swap_at")
