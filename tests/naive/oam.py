"""Online AUC maximisation with buffers: Zhao, Hoi, Jin & Yang 2011, and Algorithm R with Philox2x32-10."""

import math

from tests.naive.rescaling import NaiveCalibration, NaiveScaler, dot


def philox(counter, key):
    """Return 64 bits: ten rounds of multiply, exchange halves, xor."""
    left, right = counter % 2**32, counter // 2**32
    for _ in range(10):
        product = 0xD256D193 * left
        left, right = product // 2**32 ^ key ^ right, product % 2**32
        key = (key + 0x9E3779B9) % 2**32
    return right * 2**32 + left


def pairwise_loss(w, differences, sign):
    """Return the sum of pairwise hinge losses."""
    return math.fsum(max(0.0, 1.0 - sign * dot(w, d)) for d in differences)


class NaiveOAM:
    def __init__(self, n_features, *, sequential, C=None, size=100, scale="standard", seed=0):
        self.sequential, self.C, self.size, self.seed = sequential, C, size, seed
        self.scaler, self.calibration = NaiveScaler(scale), NaiveCalibration()
        self.w = [0.0] * n_features
        self.buffers, self.seen, self.draws = [[], []], [0, 0], 0
        self.pulled, self.distances = 0.0, []

    def score(self, x):
        return dot(self.w, self.scaler.scaled(x))

    def probability(self, x):
        return self.calibration.probability(self.score(x), *self.seen)

    def learn(self, x, y):
        if all(self.seen):
            self.calibration.learn(self.score(x), y, *self.seen)
        self.scaler.observe(x)
        others = self.buffers[1 - y]
        if others:
            self.update(x, others, 2 * y - 1, max(1.0, self.seen[1 - y] / len(others)))
        self.seen[y] += 1
        self.keep(list(x), y)

    def keep(self, x, y):
        buffer = self.buffers[y]
        if len(buffer) < self.size:
            buffer.append(x)
            return
        u = (philox(self.draws, self.seed) >> 11) / 2**53
        self.draws += 1
        slot = math.floor(u * self.seen[y])
        if slot < self.size:
            buffer[slot] = x

    def length(self):
        if not self.pulled or not math.fsum(self.distances):
            return math.inf
        return 1 / math.sqrt(math.fsum(self.distances) / len(self.distances)) / math.sqrt(self.pulled)

    def update(self, x, others, sign, weight):
        _, scales = self.scaler.centre_and_scale()
        differences = [[(u - v) * s for u, v, s in zip(x, other, scales, strict=True)] for other in others]
        if self.C is None:
            one = differences[(len(self.distances) + 1) % len(differences)]
            self.distances.append(dot(one, one))
        pull = [0.0] * len(x)
        cap = self.length() * weight if self.C is None else self.C * weight / 2
        for d in differences:
            hinge = 1 - sign * dot(self.w, d)
            if (hinge > 0 or (hinge == 0 and not self.sequential)) and dot(d, d) > 0:
                pull = [p + v for p, v in zip(pull, d, strict=True)]
                if self.sequential:
                    step = sign * min(cap, hinge / dot(d, d))
                    self.w = [w + step * v for w, v in zip(self.w, d, strict=True)]
        self.pulled += weight**2 * dot(pull, pull)
        if not self.sequential and self.pulled:
            step = self.length() * weight if self.C is None else self.C * weight / 2
            self.w = [w + sign * step * v for w, v in zip(self.w, pull, strict=True)]
