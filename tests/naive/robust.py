"""The robust family in plain Python and NumPy, straight from the equations, slow and obvious."""

from __future__ import annotations

import math

import numpy as np


def total_distance(points: np.ndarray, y: np.ndarray) -> float:
    return float(sum(math.dist(p, y) for p in points))


def geometric_median(points: np.ndarray, steps: int = 3000) -> np.ndarray:
    """Weiszfeld on ||x - y|| smoothed by ever less, which needs no safeguard."""
    y = points.mean(axis=0)
    width = max(math.dist(p, y) for p in points) or 1.0
    for step in range(steps):
        eps = width * max(1e-11, 0.5 ** (step / 20))
        w = np.array([1.0 / math.sqrt(math.dist(p, y) ** 2 + eps**2) for p in points])
        y = (w[:, None] * points).sum(axis=0) / w.sum()
    return min([y, *points], key=lambda p: total_distance(points, p))


def proximal_filter(rows: np.ndarray, start: np.ndarray, n_start: int, c_a: float) -> np.ndarray:
    """The published recursion with its clipped step 1 / (c_a t)."""
    u = np.array(start)
    for t, x in enumerate(rows, n_start + 1):
        d = math.dist(x, u)
        if d > 0:
            u = u + min(1.0, 1.0 / (c_a * t) / d) * (x - u)
    return u


def scaled_proximal_filter(rows: np.ndarray, n_start: int) -> tuple[np.ndarray, float]:
    """The recursion with step s / t, s the median of all distances so far, from the median of the first rows."""
    u = geometric_median(rows[:n_start])
    distances = [math.dist(x, u) for x in rows[:n_start]]
    for t, x in enumerate(rows[n_start:], n_start + 1):
        d = math.dist(x, u)
        u = u + min(1.0, float(np.median(distances)) / t / d) * (x - u)
        distances.append(d)
    return u, float(np.median(distances))


def trimmed_inner_product(a: np.ndarray, b: np.ndarray, n_trim: int) -> float:
    """Products without the n_trim of largest size, later rows first among equals; mean of the rest."""
    q = [x * y for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    order = sorted(range(len(q)), key=lambda i: abs(q[i]))  # stable: earlier rows first among equals
    kept = order[: len(q) - n_trim]
    return math.fsum(q[i] for i in kept) / len(kept)


def trimmed_covariance(X: np.ndarray, n_trim: int) -> np.ndarray:
    p = X.shape[1]
    return np.array([[trimmed_inner_product(X[:, i], X[:, j], n_trim) for j in range(p)] for i in range(p)])


def rotr(X: np.ndarray, y: np.ndarray, trim: float) -> np.ndarray:
    return np.array([trimmed_inner_product(x, y, round(trim * len(y))) for x in X.T])


def least_trimmed_objective(rows: np.ndarray, y: np.ndarray, theta: np.ndarray, n_kept: int) -> float:
    return float(sum(sorted((v - float(np.dot(x, theta))) ** 2 for x, v in zip(rows, y, strict=True))[:n_kept]))


def bank_step(z: list[float], y: float, state: dict, half_lives: list[float | None]) -> float:
    """One event of the robust bank: predict, weigh, forget, one or two Gauss-Seidel sweeps, mix. None = 1/n memory."""
    p = len(z)
    margin = 0.1 * (state["high"] - state["low"])
    clip = lambda v: min(max(v, state["low"] - margin), state["high"] + margin)  # noqa: E731
    each = [clip(sum(t * v for t, v in zip(theta, z, strict=True))) for theta in state["theta"]]
    shares = [math.exp(-0.3 * (loss - min(state["losses"]))) for loss in state["losses"]]
    f = sum(w * g for w, g in zip(shares, each, strict=True)) / sum(shares)
    least = max(min(state["below"], state["above"]), state["s"] / 4)
    sigma = 1.9069 * least  # over the 0.4 quantile of |N(0, 1)|
    if abs(y - f) < 4 * sigma:
        state["low"], state["high"] = min(state["low"], y), max(state["high"], y)
    state["n"] += 1
    g = max(1 / (state["n"] + 50), 0.004)
    for which in ("s", "above" if y > f else "below"):
        state[which] *= math.exp(0.8 * g if abs(y - f) > state[which] else -1.2 * g)
    companion = abs(y - each[0]) / sigma
    for k, half_life in enumerate(half_lives):
        u = abs(y - each[k]) / sigma
        state["losses"][k] = state["losses"][k] * (1 - 1 / 300) + min(u, 5.0)
        w = min(1.0, 1.0 / u) if u else 1.0
        if k == 0:
            w *= min(1.0, (3.0 / max([3.0, *(abs(v) for v in z[1:])])) ** 2)
        else:
            w *= max(0.0, 1 - (min(u, companion) / 10) ** 2) ** 2
        if half_life is None:
            state["ages"][k] += 1
            keep = 1 - min(0.5, 2 / state["ages"][k])
        else:
            keep = 0.5 ** (1 / half_life)
        A, b, theta = state["A"][k], state["b"][k], state["theta"][k]
        for i in range(p):
            b[i] = keep * b[i] + w * z[i] * y
            for j in range(p):
                A[i][j] = keep * A[i][j] + w * z[i] * z[j]
        anchor = [0.0] * p if k == 0 else state["theta"][k - 1]
        for _ in range(2 if p <= 30 else 1):
            for i in range(p):
                d = 5.0 if k else (0.1 if i else 1e-9)
                rest = sum(A[i][j] * theta[j] for j in range(p) if j != i)
                theta[i] = (b[i] + d * anchor[i] - rest) / (A[i][i] + d)
    return f
