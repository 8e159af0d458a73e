"""How large a correlation certainly is: Wilson's lower bound."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streamlearn.contracts import FloatArray
from streamlearn.errors import BadParameter


def wilson_lower_bound(correlation: ArrayLike, n: ArrayLike, failure_prob: float = 0.01) -> FloatArray:
    """Return Wilson's lower bound of correlations E[h y] that were measured on n labels each.

    With z the normal quantile of 1 - failure_prob / 2: max(0, (c - z sqrt((1 - c^2) / n + z^2 / n^2)) / (1 + z^2 / n)),
    the score interval of the error (1 - c) / 2 (Wilson 1927) in closed form. The failure probability is split over two
    tails, so one bound fails with half of it. Positive exactly where c > z / sqrt(n).

    Parameters
    ----------
    correlation : float or float64[...]
        c, in [-1, 1].
    n : int or int64[...]
        Labels, 0 gives the bound 0; broadcast against `correlation`.
    failure_prob : float
        In (0, 1).

    Returns
    -------
    float64[...]
        In [0, c]; 0-dimensional for scalars.

    Raises
    ------
    BadParameter

    Examples
    --------
    >>> from streamlearn import wilson_lower_bound
    >>> wilson_lower_bound([1.0, 0.8], [10, 50], failure_prob=0.01).round(6)
    array([0.202292, 0.480538])
    """
    if not isinstance(failure_prob, (int, float)) or not 0 < failure_prob < 1:
        raise BadParameter(f"wilson_lower_bound: failure_prob must be in (0, 1), got {failure_prob!r}")
    c, count = np.asarray(correlation, dtype=np.float64), np.asarray(n, dtype=np.float64)
    if not (np.abs(c) <= 1.0).all():
        raise BadParameter(f"wilson_lower_bound: correlation must be in [-1, 1], got {_first(c, ~(np.abs(c) <= 1.0))}")
    if not (np.isfinite(count) & (count >= 0)).all():
        bad = ~(np.isfinite(count) & (count >= 0))
        raise BadParameter(f"wilson_lower_bound: n must be >= 0, got {_first(count, bad)}")
    z = NormalDist().inv_cdf(1.0 - failure_prob / 2.0)
    r = np.divide(z * z, count, where=count > 0, out=np.zeros(np.broadcast(c, count).shape))
    # z sqrt((1 - c^2) / n + z^2 / n^2) = sqrt((1 - c^2) r + r^2)
    bound = (c - np.sqrt((1.0 - c * c) * r + r * r)) / (1.0 + r)
    return np.where(count > 0, np.maximum(bound, 0.0), 0.0)


def _first(values: FloatArray, bad: NDArray[np.bool_]) -> float:
    return float(values[bad].flat[0])
