"""One vector from many: what workers estimated apart from each other, held together by count or by majority."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from streamlearn.contracts import FloatArray
from streamlearn.errors import BadParameter, BadShape
from streamlearn.learners.majority import BoolArray, majority
from streamlearn.learners.robust.median import geometric_median

How = Literal["mean", "median", "trimmed"]
HOWS: tuple[str, ...] = get_args(How)

_LARGEST = 1e100


@dataclass(frozen=True, slots=True)
class Consensus:
    """What estimates have in common.

    Attributes
    ----------
    centre : float64[n]
        ``shares @ points``.
    shares : float64[k]
        Share of each point in the centre, of sum 1.
    distances : float64[k]
        From the geometric median, whatever the way of merging.
    trusted : bool[k]
        Points whose further statistics may be used: all of them for the mean; else those that do not stand apart from
        a majority, which for the trimmed mean are those that it is of. They hold more than half of the counts.
    """

    centre: FloatArray
    shares: FloatArray
    distances: FloatArray
    trusted: BoolArray


def checked_how(who: str, how: str, trim: float) -> None:
    """Check the way of merging.

    Raises
    ------
    BadParameter
    """
    if how not in HOWS:
        raise BadParameter(f"{who}: merge must be one of {list(HOWS)}, got {how!r}")
    if isinstance(trim, bool) or not isinstance(trim, (int, float)) or not 0.0 <= trim <= 0.5:
        raise BadParameter(f"{who}: trim must be in [0, 0.5], got {trim!r}")


def consensus(points: FloatArray, counts: FloatArray, how: str, trim: float = 0.5) -> Consensus:
    """Hold vectors together.

    The mean is what one process would have found, if every part is sound, and is worth nothing if one is not. The
    geometric median stays within a fixed multiple of the good points' spread while they hold more than half of the
    counts (Minsker 2015; Feng, Xu and Mannor 2017, distributed form). That multiple is not small: with 45 % of the
    points far off on one side the median errs by 1.4 times what one good point errs. The trimmed mean leaves out the
    points that stand apart from the majority, at most so many, and is the mean where none does (see `majority`).

    Parameters
    ----------
    points : float64[k, n]
        Finite. Their distances must mean something: bring all coordinates to one unit first.
    counts : float64[k]
        What each point weighs: the rows behind it.
    how : {"mean", "median", "trimmed"}
    trim : float
        Most of the counts that "trimmed" may leave out, in [0, 0.5].

    Returns
    -------
    Consensus

    Raises
    ------
    BadParameter, BadShape, BadValue
    """
    checked_how("consensus", how, trim)
    if points.ndim != 2 or counts.shape != (len(points),) or not counts.any():
        raise BadShape(f"consensus: points and counts must be [k, n] and [k], got {points.shape} and {counts.shape}")
    if points.shape[1] == 0:
        shares = counts / counts.sum()
        return Consensus(np.zeros(0), shares, np.zeros(len(points)), np.ones(len(points), dtype=np.bool_))
    centre = geometric_median(points, weights=counts)
    distances = _distances(points, centre)
    if how == "mean":
        shares = counts / counts.sum()
        return Consensus(_weighted(shares, points), shares, distances, np.ones(len(points), dtype=np.bool_))
    near = _around(points, centre, weighted_median(distances, counts) or float(distances.max()) or 1.0)
    if how == "median":
        return Consensus(centre, _shares_in_median(distances, counts), distances, majority(near, counts, 0.5))
    kept = majority(near, counts, 1.0 - trim)
    shares = np.where(kept, counts, 0.0) / counts[kept].sum()
    return Consensus(_weighted(shares, points), shares, distances, kept)


def _around(points: FloatArray, centre: FloatArray, unit: float) -> FloatArray:
    """Return points relative to a centre in a unit; halved in between, so that nothing overflows."""
    with np.errstate(over="ignore"):
        relative = (points / 2.0 - centre / 2.0) / max(unit / 2.0, 1e-300)
    return np.clip(relative, -_LARGEST, _LARGEST)


def _weighted(shares: FloatArray, points: FloatArray) -> FloatArray:
    """Return ``shares @ points``, relative to one of the points so that a common offset costs no digits."""
    origin, used = points[int(np.argmax(shares))], shares > 0.0
    centre: FloatArray = origin + shares[used] @ (points[used] - origin)
    return centre


def _distances(points: FloatArray, centre: FloatArray) -> FloatArray:
    """Return float64[k]; scaled, so that no square overflows."""
    halves = np.abs(points / 2.0 - centre / 2.0)
    size = halves.max(axis=1, initial=0.0)
    scaled = np.divide(halves, size[:, None], where=size[:, None] > 0.0, out=np.zeros_like(halves))
    lengths: FloatArray = size * np.sqrt(np.square(scaled).sum(axis=1))
    return np.asarray(np.minimum(lengths, 4e307) * 2.0)


def _shares_in_median(distances: FloatArray, counts: FloatArray) -> FloatArray:
    """Return the weights with which the points make up their median: m / d, or all at the points that are there."""
    largest = float(distances.max())
    here = distances <= 1e-12 * largest
    if here.any():
        return np.asarray(np.where(here, counts, 0.0) / counts[here].sum())
    raw = counts * (float(distances.min()) / distances)
    return np.asarray(raw / raw.sum())


def weighted_median(values: FloatArray, counts: FloatArray) -> float:
    """Return the least value such that values up to it hold more than half of the counts, or the largest one."""
    order = np.argsort(values, kind="stable")
    cumulated = np.cumsum(counts[order])
    at = int(np.searchsorted(cumulated, 0.5 * cumulated[-1], side="right"))
    return float(values[order[min(at, len(values) - 1)]])
