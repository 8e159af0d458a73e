"""The AUC of a ranker that may reject pairs, as a River metric."""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Mapping
from typing import Any

import numpy as np
from river import metrics

from streamlearn.errors import BadParameter, BadValue
from streamlearn.evaluation.metrics import check_reject_cost
from streamlearn.evaluation.pairs import PairCounts, StreamPairs
from streamlearn.evaluation.reject import reject_auc_bounds, reject_rate_bounds, threshold
from streamlearn.evaluation.scores import DEFAULT_EXACT_EVENTS

BLOCK = 1024
"""Pairs go to the kernels in blocks of this many: one by one the call would cost more than the counting."""


class RejectAUC(metrics.base.BinaryMetric):
    """AUC of the pairs that are ranked, the others being rejected at the cost `d` each (Shen, Yang and Gao 2020).

    A (positive, negative) pair is rejected where the log-odds of its events differ by at most ``ln((1 - d) / d)``. It
    is fed with probabilities, so that a classifier that abstains in `predict_one` is measured on what it would rank.
    Exact up to 80,000 distinct probabilities, then the middle of certified bounds. NaN while no pair was ranked.

    Parameters
    ----------
    d : float
        Cost of rejecting a pair, in (0, 0.5]; at 0.5 it is the plain AUC.
    pos_val : bool, int or str
        The positive label.

    Attributes
    ----------
    reject_rate : float
        Share of the pairs that are rejected.

    Notes
    -----
    `revert`, which `river.utils.Rolling` needs, keeps the events that are left in two sorted lists: exact, and meant
    for windows. It cannot be begun on more than 80,000 distinct probabilities.

    Examples
    --------
    >>> from streamlearn.adapters.river import RejectAUC
    >>> metric = RejectAUC(d=0.3)
    >>> for y, p in [(True, 0.9), (False, 0.2), (True, 0.4), (False, 0.5)]:
    ...     metric.update(y, {False: 1 - p, True: p})
    >>> metric, metric.reject_rate
    (RejectAUC: 100.00%, 0.25)
    """

    def __init__(self, d: float = 0.4, pos_val: Any = True) -> None:
        check_reject_cost("RejectAUC", d)
        self.d = d
        self.pos_val = pos_val
        self._tau = threshold(d)
        self._stream = StreamPairs(DEFAULT_EXACT_EVENTS, self._tau)
        self._codes: list[int] = []
        self._scores: list[float] = []
        self._left: _SortedPairs | None = None

    def update(self, y_true: Any, y_pred: Any, w: float = 1.0) -> None:
        """Take one event: its label and {label: probability}, or the probability of the positive label."""
        code, score = self._event(y_true, y_pred, w)
        if self._left is not None:
            self._left.add(code, score)
            return
        self._codes.append(code)
        self._scores.append(score)
        if len(self._codes) == BLOCK:
            self._flush()

    def revert(self, y_true: Any, y_pred: Any, w: float = 1.0) -> None:
        """Forget one event that was taken.

        Raises
        ------
        BadValue
            No such event was taken, or too many to know.
        """
        code, score = self._event(y_true, y_pred, w)
        if self._left is None:
            self._flush()
            self._left = _SortedPairs.of(self._stream, self._tau)
        self._left.remove(code, score)

    def get(self) -> float:
        """Return the present value; NaN while no pair was ranked."""
        counts = self._counts()
        return _middle(reject_auc_bounds(counts, self._tau)) if counts.total else math.nan

    @property
    def reject_rate(self) -> float:
        """Share of the pairs that are rejected; NaN while only one class was seen."""
        counts = self._counts()
        return _middle(reject_rate_bounds(counts)) if counts.total else math.nan

    @property
    def requires_labels(self) -> bool:
        """Probabilities are what it takes."""
        return False

    @property
    def works_with_weights(self) -> bool:
        """Each event counts once."""
        return False

    def _event(self, y_true: Any, y_pred: Any, w: float) -> tuple[int, float]:
        if w != 1.0:
            raise BadParameter(f"RejectAUC: w must be 1, got {w!r}")
        p = float(y_pred.get(self.pos_val, 0.0) if isinstance(y_pred, Mapping) else y_pred)
        if not 0.0 <= p <= 1.0:
            raise BadValue(f"RejectAUC: y_pred must be a probability, got {p!r}")
        return int(y_true == self.pos_val), _log_odds(p)

    def _flush(self) -> None:
        self._stream.add(np.array(self._codes, dtype=np.int8), np.array(self._scores))
        self._codes, self._scores = [], []

    def _counts(self) -> PairCounts:
        if self._left is not None:
            return self._left.counts()
        self._flush()
        return self._stream.counts()


class _SortedPairs:
    """Exact pair counts of a set of events from which some may be taken out again."""

    def __init__(self, tau: float) -> None:
        self._tau = tau
        self._sorted: tuple[list[float], list[float]] = ([], [])
        self._higher = 0
        self._lower = 0

    @classmethod
    def of(cls, stream: StreamPairs, tau: float) -> _SortedPairs:
        if not stream.exact:
            raise BadValue(
                f"RejectAUC: revert must begin on at most {stream.exact_events} distinct probabilities, got more"
            )
        made = cls(tau)
        (keys, mass), _ = stream.everything()
        made._sorted = (np.repeat(keys, mass[0]).tolist(), np.repeat(keys, mass[1]).tolist())
        counts = stream.counts()
        made._higher, made._lower = int(counts.higher[0]), int(counts.lower[0])
        return made

    def add(self, code: int, score: float) -> None:
        self._count(code, score, 1)
        insort(self._sorted[code], score)

    def remove(self, code: int, score: float) -> None:
        mine = self._sorted[code]
        place = bisect_left(mine, score)
        if place == len(mine) or mine[place] != score:
            raise BadValue("RejectAUC: revert must be of an event that was taken, got another")
        del mine[place]
        self._count(code, score, -1)

    def counts(self) -> PairCounts:
        negatives, positives = self._sorted
        return PairCounts((self._higher, self._higher), (self._lower, self._lower), len(negatives) * len(positives))

    def _count(self, code: int, score: float, sign: int) -> None:
        # The test is on the rounded difference, as in the kernels: a pair counts alike whichever event comes first.
        others, tau = self._sorted[1 - code], self._tau
        below = bisect_left(others, True, key=lambda other: not score - other > tau)
        above = len(others) - bisect_left(others, True, key=lambda other: other - score > tau)
        higher, lower = (below, above) if code else (above, below)
        self._higher += sign * higher
        self._lower += sign * lower


def _log_odds(p: float) -> float:
    return math.log(p) - math.log1p(-p) if 0.0 < p < 1.0 else math.copysign(math.inf, p - 0.5)


def _middle(bounds: tuple[float, float]) -> float:
    low, high = bounds
    return low if low == high else (low + high) / 2.0
