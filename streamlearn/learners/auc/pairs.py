"""The reject option over pairs: which of two events ranks higher, unless that would be a guess."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import FloatArray
from streamlearn.errors import BadParameter, BadShape
from streamlearn.features.frames import labels_of
from streamlearn.learners.base import BinaryScorer, checked_reject_cost

ALPHA_ROOT = 0.17604  # alpha(d) = 0 at d = 0.176040..., rounded up
DEFAULT_COSTS = np.linspace(0.5, 0.01, 50)


@dataclass(frozen=True, slots=True)
class RejectCurve:
    """What each cost of rejecting does to the pairs of one positive and one negative row.

    Attributes
    ----------
    reject_cost : float64[n_costs]
    reject_rate : float64[n_costs]
        Share of rejected pairs.
    auc : float64[n_costs]
        Share of right ones among the pairs that were ranked; NaN where none was.
    risk : float64[n_costs]
        Share of wrong pairs plus cost times share of rejected ones.
    """

    reject_cost: FloatArray
    reject_rate: FloatArray
    auc: FloatArray
    risk: FloatArray


def tau(reject_cost: float) -> float:
    """Return the log-odds ``ln((1 - d)/d)`` at which ranking costs as much as rejecting."""
    return math.log1p(-reject_cost) - math.log(reject_cost)


def alpha(reject_cost: float) -> float:
    """Return the factor between the weights for this cost and those for 1/2 (Shen et al. 2020, below eq. (4))."""
    return 1.0 - (1.0 - 2.0 * reject_cost) * tau(reject_cost)


class PairRejecter(BinaryScorer):
    """Adds ranking of pairs, with rejects, to a binary scorer whose `margin` names the scale of its scores."""

    margin: Literal["log-odds", "paper"]
    _reject_cost: float

    @property
    def reject_cost(self) -> float:
        """Cost of a rejected pair; may be set on a trained model, whose state does not depend on it."""
        return self._reject_cost

    @reject_cost.setter
    def reject_cost(self, value: float) -> None:
        checked_reject_cost(self.name, value)
        if self.margin == "paper" and value <= ALPHA_ROOT:
            raise BadParameter(
                f"{self.name}: reject_cost must be in ({ALPHA_ROOT}, 0.5] with margin='paper', where alpha(d) <= 0 "
                f"would turn the ranking round, got {value!r}"
            )
        self._reject_cost = value

    def _threshold(self, reject_cost: float) -> float:
        return tau(reject_cost) if self.margin == "log-odds" else tau(reject_cost) / alpha(reject_cost)

    def rank_one(self, x: Any, other: Any) -> int | None:
        """Return 1 where x ranks above the other, -1 where below, None where ranking costs more than rejecting."""
        margin, bar = self.score_one(x) - self.score_one(other), self._threshold(self.reject_cost)
        return 1 if margin > bar else -1 if margin < -bar else None

    def rank_many(self, X: Any, others: Any) -> NDArray[np.object_]:
        """Return 1, -1 or None for each pair of rows."""
        a, b = self._outputs(X, self._score), self._outputs(others, self._score)
        if len(a) != len(b):
            raise BadShape(f"{self.name}: X and others must have equally many rows, got {len(a)} and {len(b)}")
        bar = self._threshold(self.reject_cost)
        ranks = np.full(len(a), None, dtype=object)
        ranks[a - b > bar] = 1
        ranks[a - b < -bar] = -1
        return ranks

    def reject_curve(self, X: Any, y: Any, costs: FloatArray | None = None) -> RejectCurve:
        """Return rates, AUC and risk over all pairs of labelled rows, for many costs from one pass of scoring.

        Parameters
        ----------
        X : array [n_rows, n_features], dataframe, or sequence of mappings
        y : array [n_rows]
        costs : float64[n_costs] or None
            None: 0.5 down to 0.01, as far as the margin allows.
        """
        scores = self._outputs(X, self._score)
        codes = self._codes(labels_of(self.name, X, y, len(scores)))
        if costs is None:
            lowest = ALPHA_ROOT if self.margin == "paper" else 0.0
            costs = np.array([d for d in DEFAULT_COSTS if d > lowest])
        points = [self._curve_point(scores[codes == 1], np.sort(scores[codes == 0]), float(d)) for d in costs]
        return RejectCurve(np.array(costs, dtype=np.float64), *np.array(points).reshape(-1, 3).T.copy())

    def _codes(self, labels: NDArray[Any]) -> NDArray[np.int8]:
        codes: NDArray[np.int8] = self._labels.copy().take_many(labels)[0]
        return codes

    def _curve_point(self, positive: FloatArray, negative: FloatArray, cost: float) -> tuple[float, float, float]:
        n_pairs = len(positive) * len(negative)
        if n_pairs == 0:
            return math.nan, math.nan, math.nan
        bar = self._threshold(cost)
        right = int(np.searchsorted(negative, positive - bar, side="left").sum())
        wrong = n_pairs - int(np.searchsorted(negative, positive + bar, side="right").sum())
        rejected = n_pairs - right - wrong
        ranked = right + wrong
        area = (right + rejected / 2) / n_pairs if bar == 0.0 else right / ranked if ranked else math.nan
        return rejected / n_pairs, area, (wrong + cost * rejected) / n_pairs

    def _among(self, parameter: str, values: tuple[str, ...]) -> None:
        value = getattr(self, parameter)
        if value not in values:
            raise BadParameter(f"{self.name}: {parameter} must be one of {list(values)}, got {value!r}")

    def _number(self, parameter: str, value: Any, low: float, high: float) -> None:
        if (
            isinstance(value, bool)
            or not isinstance(value, (int, float))
            or not low < value <= high
            or math.isinf(value)
        ):
            bound = f"in ({low:g}, {high:g}]" if math.isfinite(high) else f"a finite number > {low:g}"
            raise BadParameter(f"{self.name}: {parameter} must be {bound}, got {value!r}")
