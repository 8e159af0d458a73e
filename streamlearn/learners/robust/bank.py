"""Robust regression event by event: a bank of recursive fits with different memories, mixed by their losses."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import Document, FloatArray
from streamlearn.kernels.robust_bank import (
    HIGH,
    LOW,
    N_NUMBERS,
    STRIDE,
    S,
    bank_rows,
    gather_start,
    scaled_row,
)
from streamlearn.learners.robust.lts import LeastTrimmedSquaresFitter
from streamlearn.learners.robust.scaling import MAD_TO_SIGMA, median_and_deviation, scaled_targets, start_scaling

HALF_LIVES = (4000.0, 1000.0, 250.0, 60.0, 20.0)
N_UNBOUNDED = 2
"""Experts before these whose memory is all rows: the convex companion, and one that cuts outliers off."""

_BISQUARE = 4.685
_BELIEVED = 0.3
"""Weight from which on a target of the start counts for the range of believed targets."""


class RobustBank:
    """The state of ``ORLRegressor(mode="events")``.

    Parameters
    ----------
    half_life : float or None
        Rows after which any expert has forgotten half; None = some never forget.
    """

    def __init__(self, half_life: float | None) -> None:
        least = 0.0 if half_life is None else 1.0 - 0.5 ** (1.0 / half_life)
        rates = [0.0] * N_UNBOUNDED + [1.0 - 0.5 ** (1.0 / h) for h in HALF_LIVES]
        self._rates = np.maximum(rates, least)
        n = len(rates)
        self.started = False
        self._fitter = LeastTrimmedSquaresFitter()
        self._numbers = np.zeros(N_NUMBERS)
        self._losses, self._lags, self._ages = np.zeros(n), np.zeros(n), np.zeros(n)
        self._centre, self._scale = np.zeros(0), np.zeros(0)
        self._waiting, self._answers = np.zeros((0, 0)), np.zeros(0)
        self._count = np.zeros(1, dtype=np.int64)
        self._grams, self._targets, self._theta = np.zeros((n, 0, 0)), np.zeros((n, 0)), np.zeros((n, 0))
        self._scratch = np.zeros((4, 0))
        self.widen(0)

    @property
    def _n_start(self) -> int:
        """Rows that the start waits for: a few more than twice the coefficients."""
        return 2 * (len(self._centre) + 1) + 50

    def widen(self, n_features: int) -> None:
        """Append columns that were 0 for ever."""
        grow = n_features - len(self._centre)
        p = n_features + 1
        stride = -(-p // STRIDE) * STRIDE
        self._centre, self._scale = np.pad(self._centre, (0, grow)), np.pad(self._scale, (0, grow))
        more, wide = p - self._targets.shape[1], stride - self._theta.shape[1]
        self._grams = np.pad(self._grams, ((0, 0), (0, more), (0, wide)))
        self._targets = np.pad(self._targets, ((0, 0), (0, more)))
        self._theta = np.pad(self._theta, ((0, 0), (0, wide)))
        self._scratch = np.zeros((4, stride))
        self._make_room(n_features)

    def _make_room(self, n_features: int) -> None:
        """Give the waiting rows their room, or none once they were used."""
        shape = (0, n_features) if self.started else (self._n_start, n_features)
        waiting, answers = np.zeros(shape), np.zeros(shape[0])
        n, m = min(len(self._waiting), shape[0]), min(self._waiting.shape[1], n_features)
        waiting[:n, :m], answers[:n] = self._waiting[:n, :m], self._answers[:n]
        self._waiting, self._answers = waiting, answers

    def run(self, X: FloatArray, y: FloatArray, out: FloatArray) -> None:
        """Predict each row, then learn it where it has a target."""
        i = 0
        while i < len(X) and not self.started:
            out[i] = self._middle()
            if y[i] == y[i]:  # not NaN: it has a target
                self._wait(X[i], y[i])
            i += 1
        if i < len(X):
            self._rows(X[i:], y[i:], out[i:])

    def predict(self, X: FloatArray, out: FloatArray) -> None:
        """Write the predictions of rows."""
        if self.started:
            self._rows(X, np.full(len(X), np.nan), out)
        else:
            out[:] = self._middle()

    def _rows(self, X: FloatArray, y: FloatArray, out: FloatArray) -> None:
        bank_rows(
            X,
            y,
            out,
            N_UNBOUNDED,
            self._rates,
            self._centre,
            self._scale,
            self._numbers,
            self._losses,
            self._lags,
            self._ages,
            self._grams,
            self._targets,
            self._theta,
            self._scratch,
        )

    def _middle(self) -> float:
        n = int(self._count[0])
        return float(np.median(self._answers[:n])) if n else 0.0

    def _wait(self, x: FloatArray, y: float) -> None:
        n = int(self._count[0])
        self._waiting[n], self._answers[n] = np.clip(x, -1e150, 1e150), min(max(y, -1e150), 1e150)
        self._count[0] = n + 1
        if n + 1 >= self._n_start:
            self._begin()

    def _begin(self) -> None:
        """Start all experts from the least trimmed squares fit of the waiting rows."""
        X, y = self._waiting, self._answers
        self._centre, self._scale = start_scaling(X)
        Z = np.zeros((len(X), self._theta.shape[1]))
        for x, z in zip(X, Z, strict=True):
            scaled_row(x, self._centre, self._scale, z)
        p = len(self._centre) + 1
        middle, unit = median_and_deviation(y)
        fit = self._fitter.fit(np.ascontiguousarray(Z[:, 1:p]), scaled_targets(y, middle, unit))
        sigma = max(fit.sigma, 1e-9)
        weights = np.square(np.maximum(1.0 - np.square(fit.residuals / (_BISQUARE * sigma)), 0.0))
        self._theta[:, :p] = fit.theta * unit
        self._theta[:, 0] += middle
        gather_start(Z, y, weights, N_UNBOUNDED, self._rates, self._ages, self._grams, self._targets)
        believed = y[weights > _BELIEVED] if (weights > _BELIEVED).any() else np.array([middle])
        self._numbers[LOW], self._numbers[HIGH] = believed.min(), believed.max()
        self._numbers[S] = sigma / MAD_TO_SIGMA * unit
        self.started = True
        self._make_room(len(self._centre))

    def coefficients(self) -> FloatArray:
        """Return the mixture's intercept and coefficients in the units of the data: float64[n_features + 1]."""
        n = len(self._centre)
        out = np.zeros(n + 1)
        if not self.started:
            out[0] = self._middle()
            return out
        shares = np.exp(-0.3 * (self._losses - self._losses.min()))
        theta = (shares / shares.sum()) @ self._theta[:, : n + 1]
        known = self._scale > 0.0
        out[1:][known] = theta[1:][known] / self._scale[known]
        out[0] = theta[0] - out[1:] @ self._centre
        return out

    @property
    def scale(self) -> float:
        """Standard deviation of good residuals, from their running median; NaN before the start."""
        return float(MAD_TO_SIGMA * self._numbers[S]) if self.started else np.nan

    def numbers(self) -> Document:
        """Return what shapes depend on."""
        return {"started": self.started}

    def set_numbers(self, numbers: Document) -> None:
        """Take what `numbers` gave."""
        self.started = bool(numbers["started"])
        self._make_room(len(self._centre))

    def changed(self) -> None:
        """Take note that the arrays were filled from outside: nothing follows from them."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the state (not copies)."""
        return {
            "numbers": self._numbers,
            "losses": self._losses,
            "lags": self._lags,
            "ages": self._ages,
            "centre": self._centre,
            "scale": self._scale,
            "waiting": self._waiting,
            "answers": self._answers,
            "count": self._count,
            "grams": self._grams,
            "targets": self._targets,
            "theta": self._theta,
        }
