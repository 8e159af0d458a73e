"""Filters of estimates: the present one of a stream of vectors, part of which may be anything.

Feng, Xu and Mannor, "Outlier Robust Online Learning" (2017): estimates from mini-batches are combined by their
geometric median, which stays right while more than half of them are.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import FloatArray
from streamlearn.kernels.robust_median import (
    combine,
    proximal,
    running_median,
    squared_distance,
    weiszfeld,
    window_push,
)

TOLERANCE = 1e-10
"""Proven relative optimality gap of a geometric median; its place is then right to about this times the spread."""

SUSPICIOUS = 4.0
"""Median distances from the centre beyond which an estimate is suspicious."""


class Filter(Protocol):
    """What holds a stream of vectors together."""

    def widen(self, n_features: int) -> None:
        """Append coordinates that were 0 for ever."""
        ...

    def push(self, X: FloatArray, distances: FloatArray) -> None:
        """Take rows float64[n_rows, n_features]; write the distance of each to the centre before it."""
        ...

    def extend(self, X: FloatArray) -> None:
        """Take rows without asking for distances: the same state."""
        ...

    def centre(self) -> FloatArray:
        """Return the present centre float64[n_features]; zeros before the first row. Not to be changed."""
        ...

    def last(self) -> tuple[float, float]:
        """Return distance and weight of the last row; zeros before the first."""
        ...

    def usual_distance(self) -> float:
        """Return the median distance of rows to the centre."""
        ...

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the state (not copies)."""
        ...

    def changed(self) -> None:
        """Take note that the arrays were filled from outside."""
        ...


