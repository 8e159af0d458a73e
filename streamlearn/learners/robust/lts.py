"""Least trimmed squares: the coefficients whose better half of residuals is least.

Rousseeuw's criterion, found by concentration steps (Rousseeuw and Van Driessen 2006; the same iteration is TORRENT of
Bhatia, Jain and Kar 2015) from several cheap starts, then widened to all rows that fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import FloatArray, IntArray
from streamlearn.learners.robust.blas import one_blas_thread
from streamlearn.learners.robust.scaling import MAD_TO_SIGMA
from streamlearn.learners.robust.trimmed import TrimmedCovariance, trimmed_products

START_TRIM = 0.4
"""Share of the products that a start drops: shrunk where fewer are bad, but on the right side of zero."""

RIDGE = 0.1
_INTERCEPT_RIDGE = 1e-9
_FIRST_STEPS, _LAST_STEPS, _TRIM_STEPS = 2, 8, 3
_KEPT_SIGMAS = 2.5


@dataclass(frozen=True, slots=True)
class LeastTrimmedSquares:
    """A fit.

    Attributes
    ----------
    theta : float64[p]
        Intercept first.
    sigma : float
        Scale of the residuals of good rows.
    residuals : float64[n]
    kept : bool[n]
        The rows that fit.
    """

    theta: FloatArray
    sigma: float
    residuals: FloatArray
    kept: NDArray[np.bool_]


class LeastTrimmedSquaresFitter:
    """Fits one batch after the other.

    Rows are scaled by the caller, so that one ridge suits all coefficients; it pulls towards the coefficients of before
    and defines what a batch does not determine: constant and collinear columns, fewer rows than columns.
    """

    def __init__(self) -> None:
        self.covariance = TrimmedCovariance()
        self._half = TrimmedCovariance()

    def fit(
        self, Z: FloatArray, y: FloatArray, anchor: FloatArray | None = None, trim: float | None = None
    ) -> LeastTrimmedSquares:
        """Fit y by the columns of Z and an intercept.

        Parameters
        ----------
        Z : float64[n, p - 1]
            Finite, scaled to about one, at least one row.
        y : float64[n]
            Finite.
        anchor : float64[p] or None
            The coefficients of before.
        trim : float or None
            Share of the rows to leave out; None = half while searching, then every row that does not fit.
        """
        rows = np.column_stack([np.ones(len(Z)), Z])
        problem = _Problem(rows, y, np.zeros(rows.shape[1]) if anchor is None else anchor, trim)
        with one_blas_thread():
            best = None
            for start in self._starts(Z, y, problem, anchor):
                theta = problem.concentrate(start, _FIRST_STEPS)
                objective = problem.objective(theta)
                if best is None or objective < best[0]:
                    best = objective, theta
            assert best is not None  # noqa: S101 - there is always the start at the median
            theta = problem.concentrate(best[1], _LAST_STEPS)
            return problem.widened(theta) if trim is None else problem.described(theta)

    def _starts(
        self, Z: FloatArray, y: FloatArray, problem: _Problem, anchor: FloatArray | None
    ) -> Iterator[FloatArray]:
        """Yield starts; those of the rows with the smallest norm alone withstand bad rows far out in x."""
        middle = float(np.median(y))
        yield np.concatenate([[middle], np.zeros(Z.shape[1])])
        if anchor is not None:
            yield anchor
        yield problem.solve(np.argsort(np.abs(y - middle), kind="stable")[: problem.half])
        yield from thresholding(self.covariance, Z, y)
        near = np.argsort(np.square(Z).sum(axis=1), kind="stable")[: problem.half]
        yield problem.solve(near)
        off = np.abs(y[near] - np.median(y[near]))
        yield problem.solve(near[np.argsort(off, kind="stable")[: max(problem.half // 2, 1)]])
        yield from thresholding(self._half, np.ascontiguousarray(Z[near]), y[near])


def thresholding(
    covariance: TrimmedCovariance, Z: FloatArray, y: FloatArray, trim: float = START_TRIM
) -> Iterator[FloatArray]:
    """Yield robust thresholding regression, intercept first: as published, then with its columns whitened."""
    middle = float(np.median(y))
    if Z.shape[1] == 0:  # no feature was ever other than 0
        yield np.array([middle])
        return
    sigma = covariance.of(Z, trim)
    moment = trimmed_products(Z - covariance.medians, y - middle, trim)
    for theta in (moment, np.linalg.solve(_positive(sigma), moment)):
        yield np.concatenate([[middle - covariance.medians @ theta], theta])


def _positive(sigma: FloatArray) -> FloatArray:
    """Return the matrix with eigenvalues of at least a thousandth of the largest: trimming makes it indefinite."""
    values, vectors = np.linalg.eigh(sigma)
    floor = max(float(values[-1]), 0.0) * 1e-3 + 1e-12
    positive: FloatArray = (vectors * np.maximum(values, floor)) @ vectors.T
    return positive


class _Problem:
    def __init__(self, rows: FloatArray, y: FloatArray, anchor: FloatArray, trim: float | None) -> None:
        self._rows, self._y, self._anchor = rows, y, anchor
        self.half = max(len(y) // 2 if trim is None else len(y) - round(trim * len(y)), 1)
        n, p = rows.shape
        self._correction = float(MAD_TO_SIGMA * np.sqrt(n / max(n - p, 1)))
        self._ridge = np.full(rows.shape[1], RIDGE)
        self._ridge[0] = _INTERCEPT_RIDGE

    def solve(self, which: IntArray) -> FloatArray:
        rows = self._rows[which]
        gram = rows.T @ rows
        gram[np.diag_indices_from(gram)] += self._ridge
        return np.asarray(np.linalg.solve(gram, rows.T @ self._y[which] + self._ridge * self._anchor), dtype=np.float64)

    def residuals(self, theta: FloatArray) -> FloatArray:
        off: FloatArray = self._y - self._rows @ theta
        return off

    def objective(self, theta: FloatArray) -> float:
        squares = np.square(self.residuals(theta))
        return float(np.partition(squares, self.half - 1)[: self.half].sum())

    def concentrate(self, theta: FloatArray, n_steps: int) -> FloatArray:
        last = None
        for _ in range(n_steps):
            best = np.sort(np.argsort(np.abs(self.residuals(theta)), kind="stable")[: self.half])
            if last is not None and np.array_equal(best, last):
                break
            theta, last = self.solve(best), best
        return theta

    def widened(self, theta: FloatArray) -> LeastTrimmedSquares:
        """Keep every row within 2.5 robust standard deviations: nothing to choose, and efficient on good rows."""
        for _ in range(_TRIM_STEPS):
            off = np.abs(self.residuals(theta))
            theta = self.solve(np.flatnonzero(off <= self._bound(off)))
        return self.described(theta)

    def _bound(self, off: FloatArray) -> float:
        # Never fewer than half: where most residuals are 0 so is their median.
        least = float(np.partition(off, self.half - 1)[self.half - 1])
        return max(_KEPT_SIGMAS * self._correction * float(np.median(off)), least)

    def described(self, theta: FloatArray) -> LeastTrimmedSquares:
        residuals = self.residuals(theta)
        off = np.abs(residuals)
        return LeastTrimmedSquares(theta, self._correction * float(np.median(off)), residuals, off <= self._bound(off))
