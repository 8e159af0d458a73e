"""Adaptive implicit subgradient steps on the logistic and the bent hinge loss, by bisection on their definitions."""

import math

from tests.naive.rescaling import NaiveCalibration, NaiveScaler, dot, sigmoid


def loss(kind, z, a):
    if kind == "logistic":
        return math.log1p(math.exp(-z)) if z > -700 else -z
    return max(0.0, 1.0 - z, 1.0 - a * z)


def force(kind, z, a):
    """Return minus a subgradient of the loss."""
    if kind == "logistic":
        return sigmoid(-z)
    return a if z < 0 else 1.0 if z < 1 else 0.0


def implicit_force(kind, m, r, a):
    """Return c with c a negative subgradient at m + r c: bisection on c, whose excess over the force is increasing."""
    low, high = 0.0, max(a, 1.0)
    for _ in range(200):
        c = (low + high) / 2
        if c > force(kind, m + r * c, a):
            high = c
        else:
            low = c
    return (low + high) / 2


class NaiveReject:
    def __init__(self, kind, n_features, *, scale="standard", a=1.0, rate=1.0, l2=0.0):
        self.kind, self.a, self.rate, self.l2 = kind, a, rate, l2
        self.scaler, self.calibration = NaiveScaler(scale), NaiveCalibration()
        self.w, self.b = [0.0] * n_features, 0.0
        self.squares, self.b_squares = [0.0] * n_features, 0.0
        self.seen = [0, 0]

    def score(self, x):
        return dot(self.w, self.scaler.scaled(x)) + self.b

    def probability(self, x):
        if self.kind == "logistic":
            return sigmoid(self.score(x))
        return self.calibration.probability(self.score(x), *self.seen)

    def learn(self, x, y):
        if all(self.seen):
            self.calibration.learn(self.score(x), y, *self.seen)
        self.seen[y] += 1
        self.scaler.observe(x)
        z, sign = self.scaler.scaled(x), 2 * y - 1
        m = sign * (dot(self.w, z) + self.b)
        g = force(self.kind, m, self.a)
        rate = self.rate / math.sqrt(len(x))
        if g > 0:
            self.squares = [s + (g * v) ** 2 for s, v in zip(self.squares, z, strict=True)]
            self.b_squares += g * g
            steps = [rate / math.sqrt(s) * v if s else 0.0 for s, v in zip(self.squares, z, strict=True)]
            b_step = self.rate / math.sqrt(self.b_squares)
            c = sign * implicit_force(self.kind, m, dot(steps, z) + b_step, self.a)
            self.w = [w + c * s for w, s in zip(self.w, steps, strict=True)]
            self.b += c * b_step
        self.w = [
            w / (1 + self.l2 * rate / math.sqrt(s)) if s else w for w, s in zip(self.w, self.squares, strict=True)
        ]
