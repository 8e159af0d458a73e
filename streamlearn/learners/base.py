"""Binary scorers: labels, one event and many, forecasts before learning."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import CodeArray, FeatureName, FloatArray, Label, Tested
from streamlearn.features.frames import frame_like, from_one, labels_of, series_like
from streamlearn.kernels.rows import first_bad_row
from streamlearn.learners.batch import (
    Forecasts,
    Growth,
    Labelled,
    Rows,
    halves,
    pieces_of,
    refuse_bad,
    rows_of_columns,
    table,
)
from streamlearn.learners.entries import part_of
from streamlearn.learners.labels import LabelPair
from streamlearn.learners.learner import Learner

__all__ = ["BinaryScorer", "Learner"]

ONE_CODE = tuple(np.array([code], dtype=np.int8) for code in (0, 1, -1))
"""The codes of one event, int8[1], indexed by the code itself: 0, 1, and -1 for the last."""


class BinaryScorer(Learner):
    """Base of learners that rank events of two classes.

    A subclass gives the hooks below. Rows come C-contiguous, finite and as wide as the learner; codes are 1, 0 or -1
    (no label: learn nothing, unless the learner is semi-supervised). One event goes through the same hook as many.

    Hooks return -1, or the index of the first row with a NaN or an infinity where the class sets
    ``_needs_finite_rows = False`` and checks rows itself; then nothing may have changed.
    """

    _cuts_entries = True
    positive: Label | None
    reject_cost: float = 0.5

    def __init__(self) -> None:
        super().__init__()
        self._set_labels(LabelPair(self.name, self.positive))

    # Hooks

    @abstractmethod
    def _swap_classes(self) -> None:
        """Exchange the two classes, bit for bit as if it had been known from the start."""

    @abstractmethod
    def _learn(self, X: FloatArray, codes: CodeArray) -> int:
        """Learn the rows in order."""

    @abstractmethod
    def _score(self, X: FloatArray, out: FloatArray) -> int:
        """Write ranking scores into out[n_rows]."""

    @abstractmethod
    def _probability(self, X: FloatArray, out: FloatArray) -> int:
        """Write P(positive) into out[n_rows]."""

    @abstractmethod
    def _test_then_learn(
        self, X_test: FloatArray, X_learn: FloatArray, codes: CodeArray, scores: FloatArray, probabilities: FloatArray
    ) -> int:
        """For each row: score and P(positive) of X_test[i] by the present model, then learn X_learn[i]."""

    def _probability_one(self, row: FloatArray) -> float:
        """Return P(positive) of float64[1, n_features], or NaN where a value is one or infinite.

        For learners whose kernel can answer without an array to write to: passing and reading one takes 0.2 us.
        """
        return self._out.item() if self._probability(row, self._out) < 0 else math.nan

    def _score_memo(self, X: FloatArray, scores: FloatArray, probabilities: FloatArray, memo: FloatArray) -> int:
        """Forecast, and write what the learner wants back when the labels come: for those with a `memo_width`."""
        raise NotImplementedError

    def _test_then_learn_memo(
        self,
        X_test: FloatArray,
        X_learn: FloatArray,
        codes: CodeArray,
        scores: FloatArray,
        probabilities: FloatArray,
        memo_test: FloatArray,
        memo_learn: FloatArray,
    ) -> int:
        """Like `_test_then_learn`; memo_test is written, memo_learn is of the forecasts of X_learn."""
        raise NotImplementedError

    # Learning

    def learn_one(self, x: Any, y: Any = None) -> Self:
        """Learn one event.

        Parameters
        ----------
        x : mapping of name to number, or 1-D array
        y : bool, int, float, str or None
            The label; None = unlabelled.

        Raises
        ------
        BadValue, BadLabel, TooManyFeatures
            The state is then as before.
        """
        code = self._labels.code(y)
        if code >= -1:
            row = self._features.row(x)
            if (
                row is not None
                and not (self._needs_finite_rows and first_bad_row(row) >= 0)
                and self._learn(row, ONE_CODE[code]) < 0
            ):
                return self
        names, values = from_one(self.name, x)
        self._take(rows_of_columns(self._features, names, values), np.array([y], dtype=object))
        return self

    def learn_many(self, X: Any, y: Any = None) -> Self:
        """Learn a batch of rows, whole or not at all; the same bits as `learn_one` row by row.

        Parameters
        ----------
        X : array [n_rows, n_features], dataframe, or sequence of mappings
        y : array, series or sequence [n_rows], or None
            Labels; None or NaN = unlabelled.
        """
        rows = self._rows(X)
        self._take(rows, labels_of(self.name, X, y, len(rows)))
        return self

    def test_then_learn_many(self, X: Any, y: Any) -> Any:
        """Return the ranking score of each row, made before that row was learned; then it is learned."""
        rows = self._rows(X)
        made = Forecasts.empty(len(rows), self.memo_width)
        self._take(rows, labels_of(self.name, X, y, len(rows)), made)
        if made.told is not None:
            row, made.scores[row] = made.told
        return series_like(X, made.scores, "score")

    def test_then_learn_columns(
        self, names: tuple[FeatureName, ...], values: FloatArray, labels: NDArray[Any]
    ) -> Tested:
        """Forecast each row before it is learned, then learn it; for the runtime.

        Parameters
        ----------
        names : tuple of str or int
        values : float64[n_rows, n_names]
        labels : array [n_rows]
        """
        rows = rows_of_columns(self._features, names, values)
        made = Forecasts.empty(len(rows), self.memo_width)
        before = self._labels
        codes = self._take(rows, labels, made)
        tested = self.decide_columns(codes, made.scores, made.probabilities)
        if not before.complete:
            self._name_early(before.copy(), labels, tested)
        return tested

    @property
    def memo_width(self) -> int:
        """How many numbers of each forecast the learner wants back when the label comes late; 0 = none."""
        return 0

    def forecast_columns(self, names: tuple[FeatureName, ...], values: FloatArray) -> tuple[Tested, FloatArray]:
        """Forecast a block without learning: the forecasts, codes all -1, and the memo [n_rows, memo_width]."""
        X = self._known_rows(names, values)
        made = Forecasts.empty(len(X), self.memo_width)
        self._forecast(X, slice(0, len(X)), made)
        return self.decide_columns(np.full(len(X), -1, np.int8), made.scores, made.probabilities), made.memo

    def test_then_learn_late(
        self,
        names: tuple[FeatureName, ...],
        test_values: FloatArray,
        late_values: FloatArray,
        late_labels: NDArray[Any],
        late_memo: FloatArray | None = None,
    ) -> tuple[Tested, FloatArray]:
        """For each i forecast row i of `test_values`, then learn row i of `late_values`, whose label has come.

        Parameters
        ----------
        names : tuple of str or int
        test_values, late_values : float64[n_rows, n_names]
        late_labels : array [n_rows]
        late_memo : float64[n_rows, memo_width] or None
            What `forecast_columns` or this method returned when the late rows were forecast. A learner that trusts its
            parts by their success trusts them then as far as they are right at that delay.

        Returns
        -------
        Tested
            The forecasts of the test rows, with the codes of the *late* labels.
        memo : float64[n_rows, memo_width]
        """
        refuse_bad(self.name, names, test_values)
        rows = rows_of_columns(self._features, names, late_values)
        made = Forecasts.empty(len(rows), self.memo_width)
        made.test = rows.align(self._features, names, test_values)
        made.late_memo = late_memo
        before = self._labels
        codes = self._take(rows, late_labels, made)
        tested = self.decide_columns(codes, made.scores, made.probabilities)
        if not before.complete:
            self._name_early(before.copy(), late_labels, tested)
        return tested, made.memo

    def _name_early(self, pair: LabelPair, labels: NDArray[Any], tested: Tested) -> None:
        """Correct the decisions made before both labels were known: only a label seen by then can be named."""
        for i, y in enumerate(labels):
            if pair.complete:
                return
            known = pair.positive if pair.negative is None else pair.negative
            sure = np.isfinite(tested.decisions[i])
            tested.predictions[i] = known if sure else None
            tested.decisions[i] = self._labels.code(known) if sure and known is not None else np.nan
            pair.take(y)

    def check(self, names: tuple[FeatureName, ...], values: FloatArray, labels: NDArray[Any]) -> None:
        """Raise what learning this block would raise, and change nothing."""
        rows_of_columns(self._features, names, values)
        self._labels.copy().take_many(labels)

    def _take(self, rows: Rows, labels: NDArray[Any], made: Forecasts | None = None) -> CodeArray:
        """Learn checked rows, with forecasts first where they are wanted; return the codes."""
        pair = self._labels.copy()
        labelled = Labelled(*pair.take_many(labels))
        for start, stop, swap in halves(len(rows), labelled.swap_at):
            if swap:
                self._exchange(rows, start, made)
            for a, b, growth in pieces_of(rows, start, stop, self):
                self._piece(rows, slice(a, b), growth, labelled.codes[a:b], made)
        self._set_labels(pair)
        return labelled.codes

    def _exchange(self, rows: Rows, row: int, made: Forecasts | None) -> None:
        """Exchange the classes; before, score the row whose label shows it."""
        if made is not None:
            score = np.empty(1)
            self._score(part_of(rows.values, slice(row, row + 1), self.n_features, self.takes_entries), score)
            made.told = row, float(score[0])
        self._swap_classes()

    def _set_labels(self, pair: LabelPair) -> None:
        self._labels = pair
        negative, positive = pair.negative, pair.positive
        self._decided = (positive if negative is None else negative, negative if positive is None else positive)

    def _piece(self, rows: Rows, part: slice, growth: Growth | None, codes: CodeArray, made: Forecasts | None) -> None:
        learned = tested = part_of(rows.values, part, self.n_features, self.takes_entries)
        if made is not None and made.test is not None:
            tested = part_of(made.test, part, self.n_features, self.takes_entries)
        if growth is not None:  # forecast at the old width, learned at the new one
            if made is not None:
                self._forecast(tested, part, made)
            self.widen_by(growth.names)
            learned = part_of(rows.values, part, self.n_features, self.takes_entries)
            self._learn_told(learned, codes, part, made)
        elif made is None:
            self._learn(learned, codes)
        elif not self.memo_width:
            self._test_then_learn(tested, learned, codes, made.scores[part], made.probabilities[part])
        else:
            memo = made.memo[part]
            told = memo if made.late_memo is None else made.late_memo[part]
            self._test_then_learn_memo(tested, learned, codes, made.scores[part], made.probabilities[part], memo, told)

    def _learn_told(self, X: FloatArray, codes: CodeArray, part: slice, made: Forecasts | None) -> None:
        """Learn rows, with the memo of their forecasts where there is one."""
        if made is None or made.late_memo is None or not self.memo_width:
            self._learn(X, codes)
            return
        aside = Forecasts.empty(len(X), self.memo_width)
        self._test_then_learn_memo(
            X, X, codes, aside.scores, aside.probabilities, aside.memo, np.ascontiguousarray(made.late_memo[part])
        )

    def _forecast(self, X: FloatArray, part: slice, made: Forecasts) -> None:
        if self.memo_width:
            self._score_memo(X, made.scores[part], made.probabilities[part], made.memo[part])
        else:
            self._score(X, made.scores[part])
            self._probability(X, made.probabilities[part])

    # Forecasting

    def score_one(self, x: Any) -> float:
        """Return the ranking score of one event: higher means more likely positive."""
        return self._one(x, self._score)

    def predict_proba_one(self, x: Any) -> dict[Label, float]:
        """Return {label: probability}; empty before the first label was seen."""
        negative, positive = self._names()
        p = self._one(x, self._probability)
        if negative is None or positive is None:
            only = positive if negative is None else negative
            return {} if only is None else {only: 1.0}
        return {negative: 1.0 - p, positive: p}

    def predict_one(self, x: Any) -> Label | None:
        """Return the more probable label, or None to abstain: where its probability is below ``1 - reject_cost``.

        None as well before the first label was seen.
        """
        row = self._features.row(x)
        p = math.nan
        if row is not None and not (self._needs_finite_rows and first_bad_row(row) >= 0):
            p = self._probability_one(row)
        if p != p:  # noqa: PLR0124 - math.isnan takes longer, and this is asked for each event
            p = self._one(x, self._probability)
        cost = self.reject_cost
        if cost < 0.5 and (p if p >= 0.5 else 1.0 - p) < 1.0 - cost:
            return None
        return self._decided[p >= 0.5]

    def score_many(self, X: Any) -> Any:
        """Return the ranking scores of the rows, in the kind that X is."""
        return series_like(X, self._outputs(X, self._score), "score")

    def predict_proba_many(self, X: Any) -> Any:
        """Return P(negative), P(positive): an array [n_rows, 2] for arrays, else a frame with a column a label."""
        p = self._outputs(X, self._probability)
        negative, positive = self._names()
        if negative is None or positive is None:
            only = positive if negative is None else negative
            p = np.ones(len(p)) if positive is not None else p * 0.0
            return frame_like(X, {False: 1.0 - p, True: p} if only is None else {only: np.ones(len(p))})
        return frame_like(X, {negative: 1.0 - p, positive: p})

    def predict_many(self, X: Any) -> Any:
        """Return a label a row, None where the learner abstains."""
        return self._predictions(X, self._decide(self._outputs(X, self._probability)))

    def _predictions(self, X: Any, decisions: FloatArray) -> Any:
        """Return decisions as labels, in the kind that X is."""
        labels = self._named(decisions)
        if len(labels) and all(type(label) is type(labels[0]) and label is not None for label in labels):
            labels = np.array(labels.tolist(), dtype=None if isinstance(labels[0], str) else type(labels[0]))
        return series_like(X, labels, "prediction")

    def score_columns(self, names: tuple[FeatureName, ...], values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return ranking scores and P(positive) of a block of named columns; for the runtime."""
        tested, _ = self.forecast_columns(names, values)
        return tested.scores, tested.probabilities

    def decide_columns(self, codes: CodeArray, scores: FloatArray, probabilities: FloatArray) -> Tested:
        """Return scores and probabilities with the decisions that follow from them; for the runtime."""
        decisions = self._decide(probabilities)
        return Tested(codes, scores, probabilities, self._named(decisions), decisions)

    def _names(self) -> tuple[Label | None, Label | None]:
        pair = self._labels
        return pair.negative, pair.wanted if pair.positive is None else pair.positive

    def label_pair(self) -> tuple[Label | None, Label | None]:
        """Return the negative and the positive label; None for one that was not seen yet."""
        return self._labels.negative, self._labels.positive

    def even_score(self) -> float:
        """Return the ranking score at which the decision changes from one label to the other.

        Scores rank, with no need of a zero; probabilities know how common the labels are. This is where the two meet.
        """
        return 0.0

    def _decide(self, probabilities: FloatArray) -> FloatArray:
        """Return 1, 0 or NaN (abstained) for each P(positive)."""
        decisions = (probabilities >= 0.5).astype(np.float64)
        if self.reject_cost < 0.5:
            sure = np.where(probabilities >= 0.5, probabilities, 1.0 - probabilities)
            decisions[sure < 1.0 - self.reject_cost] = np.nan
        return decisions

    def _named(self, decisions: FloatArray) -> NDArray[np.object_]:
        names = table(*self._decided)
        which = np.where(np.isnan(decisions), -1.0, decisions).astype(np.int64)
        out: NDArray[np.object_] = names[which]
        return out

    # State

    def _labels_text(self) -> str:
        return self._labels.to_text()

    def _take_labels_text(self, text: str) -> None:
        self._labels.from_text(text)
        self._set_labels(self._labels)
