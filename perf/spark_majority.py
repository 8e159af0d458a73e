"""What merges make of estimates some of which are poisoned: a simulation over kinds of poison, widths and seeds.

python perf/spark_majority.py [--widths P ...] [--parts K] [--bad M] [--repeats R] [--quick]

Sound estimates are standard normal in p coordinates; a part's error is the length of one of them. The others send what
the table says, at a distance in a part's errors. Printed is the root mean square error of each merge as a multiple of
that of the mean of sound parts alone, and the greatest of all repeats for "trimmed". The last line of each width is the
worst of several distances for parts that copy one another, which is what an adversary would do who knows the others'
spread: no merge withstands it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np

from streamlearn.learners.consensus import consensus

HOWS = ("mean", "median", "trimmed")
Poison = Callable[[np.random.Generator, int, int], np.ndarray]


def beside(rng: np.random.Generator, m: int, p: int, distance: float) -> np.ndarray:
    """As wide as the sound ones, around a place so many part errors away."""
    direction = rng.normal(size=p)
    return rng.normal(size=(m, p)) + distance * np.sqrt(p) * direction / np.linalg.norm(direction)


def copies(rng: np.random.Generator, m: int, p: int, distance: float) -> np.ndarray:
    """One place, so many part errors away."""
    direction = rng.normal(size=p)
    return np.tile(distance * np.sqrt(p) * direction / np.linalg.norm(direction), (m, 1))


def both_sides(rng: np.random.Generator, m: int, p: int) -> np.ndarray:
    sides = np.where(np.arange(m) % 2 == 0, 1.0, -1.0)[:, None]
    return rng.normal(size=(m, p)) + sides * copies(rng, m, p, 5.0)


KINDS: dict[str, Poison | None] = {
    "none": None,
    "far: 1000 errors away": lambda rng, m, p: beside(rng, m, p, 1000.0),
    "turned: 10 errors away": lambda rng, m, p: beside(rng, m, p, 10.0),
    "5 errors away, on both sides": both_sides,
    "scattered 10 times as wide": lambda rng, m, p: 10.0 * rng.normal(size=(m, p)),
    "near: 3 errors away": lambda rng, m, p: beside(rng, m, p, 3.0),
    "near: 2 errors away": lambda rng, m, p: beside(rng, m, p, 2.0),
    "near: 1 error away": lambda rng, m, p: beside(rng, m, p, 1.0),
}
COPIES = (0.5, 1.0, 1.5, 2.0, 3.0, 5.0)


def errors(kind: Poison | None, p: int, chosen: argparse.Namespace) -> dict[str, np.ndarray]:
    found: dict[str, list[float]] = {how: [] for how in HOWS}
    for seed in range(chosen.repeats):
        rng = np.random.default_rng([seed, p, chosen.parts])
        points = rng.normal(size=(chosen.parts, p))
        if kind is not None:
            points[: chosen.bad] = kind(rng, chosen.bad, p)
        for how in HOWS:
            found[how].append(float(np.linalg.norm(consensus(points, np.ones(len(points)), how).centre)))
    return {how: np.array(values) for how, values in found.items()}


def size(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--widths", type=int, nargs="+", default=[4, 8, 50, 300])
    parser.add_argument("--parts", type=int, default=20)
    parser.add_argument("--bad", type=int, default=9)
    parser.add_argument("--repeats", type=int, default=100)
    parser.add_argument("--quick", action="store_true")
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.widths, chosen.repeats = [8], 5
    print(f"{chosen.bad} of {chosen.parts} parts poisoned, {chosen.repeats} repeats")
    for p in chosen.widths:
        print(f"\np = {p:<28d}", *(f"{how:>9s}" for how in HOWS), "  trimmed, greatest")
        clean = size(errors(None, p, chosen)["mean"])
        for name, kind in KINDS.items():
            found = errors(kind, p, chosen)
            greatest = found["trimmed"].max() / clean
            print(f"{name:32s}", *(f"{size(found[how]) / clean:9.2f}" for how in HOWS), f"{greatest:9.2f}", flush=True)
        worst = [errors(lambda rng, m, p, d=d: copies(rng, m, p, d), p, chosen) for d in COPIES]
        text = [f"{max(size(found[how]) for found in worst) / clean:9.2f}" for how in HOWS]
        print(f"{f'copies, worst of {COPIES[0]} to {COPIES[-1]:g}':32s}", *text, flush=True)


if __name__ == "__main__":
    main()
