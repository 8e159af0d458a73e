"""ORLRegressor on real streams with real outliers, beside other online regressors in the same run.

python perf/robust_real.py [--rows N] [--tuned] [--inject] [--streams air metro ...] [--quick]

Every row is predicted before it is learned. Clean = rows without a documented or gross error (on air_quality look at
these alone: a fifth of its targets are the code -200 of a failed reading). --tuned adds each peer with the best of five
learning rates in hindsight, by its clean error, and its target in robust units. --inject spoils rows on purpose
instead, and measures on those left alone: three seeds each.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from robust_peers import DEFAULTS, TUNED, river, scaled, vw_quantile
from robust_streams import STREAMS, Stream, first, require_data

from streamlearn import ORLRegressor

INJECTED_ROWS = 20_000
KINDS = ("none", "gross", "one-sided", "sign flip", "leverage", "bursts")


def ours(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    return ORLRegressor().test_then_learn_many(X, y)


def errors(run, stream: Stream) -> tuple[float, float, float, float]:
    """Mean, median, and clean mean absolute error, and microseconds of processor time an event."""
    start = time.process_time()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # peers that diverge say so in many ways
        off = np.abs(run(stream.X, stream.y) - stream.y)
    spent = (time.process_time() - start) / len(off) * 1e6
    off = np.where(np.isfinite(off), off, np.inf)
    return float(off.mean()), float(np.median(off)), float(off[stream.clean].mean()), spent


def show(name: str, found: tuple[float, float, float, float]) -> None:
    mean, median, clean, spent = found
    print(f"  {name:32s} {mean:10.4g} {median:10.4g} {clean:10.4g} {spent:9.1f}", flush=True)


def real(chosen: argparse.Namespace) -> None:
    ours(*first(STREAMS["air"](), 500)[:2])  # compiles
    for title in chosen.streams:
        stream = first(STREAMS[title](), chosen.rows)
        print(f"{title}: {len(stream.y)} rows, {stream.X.shape[1]} columns, {(~stream.clean).sum()} not clean")
        print(f"  {'':32s} {'MAE':>10s} {'median':>10s} {'clean MAE':>10s} {'us/event':>9s}")
        mine = errors(ours, stream)
        show("ORLRegressor", mine)
        peers = {}
        for name, run in DEFAULTS.items():
            peers[name] = errors(run, stream)
            show(name, peers[name])
        for name, runs in TUNED.items() if chosen.tuned else ():
            tuned = name + ", tuned in hindsight"
            peers[tuned] = min((errors(run, stream) for run in runs), key=lambda e: e[2])
            show(tuned, peers[tuned])
        default = min(peers[name][2] for name in DEFAULTS)
        print(f"  clean MAE of ours over the best peer's at its defaults {mine[2] / default:.3f}", end="")
        best = min(found[2] for found in peers.values())
        print(f", over the best of all shown {mine[2] / best:.3f}", flush=True)


def spoil(stream: Stream, kind: str, share: float, seed: int) -> Stream:
    """Return the stream with a share of its rows spoiled; these are not clean any more."""
    rng = np.random.default_rng(seed)
    X, y = stream.X.copy(), stream.y.copy()
    n, unit = len(y), 1.4826 * np.median(np.abs(stream.y - np.median(stream.y)))
    bad = rng.random(n) < share
    if kind == "bursts":
        bad = np.repeat(rng.random(n // 200 + 1) < share, 200)[:n]
    if kind in ("gross", "bursts"):
        y[bad] += 20 * unit * rng.normal(size=bad.sum())
    elif kind == "one-sided":
        y[bad] += 20 * unit
    elif kind == "sign flip":
        y[bad] = 2 * np.median(stream.y) - y[bad]
    elif kind == "leverage":
        X[bad, rng.integers(0, X.shape[1], bad.sum())] += 50 * X.std(axis=0).max()
    return Stream(X, y, stream.clean & ~bad)


def injected(chosen: argparse.Namespace) -> None:
    peers = {
        "ORLRegressor": ours,
        "River absolute": scaled(river("absolute")),
        "VW quantile l=2": scaled(vw_quantile(2.0)),
    }
    for title in chosen.streams:
        stream = first(STREAMS[title](), min(chosen.rows, INJECTED_ROWS))
        half = np.arange(len(stream.y)) >= len(stream.y) // 2
        print(f"{title}: clean-row MAE, median of {chosen.seeds} seeds (worst), all rows | second half")
        print(" " * 16, *(f"{name:>42s}" for name in peers))
        for kind in KINDS:
            for share in (0.1, 0.3, 0.45) if kind != "none" else (0.0,):
                cells = []
                for run in peers.values():
                    found = [
                        spoiled_errors(run, stream, kind, share, seed, half) for seed in range(1, chosen.seeds + 1)
                    ]
                    middle, worst = np.median(found, axis=0), np.max(found, axis=0)
                    cells.append(" | ".join(f"{m:9.4g} ({w:8.4g})" for m, w in zip(middle, worst, strict=True)))
                print(f"  {kind:10s} {share:4.2f}", *cells, flush=True)


def spoiled_errors(run, stream: Stream, kind: str, share: float, seed: int, half: np.ndarray) -> tuple[float, float]:
    """Clean mean absolute error over all rows and over the second half."""
    spoiled = spoil(stream, kind, share, seed)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        off = np.abs(run(spoiled.X, spoiled.y) - stream.y)
    off = np.where(np.isfinite(off), off, np.inf)
    return float(off[spoiled.clean].mean()), float(off[spoiled.clean & half].mean())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--streams", nargs="+", choices=list(STREAMS), default=list(STREAMS))
    parser.add_argument("--tuned", action="store_true")
    parser.add_argument("--inject", action="store_true")
    parser.add_argument("--quick", action="store_true")
    chosen = parser.parse_args()
    require_data()
    if chosen.quick:
        chosen.rows, chosen.seeds, chosen.streams = 600, 1, ["air"]
    (injected if chosen.inject else real)(chosen)


if __name__ == "__main__":
    main()
