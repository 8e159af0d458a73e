"""Members learned on unlabelled rows: where few labels are spread over many events, these tell what goes together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import Document, FloatArray, IntArray
from streamlearn.errors import BadSnapshot
from streamlearn.kernels import embed as kernels
from streamlearn.kernels.forest import LINEAR_CLIP
from streamlearn.learners.muffled.embedding import Embedding, embedding_from
from streamlearn.learners.muffled.logistic import fit_logistic
from streamlearn.learners.muffled.model import ARRAYS, Model
from streamlearn.learners.muffled.sample import N_FOLDS, Sample, ordered
from streamlearn.learners.muffled.trees import Ranked

NAMES = ("scores", "score trees", "landmarks", "neighbours")
LEAST_UNLABELLED = 300
MOST_LABELLED = 500
"""Members learned on unlabelled rows are worth their time from so many of these and up to so many labels."""

_LOGISTIC_SCORES, _TREE_SCORES = 10, 20
_TREES = 80
_LANDMARKS = 300
_BANDWIDTH_NEIGHBOUR = 20
_LEAST_EIGENVALUE = 1e-3
_FLOOR = 0.01
_STEPS, _KEEP = 60, 0.99
_RMS = 2.5


@dataclass(frozen=True)
class Embedded:
    """The four members and what they need of a row.

    Attributes
    ----------
    embedding : Embedding
    model : Model
        On scores: the trees, then the logistic regression.
    landmarks : float64[n_landmarks, n_scores]
    alpha : float64[n_landmarks]
    points : float64[n_points, n_scores]
        Half-whitened unlabelled rows.
    values : float64[n_points]
        What was spread to them.
    numbers : float64[3]
        Bias of the landmarks' vote, gamma of landmarks and of neighbours.
    """

    kind: ClassVar[str] = "unlabelled"
    on_ranks: ClassVar[bool] = False

    embedding: Embedding
    model: Model
    landmarks: FloatArray
    alpha: FloatArray
    points: FloatArray
    values: FloatArray
    numbers: FloatArray

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the votes."""
        return NAMES

    @cached_property
    def _read(self) -> tuple[FloatArray, FloatArray, FloatArray, IntArray]:
        """What the kernel reads, in one array, and its scratch."""
        n, at = len(self.landmarks), self.embedding
        parts = [np.array([n, len(self.points)]), self.numbers, np.empty(kernels.N_NEIGHBOURS), at.offset, at.whitening]
        parts += [np.empty(len(at.sd)), self.alpha, self.values, at.axes, self.landmarks.T, self.points.T]
        scratch = np.empty(max(n, len(self.points))), np.empty(max(n, len(self.points)))
        near = np.empty((1, kernels.N_NEIGHBOURS), dtype=np.int64)
        return np.concatenate([part.ravel() for part in parts]), *scratch, near

    def votes(self, X: FloatArray) -> FloatArray:
        """Return float64[n_rows, 4]."""
        scores, out = np.empty((len(X), len(self.embedding.sd))), np.empty((len(X), len(NAMES)))
        kernels.unlabelled_votes(X, self.embedding.affine, self.embedding.text, *self._read, scores, out)
        out[:, 1::-1] = self.model.score(scores, np.empty(len(X)))
        return out

    def widened(self, n_features: int) -> Embedded:
        """Return the same members for rows with more features, which count for nothing."""
        return replace(self, embedding=self.embedding.widened(n_features))

    def document(self) -> Document:
        """Return nothing: all is in arrays."""
        return {}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by name."""
        own = self.embedding.arrays() | {name: getattr(self, name) for name in _OWN}
        return own | {f"model_{name}": array for name, array in self.model.arrays().items()}

    @classmethod
    def from_arrays(cls, who: str, document: Document, arrays: dict[str, NDArray[Any]], affine: FloatArray) -> Embedded:
        """Return what `arrays` gave, with the affine map of the base model.

        Raises
        ------
        BadSnapshot
        """
        inner = {name: arrays[f"model_{name}"] for name in ARRAYS if f"model_{name}" in arrays}
        embedding = embedding_from(who, arrays, affine)
        found = {name: arrays[name] for name in _OWN}
        k, p, n = len(embedding.sd), len(found["points"]), len(found["landmarks"])
        shapes = {"landmarks": (n, k), "alpha": (n,), "points": (p, k), "values": (p,), "numbers": (3,)}
        bad = [name for name, shape in shapes.items() if found[name].shape != shape or found[name].dtype != np.float64]
        if bad or p <= kernels.N_NEIGHBOURS:
            raise BadSnapshot(f"{who}: the members learned on unlabelled rows do not fit together: {bad}")
        model = Model.from_arrays(who, inner, NAMES[1::-1], k)
        return cls(embedding, model, *(found[name] for name in _OWN))


_OWN = ("landmarks", "alpha", "points", "values", "numbers")


def neighbours(Q: FloatArray, columns: FloatArray, *, own: bool = False) -> tuple[IntArray, FloatArray]:
    """Return the eight nearest points of each row and their squared distances.

    Parameters
    ----------
    Q : float64[n_rows, n_scores]
    columns : float64[n_scores, n_points]
    own : bool
        The rows are the points, and none is its own neighbour.
    """
    near, squares = np.empty((len(Q), 8), dtype=np.int64), np.empty((len(Q), 8))
    distances, least = np.empty((2, columns.shape[1]))
    kernels.nearest(Q, columns, own, distances, least, near, squares)
    return near, squares


def fit_embedded(sample: Sample) -> tuple[Embedded, FloatArray] | None:
    """Fit the four members; return them and their votes on the labelled rows, made without a row's own label.

    None where the unlabelled rows are all alike.
    """
    embedding = Embedding.of(sample)
    if len(embedding.sd) == 0:
        return None
    scores, scores_u = embedding.scores(sample.labelled), embedding.scores(sample.unlabelled)
    held_out = np.empty((len(sample.y), len(NAMES)))
    model = _scores_model(sample, embedding, scores, held_out)
    Q, Q_u = scores * embedding.whitening, scores_u * embedding.whitening
    landmarks, alpha, bias, gamma = _fit_landmarks(sample, Q, Q_u, held_out)
    values, near_gamma = _fit_neighbours(sample, Q, Q_u, held_out)
    numbers = np.array([bias, gamma, near_gamma])
    return Embedded(embedding, model, landmarks, alpha, Q_u, values, numbers), held_out


def cross_fitted(sample: Sample, rows: FloatArray, C: float) -> tuple[float, FloatArray, FloatArray]:
    """Return bias and weights of a logistic regression on rows, and its votes without each fold."""
    held_out = np.empty(len(sample.y))
    for fold in range(N_FOLDS):
        inside = sample.folds != fold
        bias, w = fit_logistic(rows[inside], sample.y[inside], C)
        held_out[~inside] = np.tanh(0.5 * (rows[~inside] @ w + bias))
    bias, w = fit_logistic(rows, sample.y, C)
    return bias, w, held_out


def _scores_model(sample: Sample, embedding: Embedding, scores: FloatArray, held_out: FloatArray) -> Model:
    k = len(embedding.sd)
    affine = np.ones((4, k))
    affine[[0, 2]] = 0.0
    affine[3] = embedding.sd
    few = min(_LOGISTIC_SCORES, k)
    z = np.clip(scores[:, :few] / embedding.sd[:few], -LINEAR_CLIP, LINEAR_CLIP)
    bias, w, held_out[:, 0] = cross_fitted(sample, z, 0.3)
    line = np.zeros(1 + 2 * k)
    line[0], line[1 : 1 + few] = bias, w
    first = np.ascontiguousarray(scores[:, :_TREE_SCORES], dtype=np.float32) + np.float32(0.0)
    grown, used = Ranked.of(first).grow(
        sample.y, sample.derived(901), n_trees=_TREES, share=0.0, least=2, random_thresholds=True
    )
    trees = grown.trees(grown.soft(sample.prior)[:, None])
    held_out[:, 1] = trees.votes_without(ordered(first), used)[:, 0]
    return Model.of(affine, [(NAMES[1:2], trees, np.zeros(1))], [(NAMES[0], line, 0.0)])


def squares_between(A: FloatArray, B: FloatArray) -> FloatArray:
    """Return the squared distances of rows to rows: float64[n_a, n_b]."""
    return np.asarray(np.maximum(np.square(A).sum(axis=1)[:, None] + np.square(B).sum(axis=1) - 2.0 * (A @ B.T), 0.0))


def _near(gamma: float, squares: FloatArray) -> FloatArray:
    """Return exp(-gamma * squares); where all rows were alike gamma is so large that the product may be infinite."""
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(-gamma * squares))


def _fit_landmarks(
    sample: Sample, Q: FloatArray, Q_u: FloatArray, held_out: FloatArray
) -> tuple[FloatArray, FloatArray, float, float]:
    """Logistic regression on Nystroem features (Williams and Seeger 2001) of random landmarks."""
    chosen = sample.generator(902).permutation(len(Q_u))[:_LANDMARKS]
    landmarks = np.ascontiguousarray(Q_u[chosen])
    between = squares_between(landmarks, landmarks)
    kth = np.sort(between, axis=1)[:, min(_BANDWIDTH_NEIGHBOUR, len(landmarks) - 1)]
    # The floor matters: among duplicated rows the distance to the neighbour is 0.
    gamma = 1.0 / (2.0 * max(float(np.median(kth)), _FLOOR * float(Q_u.var(axis=0).sum()), 1e-300))
    eigenvalues, vectors = np.linalg.eigh(_near(gamma, between))
    kept = eigenvalues > _LEAST_EIGENVALUE * eigenvalues[-1]
    root = vectors[:, kept] / np.sqrt(eigenvalues[kept])
    features = _near(gamma, squares_between(Q, landmarks)) @ root
    bias, w, held_out[:, 2] = cross_fitted(sample, features, 3.0)
    return landmarks, root @ w, bias, gamma


def _fit_neighbours(sample: Sample, Q: FloatArray, Q_u: FloatArray, held_out: FloatArray) -> tuple[FloatArray, float]:
    """Labels spread over the graph of the eight nearest neighbours."""
    columns = np.ascontiguousarray(Q_u.T)
    near, squares = neighbours(Q_u, columns, own=True)
    typical = float(np.median(np.sqrt(squares.mean(axis=1))))
    floor = _FLOOR * float(Q_u.var(axis=0).sum())
    gamma = 1.0 / (2.0 * max(typical * typical, floor, 1e-300))
    edges = _near(gamma, squares)
    degree = edges.sum(axis=1) + np.bincount(near.ravel(), edges.ravel(), minlength=len(Q_u))
    root = np.sqrt(np.maximum(degree, 1e-300))
    # W = (E + E') / 2 up to a factor that the degrees cancel.
    edges = edges / (root[:, None] * root[near])
    to, to_squares = neighbours(Q, columns)
    spread = _spreader(sample, near, edges, to)
    for fold in range(N_FOLDS):
        outside = sample.folds == fold
        votes = np.empty((int(outside.sum()), 1))
        kernels.neighbour_votes(to[outside], to_squares[outside], spread(~outside), gamma, 0, votes)
        held_out[outside, 3] = votes[:, 0]
    return spread(np.ones(len(Q), dtype=np.bool_)), gamma


def _spreader(
    sample: Sample, near: IntArray, edges: FloatArray, to: IntArray
) -> Callable[[NDArray[np.bool_]], FloatArray]:
    """Return the function from the labels that count to the values they spread."""
    n = len(near)

    def spread(inside: NDArray[np.bool_]) -> FloatArray:
        y = sample.y[inside]
        share = np.where(y > 0, 1.0 / max((y > 0).sum(), 1), -1.0 / max((y < 0).sum(), 1))
        sources = np.bincount(to[inside].ravel(), np.repeat(share, to.shape[1]), minlength=n).astype(np.float64)
        x = np.empty(n)
        kernels.spread(near, edges, sources, _KEEP, _STEPS, x, np.empty(n))
        rms = float(np.sqrt(np.square(x).mean()))
        return np.asarray(np.clip(x / (_RMS * rms), -1.0, 1.0)) if rms > 0.0 else x

    return spread
