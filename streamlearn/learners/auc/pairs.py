"""The reject option over pairs: which of two events ranks higher, unless that would be a guess."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import CodeArray, FeatureName, FloatArray, Tested
from streamlearn.errors import BadParameter, BadShape
from streamlearn.features.frames import labels_of
from streamlearn.learners.auc.holding import RateHold
from streamlearn.learners.auc.wide import first_bad_in, rows_in
from streamlearn.learners.base import BinaryScorer
from streamlearn.learners.labels import checked_reject_cost

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
    reject: Literal["cost", "rate"]
    reject_rate: float
    _reject_cost: float
    _hold: RateHold | None = None

    def _set_reject(self, reject: Literal["cost", "rate"], reject_rate: float) -> None:
        """Take the two parameters; the cost must have been set before."""
        self.reject, self.reject_rate = reject, reject_rate
        self._among("reject", ("cost", "rate"))
        self._number("reject_rate", reject_rate, 0.0, 1.0)
        if reject == "rate":
            self._hold = RateHold(reject_rate)
            self._reject_cost = self._hold.cost

    def params(self) -> dict[str, Any]:
        """Return the parameters as they stand."""
        params = super().params()
        return {**params, "reject_cost": self._given_cost} if "reject_cost" in params else params

    @property
    def reject_cost(self) -> float:
        """Cost of a rejected pair; may be set on a trained model, whose state does not depend on it.

        With ``reject="rate"`` the cost at which single events are rejected at that rate at present.
        """
        return self._reject_cost

    @reject_cost.setter
    def reject_cost(self, value: float) -> None:
        checked_reject_cost(self.name, value)
        if self.margin == "paper" and value <= ALPHA_ROOT:
            raise BadParameter(
                f"{self.name}: reject_cost must be in ({ALPHA_ROOT}, 0.5] with margin='paper', where alpha(d) <= 0 "
                f"would turn the ranking round, got {value!r}"
            )
        self._given_cost = value
        if self._hold is None:
            self._reject_cost = value

    def _bar(self) -> float:
        return self._threshold(self._reject_cost) if self._hold is None else self._hold.bar

    def _threshold(self, reject_cost: float) -> float:
        return tau(reject_cost) if self.margin == "log-odds" else tau(reject_cost) / alpha(reject_cost)

    def rank_one(self, x: Any, other: Any) -> int | None:
        """Return 1 where x ranks above the other, -1 where below, None where ranking costs more than rejecting."""
        margin, bar = self.score_one(x) - self.score_one(other), self._bar()
        return 1 if margin > bar else -1 if margin < -bar else None

    def rank_many(self, X: Any, others: Any) -> NDArray[np.object_]:
        """Return 1, -1 or None for each pair of rows."""
        a, b = self._outputs(X, self._score), self._outputs(others, self._score)
        if len(a) != len(b):
            raise BadShape(f"{self.name}: X and others must have equally many rows, got {len(a)} and {len(b)}")
        bar = self._bar()
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

    # Holding a rate: learners call `_learn_held` and `_test_then_learn_held` where there is a `_hold`.

    def _learn_held(self, X: Any, codes: CodeArray) -> int:
        """Learn rows through forecasts: what is held is the rate among these."""
        return self._test_then_learn(X, X, codes, np.empty(len(X)), np.empty(len(X)))

    def _one_by_one_held(self, X_learn: Any, codes: CodeArray, learn: Callable[[slice], int]) -> int:
        """For each row: forecast it by the present model, call `learn` for it, and let the rate see the forecast."""
        bad = first_bad_in(X_learn)
        if bad >= 0:
            return bad
        score, chance = np.empty(1), np.empty(1)
        for i in range(len(X_learn)):
            row = slice(i, i + 1)
            one: Any = rows_in(X_learn, row)
            self._score(one, score)
            self._probability(one, chance)
            bad = learn(row)
            if bad >= 0:
                return i
            self._take_held(codes[row], chance, score)
        return -1

    def _take_held(self, codes: CodeArray, chances: FloatArray, scores: FloatArray) -> None:
        """Let the rate see forecasts made before their events were learned."""
        if self._hold is not None:
            self._hold.take(codes, chances, scores)
            self._reject_cost = self._hold.cost

    def _refresh_held(self) -> None:
        """Read what follows from a restored state."""
        if self._hold is not None:
            self._hold.refresh()
            self._reject_cost = self._hold.cost

    def test_then_learn_columns(
        self, names: tuple[FeatureName, ...], values: FloatArray, labels: NDArray[Any]
    ) -> Tested:
        """Forecast each row before it is learned, then learn it; for the runtime."""
        if self._hold is None:
            return super().test_then_learn_columns(names, values, labels)
        with self._hold.remembering():
            return super().test_then_learn_columns(names, values, labels)

    def test_then_learn_late(
        self,
        names: tuple[FeatureName, ...],
        test_values: FloatArray,
        late_values: FloatArray,
        late_labels: NDArray[Any],
        late_memo: FloatArray | None = None,
    ) -> tuple[Tested, FloatArray]:
        """For each i forecast row i of `test_values`, then learn row i of `late_values`, whose label has come."""
        if self._hold is None:
            return super().test_then_learn_late(names, test_values, late_values, late_labels, late_memo)
        with self._hold.remembering():
            return super().test_then_learn_late(names, test_values, late_values, late_labels, late_memo)

    def _decide(self, probabilities: FloatArray) -> FloatArray:
        if self._hold is None:
            return super()._decide(probabilities)
        costs = self._hold.costs(len(probabilities))
        decisions = (probabilities >= 0.5).astype(np.float64)
        sure = np.where(probabilities >= 0.5, probabilities, 1.0 - probabilities)
        decisions[(costs < 0.5) & (sure < 1.0 - costs)] = np.nan
        return decisions

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
