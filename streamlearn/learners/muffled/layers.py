"""A model with further members behind its own: brought by the user, learned on unlabelled rows, or on ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from streamlearn import snapshot
from streamlearn.contracts import Document, FloatArray, IntArray
from streamlearn.errors import BadSnapshot, StreamlearnError
from streamlearn.kernels import muffled as kernels
from streamlearn.learners.muffled.clusters import Clusters
from streamlearn.learners.muffled.model import Model, Voting
from streamlearn.learners.muffled.own_layer import OwnLayer
from streamlearn.learners.muffled.ranks import RankLayer
from streamlearn.learners.muffled.sample import Warm
from streamlearn.learners.muffled.unlabelled import Embedded


class Layer(Protocol):
    """Members that vote on rows in their own way."""

    kind: ClassVar[str]
    on_ranks: ClassVar[bool]
    """The rows are ranks instead of values."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the votes."""
        ...

    def votes(self, X: FloatArray) -> FloatArray:
        """Return float64[n_rows, n_votes]; a row's votes do not depend on the others."""
        ...

    def widened(self, n_features: int) -> Layer:
        """Return the same members for rows with more features, which count for nothing."""
        ...

    def document(self) -> Document:
        """Return JSON values: what is not in arrays."""
        ...

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by name."""
        ...


@dataclass(frozen=True, slots=True)
class Extra:
    """A fitted layer with its votes.

    Attributes
    ----------
    layer : Layer
    held_out : float64[n_labelled, n_votes]
        Made without a row's own label.
    on_unlabelled : float64[n_unlabelled, n_votes]
    """

    layer: Layer
    held_out: FloatArray
    on_unlabelled: FloatArray


@dataclass(frozen=True, slots=True)
class PartLayer:
    """The forecast of a whole model that learned other events: one vote.

    Attributes
    ----------
    title : str
    model : Voting
    columns : int64[n_model_features]
        Where its features stand in the rows.
    """

    kind: ClassVar[str] = "part"
    on_ranks: ClassVar[bool] = False

    title: str
    model: Voting
    columns: IntArray

    @property
    def names(self) -> tuple[str, ...]:
        """Name of the vote."""
        return (self.title,)

    def votes(self, X: FloatArray) -> FloatArray:
        """Return float64[n_rows, 1], in [-1, 1]."""
        out = np.empty(len(X))
        self.model.score(np.ascontiguousarray(X[:, self.columns]), out)
        return np.clip(out, -1.0, 1.0)[:, None]

    def widened(self, n_features: int) -> PartLayer:
        """Return the same forecast: further features count for nothing."""
        return self

    def document(self) -> Document:
        """Return what is not in arrays."""
        return {"title": self.title, "votes": list(self.model.names), "layers": self.model.documents()}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by name."""
        return {"columns": self.columns, **snapshot.nest("model", self.model.arrays())}

    @classmethod
    def from_arrays(
        cls, who: str, document: Document, arrays: dict[str, NDArray[Any]], affine: FloatArray
    ) -> PartLayer:
        """Return what `document` and `arrays` gave, checked."""
        title, columns, width = document.get("title"), arrays.get("columns", np.empty(0)), affine.shape[1]
        names, documents = checked_numbers(who, document)
        if any(one.get("kind") == cls.kind for one in documents):
            raise BadSnapshot(f"{who}: a part of the saved state must not be merged itself")
        fits = columns.dtype == np.int64 and columns.ndim == 1 and isinstance(title, str)
        if not fits or (columns < 0).any() or (columns >= width).any():
            raise BadSnapshot(f"{who}: the columns of a part must be of {width}, got {columns!r}")
        inner = snapshot.below("model", arrays)
        return cls(str(title), model_from_arrays(who, inner, names, len(columns), documents), columns)


_KINDS: dict[str, type[OwnLayer | Embedded | Clusters | RankLayer | PartLayer]] = {
    OwnLayer.kind: OwnLayer,
    Embedded.kind: Embedded,
    Clusters.kind: Clusters,
    RankLayer.kind: RankLayer,
    PartLayer.kind: PartLayer,
}


