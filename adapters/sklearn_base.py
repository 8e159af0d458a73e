"""What the scikit-learn estimators share: parameters of a learner, rows and labels checked as scikit-learn does."""

from __future__ import annotations

import inspect
import re
import warnings
from typing import Any, ClassVar, Self

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, RegressorMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted, column_or_1d, validate_data

from streamlearn.contracts import FloatArray
from streamlearn.features.frames import Columns, from_frame, refuse_other_index
from streamlearn.learners.base import BinaryScorer
from streamlearn.learners.learner import Learner
from streamlearn.learners.registry import learner_class

# The positive class is the second of `classes_` everywhere in scikit-learn.
DECIDED_BY_CLASSES = ("positive",)

_PARAMETERS = re.compile(r"^Parameters\n-+\n.*?(?=^\w[^\n]*\n-+\n|\Z)", re.MULTILINE | re.DOTALL)


class OnlineEstimator(BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """Base of the estimators: a subclass names its learner and gets its parameters, defaults and their documentation.

    ``class Name(Base, learner="Name")`` is all that a new learner needs.

    Attributes
    ----------
    learner_ : streamlearn learner
        Trained; everything that is not scikit-learn's, such as `save`, is asked of it.
    n_features_in_ : int
    feature_names_in_ : object[n_features_in_]
        Only where rows came in frames whose columns have text names.
    """

    learner_type: ClassVar[type[Learner]]
    learner_: Any
    n_features_in_: int

    def __init_subclass__(cls, learner: str = "", **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if learner:
            cls.learner_type = learner_class(learner)
            cls.__init__ = _initialiser(cls.learner_type)  # type: ignore[method-assign]
            found = _PARAMETERS.search(inspect.getdoc(cls.learner_type) or "")
            cls.__doc__ = f"{inspect.getdoc(cls)}\n\n{found.group() if found else ''}"

    @property
    def _who(self) -> str:
        return type(self).__name__

    def _allows_missing(self) -> bool:
        return getattr(self, "missing", "refuse") != "refuse"

    def _takes_sparse(self) -> bool:
        # The others would need all rows at once as a dense block, which nobody asked for.
        return issubclass(self.learner_type, BinaryScorer)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._takes_sparse()
        tags.input_tags.allow_nan = self._allows_missing()
        return tags

    def __getstate__(self) -> Any:
        # The learner's own state: arrays that are mapped from a file read-only could not be learned into.
        state = dict(super().__getstate__())
        if "learner_" in state:
            learner = state["learner_"]
            state["learner_"] = (learner.clone(), learner.state())
        return state

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)
        if "learner_" in state:
            self.learner_, saved = state["learner_"]
            self.learner_.restore(saved)

    def _untrained(self, **more: Any) -> Any:
        return self.learner_type(**self.get_params(deep=False), **more)

    def _rows(self, X: Any, *, reset: bool) -> Any:
        """Return X as its learner takes it: float64[n_rows, n_features], such rows with names, or a sparse matrix.

        Frames go to `from_frame`, which refuses or uses each column by its kind, without a detour by objects.
        """
        finite: Any = "allow-nan" if self._allows_missing() else True
        if nw.dependencies.is_into_dataframe(X):
            _, values = from_frame(self._who, X, missing=self._allows_missing())
            validate_data(self, X, reset=reset, skip_check_array=True)
            values = check_array(values, dtype=np.float64, ensure_all_finite=finite, input_name="X", estimator=self)
        else:
            accepted = "csr" if self._takes_sparse() else False
            # Numbers of any kind, then float64: asking for float64 at once would read text as numbers.
            checked = validate_data(
                self, X, reset=reset, dtype="numeric", accept_sparse=accepted, ensure_all_finite=finite
            )
            values = checked.astype(np.float64, copy=False)
        names = getattr(self, "feature_names_in_", None)
        return values if names is None or sparse.issparse(values) else Columns(tuple(names.tolist()), values)

    def _known_rows(self, X: Any) -> Any:
        check_is_fitted(self)
        return self._rows(X, reset=False)

    def _in_input_order(self, values: FloatArray) -> FloatArray:
        """Return float64[..., n_features_in_] of values in the learner's order, which is that of first non-zeros."""
        names = getattr(self, "feature_names_in_", np.arange(self.n_features_in_)).tolist()
        place = {name: j for j, name in enumerate(names)}
        out = np.zeros((*values.shape[:-1], self.n_features_in_))
        out[..., [place[name] for name in self.learner_.feature_names]] = values
        return out

    def _warn_if_nothing_estimated(self, n_rows: int) -> None:
        learner = self.learner_
        if getattr(learner, "n_batches_", 1) == 0:
            warnings.warn(
                f"{self._who}: fit must get batch_size={learner.batch_size} rows before anything is estimated, "
                f"got {n_rows}",
                UserWarning,
                stacklevel=3,
            )


def _initialiser(learner: type[Learner]) -> Any:
    """Return an ``__init__`` with the parameters of the learner, which are stored and checked in `fit`."""
    here = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    theirs = [p for p in inspect.signature(learner).parameters.values() if p.name not in DECIDED_BY_CLASSES]
    signature = inspect.Signature([here, *theirs])

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - it becomes the method of this name
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        for name, value in list(bound.arguments.items())[1:]:
            setattr(self, name, value)

    __init__.__signature__ = signature  # type: ignore[attr-defined]  # get_params and clone read it
    return __init__


class OnlineRegressor(RegressorMixin, OnlineEstimator):  # type: ignore[misc]
    """Base of regressors."""

    def fit(self, X: Any, y: Any) -> Self:
        """Forget what was learned, and learn the rows once, in order.

        Parameters
        ----------
        X : array or dataframe [n_rows, n_features]
        y : array or series [n_rows]
            Finite numbers.
        """
        rows, targets = self._rows_and_targets(X, y, reset=True)
        self.learner_ = self._untrained().learn_many(rows, targets)
        self._warn_if_nothing_estimated(len(targets))
        return self

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Learn further rows; the same as one `fit` on all of them, bit for bit."""
        first = not hasattr(self, "learner_")
        rows, targets = self._rows_and_targets(X, y, reset=first)
        learner = self._untrained() if first else self.learner_
        self.learner_ = learner.learn_many(rows, targets)
        return self

    def _rows_and_targets(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, FloatArray]:
        if y is None:
            raise ValueError(f"{self._who}: requires y to be passed, but the target y is None")
        refuse_other_index(self._who, X, y)
        rows = self._rows(X, reset=reset)
        flat = column_or_1d(y, warn=True)
        targets: FloatArray = check_array(flat, ensure_2d=False, dtype=np.float64, input_name="y", estimator=self)
        check_consistent_length(X, targets)
        return rows, targets

    def predict(self, X: Any) -> FloatArray:
        """Return the predictions: float64[n_rows]."""
        rows = self._known_rows(X)
        predicted: FloatArray = self.learner_.predict_many(rows)
        return predicted


class OnlineOutlierScorer(OnlineEstimator):
    """Base of estimators that learn from rows alone and tell how far a row lies off."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Forget what was learned, and learn the rows once, in order; `y` is ignored."""
        rows = self._rows(X, reset=True)
        self.learner_ = self._untrained().learn_many(rows)
        self._warn_if_nothing_estimated(len(rows))
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn further rows; the same as one `fit` on all of them, bit for bit."""
        first = not hasattr(self, "learner_")
        rows = self._rows(X, reset=first)
        learner = self._untrained() if first else self.learner_
        self.learner_ = learner.learn_many(rows)
        return self

    def score_samples(self, X: Any) -> FloatArray:
        """Return minus the distance of each row, float64[n_rows]: the lower, the more abnormal."""
        rows = self._known_rows(X)
        scores: FloatArray = -self.learner_.error_many(rows)
        return scores


class OnlineTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, OnlineOutlierScorer):  # type: ignore[misc]
    """Base of transformers."""

    n_components: int

    @property
    def _n_features_out(self) -> int:
        return self.n_components

    def transform(self, X: Any) -> NDArray[Any]:
        """Return the projections: float64[n_rows, n_components]."""
        rows = self._known_rows(X)
        projected: NDArray[Any] = self.learner_.transform_many(rows)
        return projected
