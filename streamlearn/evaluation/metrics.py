"""Metrics that are sums over events: accuracy and its kappas, log-loss, coverage, risk, errors of numbers.

Each exists over all events, over the last `window` labelled events, and with a `fading` factor (an event counts
`fading` times less one labelled event later; Gama, Sebastiao and Rodrigues 2013).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import CodeArray, FloatArray, Snapshot
from streamlearn.errors import BadParameter, BadValue
from streamlearn.evaluation.metric import BaseMetric, ClassMetric, ValueMetric, check_memory
from streamlearn.evaluation.tally import Tally
from streamlearn.kernels.tally import log_losses

SMALLEST_PROBABILITY = float(np.finfo(np.float64).eps)
"""Log-loss keeps probabilities this far from 0 and 1, so that one certain error costs 36 nats and not infinity."""


class SumMetric(BaseMetric):
    """Base of the metrics that are a function of column sums."""

    n_columns: ClassVar[int]

    def __init__(self, *, window: int | None = None, fading: float | None = None) -> None:
        check_memory(type(self).__name__, window, fading)
        self.window = window
        self.fading = fading
        self._reset()

    def _reset(self) -> None:
        self._tally = Tally(self.n_columns, window=self.window, fading=self.fading)

    def _take(self, y: NDArray[Any], forecasts: FloatArray) -> None:
        columns = self._columns(y, forecasts)
        self._tally.add(np.ascontiguousarray(np.stack(columns, axis=1), np.float64))

    def get(self) -> float:
        """Return the present value; NaN while undefined."""
        return self._value(*self._tally.totals().tolist())

    def _state(self) -> Snapshot:
        return self._tally.state()

    def _restore(self, state: Snapshot) -> None:
        self._tally.restore(state)

    @abstractmethod
    def _columns(self, y: NDArray[Any], forecasts: FloatArray) -> list[NDArray[Any]]:
        """Return what each event adds, `n_columns` arrays [n]."""

    @abstractmethod
    def _value(self, *totals: float) -> float:
        """Return the metric from the sums."""


def ratio(part: float, whole: float) -> float:
    """Return part / whole, NaN where the whole is 0."""
    return part / whole if whole else np.nan


def check_reject_cost(who: str, d: object) -> None:
    """Raise BadParameter unless `d` is in (0, 0.5]."""
    if not isinstance(d, int | float) or not 0.0 < d <= 0.5:
        raise BadParameter(f"{who}: d must be in (0, 0.5], got {d!r}")


class Accuracy(SumMetric, ClassMetric):
    """Share of right decisions among the decisions; abstentions are left out (see `Coverage`, `Risk`).

    Examples
    --------
    >>> from streamlearn.evaluation import Accuracy
    >>> accuracy = Accuracy()
    >>> accuracy.update_many([1, 0, 1], [1.0, 1.0, float("nan")])
    >>> accuracy.get()
    0.5
    """

    takes = "prediction"
    short = "accuracy"
    n_columns = 2

    def _columns(self, y: CodeArray, forecasts: FloatArray) -> list[NDArray[Any]]:
        return [~np.isnan(forecasts), y == forecasts]

    def _value(self, *totals: float) -> float:
        decided, right = totals
        return ratio(right, decided)


class Coverage(SumMetric, ClassMetric):
    """Share of the labelled events on which the learner did not abstain."""

    takes = "prediction"
    short = "coverage"
    n_columns = 2

    def _columns(self, y: CodeArray, forecasts: FloatArray) -> list[NDArray[Any]]:
        return [np.ones(len(y)), ~np.isnan(forecasts)]

    def _value(self, *totals: float) -> float:
        events, decided = totals
        return ratio(decided, events)


class Risk(SumMetric, ClassMetric):
    """Mean cost of a decision (Chow 1970): an error costs 1, an abstention d, a right decision nothing.

    Parameters
    ----------
    d : float
        Cost of abstaining, in (0, 0.5].
    window, fading : see the module
    """

    takes = "prediction"
    short = "risk"
    n_columns = 3

    def __init__(self, d: float, *, window: int | None = None, fading: float | None = None) -> None:
        check_reject_cost(type(self).__name__, d)
        self.d = d
        super().__init__(window=window, fading=fading)

    def _columns(self, y: CodeArray, forecasts: FloatArray) -> list[NDArray[Any]]:
        abstained = np.isnan(forecasts)
        return [np.ones(len(y)), ~abstained & (y != forecasts), abstained]

    def _value(self, *totals: float) -> float:
        events, wrong, abstained = totals
        return ratio(wrong + self.d * abstained, events)


class LogLoss(SumMetric, ClassMetric):
    """Mean of minus the log-likelihood in nats; probabilities are kept one machine epsilon from 0 and 1."""

    takes = "probability"
    short = "logloss"
    n_columns = 2

    def _columns(self, y: CodeArray, forecasts: FloatArray) -> list[NDArray[Any]]:
        outside = (forecasts < 0.0) | (forecasts > 1.0)
        if outside.any():
            raise BadValue(f"LogLoss: forecasts must be in [0, 1], got {float(forecasts[int(np.argmax(outside))])!r}")
        losses = np.empty(len(y))
        log_losses(losses, y, forecasts, SMALLEST_PROBABILITY)
        return [np.ones(len(y)), losses]

    def _value(self, *totals: float) -> float:
        events, loss = totals
        return ratio(loss, events)


class Kappa(SumMetric, ClassMetric):
    """Cohen's kappa of the decisions: agreement beyond what the class shares give by chance; abstentions left out."""

    takes = "prediction"
    short = "kappa"
    n_columns = 4

    def _columns(self, y: CodeArray, forecasts: FloatArray) -> list[NDArray[Any]]:
        yes, no = forecasts == 1.0, forecasts == 0.0
        return [yes & (y == 1), yes & (y == 0), no & (y == 1), no & (y == 0)]

    def _value(self, *totals: float) -> float:
        tp, fp, fn, tn = totals
        # (p_o - p_e) / (1 - p_e) with the n^2 multiplied out: nothing is left to cancel.
        chance = (tp + fp) * (fp + tn) + (tp + fn) * (fn + tn)
        return ratio(2.0 * (tp * tn - fn * fp), chance)


