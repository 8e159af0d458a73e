"""Logistic regression with a quadratic penalty, for many small fits."""

from __future__ import annotations

import numpy as np

from streamlearn.contracts import FloatArray

_NEWTON_STEPS = 30
_NEWTON_WIDTH = 256
_TOLERANCE = 1e-8


def fit_logistic(z: FloatArray, y: FloatArray, C: float) -> tuple[float, FloatArray]:
    """Return bias and weights that minimise |w|^2 / 2 + C sum log(1 + exp(-y (z w + bias))).

    Newton steps where rows or features are few, else L-BFGS. More features than rows are first turned into as many
    coordinates as rows: the weights lie in the span of the rows.

    Parameters
    ----------
    z : float64[n_rows, n_features]
    y : float64[n_rows]
        1 or -1, both present.
    C : float

    Returns
    -------
    bias : float
    w : float64[n_features]
    """
    n, m = z.shape
    if m > n:
        basis, triangle = np.linalg.qr(z.T)
        bias, w = _fit(np.ascontiguousarray(triangle.T), y, C)
        return bias, np.asarray(basis @ w)
    return _fit(z, y, C)


def _fit(z: FloatArray, y: FloatArray, C: float) -> tuple[float, FloatArray]:
    A = np.hstack([np.ones((len(z), 1)), z])
    penalty = np.ones(A.shape[1])
    penalty[0] = 0.0
    w = _newton(A, y, C, penalty) if A.shape[1] <= _NEWTON_WIDTH else _lbfgs(A, y, C, penalty)
    return float(w[0]), w[1:]


def _value(A: FloatArray, y: FloatArray, C: float, penalty: FloatArray, w: FloatArray) -> float:
    return float(0.5 * (penalty * w) @ w + C * np.logaddexp(0.0, -y * (A @ w)).sum())


def _slopes(A: FloatArray, y: FloatArray, w: FloatArray) -> FloatArray:
    """Return -dL/dt a row for the logistic loss: y / (1 + exp(y t))."""
    return np.asarray(y * 0.5 * (1.0 - np.tanh(0.5 * y * (A @ w))))


def _newton(A: FloatArray, y: FloatArray, C: float, penalty: FloatArray) -> FloatArray:
    w = np.zeros(A.shape[1])
    value = _value(A, y, C, penalty, w)
    for _ in range(_NEWTON_STEPS):
        slope = _slopes(A, y, w)
        gradient = penalty * w - C * (A.T @ slope)
        if np.abs(gradient).max() <= _TOLERANCE * (1.0 + C * len(y)):
            break
        p = np.abs(slope)
        H = C * (A.T * (p * (1.0 - p))) @ A
        # The bias has no penalty: its row must not become singular where all rows are sure.
        H[np.diag_indices_from(H)] += penalty + 1e-10 * (1.0 + C * len(y))
        step = np.linalg.solve(H, gradient)
        length = 1.0
        fall = float(gradient @ step)
        while True:
            new = w - length * step
            new_value = _value(A, y, C, penalty, new)
            if new_value <= value - 1e-4 * length * fall or length < 1e-6:
                break
            length *= 0.5
        if new_value >= value:
            break
        w, value = new, new_value
    return w


def _lbfgs(A: FloatArray, y: FloatArray, C: float, penalty: FloatArray) -> FloatArray:
    from scipy.optimize import minimize  # noqa: PLC0415 - the import costs 100 ms and few fits need it

    def both(w: FloatArray) -> tuple[float, FloatArray]:
        return _value(A, y, C, penalty, w), penalty * w - C * (A.T @ _slopes(A, y, w))

    found = minimize(both, np.zeros(A.shape[1]), jac=True, method="L-BFGS-B", options={"maxiter": 300})
    return np.asarray(found.x, dtype=np.float64)
