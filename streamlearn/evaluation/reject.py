"""Metrics of a ranker that may reject a pair (Shen, Yang and Gao 2020).

A pair is ranked when the log-odds of its two events differ by more than ``tau = ln((1 - d) / d)``, d being the cost
of rejecting it; else it is rejected. With C pairs ranked right, W ranked wrong, R rejected: AUC_reject = C / (C + W),
reject rate = R / (C + W + R), risk = (W + d R) / (C + W + R).
"""

from __future__ import annotations

import math

from streamlearn.evaluation.auc import PairMetric, auc_bounds
from streamlearn.evaluation.metrics import check_reject_cost
from streamlearn.evaluation.pairs import PairCounts
from streamlearn.evaluation.scores import DEFAULT_EXACT_EVENTS


def threshold(d: float) -> float:
    """Return tau = ln((1 - d) / d), exactly 0 at d = 1/2."""
    return math.log1p(-d) - math.log(d) if d != 0.5 else 0.0


class RejectMetric(PairMetric):
    """Base of the metrics below.

    Parameters
    ----------
    d : float
        Cost of rejecting a pair, in (0, 0.5].
    window, fading, exact_events : see `AUC`
        They mean the same here, and `interval` bounds the value in the same way.
    """

    takes = "log_odds"

    def __init__(
        self,
        d: float,
        *,
        window: int | None = None,
        fading: float | None = None,
        exact_events: int = DEFAULT_EXACT_EVENTS,
    ) -> None:
        check_reject_cost(type(self).__name__, d)
        self.d = d
        super().__init__(threshold(d), window=window, fading=fading, exact_events=exact_events)


class RejectAUC(RejectMetric):
    """AUC of the pairs that are not rejected, NaN where all are. At d = 1/2 ties count as one half (the plain AUC)."""

    short = "reject_auc"

    def _bounds(self, counts: PairCounts) -> tuple[float, float]:
        return reject_auc_bounds(counts, self._tau)


class RejectRate(RejectMetric):
    """Share of the pairs that are rejected; at d = 1/2 the share of ties."""

    short = "reject_rate"

    def _bounds(self, counts: PairCounts) -> tuple[float, float]:
        return reject_rate_bounds(counts)


class RejectRisk(RejectMetric):
    """Mean cost of a pair: 1 when ranked wrong, d when rejected."""

    short = "reject_risk"

    def _bounds(self, counts: PairCounts) -> tuple[float, float]:
        return reject_risk_bounds(counts, self.d)


def reject_auc_bounds(counts: PairCounts, tau: float) -> tuple[float, float]:
    """Return bounds on C / (C + W), ties counted as one half at tau = 0; NaN where every pair may be rejected."""
    if tau == 0.0:
        return auc_bounds(counts)
    (right, right_high), (wrong, wrong_high) = counts.higher, counts.lower
    if not right + wrong_high or not right_high + wrong:
        return math.nan, math.nan
    return right / (right + wrong_high), right_high / (right_high + wrong)


def reject_rate_bounds(counts: PairCounts) -> tuple[float, float]:
    """Return bounds on R / (C + W + R)."""
    least = counts.total - counts.higher[1] - counts.lower[1]
    most = counts.total - counts.higher[0] - counts.lower[0]
    return max(0.0, least / counts.total), most / counts.total


def reject_risk_bounds(counts: PairCounts, d: float) -> tuple[float, float]:
    """Return bounds on (W + d R) / (C + W + R): each pair costs d, less d when right, plus 1 - d when wrong."""
    low = d + ((1.0 - d) * counts.lower[0] - d * counts.higher[1]) / counts.total
    high = d + ((1.0 - d) * counts.lower[1] - d * counts.higher[0]) / counts.total
    return max(0.0, low), high
