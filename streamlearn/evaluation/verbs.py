"""Learners known by their verbs alone (``learn_one``, ``predict_proba_one``...), one event at a time."""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import CodeArray, FeatureName, FloatArray, Label, Tested
from streamlearn.errors import BadLabel, BadParameter


class Blockwise(Protocol):
    """What `prequential` needs of a learner: forecasts of a block, with learning in between and without."""

    def test_then_learn_columns(
        self, names: tuple[FeatureName, ...], values: FloatArray, labels: NDArray[Any]
    ) -> Tested:
        """Forecast each row before it is learned, then learn it."""
        ...

    def forecast_columns(self, names: tuple[FeatureName, ...], values: FloatArray) -> Tested:
        """Return forecasts, with codes -1; change nothing."""
        ...


def blockwise(learner: Any, positive: Label | None, *, numeric: bool) -> Blockwise:
    """Return the wrapper that fits: around the block methods of a learner, else around its verbs.

    Parameters
    ----------
    learner : object
    positive : label or None
        Positive label for a classifier known by its verbs.
    numeric : bool
        Whether labels are numbers to be predicted.
    """
    if all(hasattr(learner, method) for method in ("test_then_learn_columns", "forecast_columns")):
        return ColumnLearner(learner)
    for verb in ("learn_one", "predict_one"):
        if not hasattr(learner, verb):
            raise BadParameter(f"prequential: learner must have {verb}, got {type(learner).__name__}")
    return VerbRegressor(learner) if numeric else VerbClassifier(learner, positive)


class ColumnLearner:
    """A learner that takes blocks itself; keeps the memos of forecasts whose labels come late, oldest first."""

    def __init__(self, learner: Any) -> None:
        self.learner = learner
        self.test_then_learn_columns = learner.test_then_learn_columns
        self._memos: list[FloatArray] = []

    def forecast_columns(self, names: tuple[FeatureName, ...], values: FloatArray) -> Tested:
        """Return forecasts, with codes -1."""
        tested: Tested
        tested, memo = self.learner.forecast_columns(names, values)
        self._memos.append(memo)
        return tested

    def test_then_learn_late(
        self,
        names: tuple[FeatureName, ...],
        test_values: FloatArray,
        late_values: FloatArray,
        late_labels: NDArray[Any],
    ) -> Tested:
        """For each i forecast test row i, then learn late row i: the oldest whose label has not come."""
        waiting = np.concatenate(self._memos)
        n = len(late_values)
        tested: Tested
        tested, memo = self.learner.test_then_learn_late(names, test_values, late_values, late_labels, waiting[:n])
        self._memos = [waiting[n:], memo]
        return tested


class VerbRegressor:
    """A regressor with `predict_one` and `learn_one`: the forecast is its `score`."""

    def __init__(self, learner: Any) -> None:
        self.learner = learner

    def test_then_learn_columns(
        self, names: tuple[FeatureName, ...], values: FloatArray, labels: NDArray[Any]
    ) -> Tested:
        """Forecast each row before it is learned, then learn it."""
        scores = np.empty(len(values))
        for i, row in enumerate(values.tolist()):
            x = dict(zip(names, row, strict=True))
            scores[i] = self.learner.predict_one(x)
            if not _missing(labels[i]):
                self.learner.learn_one(x, float(labels[i]))
        return self._tested(scores)

    def forecast_columns(self, names: tuple[FeatureName, ...], values: FloatArray) -> Tested:
        """Return forecasts, with codes -1."""
        scores = [self.learner.predict_one(dict(zip(names, row, strict=True))) for row in values.tolist()]
        return self._tested(np.array(scores, np.float64))

    def _tested(self, scores: FloatArray) -> Tested:
        return Tested(_no_codes(len(scores)), scores, np.full(len(scores), np.nan), scores.astype(object), scores)


class VerbClassifier:
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
        self.learner = learner
        self.positive: Label = 1 if positive is None else positive
        self._by_number = positive is None
        self._negative: Label | None = None

    def test_then_learn_columns(
        self, names: tuple[FeatureName, ...], values: FloatArray, labels: NDArray[Any]
    ) -> Tested:
        """Forecast each row before it is learned, then learn it."""
        codes = np.array([self._code(y) for y in labels.tolist()], np.int8)
        found = np.empty((len(values), 3))
        for i, (row, y) in enumerate(zip(values.tolist(), labels.tolist(), strict=True)):
            x = dict(zip(names, row, strict=True))
            found[i] = self._forecast(x)
            if codes[i] >= 0:
                self.learner.learn_one(x, y)
        return self._tested(codes, found)

    def forecast_columns(self, names: tuple[FeatureName, ...], values: FloatArray) -> Tested:
        """Return forecasts, with codes -1."""
        found = [self._forecast(dict(zip(names, row, strict=True))) for row in values.tolist()]
        return self._tested(_no_codes(len(values)), np.array(found, np.float64).reshape(-1, 3))

    def _tested(self, codes: CodeArray, found: FloatArray) -> Tested:
        scores, probabilities, decisions = found.T.copy()
        predictions = np.array([None] * len(found), object)
        predictions[decisions == 1.0] = self.positive
        predictions[decisions == 0.0] = self._negative
        return Tested(codes, scores, probabilities, predictions, decisions)

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
        if _missing(y):
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


def _no_codes(n: int) -> CodeArray:
    return np.full(n, -1, np.int8)


def _missing(y: Any) -> bool:
    return y is None or (isinstance(y, float) and math.isnan(y))