class BaselineKappa(SumMetric, ClassMetric):
    """Base of the kappas against a baseline classifier run on the same stream, test then learn.

    Right decisions of the learner and of the baseline are counted on the events where the learner decided; the baseline
    learns from every labelled event. Where the baseline has nothing to go by (the first event, a tie) it counts as half
    right. NaN where the baseline makes no error.
    """

    takes = "prediction"
    n_columns = 3

    def _columns(self, y: CodeArray, forecasts: FloatArray) -> list[NDArray[Any]]:
        decided = ~np.isnan(forecasts)
        return [decided, y == forecasts, np.where(decided, self._baseline(y), 0.0)]

    def _value(self, *totals: float) -> float:
        decided, right, baseline = totals
        return ratio(right - baseline, decided - baseline)

    @abstractmethod
    def _baseline(self, y: CodeArray) -> FloatArray:
        """Return how right the baseline was on each event (1, 0, 0.5), then learn the labels."""


class KappaT(BaselineKappa):
    """Kappa-temporal: against the classifier that repeats the last label (Zliobaite et al. 2015)."""

    short = "kappa_t"

    def _reset(self) -> None:
        super()._reset()
        self._last = -1

    def _baseline(self, y: CodeArray) -> FloatArray:
        before = np.concatenate([np.array([self._last], np.int8), y[:-1]])
        self._last = int(y[-1])
        return np.where(before < 0, 0.5, before == y)

    def _state(self) -> Snapshot:
        return {**super()._state(), "last": self._last}

    def _restore(self, state: Snapshot) -> None:
        super()._restore(state)
        self._last = int(state["last"])


class KappaM(BaselineKappa):
    """Kappa-M: against the classifier that predicts the label seen most so far (Bifet et al. 2015)."""

    short = "kappa_m"

    def _reset(self) -> None:
        super()._reset()
        self._lead = 0

    def _baseline(self, y: CodeArray) -> FloatArray:
        steps = 2 * y.astype(np.int64) - 1
        after = self._lead + np.cumsum(steps)
        self._lead = int(after[-1])
        lead = after - steps
        return np.where(lead == 0, 0.5, (lead > 0) == (y == 1))

    def _state(self) -> Snapshot:
        return {**super()._state(), "lead": self._lead}

    def _restore(self, state: Snapshot) -> None:
        super()._restore(state)
        self._lead = int(state["lead"])


class MAE(SumMetric, ValueMetric):
    """Mean absolute error of predicted numbers."""

    short = "mae"
    n_columns = 2

    def _columns(self, y: FloatArray, forecasts: FloatArray) -> list[NDArray[Any]]:
        with np.errstate(over="ignore"):
            return [np.ones(len(y)), np.abs(y - forecasts)]

    def _value(self, *totals: float) -> float:
        events, error = totals
        return ratio(error, events)


class RMSE(SumMetric, ValueMetric):
    """Root of the mean squared error of predicted numbers; infinite once an error beyond 1e154 counts."""

    short = "rmse"
    n_columns = 2

    def _columns(self, y: FloatArray, forecasts: FloatArray) -> list[NDArray[Any]]:
        with np.errstate(over="ignore"):
            return [np.ones(len(y)), np.square(y - forecasts)]

    def _value(self, *totals: float) -> float:
        events, error = totals
        return float(np.sqrt(ratio(error, events)))
