"""Rows with missing cells: how they come in, what they say about pairs of columns, and how they are projected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from streamlearn.contracts import FeatureName, FloatArray, is_missing
from streamlearn.errors import BadShape
from streamlearn.features.frames import Columns, from_array, from_frame, from_many, number
from streamlearn.features.vocabulary import checked_names
from streamlearn.kernels.robust_selection import trimmed_product
from streamlearn.learners.robust.trimmed import n_trimmed


def with_missing(who: str, X: Any) -> tuple[tuple[FeatureName, ...], FloatArray]:
    """Return names and float64[n_rows, n_names] of whatever holds rows, NaN where a cell is missing.

    Mappings of one batch must have the same keys: an absent key would count as 0.
    """
    if isinstance(X, Mapping):
        X = [X]
    if isinstance(X, Sequence) and X and isinstance(X[0], Mapping):
        names = checked_names(who, X[0])
        if any(x.keys() != X[0].keys() for x in X):
            raise BadShape(f"{who}: mappings with missing values must have the same keys, got others")
        cells = [[np.nan if is_missing(x[n]) else number(who, n, i, x[n]) for n in names] for i, x in enumerate(X)]
        return names, np.array(cells)
    if isinstance(X, (np.ndarray, Sequence)):
        array = np.asarray(X)
        return from_array(who, array.reshape(1, -1) if array.ndim == 1 else array)
    if isinstance(X, Columns):
        return from_many(who, X)
    return from_frame(who, X, missing=True)


def pairwise_covariance(X: FloatArray, trim: float) -> tuple[FloatArray, FloatArray]:
    """Return the medians float64[p] and the trimmed covariance float64[p, p], each pair over the rows that have both.

    The matrix may have negative eigenvalues; the leading ones are not concerned. A pair that never occurs counts 0.

    Parameters
    ----------
    X : float64[n, p]
        NaN = missing.
    trim : float
    """
    observed = ~np.isnan(X)
    p = X.shape[1]
    medians = np.array([np.median(X[observed[:, j], j]) if observed[:, j].any() else 0.0 for j in range(p)])
    centred = X - medians
    out = np.zeros((p, p))
    for i in range(p):
        for j in range(i, p):
            both = observed[:, i] & observed[:, j]
            n = int(both.sum())
            if n:
                out[i, j] = trimmed_product(centred[both, i], centred[both, j], n_trimmed(trim, n))
                out[j, i] = out[i, j]
    return medians, out


def fill_projections(
    X: FloatArray, mean: FloatArray, components: FloatArray, scores: FloatArray, off: FloatArray
) -> None:
    """Write scores and distances of the rows with missing cells, by least squares on the cells they have.

    A distance is scaled by sqrt(p / (observed - d)), to what a complete row would have; rows with no more than d cells
    determine none: 0.

    Parameters
    ----------
    X : float64[n, p]
    mean, components : float64[p], float64[d, p]
    scores, off : float64[n, d], float64[n]
        Written where a cell of the row is missing.
    """
    p = len(mean)
    d = int(np.any(components != 0.0, axis=1).sum())
    for i in np.flatnonzero(np.isnan(X).any(axis=1)):
        have = ~np.isnan(X[i])
        n = int(have.sum())
        centred = X[i, have] - mean[have]
        scores[i] = np.linalg.lstsq(components[:, have].T, centred, rcond=None)[0] if n else 0.0
        rest = centred - scores[i] @ components[:, have]
        size = float(np.abs(rest).max(initial=0.0))
        if n > d and size > 0.0:
            off[i] = size * float(np.sqrt(np.square(rest / size).sum() * p / (n - d)))
        else:
            off[i] = 0.0
