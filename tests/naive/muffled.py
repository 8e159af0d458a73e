"""Slow references of the muffled family, from the papers' equations in plain Python."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from scipy.optimize import linprog
from scipy.stats import norm


def wilson(c, n, failure_prob):
    """Wilson's interval of the error (1 - c) / 2: centre and half width."""
    if n == 0:
        return 0.0
    z = norm.ppf(1 - failure_prob / 2)
    e = (1 - c) / 2
    centre = (e + z * z / (2 * n)) / (1 + z * z / n)
    half = math.sqrt(z * z * e * (1 - e) / n + z**4 / (4 * n * n)) / (1 + z * z / n)
    return max(0.0, 1 - 2 * centre - 2 * half)


PARTIAL_LOSSES = {
    "zero-one": lambda g: (1 - g) / 2,
    "square": lambda g: ((1 - g) / 2) ** 2,
    "log": lambda g: math.log(2 / (1 + g)),
    "exp": lambda g: math.sqrt((1 - g) / (1 + g)),
    "hinge": lambda g: 1 - g,
}


def potential(name, m, grid=20001):
    """Psi(m) = min over g of l+(g) + l-(g) + |m - (l-(g) - l+(g))|, and the g, on a grid."""
    loss = PARTIAL_LOSSES[name]
    best, where = math.inf, 0.0
    for k in range(1, grid):
        g = -1 + 2 * k / grid
        plus, minus = loss(g), loss(-g)
        value = plus + minus + abs(m - (minus - plus))
        if value < best - 1e-12:
            best, where = value, g
    return best, where


def slack(F, b, s, name="zero-one"):
    exact = {
        "zero-one": lambda m: max(1.0, abs(m)),
        "hinge": lambda m: max(2.0, abs(m)),
        "square": lambda m: (1 + m * m) / 2 if abs(m) <= 1 else abs(m),
        "log": lambda m: math.log(1 + math.exp(m)) + math.log(1 + math.exp(-m)),
        "exp": lambda m: math.sqrt(4 + m * m),
    }[name]
    p, n = len(F), len(F[0])
    total = 0.0
    for j in range(n):
        total += exact(sum(F[i][j] * s[i] for i in range(p))) / n
    return total - sum(b[i] * s[i] for i in range(p))


def least_slack(F, b):
    """The zero-one slack as a linear program in the weights: t_j >= 1, t_j >= +-m_j."""
    F, b = np.asarray(F, float), np.asarray(b, float)
    p, n = F.shape
    cost = np.concatenate([-b, np.full(n, 1 / n)])
    rows = np.block([[F.T, -np.eye(n)], [-F.T, -np.eye(n)]])
    found = linprog(cost, A_ub=rows, b_ub=np.zeros(2 * n), bounds=[(0, None)] * p + [(1, None)] * n)
    return (found.fun, found.x[:p]) if found.status == 0 else (-math.inf, None)


def game_value(F, b):
    """Worst-case zero-one loss of the best prediction: the labelling with the least mean |z| that b allows."""
    F, b = np.asarray(F, float), np.asarray(b, float)
    p, n = F.shape
    cost = np.concatenate([np.zeros(n), np.full(n, 1 / n)])
    rows = np.block([[np.eye(n), -np.eye(n)], [-np.eye(n), -np.eye(n)], [-F / n, np.zeros((p, n))]])
    limits = np.concatenate([np.zeros(2 * n), -b])
    found = linprog(cost, A_ub=rows, b_ub=limits, bounds=[(-1, 1)] * n + [(0, 1)] * n)
    return (1 - found.fun) / 2 if found.status == 0 else None


def golden_section(f, low, high, steps=120):
    ratio = (math.sqrt(5) - 1) / 2
    for _ in range(steps):
        a, b = high - ratio * (high - low), low + ratio * (high - low)
        low, high = (low, b) if f(a) <= f(b) else (a, high)
    return (low + high) / 2


def muffle(H, y, F, tau=30.0, steps=20000):
    """The rectified weights with the square potential, by plain projected gradient steps."""
    n, p, N = len(H), len(H[0]), len(F)
    rms = [math.sqrt(sum(row[j] ** 2 for row in F) / N) for j in range(p)]
    scale = [min(rms) / r for r in rms]
    H = np.array([[row[j] * scale[j] for j in range(p)] for row in H])
    F = np.array([[row[j] * scale[j] for j in range(p)] for row in F])
    v = [sum(row) / p for row in H]
    kappa = max(sum(a * b for a, b in zip(v, y, strict=True)) / sum(a * a for a in v), 1e-3)
    clip = lambda a: max(-1.0, min(1.0, a))  # noqa: E731
    b = np.zeros(p)
    for i in range(n):
        b += H[i] * (y[i] - clip(kappa * v[i])) / n
    for j in range(N):
        b += F[j] * clip(kappa * sum(F[j]) / p) / N
    ridge = tau / n * (F**2).mean()
    sigma = np.full(p, kappa / p)
    if p == 1:
        return sigma * scale
    step = 1 / (p * (F**2).mean() + ridge)
    for _ in range(steps):
        gradient = F.T @ np.clip(F @ sigma, -1, 1) / N - b + ridge * (sigma - kappa / p)
        sigma = np.maximum(sigma - step * gradient, 0.0)
    return sigma * scale


