"""Prequential AUC with few labels: HedgeMower and Marvin beside River's learners and self-training.

    python perf/muffled_stream.py [--events N] [--sets NAME ...] [--shares 0.01 0.03 0.1] [--seeds N] [--quick]
                                  [--methods NAME ...] [--again NAME ...] [--report]

Finished cells are kept in perf/out/ and not done again: an interrupted run goes on where it was, seed after seed,
several may run side by side with different --methods, --again forgets those of methods that have changed, and --report
makes the table of what there is.

An event's label is shown with the given probability, after its forecast. AUC is over all forecasts but those of the
first tenth, with the labels that were kept secret; events a second are of the processor's time. `drift_*` turns
features gradually into each other over the middle half of a real set. Self-training is the same logistic regression as
LR that also learns its own forecasts where they are 95 % or 80 % sure. A seed chooses the labels that are shown, the
model's own random numbers and the order of `drift_*`; the other sets come in their own order.
"""

from __future__ import annotations

import argparse
import time
from functools import cache, partial
from itertools import product

import numpy as np
from cells import OUT, Cells
from muffled_data import interval, load
from river import forest, linear_model, preprocessing, tree
from river.ensemble import SRPClassifier
from sklearn.metrics import roc_auc_score

from streamlearn import HedgeMower1, Marvin

SETS = ("electricity", "covtype", "noaa_weather", "a9a", "drift_letter", "drift_covtype")
SELF_TRAINING = {"self-training 95%": 0.95, "self-training 80%": 0.8}


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

    def __init__(self, sure: float) -> None:
        self.sure = sure
        self.model = preprocessing.StandardScaler() | linear_model.LogisticRegression()

    def predict_proba_one(self, x):
        return self.model.predict_proba_one(x)

    def learn_one(self, x, y=None):
        if y is None:
            p = self.model.predict_proba_one(x).get(True, 0.5)
            if max(p, 1 - p) < self.sure:
                return
            y = p > 0.5
        self.model.learn_one(x, y)


def rivers(seed: int) -> dict:
    return {
        "ARF": forest.ARFClassifier(n_models=10, seed=seed),
        "SRP": SRPClassifier(n_models=10, seed=seed),
        "HAT": tree.HoeffdingAdaptiveTreeClassifier(seed=seed),
        "LR": preprocessing.StandardScaler() | linear_model.LogisticRegression(),
        **{name: SelfTraining(sure) for name, sure in SELF_TRAINING.items()},
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
PEERS = tuple(rivers(0))


def run(method: str, seed: int, X, y, shown) -> tuple[np.ndarray, float]:
    """Return scores and seconds of one method."""
    if method in OURS:
        return run_ours(OURS[method](seed), X, y, shown)
    return run_river(rivers(seed)[method], X, y, shown)


@cache
def warm(method: str) -> None:
    """Load or compile what a method needs, once, so that no trial is timed with it."""
    X, y = stream("electricity", 400, 0)
    run(method, 0, X, y, np.arange(400) % 8 == 0)


def trial(name: str, share: float, seed: int, n: int, method: str) -> dict[str, float]:
    """Return AUC over the forecasts behind the first tenth whose labels stay secret, and events a second."""
    warm(method)
    X, y = stream(name, n, seed)
    shown = np.random.default_rng(seed).random(len(y)) < share
    scores, seconds = run(method, seed, X, y, shown)
    kept = ~shown
    kept[: len(y) // 10] = False
    return {"auc": roc_auc_score(y[kept], scores[kept]), "events_s": len(y) / seconds}


Results = dict[tuple[str, float], list[dict[str, dict]]]


def whole_trials(cells: Cells, options: argparse.Namespace) -> Results:
    """Return by set and share of labels the trials of which every method is there."""
    found: Results = {}
    for name, share in product(options.sets, options.shares):
        keys = [(name, share, seed, options.events) for seed in range(options.seeds)]
        if whole := cells.whole(keys, options.methods):
            found[name, share] = whole
    return found


def summary(results: Results, ours: str, peers: list[str]) -> str:
    """Return in how many cells one of ours is best or tied with the peer that is best there in hindsight."""
    ahead = behind = level = 0
    for trials in results.values():
        rival = max(peers, key=lambda m: np.mean([t[m]["auc"] for t in trials]))
        d, half = interval([t[ours]["auc"] - t[rival]["auc"] for t in trials])
        ahead, behind = ahead + (d > half), behind + (d < -half)
        level += d >= 0.0
    n = len(results)
    return (
        f"{ours}, beside the best peer of each cell in hindsight: mean AUC not below it in {level} of {n}; paired 95 % "
        f"interval above it in {ahead}, below it in {behind}; best or tied in {n - behind} ({(n - behind) / n:.0%})"
    )


def beside_each(results: Results, ours: str, peers: list[str]) -> str:
    """Return the mean difference of one of ours from each peer, the same one in all cells."""
    texts = []
    for peer in peers:
        means = [np.mean([t[ours]["auc"] - t[peer]["auc"] for t in trials]) for trials in results.values()]
        d, half = interval(means)
        texts.append(f"{peer} {d:+.3f}+-{half:.3f} ({sum(v > 0 for v in means)})")
    return f"{ours} minus each peer, mean over cells (cells above 0 of {len(results)}): " + ", ".join(texts)


def report(results: Results, methods: list[str], n_events: int) -> str:
    """Return the table of AUC and speed, and how ours stand beside the best peer."""
    lines = [
        f"prequential AUC +- 95 % interval over seeds, then events a second; first {n_events} events of each stream",
        f"{'set':>14} {'labels':>6} {'seeds':>5} " + " ".join(f"{m:>20}" for m in methods),
    ]
    for (name, share), trials in results.items():
        texts = []
        for m in methods:
            mean, half = interval([t[m]["auc"] for t in trials])
            texts.append(f"{mean:.3f}+-{half:.3f} {np.mean([t[m]['events_s'] for t in trials]):6.0f}/s")
        lines.append(f"{name:>14} {share:>6.0%} {len(trials):>5} " + " ".join(f"{t:>20}" for t in texts))
    if peers := [m for m in methods if m not in OURS]:
        lines += [summary(results, m, peers) for m in methods if m in OURS]
        lines += [beside_each(results, m, peers) for m in methods if m in OURS]
    return "\n".join(lines)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--events", type=int, default=6000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--shares", nargs="+", type=float, default=[0.01, 0.03, 0.1])
    parser.add_argument("--methods", nargs="+", default=[*OURS, *PEERS], choices=[*OURS, *PEERS])
    parser.add_argument("--again", nargs="+", default=[])
    parser.add_argument("--report", action="store_true")
    options = parser.parse_args()
    if options.quick:
        options.events, options.seeds, options.shares = 1500, 2, [0.03]
        options.sets = options.sets[:3]
    return options


def main() -> None:
    options = parsed()
    cells = Cells("muffled_stream")
    cells.forget(lambda key: key[-1] in options.again)
    for seed, name, share in product(range(0 if options.report else options.seeds), options.sets, options.shares):
        for method in options.methods:
            key = (name, share, seed, options.events, method)
            cells.get(key, partial(trial, name, share, seed, options.events, method))
        print(f"{name} {share:.0%}, seed {seed}", flush=True)
    text = report(whole_trials(cells, options), options.methods, options.events)
    print(text)
    (OUT / "muffled_stream.txt").write_text(text + "\n")


if __name__ == "__main__":
    main()
