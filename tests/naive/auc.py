"""AUCRO from its definitions: every event is kept, every statistic and every pair is summed anew."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np


def pair_loss(w: np.ndarray, positive: np.ndarray, negative: np.ndarray, cost: float) -> float:
    """Return the mean over all pairs of ``(d (1 - c - m)^2 + (1 - d)(1 + c - m)^2)/2``, c = ln(d/(1 - d))."""
    c = math.log(cost / (1 - cost))
    total = 0.0
    for a in positive:
        for b in negative:
            m = float(w @ (a - b))
            total += (cost * (1 - c - m) ** 2 + (1 - cost) * (1 + c - m) ** 2) / 2
    return total / (len(positive) * len(negative))


def event_loss(w: np.ndarray, x: np.ndarray, label: int, others: np.ndarray, cost: float, ridge: float) -> float:
    """Return the loss of one event against the events of the other class."""
    one = x[None, :]
    pairs = pair_loss(w, one, others, cost) if label == 1 else pair_loss(w, others, one, cost)
    return ridge / 2 * float(w @ w) + pairs


def slope(f, w: np.ndarray, h: float = 1e-5) -> np.ndarray:
    """Return the gradient of f at w by central differences."""
    out = np.zeros_like(w)
    for j in range(len(w)):
        step = np.zeros_like(w)
        step[j] = h
        out[j] = (f(w + step) - f(w - step)) / (2 * h)
    return out


@dataclass
class Events:
    """All events so far: raw, clipped by what came before, with their labels."""

    half_life: float | None = None
    clock: str = "time"
    clip: float | None = 3.0
    raw: list[np.ndarray] = field(default_factory=list)
    cut: list[np.ndarray] = field(default_factory=list)
    labels: list[int] = field(default_factory=list)

    def clipped(self, x: np.ndarray) -> np.ndarray:
        out = np.array(x, dtype=float)
        if self.clip is None or len(self.raw) < 3:
            return out
        seen = np.array(self.raw)
        for j in range(len(x)):
            if len(set(seen[:, j].tolist())) > 2:
                mean, sd = seen[:, j].mean(), seen[:, j].std()
                out[j] = min(max(x[j], mean - self.clip * sd), mean + self.clip * sd)
        return out

    def add(self, x: np.ndarray, label: int) -> None:
        self.cut.append(self.clipped(x))
        self.raw.append(np.array(x, dtype=float))
        self.labels.append(label)

    def moments(self, label: int) -> tuple[float, np.ndarray, np.ndarray]:
        """Return total weight, mean and population covariance of one class, each event weighing ``g^age``."""
        g = 1.0 if self.half_life is None else 0.5 ** (1 / self.half_life)
        n, of_class = len(self.labels), sum(y == label for y in self.labels)
        weights, rows, rank = [], [], 0
        for t, (x, y) in enumerate(zip(self.cut, self.labels, strict=True)):
            if y == label:
                rank += 1
                weights.append(g ** (n - 1 - t if self.clock == "time" else of_class - rank))
                rows.append(x)
        v, X = np.array(weights), np.array(rows)
        mean = v @ X / v.sum()
        return v.sum(), mean, (X - mean).T @ ((X - mean) * v[:, None]) / v.sum()

    def both(self) -> bool:
        return len(set(self.labels)) == 2


def exact(events: Events, x: np.ndarray) -> tuple[float, float, float]:
    """Return score, log-likelihood ratio and P(class 1) of x by the minimiser over all events so far."""
    if not events.both():
        n1 = sum(events.labels)
        weights = [events.moments(k)[0] if k in events.labels else 0.0 for k in (0, 1)]
        if events.clock == "class":
            weights = [len(events.labels) - n1, n1]
        return 0.0, 0.0, (weights[1] + 0.5) / (weights[0] + weights[1] + 1.0)
    (w0, c0, G0), (w1, c1, G1) = events.moments(0), events.moments(1)
    m, total = len(x), w0 + w1
    kappa = 0.2 * m
    pooled = (w0 * G0 + w1 * G1) / total
    delta = c1 - c0
    A = sum((w * G + kappa * pooled) / (w + kappa) for w, G in ((w0, G0), (w1, G1))) + np.outer(delta, delta)
    raw = np.array(events.raw)
    on = np.diag(A) > (1e-14 * np.abs(raw).max(axis=0)) ** 2
    rho = on.sum() / total + 1e-8
    s = np.zeros(m)
    s[on] = 1 / np.sqrt(np.diag(A)[on] + rho / total * raw.var(axis=0)[on])
    w = s * np.linalg.solve(A * np.outer(s, s) + rho * np.eye(m), s * delta)
    q = min(max(float(delta @ w), 0.0), 1 - 1e-6)
    harmonic = 2 / (1 / w0 + 1 / w1)
    score = float(w @ (events.clipped(x) - (c0 + c1) / 2))
    ratio = 2 * score / (1 - min(q, harmonic / (harmonic + m)))
    counts = (w0, w1) if events.clock == "time" else (events.labels.count(0), events.labels.count(1))
    odds = ratio + math.log((counts[1] + 0.5) / (counts[0] + 0.5))
    return score, ratio, 1 / (1 + math.exp(-odds))


def sgd(X: np.ndarray, y: np.ndarray, rate: float, ridge: float, cost: float = 0.5) -> np.ndarray:
    """Return the weights after one pass of gradient steps, gradients by differences of the summed pair losses."""
    w = np.zeros(X.shape[1])
    for t in range(len(X)):
        others = X[:t][y[:t] != y[t]]
        if len(others):
            w = w - rate * slope(lambda v, t=t, o=others: event_loss(v, X[t], y[t], o, cost, ridge), w)
    return w


class Mixture:
    """The mixture over experts' ratios, with matrices solved by numpy."""

    def __init__(self, n_experts: int) -> None:
        n = n_experts
        self.counts = [0, 0]
        self.features = [lambda z: np.zeros(0)]
        for e in range(n):
            self.features.append(lambda z, e=e: np.array([1.0, z[e]]))
        self.features += [lambda z: np.concatenate([[1.0], z])] * 3
        self.theta = [np.zeros(0)] + [np.array([0.0, 1.0])] * n + [np.eye(n + 1)[1]] * 3
        self.H = [np.zeros((len(t), len(t))) for t in self.theta]
        slow = 0.5 ** (1 / 1000)
        self.decay = [1.0, 1.0] + [slow] * (n - 1) + [1.0, slow, 0.5 ** (1 / 100)]
        start = np.ones(n + 4)
        start[0] = math.exp(3)
        self.share = start / start.sum()

    def offset(self) -> float:
        return math.log((self.counts[1] + 0.5) / (self.counts[0] + 0.5))

    def logits(self, ratios: np.ndarray) -> np.ndarray:
        z = np.sign(ratios) * np.log1p(np.abs(ratios))
        plain = [z[0]] + [t @ f(z) for t, f in zip(self.theta[1:], self.features[1:], strict=True)]
        return np.clip(np.array(plain) + self.offset(), -30, 30)

    def forecast(self, ratios: np.ndarray) -> tuple[float, float]:
        p = float(self.share @ (1 / (1 + np.exp(-self.logits(ratios)))))
        return math.log(p / (1 - p)) - self.offset(), p

    def learn(self, ratios: np.ndarray, label: int, said: np.ndarray | None = None) -> None:
        """Learn from the ratios, and from the logits that were forecast for this event, if that was earlier."""
        if 0 not in self.counts:
            self._step(ratios, label, said)
        self.counts[label] += 1

    def _step(self, ratios: np.ndarray, label: int, said: np.ndarray | None) -> None:
        z = np.sign(ratios) * np.log1p(np.abs(ratios))
        p = 1 / (1 + np.exp(-self.logits(ratios)))
        then = p if said is None else 1 / (1 + np.exp(-said))
        likely = self.share * (then if label == 1 else 1 - then)
        self.share = 0.999 * likely / likely.sum() + 0.001 / len(p)
        for k in range(1, len(p)):
            f = self.features[k](z)
            self.H[k] = self.decay[k] * self.H[k] + max(p[k] * (1 - p[k]), 1e-3) * np.outer(f, f)
            self.theta[k] = self.theta[k] + np.linalg.solve(self.H[k] + np.eye(len(f)), f * (label - p[k]))
