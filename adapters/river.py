"""River estimators as learners of a job, for honest comparison in the same run.

Named by import path below ``river``: ``river:linear_model.LogisticRegression``, or a pipeline of such paths joined by
``|``: ``river:preprocessing.StandardScaler|linear_model.LogisticRegression``. Parameters go to the last estimator.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from river import base, compose

from streamlearn.contracts import CodeArray, FeatureName, FloatArray, Label, Snapshot, Tested
from streamlearn.errors import BadLabel, BadParameter, BadValue, NotResumable
from streamlearn.learners.labels import LabelPair

PREFIX = "river:"


def make_learner(path: str, params: Mapping[str, Any]) -> RiverClassifier | RiverRegressor:
    """Return the estimator at `path` as a learner.

    Parameters
    ----------
    path : str
        What stands behind ``river:``.
    params : mapping
        Parameters of the last estimator.

    Raises
    ------
    BadParameter
        There is no such estimator, it refuses a parameter, or it is neither a classifier nor a regressor.
    """
    *first, last = path.split("|")
    steps = [_estimator(part.strip(), {}) for part in first] + [_estimator(last.strip(), params)]
    model = steps[0] if len(steps) == 1 else compose.Pipeline(*steps)
    if isinstance(steps[-1], base.Classifier):
        return RiverClassifier(PREFIX + path, model, many_classes=bool(steps[-1]._multiclass))
    if isinstance(steps[-1], base.Regressor):
        return RiverRegressor(PREFIX + path, model)
    raise BadParameter(f"{PREFIX}{path}: must end in a classifier or a regressor, got {type(steps[-1]).__name__}")


def _estimator(path: str, params: Mapping[str, Any]) -> Any:
    module, _, name = path.rpartition(".")
    try:
        found = getattr(importlib.import_module(f"river.{module}"), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise BadParameter(f"{PREFIX}{path}: must be an import path below river, got an error: {error}") from error
    if not (isinstance(found, type) and issubclass(found, base.Estimator)):
        raise BadParameter(f"{PREFIX}{path}: must name an estimator, got {found!r}")
    try:
        return found(**params)
    except (TypeError, ValueError) as error:
        raise BadParameter(f"{PREFIX}{path}: {error}") from error


class _RiverLearner:
    """What classifiers and regressors share.

    Parameters
    ----------
    name : str
        ``river:`` and the path.
    model : river.base.Estimator
    """

    def __init__(self, name: str, model: Any) -> None:
        self.name = name
        self._model = model

    def state(self) -> Snapshot:
        """Refuse: a River estimator is a graph of Python objects, which only pickle could keep."""
        raise NotResumable(
            f"{self.name}: a River estimator has no state that can be kept; remove [checkpoint], or this learner"
        )

    def restore(self, state: Snapshot) -> None:
        """Refuse, like `state`."""
        self.state()

    def _refuse_bad(self, names: tuple[FeatureName, ...], values: FloatArray) -> None:
        bad = np.argwhere(~np.isfinite(values))
        if len(bad):
            row, column = bad[0]
            got = values[row, column]
            raise BadValue(f"{self.name}: feature {names[column]!r} in row {row} must be finite, got {got}")


class RiverClassifier(_RiverLearner):
    """A River classifier of two classes.

    Parameters
    ----------
    name : str
    model : river.base.Classifier
    many_classes : bool
        Whether the model takes any label; the others are given True and False. For these the label that will count as
        positive is not sure before both were seen, unless it is 1 or True.
    """

    def __init__(self, name: str, model: Any, *, many_classes: bool) -> None:
        super().__init__(name, model)
        self._many_classes = many_classes
        self._labels = LabelPair(name)

    def check(self, names: tuple[FeatureName, ...], values: FloatArray, labels: NDArray[Any]) -> None:
        """Raise what learning this block would raise, and change nothing."""
        self._refuse_bad(names, values)
        self._labels.copy().take_many(labels)

    def test_then_learn_columns(
        self, names: tuple[FeatureName, ...], values: FloatArray, labels: NDArray[Any]
    ) -> Tested:
        """Forecast each row before it is learned, then learn it, one by one as River does."""
        self.check(names, values, labels)
        n = len(values)
        codes, probabilities = np.full(n, -1, dtype=np.int8), np.empty(n)
        predictions = np.empty(n, dtype=object)
        for i, (row, label) in enumerate(zip(values.tolist(), labels.tolist(), strict=True)):
            x = dict(zip(names, row, strict=True))
            probabilities[i] = self._probability(x)
            predictions[i] = self._named(probabilities[i] >= 0.5)
            codes[i], _ = self._labels.take(label)
            if codes[i] >= 0:
                self._model.learn_one(x, label if self._many_classes else bool(codes[i]))
        decisions = (probabilities >= 0.5).astype(np.float64)
        return Tested(codes, probabilities.copy(), probabilities, predictions, decisions)

    def score_columns(self, names: tuple[FeatureName, ...], values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return P(positive) of each row, as score and as probability."""
        rows = (dict(zip(names, row, strict=True)) for row in values.tolist())
        probabilities = np.array([self._probability(x) for x in rows], dtype=np.float64)
        return probabilities.copy(), probabilities

    def decide_columns(self, codes: CodeArray, scores: FloatArray, probabilities: FloatArray) -> Tested:
        """Return scores and probabilities with the more probable labels."""
        decisions = (probabilities >= 0.5).astype(np.float64)
        predictions = np.empty(len(decisions), dtype=object)
        predictions[:] = [self._named(yes) for yes in (decisions == 1.0).tolist()]
        return Tested(codes, scores, probabilities, predictions, decisions)

    def _named(self, yes: bool) -> Label | None:
        """Return the label of a decision: the only one, where just one was seen so far."""
        positive, negative = self._labels.positive, self._labels.negative
        if positive is None or negative is None:
            return positive if negative is None else negative
        return positive if yes else negative

    def _probability(self, x: dict[FeatureName, float]) -> float:
        """Return P(positive); without an opinion 0.5, which is also where a probability that is NaN goes."""
        forecast = self._model.predict_proba_one(x)
        p = float(forecast.get(self._labels.positive if self._many_classes else True, 0.0)) if forecast else 0.5
        return p if np.isfinite(p) else 0.5


