"""Drift of one learner of a job: detected in its prequential loss, told, and answered as the job declares."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from typing import Any, Literal, Protocol, Self, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import FloatArray, OnlineLearner, Snapshot, Tested
from streamlearn.evaluation.detector import DriftDetector
from streamlearn.evaluation.drift import make_detector
from streamlearn.evaluation.feed import targets
from streamlearn.learners.base import BinaryScorer
from streamlearn.snapshot import below, nest

Reaction = Literal["alert", "reset", "shorten_memory"]

REACT_EVERY = 64
"""A reaction comes behind an event whose number is a multiple of this: wherever the batches are cut. Learners that may
be replaced are called for so many events at a time, which costs about 1 us an event."""

MAX_KEPT = 1000
"""Drifts that are remembered one by one: a stream that never ends may have any number."""

_log = logging.getLogger(__name__)


@runtime_checkable
class Clones(Protocol):
    """A learner that can make an untrained one like itself."""

    def clone(self) -> Self:
        """Return an untrained learner with the same parameters."""
        ...


@dataclass(frozen=True, slots=True)
class DriftRules:
    """What a job says about drift.

    Attributes
    ----------
    detector : str
        As for `make_detector`.
    reaction : str
        When the loss rose. ``alert``: tell it; ``reset``: go on with an untrained learner; ``shorten_memory``: go on
        with an untrained learner that has learned the last `memory` events.
    memory : int
    """

    detector: str
    reaction: Reaction = "alert"
    memory: int = 1000

    @property
    def remembered(self) -> int:
        """How many learned events have to be remembered."""
        return self.memory if self.reaction == "shorten_memory" else 0


class DriftWatch:
    """A detector fed with the losses of one learner, and the list of what it found.

    The loss of a classifier is 1 for a wrong decision, 0 for a right one; an abstention has none. That of a regressor
    is the absolute error.

    Parameters
    ----------
    title : str
        The learner's name in messages.
    rules : DriftRules
    numeric : bool
        Whether labels are numbers to be predicted.
    """

    def __init__(self, title: str, rules: DriftRules, *, numeric: bool) -> None:
        self.title, self.rules, self._numeric = title, rules, numeric
        self._detector: DriftDetector = make_detector(rules.detector)
        self.found: list[int] = []
        """Behind which measured event each drift was detected; the last `MAX_KEPT`, like the lists below."""
        self.rose: list[bool] = []
        """Whether the loss rose then: a learner that has become better is left alone."""
        self.reacted: list[int] = []
        """Behind which taken event each reaction came."""
        self.n_found = self.n_reacted = 0
        self._unanswered = False

    @property
    def reacts(self) -> bool:
        """Whether more than an alert may come of a drift."""
        return self.rules.reaction != "alert"

    @property
    def pending(self) -> bool:
        """Whether a drift was detected that was not answered."""
        return self.reacts and self._unanswered

    def take(self, tested: Tested, labels: NDArray[Any], n_before: int) -> None:
        """Look at the losses of the measured events behind the first `n_before`."""
        indexes, rose = self._detector.changes(self._losses(tested, labels))
        for index, worse in zip(indexes.tolist(), rose.tolist(), strict=True):
            self._keep(self.found, n_before + index + 1)
            self._keep(self.rose, worse)
            self.n_found += 1
            self._unanswered |= worse
            what = "its loss rose" if worse else "its loss fell"
            _log.warning("%s: drift (%s) behind event %d: %s", self.title, self.rules.detector, self.found[-1], what)

    def answered(self, n_taken: int) -> None:
        """Hear that the learner was replaced behind the first `n_taken` events."""
        self._keep(self.reacted, n_taken)
        self.n_reacted += 1
        _log.warning("%s: %s behind event %d", self.title, self.rules.reaction, n_taken)
        self._unanswered = False

    @staticmethod
    def _keep(kept: list[Any], value: object) -> None:
        kept.append(value)
        del kept[:-MAX_KEPT]

    def _losses(self, tested: Tested, labels: NDArray[Any]) -> FloatArray:
        if self._numeric:
            errors: FloatArray = np.abs(targets(labels) - tested.scores)
            return errors
        wrong: FloatArray = (tested.decisions != tested.codes).astype(np.float64)
        wrong[(tested.codes < 0) | np.isnan(tested.decisions)] = np.nan
        return wrong

    def state(self) -> Snapshot:
        """Return detector and lists."""
        lists = {name: json.dumps(getattr(self, name)) for name in _LISTS}
        counts = {"n_found": self.n_found, "n_reacted": self.n_reacted, "unanswered": int(self._unanswered)}
        return {**lists, **counts, **nest("detector", self._detector.state())}

    def restore(self, state: Snapshot) -> None:
        """Become what `state` describes."""
        self.found, self.rose, self.reacted = (json.loads(state[name]) for name in _LISTS)
        self.n_found, self.n_reacted = int(state["n_found"]), int(state["n_reacted"])
        self._unanswered = bool(state["unanswered"])
        self._detector.restore(below("detector", state))


_LISTS = ("found", "rose", "reacted")


def made_anew(learner: OnlineLearner) -> OnlineLearner:
    """Return an untrained learner with the same parameters, which knows the positive label if the trained one does."""
    assert isinstance(learner, Clones)  # noqa: S101  looked at when the job was put together
    if isinstance(learner, BinaryScorer):
        _, positive = learner.label_pair()
        return cast("OnlineLearner", learner.clone(positive=learner.positive if positive is None else positive))
    return cast("OnlineLearner", learner.clone())