class WindowFilter:
    """The exact geometric median of the last rows.

    Its state is the ring of rows and their matrix of squared distances, so one row costs O(window * n_features). The
    median is a function of these alone: found when asked for, by O(window^2) iterations, and the same after a restore.

    Parameters
    ----------
    window : int
    """

    def __init__(self, window: int) -> None:
        self.window = window
        self._points = np.zeros((window, 0))
        self._squares = np.zeros((window, window))
        self._count = np.zeros(1, dtype=np.int64)
        self._weights = np.zeros(window)
        self._distances = np.zeros(window)
        self._scratch = np.zeros((2, window))
        self._centre = np.zeros(0)
        self._fresh = True

    def __len__(self) -> int:
        return min(int(self._count[0]), self.window)

    def widen(self, n_features: int) -> None:
        """Append coordinates that were 0 for ever: no distance changes."""
        self._points = np.pad(self._points, ((0, 0), (0, n_features - self._points.shape[1])))
        self._centre = np.pad(self._centre, (0, n_features - len(self._centre)))

    def push(self, X: FloatArray, distances: FloatArray) -> None:
        """Take rows; the distances of each to the centre before it cost a median each."""
        for i in range(len(X)):
            distances[i] = np.sqrt(squared_distance(X[i], self.centre()))
            self.extend(X[i : i + 1])

    def extend(self, X: FloatArray) -> None:
        """Take rows without asking for distances."""
        window_push(X, self._points, self._squares, self._count)
        self._fresh = False

    def _solve(self) -> None:
        if not self._fresh:
            if len(self):
                weiszfeld(self._squares, len(self), TOLERANCE, self._weights, self._distances, self._scratch)
                combine(self._points, len(self), self._weights, self._centre)
            self._fresh = True

    def centre(self) -> FloatArray:
        """Return the geometric median of the window; zeros before the first row."""
        self._solve()
        return self._centre

    def weights(self) -> FloatArray:
        """Return the share of each row of the ring in the median: float64[n_rows so far, at most window]."""
        self._solve()
        return self._weights[: len(self)]

    def spread(self) -> FloatArray:
        """Return the distance of each row of the ring from the median."""
        self._solve()
        return self._distances[: len(self)]

    def last(self) -> tuple[float, float]:
        """Return the last row's distance to the present median, and its share in it."""
        if not len(self):
            return 0.0, 0.0
        slot = (int(self._count[0]) - 1) % self.window
        return float(self.spread()[slot]), float(self.weights()[slot])

    def usual_distance(self) -> float:
        """Return the median distance of the window's rows to their median."""
        return float(np.median(self.spread())) if len(self) else 0.0

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the state (not copies)."""
        return {"points": self._points, "squares": self._squares, "count": self._count}

    def changed(self) -> None:
        """Take note that the arrays were filled from outside."""
        self._fresh = False


class ProximalFilter:
    """The geometric median of all rows by one proximal step each, after an exact median of the first ones.

    Parameters
    ----------
    n_start : int
        Rows whose exact median starts the recursion: a bad first row would be forgotten very slowly.
    c_a : float or None
        Constant of the step 1 / (c_a t); None = the inverse of the running median of the distances, which is the
        strong-convexity constant that the paper's step asks for, whatever the unit.
    half_life : float or None
        Rows after which a step has halved an old centre's share, for tracking.
    averaged : bool
        Average the iterates (Cardot, Cenac and Zitt 2013).
    """

    def __init__(self, n_start: int, c_a: float | None, half_life: float | None, averaged: bool) -> None:
        self._start = WindowFilter(n_start)
        self._c_a = 0.0 if c_a is None else float(c_a)
        self._rate = 0.0 if half_life is None else float(np.log(2.0) / half_life)
        self._averaged = averaged
        self._iterate = np.zeros(0)
        self._centre = np.zeros(0)
        self._heights = np.zeros(5)
        self._places = np.zeros(6)
        self._count = np.zeros(1, dtype=np.int64)
        self._last = np.zeros(2)
        self._row = np.zeros(0)

    def widen(self, n_features: int) -> None:
        """Append coordinates that were 0 for ever."""
        self._start.widen(n_features)
        self._row = np.zeros(n_features)
        self._iterate = np.pad(self._iterate, (0, n_features - len(self._iterate)))
        self._centre = np.pad(self._centre, (0, n_features - len(self._centre)))

    def push(self, X: FloatArray, distances: FloatArray) -> None:
        """Take rows; write the distance of each to the centre before it."""
        first = min(max(self._start.window - int(self._count[0]), 0), len(X))
        if first:
            self._start.push(X[:first], distances[:first])
            self._count[0] += first
            self._last[:] = self._start.last()
            if self._count[0] == self._start.window:
                self._begin()
        if first < len(X):
            proximal(
                X[first:],
                self._iterate,
                self._centre,
                self._heights,
                self._places,
                self._count,
                self._c_a,
                self._rate,
                self._averaged,
                self._last,
                distances[first:],
                self._row,
            )

    def extend(self, X: FloatArray) -> None:
        """Take rows without asking for distances: the same state."""
        self.push(X, np.empty(len(X)))

    def _begin(self) -> None:
        self._centre[:] = self._start.centre()
        self._iterate[:] = self._centre
        for d in self._start.spread().tolist():
            running_median(d, self._heights, self._places)

    def centre(self) -> FloatArray:
        """Return the present centre; zeros before the first row."""
        return self._start.centre() if self._count[0] < self._start.window else self._centre

    def last(self) -> tuple[float, float]:
        """Return the last row's distance to the centre before it, and the step's weight w = min(1, eta / d)."""
        return float(self._last[0]), float(self._last[1])

    def usual_distance(self) -> float:
        """Return the running median of the distances."""
        return self._start.usual_distance() if self._count[0] < self._start.window else float(self._heights[2])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the state (not copies)."""
        return {
            **{f"start_{name}": array for name, array in self._start.arrays().items()},
            "iterate": self._iterate,
            "centre": self._centre,
            "heights": self._heights,
            "places": self._places,
            "count": self._count,
            "last": self._last,
        }

    def changed(self) -> None:
        """Take note that the arrays were filled from outside."""
        self._start.changed()