def tree_leaf(tree, row):
    """Follow one row down a tree of scikit-learn: float32 value against float64 threshold."""
    node = 0
    while tree.children_left[node] >= 0:
        value = float(np.float32(row[tree.feature[node]]))
        node = tree.children_left[node] if value <= tree.threshold[node] else tree.children_right[node]
    return node


def boost(X, y, n_trees, rate, depth=3):
    """Friedman's boosting for the logistic loss: depth-three trees on residuals, a Newton step in each leaf."""
    n = len(X)
    p = sum(y) / n
    raw = [math.log(p / (1 - p))] * n
    for _ in range(n_trees):
        residual = [y[i] - 1 / (1 + math.exp(-raw[i])) for i in range(n)]
        groups = [list(range(n))]
        for _ in range(depth):
            groups = [part for rows in groups for part in _friedman_split(X, residual, rows)]
        for rows in groups:
            curve = sum((y[i] - residual[i]) * (1 - y[i] + residual[i]) for i in rows)
            for i in rows:
                raw[i] += rate * sum(residual[k] for k in rows) / curve
    return raw


def _friedman_split(X, residual, rows):
    best, found = 1e-12, None
    for j in range(len(X[0])):
        values = sorted({X[i][j] for i in rows})
        for low, high in pairwise(values):
            left = [i for i in rows if X[i][j] <= (low + high) / 2]
            right = [i for i in rows if X[i][j] > (low + high) / 2]
            gap = sum(residual[i] for i in left) / len(left) - sum(residual[i] for i in right) / len(right)
            gain = len(left) * len(right) / len(rows) * gap * gap
            if gain > best * (1 + 1e-9):
                best, found = gain, (left, right)
    return [rows] if found is None else list(found)


def least_squares_tree(X, y, w, least):
    """Leaf mean of every row in a tree of weighted squared error, grown until targets are equal or leaves too small."""
    means = [0.0] * len(X)

    def grow(rows):
        total = sum(w[i] for i in rows)
        mean = sum(w[i] * y[i] for i in rows) / total
        best, found = -math.inf, None
        if len({y[i] for i in rows}) > 1:
            for j in range(len(X[0])):
                values = sorted({X[i][j] for i in rows})
                for low, high in pairwise(values):
                    left = [i for i in rows if X[i][j] <= (low + high) / 2]
                    right = [i for i in rows if X[i][j] > (low + high) / 2]
                    if min(len(left), len(right)) < least:
                        continue
                    gain = sum(sum(w[i] * y[i] for i in part) ** 2 / sum(w[i] for i in part) for part in (left, right))
                    if gain > best + 1e-12:
                        best, found = gain, (left, right)
        if found is None:
            for i in rows:
                means[i] = mean
        else:
            grow(found[0])
            grow(found[1])

    grow(list(range(len(X))))
    return means


def nearest(q, points, k=8, skip=None):
    """Indices and squared distances of the k nearest points, ties by index."""
    found = sorted((sum((a - b) ** 2 for a, b in zip(q, p, strict=True)), i) for i, p in enumerate(points) if i != skip)
    return [i for _, i in found[:k]], [d for d, _ in found[:k]]


def spread(near, weights, sources, keep, steps):
    """x <- keep S x + sources with S = D^-1/2 (W + W') D^-1/2 as a full matrix."""
    n = len(near)
    W = np.zeros((n, n))
    for i in range(n):
        for j, w in zip(near[i], weights[i], strict=True):
            W[i, j] += w
            W[j, i] += w
    d = W.sum(axis=1)
    S = W / np.sqrt(np.outer(d, d))
    x = np.array(sources, dtype=float)
    for _ in range(steps):
        x = keep * S @ x + sources
    return x


def arrival_ranks(rows, unlabelled, size, least):
    """Return for each row (number below - number above) / 2 n among the last `size` unlabelled rows before it."""
    window, out = [], []
    for row, joins in zip(rows, unlabelled, strict=True):
        n = len(window)
        ranks = []
        for j, x in enumerate(row):
            below = sum(1 for other in window if other[j] < x)
            above = sum(1 for other in window if other[j] > x)
            ranks.append((below - above) / (2 * n) if n >= least else 0.0)
        out.append(ranks)
        if joins:
            window = [*window, row][-size:]
    return out


def line_vote(row, bias, w, q):
    """Return 2 P - 1 for P = 1 / (1 + exp(-t)), t = bias + sum of w x + q x^2."""
    t = bias + sum(a * x + c * x * x for x, a, c in zip(row, w, q, strict=True))
    return 2 / (1 + math.exp(-t)) - 1 if t > -700 else -1.0


def memberships(q, centres, sets):
    """Return how far q belongs to each centre of each set: exp(-gamma d^2) over the sum of the set."""
    found, first = [], 0
    for size, gamma in sets:
        squares = [math.dist(q, c) ** 2 for c in centres[first : first + int(size)]]
        parts = [math.exp(-gamma * (d - min(squares))) for d in squares]
        found += [p / sum(parts) for p in parts]
        first += int(size)
    return found
