"""Members learned on unlabelled rows: principal scores of a row, kernel votes, votes of neighbours."""

from __future__ import annotations

import math

import numpy as np

from streamlearn.contracts import FloatArray, IntArray
from streamlearn.kernels.jit import kernel

N_NEIGHBOURS = 8
TEXT_NORM = 3.0
_CENTRE, _SPREAD, _MEAN_OF, _SD_OF = 0, 1, 2, 3
_CLIP = 8.0


@kernel
def embed(X: FloatArray, affine: FloatArray, text: bool, axes: FloatArray, offset: FloatArray, out: FloatArray) -> None:
    """Write the principal scores of rows.

    Parameters
    ----------
    X : float64[n_rows, n_features]
    affine : float64[4, n_features]
        Centre, spread, mean and sd: rows are standardised and clipped.
    text : bool
        Scale rows to length 3 instead, unchanged otherwise: words that are absent stay 0.
    axes : float64[n_features, n_scores]
    offset : float64[n_scores]
        Scores of the mean row, subtracted.
    out : float64[n_rows, n_scores]
        Written.
    """
    k = axes.shape[1]
    for i in range(X.shape[0]):
        for c in range(k):
            out[i, c] = -offset[c]
        length = 0.0
        if text:
            largest = 0.0
            for j in range(X.shape[1]):
                largest = max(largest, abs(X[i, j]))
            if largest > 0.0:
                for j in range(X.shape[1]):
                    length += (X[i, j] / largest) ** 2
                length = largest * math.sqrt(length)
        for j in range(X.shape[1]):
            if text:
                v = TEXT_NORM * (X[i, j] / length) if length > 0.0 else 0.0
            else:
                v = ((X[i, j] - affine[_CENTRE, j]) / affine[_SPREAD, j] - affine[_MEAN_OF, j]) / affine[_SD_OF, j]
                v = min(max(v, -_CLIP), _CLIP)
            if v != 0.0:
                for c in range(k):
                    out[i, c] += v * axes[j, c]


@kernel
def _squares_to(q: FloatArray, columns: FloatArray, squares: FloatArray) -> None:
    """Write the squared distances to all points, score by score: several points at a time, each sum in one order."""
    for p in range(len(squares)):
        squares[p] = 0.0
    for c in range(len(q)):
        column = columns[c]
        for p in range(len(squares)):
            squares[p] += (q[c] - column[p]) ** 2


@kernel
def landmark_votes(
    Q: FloatArray,
    columns: FloatArray,
    alpha: FloatArray,
    bias: float,
    gamma: float,
    distances: FloatArray,
    column: int,
    out: FloatArray,
) -> None:
    """Write tanh(t / 2) for t = bias + sum alpha_l exp(-gamma |q - l|^2).

    Parameters
    ----------
    Q : float64[n_rows, n_scores]
    columns : float64[n_scores, n_landmarks]
    alpha : float64[n_landmarks]
    bias, gamma : float
    distances : float64[n_landmarks]
        Scratch.
    column : int
        Written column of `out`.
    out : float64[n_rows, n_votes]
    """
    for i in range(Q.shape[0]):
        t = bias
        _squares_to(Q[i], columns, distances)
        for s in range(len(alpha)):
            t += alpha[s] * math.exp(-gamma * distances[s])
        out[i, column] = math.tanh(0.5 * t)


@kernel
def memberships(Q: FloatArray, columns: FloatArray, sets: FloatArray, out: FloatArray) -> None:
    """Write how far a row belongs to each cluster of a set: exp(-gamma d^2), over their sum.

    Parameters
    ----------
    Q : float64[n_rows, n_scores]
    columns : float64[n_scores, n_centres]
        Centres, one set after the other.
    sets : float64[n_sets, 2]
        Centres of each set, and its gamma.
    out : float64[n_rows, n_centres]
        Written.
    """
    for i in range(Q.shape[0]):
        row = out[i]
        _squares_to(Q[i], columns, row)
        first = 0
        for s in range(sets.shape[0]):
            stop = first + int(sets[s, 0])
            # Less the least distance: however far the row, the nearest cluster has it.
            least, total = row[first:stop].min(), 0.0
            for c in range(first, stop):
                row[c] = math.exp(-sets[s, 1] * (row[c] - least))
                total += row[c]
            for c in range(first, stop):
                row[c] /= total
            first = stop


