"""Robust regression event by event: a bank of recursive fits with different memories, mixed by their losses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import Document, FloatArray
from streamlearn.kernels.robust_bank import (
    ABOVE,
    BELOW,
    HIGH,
    LOSS_RATE,
    LOW,
    N_NUMBERS,
    QUANTILE,
    QUANTILE_TO_SIGMA,
    STRIDE,
    S,
    bank_rows,
    believed_quantile,
    gather_start,
    scaled_row,
)
from streamlearn.learners.robust.lts import LeastTrimmedSquares, LeastTrimmedSquaresFitter
from streamlearn.learners.robust.scaling import median_and_deviation, scaled_targets, start_scaling

HALF_LIVES = (4000.0, 1000.0, 250.0, 60.0, 20.0)
N_UNBOUNDED = 2
"""Experts before these whose memory is all rows: the convex companion, and one that cuts outliers off."""

_BISQUARE = 4.685
_BELIEVED = 0.3
"""Weight from which on a target of the start counts for the range of believed targets."""

SECOND_LOOK = 4
"""Times the rows of the start after which it is looked at again.

Least trimmed squares of n rows and p columns withstand (n - p) / 2 bad rows: a third of a start's, and nearly half of
so many. After a start that failed the scale is as far off as the bad rows are, and the bank cannot tell them.
"""

_FAILED = 1.6
"""Times the least sum of squares of half the rows that the bank may leave: a start that held leaves less."""

_FEW = 10  # rows
_LARGEST = 1e150
_WAITS, _WATCHES, _SETTLED = 0, 1, 2


@dataclass(frozen=True, slots=True)
class _Start:
    """A fit of the first rows: scaling, scaled rows, targets with their middle and unit, and the fit in these."""

    centre: FloatArray
    scale: FloatArray
    Z: FloatArray
    y: FloatArray
    middle: float
    unit: float
    fit: LeastTrimmedSquares


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
        self._phase = _WAITS
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

    @property
    def started(self) -> bool:
        """The experts have learned."""
        return self._phase != _WAITS

    def _make_room(self, n_features: int) -> None:
        """Give the rows of the start and of the second look their room, or none once they were used."""
        n_rows = 0 if self._phase == _SETTLED else SECOND_LOOK * self._n_start
        waiting, answers = np.zeros((n_rows, n_features)), np.zeros(n_rows)
        n, m = min(len(self._waiting), n_rows), min(self._waiting.shape[1], n_features)
        waiting[:n, :m], answers[:n] = self._waiting[:n, :m], self._answers[:n]
        self._waiting, self._answers = waiting, answers

    def run(self, X: FloatArray, y: FloatArray, out: FloatArray) -> None:
        """Predict each row, then learn it where it has a target."""
        i = 0
        while i < len(X) and not self.started:
            out[i] = self._middle()
            if y[i] == y[i]:  # not NaN: it has a target
                self._keep(X[i : i + 1], y[i : i + 1])
                if self._count[0] >= self._n_start:
                    self._begin(self._fit())
            i += 1
        if i < len(X) and self._phase == _WATCHES:
            i += self._watch(X[i:], y[i:], out[i:])
        if i < len(X):
            self._rows(X[i:], y[i:], out[i:])

    def _watch(self, X: FloatArray, y: FloatArray, out: FloatArray) -> int:
        """Run rows up to the second look and keep them; return how many."""
        with_target = np.flatnonzero(~np.isnan(y))
        room = len(self._answers) - int(self._count[0])
        stop = len(X) if len(with_target) < room else int(with_target[room - 1]) + 1
        self._rows(X[:stop], y[:stop], out[:stop])
        chosen = with_target[:room]
        self._keep(X[chosen], y[chosen])
        if self._count[0] == len(self._answers):
            self._look_again()
        return stop

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

    def _keep(self, X: FloatArray, y: FloatArray) -> None:
        n = int(self._count[0])
        part = slice(n, n + len(X))
        self._waiting[part], self._answers[part] = np.clip(X, -_LARGEST, _LARGEST), np.clip(y, -_LARGEST, _LARGEST)
        self._count[0] = n + len(X)

    def _fit(self) -> _Start:
        """Fit the kept rows by least trimmed squares."""
        n = int(self._count[0])
        X, y = self._waiting[:n], self._answers[:n]
        centre, scale = start_scaling(X)
        Z = self._scaled(X, centre, scale)
        middle, unit = median_and_deviation(y)
        fit = self._fitter.fit(np.ascontiguousarray(Z[:, 1 : len(centre) + 1]), scaled_targets(y, middle, unit))
        return _Start(centre, scale, Z, y, middle, unit, fit)

    def _scaled(self, X: FloatArray, centre: FloatArray, scale: FloatArray) -> FloatArray:
        Z = np.zeros((len(X), self._theta.shape[1]))
        for x, z in zip(X, Z, strict=True):
            scaled_row(x, centre, scale, z)
        return Z

    def _begin(self, start: _Start) -> None:
        """Start all experts anew from a fit."""
        for array in (self._numbers, self._losses, self._lags, self._ages, self._grams, self._targets, self._theta):
            array[...] = 0.0
        self._centre, self._scale = start.centre, start.scale
        p = len(self._centre) + 1
        sigma = max(start.fit.sigma, 1e-9)
        weights = np.square(np.maximum(1.0 - np.square(start.fit.residuals / (_BISQUARE * sigma)), 0.0))
        self._theta[:, :p] = start.fit.theta * start.unit
        self._theta[:, 0] += start.middle
        gather_start(start.Z, start.y, weights, N_UNBOUNDED, self._rates, self._ages, self._grams, self._targets)
        believed = start.y[weights > _BELIEVED] if (weights > _BELIEVED).any() else np.array([start.middle])
        self._numbers[LOW], self._numbers[HIGH] = believed.min(), believed.max()
        sizes = _sizes(start.fit.residuals, p)
        self._numbers[[S, BELOW, ABOVE]] = np.maximum(sizes, 1e-9 / QUANTILE_TO_SIGMA) * start.unit
        self._phase = _WATCHES

    def _look_again(self) -> None:
        """Start anew where a fit of many more rows shows that the start had failed."""
        start = self._fit()
        half = max(len(start.y) // 2, 1)
        off = start.y - self._scaled(self._waiting, self._centre, self._scale) @ self._mixture()
        left, least = (
            float(np.partition(np.square(np.clip(r, -1e9, 1e9)), half - 1)[:half].sum())
            for r in (off / start.unit, start.fit.residuals)
        )
        if left > _FAILED * max(least, half * 1e-18):
            self._begin(start)
        self._phase = _SETTLED
        self._make_room(len(self._centre))

    def _mixture(self) -> FloatArray:
        """Return the mixture's coefficients for scaled rows: float64[stride]."""
        shares = np.exp(-LOSS_RATE * (self._losses - self._losses.min()))
        theta: FloatArray = (shares / shares.sum()) @ self._theta
        return theta

    def coefficients(self) -> FloatArray:
        """Return the mixture's intercept and coefficients in the units of the data: float64[n_features + 1]."""
        n = len(self._centre)
        out = np.zeros(n + 1)
        if not self.started:
            out[0] = self._middle()
            return out
        theta = self._mixture()[: n + 1]
        known = self._scale > 0.0
        out[1:][known] = theta[1:][known] / self._scale[known]
        out[0] = theta[0] - out[1:] @ self._centre
        return out

    @property
    def scale(self) -> float:
        """Standard deviation of good residuals, from running quantiles; NaN before the start."""
        return QUANTILE_TO_SIGMA * believed_quantile(self._numbers) if self.started else np.nan

    def numbers(self) -> Document:
        """Return what shapes depend on."""
        return {"phase": self._phase}

    def set_numbers(self, numbers: Document) -> None:
        """Take what `numbers` gave."""
        self._phase = int(numbers["phase"])
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


def _sizes(residuals: FloatArray, n_coefficients: int) -> FloatArray:
    """Return the 0.4 quantile of residuals' sizes of all, of those not above zero, and of those above: float64[3].

    Corrected for the coefficients fitted. A side of few rows counts as all do.
    """
    n, sizes = len(residuals), np.abs(residuals)
    correction = np.sqrt(n / max(n - n_coefficients, 1))
    whole = np.quantile(sizes, QUANTILE)
    sides = (sizes[residuals <= 0.0], sizes[residuals > 0.0])
    found = [np.quantile(side, QUANTILE) if len(side) > _FEW else whole for side in sides]
    return np.asarray(correction * np.array([whole, *found]), dtype=np.float64)
