"""What the constants of ORLRegressor's bank are worth: each by half and by double, beside those it has.

python perf/robust_constants.py [--only NAME ...] [--quick]

Clean mean absolute errors over those with the constants as they are: on made streams (20 columns; the mean over kinds
of bad rows, and the worst), on the later half of metro_raw and on rows 50,000 to 100,000 of the flights with dep_delay,
and on both with 30 % of gross errors. Nothing is chosen here. Each line is a process of its own, which compiles the
bank anew where the kernels have the constant as a number.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from robust_real import spoil
from robust_streams import STREAMS, Stream, require_data
from scipy.stats import norm

KERNEL, BANK = "streamlearn.kernels.robust_bank", "streamlearn.learners.robust.bank"
CONSTANTS = {
    "QUANTILE": KERNEL,
    "_SIDES_APART": KERNEL,
    "_CONVEX": KERNEL,
    "_REDESCEND": KERNEL,
    "_NEAR": KERNEL,
    "_RIDGE": KERNEL,
    "_ANCHOR": KERNEL,
    "_LOSS_CAP": KERNEL,
    "_LOSS_MEMORY": KERNEL,
    "LOSS_RATE": KERNEL,
    "_SCALE_LAG": KERNEL,
    "_SCALE_RATE": KERNEL,
    "_RANGE_SIGMAS": KERNEL,
    "_RANGE_MARGIN": KERNEL,
    "_LONG_RUN": KERNEL,
    "RESTART_LEAD": KERNEL,
    "RESTART_ROWS": KERNEL,
    "RESTART_AGE": KERNEL,
    "_BISQUARE": BANK,
    "_BELIEVED": BANK,
    "SECOND_LOOK": BANK,
    "_FAILED": BANK,
}
MADE = (
    ("none", 0.0),
    ("gross", 0.45),
    ("one-sided", 0.3),
    ("one-sided", 0.45),
    ("sign flip", 0.3),
    ("leverage", 0.1),
    ("bursts", 0.3),
)
N_MADE, N_COLUMNS, LATER = 6000, 20, slice(50_000, 100_000)


def made(seed: int, heavy: bool, jump: bool) -> Stream:
    """Rows of a linear model, with normal or heavy-tailed errors, whose coefficients may change in the middle."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N_MADE, N_COLUMNS)) * rng.uniform(0.5, 5.0, N_COLUMNS)
    theta = rng.normal(size=(2, N_COLUMNS))
    later = (np.arange(N_MADE) >= N_MADE // 2) & jump
    noise = rng.standard_t(3, N_MADE) if heavy else rng.normal(size=N_MADE)
    return Stream(X, np.where(later, X @ theta[1], X @ theta[0]) + noise, np.ones(N_MADE, dtype=bool))


def streams(quick: bool):
    """Yield names and streams."""
    for kind, share in MADE:
        for seed in (1,) if quick else (1, 2, 3):
            yield "made", spoil(made(seed, heavy=seed == 2, jump=seed == 3), kind, share, seed)
    start = made(4, heavy=False, jump=False)
    bad = np.arange(N_MADE) < 70  # most of the start
    yield "made", Stream(start.X, np.where(bad, 50.0 - start.y, start.y), ~bad)
    if quick:
        return
    raw, flights = STREAMS["metro_raw"](), STREAMS["flights"]()
    raw = Stream(*(part[len(raw.y) // 2 :] for part in raw))
    flights = Stream(*(part[LATER] for part in flights))
    for name, stream in (("metro_raw", raw), ("flights", flights)):
        yield name, stream
        yield name + ", gross", spoil(stream, "gross", 0.3, 1)


def one(name: str, factor: float, quick: bool) -> None:
    """Print the errors with one constant changed, as JSON."""
    if name:
        module = importlib.import_module(CONSTANTS[name])
        value = type(getattr(module, name))(getattr(module, name) * factor)
        setattr(module, name, value)
        if name == "QUANTILE":
            module.QUANTILE_TO_SIGMA = float(1.0 / norm.ppf((1.0 + value) / 2.0))
    from streamlearn import ORLRegressor  # noqa: PLC0415 - names are bound after the change

    found = []
    for title, stream in streams(quick):
        off = np.abs(ORLRegressor().test_then_learn_many(stream.X, stream.y) - stream.y)
        found.append((title, float(off[stream.clean].mean())))
    print(json.dumps(found))


def elsewhere(name: str, factor: float, quick: bool, cache: Path) -> list[tuple[str, float]]:
    """Return what `one` prints in a process of its own; a changed kernel is not cached where others look for it."""
    environment = dict(os.environ)
    if CONSTANTS.get(name) == KERNEL:
        environment["NUMBA_CACHE_DIR"] = str(cache)
        for path in cache.rglob("robust_bank*"):
            path.unlink()
    command = [sys.executable, __file__, "--one", name, str(factor), *(["--quick"] if quick else [])]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return [(title, error) for title, error in json.loads(done.stdout)]


def ratios(changed: list[tuple[str, float]], usual: list[tuple[str, float]]) -> list[float]:
    """Mean and worst ratio on made streams, then one ratio for each real one."""
    each = [(title, a / b) for (title, a), (_, b) in zip(changed, usual, strict=True)]
    first = [ratio for title, ratio in each if title == "made"]
    return [float(np.exp(np.mean(np.log(first)))), max(first), *(r for title, r in each if title != "made")]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="+", choices=list(CONSTANTS), default=list(CONSTANTS))
    parser.add_argument("--one", nargs=2)
    parser.add_argument("--quick", action="store_true")
    chosen = parser.parse_args()
    if chosen.one:
        one(chosen.one[0], float(chosen.one[1]), chosen.quick)
        return
    if not chosen.quick:
        require_data()
    with tempfile.TemporaryDirectory() as cache:
        table(["_FAILED"] if chosen.quick else chosen.only, chosen.quick, Path(cache))


def table(names: list[str], quick: bool, cache: Path) -> None:
    """Print two lines of ratios for each constant."""
    usual = elsewhere("", 1.0, quick, cache)
    titles = ["made: mean", "worst", *(title for title, _ in usual if title != "made")]
    print(f"{'':16s} {'':6s}", *(f"{title:>16s}" for title in titles), flush=True)
    for name in names:
        for factor, word in ((0.5, "half"), (2.0, "double")):
            found = ratios(elsewhere(name, factor, quick, cache), usual)
            print(f"{name.strip('_').lower():16s} {word:6s}", *(f"{ratio:16.3f}" for ratio in found), flush=True)


if __name__ == "__main__":
    main()
