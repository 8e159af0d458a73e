"""Members that the user brought, in a model: their columns, their votes, and votes made without a row's own label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from streamlearn import snapshot
from streamlearn.contracts import Document, FloatArray, IntArray
from streamlearn.errors import BadSnapshot
from streamlearn.learners.muffled.own import Own, Recipe, Trained
from streamlearn.learners.muffled.sample import N_FOLDS, Sample

_SEEDS = 5000  # beyond the counts of the other members


@dataclass(frozen=True, slots=True)
class OwnLayer:
    """A trained member in a model.

    Attributes
    ----------
    member : Trained
    columns : int64[n_member_features]
        Where its features stand in the rows of the model.
    """

    kind: ClassVar[str] = "own"
    on_ranks: ClassVar[bool] = False

    member: Trained
    columns: IntArray

    @property
    def names(self) -> tuple[str, ...]:
        """Name of the vote."""
        return (self.member.title,)

    def votes(self, X: FloatArray) -> FloatArray:
        """Return float64[n_rows, 1]."""
        return self.member.votes(np.ascontiguousarray(X[:, self.columns]))[:, None]

    def widened(self, n_features: int) -> OwnLayer:
        """Return the same member: further features count for nothing."""
        return self

    def document(self) -> Document:
        """Return what is not in arrays."""
        return self.member.document()

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by name."""
        return {"columns": self.columns} | {f"own/{name}": array for name, array in self.member.arrays().items()}

    @classmethod
    def from_arrays(cls, who: str, document: Document, arrays: dict[str, NDArray[Any]], affine: FloatArray) -> OwnLayer:
        """Return what `document` and `arrays` gave, checked."""
        member = Trained.from_arrays(who, document, snapshot.below("own", arrays))
        columns = arrays.get("columns", np.empty(0))
        wanted, width = len(member.voter.names), affine.shape[1]
        fits = columns.dtype == np.int64 and columns.shape == (wanted,)
        if not fits or (columns < 0).any() or (columns >= width).any():
            raise BadSnapshot(f"{who}: the columns of a member must be {wanted} of {width}, got {columns!r}")
        return cls(member, columns)


def own_layer(sample: Sample, own: Own, columns: IntArray, count: int) -> tuple[OwnLayer, FloatArray]:
    """Return the member for a model, and its votes on the labelled rows, made without a row's own label.

    Parameters
    ----------
    sample : Sample
    own : Trained or Recipe
    columns : int64[n_member_features]
        Of a trained one's features.
    count : int
        Of the members that the user brought.
    """
    if isinstance(own, Trained):
        layer = OwnLayer(own, columns)
        return layer, layer.votes(sample.labelled)
    seed = sample.derived(_SEEDS + count) % 2**31
    held_out = np.empty((len(sample.y), 1))
    for fold in range(N_FOLDS):
        outside = sample.folds == fold
        trained = _trained_layer(own, sample.labelled[~outside], sample.y[~outside], seed)
        held_out[outside] = trained.votes(sample.labelled[outside])
    return _trained_layer(own, sample.labelled, sample.y, seed), held_out


def _trained_layer(own: Recipe, rows: FloatArray, y: FloatArray, seed: int) -> OwnLayer:
    trained = own.train(rows, y, seed)
    return OwnLayer(trained, np.array(trained.voter.names, dtype=np.int64))
