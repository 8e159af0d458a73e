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
_GROUP = 32
_LOG2_E, _LN_2, _LEAST_POWER = 1.4426950408889634, 0.6931471805599453, -1000.0
_ROUNDER = 6755399441055744.0  # 1.5 x 2^52
_TAYLOR = tuple(1.0 / math.factorial(c) for c in range(13, -1, -1))


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
    """Write the squared distances to all points: several points at a time, each sum score by score."""
    k = len(q)
    for p in range(len(squares)):
        squares[p] = 0.0
    for c in range(0, k - k % 4, 4):  # four scores a pass: sums are read and written a fourth as often
        qa, qb, qc, qd = q[c], q[c + 1], q[c + 2], q[c + 3]
        a, b, e, f = columns[c], columns[c + 1], columns[c + 2], columns[c + 3]
        for p in range(len(squares)):
            squares[p] = squares[p] + (qa - a[p]) ** 2 + (qb - b[p]) ** 2 + (qc - e[p]) ** 2 + (qd - f[p]) ** 2
    for c in range(k - k % 4, k):
        column = columns[c]
        for p in range(len(squares)):
            squares[p] += (q[c] - column[p]) ** 2


@kernel
def _fall_off(gamma: float, x: FloatArray, powers: FloatArray) -> None:
    """Turn x >= 0 into exp(-gamma x), in place, to 4e-16: vectors of numbers, where the library's takes one by one.

    exp(-y) = 2^n exp(r) with n whole and r at most ln(2) / 2: n by adding a number so large that no fraction is left.
    """
    whole = powers.view(np.int64)
    for s in range(len(x)):
        y = -gamma * x[s] * _LOG2_E
        y = y if y > _LEAST_POWER else _LEAST_POWER
        z = y + _ROUNDER
        powers[s] = z
        x[s] = (y - (z - _ROUNDER)) * _LN_2
    for s in range(len(x)):
        whole[s] = (whole[s] + 1023) << 52
    for s in range(len(x)):
        r = x[s]
        e = _TAYLOR[0]
        for c in range(1, len(_TAYLOR)):
            e = e * r + _TAYLOR[c]
        x[s] = powers[s] * e


@kernel
def landmark_votes(
    Q: FloatArray,
    columns: FloatArray,
    alpha: FloatArray,
    bias: float,
    gamma: float,
    distances: FloatArray,
    powers: FloatArray,
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
    distances, powers : float64[n_landmarks]
        Scratch.
    column : int
        Written column of `out`.
    out : float64[n_rows, n_votes]
    """
    for i in range(Q.shape[0]):
        t = bias
        _squares_to(Q[i], columns, distances)
        _fall_off(gamma, distances, powers)
        for s in range(len(alpha)):
            t += alpha[s] * distances[s]
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
def _bound_of_nearest(distances: FloatArray, n_wanted: int, least: FloatArray) -> float:
    """Return a number that at least so many distances do not exceed, and few more.

    The distances are folded to minima of disjoint groups, of which the wanted one by size is such a number.
    """
    n = len(distances)
    m = (n + 1) // 2
    low, high = distances[:m], distances[m:]
    for p in range(m):
        least[p] = low[p]
    while True:
        for p in range(n - m):
            a, b = least[p], high[p]
            least[p] = a if a < b else b
        n = m
        if n < 2 * n_wanted:
            break
        m = (n + 1) // 2
        high = least[m:n]
    if n < n_wanted:
        return np.inf
    for c in range(n_wanted):
        best = c
        for p in range(c + 1, n):
            if least[p] < least[best]:
                best = p
        least[c], least[best] = least[best], least[c]
    bound: float = least[n_wanted - 1]
    return bound


@kernel
def nearest(
    Q: FloatArray,
    columns: FloatArray,
    skip_own: bool,
    distances: FloatArray,
    least: FloatArray,
    near: IntArray,
    squares: FloatArray,
) -> None:
    """Write the eight nearest points of each row, nearest first, ties by index.

    Parameters
    ----------
    Q : float64[n_rows, n_scores]
    columns : float64[n_scores, n_points]
        At least eight points, nine with `skip_own`.
    skip_own : bool
        Row i is point i and not its own neighbour.
    distances, least : float64[n_points]
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
        bound = _bound_of_nearest(distances, N_NEIGHBOURS + (1 if skip_own else 0), least)
        for first in range(0, len(distances), _GROUP):
            part = distances[first : first + _GROUP]
            n_close = 0
            for p in range(len(part)):
                n_close += part[p] <= bound
            for p in range(len(part) if n_close else 0):
                d = part[p]
                if d > bound or d >= squares[i, N_NEIGHBOURS - 1] or (skip_own and first + p == i):
                    continue
                c = N_NEIGHBOURS - 1
                while c > 0 and squares[i, c - 1] > d:
                    squares[i, c] = squares[i, c - 1]
                    near[i, c] = near[i, c - 1]
                    c -= 1
                squares[i, c] = d
                near[i, c] = first + p


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
def unlabelled_votes(
    X: FloatArray,
    affine: FloatArray,
    text: bool,
    floats: FloatArray,
    distances: FloatArray,
    least: FloatArray,
    near: IntArray,
    scores: FloatArray,
    out: FloatArray,
) -> None:
    """Write the principal scores of rows and the votes of landmarks and neighbours; in one go, of few arrays.

    Parameters
    ----------
    X, affine, text
        As in `embed`.
    floats : float64[n]
        Numbers of landmarks and points; bias of the landmarks' vote, gamma of landmarks and of neighbours; squares
        (scratch, 8); then offset, whitening, half-whitened scores (scratch), alpha, values, axes, landmarks and points
        of `embed`, `landmark_votes` and `neighbour_votes`, one array after the other.
    distances, least : float64[max(n_landmarks, n_points)]
        Scratch.
    near : int64[1, 8]
        Scratch.
    scores : float64[n_rows, n_scores]
        Written.
    out : float64[n_rows, 4]
        Columns 2 (landmarks) and 3 (neighbours) are written.
    """
    m, k = X.shape[1], scores.shape[1]
    n_landmarks, n_points = int(floats[0]), int(floats[1])
    bias, gamma, near_gamma = floats[2], floats[3], floats[4]
    squares, offset, at = floats[5:13].reshape((1, 8)), floats[13 : 13 + k], 13 + k
    whitening, Q, at = floats[at : at + k], floats[at + k : at + 2 * k].reshape((1, k)), at + 2 * k
    alpha, at = floats[at : at + n_landmarks], at + n_landmarks
    values, at = floats[at : at + n_points], at + n_points
    axes, at = floats[at : at + m * k].reshape((m, k)), at + m * k
    landmarks, at = floats[at : at + k * n_landmarks].reshape((k, n_landmarks)), at + k * n_landmarks
    points = floats[at : at + k * n_points].reshape((k, n_points))
    for i in range(X.shape[0]):
        row, votes = scores[i : i + 1], out[i : i + 1]
        embed(X[i : i + 1], affine, text, axes, offset, row)
        for c in range(k):
            Q[0, c] = row[0, c] * whitening[c]
        landmark_votes(Q, landmarks, alpha, bias, gamma, distances[:n_landmarks], least[:n_landmarks], 2, votes)
        nearest(Q, points, False, distances[:n_points], least[:n_points], near, squares)
        neighbour_votes(near, squares, values, near_gamma, 3, votes)


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
