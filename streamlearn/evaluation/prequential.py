"""Prequential evaluation: every event is a test before it is a lesson (Dawid 1984; Gama et al. 2013)."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import FloatArray, IntArray, Label, Metric, Tested
from streamlearn.errors import BadParameter
from streamlearn.evaluation.arrivals import Arrivals
from streamlearn.evaluation.blocks import blocks
from streamlearn.evaluation.delayed import DelayedLearner
from streamlearn.evaluation.early import EarlyForecasts
from streamlearn.evaluation.feed import feed
from streamlearn.evaluation.forecasts import cut
from streamlearn.evaluation.metric import check_count
from streamlearn.evaluation.registry import make_metric
from streamlearn.evaluation.verbs import blockwise

DEFAULT_METRICS = ("auc", "auc:window=1000", "logloss", "kappa_t")


@dataclass(frozen=True, slots=True)
class Report:
    """What a prequential run measured.

    Attributes
    ----------
    learner : str
    n_events, n_labelled, n_abstained : int
        Events; those that had a label; those of these without a decision.
    delay : int or None
        None where labels do not come a fixed number of events late.
    seconds : float
        Of the whole run: reading the stream, the learner and the metrics.
    values : mapping of metric name to float
    intervals : mapping of metric name to (low, high)
        Certified bounds; equal to the value where it is exact.
    at : int64[n_samples]
        Events seen at each sample of the trajectories; the last is `n_events`.
    trajectories : mapping of metric name to float64[n_samples]
    """

    learner: str
    n_events: int
    n_labelled: int
    n_abstained: int
    delay: int | None
    seconds: float
    values: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float]]
    at: IntArray
    trajectories: Mapping[str, FloatArray]

    @property
    def events_per_s(self) -> float:
        """Events a second of the whole run."""
        return self.n_events / self.seconds if self.seconds else np.inf


def prequential(
    stream: Any,
    learner: Any,
    metrics: Sequence[Metric | str] = DEFAULT_METRICS,
    *,
    delay: Any = 0,
    moment: Any = None,
    batch_size: int = 1024,
    every: int = 1000,
    positive: Label | None = None,
) -> Report:
    """Forecast each event, then learn it, and measure the forecasts.

    With labels `delay` events late, event t is forecast by a model that has learned events 0 ... t - delay - 1, and
    event t - delay is learned after that. Each forecast is measured when its label comes; the last ones at the end of
    the stream, when the events still waiting are learned too. The batch size changes nothing but the speed.

    Parameters
    ----------
    stream : (X, y), iterable of (x, y), or iterable of (X, y)
        x: mapping or 1-D array; X: 2-D array, dataframe or sequence of mappings.
    learner : learner of streamlearn, or any object with `learn_one` and `predict_one` (and `predict_proba_one`)
        It is trained by the run.
    metrics : sequence of metric or str
        Metrics given as objects can be read afterwards; texts as for `make_metric`.
    delay : int, float, timedelta, str, array or callable (x, y) -> number
        Events between an event and its label; seconds, or a timedelta, where `moment` is given. A text names the
        column that holds it, which is not a feature then; an array has one number an event; infinity: never.
    moment : str, array, callable x -> seconds or datetime, or None
        When each event comes: labels that have come by then are learned before it is forecast.
    batch_size : int
        Events handed to the learner at a time.
    every : int
        The trajectories have a sample every so many events.
    positive : label or None
        Positive label for a learner that does not know it itself; needed where labels are not bool, 0, 1 or -1.

    Returns
    -------
    Report

    Examples
    --------
    >>> import numpy as np
    >>> from streamlearn import AUCRO
    >>> from streamlearn.evaluation import prequential
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> report = prequential((X, X[:, 0] > 0), AUCRO(), ["auc"])
    >>> bool(report.values["auc"] > 0.9)
    True
    """
    arrivals = Arrivals(delay, moment)
    check_count("prequential", "batch_size", batch_size, 1)
    check_count("prequential", "every", every, 1)
    recorder = Recorder(metrics, every)
    numeric = all(metric.takes == "value" for metric in recorder.metrics)
    runner = DelayedLearner(blockwise(learner, positive, numeric=numeric), arrivals.fixed or 0)
    start = time.perf_counter()
    early = EarlyForecasts(learner)
    for block in blocks(stream, batch_size):
        due = runner.run(block)[1] if arrivals.fixed is not None else runner.run(*arrivals.take(block))[1]
        recorder.take_all(early.take(due))
    recorder.take_all(early.take(runner.finish()))
    recorder.take_all(early.finish())
    seconds = time.perf_counter() - start
    name = getattr(learner, "name", type(learner).__name__)
    return recorder.report(name if isinstance(name, str) else type(learner).__name__, arrivals.fixed, seconds)


class Recorder:
    """Feeds metrics and samples them every `every` events, wherever the batches are cut.

    Parameters
    ----------
    metrics : sequence of metric or str
    every : int
    """

    def __init__(self, metrics: Sequence[Metric | str], every: int) -> None:
        self.metrics = [make_metric(metric) if isinstance(metric, str) else metric for metric in metrics]
        names = [metric.name for metric in self.metrics]
        if not names or len(set(names)) < len(names):
            raise BadParameter(f"prequential: metrics must be at least one and differ in name, got {names}")
        self.every = every
        self.n_events = self.n_labelled = self.n_abstained = 0
        self._at: list[int] = []
        self._samples: list[list[float]] = []

    def take_all(self, parts: Iterable[tuple[Tested, NDArray[Any]]]) -> None:
        """Measure several stretches of events."""
        for tested, labels in parts:
            self.take(tested, labels)

    def take(self, tested: Tested, labels: NDArray[Any]) -> None:
        """Measure the forecasts of consecutive events."""
        start = 0
        while start < len(labels):
            stop = min(len(labels), start + self.every - self.n_events % self.every)
            self._feed(cut(tested, start, stop), labels[start:stop])
            if self.n_events % self.every == 0:
                self._sample()
            start = stop

    def _feed(self, tested: Tested, labels: NDArray[Any]) -> None:
        for metric in self.metrics:
            feed(metric, tested, labels)
        labelled = tested.codes >= 0
        self.n_events += len(labels)
        self.n_labelled += int(labelled.sum())
        self.n_abstained += int((labelled & np.isnan(tested.decisions)).sum())

    def _sample(self) -> None:
        self._at.append(self.n_events)
        self._samples.append([metric.get() for metric in self.metrics])

    def report(self, learner: str, delay: int | None, seconds: float) -> Report:
        """Return everything measured."""
        if self.n_events % self.every:
            self._sample()
        samples = np.array(self._samples, np.float64).reshape(-1, len(self.metrics))
        names = [metric.name for metric in self.metrics]
        return Report(
            learner=learner,
            n_events=self.n_events,
            n_labelled=self.n_labelled,
            n_abstained=self.n_abstained,
            delay=delay,
            seconds=seconds,
            values={name: metric.get() for name, metric in zip(names, self.metrics, strict=True)},
            intervals={name: _interval(metric) for name, metric in zip(names, self.metrics, strict=True)},
            at=np.array(self._at, np.int64),
            trajectories={name: samples[:, k].copy() for k, name in enumerate(names)},
        )


def _interval(metric: Metric) -> tuple[float, float]:
    bounds = getattr(metric, "interval", None)
    return bounds() if bounds is not None else (metric.get(), metric.get())
