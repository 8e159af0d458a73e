"""The geometric median: of points at hand, and of a stream."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streamlearn.contracts import FloatArray
from streamlearn.errors import BadParameter, BadShape, BadValue
from streamlearn.kernels.robust_median import squared_distance
from streamlearn.learners.robust.checks import checked_count, checked_positive
from streamlearn.learners.robust.filters import TOLERANCE, Filter, ProximalFilter, WindowFilter
from streamlearn.learners.transformer import Estimator

_MAX_ITERATIONS = 10_000
_CHECK_NEAREST_EVERY = 8


def geometric_median(
    points: ArrayLike, *, weights: ArrayLike | None = None, tolerance: float = TOLERANCE
) -> FloatArray:
    """Return the point whose summed distance to the given points is least.

    Weiszfeld's iteration with the safeguard of Vardi and Zhang (2000), started at the coordinate-wise median. It stops
    where the sum is provably within the fraction `tolerance` of its minimum: by the norm g of the gradient of least
    norm, f(y) - f_min <= g ||y - y*|| <= 2 g f(y) / n.

    Parameters
    ----------
    points : float64[n_points, n_features]
        Finite, at least one point.
    weights : float64[n_points] or None
        How often each point counts: finite, not negative, not all 0. None = once.
    tolerance : float
        Relative optimality gap.

    Returns
    -------
    float64[n_features]
        Moves with shifts, rotations and scalings of the points.

    Raises
    ------
    BadShape, BadValue, BadParameter

    Examples
    --------
    >>> from streamlearn import geometric_median
    >>> geometric_median([[0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [9.0, 1e6]])
    array([0., 0.])
    """
    P = np.array(points, dtype=np.float64)
    if P.ndim != 2 or len(P) == 0:
        raise BadShape(f"geometric_median: points must be [n_points >= 1, n_features], got shape {P.shape}")
    if not np.isfinite(P).all():
        raise BadValue("geometric_median: points must be finite numbers")
    checked_positive("geometric_median", "tolerance", tolerance)
    m = _checked_weights(weights, len(P))
    P, m = P[m > 0.0], m[m > 0.0]
    origin = np.median(P, axis=0)
    P /= 2.0  # of numbers near the largest one the differences would overflow
    P -= origin / 2.0
    size = float(np.abs(P).max(initial=0.0))
    if size == 0.0:
        return origin
    P /= size
    y = _weiszfeld(P, m, tolerance)
    y *= size
    y += origin / 2.0
    y *= 2.0
    return y


def _checked_weights(weights: ArrayLike | None, n_points: int) -> FloatArray:
    if weights is None:
        return np.ones(n_points)
    m = np.array(weights, dtype=np.float64)
    if m.shape != (n_points,):
        raise BadShape(f"geometric_median: weights must be [{n_points}], one a point, got shape {m.shape}")
    if not (np.isfinite(m).all() and (m >= 0.0).all() and m.any()):
        raise BadValue("geometric_median: weights must be finite, not negative and not all 0")
    m /= m.max()
    return m


def _weiszfeld(P: FloatArray, m: FloatArray, tolerance: float) -> FloatArray:
    y: FloatArray = np.zeros(P.shape[1])
    total = float(m.sum())
    for step in range(_MAX_ITERATIONS):
        target, pull, at = _towards(P, m, y)
        if 2.0 * (pull - at) <= tolerance * total:
            break
        if step % _CHECK_NEAREST_EVERY == _CHECK_NEAREST_EVERY - 1:
            # Towards a median that is one of the points the iteration crawls, but that point proves itself.
            nearest: FloatArray = P[np.square(P - y).sum(axis=1).argmin()]
            _, pull_there, at_there = _towards(P, m, nearest)
            if pull_there <= at_there:
                return nearest.copy()
        keep = min(at / pull, 1.0)
        y = (1.0 - keep) * target + keep * y
    return y


def _towards(P: FloatArray, m: FloatArray, y: FloatArray) -> tuple[FloatArray, float, float]:
    """Return the Weiszfeld point, the norm of the pull of all points not at y, and the weight of those at y."""
    D = P - y
    d = np.sqrt(np.square(D).sum(axis=1))
    away = d > 0.0
    inverse = np.divide(m, d, where=away, out=np.zeros(len(d)))
    pull = float(np.linalg.norm(inverse @ D))
    total = inverse.sum()
    target: FloatArray = y + (inverse @ D) / total if total > 0 else y
    return target, pull, float(m[~away].sum())


class GeometricMedian(Estimator):
    """The geometric median of a stream of rows.

    While more than half of the rows are good it stays within a fixed multiple of their spread, however far away the
    rest: with a share g < 1/2 of bad rows at most (1 - g) / sqrt(1 - 2 g) times the good rows' largest distance from
    their own median.

    Parameters
    ----------
    window : int or None
        The exact median of the last rows: the most robust form, and the one that follows drift. None = the recursion
        of Feng, Xu and Mannor (2017) over all rows: a proximal step w = min(1, eta / d) each.
    averaged : bool
        Average the iterates of the recursion (Cardot, Cenac and Zitt 2013); needs ``window=None``.
    c_a : float or None
        The recursion's step is 1 / (c_a t). None (default, unlike the paper) = the running median of the distances over
        t, which is right in any unit.
    half_life : float or None
        The recursion never steps by less than ln 2 / half_life of the running median distance; needs ``window=None``.
    n_start : int
        The recursion starts at the exact median of so many rows.
    max_features : int
        Bound of the width.

    Attributes
    ----------
    median_ : float64[n_features]
    distance_, weight_ : float
        Of the last row: distance to the window's median and share in it; or distance to the recursion's median before
        it, and the step towards it.

    Examples
    --------
    >>> import numpy as np
    >>> from streamlearn import GeometricMedian
    >>> rows = np.random.default_rng(0).normal(size=(200, 3))
    >>> rows[::5] = 1e6
    >>> bool(np.abs(GeometricMedian().learn_many(rows).median_).max() < 1)
    True
    """

    _error = "distance"

    def __init__(
        self,
        *,
        window: int | None = 50,
        averaged: bool = False,
        c_a: float | None = None,
        half_life: float | None = None,
        n_start: int = 15,
        max_features: int = 100_000,
    ) -> None:
        self.window = window
        self.averaged = averaged
        self.c_a = c_a
        self.half_life = half_life
        self.n_start = n_start
        self.max_features = max_features
        self._filter = make_filter(self.name, window, averaged, c_a, half_life, n_start)
        super().__init__()

    @property
    def median_(self) -> FloatArray:
        """The present median: float64[n_features], a copy."""
        return self._filter.centre().copy()

    @property
    def distance_(self) -> float:
        """Distance of the last row to the window's median, or to the recursion's before it."""
        return self._filter.last()[0]

    @property
    def weight_(self) -> float:
        """The last row's share in the window's median, or the recursion's step towards it."""
        return self._filter.last()[1]

    def _widen(self, n_features: int) -> None:
        self._filter.widen(n_features)

    def _learn(self, X: FloatArray) -> None:
        self._filter.extend(X)

    def _errors(self, X: FloatArray, out: FloatArray) -> int:
        centre = self._filter.centre()
        for i in range(len(X)):
            out[i] = np.sqrt(squared_distance(X[i], centre))
        return -1

    def _test_then_learn(self, X: FloatArray, out: FloatArray) -> None:
        self._filter.push(X, out)

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return self._filter.arrays()

    def _set_arrays(self, arrays: dict[str, NDArray[Any]]) -> None:
        super()._set_arrays(arrays)
        self._filter.changed()


def make_filter(
    who: str,
    window: int | None,
    averaged: bool = False,
    c_a: float | None = None,
    half_life: float | None = None,
    n_start: int = 15,
) -> Filter:
    """Return the filter that these parameters describe.

    Raises
    ------
    BadParameter
    """
    checked_count(who, "n_start", n_start, 1)
    if not isinstance(averaged, bool):
        raise BadParameter(f"{who}: averaged must be True or False, got {averaged!r}")
    for name, value in (("c_a", c_a), ("half_life", half_life)):
        if value is not None:
            checked_positive(who, name, value)
    if window is None:
        return ProximalFilter(n_start, c_a, half_life, averaged)
    checked_count(who, "window", window, 1)
    if averaged or c_a is not None or half_life is not None:
        raise BadParameter(f"{who}: window must be None with averaged, c_a or half_life, got {window!r}")
    return WindowFilter(window)


def in_batches(who: str, half_life: float | None, batch_size: int) -> float | None:
    """Return a half-life given in rows as one in mini-batches."""
    return None if half_life is None else checked_positive(who, "half_life", half_life) / batch_size
