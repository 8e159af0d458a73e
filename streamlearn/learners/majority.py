"""The points that belong together: more than half of the counts, and whatever does not stand apart from these.

The geometric median is bounded whatever the rest sends, but it is moved: 9 points far off on one side are balanced by
11 good ones only ``9 / sqrt(11^2 - 9^2)`` = 1.4 of these's spread away, which is 6 times the error of their mean. What
lies near it is then a poor guide too. The half that is nearest to its *own* mean is not moved by anything far away.
"""

from __future__ import annotations

import numpy as np

from streamlearn.contracts import FloatArray
from streamlearn.learners.robust.blas import one_blas_thread

BoolArray = np.ndarray[tuple[int], np.dtype[np.bool_]]

APART = 2.5
"""Standard deviations of the kept distances' two thirds' powers, beyond their mean, at which a point stands apart.
With 2 up to a sixth of the precision is lost on sound points, with 3 others that are three errors away are let in."""
MOST_STARTS, BEST_STARTS, MOST_STEPS = 1000, 10, 50
FARTHEST = 1e6
"""Distances from the origin are cut here, so that no square drowns those of the others."""


def majority(points: FloatArray, counts: FloatArray, share: float) -> BoolArray:
    """Mark the points that belong together.

    First the points with at least `share` of the counts, and more than half, whose squared distances from their own
    mean sum to least (least trimmed squares for location, Rousseeuw 1984; steps of Rousseeuw and Van Driessen 1999 from
    the densest neighbourhoods). Then, as long as there are any, those no further from the mean of the kept ones than
    these are, as in a forward search: without it sound parts would lose up to half of what they know.

    Parameters
    ----------
    points : float64[k, n]
        Around the origin, in units of about their spread.
    counts : float64[k]
        Not all 0.
    share : float
        In [0.5, 1].

    Returns
    -------
    bool[k]
    """
    norms = np.sqrt(np.square(points).sum(axis=1))
    points = points * (FARTHEST / np.maximum(norms, FARTHEST))[:, None]
    with one_blas_thread():
        kept = _tightest(points, counts, share)
    for _ in range(len(points)):
        before, kept = kept, kept | _joining(points, counts, kept)
        if np.array_equal(before, kept):
            break
    return kept


def _joining(points: FloatArray, counts: FloatArray, kept: BoolArray) -> BoolArray:
    """Mark the points whose distance from the mean of those that are kept is one that these have too."""
    weights = np.where(kept, counts, 0.0) / counts[kept].sum()
    few = float(weights @ weights)
    squares = _squares(points, weights[kept] @ points[kept])
    # A kept point has drawn the mean to itself, another has not: their distances are not of one size. Their cube roots
    # are nearly normal, whatever the number of coordinates (Wilson and Hilferty 1931).
    lengths = np.cbrt(np.where(kept, squares / np.maximum(1.0 - weights, 1e-9), squares / (1.0 + few)))
    usual = float(weights @ lengths)
    # Few points know their deviation badly: two have none.
    variance = float(weights @ np.square(lengths - usual)) + (usual * few) ** 2
    return np.asarray(lengths <= usual + APART * np.sqrt(variance))


def _tightest(points: FloatArray, counts: FloatArray, share: float) -> BoolArray:
    """Return the set of points with the least sum of squares around its own mean that the steps find."""
    best, least = np.ones(len(points), dtype=np.bool_), np.inf
    for start in _densest(points, counts, share):
        kept = nearest(_squares(points, points[start]), counts, share)
        for _ in range(MOST_STEPS):
            squares = _squares(points, counts[kept] @ points[kept] / counts[kept].sum())
            before, kept = kept, nearest(squares, counts, share)
            if np.array_equal(before, kept):
                break
        total = float(counts[kept] @ squares[kept])
        if total < least:
            best, least = kept, total
    return best


def _densest(points: FloatArray, counts: FloatArray, share: float) -> list[int]:
    """Return the points whose nearest neighbours, with that share of the counts, are nearest."""
    tried = np.flatnonzero(counts > 0.0)
    tried = tried[:: -(-len(tried) // MOST_STARTS)]
    norms = np.square(points).sum(axis=1)
    squares = np.maximum(norms[tried, None] + norms - 2.0 * points[tried] @ points.T, 0.0)
    sums = [float(row[kept] @ counts[kept]) for row in squares for kept in [nearest(row, counts, share)]]
    return [int(tried[at]) for at in np.argsort(sums, kind="stable")[:BEST_STARTS]]


def _squares(points: FloatArray, centre: FloatArray) -> FloatArray:
    found: FloatArray = np.square(points - centre).sum(axis=1)
    return found


def nearest(distances: FloatArray, counts: FloatArray, share: float) -> BoolArray:
    """Mark the nearest points that together hold at least `share` of the counts, and more than half."""
    order = np.argsort(distances, kind="stable")
    before = np.cumsum(counts[order]) - counts[order]
    total = before[-1] + counts[order[-1]]
    kept = np.zeros(len(distances), dtype=np.bool_)
    kept[order[(before < share * total) | (before <= 0.5 * total)]] = True
    return kept & (counts > 0.0)
