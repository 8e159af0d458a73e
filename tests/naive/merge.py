"""What all rows together say, in plain Python: nothing is merged, everything is counted again."""

import itertools
import math
from collections.abc import Iterable


def moments(rows: list[list[float]]) -> tuple[int, list[float], list[list[float]]]:
    """Return count, mean and population covariance."""
    n, m = len(rows), len(rows[0])
    mean = [sum(row[j] for row in rows) / n for j in range(m)]
    covariance = [[sum((r[i] - mean[i]) * (r[j] - mean[j]) for r in rows) / n for j in range(m)] for i in range(m)]
    return n, mean, covariance


def summed_distance(point: list[float], points: list[list[float]], counts: list[float]) -> float:
    """Return what the geometric median makes least."""
    return sum(c * math.dist(point, p) for p, c in zip(points, counts, strict=True))


def tightest(points: list[list[float]], counts: list[float], share: float) -> tuple[float, set[int]]:
    """Return the least sum of squares of a set with that share of the counts and more than half, and the set."""
    total, everyone = sum(counts), range(len(points))
    best: tuple[float, set[int]] = (math.inf, set())
    for size in range(1, len(points) + 1):
        for chosen in itertools.combinations(everyone, size):
            held = sum(counts[k] for k in chosen)
            if held >= share * total and held > 0.5 * total:
                squares = summed_squares(points, counts, chosen)
                best = min(best, (squares, set(chosen)), key=lambda one: one[0])
    return best


def summed_squares(points: list[list[float]], counts: list[float], chosen: Iterable[int]) -> float:
    """Return the sum of squared distances of the chosen points from their mean."""
    chosen = list(chosen)
    centre = weighted_mean(points, counts, chosen)
    return sum(counts[k] * math.dist(points[k], centre) ** 2 for k in chosen)


def weighted_mean(points: list[list[float]], counts: list[float], chosen: Iterable[int]) -> list[float]:
    """Return the mean of the chosen points."""
    chosen = list(chosen)
    held = sum(counts[k] for k in chosen)
    return [sum(counts[k] * points[k][j] for k in chosen) / held for j in range(len(points[0]))]


def belonging(points: list[list[float]], counts: list[float], kept: set[int]) -> set[int]:
    """Return all points that belong to those kept: 2.5 standard deviations of the two thirds' powers of distances."""
    held, centre = sum(counts[k] for k in kept), weighted_mean(points, counts, kept)
    weight = {k: counts[k] / held for k in kept}
    few = sum(w * w for w in weight.values())
    power = {}
    for k, point in enumerate(points):
        drawn = 1.0 - weight[k] if k in kept else 1.0 + few
        power[k] = (math.dist(point, centre) / math.sqrt(drawn)) ** (2 / 3) if drawn else 0.0
    usual = sum(w * power[k] for k, w in weight.items())
    variance = sum(w * (power[k] - usual) ** 2 for k, w in weight.items()) + (usual * few) ** 2
    more = kept | {k for k in power if power[k] <= usual + 2.5 * math.sqrt(variance)}
    return more if more == kept else belonging(points, counts, more)
