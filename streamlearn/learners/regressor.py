"""Regressors: targets, one event and many, predictions before learning."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import FeatureName, FloatArray, Tested, is_missing
from streamlearn.errors import BadLabel, BadValue
from streamlearn.features.frames import from_one, labels_of, series_like
from streamlearn.kernels.rows import first_bad_row
from streamlearn.learners.batch import Growth, Rows, rows_of_columns
from streamlearn.learners.learner import Learner


class Regressor(Learner):
    """Base of learners that predict a number.

    A subclass gives the hooks below. Rows come C-contiguous, finite and as wide as the learner; a target is finite, or
    NaN where the event has none: such a row is predicted and teaches nothing. One event goes through the same hooks as
    many.
    """

    def __init__(self) -> None:
        super().__init__()
        self._target = np.zeros(1)

    # Hooks

    @abstractmethod
    def _learn(self, X: FloatArray, y: FloatArray) -> None:
        """Learn the rows in order."""

    @abstractmethod
    def _predict(self, X: FloatArray, out: FloatArray) -> int:
        """Write predictions into out[n_rows]; return -1."""

    @abstractmethod
    def _test_then_learn(self, X: FloatArray, y: FloatArray, out: FloatArray) -> None:
        """For each row: predict it by the present model, then learn it."""

    # Learning

    def learn_one(self, x: Any, y: Any = None) -> Self:
        """Learn one event.

        Parameters
        ----------
        x : mapping of name to number, or 1-D array
        y : float or None
            The target; None or NaN = unknown.

        Raises
        ------
        BadValue, BadLabel, TooManyFeatures
            The state is then as before.
        """
        row = self._features.row(x)
        if row is None or first_bad_row(row) >= 0:
            names, values = from_one(self.name, x)
            self._take(rows_of_columns(self._features, names, values), self._targets([y]), None)
            return self
        self._target[0] = checked_target(self.name, 0, y)
        self._learn(row, self._target)
        return self

    def learn_many(self, X: Any, y: Any = None) -> Self:
        """Learn a batch of rows, whole or not at all; the same bits as `learn_one` row by row.

        Parameters
        ----------
        X : array [n_rows, n_features], dataframe, or sequence of mappings
        y : array, series or sequence [n_rows], or None
            Targets; None or NaN = unknown.
        """
        rows = self._rows(X)
        self._take(rows, self._targets(labels_of(self.name, X, y, len(rows))), None)
        return self

    def test_then_learn_many(self, X: Any, y: Any) -> Any:
        """Return the prediction of each row, made before that row was learned; then it is learned."""
        rows = self._rows(X)
        predicted = np.empty(len(rows))
        self._take(rows, self._targets(labels_of(self.name, X, y, len(rows))), predicted)
        return series_like(X, predicted, "prediction")

    def test_then_learn_columns(
        self, names: tuple[FeatureName, ...], values: FloatArray, labels: NDArray[Any]
    ) -> Tested:
        """Predict each row before it is learned, then learn it; for the runtime.

        Parameters
        ----------
        names : tuple of str or int
        values : float64[n_rows, n_names]
        labels : array [n_rows]
        """
        rows = rows_of_columns(self._features, names, values)
        predicted = np.empty(len(rows))
        self._take(rows, self._targets(labels), predicted)
        nothing = np.full(len(rows), np.nan)
        return Tested(np.full(len(rows), -1, dtype=np.int8), predicted, nothing, predicted.astype(object), nothing)

    def check(self, names: tuple[FeatureName, ...], values: FloatArray, labels: NDArray[Any]) -> None:
        """Raise what learning this block would raise, and change nothing."""
        rows_of_columns(self._features, names, values)
        self._targets(labels)

    def _targets(self, labels: Any) -> FloatArray:
        if isinstance(labels, np.ndarray) and labels.dtype.kind in "biuf":
            y = np.ascontiguousarray(labels, dtype=np.float64)
            if np.isinf(y).any():
                i = int(np.isinf(y).argmax())
                checked_target(self.name, i, y[i])
            return y
        return np.array([checked_target(self.name, i, y) for i, y in enumerate(labels)], dtype=np.float64)

    def _take(self, rows: Rows, y: FloatArray, out: FloatArray | None) -> None:
        """Learn checked rows, predicting each first where `out` is given."""
        for a, b, growth in rows.pieces(0, len(rows)):
            part = slice(a, b)
            self._piece(rows.values[part], growth, y[part], None if out is None else out[part])

    def _piece(self, values: FloatArray, growth: Growth | None, y: FloatArray, out: FloatArray | None) -> None:
        X = np.ascontiguousarray(values[:, : self.n_features])
        if growth is not None:
            if out is not None:
                self._predict(X, out)
            self._features.grow(growth.names)
            self._widen(self.n_features)
            self._learn(np.ascontiguousarray(values[:, : self.n_features]), y)
        elif out is not None:
            self._test_then_learn(X, y, out)
        else:
            self._learn(X, y)

    # Predicting

    def predict_one(self, x: Any) -> float:
        """Return the prediction for one event."""
        return self._one(x, self._predict)

    def predict_many(self, X: Any) -> Any:
        """Return the predictions for the rows, in the kind that X is."""
        return series_like(X, self._outputs(X, self._predict), "prediction")


def checked_target(who: str, row: int, y: Any) -> float:
    """Return y as a finite float, NaN where it is missing.

    Raises
    ------
    BadValue
        For an infinity.
    BadLabel
        For what is not a number.
    """
    if is_missing(y):
        return np.nan
    if isinstance(y, (str, bytes, complex)):
        raise BadLabel(f"{who}: a target must be a number, got {y!r} in row {row}")
    try:
        value = float(y)
    except (TypeError, ValueError):
        raise BadLabel(f"{who}: a target must be a number, got {y!r} in row {row}") from None
    except OverflowError:
        value = np.inf
    if not np.isfinite(value):
        raise BadValue(f"{who}: a target must be a finite number, got {y!r} in row {row}")
    return value
