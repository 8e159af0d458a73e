"""What somebody sees who looks at a running job from outside: one value, made between two batches."""

from __future__ import annotations

import math
import time
from collections import deque
from dataclasses import asdict
from typing import Protocol, runtime_checkable

import msgspec
import numpy as np

from streamlearn.runtime.brokers import Tells
from streamlearn.runtime.loop import Loop
from streamlearn.runtime.tracks import Track

RATE_OVER_S = 10.0
MAX_SAMPLES = 240


@runtime_checkable
class HasNorm(Protocol):
    """A learner that knows how large its weights are."""

    @property
    def weight_norm(self) -> float:
        """Euclidean norm of the weights; NaN before there are any."""
        ...


class LearnerView(msgspec.Struct, frozen=True):
    """One learner.

    Attributes
    ----------
    title, name : str
    events, labelled, abstained : int
        Measured events, those with a label, those whose forecast was no label.
    seconds : float
        Time in the learner, by this process.
    metrics : dict of str to (float or None)
        None while a metric is not defined.
    norm : float or None
        Of the weights.
    drifts : int or None
        Detected in its loss; None where nobody looks.
    negative, positive : list of int
        Histograms of P(positive) by class.
    """

    title: str
    name: str
    events: int
    labelled: int
    abstained: int
    seconds: float
    metrics: dict[str, float | None]
    norm: float | None
    drifts: int | None
    negative: list[int]
    positive: list[int]


class View(msgspec.Struct, frozen=True):
    """A job at one moment.

    Attributes
    ----------
    job : str
    started_s, time_s : float
        Unix times of the start of the process, and of this view.
    events : int
        Of the whole job.
    events_per_s : float
        Over the last `RATE_OVER_S` seconds.
    bad : dict of str to int
        Bad events by kind.
    errors : list of str
        The last of them, newest first.
    trouble : str
        What keeps the job from its input; empty while all is well.
    lag : dict of str to int
        Events still to read by partition, where the source knows.
    waiting : int
        Events that wait for their label.
    labels : dict of str to int
        What became of labels that come by key: matched, early, expired, late, unknown, duplicate, ...
    checkpoints : int
        Made by this process.
    checkpoint_s, checkpoint_at_s : float or None
        How long the newest took; its unix time.
    learners : list of LearnerView
    lead : str
        Title of the one whose predictions go out.
    """

    job: str
    started_s: float
    time_s: float
    events: int
    events_per_s: float
    bad: dict[str, int]
    errors: list[str]
    trouble: str
    lag: dict[str, int]
    waiting: int
    labels: dict[str, int]
    checkpoints: int
    checkpoint_s: float | None
    checkpoint_at_s: float | None
    learners: list[LearnerView]
    lead: str


class Checkpoints(msgspec.Struct):
    """What is known of the checkpoints of this process."""

    count: int = 0
    seconds: float | None = None
    at_s: float | None = None

    def saved(self, seconds: float) -> None:
        """Take note of another one."""
        self.count += 1
        self.seconds, self.at_s = seconds, time.time()


class Rate:
    """Events a second over the last seconds."""

    def __init__(self) -> None:
        self._counts: deque[tuple[float, int]] = deque()

    def at(self, now_s: float, events: int) -> float:
        """Take a count and return the rate since the oldest one that is kept."""
        self._counts.append((now_s, events))
        while len(self._counts) > 2 and self._counts[1][0] <= now_s - RATE_OVER_S:
            self._counts.popleft()
        (then_s, before) = self._counts[0]
        return (events - before) / (now_s - then_s) if now_s > then_s else 0.0


def look(loop: Loop, job: str, started_s: float, rate: float, checkpoints: Checkpoints) -> View:
    """Return what there is to see of a loop; to be called between two batches, by the loop's thread."""
    source, letters, late = loop.parts.source, loop.parts.dead_letters, loop.parts.late
    return View(
        job=job,
        started_s=started_s,
        time_s=time.time(),
        events=loop.events,
        events_per_s=rate,
        bad=dict(letters.counts),
        errors=list(letters.last),
        trouble=source.trouble if isinstance(source, Tells) else "",
        lag=dict(source.lag()) if isinstance(source, Tells) else {},
        waiting=late.waiting if late is not None else max(track.waiting for track in loop.parts.tracks),
        labels=asdict(late.counts) if late is not None else {},
        checkpoints=checkpoints.count,
        checkpoint_s=checkpoints.seconds,
        checkpoint_at_s=checkpoints.at_s,
        learners=[_learner(track) for track in loop.parts.tracks],
        lead=loop.parts.tracks[loop.parts.lead.index].title,
    )


def _learner(track: Track) -> LearnerView:
    norm = track.learner.weight_norm if isinstance(track.learner, HasNorm) else math.nan
    return LearnerView(
        title=track.title,
        name=track.name,
        events=track.events,
        labelled=track.labelled,
        abstained=track.abstained,
        seconds=track.seconds,
        metrics={metric.name: _known(metric.get()) for metric in track.metrics},
        norm=_known(norm),
        drifts=track.drift.n_found if track.drift is not None else None,
        negative=track.histogram[0].tolist(),
        positive=track.histogram[1].tolist(),
    )


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


class Sample(msgspec.Struct, frozen=True):
    """One moment of the history.

    Attributes
    ----------
    time_s, events_per_s : float
    lag : int or None
    learners : list of (list of (float or None), float or None)
        Metrics in their order, and the share of events since the sample before that the learner abstained from.
    """

    time_s: float
    events_per_s: float
    lag: int | None
    learners: list[tuple[list[float | None], float | None]]


class History:
    """Samples of a job at equal distances; when there are too many, half of them go and the distance doubles.

    Parameters
    ----------
    every_s : float
        The first distance.
    """

    def __init__(self, every_s: float) -> None:
        self.samples: list[Sample] = []
        self._every_s = every_s
        self._counts: list[tuple[int, int]] = []

    def add(self, view: View) -> None:
        """Take a view, unless the last one was taken just now."""
        if self.samples and view.time_s - self.samples[-1].time_s < 0.99 * self._every_s:
            return
        counts = [(learner.events, learner.abstained) for learner in view.learners]
        learners = [
            (list(learner.metrics.values()), _share(before, now))
            for learner, before, now in zip(view.learners, self._counts or counts, counts, strict=True)
        ]
        lag = sum(view.lag.values()) if view.lag else None
        self._counts = counts
        # A new list: the server's threads may be reading the old one.
        samples = [*self.samples, Sample(view.time_s, view.events_per_s, lag, learners)]
        if len(samples) > MAX_SAMPLES:
            samples, self._every_s = samples[1::2], 2.0 * self._every_s
        self.samples = samples


def _share(before: tuple[int, int], now: tuple[int, int]) -> float | None:
    events = now[0] - before[0]
    return (now[1] - before[1]) / events if events > 0 else None
