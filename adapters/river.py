"""River estimators as learners of a job, for honest comparison in the same run.

Named by import path below ``river``: ``river:linear_model.LogisticRegression``, or a pipeline of such paths joined by
``|``: ``river:preprocessing.StandardScaler|linear_model.LogisticRegression``. Parameters go to the last estimator.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
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


class _RiverLearner(ABC):
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

    @abstractmethod
    def check(self, names: tuple[FeatureName, ...], values: FloatArray, labels: NDArray[Any]) -> None:
        """Raise what learning this block would raise, and change nothing."""

    @abstractmethod
    def _forecast(self, x: dict[FeatureName, float]) -> tuple[float, float, float, Any]:
        """Return score, P(positive), decision and predicted label of one event."""

    @abstractmethod
    def _learn(self, x: dict[FeatureName, float], label: Any) -> int:
        """Learn one event; return the code of its label."""

    def test_then_learn_columns(
        self, names: tuple[FeatureName, ...], values: FloatArray, labels: NDArray[Any]
    ) -> Tested:
        """Forecast each row before it is learned, then learn it, one by one as River does."""
        return self._run(names, values, values, labels)

    def forecast_columns(self, names: tuple[FeatureName, ...], values: FloatArray) -> tuple[Tested, FloatArray]:
        """Forecast a block without learning: forecasts with codes -1, and an empty memo."""
        made = [self._forecast(x) for x in _mappings(names, values)]
        return _tested(np.full(len(values), -1, dtype=np.int8), made), _no_memo(len(values))

    def test_then_learn_late(
        self,
        names: tuple[FeatureName, ...],
        test_values: FloatArray,
        late_values: FloatArray,
        late_labels: NDArray[Any],
        late_memo: FloatArray | None = None,
    ) -> tuple[Tested, FloatArray]:
        """For each i forecast test row i, then learn late row i; the codes are those of the late labels."""
        return self._run(names, test_values, late_values, late_labels), _no_memo(len(test_values))

    def _run(
        self, names: tuple[FeatureName, ...], test_values: FloatArray, values: FloatArray, labels: NDArray[Any]
    ) -> Tested:
        self.check(names, values, labels)
        codes = np.full(len(values), -1, dtype=np.int8)
        made = []
        events = zip(_mappings(names, test_values), _mappings(names, values), labels.tolist(), strict=True)
        for i, (test, x, label) in enumerate(events):
            made.append(self._forecast(test))
            codes[i] = self._learn(x, label)
        return _tested(codes, made)

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

    def label_pair(self) -> tuple[Label | None, Label | None]:
        """Return the negative and the positive label; None for one that was not seen yet."""
        return self._labels.negative, self._labels.positive

    def check(self, names: tuple[FeatureName, ...], values: FloatArray, labels: NDArray[Any]) -> None:
        """Raise what learning this block would raise, and change nothing."""
        self._refuse_bad(names, values)
        self._labels.copy().take_many(labels)

    def _forecast(self, x: dict[FeatureName, float]) -> tuple[float, float, float, Any]:
        """Without an opinion P(positive) is 0.5, which is also where a probability that is NaN goes."""
        forecast = self._model.predict_proba_one(x)
        p = float(forecast.get(self._labels.positive if self._many_classes else True, 0.0)) if forecast else 0.5
        p = p if np.isfinite(p) else 0.5
        negative, positive = self.label_pair()
        if positive is None or negative is None:
            return p, p, float(p >= 0.5), positive if negative is None else negative
        return p, p, float(p >= 0.5), positive if p >= 0.5 else negative

    def _learn(self, x: dict[FeatureName, float], label: Any) -> int:
        code, _ = self._labels.take(label)
        if code >= 0:
            self._model.learn_one(x, label if self._many_classes else bool(code))
        return code


class RiverRegressor(_RiverLearner):
    """A River regressor."""

    def check(self, names: tuple[FeatureName, ...], values: FloatArray, labels: NDArray[Any]) -> None:
        """Raise what learning this block would raise, and change nothing."""
        self._refuse_bad(names, values)
        for label in labels.tolist():
            self._target(label)

    def _target(self, label: Any) -> float:
        try:
            return np.nan if label is None else float(label)
        except (TypeError, ValueError):
            raise BadLabel(f"{self.name}: a target must be a number, got {label!r}") from None

    def _forecast(self, x: dict[FeatureName, float]) -> tuple[float, float, float, Any]:
        predicted = float(self._model.predict_one(x))
        return predicted, np.nan, np.nan, predicted

    def _learn(self, x: dict[FeatureName, float], label: Any) -> int:
        target = self._target(label)
        if np.isfinite(target):
            self._model.learn_one(x, target)
        return -1


def _mappings(names: tuple[FeatureName, ...], values: FloatArray) -> Iterator[dict[FeatureName, float]]:
    return (dict(zip(names, row, strict=True)) for row in values.tolist())


def _tested(codes: CodeArray, made: list[tuple[float, float, float, Any]]) -> Tested:
    columns = np.array([row[:3] for row in made], dtype=np.float64).reshape(-1, 3).T.copy()
    predictions = np.empty(len(made), dtype=object)
    predictions[:] = [row[3] for row in made]
    scores, probabilities, decisions = columns
    return Tested(codes, scores, probabilities, predictions, decisions)


def _no_memo(n: int) -> FloatArray:
    return np.empty((n, 0))