class RiverRegressor(_RiverLearner):
    """A River regressor."""

    def check(self, names: tuple[FeatureName, ...], values: FloatArray, labels: NDArray[Any]) -> None:
        """Raise what learning this block would raise, and change nothing."""
        self._refuse_bad(names, values)
        self._targets(labels)

    def _targets(self, labels: NDArray[Any]) -> FloatArray:
        try:
            return np.array([np.nan if label is None else label for label in labels.tolist()], dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise BadLabel(f"{self.name}: a target must be a number, got an error: {error}") from error

    def test_then_learn_columns(
        self, names: tuple[FeatureName, ...], values: FloatArray, labels: NDArray[Any]
    ) -> Tested:
        """Predict each row before it is learned, then learn it, one by one as River does."""
        self.check(names, values, labels)
        n = len(values)
        predicted = np.empty(n)
        for i, (row, target) in enumerate(zip(values.tolist(), self._targets(labels).tolist(), strict=True)):
            x = dict(zip(names, row, strict=True))
            predicted[i] = self._model.predict_one(x)
            if np.isfinite(target):
                self._model.learn_one(x, target)
        return self.decide_columns(np.full(n, -1, dtype=np.int8), predicted, np.full(n, np.nan))

    def score_columns(self, names: tuple[FeatureName, ...], values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the prediction of each row; there is no probability."""
        rows = (dict(zip(names, row, strict=True)) for row in values.tolist())
        predicted = np.array([self._model.predict_one(x) for x in rows], dtype=np.float64)
        return predicted, np.full(len(predicted), np.nan)

    def decide_columns(self, codes: CodeArray, scores: FloatArray, probabilities: FloatArray) -> Tested:
        """Return the predictions as they are."""
        return Tested(codes, scores, probabilities, scores.astype(object), probabilities)
