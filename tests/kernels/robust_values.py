"""Columns of all kinds for the tests of trimmed products."""

import os

import numpy as np

INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT") == "1"
N_ROWS = 150 if INTERPRETED else 3000


def values(kind: str, n: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return {
        "normal": lambda: rng.normal(size=n),
        "cauchy": lambda: rng.standard_cauchy(n),
        "integers": lambda: rng.integers(-3, 4, n).astype(float),
        "sparse": lambda: np.where(rng.random(n) < 0.9, 0.0, rng.normal(size=n)),
        "constant": lambda: np.full(n, 2.5),
        "tiny": lambda: rng.normal(size=n) * 1e-160,
        "huge": lambda: rng.normal(size=n) * 1e149,
        "sorted": lambda: np.sort(rng.normal(size=n)),
        "two_scales": lambda: rng.normal(size=n) * np.where(rng.random(n) < 0.5, 1e-9, 1e9),
    }[kind]()


KINDS = ("normal", "cauchy", "integers", "sparse", "constant", "tiny", "huge", "sorted", "two_scales")


def batch(kinds, n=N_ROWS):
    return np.column_stack([values(kind, n, seed) for seed, kind in enumerate(kinds)])
