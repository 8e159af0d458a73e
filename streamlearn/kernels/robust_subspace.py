"""Rows and a subspace: projections, distances, and distances between subspaces."""

from __future__ import annotations

import numpy as np

from streamlearn.contracts import FloatArray
from streamlearn.kernels.jit import kernel


@kernel
def project_rows(X: FloatArray, mean: FloatArray, components: FloatArray, scores: FloatArray) -> None:
    """Write the coordinates of each row in the subspace; the same operations for one row and for many.

    Parameters
    ----------
    X : float64[n, p]
    mean : float64[p]
    components : float64[d, p]
        Orthonormal rows, or zeros.
    scores : float64[n, d]
        Written.
    """
    for i in range(len(X)):
        for k in range(len(components)):
            total = 0.0
            for j in range(len(mean)):
                total += (X[i, j] - mean[j]) * components[k, j]
            scores[i, k] = total


@kernel
def distances_to_subspace(
    X: FloatArray, mean: FloatArray, components: FloatArray, scores: FloatArray, out: FloatArray
) -> None:
    """Write the distance of each row from its projection.

    Parameters
    ----------
    X, mean, components
        As for `project_rows`.
    scores : float64[n, d]
        What `project_rows` wrote.
    out : float64[n]
        Written; at most about 1e150.
    """
    for i in range(len(X)):
        largest = 0.0
        for j in range(len(mean)):
            off = X[i, j] - mean[j]
            for k in range(len(components)):
                off -= scores[i, k] * components[k, j]
            largest = max(largest, abs(off))
        if largest == 0.0:
            out[i] = 0.0
            continue
        total = 0.0
        for j in range(len(mean)):
            off = X[i, j] - mean[j]
            for k in range(len(components)):
                off -= scores[i, k] * components[k, j]
            total += (off / largest) ** 2
        out[i] = min(largest, 1e150) * np.sqrt(total)


@kernel
def projector_distance(a: FloatArray, b: FloatArray) -> float:
    """Return ||A'A - B'B||_F^2 of two sets of components, without the projectors themselves.

    Parameters
    ----------
    a, b : float64[d, p]
        Orthonormal rows, or zeros.
    """
    d, p = a.shape
    total = 0.0
    for i in range(d):
        for j in range(d):
            aa = bb = ab = 0.0
            for k in range(p):
                aa += a[i, k] * a[j, k]
                bb += b[i, k] * b[j, k]
                ab += a[i, k] * b[j, k]
            total += aa * aa + bb * bb - 2.0 * ab * ab
    return float(max(total, 0.0))
