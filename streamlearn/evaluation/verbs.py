"""Learners known by their verbs alone (``learn_one``, ``predict_proba_one``...), one event at a time."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import CodeArray, FeatureName, FloatArray, Label, Tested, is_missing
from streamlearn.errors import BadLabel, BadParameter


class LateLearner(Protocol):
    """A learner of blocks whose labels may come late.

    A memo is what it wants back with the label: float64[n_rows, memo_width].
    """

    def test_then_learn_columns(
        self, names: tuple[FeatureName, ...], values: FloatArray, labels: NDArray[Any]
    ) -> Tested:
        """Forecast each row before it is learned, then learn it."""
        ...

    def forecast_columns(self, names: tuple[FeatureName, ...], values: FloatArray) -> tuple[Tested, FloatArray]:
        """Forecast a block without learning: forecasts with codes -1, and their memo."""
        ...

    def test_then_learn_late(
        self,
        names: tuple[FeatureName, ...],
        test_values: FloatArray,
        late_values: FloatArray,
        late_labels: NDArray[Any],
        late_memo: FloatArray | None = None,
    ) -> tuple[Tested, FloatArray]:
        """For each i forecast test row i, then learn late row i: forecasts, with the codes of the late labels; memo."""
        ...


_BLOCK_METHODS = ("test_then_learn_columns", "forecast_columns", "test_then_learn_late")


def blockwise(learner: Any, positive: Label | None, *, numeric: bool) -> LateLearner:
    """Return the learner itself where it takes blocks, else a wrapper around its verbs.

    Parameters
    ----------
    learner : object
    positive : label or None
        Positive label for a classifier known by its verbs.
    numeric : bool
        Whether labels are numbers to be predicted.
    """
    if all(hasattr(learner, method) for method in _BLOCK_METHODS):
        return cast("LateLearner", learner)
    for verb in ("learn_one", "predict_one"):
        if not hasattr(learner, verb):
            raise BadParameter(f"prequential: learner must have {verb}, got {type(learner).__name__}")
    return VerbRegressor(learner) if numeric else VerbClassifier(learner, positive)


class _Verbs(ABC):
    """A learner known by its verbs, taking blocks row by row.

    Parameters
    ----------
    learner : object
    """

    def __init__(self, learner: Any) -> None:
        self.learner = learner

    @abstractmethod
    def _codes(self, labels: NDArray[Any]) -> CodeArray:
        """Return the codes of labels; raise where one cannot be learned."""

    @abstractmethod
    def _forecast(self, x: dict[FeatureName, float]) -> tuple[float, float, float]:
        """Return score, P(positive) and decision of one event."""

    @abstractmethod
    def _learn(self, x: dict[FeatureName, float], y: Any) -> None:
        """Learn one event that has a label."""

    @abstractmethod
    def _predictions(self, decisions: FloatArray, scores: FloatArray) -> NDArray[np.object_]:
        """Return decisions as labels or numbers."""

    def test_then_learn_columns(
        self, names: tuple[FeatureName, ...], values: FloatArray, labels: NDArray[Any]
    ) -> Tested:
        """Forecast each row before it is learned, then learn it."""
        return self.test_then_learn_late(names, values, values, labels)[0]

    def forecast_columns(self, names: tuple[FeatureName, ...], values: FloatArray) -> tuple[Tested, FloatArray]:
        """Return forecasts, with codes -1, and an empty memo."""
        found = [self._forecast(dict(zip(names, row, strict=True))) for row in values.tolist()]
        return self._tested(np.full(len(values), -1, np.int8), found)

    def test_then_learn_late(
        self,
        names: tuple[FeatureName, ...],
        test_values: FloatArray,
        late_values: FloatArray,
        late_labels: NDArray[Any],
        late_memo: FloatArray | None = None,
    ) -> tuple[Tested, FloatArray]:
        """For each i forecast test row i, then learn late row i: forecasts, with the codes of the late labels."""
        codes = self._codes(late_labels)
        found = []
        for test, late, y in zip(test_values.tolist(), late_values.tolist(), late_labels.tolist(), strict=True):
            found.append(self._forecast(dict(zip(names, test, strict=True))))
            if not is_missing(y):
                self._learn(dict(zip(names, late, strict=True)), y)
        return self._tested(codes, found)

    def _tested(self, codes: CodeArray, found: list[tuple[float, float, float]]) -> tuple[Tested, FloatArray]:
        scores, probabilities, decisions = np.array(found, np.float64).reshape(-1, 3).T.copy()
        predictions = self._predictions(decisions, scores)
        return Tested(codes, scores, probabilities, predictions, decisions), np.empty((len(codes), 0))


class VerbRegressor(_Verbs):
    """A regressor with `predict_one` and `learn_one`: the forecast is its `score`."""

    def _codes(self, labels: NDArray[Any]) -> CodeArray:
        return np.full(len(labels), -1, np.int8)

    def _forecast(self, x: dict[FeatureName, float]) -> tuple[float, float, float]:
        value = float(self.learner.predict_one(x))
        return value, math.nan, value

    def _learn(self, x: dict[FeatureName, float], y: Any) -> None:
        self.learner.learn_one(x, float(y))

    def _predictions(self, decisions: FloatArray, scores: FloatArray) -> NDArray[np.object_]:
        return scores.astype(object)


class VerbClassifier(_Verbs):
    """A binary classifier with `predict_proba_one` or `predict_one`, optionally `score_one`, and `learn_one`.

    Without `score_one` the ranking score is the probability; without `predict_proba_one` the probability is the
    prediction itself as 1 or 0. Before the learner knows any label, P(positive) is 1/2. The decision is the more
    probable label, unless the learner's own `predict_one` abstains by None.

    Parameters
    ----------
    learner : object
    positive : label or None
        None: True or 1, for labels that are bool, 0 and 1, or -1 and 1.
    """

    def __init__(self, learner: Any, positive: Label | None) -> None:
        super().__init__(learner)
        self.positive: Label = 1 if positive is None else positive
        self._by_number = positive is None
        self._negative: Label | None = None

    def _codes(self, labels: NDArray[Any]) -> CodeArray:
        return np.array([self._code(y) for y in labels.tolist()], np.int8)

    def _learn(self, x: dict[FeatureName, float], y: Any) -> None:
        self.learner.learn_one(x, y)

    def _predictions(self, decisions: FloatArray, scores: FloatArray) -> NDArray[np.object_]:
        predictions = np.array([None] * len(decisions), object)
        predictions[decisions == 1.0] = self.positive
        predictions[decisions == 0.0] = self._negative
        return predictions

    def _forecast(self, x: dict[FeatureName, float]) -> tuple[float, float, float]:
        """Return score, P(positive) and decision of one event."""
        prediction = self.learner.predict_one(x)
        if hasattr(self.learner, "predict_proba_one"):
            known = self.learner.predict_proba_one(x)
            p = float(known.get(self.positive, 0.0)) if known else 0.5
        else:
            p = 0.5 if prediction is None else float(prediction == self.positive)
            known = prediction is not None
        score = float(self.learner.score_one(x)) if hasattr(self.learner, "score_one") else p
        abstains = prediction is None and bool(known)
        return score, p, math.nan if abstains else float(p >= 0.5)

    def _code(self, y: Any) -> int:
        if is_missing(y):
            return -1
        if self._by_number and not (isinstance(y, int | float) and y in (-1, 0, 1)):
            raise BadParameter(
                f"prequential: positive must be given for labels other than bool, 0, 1 and -1, got {y!r}"
            )
        if y == self.positive:
            return 1
        if self._negative is None:
            self._negative = y
        elif y != self._negative:
            raise BadLabel(f"prequential: y must be {self.positive!r} or {self._negative!r}, got a third label {y!r}")
        return 0