class Layered:
    """A model with layers behind it; used like a `Model`.

    Rows are those of the base model, or twice as wide: values, then ranks.
    """

    def __init__(self, base: Model, layers: Sequence[Layer], more_weights: FloatArray, evidence: FloatArray) -> None:
        self.base = base
        self.layers = tuple(layers)
        self.evidence = evidence
        self.names = (*base.names, *(name for layer in layers for name in layer.names))
        self._more = more_weights

    @property
    def weights(self) -> FloatArray:
        """What each vote weighs: float64[n_votes]."""
        return np.concatenate([self.base.weights, self._more])

    @property
    def used(self) -> dict[str, NDArray[np.bool_]]:
        """Which labelled rows the trees of each forest saw."""
        return self.base.used

    def score(self, X: FloatArray, out: FloatArray) -> FloatArray:
        """Write the scores of rows into out[n_rows]; return the votes."""
        width = self.base.affine.shape[1]
        values = self.base.values_of(X)
        votes = np.empty((len(X), len(self.names)))
        n_base = len(self.base.names)
        votes[:, :n_base] = self.base.score(values, out)
        at = n_base
        for layer in self.layers:
            more = layer.votes(np.ascontiguousarray(X[:, width:]) if layer.on_ranks else values)
            votes[:, at : at + more.shape[1]] = more
            at += more.shape[1]
        kernels.add_votes(votes[:, n_base:], self._more, out)
        return votes

    def widened(self, n_features: int) -> Layered:
        """Return the same model for rows with more features, which count for nothing."""
        layers = [layer.widened(n_features) for layer in self.layers]
        return Layered(self.base.widened(n_features), layers, self._more, self.evidence)

    def documents(self) -> list[Document]:
        """Return what is not in arrays, a document a layer."""
        return [{"kind": layer.kind, **layer.document()} for layer in self.layers]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of the model by name."""
        more = {"more_weights": self._more, "all_evidence": self.evidence}
        for number, layer in enumerate(self.layers):
            more |= snapshot.nest(str(number), layer.arrays())
        return self.base.arrays() | more


def handed_on(model: Voting, n_labelled: int, n_new: int) -> Warm | None:
    """Return what a model hands on to the next refit; None where its forests do not know which rows they saw.

    Parameters
    ----------
    model : Voting
    n_labelled, n_new : int
        Labelled rows in the buffer, and how many of them came since the model was fitted.
    """
    base = model.base if isinstance(model, Layered) else model
    if not isinstance(base, Model) or not base.used:
        return None
    # Rows that came since the last refit were seen by no tree.
    used = {
        name: np.vstack([seen, np.zeros((n_new, seen.shape[1]), dtype=np.bool_)])[-n_labelled:]
        for name, seen in base.used.items()
    }
    return Warm(base.affine, {name: base.trees_named(name) for name in used}, used)


def model_from_arrays(
    who: str, arrays: dict[str, NDArray[Any]], names: Sequence[str], n_features: int, documents: Sequence[Document]
) -> Voting:
    """Return the model that `arrays` and `documents` gave, checked.

    Raises
    ------
    BadSnapshot
    """
    if not documents:
        return Model.from_arrays(who, arrays, names, n_features)
    weights, evidence = arrays.get("more_weights", np.empty(0)), arrays.get("all_evidence", np.empty(0))
    n_base = len(names) - weights.size
    base = Model.from_arrays(who, arrays, names[: max(n_base, 0)], n_features)
    layers: list[Layer] = []
    for number, document in enumerate(documents):
        kind = _KINDS.get(str(document.get("kind")))
        if kind is None:
            raise BadSnapshot(f"{who}: members of the saved state must be of {sorted(_KINDS)}, got {document!r}")
        try:
            layers.append(kind.from_arrays(who, document, snapshot.below(str(number), arrays), base.affine))
        except BadSnapshot:
            raise
        except (StreamlearnError, KeyError, TypeError, ValueError, AttributeError) as error:
            raise BadSnapshot(f"{who}: members of the saved state cannot be used: {error!r}") from error
    floats = weights.dtype == evidence.dtype == np.float64
    if not floats or weights.ndim != 1 or evidence.shape != (1 + len(names),):
        raise BadSnapshot(f"{who}: weights and evidence of the saved state must be numbers of {len(names)} votes")
    made = Layered(base, layers, weights, evidence)
    if made.names != tuple(names):
        raise BadSnapshot(f"{who}: the votes of the saved state must be {made.names}, got {tuple(names)}")
    return made


def checked_numbers(who: str, entry: Any) -> tuple[list[str], list[Document]]:
    """Return the names of the votes and the documents of the layers that a saved state has of a model.

    Raises
    ------
    BadSnapshot
    """
    votes, layers = (entry.get(name) if isinstance(entry, dict) else None for name in ("votes", "layers"))
    if isinstance(votes, list) and isinstance(layers, list):
        texts = all(isinstance(name, str) for name in votes)
        if texts and all(isinstance(layer, dict) for layer in layers):
            return votes, layers
    raise BadSnapshot(f"{who}: the saved state must have the votes and layers of its model, got {entry!r}")
