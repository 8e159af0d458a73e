"""AUCRO on parts of the covariance, from their definitions: dense vectors, all statistics summed anew."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np


@dataclass
class Events:
    """All events so far, as they came and as they count, with labels and with the scores made before."""

    half_life: float | None = None
    clock: str = "time"
    clip: float | None = 3.0
    raw: list[np.ndarray] = field(default_factory=list)
    cut: list[np.ndarray] = field(default_factory=list)
    labels: list[int] = field(default_factory=list)
    scores: list[float | None] = field(default_factory=list)

    def clipped(self, x: np.ndarray) -> np.ndarray:
        """Cut a feature to mean +- clip sd of its values other than 0, once it had three different ones."""
        out = np.array(x, dtype=float)
        for j in range(len(x)):
            seen = np.array([row[j] for row in self.raw if row[j] != 0.0])
            if self.clip is not None and x[j] != 0.0 and len(set(seen.tolist())) > 2:
                half = self.clip * seen.std()
                out[j] = min(max(x[j], seen.mean() - half), seen.mean() + half)
        return out

    def add(self, x: np.ndarray, label: int, score: float | None = None) -> None:
        self.cut.append(self.clipped(x))
        self.raw.append(np.array(x, dtype=float))
        self.labels.append(label)
        self.scores.append(score)

    def weights(self, label: int) -> np.ndarray:
        """Return g^age of each event of a class; 0 for the others."""
        g = 1.0 if self.half_life is None else 0.5 ** (1 / self.half_life)
        mine = np.array(self.labels) == label
        age = np.arange(len(mine))[::-1] if self.clock == "time" else mine[::-1].cumsum()[::-1] - 1
        return np.where(mine, g**age, 0.0)

    def moments(self, label: int) -> tuple[float, np.ndarray, np.ndarray]:
        """Return weight, mean and covariance of a class."""
        v, X = self.weights(label), np.array(self.cut)
        mean = v @ X / v.sum()
        return v.sum(), mean, (X - mean).T @ ((X - mean) * v[:, None]) / v.sum()

    def width(self) -> int:
        """Return how many features there are: those that were ever other than 0."""
        return int(np.any(self.raw, axis=0).sum())

    def both(self) -> bool:
        return len(set(self.labels)) == 2

    def slope(self) -> float:
        """Return the factor from scores to log-likelihood ratios, from the scores that were made before."""
        judged = np.array([s is not None for s in self.scores])
        scores = np.array([0.0 if s is None else s for s in self.scores])
        weight, mean, spread = [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]
        for k in (0, 1):
            v = self.weights(k) * judged
            if v.sum():
                weight[k], mean[k] = v.sum(), v @ scores / v.sum()
                spread[k] = v @ (scores - mean[k]) ** 2 / v.sum()
        harmonic = max(2 * weight[0] * weight[1] / sum(weight), 1e-3) if sum(weight) else 1e-3
        total, q = sum(spread), mean[1] - mean[0]
        doubt = 4 * q * q / harmonic
        return 2 * max(q, math.sqrt(total / harmonic)) / (total + doubt) if total + doubt else 0.0


def diagonal(events: Events, x: np.ndarray) -> float:
    """Return the centred score of x by the diagonal of the covariance over all events so far."""
    if not events.both():
        return 0.0
    (w0, c0, G0), (w1, c1, G1) = events.moments(0), events.moments(1)
    v0, v1, m, total = np.diag(G0), np.diag(G1), events.width(), w0 + w1
    kappa, delta, rho = 0.2 * m, c1 - c0, m / total + 1e-8
    pooled = (w0 * v0 + w1 * v1) / total
    A = sum((w * v + kappa * pooled) / (w + kappa) for w, v in ((w0, v0), (w1, v1))) + delta**2
    on = np.array(events.raw).var(axis=0) > 0
    w = np.zeros(len(x))
    w[on] = delta[on] / (1 + rho) / (A[on] + rho / total * np.array(events.raw).var(axis=0)[on])
    return float(w @ (events.clipped(x) - (c0 + c1) / 2))


class Steps:
    """Gradient steps against class means, with dense weights."""

    def __init__(self, m: int, events: Events, ridge: float = 1e-4, *, standard: bool = True) -> None:
        self.events, self.ridge, self.standard = events, ridge, standard
        self.w = np.zeros(m)
        self.metric = np.zeros(m)
        self.log = np.full(m, np.nan)
        self.curvature = np.zeros(m)
        self.trust = np.zeros(m)

    def score(self, x: np.ndarray) -> float:
        if not self.events.both():
            return 0.0
        c0, c1 = self.events.moments(0)[1], self.events.moments(1)[1]
        return float(self.w @ (self.events.clipped(x) - (c0 + c1) / 2))

    def learn(self, x: np.ndarray, label: int) -> None:
        both, before = self.events.both(), self.score(x)
        cut = self.events.clipped(x)
        self.events.add(x, label, before if both else None)
        self._measure(x)
        self.curvature *= 1.0 if self.events.half_life is None else 0.5 ** (1 / self.events.half_life)
        own = np.flatnonzero(x)
        self.trust[own] = self.metric[own] / np.sqrt(1 + self.metric[own] * self.curvature[own])
        if not self.events.both():
            return
        (w0, c0, _), (w1, c1, _) = self.events.moments(0), self.events.moments(1)
        if self.events.clock == "class":
            w0, w1 = self.events.labels.count(0), self.events.labels.count(1)
        heavy = 2 * (w0 if label else w1) / (w0 + w1)
        d, sign = cut - (c0 if label else c1), 1 if label else -1
        miss, own = self.w @ d - sign, np.flatnonzero(x)
        rate = 1 / (30 + heavy * (self.trust @ d**2))
        whole = self.metric[own] @ cut[own] ** 2
        left = self.trust[own] @ cut[own] ** 2 / whole if whole > 0 else 0.0
        self.w = self.w * (1 - rate * left * self.ridge) - rate * heavy * miss * self.trust * d
        self.curvature[own] += heavy * d[own] ** 2 / 30

    def _measure(self, x: np.ndarray) -> None:
        X = np.array(self.events.raw)
        for j in np.flatnonzero(x):
            spread = X[:, j].var()
            if spread <= (1e-14 * np.abs(X[:, j]).max()) ** 2:
                continue
            self.log[j] = math.log((X[:, j] != 0).sum() / len(X) / spread)
            self.metric[j] = 1.0
        for j in np.flatnonzero(x * self.metric) if self.standard else ():
            times = (X[:, j] != 0).sum()
            self.metric[j] = math.exp((10 * np.nanmean(self.log) + times * self.log[j]) / (10 + times))


class Directions:
    """Frequent Directions by singular values: a buffer of 2 k rows, of which k - 1 stay when it is full."""

    def __init__(self, k: int, m: int) -> None:
        self.k, self.m = k, m
        self.rows: list[np.ndarray] = []

    def add(self, row: np.ndarray) -> None:
        self.rows.append(np.array(row, dtype=float))
        if len(self.rows) == 2 * self.k:
            _, s, Vt = np.linalg.svd(np.array(self.rows), full_matrices=False)
            s = np.concatenate([s, np.zeros(max(self.k - len(s), 0))])
            left = np.sqrt(np.maximum(s**2 - s[self.k - 1] ** 2, 0))[: self.k - 1]
            kept = left[: len(Vt), None] * Vt[: len(left)]
            self.rows = [*kept, *np.zeros((self.k - 1 - len(kept), self.m))]

    def gram(self) -> np.ndarray:
        B = np.array(self.rows).reshape(-1, self.m)
        return B.T @ B


class Sketched:
    """Scores by variances and a sketch of the rest, without forgetting, solved after each event."""

    def __init__(self, k: int, m: int, events: Events) -> None:
        self.events, self.m = events, m
        self.sketches = [Directions(max(k, 2), m), Directions(max(k, 2), m)]
        self.unit = np.zeros(m)  # of a feature: one over its deviation when it first took a second value

    def learn(self, x: np.ndarray, label: int) -> None:
        self.events.add(x, label)
        raw = np.array(self.events.raw)
        fresh = (self.unit == 0) & (raw.var(axis=0) > 0) & (np.array(x) != 0)
        self.unit[fresh] = 1 / raw.std(axis=0)[fresh]
        mine = np.array(self.events.cut)[np.array(self.events.labels) == label]
        before = mine[:-1].mean(axis=0) if len(mine) > 1 else mine[0]
        self.sketches[label].add(np.sqrt(1 - 1 / len(mine)) * (mine[-1] - before) * self.unit)

    def score(self, x: np.ndarray) -> float:
        if not self.events.both():
            return 0.0
        (w0, c0, G0), (w1, c1, G1) = self.events.moments(0), self.events.moments(1)
        total, kappa, delta = w0 + w1, 0.2 * self.events.width(), c1 - c0
        pooled = kappa / total * (1 / (w0 + kappa) + 1 / (w1 + kappa))
        rho, everything = self.events.width() / total + 1e-8, np.array(self.events.raw).var(axis=0)
        scale = np.divide(1.0, self.unit, out=np.zeros(self.m), where=self.unit > 0)
        known, a = np.outer(delta, delta), delta**2
        for w, G, sketch in ((w0, G0, self.sketches[0]), (w1, G1, self.sketches[1])):
            share = 1 / (w + kappa) + pooled
            known = known + share * sketch.gram() * np.outer(scale, scale)
            a = a + share * w * np.diag(G)
        rest = np.maximum(a - np.diag(known), 0) + rho * (a + rho / total * everything)
        on = (everything > 0) & (self.unit > 0)
        w = np.zeros(self.m)
        w[on] = np.linalg.solve((known + np.diag(rest))[np.ix_(on, on)], delta[on])
        return float(w @ (self.events.clipped(x) - (c0 + c1) / 2))
