"""Scaling from all events seen so far and Platt's line fitted online, by the book."""

import math


def sigmoid(t):
    return 1.0 / (1.0 + math.exp(-t)) if t > -700 else 0.0


def dot(a, b):
    return math.fsum(x * y for x, y in zip(a, b, strict=True))


class NaiveScaler:
    """Keeps every event; means, variances and ranges are taken anew each time."""

    def __init__(self, kind):
        self.kind = kind
        self.rows = []

    def observe(self, x):
        self.rows.append(list(x))

    def centre_and_scale(self):
        n = len(self.rows)
        columns = list(zip(*self.rows, strict=True))
        if self.kind == "none":
            return [0.0] * len(columns), [1.0] * len(columns)
        if self.kind == "range":
            centres = [(min(c) + max(c)) / 2 for c in columns]
            return centres, [2 / (max(c) - min(c)) if max(c) > min(c) else 0.0 for c in columns]
        centres = [math.fsum(c) / n for c in columns]
        variances = [math.fsum((v - mu) ** 2 for v in c) / n for c, mu in zip(columns, centres, strict=True)]
        constant = [max(c) == min(c) for c in columns]
        return centres, [0.0 if flat else 1 / math.sqrt(s) for s, flat in zip(variances, constant, strict=True)]

    def scaled(self, x):
        if not self.rows:
            return [0.0] * len(x)
        limit = {"none": 1e100, "range": 1.0, "standard": math.sqrt(len(self.rows))}[self.kind]
        centres, scales = self.centre_and_scale()
        return [min(max((v - c) * s, -limit), limit) for v, c, s in zip(x, centres, scales, strict=True)]


class NaiveCalibration:
    """Two-parameter Newton steps ``theta += (H + I)^-1 f (y - p)`` on f = (1, t), memory of 1000 events."""

    def __init__(self):
        self.bias, self.slope = 0.0, 1.0
        self.H = [[0.0, 0.0], [0.0, 0.0]]
        self.n, self.mean, self.variance = 0, 0.0, 0.0

    def feature(self, score):
        if self.variance == 0:
            return 0.0
        t = (score - self.mean) / math.sqrt(self.variance)
        return math.log(1 + t) if t > 0 else -math.log(1 - t)

    def probability(self, score, n_negative, n_positive):
        logit = math.log((n_positive + 0.5) / (n_negative + 0.5)) + self.bias + self.slope * self.feature(score)
        return sigmoid(min(max(logit, -30), 30))

    def learn(self, score, y, n_negative, n_positive):
        p, t = self.probability(score, n_negative, n_positive), self.feature(score)
        f = (1.0, t)
        for i in range(2):
            for j in range(2):
                self.H[i][j] = 0.999 * self.H[i][j] + max(p * (1 - p), 1e-3) * f[i] * f[j]
        a, b, c = self.H[0][0] + 1, self.H[0][1], self.H[1][1] + 1
        e = y - p
        self.bias += (c * e - b * t * e) / (a * c - b * b)
        self.slope += (a * t * e - b * e) / (a * c - b * b)
        self.n += 1
        r = max(1 / self.n, 1e-3)
        d = score - self.mean
        self.mean += r * d
        self.variance = (1 - r) * (self.variance + r * d * d)
