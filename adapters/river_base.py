"""What makes a streamlearn learner a River estimator: River's verbs and conventions around the bare learner.

A subclass names its learner in its first line; parameters, their defaults and documentation are the learner's own. All
of the state lies in the learner, so that pickling, copying and cloning need no more than River has.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Self

import numpy as np
from river import base

from streamlearn.contracts import FloatArray, Label
from streamlearn.errors import BadParameter
from streamlearn.features.frames import frame_like, from_many, from_one, is_mappings
from streamlearn.learners.base import BinaryScorer
from streamlearn.learners.learner import Learner
from streamlearn.learners.regressor import Regressor
from streamlearn.learners.transformer import Estimator, Transformer

Event = dict[base.typing.FeatureName, Any]


class Adapted(base.Estimator):
    """Base of all estimators here.

    Parameters of the class statement
    ---------------------------------
    learner : type of Learner
        The learner behind the estimator.
    mutable : iterable of str
        Parameters that may be changed in mid-stream by ``mutate``.
    """

    _learner_class: ClassVar[type[Learner]]
    _mutable: ClassVar[frozenset[str]]

    def __init_subclass__(
        cls, *, learner: type[Learner] | None = None, mutable: Iterable[str] = (), **rest: Any
    ) -> None:
        super().__init_subclass__(**rest)
        if learner is None:
            return
        cls._learner_class = learner
        cls._mutable = frozenset(mutable)
        cls.__init__ = _constructor(learner)  # type: ignore[method-assign]  # River reads the signature of the class
        cls.__doc__ = f"{cls.__doc__}\n\n{_documentation_of(learner)}"
        for name in learner.parameter_names():
            setattr(cls, name, _parameter(name))

    @classmethod
    def from_learner(cls, learner: Learner) -> Self:
        """Return the estimator around a learner, for example one that `streamlearn.load` read.

        Raises
        ------
        BadParameter
            It is of another class.
        """
        if type(learner) is not cls._learner_class:
            raise BadParameter(f"{cls.__name__}: learner must be a streamlearn.{cls.__name__}, got {learner!r}")
        made = cls.__new__(cls)
        made._learner = learner
        return made

    @property
    def learner(self) -> Any:
        """The bare learner: its `save`, `state` and further verbs."""
        return self._learner

    _learner: Any

    @property
    def _mutable_attributes(self) -> set[str]:
        return set(self._mutable)

    def _change(self, name: str, value: Any) -> None:
        """Go on from the present state with another value of one parameter, checked as by the constructor."""
        state = self._learner.state()
        state["parameters"] = self._learner.clone(**{name: value}).state()["parameters"]
        self._learner = self._learner_class.from_state(state)


def _constructor(learner: type[Learner]) -> Callable[..., None]:
    def __init__(self: Adapted, *args: Any, **params: Any) -> None:  # noqa: N807 - it becomes the method of that name
        self._learner = learner(*args, **params)

    __init__.__signature__ = inspect.signature(learner.__init__)  # type: ignore[attr-defined]
    return __init__


def _parameter(name: str) -> property:
    def get(self: Adapted) -> Any:
        return self._learner.params()[name]

    def change(self: Adapted, value: Any) -> None:
        if name not in self._mutable:
            raise AttributeError(f"{type(self).__name__}: {name} cannot be changed in mid-stream; use clone")
        self._change(name, value)

    return property(get, change)


def _documentation_of(learner: type[Learner]) -> str:
    """Return the learner's documentation without its examples, which are not of the estimator."""
    return (inspect.getdoc(learner) or "").partition("\nExamples\n")[0].strip()


