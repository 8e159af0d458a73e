"""The reject curve: every cost of rejecting, from one pass over a stream."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from streamlearn.contracts import CodeArray, FloatArray, Snapshot
from streamlearn.errors import BadParameter
from streamlearn.evaluation.auc import LEAST_EXACT_EVENTS, auc_bounds
from streamlearn.evaluation.metric import ClassMetric, check_count
from streamlearn.evaluation.pairs import PairCounts, pairs_of
from streamlearn.evaluation.reject import reject_auc_bounds, reject_rate_bounds, reject_risk_bounds, threshold
from streamlearn.evaluation.scores import DEFAULT_EXACT_EVENTS, ScoreList, ScoreLists, sums_of

DEFAULT_COSTS = 1.0 / (1.0 + np.exp(np.linspace(0.0, 8.0, 101)))
"""Costs of rejecting from 1/2 down to 0.0003, evenly spaced in tau."""


@dataclass(frozen=True, slots=True)
class RejectPoints:
    """One element a cost: what rejecting pairs gives, and what rejecting single events gives. All float64[n_costs].

    Attributes
    ----------
    d, tau : float64[n]
        Cost of rejecting, and the least difference (or size) of log-odds that is not rejected.
    auc, auc_low, auc_high : float64[n]
        AUC of the ranked pairs, with its certified bounds; NaN where all pairs are rejected.
    reject_rate, reject_rate_low, reject_rate_high : float64[n]
        Share of rejected pairs.
    risk, risk_low, risk_high : float64[n]
        Cost of a pair: 1 when ranked wrong, d when rejected.
    event_reject_rate : float64[n]
        Share of events whose larger class probability is below 1 - d, the rule of a classifier that abstains.
    event_accuracy : float64[n]
        Accuracy on the other events; NaN where there are none.
    event_risk : float64[n]
        Cost of an event: 1 when wrong, d when rejected.
    event_auc : float64[n]
        AUC of the pairs of two kept events; NaN where there are none.
    event_pair_reject_rate : float64[n]
        Share of pairs with a rejected event: what compares with `reject_rate`.
    """

    d: FloatArray
    tau: FloatArray
    auc: FloatArray
    auc_low: FloatArray
    auc_high: FloatArray
    reject_rate: FloatArray
    reject_rate_low: FloatArray
    reject_rate_high: FloatArray
    risk: FloatArray
    risk_low: FloatArray
    risk_high: FloatArray
    event_reject_rate: FloatArray
    event_accuracy: FloatArray
    event_risk: FloatArray
    event_auc: FloatArray
    event_pair_reject_rate: FloatArray


class RejectCurve(ClassMetric):
    """AUC_reject against the reject rate for all costs, from the log-odds of one pass.

    As a metric its value is `area`. Exact up to `exact_events` distinct log-odds; afterwards the three pair columns of
    `points` have certified bounds with the value in the middle, and the event columns are the mean of their values on
    log-odds rounded down and rounded up (off by a few events in `exact_events`).

    Parameters
    ----------
    r_max : float
        The area is taken over pair reject rates in [0, r_max].
    exact_events : int
        Memory is about 24 bytes for each. At least 64.
    """

    takes = "log_odds"
    short = "reject_curve"

    def __init__(self, *, r_max: float = 0.5, exact_events: int = DEFAULT_EXACT_EVENTS) -> None:
        check_rate("RejectCurve", r_max)
        check_count("RejectCurve", "exact_events", exact_events, LEAST_EXACT_EVENTS)
        self.r_max = r_max
        self.exact_events = exact_events
        self._reset()

    def _reset(self) -> None:
        self._scores = ScoreLists(self.exact_events, None)

    def _take(self, y: CodeArray, forecasts: FloatArray) -> None:
        self._scores.add(y, forecasts)

    def get(self) -> float:
        """Return `area` up to the own `r_max`; NaN while only one class was seen."""
        return self.area()

    def area(self, r_max: float | None = None) -> float:
        """Return the mean AUC_reject over pair reject rates in [0, r_max]: the trapezoid area divided by r_max.

        Where the curve starts later (ties) or ends before `r_max`, its first or last value goes on.

        Parameters
        ----------
        r_max : float or None
            In (0, 1]; None takes the metric's own.
        """
        if r_max is not None:
            check_rate("RejectCurve", r_max)
        end = self.r_max if r_max is None else r_max
        rates, aucs = self._up_to(end)
        if not len(rates):
            return float(np.nan)
        inside = (rates > 0.0) & (rates < end)
        x = np.concatenate([[0.0], rates[inside], [end]])
        return float(np.trapezoid(np.interp(x, rates, aucs), x) / end)

    def points(self, costs: ArrayLike = DEFAULT_COSTS) -> RejectPoints:
        """Return the curve at the given costs.

        Parameters
        ----------
        costs : float64[n]
            Each in (0, 0.5].
        """
        d = np.array(costs, np.float64).reshape(-1)
        if not ((d > 0.0) & (d <= 0.5)).all():
            raise BadParameter(f"RejectCurve: costs must be in (0, 0.5], got {d.tolist()}")
        lows, highs = (as_floats(scores) for scores in self._scores.everything())
        columns = np.full((16, len(d)), np.nan)
        columns[0] = d
        columns[1] = [threshold(cost) for cost in d.tolist()]
        for i, (cost, tau) in enumerate(columns[:2].T.tolist()):
            columns[2:11, i] = pair_columns(lows, highs, cost, tau)
            columns[11:, i] = (event_columns(lows, cost, tau) + event_columns(highs, cost, tau)) / 2.0
        return RejectPoints(*columns)

    def _up_to(self, end: float) -> tuple[FloatArray, FloatArray]:
        """Return reject rates up to the first that reaches `end`, and AUCs, at the default costs while defined."""
        lows, highs = (as_floats(scores) for scores in self._scores.everything())
        found: list[tuple[float, float]] = []
        for cost in DEFAULT_COSTS.tolist():
            auc, _, _, rate = pair_columns(lows, highs, cost, threshold(cost))[:4].tolist()
            if np.isnan(auc):
                break
            found.append((rate, auc))
            if rate >= end:
                break
        rates, aucs = np.array(found).reshape(-1, 2).T
        return rates, aucs

    def _state(self) -> Snapshot:
        return self._scores.state()

    def _restore(self, state: Snapshot) -> None:
        self._scores.restore(state)


def check_rate(who: str, r_max: object) -> None:
    """Raise BadParameter unless `r_max` is in (0, 1]."""
    if not isinstance(r_max, int | float) or not 0.0 < r_max <= 1.0:
        raise BadParameter(f"{who}: r_max must be in (0, 1], got {r_max!r}")


def as_floats(scores: ScoreList) -> ScoreList:
    """Return a list with float64 masses: a read counts all pairs at once, which may pass 64 bits (2**53 are exact)."""
    return scores[0], scores[1].astype(np.float64)


def counted(lows: ScoreList, highs: ScoreList, tau: float) -> PairCounts:
    """Return bounds on the pairs of all events, given once at or below and once at or above their scores."""
    # Positives at their lows against negatives at their highs, and the other way round.
    least, most = pairs_of((highs[0], sums_of(highs)), lows, tau), pairs_of((lows[0], sums_of(lows)), highs, tau)
    negatives, positives = lows[1].sum(axis=1).tolist()
    return PairCounts((least[0], most[0]), (most[1], least[1]), negatives * positives)


def pair_columns(lows: ScoreList, highs: ScoreList, d: float, tau: float) -> FloatArray:
    """Return AUC, reject rate and risk of the pair rule, each as value, low, high: float64[9]."""
    counts = counted(lows, highs, tau)
    if not counts.total:
        return np.full(9, np.nan)
    bounds = [reject_auc_bounds(counts, tau), reject_rate_bounds(counts), reject_risk_bounds(counts, d)]
    return np.array([column for low, high in bounds for column in ((low + high) / 2.0, low, high)])


def event_columns(scores: ScoreList, d: float, tau: float) -> FloatArray:
    """Return reject rate, accuracy, risk, AUC and pair reject rate of the event rule: float64[5]."""
    keys, mass = scores
    events = mass.sum()
    if not events:
        return np.full(5, np.nan)
    positive = keys >= tau
    negative = (keys <= -tau) & ~positive
    right = mass[1, positive].sum() + mass[0, negative].sum()
    kept = positive | negative
    n_kept = mass[:, kept].sum()
    rejected = 1.0 - n_kept / events
    risk = (n_kept - right + d * (events - n_kept)) / events
    pairs = mass[0].sum() * mass[1].sum()
    inside = counted((keys[kept], mass[:, kept]), (keys[kept], mass[:, kept]), 0.0)
    return np.array(
        [
            rejected,
            right / n_kept if n_kept else np.nan,
            risk,
            auc_bounds(inside)[0] if inside.total else np.nan,
            1.0 - inside.total / pairs if pairs else np.nan,
        ]
    )
