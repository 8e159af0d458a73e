"""Prequential AUC with few labels: HedgeMower and Marvin beside River's learners and self-training.

    python perf/muffled_stream.py [--events N] [--sets NAME ...] [--shares 0.01 0.03 0.1] [--seeds N] [--quick]

An event's label is shown with the given probability, after its forecast. AUC is over all forecasts but those of the
first tenth, with the labels that were kept secret. `drift_*` turns features gradually into each other over the middle
half of a real set. Self-training is an online logistic regression that also learns its own sure forecasts.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
from muffled_data import interval, load
from river import forest, linear_model, preprocessing, tree
from river.ensemble import SRPClassifier
from sklearn.metrics import roc_auc_score

from streamlearn import HedgeMower1, Marvin

OUT = Path(__file__).parent / "out"
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


def trial(name: str, share: float, seed: int, n: int, river: bool) -> dict[str, dict[str, float]]:
    X, y = stream(name, n, seed)
    shown = np.random.default_rng(seed).random(len(y)) < share
    kept = slice(len(y) // 10, None)
    found = {}
    ours = {
        "HedgeMower1": HedgeMower1(seed=seed),
        "Marvin": Marvin(seed=seed, n_stages=3),
    }
    others = rivers(seed) if river else {}
    for method, model in {**ours, **others}.items():
        run = run_ours if method in ours else run_river
        scores, seconds = run(model, X, y, shown)
        hidden = ~shown[kept]
        found[method] = {"auc": roc_auc_score(y[kept][hidden], scores[kept][hidden]), "events_s": len(y) / seconds}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--events", type=int, default=6000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--shares", nargs="+", type=float, default=[0.01, 0.03, 0.1])
    parser.add_argument("--without-river", action="store_true")
    options = parser.parse_args()
    if options.quick:
        options.events, options.seeds, options.shares = 2500, 2, [0.03]
        options.sets = options.sets[:3]
    OUT.mkdir(exist_ok=True)
    rows, best_or_tied, cells = [], 0, 0
    for name in options.sets:
        for share in options.shares:
            trials = [trial(name, share, s, options.events, not options.without_river) for s in range(options.seeds)]
            methods = list(trials[0])
            mean = {m: np.mean([t[m]["auc"] for t in trials]) for m in methods}
            speed = {m: np.mean([t[m]["events_s"] for t in trials]) for m in methods}
            print(
                f"{name} {share:.0%} " + " ".join(f"{m}={mean[m]:.3f}({speed[m]:.0f}/s)" for m in methods), flush=True
            )
            others = methods[2:]
            if others:
                rival = max(others, key=mean.get)
                d, half = interval([t["HedgeMower1"]["auc"] - t[rival]["auc"] for t in trials])
                cells += 1
                best_or_tied += d >= 0 or abs(d) <= half
            rows.append({"set": name, "share": share, "trials": trials})
            (OUT / "muffled_stream.json").write_text(json.dumps(rows))
    print(f"HedgeMower1 best or tied within the 95 % interval in {best_or_tied} of {cells} cells")


if __name__ == "__main__":
    main()
