"""Learners without a target: estimators that learn from rows alone, and transformers that also project them."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import FeatureName, FloatArray, Tested
from streamlearn.features.frames import frame_like, from_many, from_one, is_mappings, series_like
from streamlearn.kernels.rows import first_bad_row
from streamlearn.learners.batch import Growth, Rows, rows_of_columns
from streamlearn.learners.learner import Learner


class Estimator(Learner):
    """Base of learners that learn from rows alone and tell how far a row lies from what they learned.

    A subclass gives the hooks below. Rows come C-contiguous, finite and as wide as the learner.
    """

    _error: ClassVar[str] = "error"
    """Name of what `test_then_learn_many` returns, for series."""

    # Hooks

    @abstractmethod
    def _learn(self, X: FloatArray) -> None:
        """Learn the rows in order."""

    @abstractmethod
    def _errors(self, X: FloatArray, out: FloatArray) -> int:
        """Write the error of each row by the present model into out[n_rows]; return -1."""

    @abstractmethod
    def _test_then_learn(self, X: FloatArray, out: FloatArray) -> None:
        """For each row: its error by the present model; then learn it."""

    # Learning

    def learn_one(self, x: Any, y: Any = None) -> Self:
        """Learn one event; `y` is ignored.

        Parameters
        ----------
        x : mapping of name to number, or 1-D array

        Raises
        ------
        BadValue, TooManyFeatures
            The state is then as before.
        """
        row = self._features.row(x)
        if row is None or first_bad_row(row) >= 0:
            self._take(self._rows_of(*self._one_row(x)), None)
        else:
            self._learn(row)
        return self

    def learn_many(self, X: Any, y: Any = None) -> Self:
        """Learn a batch of rows, whole or not at all; the same bits as `learn_one` row by row.

        Parameters
        ----------
        X : array [n_rows, n_features], dataframe, or sequence of mappings
        """
        self._take(self._rows(X), None)
        return self

    def error_one(self, x: Any) -> float:
        """Return the error of one event: how far it lies from what was learned."""
        out = np.empty(1)
        self._errors(self._known_rows(*self._one_row(x)), out)
        return out.item()

    def error_many(self, X: Any) -> Any:
        """Return the error of each row, in the kind that X is; nothing is learned."""
        rows = self._known_many(X)
        errors = np.empty(len(rows))
        self._errors(rows, errors)
        return series_like(X, errors, self._error)

    def test_then_learn_many(self, X: Any, y: Any = None) -> Any:
        """Return the error of each row, made before that row was learned; then it is learned."""
        rows = self._rows(X)
        errors = np.empty(len(rows))
        self._take(rows, errors)
        return series_like(X, errors, self._error)

    def test_then_learn_columns(
        self, names: tuple[FeatureName, ...], values: FloatArray, labels: NDArray[Any]
    ) -> Tested:
        """Give each row's error before it is learned, then learn it; for the runtime. Labels are ignored.

        Parameters
        ----------
        names : tuple of str or int
        values : float64[n_rows, n_names]
        labels : array [n_rows]
        """
        rows = self._rows_of(names, values)
        errors = np.empty(len(rows))
        self._take(rows, errors)
        nothing = np.full(len(rows), np.nan)
        return Tested(np.full(len(rows), -1, dtype=np.int8), errors, nothing, errors.astype(object), nothing)

    def check(self, names: tuple[FeatureName, ...], values: FloatArray, labels: NDArray[Any]) -> None:
        """Raise what learning this block would raise, and change nothing."""
        self._rows_of(names, values)

    def _rows_of(self, names: tuple[FeatureName, ...], values: FloatArray) -> Rows:
        return rows_of_columns(self._features, names, values)

    def _one_row(self, x: Any) -> tuple[tuple[FeatureName, ...], FloatArray]:
        return from_one(self.name, x)

    def _take(self, rows: Rows, out: FloatArray | None) -> None:
        """Learn checked rows, with each one's error first where `out` is given."""
        for a, b, growth in rows.spans() if out is None else rows.pieces(0, len(rows)):
            self._piece(rows.values[a:b], growth, None if out is None else out[a:b])

    def _piece(self, values: FloatArray, growth: Growth | None, out: FloatArray | None) -> None:
        if growth is not None:
            if out is not None:
                self._errors(np.ascontiguousarray(values[:, : self.n_features]), out)
            self._features.grow(growth.names)
            self._widen(self.n_features)
        X = np.ascontiguousarray(values[:, : self.n_features])
        if growth is None and out is not None:
            self._test_then_learn(X, out)
        else:
            self._learn(X)

    def _known_many(self, X: Any) -> FloatArray:
        """Return the rows as wide as the learner; names without a column are dropped."""
        if is_mappings(X):
            return np.concatenate([self._known_rows(*from_one(self.name, x)) for x in X])
        return self._known_rows(*from_many(self.name, X))


class Transformer(Estimator):
    """Base of estimators that project rows on what they learned."""

    _error = "reconstruction_error"

    @abstractmethod
    def _transform(self, X: FloatArray) -> FloatArray:
        """Return the projections float64[n_rows, n_outputs]."""

    def _output_names(self, n_outputs: int) -> list[str]:
        return [f"component_{k}" for k in range(n_outputs)]

    def transform_one(self, x: Any) -> Any:
        """Return the projection of one event: a dict for a mapping, else a 1-D array."""
        values = self._transform(self._known_rows(*self._one_row(x)))[0]
        if hasattr(x, "keys"):
            return dict(zip(self._output_names(len(values)), values.tolist(), strict=True))
        return values

    def transform_many(self, X: Any) -> Any:
        """Return the projections of the rows: an array [n_rows, n_outputs] for arrays, else a frame of X's kind."""
        values = self._transform(self._known_many(X))
        names = self._output_names(values.shape[1])
        return frame_like(X, {name: np.ascontiguousarray(values[:, k]) for k, name in enumerate(names)})
