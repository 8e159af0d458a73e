"""Prequential evaluation of k learners side by side: how much of a value is chance (Bifet et al. 2015)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import FloatArray, Label, is_missing
from streamlearn.errors import BadParameter
from streamlearn.evaluation.blocks import Block, blocks
from streamlearn.evaluation.feed import feed
from streamlearn.evaluation.forecasts import no_codes, with_codes
from streamlearn.evaluation.metric import BaseMetric, check_count
from streamlearn.evaluation.registry import make_metric
from streamlearn.evaluation.verbs import LateLearner, blockwise

Form = Literal["cross-validation", "split", "bootstrap"]
_POISSON_1 = np.cumsum([math.exp(-1.0) / math.factorial(k) for k in range(12)])


@dataclass(frozen=True, slots=True)
class FoldReport:
    """What k learners measured.

    Attributes
    ----------
    form : str
    n_events : int
    values : mapping of metric name to float64[k]
        One value a learner.
    """

    form: Form
    n_events: int
    values: dict[str, FloatArray]

    def mean(self, name: str) -> float:
        """Return the mean of a metric over the learners that have a value."""
        return float(np.nanmean(self.values[name]))

    def deviation(self, name: str) -> float:
        """Return the standard deviation of a metric over the learners."""
        return float(np.nanstd(self.values[name], ddof=1))


def prequential_folds(
    stream: Any,
    make_learner: Callable[[], Any],
    metrics: Sequence[str] = ("auc", "accuracy"),
    *,
    k: int = 10,
    form: Form = "cross-validation",
    seed: int = 0,
    batch_size: int = 1024,
    positive: Label | None = None,
) -> FoldReport:
    """Run k learners on one stream, each tested and trained on its own share of the events.

    Parameters
    ----------
    stream : as for `prequential`
    make_learner : callable
        Returns an untrained learner, the same each time.
    metrics : sequence of str
    k : int
        At least 2.
    form : str
        ``cross-validation``: each event tests one learner and trains the others; ``split``: it trains one and tests the
        others; ``bootstrap``: it trains each learner as often as Poisson(1) says, and tests those it does not train.
    seed : int
        Which event goes where; the batch size changes nothing.
    positive : label or None
        The positive label; None: True or 1, for labels that are bool or numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from streamlearn import AUCRO
    >>> from streamlearn.evaluation import prequential_folds
    >>> X = np.random.default_rng(0).normal(size=(600, 3))
    >>> report = prequential_folds((X, X[:, 0] > 0), AUCRO, ["auc"], k=4)
    >>> bool(report.mean("auc") > 0.9), len(report.values["auc"])
    (True, 4)
    """
    check_count("prequential_folds", "k", k, 2)
    if form not in ("cross-validation", "split", "bootstrap"):
        raise BadParameter(f"prequential_folds: form must be cross-validation, split or bootstrap, got {form!r}")
    measured = [[make_metric(spec) for spec in metrics] for _ in range(k)]
    numeric = all(metric.takes == "value" for metric in measured[0])
    learners = [blockwise(make_learner(), positive, numeric=numeric) for _ in range(k)]
    rng = np.random.Generator(np.random.Philox(seed))
    n_events = 0
    for block in blocks(stream, batch_size):
        times = _times(rng, len(block), k, form)
        for fold, learner in enumerate(learners):
            _run(learner, measured[fold], block, times[:, fold], positive)
        n_events += len(block)
    names = [metric.name for metric in measured[0]]
    values = {name: np.array([own[j].get() for own in measured]) for j, name in enumerate(names)}
    return FoldReport(form, n_events, values)


def _times(rng: np.random.Generator, n: int, k: int, form: Form) -> NDArray[np.int64]:
    """Return how often each learner is trained with each event, int64[n, k]; 0: it is tested."""
    if form == "bootstrap":
        drawn: NDArray[np.int64] = np.searchsorted(_POISSON_1, rng.random((n, k)))
        return drawn
    chosen = np.arange(k) == (rng.random(n) * k).astype(np.int64)[:, None]
    times: NDArray[np.int64] = (chosen if form == "split" else ~chosen).astype(np.int64)
    return times


def _run(
    learner: LateLearner, metrics: list[BaseMetric], block: Block, times: NDArray[np.int64], positive: Label | None
) -> None:
    """Test and train one learner, in the order of the events."""
    edges = [0, *(np.flatnonzero(np.diff(times > 0)) + 1).tolist(), len(block)]
    for start, stop in itertools.pairwise(edges):
        part = block.rows(start, stop)
        if times[start]:
            rows = np.repeat(np.arange(len(part)), times[start:stop])
            learner.test_then_learn_columns(part.names, part.values[rows], part.labels[rows])
            continue
        tested, _ = learner.forecast_columns(part.names, part.values)
        numeric = all(metric.takes == "value" for metric in metrics)
        codes = no_codes(len(part))
        if not numeric:
            codes = np.array([_code(y, positive) for y in part.labels.tolist()], np.int8)
        for metric in metrics:
            feed(metric, with_codes(tested, codes), part.labels)


def _code(y: Any, positive: Label | None) -> int:
    if is_missing(y):
        return -1
    if positive is not None:
        return int(y == positive)
    if not (isinstance(y, int | float) and y in (-1, 0, 1)):
        raise BadParameter(
            f"prequential_folds: positive must be given for labels other than bool, 0, 1 and -1, got {y!r}"
        )
    return int(y > 0)
