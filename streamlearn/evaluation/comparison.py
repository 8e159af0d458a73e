"""Two learners on one stream: McNemar's test, and the difference of a metric with a bootstrapped band."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streamlearn.contracts import FloatArray, Label, Snapshot, Tested
from streamlearn.errors import BadParameter, BadSnapshot
from streamlearn.evaluation.blocks import blocks
from streamlearn.evaluation.delayed import DelayedLearner
from streamlearn.evaluation.early import EarlyForecasts
from streamlearn.evaluation.feed import feed
from streamlearn.evaluation.forecasts import picked
from streamlearn.evaluation.metric import check_count
from streamlearn.evaluation.registry import make_metric
from streamlearn.evaluation.tally import Tally
from streamlearn.evaluation.verbs import blockwise
from streamlearn.snapshot import below, nest

ORDERLY = ("kappa_t", "kappa_m")
"""Metrics whose baseline looks at the events before: they cannot be resampled."""


class McNemar:
    """McNemar's test on the events where just one of two learners is right (McNemar 1947), optionally fading.

    With fading factor f an event counts f times less one event later (Gama, Sebastiao and Rodrigues 2013). Under equal
    error rates each such event is a fair coin, so the faded difference of the counts has the variance sum f^(2 age): it
    is divided by that, and not by the faded count as in the paper, whose statistic is then not chi-squared.

    Parameters
    ----------
    fading : float or None
        In (0, 1).

    Examples
    --------
    >>> from streamlearn.evaluation import McNemar
    >>> test = McNemar()
    >>> test.update_many([True] * 30 + [False] * 10, [False] * 30 + [True] * 10)
    >>> test.statistic, round(test.p_value, 4)
    (10.0, 0.0016)
    """

    def __init__(self, *, fading: float | None = None) -> None:
        if fading is not None and not (isinstance(fading, float) and 0.0 < fading < 1.0):
            raise BadParameter(f"McNemar: fading must be None or in (0, 1), got {fading!r}")
        self.fading = fading
        self._tally = Tally(2, window=None, fading=fading)
        self._variance = Tally(1, window=None, fading=None if fading is None else fading * fading)

    def update_many(self, first_right: ArrayLike, second_right: ArrayLike) -> None:
        """Take events in order: bool[n] each, whether the first and the second learner was right."""
        a, b = np.asarray(first_right, np.bool_), np.asarray(second_right, np.bool_)
        self._tally.add(np.ascontiguousarray(np.stack([a & ~b, b & ~a], axis=1), np.float64))
        self._variance.add(np.ascontiguousarray((a != b)[:, None], np.float64))

    @property
    def counts(self) -> tuple[float, float]:
        """Events (faded) on which only the first, and only the second learner was right."""
        only_first, only_second = self._tally.totals().tolist()
        return only_first, only_second

    @property
    def statistic(self) -> float:
        """Chi-squared with one degree of freedom under equal error rates; NaN while the learners never differed."""
        only_first, only_second = self.counts
        (variance,) = self._variance.totals().tolist()
        return (only_first - only_second) ** 2 / variance if variance else math.nan

    @property
    def p_value(self) -> float:
        """Chance of a difference like this, or a larger one, between learners with equal error rates."""
        return math.erfc(math.sqrt(self.statistic / 2.0)) if not math.isnan(self.statistic) else math.nan

    def state(self) -> Snapshot:
        """Return the flat state."""
        return {"counts": self._tally.state()["sums"], "variance": self._variance.state()["sums"]}

    def restore(self, state: Snapshot) -> None:
        """Become what `state` describes."""
        self._tally.restore({"sums": state["counts"]})
        self._variance.restore({"sums": state["variance"]})


class BlockBootstrap:
    """Bands of metrics by an online block bootstrap.

    Each of `replicas` copies of the metrics sees each block of consecutive events w times, w drawn from Poisson(1)
    (Oza and Russell 2001; blocks as in Kunsch 1989, since neighbouring errors are alike). A band goes from the 2.5th to
    the 97.5th percentile of the copies: it tells how much the value depends on which events happened to come, for a
    stream that does not drift.

    Parameters
    ----------
    metrics : sequence of str
        Without window and fading, and none of `ORDERLY`.
    replicas, block, seed : int
    """

    def __init__(self, metrics: Sequence[str], *, replicas: int = 50, block: int = 100, seed: int = 0) -> None:
        for name, value in (("replicas", replicas), ("block", block)):
            check_count("BlockBootstrap", name, value, 1)
        for spec in metrics:
            made = make_metric(spec)
            if made.short in ORDERLY or made.params().get("window") or made.params().get("fading"):
                raise BadParameter(f"BlockBootstrap: metrics must count all events alike, got {spec!r}")
        self.metrics, self.replicas, self.block, self.seed = tuple(metrics), replicas, block, seed
        self._copies = [[make_metric(spec) for spec in metrics] for _ in range(replicas)]
        self._n = 0
        self._weights = np.zeros(replicas, np.int64)

    def take(self, tested: Tested, labels: NDArray[Any]) -> None:
        """Take the forecasts of consecutive events; the batches change nothing."""
        start = 0
        while start < len(labels):
            if self._n % self.block == 0:
                self._weights = self._drawn(self._n // self.block)
            stop = min(len(labels), start + self.block - self._n % self.block)
            rows = np.arange(start, stop)
            for weight in set(self._weights.tolist()) - {0}:
                # Each event so many times in a row, not the whole stretch: then it does not matter where batches end.
                repeated = np.repeat(rows, weight)
                part, known = picked(tested, repeated), labels[repeated]
                for k in np.flatnonzero(self._weights == weight):
                    for metric in self._copies[k]:
                        feed(metric, part, known)
            self._n += stop - start
            start = stop

    def _drawn(self, block: int) -> NDArray[np.int64]:
        """Return the weights of one block, which depend on the seed and its number alone: there is nothing to keep."""
        bits = np.random.Philox(key=self.seed, counter=[0, 0, 0, block])
        return np.random.Generator(bits).poisson(1.0, self.replicas)

    def state(self) -> Snapshot:
        """Return the flat state of all copies."""
        flat: Snapshot = {"n": self._n}
        for k, copies in enumerate(self._copies):
            for j, metric in enumerate(copies):
                flat |= nest(f"copy/{k}/{j}", metric.state())
        return flat

    def restore(self, state: Snapshot) -> None:
        """Become what `state` describes; parameters must be the same.

        Raises
        ------
        BadSnapshot
            It has other metrics, or another number of copies.
        """
        if below(f"copy/{self.replicas}/0", state) or not below(f"copy/{self.replicas - 1}/0", state):
            raise BadSnapshot(f"BlockBootstrap: state must have {self.replicas} copies of {len(self.metrics)} metrics")
        self._n = int(state["n"])
        for k, copies in enumerate(self._copies):
            for j, metric in enumerate(copies):
                metric.restore(below(f"copy/{k}/{j}", state))
        self._weights = self._drawn(max(0, self._n - 1) // self.block)

    def values(self, metric: int) -> FloatArray:
        """Return the values of one metric, float64[replicas]."""
        return np.array([copies[metric].get() for copies in self._copies])

    def band(self, metric: int) -> tuple[float, float]:
        """Return the 95 % band of one metric; NaN while undefined."""
        return percentiles(self.values(metric))


def percentiles(values: FloatArray) -> tuple[float, float]:
    """Return the 2.5th and the 97.5th percentile of the values that are defined."""
    known = values[~np.isnan(values)]
    if not len(known):
        return math.nan, math.nan
    low, high = np.percentile(known, [2.5, 97.5]).tolist()
    return low, high


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two learners on one stream.

    Attributes
    ----------
    names : (str, str)
    n_events : int
        Labelled events on which both decided.
    only_right : (float, float)
        How many of these only the first, and only the second learner got right.
    p_value : float
        McNemar's test over all events.
    recent_p_value : float
        McNemar's test with fading.
    values : mapping of metric name to (first, second)
    differences : mapping of metric name to (low, high)
        95 % band of the second value less the first, by a paired block bootstrap.
    """

    names: tuple[str, str]
    n_events: int
    only_right: tuple[float, float]
    p_value: float
    recent_p_value: float
    values: dict[str, tuple[float, float]]
    differences: dict[str, tuple[float, float]]