@kernel
def logistic_votes(Z: FloatArray, line: FloatArray, out: FloatArray) -> None:
    """Write tanh(t / 2) for t = bias + sum of weighted numbers.

    Parameters
    ----------
    Z : float64[n_rows, n_numbers]
    line : float64[1 + n_numbers]
        Bias and weights.
    out : float64[n_rows, 1]
        Written.
    """
    for i in range(Z.shape[0]):
        t = line[0]
        for c in range(Z.shape[1]):
            t += line[1 + c] * Z[i, c]
        out[i, 0] = math.tanh(0.5 * t)


@kernel
def nearest(
    Q: FloatArray, columns: FloatArray, skip_own: bool, distances: FloatArray, near: IntArray, squares: FloatArray
) -> None:
    """Write the eight nearest points of each row, nearest first, ties by index.

    Parameters
    ----------
    Q : float64[n_rows, n_scores]
    columns : float64[n_scores, n_points]
        At least eight points, nine with `skip_own`.
    skip_own : bool
        Row i is point i and not its own neighbour.
    distances : float64[n_points]
        Scratch.
    near : int64[n_rows, 8]
        Written.
    squares : float64[n_rows, 8]
        Squared distances; written.
    """
    for i in range(Q.shape[0]):
        for c in range(N_NEIGHBOURS):
            squares[i, c] = np.inf
            near[i, c] = 0
        _squares_to(Q[i], columns, distances)
        for p in range(len(distances)):
            if skip_own and p == i:
                continue
            d = distances[p]
            if d < squares[i, N_NEIGHBOURS - 1]:
                c = N_NEIGHBOURS - 1
                while c > 0 and squares[i, c - 1] > d:
                    squares[i, c] = squares[i, c - 1]
                    near[i, c] = near[i, c - 1]
                    c -= 1
                squares[i, c] = d
                near[i, c] = p


@kernel
def neighbour_votes(
    near: IntArray, squares: FloatArray, values: FloatArray, gamma: float, column: int, out: FloatArray
) -> None:
    """Write the mean value of the neighbours, nearer ones weighing more, clipped to [-1, 1].

    Parameters
    ----------
    near, squares : int64[n_rows, 8], float64[n_rows, 8]
        As `nearest` writes them.
    values : float64[n_points]
    gamma : float
        Weights are exp(-gamma (d^2 - d_nearest^2)): never all 0, however far the row.
    column : int
    out : float64[n_rows, n_votes]
        Its column is written.
    """
    for i in range(near.shape[0]):
        total, weight = 0.0, 0.0
        for c in range(N_NEIGHBOURS):
            w = math.exp(-gamma * (squares[i, c] - squares[i, 0]))
            total += w * values[near[i, c]]
            weight += w
        out[i, column] = min(max(total / weight, -1.0), 1.0)


@kernel
def spread(
    near: IntArray, edges: FloatArray, sources: FloatArray, keep: float, n_steps: int, x: FloatArray, y: FloatArray
) -> None:
    """Spread sources over a graph: x <- keep S x + sources, S symmetric (Zhou et al. 2004).

    Parameters
    ----------
    near : int64[n_points, 8]
    edges : float64[n_points, 8]
        Half of the normalised weight of each edge, which counts in both directions.
    sources : float64[n_points]
    keep : float
    n_steps : int
    x : float64[n_points]
        Written.
    y : float64[n_points]
        Scratch.
    """
    n = len(sources)
    for i in range(n):
        x[i] = sources[i]
    for _ in range(n_steps):
        for i in range(n):
            y[i] = 0.0
        for i in range(n):
            for c in range(N_NEIGHBOURS):
                j = near[i, c]
                y[i] += edges[i, c] * x[j]
                y[j] += edges[i, c] * x[i]
        for i in range(n):
            x[i] = keep * y[i] + sources[i]
