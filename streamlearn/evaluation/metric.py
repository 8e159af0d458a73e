"""What every metric shares: parameters, checked input, fresh copies, state."""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streamlearn.contracts import CodeArray, FloatArray, Snapshot, Takes, is_missing
from streamlearn.errors import BadLabel, BadParameter, BadShape, BadSnapshot


class BaseMetric(ABC):
    """Base of all metrics: subclasses say what they take, how to add pairs and what comes out.

    A pair without label (code -1, None, NaN) or without forecast (NaN) is skipped; a NaN *decision* is an abstention
    and counts as one. `window` and `fading` are mutually exclusive.
    """

    takes: ClassVar[Takes]
    short: ClassVar[str]
    _dtype: ClassVar[type[np.int8 | np.float64]]

    @property
    def name(self) -> str:
        """The short name with the parameters that were changed: ``"auc_window_1000"``, ``"reject_auc_0.4"``."""
        parts = [self.short]
        for parameter in inspect.signature(type(self)).parameters.values():
            value = getattr(self, parameter.name)
            if parameter.default is inspect.Parameter.empty:
                parts.append(f"{value!r}")
            elif value != parameter.default:
                parts.append(f"{parameter.name}_{value!r}")
        return "_".join(parts)

    def params(self) -> dict[str, Any]:
        """Return the parameters as they were given."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def clone(self) -> Self:
        """Return a metric with the same parameters that has seen nothing."""
        return type(self)(**self.params())

    def reset(self) -> None:
        """Forget everything that was seen."""
        self._reset()

    def update(self, y: object, forecast: float | None) -> None:
        """Take one pair; the same as `update_many` with one row.

        Parameters
        ----------
        y : bool, 0, 1, float or None
            The label as a code, or the number a regressor was to predict.
        forecast : float or None
            None is NaN: no forecast, or an abstention.
        """
        value = math.nan if forecast is None else float(forecast)
        label = self._label(y)
        if label is not None and (self.takes == "prediction" or not math.isnan(value)):
            self._take(np.array([label], self._dtype), np.array([value]))

    def update_many(self, y: ArrayLike, forecasts: ArrayLike) -> None:
        """Take pairs in order; any split into batches leaves the same state, bit for bit.

        Parameters
        ----------
        y : array [n]
            Codes (1, 0, -1 = none; bool, None and NaN are understood), or float64 targets for a metric of values.
        forecasts : float64[n]

        Raises
        ------
        BadShape
            The lengths differ or an array is not one-dimensional.
        BadLabel
            A code is not 1, 0 or -1.
        """
        forecasts_ = np.ascontiguousarray(forecasts, np.float64)
        labels = np.asarray(y)
        if labels.ndim != 1 or forecasts_.shape != labels.shape:
            shapes = f"{labels.shape} and {forecasts_.shape}"
            raise BadShape(
                f"{type(self).__name__}: y and forecasts must be one-dimensional and equally long, got {shapes}"
            )
        targets, keep = self._labels(labels)
        if self.takes != "prediction":
            keep &= ~np.isnan(forecasts_)
        if not keep.all():
            targets, forecasts_ = targets[keep], forecasts_[keep]
        if len(targets):
            self._take(targets, forecasts_)

    def interval(self) -> tuple[float, float]:
        """Return bounds that surely hold the true value; both are `get` while the metric is exact."""
        value = self.get()
        return value, value

    def state(self) -> Snapshot:
        """Return the flat state; arrays are copies."""
        return {"metric": self.name, **self._state()}

    def restore(self, state: Snapshot) -> None:
        """Become exactly what `state` describes.

        Raises
        ------
        BadSnapshot
            It is the state of another metric, or of one with other parameters.
        """
        if state.get("metric") != self.name:
            raise BadSnapshot(f"{type(self).__name__}: state must be of {self.name!r}, got {state.get('metric')!r}")
        self._reset()
        self._restore(state)

    @abstractmethod
    def get(self) -> float:
        """Return the present value; NaN while undefined."""

    @abstractmethod
    def _label(self, y: object) -> float | None:
        """Return one label as a number, None if there is none."""

    @abstractmethod
    def _labels(self, y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Return the labels in the metric's own type and which of them are there."""

    @abstractmethod
    def _take(self, y: NDArray[Any], forecasts: FloatArray) -> None:
        """Add checked pairs."""

    @abstractmethod
    def _reset(self) -> None: ...

    @abstractmethod
    def _state(self) -> Snapshot: ...

    @abstractmethod
    def _restore(self, state: Snapshot) -> None: ...


