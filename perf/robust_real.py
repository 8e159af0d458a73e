"""ORLRegressor on real streams with real outliers, beside other online regressors in the same run.

python perf/robust_real.py [--rows N] [--tuned]   |   python perf/robust_real.py --inject

Every row is predicted before it is learned. Clean = rows without a documented or gross error (on air_quality look at
these alone: a fifth of its targets are the code -200 of a failed reading). --tuned adds the best of five learning rates
in hindsight. --inject spoils rows on purpose and measures on those left alone.
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
    print(f"  {name:28s} {mean:12.5g} {median:12.5g} {clean:12.5g} {spent:10.1f}", flush=True)


def real(n_rows: int, tuned: bool) -> None:
    ours(*first(STREAMS["air"](), 500)[:2])  # compiles
    for title, load in STREAMS.items():
        stream = first(load(), n_rows)
        print(f"{title}: {len(stream.y)} rows, {stream.X.shape[1]} columns, {(~stream.clean).sum()} not clean")
        print(f"  {'':28s} {'MAE':>12s} {'median':>12s} {'clean MAE':>12s} {'us/event':>10s}")
        show("ORLRegressor", errors(ours, stream))
        for name, run in DEFAULTS.items():
            show(name, errors(run, stream))
        for name, runs in TUNED.items() if tuned else ():
            show(name + ", best rate", min((errors(run, stream) for run in runs), key=lambda found: found[2]))


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


def injected() -> None:
    peers = {
        "ORLRegressor": ours,
        "River abs": scaled(river("absolute")),
        "VW l=2": scaled(vw_quantile(2.0)),
    }
    for title in ("air", "metro", "flights"):
        stream = first(STREAMS[title](), INJECTED_ROWS)
        half = np.arange(len(stream.y)) >= len(stream.y) // 2
        print(f"{title}: clean-row MAE, all rows / second half", *(f"{name:>22s}" for name in peers))
        for kind in ("none", "gross", "one-sided", "sign flip", "leverage", "bursts"):
            for share in (0.1, 0.3, 0.45) if kind != "none" else (0.0,):
                spoiled = spoil(stream, kind, share, seed=1)
                cells = []
                for run in peers.values():
                    with warnings.catch_warnings(), np.errstate(all="ignore"):
                        warnings.simplefilter("ignore")
                        off = np.abs(run(spoiled.X, spoiled.y) - stream.y)
                    cells.append(f"{off[spoiled.clean].mean():10.4g} / {off[spoiled.clean & half].mean():9.4g}")
                print(f"  {kind:12s} {share:4.2f}              ", *cells, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--tuned", action="store_true")
    parser.add_argument("--inject", action="store_true")
    options = parser.parse_args()
    require_data()
    if options.inject:
        injected()
    else:
        real(options.rows, options.tuned)


if __name__ == "__main__":
    main()
