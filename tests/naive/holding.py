"""Holding a reject rate: exact weighted quantiles over all that was seen, with the same movement of the level."""

import math

import numpy as np


def quantile(sizes, weights, level):
    """Return the least size with at least the share `level` of the weight at or below it; 0 for nothing."""
    if not sizes or level <= 0.0:
        return 0.0
    order = np.argsort(sizes, kind="stable")
    reached = np.cumsum(np.array(weights)[order]) >= level * sum(weights) * (1 - 1e-12)
    return float(np.array(sizes)[order][np.argmax(reached)])


class NaiveHold:
    """The event part: certainty of each event against the quantile of those before it."""

    def __init__(self, rate, *, half_life=1000.0, gain=0.01):
        self.rate, self.level, self.gain = rate, rate, gain
        self.growth = 2.0 ** (1.0 / half_life)
        self.sizes, self.weights = [], []

    def bar(self):
        return quantile(self.sizes, self.weights, self.level)

    def take(self, probability):
        """Return whether the event is rejected, then learn from it."""
        size = abs(math.log(probability / (1.0 - probability)))
        rejected = size < self.bar()
        self.level = min(max(self.level + self.gain * (self.rate - rejected), 0.0), 1.0)
        self.weights.append(self.growth ** len(self.sizes))
        self.sizes.append(size)
        return rejected
