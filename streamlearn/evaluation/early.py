"""Forecasts made before it was known which of two labels is the positive one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import Label, Snapshot, Tested
from streamlearn.evaluation.delayed import cut, joined
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
    delay : int
        Events between an event and its label.
    """

    def __init__(self, learner: Any, delay: int) -> None:
        self.delay = delay
        self._pair: Callable[[], tuple[Label | None, Label | None]] | None = getattr(learner, "label_pair", None)
        self._held: list[Part] = []
        self._n_held = 0
        self._n_early = 0
        self._n_turned = 0
        self._negative: Label | None = None
        self._positive: Label | None = None
        # In one call the classes are exchanged before the event of the second label is forecast; row by row, the
        # forecast comes first.
        self._row_by_row = delay > 0 and not hasattr(learner, "test_then_learn_late")

    def take(self, tested: Tested, labels: NDArray[Any]) -> Iterator[Part]:
        """Take the forecasts of the next events; give those that can be measured, in order."""
        if self._pair is not None:
            self._held.append((tested, labels))
            self._n_held += len(labels)
            if None in self._pair() and self._n_held < MOST_HELD:
                return
            tested, labels = self._settle()
        n = min(self._n_early, len(labels))
        if n:
            self._n_early -= n
            yield self._turned(cut(tested, 0, n)), labels[:n]
        yield cut(tested, n, len(labels)), labels[n:]

    def finish(self) -> Iterator[Part]:
        """Give what is still held at the end of a stream with one label or none."""
        yield from self._held
        self._held = []

    def state(self) -> Snapshot:
        """Return what is held, and what is still to be turned round."""
        names = labels_to_text([self._negative, self._positive])
        counts = {"holds": self._pair is not None, "n_early": self._n_early, "n_turned": self._n_turned}
        held = nest("held", forecasts_to_state(*joined(self._held))) if self._held else {}
        return {**counts, "names": names, **held}

    def restore(self, state: Snapshot) -> None:
        """Become what `state` describes."""
        if not state["holds"]:
            self._pair = None
        self._n_early, self._n_turned = int(state["n_early"]), int(state["n_turned"])
        self._negative, self._positive = labels_from_text(state["names"]).tolist()
        held = below("held", state)
        self._held = [forecasts_from_state(held)] if held else []
        self._n_held = sum(len(labels) for _, labels in self._held)

    def _settle(self) -> Part:
        """Stop holding: find out which forecasts were early and whether the classes were exchanged after them."""
        tested, labels = joined(self._held)
        labelled = np.flatnonzero(tested.codes >= 0)
        self._negative, self._positive = self._pair() if self._pair is not None else (None, None)
        self._pair, self._held = None, []
        if None not in (self._negative, self._positive):
            first = labels[labelled[0]]
            second = next(int(i) for i in labelled if labels[i] != first)
            self._n_early = second + 1 + self.delay
            if first == self._positive and tested.codes[labelled[0]] == 0:
                self._n_turned = second + self.delay + self._row_by_row
                codes = tested.codes.copy()
                codes[labelled[labelled < second]] = 1
                tested = replace(tested, codes=codes)
        return tested, labels

    def _turned(self, tested: Tested) -> Tested:
        decisions = np.full(len(tested.codes), np.nan)
        for code, label in ((0.0, self._negative), (1.0, self._positive)):
            decisions[[prediction is not None and prediction == label for prediction in tested.predictions]] = code
        n = min(self._n_turned, len(decisions))
        self._n_turned -= n
        scores, probabilities = tested.scores.copy(), tested.probabilities.copy()
        scores[:n] *= -1.0
        probabilities[:n] = 1.0 - probabilities[:n]
        return replace(tested, scores=scores, probabilities=probabilities, decisions=decisions)
