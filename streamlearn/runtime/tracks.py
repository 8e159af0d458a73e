"""One learner of a job with everything that is measured about it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import FeatureName, FloatArray, HasState, OnlineLearner, Snapshot, Tested
from streamlearn.evaluation.blocks import Block
from streamlearn.evaluation.curve import RejectCurve
from streamlearn.evaluation.delayed import DelayedLearner
from streamlearn.evaluation.early import EarlyForecasts
from streamlearn.evaluation.feed import feed
from streamlearn.evaluation.forecasts import Due, Forecast, cut, joined, none_due
from streamlearn.evaluation.metric import BaseMetric
from streamlearn.evaluation.verbs import LateLearner
from streamlearn.runtime.drift import REACT_EVERY, DriftRules, DriftWatch, made_anew
from streamlearn.runtime.trajectory import Trajectory
from streamlearn.snapshot import below, nest

HISTOGRAM_BINS = 40


@dataclass(frozen=True, slots=True)
class Learned:
    """What came of one block.

    Attributes
    ----------
    tested : Tested
        The forecasts of its events.
    due : Due
        The events that were learned: the same ones, or earlier ones whose labels came late.
    """

    tested: Tested
    due: Due


class Track:
    """A learner, its metrics, how they moved, its reject curve, and the histogram of its probabilities.

    Parameters
    ----------
    title : str
        Name in the report.
    learner : OnlineLearner
    metrics : sequence of BaseMetric
        Measured and sampled.
    curve : RejectCurve or None
        Measured, read at the end.
    delay : int
        Labels come this many events late.
    drift : DriftRules or None
    """

    def __init__(
        self,
        title: str,
        learner: OnlineLearner,
        metrics: Sequence[BaseMetric],
        *,
        curve: RejectCurve | None = None,
        delay: int = 0,
        drift: DriftRules | None = None,
    ) -> None:
        self.title = title
        self.learner = learner
        self.metrics = tuple(metrics)
        self.curve = curve
        self._fed: tuple[BaseMetric, ...] = (*self.metrics, *([curve] if curve is not None else []))
        self.trajectory = Trajectory(len(self.metrics))
        self.histogram = np.zeros((2, HISTOGRAM_BINS), dtype=np.int64)
        """int64[2, n_bins]: probabilities given to negatives and to positives."""
        self.events = 0
        """Events that were measured: all but those that wait for their label, or for the second class to show up."""
        self.labelled = 0
        self.abstained = 0
        self.seconds = 0.0
        """Time spent in the learner by this process; no part of the state."""
        late = cast("LateLearner", learner)  # with a delay: looked at when the job was put together
        self._delayed = DelayedLearner(late, delay, remember=drift.remembered if drift is not None else 0)
        numeric = all(metric.takes == "value" for metric in self.metrics)
        self.drift = DriftWatch(title, drift, numeric=numeric) if drift is not None else None
        self._taken = 0
        self._early = EarlyForecasts(learner)
        self.listeners: list[Callable[[Tested, NDArray[Any]], None]] = []
        """Told the forecasts and labels of the events that are measured; no part of the state."""

    @property
    def name(self) -> str:
        """The learner's name."""
        return self.learner.name

    def check(self, names: tuple[FeatureName, ...], values: FloatArray, labels: NDArray[Any]) -> None:
        """Raise what learning this block would raise, behind the events that wait; change nothing."""
        block = Block(names, values, labels)
        if len(self._delayed):
            block = self._delayed.with_waiting(block)
        self.learner.check(block.names, block.values, block.labels)

    @property
    def waiting(self) -> int:
        """How many events wait for their label."""
        return len(self._delayed)

    @property
    def refuses_whole_batches(self) -> bool:
        """Whether `test_then_learn` either takes a block or raises with nothing changed, without `check` before it."""
        return self._delayed.delay == 0 and not self._reacts

    @property
    def _reacts(self) -> bool:
        return self.drift is not None and self.drift.reacts

    def test_then_learn(self, names: tuple[FeatureName, ...], values: FloatArray, labels: NDArray[Any]) -> Learned:
        """Forecast one block and learn the events whose labels are there."""
        began = time.perf_counter()
        block = Block(names, values, labels)
        learned = self._learn_reacting(block) if self._reacts else Learned(*self._delayed.run(block))
        self.seconds += time.perf_counter() - began
        return learned

    @property
    def generation(self) -> int:
        """How many learners there were before this one."""
        return self.drift.n_reacted if self.drift is not None else 0

    def forecast(self, block: Block) -> Forecast:
        """Forecast events whose labels will come to `learn_late`."""
        began = time.perf_counter()
        forecast = self._delayed.forecast(block)
        self.seconds += time.perf_counter() - began
        return forecast

    def learn_late(self, late: Forecast) -> None:
        """Learn and measure events that were forecast before.

        Parameters
        ----------
        late : Forecast
            With the labels that have come; `ready` holds the generation of the learner that made the forecasts.
        """
        start = 0
        while start < len(late):
            began = time.perf_counter()
            room = REACT_EVERY - self._taken % REACT_EVERY if self._reacts else len(late)
            stale = late.ready[start : start + room] != self.generation
            part = late.rows(slice(start, start + _equal_first(stale)))
            due = self._delayed.learn(part, with_memo=not stale[0])
            self.seconds += time.perf_counter() - began
            self._measure_due(due)
            self._took(len(part))
            start += len(part)

    def _learn_reacting(self, block: Block) -> Learned:
        """Learn in stretches with the measuring in between, since what it finds may change the learner."""
        made: list[tuple[Tested, NDArray[Any]]] = []
        start = 0
        while start < len(block):
            part = block.rows(start, start + REACT_EVERY - self._taken % REACT_EVERY)
            tested, due = self._delayed.run(part)
            made.append((tested, part.labels))
            self._measure_due(due)
            self._took(len(part))
            start += len(part)
        return Learned(joined(made)[0], none_due())

    def _took(self, n: int) -> None:
        """Count events, and answer a drift behind every so many of them."""
        self._taken += n
        if self.drift is not None and self.drift.pending and self._taken % REACT_EVERY == 0:
            self.learner = made_anew(self.learner)
            self._delayed.replace_learner(cast("LateLearner", self.learner))
            self.drift.answered(self._taken)

    def measure(self, learned: Learned) -> None:
        """Feed the metrics with the forecasts of the events that were learned."""
        self._measure_due(learned.due)

    def finish(self) -> None:
        """Learn and measure the events that still wait for their label, as no more input comes."""
        self._measure_due(self._delayed.finish())
        for forecast, known in self._early.finish():
            self._measure(forecast, known)

    def _measure_due(self, due: Due) -> None:
        for forecast, known in self._early.take(due):
            self._measure(forecast, known)

    def _measure(self, tested: Tested, labels: NDArray[Any]) -> None:
        """Feed the metrics, stopping at each event count at which they are sampled."""
        n, done = len(tested.scores), 0
        while done < n:
            sample_at = self.trajectory.next_after(self.events)
            stop = min(n, done + sample_at - self.events)
            part, known = cut(tested, done, stop), labels[done:stop]
            for metric in self._fed:
                feed(metric, part, known)
            if self.drift is not None:
                self.drift.take(part, known, self.events)
            self.events += stop - done
            done = stop
            if self.events == sample_at:
                self.trajectory.add(np.array([metric.get() for metric in self.metrics]))
        self._count(tested)
        for hear in self.listeners:
            hear(tested, labels)

    def _count(self, tested: Tested) -> None:
        self.labelled += int(np.count_nonzero(tested.codes >= 0))
        self.abstained += int(np.count_nonzero(np.isnan(tested.decisions)))
        known = np.isfinite(tested.probabilities)
        bins = np.minimum((tested.probabilities[known] * HISTOGRAM_BINS).astype(np.int64), HISTOGRAM_BINS - 1)
        for code in (0, 1):
            self.histogram[code] += np.bincount(bins[tested.codes[known] == code], minlength=HISTOGRAM_BINS)

    def state(self) -> Snapshot:
        """Return the flat state of all parts."""
        flat: Snapshot = {
            "events": self.events,
            "labelled": self.labelled,
            "abstained": self.abstained,
            "taken": self._taken,
            "histogram": self.histogram.copy(),
        }
        for prefix, part in self._stateful():
            flat |= nest(prefix, part.state())
        return flat

    def restore(self, state: Snapshot) -> None:
        """Become what `state` describes."""
        self.events, self.labelled = int(state["events"]), int(state["labelled"])
        self.abstained, self._taken = int(state["abstained"]), int(state["taken"])
        self.histogram = state["histogram"].copy()
        for prefix, part in self._stateful():
            part.restore(below(prefix, state))

    def _stateful(self) -> list[tuple[str, HasState]]:
        metrics: list[tuple[str, HasState]] = [(f"metric/{k}", metric) for k, metric in enumerate(self.metrics)]
        drift: list[tuple[str, HasState]] = [("drift", self.drift)] if self.drift is not None else []
        curve: list[tuple[str, HasState]] = [("curve", self.curve)] if self.curve is not None else []
        return [
            *metrics,
            ("waiting", self._delayed),
            *drift,
            ("early", self._early),
            *curve,
            ("learner", self.learner),
            ("trajectory", self.trajectory),
        ]


def _equal_first(flags: NDArray[np.bool_]) -> int:
    """Return how many flags at the beginning are alike."""
    other = np.flatnonzero(flags != flags[0])
    return int(other[0]) if len(other) else len(flags)
