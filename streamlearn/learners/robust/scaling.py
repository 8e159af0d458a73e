"""Robust centre and scale of what is learned from, whatever part of it is bad."""

from __future__ import annotations

import numpy as np

from streamlearn.contracts import FloatArray

MAD_TO_SIGMA = 1.4826
"""Standard deviation of a normal sample over its median absolute deviation."""


def median_and_deviation(values: FloatArray) -> tuple[float, float]:
    """Return the median and a robust standard deviation > 0: by the median deviation, else the plain one, else 1."""
    middle = float(np.median(values))
    off = np.abs(values - middle)
    unit = MAD_TO_SIGMA * float(np.median(off))
    if unit == 0.0:
        largest = float(off.max())
        unit = largest * float(np.sqrt(np.mean(np.square(off / largest)))) if largest > 0.0 else 1.0
    return middle, unit


def scaled_targets(y: FloatArray, middle: float, unit: float) -> FloatArray:
    """Return the targets in robust standard deviations, gross ones clipped at 1e9 so that squares stay finite."""
    scaled: FloatArray = np.clip(y - middle, -1e9 * unit, 1e9 * unit) / unit
    return scaled


def start_scaling(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return centre and scale of each column: median and median deviation, else the standard deviation, else 0.

    Parameters
    ----------
    X : float64[n, p]

    Returns
    -------
    centre, scale : float64[p]
        A scale of 0 stands for a constant column.
    """
    pairs = [median_and_deviation(column) if column.min() < column.max() else (column[0], 0.0) for column in X.T]
    both = np.array(pairs, dtype=np.float64).reshape(-1, 2)
    return np.ascontiguousarray(both[:, 0]), np.ascontiguousarray(both[:, 1])
