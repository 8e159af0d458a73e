"""Robust regression by mini-batches: one robust fit each, held together by their geometric median."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import Document, FloatArray
from streamlearn.kernels.robust_bank import first_scales, scaled_row
from streamlearn.learners.robust.blas import one_blas_thread
from streamlearn.learners.robust.filters import SUSPICIOUS, Filter
from streamlearn.learners.robust.lts import LeastTrimmedSquaresFitter, thresholding
from streamlearn.learners.robust.scaling import median_and_deviation, scaled_targets, start_scaling
from streamlearn.learners.robust.waiting import WaitingRows


class RobustBatches:
    """The state of ``ORLRegressor(mode="batches")``.

    Parameters
    ----------
    batch_size : int
    base : {"lts", "rotr"}
    trim : float or None
        None = automatic.
    held : Filter
    """

    def __init__(self, batch_size: int, base: str, trim: float | None, held: Filter) -> None:
        self._base, self._trim, self._held = base, trim, held
        self._fitter = LeastTrimmedSquaresFitter()
        self._waiting = WaitingRows(batch_size)
        self._centre, self._scale = np.zeros(0), np.zeros(0)
        self._unit = np.array([0.0, 1.0])  # middle and unit of the targets
        self._marks = np.zeros(4)  # batches so far; scale of the residuals; distance and median distance of the last
        self._row = np.zeros(1)
        self._held.widen(1)

    def widen(self, n_features: int) -> None:
        """Append columns that were 0 for ever."""
        grow = n_features - len(self._centre)
        self._centre, self._scale = np.pad(self._centre, (0, grow)), np.pad(self._scale, (0, grow))
        self._waiting.widen(n_features)
        self._row = np.zeros(n_features + 1)
        self._held.widen(n_features + 1)

    def run(self, X: FloatArray, y: FloatArray, out: FloatArray) -> None:
        """Predict each row, then learn it where it has a target."""
        for i in range(len(X)):
            self.predict(X[i : i + 1], out[i : i + 1])
            if y[i] == y[i]:  # not NaN: it has a target
                self._waiting.take(X[i], y[i])
                if self._waiting.full:
                    self._estimate()

    def predict(self, X: FloatArray, out: FloatArray) -> None:
        """Write the predictions of rows."""
        if not self.n_batches:
            out[:] = self._waiting.middle()
            return
        theta = self._held.centre()
        for i in range(len(X)):
            scaled_row(X[i], self._centre, self._scale, self._row)
            out[i] = self._unit[0] + self._unit[1] * float(np.dot(self._row, theta))

    @property
    def n_batches(self) -> int:
        """Batches so far."""
        return int(self._marks[0])

    def _estimate(self) -> None:
        X, y = self._waiting.rows, self._waiting.targets
        if not self.n_batches:
            self._centre[:], self._scale[:] = start_scaling(X)
            self._unit[:] = median_and_deviation(y)
        for x in X:
            first_scales(x, self._centre, self._scale)
        Z = np.zeros((len(X), len(self._row)))
        for x, z in zip(X, Z, strict=True):
            scaled_row(x, self._centre, self._scale, z)
        target = scaled_targets(y, float(self._unit[0]), float(self._unit[1]))
        theta, sigma = self._fit(np.ascontiguousarray(Z[:, 1:]), target)
        distance = np.empty(1)
        self._held.push(theta.reshape(1, -1), distance)
        usual = self._held.usual_distance()
        self._marks[:] = self.n_batches + 1, sigma * self._unit[1], distance[0], usual
        self._waiting.clear()

    def _fit(self, Z: FloatArray, y: FloatArray) -> tuple[FloatArray, float]:
        if self._base == "rotr":
            with one_blas_thread():
                *_, theta = thresholding(self._fitter.covariance, Z, y, 0.5 if self._trim is None else self._trim)
            return theta, median_and_deviation(y - theta[0] - Z @ theta[1:])[1]
        fit = self._fitter.fit(Z, y, self._held.centre().copy() if self.n_batches else None, self._trim)
        return fit.theta, fit.sigma

    def coefficients(self) -> FloatArray:
        """Return intercept and coefficients in the units of the data: float64[n_features + 1]."""
        out = np.zeros(len(self._row))
        if not self.n_batches:
            out[0] = self._waiting.middle()
            return out
        theta = self._held.centre() * self._unit[1]
        known = self._scale > 0.0
        out[1:][known] = theta[1:][known] / self._scale[known]
        out[0] = self._unit[0] + theta[0] - out[1:] @ self._centre
        return out

    @property
    def scale(self) -> float:
        """Standard deviation of good residuals in the last batch; NaN before the first."""
        return float(self._marks[1]) if self.n_batches else np.nan

    @property
    def last_batch(self) -> tuple[float, float, bool]:
        """Distance of the last batch's estimate to the centre before it, its weight, and whether it is suspicious."""
        distance, usual = self._marks[2], self._marks[3]
        return float(distance), self._held.last()[1], bool(self.n_batches > 2 and distance > SUSPICIOUS * usual)

    def numbers(self) -> Document:
        """Return what shapes depend on: nothing."""
        return {}

    def set_numbers(self, numbers: Document) -> None:
        """Take what `numbers` gave."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the state (not copies)."""
        return {
            "centre": self._centre,
            "scale": self._scale,
            "unit": self._unit,
            "marks": self._marks,
            **self._waiting.arrays(),
            **{f"filter_{name}": array for name, array in self._held.arrays().items()},
        }

    def changed(self) -> None:
        """Take note that the arrays were filled from outside."""
        self._held.changed()
