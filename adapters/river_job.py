"""River estimators as learners of a job, for honest comparison in the same run.

Named by import path below ``river``: ``river:linear_model.LogisticRegression``, or a pipeline of such paths joined by
``|``: ``river:preprocessing.StandardScaler|linear_model.LogisticRegression``. Parameters go to the last estimator.

Their state is a graph of Python objects that only pickle can keep, and loading a pickle runs whatever code its bytes
ask for. So it goes into checkpoints, and comes back, only where the job says ``checkpoint.allow_pickle = true``.
"""

from __future__ import annotations

import importlib
import pickle
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray
from river import base, compose

from streamlearn.contracts import CodeArray, FeatureName, FloatArray, Label, Snapshot, Tested
from streamlearn.errors import BadLabel, BadParameter, BadSnapshot, BadValue, NotResumable
from streamlearn.learners.labels import LabelPair

PREFIX = "river:"


def make_learner(
    path: str, params: Mapping[str, Any], *, allow_pickle: bool = False
) -> RiverClassifier | RiverRegressor:
    """Return the estimator at `path` as a learner.

    Parameters
    ----------
    path : str
        What stands behind ``river:``.
    params : mapping
        Parameters of the last estimator.
    allow_pickle : bool
        Whether its state may be pickled, and unpickled.

    Raises
    ------
    BadParameter
        There is no such estimator, it refuses a parameter, or it is neither a classifier nor a regressor.
    """
    *first, last = path.split("|")
    steps = [_estimator(part.strip(), {}) for part in first] + [_estimator(last.strip(), params)]
    model = steps[0] if len(steps) == 1 else compose.Pipeline(*steps)
    if isinstance(steps[-1], base.Classifier):
        many_classes = bool(steps[-1]._multiclass)
        return RiverClassifier(PREFIX + path, model, many_classes=many_classes, allow_pickle=allow_pickle)
    if isinstance(steps[-1], base.Regressor):
        return RiverRegressor(PREFIX + path, model, allow_pickle=allow_pickle)
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
    allow_pickle : bool
        Whether the state may be pickled, and unpickled.
    """

    def __init__(self, name: str, model: Any, *, allow_pickle: bool = False) -> None:
        self.name = name
        self._model = model
        self._allow_pickle = allow_pickle

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
        """Return the pickled estimator.

        Raises
        ------
        NotResumable
            The job does not allow pickles.
        """
        self._require_pickle("kept")
        return {
            "river": version("river"),
            "labels": self._labels_text(),
            "pickle": np.frombuffer(pickle.dumps(self._model), dtype=np.uint8).copy(),
        }

    def restore(self, state: Snapshot) -> None:
        """Become exactly what `state` describes; this unpickles, and so runs what the file asks for.

        Raises
        ------
        NotResumable
            The job does not allow pickles; nothing was read then.
        BadSnapshot
            Another release of River wrote it, or it holds something else.
        """
        self._require_pickle("read")
        if state.get("river") != version("river"):
            raise BadSnapshot(
                f"{self.name}: the saved state must be of River {version('river')}, as a pickle means nothing to "
                f"another release, got {state.get('river')!r}"
            )
        model = self._unpickled(state["pickle"])
        self._take_labels_text(state["labels"])
        self._model = model

    def _unpickled(self, data: NDArray[np.uint8]) -> Any:
        try:
            model = pickle.loads(data.tobytes())  # noqa: S301 - the job allows it in so many words
        except (pickle.UnpicklingError, AttributeError, ImportError, EOFError, IndexError) as error:
            raise BadSnapshot(f"{self.name}: the saved state cannot be unpickled: {error}") from error
        if type(model) is not type(self._model):
            wanted = type(self._model).__name__
            raise BadSnapshot(f"{self.name}: the saved state must hold a {wanted}, got {type(model).__name__}")
        return model

    def _require_pickle(self, verb: str) -> None:
        if not self._allow_pickle:
            raise NotResumable(
                f"{self.name}: the state of a River estimator can be {verb} as a pickle alone, and loading one runs "
                "any code that is in it; set checkpoint.allow_pickle = true where nobody else can write to the "
                "checkpoints, or remove [checkpoint], or this learner"
            )

    def _labels_text(self) -> str:
        return ""

    def _take_labels_text(self, text: str) -> None:
        if text:
            raise BadSnapshot(f"{self.name}: the saved state has labels, this learner has none")

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
    allow_pickle : bool
        Whether the state may be pickled, and unpickled.
    """

    def __init__(self, name: str, model: Any, *, many_classes: bool, allow_pickle: bool = False) -> None:
        super().__init__(name, model, allow_pickle=allow_pickle)
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

    def _labels_text(self) -> str:
        return self._labels.to_text()

    def _take_labels_text(self, text: str) -> None:
        labels = LabelPair(self.name)
        labels.from_text(text)
        self._labels = labels


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
