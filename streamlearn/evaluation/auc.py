"""The area under the ROC curve of a stream: of everything, of a sliding window, fading."""

from __future__ import annotations

import math

from streamlearn.contracts import CodeArray, FloatArray, Snapshot
from streamlearn.evaluation.metric import ClassMetric, check_count, check_memory
from streamlearn.evaluation.pairs import PairCounts, pair_counter
from streamlearn.evaluation.scores import DEFAULT_EXACT_EVENTS

SMALLEST_TOTAL = 1e-290
"""Faded pairs weighing less than this together say nothing any more: close by, doubles lose their digits."""

LEAST_EXACT_EVENTS = 64


class PairMetric(ClassMetric):
    """Base of the metrics that are a function of pair counts.

    Parameters
    ----------
    tau : float
        Least difference of two scores that ranks a pair.
    window, fading, exact_events : see `AUC`
    """

    def __init__(self, tau: float, *, window: int | None, fading: float | None, exact_events: int) -> None:
        who = type(self).__name__
        check_memory(who, window, fading)
        check_count(who, "exact_events", exact_events, LEAST_EXACT_EVENTS)
        self.window = window
        self.fading = fading
        self.exact_events = exact_events
        self._tau = tau
        self._reset()

    def _reset(self) -> None:
        self._pairs = pair_counter(
            window=self.window, fading=self.fading, exact_events=self.exact_events, tau=self._tau
        )

    def _take(self, y: CodeArray, forecasts: FloatArray) -> None:
        self._pairs.add(y, forecasts)

    def counts(self) -> PairCounts:
        """Return the pair counts behind the value."""
        return self._pairs.counts()

    def get(self) -> float:
        """Return the present value, the middle of `interval`; NaN while undefined."""
        low, high = self.interval()
        return low if low == high else (low + high) / 2.0

    def interval(self) -> tuple[float, float]:
        """Return certified bounds on the value; equal while it is exact, NaN while it is undefined."""
        counts = self.counts()
        if counts.total <= (SMALLEST_TOTAL if isinstance(counts.total, float) else 0):
            return math.nan, math.nan
        return self._bounds(counts)

    def _bounds(self, counts: PairCounts) -> tuple[float, float]:
        raise NotImplementedError

    def _state(self) -> Snapshot:
        return self._pairs.state()

    def _restore(self, state: Snapshot) -> None:
        self._pairs.restore(state)


def auc_bounds(counts: PairCounts) -> tuple[float, float]:
    """Return the least and the greatest share of pairs in the right order, ties counted as one half."""
    low = (counts.total + counts.higher[0] - counts.lower[1]) / (2 * counts.total)
    high = (counts.total + counts.higher[1] - counts.lower[0]) / (2 * counts.total)
    return low, high


class AUC(PairMetric):
    """Area under the ROC curve: the share of (positive, negative) pairs in the right order, ties counted as one half.

    Scores are compared, never binned: any real numbers do, infinities included. Counts are integers, so nothing drifts.
    NaN while only one class was seen.

    Parameters
    ----------
    window : int or None
        Only the last so many (labelled and scored) events count: exact, O(log window) an event, O(window) memory
        (prequential AUC, Brzezinski and Stefanowski 2017).
    fading : float or None
        What an event counts one event later; a pair counts the product of what its events count.
    exact_events : int
        Without a window: exact up to this many distinct scores, afterwards within the certified `interval`, whose
        width is usually below 1e-3; memory is about 24 bytes for each. At least 64.

    Examples
    --------
    >>> from streamlearn.evaluation import AUC
    >>> auc = AUC()
    >>> auc.update_many([0, 1, 0, 1], [0.1, 0.4, 0.35, 0.35])
    >>> auc.get()
    0.875
    """

    takes = "score"
    short = "auc"

    def __init__(
        self, *, window: int | None = None, fading: float | None = None, exact_events: int = DEFAULT_EXACT_EVENTS
    ) -> None:
        super().__init__(0.0, window=window, fading=fading, exact_events=exact_events)

    def _bounds(self, counts: PairCounts) -> tuple[float, float]:
        return auc_bounds(counts)