def compare(
    stream: Any,
    first: Any,
    second: Any,
    metrics: Sequence[str] = ("auc:exact_events=16384", "accuracy"),
    *,
    delay: int = 0,
    fading: float = 0.999,
    replicas: int = 50,
    block: int = 100,
    seed: int = 0,
    batch_size: int = 1024,
    positive: Label | None = None,
) -> Comparison:
    """Run two learners prequentially on one stream and tell whether they differ.

    Parameters
    ----------
    stream, delay, batch_size, positive
        As for `prequential`.
    first, second : learners
        They are trained by the run.
    metrics : sequence of str
        Compared by a paired bootstrap: both learners see the same resampled events.
    fading : float
        Of McNemar's test of late.
    replicas, block, seed : int
        Of the bootstrap.
    """
    check_count("compare", "delay", delay, 0)
    learners = (first, second)
    runs = [DelayedLearner(blockwise(learner, positive, numeric=False), delay) for learner in learners]
    early = [EarlyForecasts(learner) for learner in learners]
    boots = [BlockBootstrap(metrics, replicas=replicas, block=block, seed=seed) for _ in learners]
    measured = [[make_metric(spec) for spec in metrics] for _ in learners]
    pair = Pair(fading)

    def take(dues: list[Any]) -> None:
        for k, due in enumerate(dues):
            for tested, labels in due:
                boots[k].take(tested, labels)
                for metric in measured[k]:
                    feed(metric, tested, labels)
                pair.take(k, tested)

    for part in blocks(stream, batch_size):
        take([list(hold.take(run.run(part)[1])) for run, hold in zip(runs, early, strict=True)])
    take([list(hold.take(run.finish())) for run, hold in zip(runs, early, strict=True)])
    take([list(hold.finish()) for hold in early])
    names = [metric.name for metric in measured[0]]
    bands = [percentiles(boots[1].values(k) - boots[0].values(k)) for k in range(len(names))]
    titles = tuple(str(getattr(learner, "name", type(learner).__name__)) for learner in learners)
    return Comparison(
        names=(titles[0], titles[1]),
        n_events=pair.n_events,
        only_right=pair.whole.counts,
        p_value=pair.whole.p_value,
        recent_p_value=pair.recent.p_value,
        values={name: (measured[0][k].get(), measured[1][k].get()) for k, name in enumerate(names)},
        differences=dict(zip(names, bands, strict=True)),
    )


