"""Trimmed inner products: what of a sum of products is left when the largest are not believed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streamlearn.contracts import FloatArray, IntArray
from streamlearn.errors import BadParameter, BadShape, BadValue
from streamlearn.kernels.robust_columns import (
    centred_columns,
    centred_columns_parallel,
    columns_again,
    columns_again_parallel,
)
from streamlearn.kernels.robust_covariance import TILE, trimmed_covariance, trimmed_covariance_parallel
from streamlearn.kernels.robust_selection import trimmed_pairs, trimmed_pairs_parallel, trimmed_product
from streamlearn.learners.robust.checks import checked_trim

LARGEST = 1e150
"""Values are clipped here, so that their products stay finite."""

_LINE = 64

WORTH_THREADS = 40_000_000
"""Values times columns from which two threads pay: about 20 ms of work. The result is the same."""


def trimmed_inner_product(a: ArrayLike, b: ArrayLike, n_trim: int) -> float:
    """Return the mean of the products a[i] b[i] without the `n_trim` of largest size.

    Feng, Xu and Mannor (2017), Algorithm 2, but for the division by the number kept: a sum would shrink with the trim.
    Among equal sizes the earlier rows stay. Both sides should be centred.

    Parameters
    ----------
    a, b : float64[n]
    n_trim : int
        From 0 to n - 1.

    Raises
    ------
    BadShape, BadValue, BadParameter

    Examples
    --------
    >>> from streamlearn import trimmed_inner_product
    >>> trimmed_inner_product([1.0, 2.0, 100.0], [1.0, 2.0, -100.0], 1)
    2.5
    """
    who = "trimmed_inner_product"
    left, right = finite(who, "a", a, 1), finite(who, "b", b, 1)
    if len(left) != len(right) or len(left) == 0:
        raise BadShape(f"{who}: a and b must have one length >= 1, got {len(left)} and {len(right)}")
    if isinstance(n_trim, bool) or not isinstance(n_trim, (int, np.integer)) or not 0 <= n_trim < len(left):
        raise BadParameter(f"{who}: n_trim must be a whole number in [0, {len(left) - 1}], got {n_trim!r}")
    return trimmed_product(left.clip(-LARGEST, LARGEST), right.clip(-LARGEST, LARGEST), int(n_trim))


def rotr(X: ArrayLike, y: ArrayLike, trim: float) -> FloatArray:
    """Return the coefficients of robust thresholding regression: theta_j = trimmed mean of y x_j.

    Chen, Caramanis and Mannor (2013), as used by Feng, Xu and Mannor (2017), divided by the number kept. Right for
    centred rows whose covariance is the identity; where more than the outliers is trimmed, shrunk towards 0.

    Parameters
    ----------
    X : float64[n_rows, n_features]
    y : float64[n_rows]
    trim : float
        Share of the products to drop, in [0, 1).

    Returns
    -------
    float64[n_features]

    Raises
    ------
    BadShape, BadValue, BadParameter

    Examples
    --------
    >>> import numpy as np
    >>> from streamlearn import rotr
    >>> X = np.random.default_rng(0).normal(size=(5000, 2))
    >>> y = X @ [2.0, -1.0]
    >>> y[:500] = 1e9
    >>> rotr(X, y, 0.1).round(0)
    array([ 2., -1.])
    """
    who = "rotr"
    rows, target = finite(who, "X", X, 2), finite(who, "y", y, 1)
    if len(rows) != len(target) or len(rows) == 0:
        raise BadShape(f"{who}: X and y must have one length >= 1, got {len(rows)} and {len(target)}")
    checked_trim(who, trim)
    return trimmed_products(rows, target, trim)


def trimmed_products(X: FloatArray, y: FloatArray, trim: float) -> FloatArray:
    """Return the trimmed mean of y x_j for each column j: float64[n_features]."""
    columns = np.ascontiguousarray(X.T).clip(-LARGEST, LARGEST)
    target = y.clip(-LARGEST, LARGEST)
    n_trim = n_trimmed(trim, len(y))
    return np.array([trimmed_product(column, target, n_trim) for column in columns])


@dataclass(frozen=True, slots=True)
class _Step:
    """Columns to be laid into rows of the buffer, and the tiles of pairs that can then be filled.

    Attributes
    ----------
    first : int
        The first of the columns.
    rows : slice
        Where they go.
    places : int64[n_rows of the buffer]
        The column that is then in each row, or -1.
    tiles : int64[n_tiles, 2]
    again : bool
        The columns were there before.
    """

    first: int
    rows: slice
    places: IntArray
    tiles: IntArray
    again: bool


def _steps(p: int) -> Iterator[_Step]:
    """Yield the steps that fill all pairs of p columns while half of them are in memory.

    Each quarter meets the others in turn. Three are laid down twice, which costs three quarters of a transposition.
    """
    size = TILE * max(-(-p // (4 * TILE)), 1)
    quarters = [range(first, min(first + size, p)) for first in range(0, max(p, 1), size)]
    places = np.full(min(2 * size, p), -1, dtype=np.int64)
    lower = range(0, size, TILE)
    order = [(0, 0)] + [(k, size) for k in range(1, len(quarters))]
    order += {3: [(1, 0)], 4: [(1, 0), (2, size), (3, 0)]}.get(len(quarters), [])
    for number, (quarter, row) in enumerate(order):
        columns, again = quarters[quarter], number >= len(quarters)
        places[row : row + size] = -1
        rows = slice(row, row + len(columns))
        places[rows] = columns
        here = range(row, row + len(columns), TILE)
        upper = [a for a in range(size, len(places), TILE) if places[a] >= 0]
        tiles = [(a, b) for a in here for b in here if a <= b and not again] + [(a, b) for a in lower for b in upper]
        yield _Step(columns.start, rows, places.copy(), np.array(tiles, dtype=np.int64).reshape(-1, 2), again)


class TrimmedCovariance:
    """Trimmed covariance matrices of one batch after the other.

    It keeps its buffers, three quarters of a batch, and where the thresholds were in the last batch: that saves time
    and never changes a bit.

    Attributes
    ----------
    medians : float64[p]
        The centre of the last batch.
    """

    def __init__(self) -> None:
        self.medians: FloatArray = np.zeros(0)
        self._shape = (0, 0)
        self._steps: list[_Step] = []
        self._columns = np.zeros((0, 0))
        self._logs: NDArray[np.int16] = np.zeros((0, 0), dtype=np.int16)
        self._scales: FloatArray = np.zeros((2, 0))
        self._matrix_hints = np.zeros((2, 0, 0))
        self._median_hints = np.zeros((2, 0))

    def __deepcopy__(self, memo: object) -> TrimmedCovariance:
        return TrimmedCovariance()

    def _make_room(self, n: int, p: int) -> None:
        self._shape, self._steps = (n, p), list(_steps(p))
        m = len(self._steps[0].places)
        self._columns, self.medians = aligned(m, n, np.float64), np.empty(p)
        self._logs, self._scales = aligned(p, n, np.int16), np.zeros((2, p))
        self._matrix_hints, self._median_hints = np.zeros((2, p, p)), np.zeros((2, p))

    def of(self, X: FloatArray, trim: float) -> FloatArray:
        """Return the trimmed covariance float64[p, p] of the rows, about their coordinate-wise median.

        Parameters
        ----------
        X : float64[n, p]
            C-contiguous and finite, at least one row and one column.
        trim : float
            Share of the products to drop for each pair of columns, in [0, 1).
        """
        n, p = X.shape
        if self._shape != (n, p):
            self._make_room(n, p)
        worth = n * p * p >= WORTH_THREADS
        lay = centred_columns_parallel if worth else centred_columns
        lay_again = columns_again_parallel if worth else columns_again
        fill = trimmed_covariance_parallel if worth else trimmed_covariance
        fill_left = trimmed_pairs_parallel if worth else trimmed_pairs
        out, n_trim, hints = np.empty((p, p)), n_trimmed(trim, n), self._matrix_hints
        for step in self._steps:
            columns, left = self._columns[step.rows], np.zeros((len(step.tiles), 1 + TILE * TILE, 2), dtype=np.int64)
            if step.again:
                lay_again(X, step.first, self.medians, columns)
            else:
                lay(X, step.first, self._median_hints, self.medians, columns, self._logs, self._scales)
            fill(self._columns, self._logs, self._scales, step.places, step.tiles, n_trim, hints, left, out)
            if left[:, 0, 0].any():
                fill_left(self._columns, step.places, left, n_trim, hints, out)
        return out


def aligned(m: int, n: int, dtype: type[np.number[Any]]) -> NDArray[Any]:
    """Return memory for m rows of n numbers that begins with a cache line.

    Elsewhere every other load of 32 bytes crosses into the next line: sums of products then take a quarter longer.
    """
    size = m * n * np.dtype(dtype).itemsize
    memory = np.empty(size + _LINE, dtype=np.uint8)
    start = -memory.ctypes.data % _LINE
    return memory[start : start + size].view(dtype).reshape(m, n)


def n_trimmed(trim: float, n: int) -> int:
    """Return how many of n products to drop: at least one stays."""
    return min(round(trim * n), n - 1)


def finite(who: str, name: str, values: ArrayLike, n_dims: int) -> FloatArray:
    """Return a C-contiguous float64 array of so many dimensions, or raise BadShape or BadValue."""
    array = np.ascontiguousarray(values, dtype=np.float64)
    if array.ndim != n_dims:
        raise BadShape(f"{who}: {name} must have {n_dims} dimensions, got {array.ndim}")
    if not np.isfinite(array).all():
        raise BadValue(f"{who}: {name} must be finite numbers")
    return array
