"""Prequential AUC with few labels: HedgeMower and Marvin beside River's learners and self-training.

    python perf/muffled_stream.py [--events N] [--sets NAME ...] [--shares 0.01 0.03 0.1] [--seeds N] [--quick]
                                  [--methods NAME ...] [--again NAME ...]

Finished cells are kept in perf/out/ and not done again: an interrupted run goes on where it was, several may run side
by side with different --methods, and --again forgets those of methods that have changed.

An event's label is shown with the given probability, after its forecast. AUC is over all forecasts but those of the
first tenth, with the labels that were kept secret. `drift_*` turns features gradually into each other over the middle
half of a real set. Self-training is an online logistic regression that also learns its own sure forecasts.
"""

from __future__ import annotations

import argparse
import time
from functools import partial

import numpy as np
from muffled_cells import OUT, Cells
from muffled_data import interval, load
from river import forest, linear_model, preprocessing, tree
from river.ensemble import SRPClassifier
from sklearn.metrics import roc_auc_score

from streamlearn import HedgeMower1, Marvin

SETS = ("electricity", "covtype", "noaa_weather", "a9a", "drift_letter", "drift_covtype")
SURE = 0.95


def stream(name: str, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the first events of a set in its order, or of a shuffled one with gradual drift made from it."""
    if not name.startswith("drift_"):
        X, y = load(name)
        return X[:n], (y[:n] > 0).astype(int)
    X, y = load(name.removeprefix("drift_"))
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(y))[:n]
    X, y = X[rows].copy(), y[rows]
    # Each of the pairs of features exchanges its roles, mixing gradually: a sensor that is slowly replaced.
    share = np.clip((np.arange(len(y)) / len(y) - 0.25) * 2, 0, 1)[:, None]
    wide = np.argsort(-X.std(axis=0), kind="stable")[: X.shape[1] // 4 * 2]
    turned = X[:, wide.reshape(-1, 2)[:, ::-1].ravel()]
    X[:, wide] = (1 - share) * X[:, wide] + share * turned
    return X, (y > 0).astype(int)


class SelfTraining:
    """River's logistic regression that learns its own sure forecasts where there is no label."""

    def __init__(self) -> None:
        self.model = preprocessing.StandardScaler() | linear_model.LogisticRegression()

    def predict_proba_one(self, x):
        return self.model.predict_proba_one(x)

    def learn_one(self, x, y=None):
        if y is None:
            p = self.model.predict_proba_one(x).get(True, 0.5)
            if max(p, 1 - p) < SURE:
                return
            y = p > 0.5
        self.model.learn_one(x, y)


def rivers(seed: int) -> dict:
    return {
        "ARF": forest.ARFClassifier(n_models=10, seed=seed),
        "SRP": SRPClassifier(n_models=10, seed=seed),
        "HAT": tree.HoeffdingAdaptiveTreeClassifier(seed=seed),
        "LR": preprocessing.StandardScaler() | linear_model.LogisticRegression(),
        "self-training": SelfTraining(),
    }


def run_river(model, X, y, shown) -> tuple[np.ndarray, float]:
    events = [dict(enumerate(row)) for row in X.tolist()]
    scores = np.empty(len(y))
    start = time.process_time()
    for i, x in enumerate(events):
        scores[i] = model.predict_proba_one(x).get(True, 0.5)
        if shown[i]:
            model.learn_one(x, bool(y[i]))
        elif isinstance(model, SelfTraining):
            model.learn_one(x)
    return scores, time.process_time() - start


def run_ours(model, X, y, shown) -> tuple[np.ndarray, float]:
    labels = np.where(shown, y, np.nan)
    start = time.process_time()
    scores = [model.test_then_learn_many(X[a : a + 500], labels[a : a + 500]) for a in range(0, len(y), 500)]
    return np.concatenate(scores), time.process_time() - start


OURS = {
    "HedgeMower1": lambda seed: HedgeMower1(seed=seed),
    "Marvin": lambda seed: Marvin(seed=seed, n_stages=3),
}
PEERS = ("ARF", "SRP", "HAT", "LR", "self-training")


def trial(name: str, share: float, seed: int, n: int, method: str) -> dict[str, float]:
    """Return AUC over the forecasts behind the first tenth whose labels stay secret, and events a second."""
    X, y = stream(name, n, seed)
    shown = np.random.default_rng(seed).random(len(y)) < share
    if method in OURS:
        scores, seconds = run_ours(OURS[method](seed), X, y, shown)
    else:
        scores, seconds = run_river(rivers(seed)[method], X, y, shown)
    kept = ~shown
    kept[: len(y) // 10] = False
    return {"auc": roc_auc_score(y[kept], scores[kept]), "events_s": len(y) / seconds}


def report(cells: dict[tuple, list[dict[str, dict]]], methods: list[str]) -> str:
    """Return the table, and in how many cells the best of ours is best or within the interval of the best peer."""
    lines = [f"{'set':>14} {'labels':>6} " + " ".join(f"{m:>20}" for m in methods)]
    ties: dict[str, int] = {m: 0 for m in methods if m in OURS}
    peers = [m for m in methods if m not in OURS]
    for (name, share), trials in cells.items():
        mean = {m: np.mean([t[m]["auc"] for t in trials]) for m in methods}
        texts = []
        for m in methods:
            _, half = interval([t[m]["auc"] for t in trials])
            texts.append(f"{mean[m]:.3f}+-{half:.3f} {np.mean([t[m]['events_s'] for t in trials]):6.0f}/s")
        lines.append(f"{name:>14} {share:>6.0%} " + " ".join(f"{t:>20}" for t in texts))
        if peers:
            rival = max(peers, key=mean.get)
            for m in ties:
                d, half = interval([t[m]["auc"] - t[rival]["auc"] for t in trials])
                ties[m] += d >= 0 or abs(d) <= half
    if peers:
        lines += [
            f"{m}: best, or tied with the best peer within the 95 % interval, in {k} of {len(cells)} cells"
            for m, k in ties.items()
        ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--events", type=int, default=6000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--shares", nargs="+", type=float, default=[0.01, 0.03, 0.1])
    parser.add_argument("--methods", nargs="+", default=[*OURS, *PEERS])
    parser.add_argument("--again", nargs="+", default=[])
    options = parser.parse_args()
    if options.quick:
        options.events, options.seeds, options.shares = 2500, 2, [0.03]
        options.sets = options.sets[:3]
    cells = Cells("muffled_stream")
    cells.forget(lambda key: key[-1] in options.again)
    found: dict[tuple, list[dict[str, dict]]] = {}
    for name in options.sets:
        for share in options.shares:
            found[name, share] = trials = []
            for seed in range(options.seeds):
                trials.append({})
                for method in options.methods:
                    key = (name, share, seed, options.events, method)
                    trials[-1][method] = cells.get(key, partial(trial, name, share, seed, options.events, method))
            print(
                name,
                share,
                {m: round(float(np.mean([t[m]["auc"] for t in trials])), 3) for m in options.methods},
                flush=True,
            )
    text = report(found, options.methods)
    print(text)
    (OUT / "muffled_stream.txt").write_text(text + "\n")


if __name__ == "__main__":
    main()
