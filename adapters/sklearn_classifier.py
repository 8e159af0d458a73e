"""Binary classifiers: labels as scikit-learn wants them, scores whose sign is the decision, abstention on request."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_consistent_length, column_or_1d

from streamlearn.contracts import FloatArray, is_missing
from streamlearn.errors import BadLabel
from streamlearn.features.frames import refuse_other_index

from .sklearn_base import OnlineEstimator

UNLABELLED = -1
"""What scikit-learn's semi-supervised estimators take for no label."""


class OnlineClassifier(ClassifierMixin, OnlineEstimator):  # type: ignore[misc]
    """Base of binary classifiers.

    `predict` always names a class, since metrics and meta-estimators expect one; `predict_reject` tells where the
    learner abstains at its `reject_cost`. `decision_function` is the learner's ranking score, measured from where its
    decision changes. The positive class is ``classes_[1]``.

    Semi-supervised learners take rows without a label: None or NaN, and -1 unless it is one of the two classes.

    Attributes
    ----------
    classes_ : array [2], or [1] after a fit on rows of one class
        Sorted, in the dtype of y.
    """

    classes_: NDArray[Any]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X: Any, y: Any) -> Self:
        """Forget what was learned, and learn the rows once, in order.

        Parameters
        ----------
        X : array, sparse matrix or dataframe [n_rows, n_features]
        y : array or series [n_rows]
            Of two classes.
        """
        labels = self._flat(X, y)
        classes = self._classes_of(labels)
        rows = self._rows(X, reset=True)
        check_consistent_length(X, labels)
        learner = self._learner_for(classes)
        learn = getattr(learner, "fit", learner.learn_many)  # the semi-supervised ones refit once, at the end
        self.learner_ = learn(rows, self._coded(labels, classes))
        self.classes_ = classes
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Learn further rows.

        Parameters
        ----------
        X : array, sparse matrix or dataframe [n_rows, n_features]
        y : array or series [n_rows]
        classes : array-like of two labels, or None
            Needed in the first call, unless `y` holds both.
        """
        first = not hasattr(self, "learner_")
        labels = self._flat(X, y)
        known = self._known_classes(labels, classes) if first else self.classes_
        if not first and classes is not None and not np.array_equal(known, np.unique(classes)):
            raise BadLabel(f"{self._who}: classes must be those of the first call, {known!r}, got {classes!r}")
        rows = self._rows(X, reset=first)
        check_consistent_length(X, labels)
        learner = self._learner_for(known) if first else self.learner_
        self.learner_ = learner.learn_many(rows, self._coded(labels, known))
        self.classes_ = known
        return self

    def decision_function(self, X: Any) -> FloatArray:
        """Return the ranking scores less the score at which the decision changes: float64[n_rows]."""
        rows = self._known_rows(X)
        scores: FloatArray = self.learner_.score_many(rows) - self.learner_.even_score()
        return scores

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of each class: float64[n_rows, n_classes]."""
        rows = self._known_rows(X)
        chances: FloatArray = self.learner_.predict_proba_many(rows)
        seen = [label is not None for label in self.learner_.label_pair()]
        if all(seen) or len(self.classes_) == 1:
            return chances
        # One class was seen, or none yet: all of it, or nothing to choose by.
        return np.tile(np.divide(seen, sum(seen)) if any(seen) else np.full(2, 0.5), (len(chances), 1))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of each row, in the dtype of `classes_`; never an abstention."""
        rows = self._known_rows(X)
        return self.classes_[self._decided(rows)[0]]

    def predict_reject(self, X: Any, reject_label: Any = None) -> NDArray[Any]:
        """Return the class of each row, and `reject_label` where the learner abstains.

        Parameters
        ----------
        X : array, sparse matrix or dataframe [n_rows, n_features]
        reject_label : label or None

        Returns
        -------
        array [n_rows]
            Of objects where `reject_label` is None, else of a dtype that holds it and the classes.
        """
        rows = self._known_rows(X)
        index, abstains = self._decided(rows)
        labels = self.classes_[index]
        if reject_label is None:
            labels = labels.astype(object)
            labels[abstains] = None
            return labels
        return np.where(abstains, np.asarray(reject_label), labels)

    def _decided(self, rows: Any) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return the index of each row's class, forced where the learner abstains, and where it does."""
        named = self.learner_.predict_many(rows)
        abstains = np.array([label is None for label in named] if named.dtype == object else [False] * len(named))
        index = np.zeros(len(named), dtype=np.int64)
        if len(self.classes_) == 2:
            index[:] = named == self.classes_[1]
            if abstains.any():
                above = self.learner_.score_many(rows) > self.learner_.even_score()
                index[abstains] = above[abstains]
        return index, abstains

    # Labels

    @property
    def _semi_supervised(self) -> bool:
        return bool(getattr(self.learner_type, "learns_unlabelled", False))

    def _flat(self, X: Any, y: Any) -> NDArray[Any]:
        """Return y as a 1-D array, None for no label where the learner takes that."""
        if y is None:
            raise ValueError(f"{self._who}: requires y to be passed, but the target y is None")
        refuse_other_index(self._who, X, y)
        labels: NDArray[Any] = column_or_1d(y, warn=True)
        if self._semi_supervised and labels.dtype.kind in "fO":
            missing = np.array([is_missing(label) for label in labels.tolist()], dtype=bool)
            if missing.any():
                check_classification_targets(np.array(labels[~missing].tolist()))
                labels = labels.astype(object)
                labels[missing] = None
                return labels
        assert_all_finite(labels, input_name="y")
        check_classification_targets(labels)
        return labels

    def _present(self, labels: NDArray[Any]) -> NDArray[Any]:
        """Return the labels without the missing ones, in a dtype of their own."""
        if labels.dtype != object:
            return labels
        there = [label for label in labels.tolist() if label is not None]
        return np.array(there) if len(there) < len(labels) else labels

    def _classes_of(self, labels: NDArray[Any]) -> NDArray[Any]:
        present = self._present(labels)
        classes = np.unique(present)
        if self._semi_supervised and len(classes) == 3 and classes.dtype.kind in "if":
            classes = classes[classes != UNLABELLED]
        if len(classes) > 2:
            kind = type_of_target(present, input_name="y")
            raise BadLabel(f"{self._who}: Only binary classification is supported. The type of the target is {kind}.")
        if len(classes) == 0:
            raise BadLabel(f"{self._who}: y must have one label at least, got none")
        return classes

    def _known_classes(self, labels: NDArray[Any], classes: Any) -> NDArray[Any]:
        known = self._classes_of(labels if classes is None else np.asarray(classes))
        if len(known) < 2:
            raise BadLabel(f"{self._who}: classes must be two labels in the first call to partial_fit, got {known!r}")
        return known

    def _learner_for(self, classes: NDArray[Any]) -> Any:
        return self._untrained(positive=classes[1] if len(classes) == 2 else None)

    def _coded(self, labels: NDArray[Any], classes: NDArray[Any]) -> NDArray[Any]:
        """Return the labels as the learner takes them; refuse those that are no class."""
        known = np.isin(self._comparable(labels, classes), classes)
        if known.all():
            return labels
        out = labels.astype(object)
        for i in np.flatnonzero(~known):
            if not (self._semi_supervised and (out[i] is None or out[i] == UNLABELLED)):
                raise BadLabel(f"{self._who}: y must be of the classes {classes.tolist()}, got {out[i]!r}")
            out[i] = None
        return out

    @staticmethod
    def _comparable(labels: NDArray[Any], classes: NDArray[Any]) -> NDArray[Any]:
        """Return labels without None, which cannot be sorted: it becomes what is surely no class."""
        if labels.dtype != object:
            return labels
        nothing = "".join(str(label) for label in classes) + "?" if classes.dtype.kind in "UO" else np.nan
        return np.array([nothing if label is None else label for label in labels.tolist()])
