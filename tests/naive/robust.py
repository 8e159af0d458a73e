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


def trimmed_inner_product(a: np.ndarray, b: np.ndarray, n_trim: int) -> float:
    """Products without the n_trim of largest size, later rows first among equals; mean of the rest."""
    q = [x * y for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    order = sorted(range(len(q)), key=lambda i: abs(q[i]))  # stable: earlier rows first among equals
    kept = order[: len(q) - n_trim]
    return math.fsum(q[i] for i in kept) / len(kept)


def trimmed_covariance(X: np.ndarray, n_trim: int) -> np.ndarray:
    p = X.shape[1]
    return np.array([[trimmed_inner_product(X[:, i], X[:, j], n_trim) for j in range(p)] for i in range(p)])