class Pair:
    """Whether two learners are right on the same events, fed from each as its forecasts are measured.

    Parameters
    ----------
    fading : float
        Of the test of late.
    """

    def __init__(self, fading: float) -> None:
        self.whole, self.recent = McNemar(), McNemar(fading=fading)
        self.n_events = 0
        self._ahead = [_NOTHING, _NOTHING]

    def take(self, which: int, tested: Tested) -> None:
        """Take forecasts of the first (0) or the second (1) learner."""
        known = np.where(tested.codes >= 0, tested.decisions, np.nan)
        right = np.where(np.isnan(known), np.nan, known == tested.codes)
        self._ahead[which] = np.concatenate([self._ahead[which], right])
        n = min(map(len, self._ahead))
        pair = np.stack([side[:n] for side in self._ahead])
        self._ahead = [side[n:] for side in self._ahead]
        both = pair[:, ~np.isnan(pair).any(axis=0)] == 1.0
        self.whole.update_many(*both)
        self.recent.update_many(*both)
        self.n_events += both.shape[1]

    def state(self) -> Snapshot:
        """Return both tests, and what one learner told of events that the other has not forecast yet."""
        ahead = {f"ahead_{k}": side.copy() for k, side in enumerate(self._ahead)}
        tests = nest("whole", self.whole.state()) | nest("recent", self.recent.state())
        return {"n_events": self.n_events, **ahead, **tests}

    def restore(self, state: Snapshot) -> None:
        """Become what `state` describes."""
        self.n_events = int(state["n_events"])
        self._ahead = [np.array(state[f"ahead_{k}"], np.float64) for k in range(2)]
        self.whole.restore(below("whole", state))
        self.recent.restore(below("recent", state))


_NOTHING = np.empty(0)
