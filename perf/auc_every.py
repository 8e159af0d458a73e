"""What rarer solutions save and lose: AUC and microseconds an event of AdaptiveAUCRO by ``solve_every``.

    python perf/auc_every.py [--sets NAME ...] [--every N ...] [--rows N] [--turns N] [--data FOLDER]

The streams are those of auc_reference.py, their first events (20,000). "None" is the default: as often as the schedule
of AUCRO says, which follows from the width and from how far the class means moved. Seconds are of the processor; a
cell shows AUC and the median of the turns (least to most).
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from auc_reference import BLOCK, DATA, GROUPS, read
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

from streamlearn import AdaptiveAUCRO

SETS = (
    "electricity", "noaa_weather", "covtype", "letter", "german_numer", "splice", "bank_campaign", "higgs_7500",
    "creditcard_fraud_enriched", "kdd99_10pct",
)  # fmt: skip
EVERY = (4, 8, 16)


def forecasts(X, y, every):
    """Return the score of each event before it was learned, and microseconds of the processor an event."""
    model, parts = AdaptiveAUCRO(solve_every=every), [slice(i, i + BLOCK) for i in range(0, len(y), BLOCK)]
    began = time.process_time()
    scores = [model.test_then_learn_many(X[part], y[part]) for part in parts]
    return np.concatenate(scores), (time.process_time() - began) / len(y) * 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", choices=[s for group in GROUPS.values() for s in group], default=SETS)
    parser.add_argument("--every", nargs="+", type=int, default=EVERY)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--data", type=Path, default=DATA)
    args = parser.parse_args()
    cases = (None, *args.every)
    print(f"{'':30s}" + "".join(f"{f'solve_every={every}':>28s}" for every in cases))
    for name in args.sets:
        X, y = (part[: args.rows] for part in read(args.data, name))
        table = {every: [] for every in cases}
        with threadpool_limits(1):
            forecasts(X[:300], y[:300], None)  # compiles
            for _ in range(args.turns):
                for every, taken in table.items():
                    taken.append(forecasts(X, y, every))
        cells = []
        for taken in table.values():
            us = [seconds for _, seconds in taken]
            cells.append(f"{roc_auc_score(y, taken[0][0]):.4f} {np.median(us):5.1f} us ({min(us):.1f}-{max(us):.1f})")
        print(f"{name:25s} ({X.shape[1]:2d})" + "".join(f"{cell:>28s}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