class ClassMetric(BaseMetric):
    """Base of the metrics of two-class forecasts."""

    _dtype = np.int8

    def _label(self, y: object) -> float | None:
        code = _code(y)
        if math.isnan(code):
            raise BadLabel(f"{type(self).__name__}: y must be True, False, 1, 0 or -1 (no label), got {y!r}")
        return code if code >= 0 else None

    def _labels(self, y: NDArray[Any]) -> tuple[CodeArray, NDArray[np.bool_]]:
        codes = as_codes(type(self).__name__, y)
        return codes, codes >= 0


class ValueMetric(BaseMetric):
    """Base of the metrics of predicted numbers."""

    takes = "value"
    _dtype = np.float64

    def _label(self, y: object) -> float | None:
        target = math.nan if y is None else float(y)  # type: ignore[arg-type]  # refuses what is no number itself
        return None if math.isnan(target) else target

    def _labels(self, y: NDArray[Any]) -> tuple[FloatArray, NDArray[np.bool_]]:
        targets = y.astype(np.float64)
        return targets, ~np.isnan(targets)


def as_codes(who: str, y: NDArray[Any]) -> CodeArray:
    """Return labels as codes: 1 positive, 0 negative, -1 none.

    Parameters
    ----------
    who : str
        For the message.
    y : array [n]
        bool, numbers 1, 0 and -1, None or NaN.

    Raises
    ------
    BadLabel
        Anything else.
    """
    if y.dtype == np.bool_:
        return y.astype(np.int8)
    if y.dtype.kind in "iuf":
        values = np.where(np.isnan(y), -1, y) if y.dtype.kind == "f" else y
        known = (values == 1) | (values == 0) | (values == -1)
    else:
        values = np.array([_code(label) for label in y.tolist()], np.float64)
        known = ~np.isnan(values)
    if not known.all():
        row = int(np.argmin(known))
        raise BadLabel(f"{who}: y must be True, False, 1, 0 or -1 (no label), got {y.tolist()[row]!r} in row {row}")
    return values.astype(np.int8)


def _code(label: object) -> float:
    """Return the code of one label of any type, NaN if it is none."""
    if isinstance(label, np.generic):
        label = label.item()
    if is_missing(label):
        return -1.0
    return float(label) if isinstance(label, int | float) and label in (-1, 0, 1) else np.nan


def check_memory(who: str, window: int | None, fading: float | None) -> None:
    """Check the two ways to forget.

    Raises
    ------
    BadParameter
        `window` is not None or an integer >= 1, `fading` is not None or in (0, 1), or both are given.
    """
    if window is not None:
        check_count(who, "window", window, 1)
        if window >= 2**31 - 1:
            raise BadParameter(f"{who}: window must be below 2**31 - 1, got {window!r}")
    if fading is not None and not (isinstance(fading, int | float) and 0.0 < fading < 1.0):
        raise BadParameter(f"{who}: fading must be None or in (0, 1), got {fading!r}")
    if window is not None and fading is not None:
        raise BadParameter(f"{who}: only one of window and fading may be given, got {window!r} and {fading!r}")


def check_count(who: str, parameter: str, value: object, least: int) -> None:
    """Raise BadParameter unless `value` is an integer of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise BadParameter(f"{who}: {parameter} must be an integer >= {least}, got {value!r}")
