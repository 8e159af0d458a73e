"""Clusters of unlabelled rows: a member that learns on which of them a row lies, and typical rows to be labelled."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import Document, FloatArray, IntArray
from streamlearn.errors import BadSnapshot
from streamlearn.kernels import embed as kernels
from streamlearn.learners.muffled.embedding import Embedding, embedding_from
from streamlearn.learners.muffled.sample import Sample
from streamlearn.learners.muffled.unlabelled import cross_fitted, squares_between

NAME = "clusters"
SIZES = (10, 40, 100)
_C = 1.0
_FLOOR = 0.01
_LLOYD_STEPS = 30
_ROUNDING = 1e-12  # of a squared distance, relative to the rows' own squares


@dataclass(frozen=True)
class Clusters:
    """A logistic regression on the soft memberships of three sets of clusters.

    Attributes
    ----------
    embedding : Embedding
    centres : float64[n_centres, n_scores]
        Half-whitened; those of one set after those of the other.
    sets : float64[n_sets, 2]
        Centres of each set, and gamma: a membership is exp(-gamma d^2) over the sum of those of the set.
    line : float64[1 + n_centres]
        Bias and weights of the memberships.
    """

    kind: ClassVar[str] = "clusters"
    on_ranks: ClassVar[bool] = False

    embedding: Embedding
    centres: FloatArray
    sets: FloatArray
    line: FloatArray

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the votes."""
        return (NAME,)

    @cached_property
    def _columns(self) -> FloatArray:
        return np.ascontiguousarray(self.centres.T)

    def memberships(self, X: FloatArray) -> FloatArray:
        """Return float64[n_rows, n_centres]."""
        Q = self.embedding.scores(X) * self.embedding.whitening
        out = np.empty((len(X), len(self.centres)))
        kernels.memberships(Q, self._columns, self.sets, out)
        return out

    def votes(self, X: FloatArray) -> FloatArray:
        """Return float64[n_rows, 1]."""
        out = np.empty((len(X), 1))
        kernels.logistic_votes(self.memberships(X), self.line, out)
        return out

    def widened(self, n_features: int) -> Clusters:
        """Return the same member for rows with more features, which count for nothing."""
        return replace(self, embedding=self.embedding.widened(n_features))

    def document(self) -> Document:
        """Return nothing: all is in arrays."""
        return {}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by name."""
        return self.embedding.arrays() | {"centres": self.centres, "sets": self.sets, "line": self.line}

    @classmethod
    def from_arrays(cls, who: str, document: Document, arrays: dict[str, NDArray[Any]], affine: FloatArray) -> Clusters:
        """Return what `arrays` gave, with the affine map of the base model.

        Raises
        ------
        BadSnapshot
        """
        embedding = embedding_from(who, arrays, affine)
        centres, sets, line = (arrays[name] for name in ("centres", "sets", "line"))
        floats = centres.dtype == sets.dtype == line.dtype == np.float64
        fits = floats and centres.shape == (len(centres), len(embedding.sd)) and sets.shape == (len(sets), 2)
        if not fits or line.shape != (1 + len(centres),) or (sets < 0).any() or sets[:, 0].sum() != len(centres):
            raise BadSnapshot(f"{who}: the clusters of the saved state do not fit together")
        return cls(embedding, centres, sets, line)


def fit_clusters(sample: Sample) -> tuple[Clusters, FloatArray] | None:
    """Fit the member; return it and its votes on the labelled rows, made without a row's own label.

    None where the unlabelled rows are all alike.
    """
    embedding = Embedding.of(sample)
    if len(embedding.sd) == 0:
        return None
    Q = embedding.scores(sample.unlabelled) * embedding.whitening
    floor = max(_FLOOR * float(Q.var(axis=0).sum()), 1e-300)
    found, sets = [], []
    for count, size in enumerate(SIZES):
        centres = centres_of(Q, size, sample.generator(904 + count))
        # The floor matters: among duplicated rows the distance to the centre is 0.
        typical = float(squares_between(Q, centres).min(axis=1).mean())
        found.append(centres)
        sets.append([len(centres), 1.0 / (2.0 * max(typical, floor))])
    centres = np.ascontiguousarray(np.vstack(found))
    blank = Clusters(embedding, centres, np.array(sets), np.zeros(1 + len(centres)))
    bias, w, held_out = cross_fitted(sample, blank.memberships(sample.labelled), _C)
    return replace(blank, line=np.concatenate([[bias], w])), held_out[:, None]


def centres_of(Q: FloatArray, k: int, generator: np.random.Generator) -> FloatArray:
    """Return the centres of at most k clusters: float64[<= k, n_scores].

    k-means++ starts (Arthur and Vassilvitskii 2007), Lloyd's steps. Fewer where fewer rows differ.
    """
    centres = Q[[int(generator.integers(len(Q)))]]
    nearest = squares_between(Q, centres)[:, 0]
    alike = _ROUNDING * float(np.square(Q).sum(axis=1).max())
    while len(centres) < k and nearest.max() > alike:
        pick = int(np.searchsorted(np.cumsum(nearest), generator.random() * nearest.sum()))
        centres = np.vstack([centres, Q[min(pick, len(Q) - 1)]])
        nearest = np.minimum(nearest, squares_between(Q, centres[-1:])[:, 0])
    for _ in range(_LLOYD_STEPS):
        own = squares_between(Q, centres).argmin(axis=1)
        centres = np.vstack([Q[own == c].mean(axis=0) if (own == c).any() else centres[c] for c in range(len(centres))])
    return np.asarray(centres)


def medoids(sample: Sample, k: int) -> IntArray:
    """Return k unlabelled rows in the middle of as many clusters of the half-whitened scores: int64[<= k].

    The row nearest to each centre; largest cluster first. Labels of these are worth more than those of random rows.
    """
    embedding = Embedding.of(sample)
    if len(embedding.sd) == 0:
        return np.arange(min(k, 1))
    Q = embedding.scores(sample.unlabelled) * embedding.whitening
    squares = squares_between(Q, centres_of(Q, k, sample.generator(903)))
    sizes = np.bincount(squares.argmin(axis=1), minlength=squares.shape[1])
    found = squares.argmin(axis=0)[np.argsort(-sizes, kind="stable")]
    return np.asarray(list(dict.fromkeys(found.tolist())), dtype=np.int64)
