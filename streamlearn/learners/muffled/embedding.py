"""The space that unlabelled rows span: their principal scores."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import FloatArray
from streamlearn.errors import BadSnapshot
from streamlearn.kernels.embed import TEXT_NORM, embed
from streamlearn.kernels.forest import CENTRE, LINEAR_CLIP, MEAN_OF, SD_OF, SPREAD
from streamlearn.learners.muffled.sample import Sample

_MOST_SCORES = 40
_EXACT_WIDTH = 400
_OVERSAMPLE = 10
_POWER_STEPS = 4
_TEXT_SHARE = 0.05
_TEXT_WIDTH = 200


@dataclass(frozen=True, slots=True)
class Embedding:
    """Principal axes of the unlabelled rows.

    Attributes
    ----------
    affine : float64[4, n_features]
    text : bool
        Few of many features are not 0: rows have length 3, else they are standardised.
    axes : float64[n_features, n_scores]
    offset : float64[n_scores]
    sd : float64[n_scores]
        Of the scores, decreasing, above 0.
    """

    affine: FloatArray
    text: bool
    axes: FloatArray
    offset: FloatArray
    sd: FloatArray

    @classmethod
    def of(cls, sample: Sample) -> Embedding:
        """Find the axes."""
        U = sample.unlabelled
        m = U.shape[1]
        text = bool(m >= _TEXT_WIDTH and np.count_nonzero(U) < _TEXT_SHARE * U.size)
        rows = _rows(U, sample.affine, text)
        mean = rows.mean(axis=0)
        rows -= mean
        axes = _axes(rows, min(_MOST_SCORES, m, len(U) - 1), sample.generator(900))
        sd = (rows @ axes).std(axis=0)
        order = np.argsort(-sd, kind="stable")
        kept = order[sd[order] > 1e-6 * max(float(sd.max(initial=0.0)), 1e-300)]
        axes = np.ascontiguousarray(axes[:, kept])
        return cls(sample.affine, text, axes, mean @ axes, sd[kept])

    def scores(self, X: FloatArray) -> FloatArray:
        """Return the principal scores of rows: float64[n_rows, n_scores]."""
        out = np.empty((len(X), len(self.sd)))
        embed(np.ascontiguousarray(X), self.affine, self.text, self.axes, self.offset, out)
        return out

    def widened(self, n_features: int) -> Embedding:
        """Return the same axes for rows with more features, which count for nothing."""
        more = n_features - self.affine.shape[1]
        new = np.zeros((4, more))
        new[[SPREAD, SD_OF]] = 1.0
        axes = np.vstack([self.axes, np.zeros((more, self.axes.shape[1]))])
        return replace(self, affine=np.hstack([self.affine, new]), axes=axes)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by name, without the affine map, which is that of the base model."""
        text = np.array([int(self.text)], dtype=np.int64)
        return {"axes": self.axes, "offset": self.offset, "sd": self.sd, "text": text}

    @property
    def whitening(self) -> FloatArray:
        """Factors that half-whiten scores: between the units of the features and equal weight of all axes."""
        return np.asarray(1.0 / np.sqrt(self.sd * self.sd[0]))


def embedding_from(who: str, arrays: dict[str, NDArray[Any]], affine: FloatArray) -> Embedding:
    """Return what `Embedding.arrays` gave, checked.

    Raises
    ------
    BadSnapshot
    """
    axes, offset, sd = (arrays[name] for name in ("axes", "offset", "sd"))
    k = sd.shape[0] if sd.ndim == 1 else 0
    fits = axes.shape == (affine.shape[1], k) and offset.shape == (k,) and k > 0 and (sd > 0).all()
    if not fits or not axes.dtype == offset.dtype == sd.dtype == np.float64:
        raise BadSnapshot(f"{who}: the principal axes of the saved state do not fit together")
    return Embedding(affine, bool(arrays["text"][0]), axes, offset, sd)


def _rows(U: FloatArray, affine: FloatArray, text: bool) -> FloatArray:
    """Return the rows that `embed` projects."""
    if text:
        length = np.sqrt(np.square(U).sum(axis=1, keepdims=True))
        return np.asarray(TEXT_NORM * np.divide(U, length, where=length > 0.0, out=np.zeros_like(U)))
    z = ((U - affine[CENTRE]) / affine[SPREAD] - affine[MEAN_OF]) / affine[SD_OF]
    return np.asarray(np.clip(z, -LINEAR_CLIP, LINEAR_CLIP))


def _axes(rows: FloatArray, k: int, generator: np.random.Generator) -> FloatArray:
    """Return the first k principal axes of centred rows: exact where narrow, else by subspace iteration.

    Halko, Martinsson and Tropp 2011, algorithm 4.4.
    """
    m = rows.shape[1]
    if m <= _EXACT_WIDTH:
        _, vectors = np.linalg.eigh(rows.T @ rows)
        return np.asarray(vectors[:, ::-1][:, :k])
    Y = rows.T @ generator.normal(size=(len(rows), k + _OVERSAMPLE))
    for _ in range(_POWER_STEPS):
        basis, _ = np.linalg.qr(Y)
        Y = rows.T @ (rows @ basis)
    basis, _ = np.linalg.qr(Y)
    _, _, vectors = np.linalg.svd(rows @ basis, full_matrices=False)
    return np.asarray(basis @ vectors[:k].T)
