"""Microseconds an event of AUCRO, OPAUC and AdaptiveAUCRO by width, beside River's logistic regression in the same run.

    python perf/auc_speed.py [--quick]

One by one: predict_one and learn_one from a dict. Batches: test_then_learn_many, 1000 rows each. River's
``StandardScaler | LogisticRegression`` goes one by one from dicts that were made before. Each figure is the best of
five rounds taken in turn, after a warm-up of `N_BEFORE` events, so that a busy machine disturbs all alike. The AUC is
that of the final models on fresh events of two Gaussian classes.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
from river import compose, linear_model, preprocessing
from sklearn.metrics import roc_auc_score

from streamlearn import AUCRO, OPAUC, AdaptiveAUCRO

OUT = Path(__file__).parent / "out"
WIDTHS = (8, 20, 50, 54, 123, 300)
N_BEFORE = 2000
BATCH = 1000
ROUNDS = 5


def stream(m, n):
    rng = np.random.default_rng(m)
    y = (rng.random(n) < 0.4).astype(np.int8)
    return rng.normal(size=(n, m)) + 0.6 / np.sqrt(m) * np.abs(rng.normal(size=m)) * (2.0 * y[:, None] - 1), y


def logistic():
    return compose.Pipeline(preprocessing.StandardScaler(), linear_model.LogisticRegression())


class OneByOne:
    def __init__(self, model, X, y):
        self.model, self.truth = model, y.astype(bool).tolist()
        self.events = [{f"f{j}": v for j, v in enumerate(row)} for row in X.tolist()]

    def run(self, start, stop):
        """Return the seconds that predicting and learning take."""
        model, events, truth = self.model, self.events, self.truth
        began = time.perf_counter()
        for i in range(start, stop):
            x = events[i]
            model.predict_one(x)
            model.learn_one(x, truth[i])
        return time.perf_counter() - began

    def area(self, start, stop):
        return roc_auc_score(
            self.truth[start:stop], [self.model.predict_proba_one(x)[True] for x in self.events[start:stop]]
        )


class InBatches:
    def __init__(self, model, X, y):
        self.model, self.X, self.y = model, X, y

    def run(self, start, stop):
        began = time.perf_counter()
        for i in range(start, stop, BATCH):
            self.model.test_then_learn_many(self.X[i : min(i + BATCH, stop)], self.y[i : min(i + BATCH, stop)])
        return time.perf_counter() - began

    def area(self, start, stop):
        return roc_auc_score(self.y[start:stop], self.model.score_many(self.X[start:stop]))


CASES = {
    "River LR, one by one": (OneByOne, logistic),
    "AUCRO, one by one": (OneByOne, AUCRO),
    "AUCRO, batches": (InBatches, AUCRO),
    "OPAUC, batches": (InBatches, OPAUC),
    "AdaptiveAUCRO, one by one": (OneByOne, AdaptiveAUCRO),
    "AdaptiveAUCRO, batches": (InBatches, AdaptiveAUCRO),
}


def measure(m, n_round):
    """Return {case: (us an event, AUC)}."""
    X, y = stream(m, N_BEFORE + (ROUNDS + 1) * n_round)
    runs = {title: how(make(), X, y) for title, (how, make) in CASES.items()}
    best = dict.fromkeys(runs, float("inf"))
    for run in runs.values():
        run.run(0, N_BEFORE)
    for k in range(ROUNDS):
        start = N_BEFORE + k * n_round
        for title, run in runs.items():
            best[title] = min(best[title], run.run(start, start + n_round) / n_round * 1e6)
    fresh = N_BEFORE + ROUNDS * n_round
    return {title: (best[title], run.area(fresh, fresh + n_round)) for title, run in runs.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two widths, few events")
    args = parser.parse_args()
    table = {}
    for m in (8, 20) if args.quick else WIDTHS:
        table[m] = measure(m, 1000 if args.quick else 4000)
        river = table[m]["River LR, one by one"][0]
        for title, (us, area) in table[m].items():
            print(f"{m:4d} features  {title:26s} {us:8.2f} us  {river / us:6.1f} x River  AUC {area:.4f}", flush=True)
    OUT.mkdir(exist_ok=True)
    (OUT / "auc_speed.json").write_text(json.dumps(table, indent=1))


if __name__ == "__main__":
    main()