class AdaptedClassifier(Adapted, base.MiniBatchClassifier):
    """Base of the binary classifiers.

    Labels are any two values; of bools both are known before they were seen. `predict_one` is None where the learner
    abstains, and before it saw a label.
    """

    _learner: BinaryScorer

    def learn_one(self, x: Event, y: Any = None) -> None:
        """Learn one event; ``y=None`` is an unlabelled one, from which only a semi-supervised learner learns."""
        self._learner.learn_one(x, y)

    def learn_many(self, X: Any, y: Any = None) -> None:
        """Learn a frame (pandas, polars, pyarrow), the same bit for bit as row by row."""
        self._learner.learn_many(X, y)

    def predict_one(self, x: Event, **_: Any) -> Any:
        """Return the more probable label, or None to abstain."""
        return self._learner.predict_one(x)

    def predict_proba_one(self, x: Event, **_: Any) -> dict[Any, float]:
        """Return {label: probability}; before both were seen {False: ..., True: ...} unless labels are other values."""
        forecast = self._learner.predict_proba_one(x)
        if len(forecast) != 2 and (names := self._bools()) is not None:
            positive = float(self._probabilities([x])[0])
            return dict(zip(names, (1.0 - positive, positive), strict=True))
        return forecast

    def score_one(self, x: Event) -> float:
        """Return the ranking score: higher means more likely positive."""
        return self._learner.score_one(x)

    def predict_many(self, X: Any) -> Any:
        """Return a series of labels with the index of X, None where the learner abstains."""
        return self._learner.predict_many(X)

    def predict_proba_many(self, X: Any) -> Any:
        """Return a frame of X's kind with a column a label."""
        if None in self._learner.label_pair() and (names := self._bools()) is not None:
            positive = self._probabilities(X)
            return frame_like(X, dict(zip(names, (1.0 - positive, positive), strict=True)))
        return self._learner.predict_proba_many(X)

    def score_many(self, X: Any) -> Any:
        """Return a series of ranking scores with the index of X."""
        return self._learner.score_many(X)

    @property
    def _multiclass(self) -> bool:
        return False

    def _bools(self) -> tuple[Label, Label] | None:
        """Return the negative and the positive label where one of them or both must still be guessed to be bools."""
        seen = [label for label in self._learner.label_pair() if label is not None]
        wanted = self._learner.positive
        if not all(isinstance(label, (bool, np.bool_)) for label in [*seen, *([] if wanted is None else [wanted])]):
            return None
        return (True, False) if wanted is not None and not wanted else (False, True)

    def _probabilities(self, X: Any) -> FloatArray:
        """Return P(positive) of events, whether or not the labels have names yet."""
        who = self._learner.name
        blocks = [from_one(who, x) for x in X] if is_mappings(X) else [from_many(who, X)]
        return np.concatenate([self._learner.forecast_columns(*block)[0].probabilities for block in blocks])


class AdaptedRegressor(Adapted, base.MiniBatchRegressor):
    """Base of the regressors."""

    _learner: Regressor

    def learn_one(self, x: Event, y: Any = None) -> None:
        """Learn one event; nothing from ``y=None``."""
        self._learner.learn_one(x, y)

    def learn_many(self, X: Any, y: Any = None) -> None:
        """Learn a frame (pandas, polars, pyarrow), the same bit for bit as row by row."""
        self._learner.learn_many(X, y)

    def predict_one(self, x: Event, **_: Any) -> float:
        """Return the predicted number."""
        return self._learner.predict_one(x)

    def predict_many(self, X: Any) -> Any:
        """Return a series of predictions with the index of X."""
        return self._learner.predict_many(X)


class AdaptedTransformer(Adapted, base.MiniBatchTransformer):
    """Base of the estimators without a target: how far an event lies from what was learned, as a feature."""

    _learner: Estimator

    def learn_one(self, x: Event) -> None:
        """Learn one event."""
        self._learner.learn_one(x)

    def learn_many(self, X: Any) -> None:
        """Learn a frame (pandas, polars, pyarrow), the same bit for bit as row by row."""
        self._learner.learn_many(X)

    def transform_one(self, x: Event) -> Event:
        """Return {"distance": ...}."""
        return {"distance": self._learner.error_one(x)}

    def transform_many(self, X: Any) -> Any:
        """Return a frame of X's kind, index kept, with the column ``distance``."""
        errors = self._learner.error_many(X)
        return frame_like(X, {"distance": np.asarray(errors, dtype=np.float64)})

    def score_one(self, x: Event) -> float:
        """Return how far the event lies from what was learned, as an anomaly score."""
        return self._learner.error_one(x)


class AdaptedProjector(AdaptedTransformer):
    """Base of the estimators that project events on what they learned."""

    _learner: Transformer

    def transform_one(self, x: Event) -> Event:
        """Return {"component_0": ..., ...}."""
        projected: Event = self._learner.transform_one(x)
        return projected

    def transform_many(self, X: Any) -> Any:
        """Return a frame of X's kind, index kept, with a column a component."""
        return self._learner.transform_many(X)
