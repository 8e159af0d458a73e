"""What all rows together say, in plain Python: nothing is merged, everything is counted again."""

import math


def moments(rows: list[list[float]]) -> tuple[int, list[float], list[list[float]]]:
    """Return count, mean and population covariance."""
    n, m = len(rows), len(rows[0])
    mean = [sum(row[j] for row in rows) / n for j in range(m)]
    covariance = [[sum((r[i] - mean[i]) * (r[j] - mean[j]) for r in rows) / n for j in range(m)] for i in range(m)]
    return n, mean, covariance


def summed_distance(point: list[float], points: list[list[float]], counts: list[float]) -> float:
    """Return what the geometric median makes least."""
    return sum(c * math.dist(point, p) for p, c in zip(points, counts, strict=True))


def trimmed_mean(points: list[list[float]], counts: list[float], centre: list[float], trim: float) -> list[float]:
    """Return the mean of the points nearest to a centre that hold the share 1 - trim of the counts."""
    order = sorted(range(len(points)), key=lambda k: math.dist(points[k], centre))
    kept, held = [], 0.0
    for k in order:
        if held < (1.0 - trim) * sum(counts):
            kept.append(k)
            held += counts[k]
    return [sum(counts[k] * points[k][j] for k in kept) / held for j in range(len(centre))]
