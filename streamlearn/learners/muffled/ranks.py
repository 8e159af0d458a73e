"""Members on ranks: where a sensor or a season changes, an event's rank among its neighbours in time still means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import Document, FloatArray, IntArray
from streamlearn.errors import BadSnapshot
from streamlearn.kernels import arrival as kernels
from streamlearn.learners.muffled.members import Member, extra_trees, forest, logistic
from streamlearn.learners.muffled.model import Model
from streamlearn.learners.muffled.sample import Sample
from streamlearn.learners.muffled.trees import Trees

NAMES = ("rank forest", "rank extra", "rank logistic")
WINDOW = 500
LEAST = 50
"""Ranks are those among the last unlabelled events, from so many on."""
_NUMERIC = 10  # a feature with so few values has no order worth ranking
_SEED = 4000  # beyond the counts of the other members


@dataclass(frozen=True, slots=True)
class RankLayer:
    """A forest, extremely randomised trees and a logistic regression on the ranks of numeric features.

    Attributes
    ----------
    model : Model
        On the ranks of the chosen features.
    columns : int64[n_numeric]
    """

    kind: ClassVar[str] = "ranks"
    on_ranks: ClassVar[bool] = True

    model: Model
    columns: IntArray

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the votes."""
        return NAMES

    def votes(self, X: FloatArray) -> FloatArray:
        """Return float64[n_rows, 3]."""
        rows = np.ascontiguousarray(X[:, self.columns])
        return self.model.score(rows, np.empty(len(X))).copy()

    def widened(self, n_features: int) -> RankLayer:
        """Return the same members: further features count for nothing."""
        return self

    def document(self) -> Document:
        """Return nothing: all is in arrays."""
        return {}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by name."""
        return {"columns": self.columns} | self.model.arrays()

    @classmethod
    def from_arrays(
        cls, who: str, document: Document, arrays: dict[str, NDArray[Any]], affine: FloatArray
    ) -> RankLayer:
        """Return what `arrays` gave, checked.

        Raises
        ------
        BadSnapshot
        """
        columns = arrays.get("columns", np.empty(0))
        if columns.dtype != np.int64 or columns.ndim != 1 or not _inside(columns, affine.shape[1]):
            raise BadSnapshot(f"{who}: the ranked columns of the saved state must be of {affine.shape[1]}")
        return cls(Model.from_arrays(who, arrays, NAMES, len(columns)), columns)


def _inside(columns: IntArray, width: int) -> bool:
    return bool(len(columns) and (columns >= 0).all() and (columns < width).all())


def fit_ranks(sample: Sample, n_trees: int) -> tuple[RankLayer, FloatArray] | None:
    """Fit the three members; return them and their votes on the labelled rows, made without a row's own label.

    None where no feature is numeric.
    """
    numeric = np.empty(sample.labelled.shape[1], dtype=np.bool_)
    kernels.has_more_values(np.concatenate([sample.labelled, sample.unlabelled]), _NUMERIC, numeric)
    columns = np.flatnonzero(numeric)
    if sample.labelled_ranks is None or sample.unlabelled_ranks is None or len(columns) == 0:
        return None
    labelled, unlabelled = (
        np.ascontiguousarray(ranks[:, columns]) for ranks in (sample.labelled_ranks, sample.unlabelled_ranks)
    )
    ranked = Sample(labelled, sample.y, unlabelled, sample.derived(_SEED))
    found = [make(ranked, n_trees) for make in (forest, extra_trees, logistic)]
    return RankLayer(_model(ranked, found), columns), np.hstack([member.held_out for member in found])


def _model(ranked: Sample, found: list[Member]) -> Model:
    trees = [(NAMES[k : k + 1], m.part, np.zeros(1)) for k, m in enumerate(found) if isinstance(m.part, Trees)]
    lines = [(NAMES[k], m.part, 0.0) for k, m in enumerate(found) if not isinstance(m.part, Trees)]
    return Model.of(ranked.affine, trees, lines)
