"""What models that learned apart have to agree on before they are merged: parameters, features, labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from streamlearn.contracts import FeatureName, IntArray
from streamlearn.errors import BadParameter
from streamlearn.learners.base import BinaryScorer
from streamlearn.learners.labels import LabelPair
from streamlearn.learners.learner import Learner

L = TypeVar("L", bound=Learner)


@dataclass(frozen=True, slots=True)
class Ground(Generic[L]):
    """The common ground of some models.

    Attributes
    ----------
    first : Learner
        The one that the others are compared with.
    names : tuple of str or int
        All features, in the order in which the models list them.
    labels : LabelPair or None
        All labels; None for learners without classes.
    """

    first: L
    names: tuple[FeatureName, ...]
    labels: LabelPair | None

    @classmethod
    def of(cls, models: Sequence[L]) -> Ground[L]:
        """Look at models.

        Raises
        ------
        BadParameter
            They are of different classes or have different parameters, or there is none.
        BadLabel
            Together they have more than two labels.
        TooManyFeatures
            Together they have too many features.
        """
        if not models:
            raise BadParameter("merge: models must be one or more, got none")
        first = models[0]
        for model in models:
            if type(model) is not type(first) or model.params() != first.params():
                raise BadParameter(f"merge: models must be alike, got {first!r} and {model!r}")
        names: dict[FeatureName, None] = {}
        for model in models:
            first._features.refuse_other_kind(model.feature_names)
            names |= dict.fromkeys(model.feature_names)
        return cls(first, tuple(names), _joint_labels(models))

    def blank(self) -> L:
        """Return an untrained model that knows features and labels."""
        made = self.first.clone()
        if self.names:
            made.begin(self.names)
        if isinstance(made, BinaryScorer) and self.labels is not None:
            made._set_labels(self.labels.copy())
        return made

    def places(self, model: L) -> IntArray:
        """Return the common column of each of the model's: int64[model.n_features]."""
        place = {name: k for k, name in enumerate(self.names)}
        return np.array([place[name] for name in model.feature_names], dtype=np.int64)

    def oriented(self, model: L) -> L:
        """Return the model with the classes in the common order: itself, or a copy of one that knew one label only."""
        if self.labels is None or not isinstance(model, BinaryScorer):
            return model
        have, want = model._labels, self.labels
        crossed = (have.negative is not None and have.negative == want.positive) or (
            have.positive is not None and have.positive == want.negative
        )
        if not crossed:
            return model
        turned = type(model).from_state(model.state())
        turned._swap_classes()
        turned._set_labels(want.copy())
        return turned


def _joint_labels(models: Sequence[Learner]) -> LabelPair | None:
    first = models[0]
    if not isinstance(first, BinaryScorer):
        return None
    pair = LabelPair(first.name, first.positive)
    for model in models:
        if isinstance(model, BinaryScorer):
            for label in (model._labels.negative, model._labels.positive):
                pair.take(label)
    return pair
