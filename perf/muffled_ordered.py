"""Streams in their own order with 1.5 % of labels: what members learned on unlabelled events and ranks add.

    python perf/muffled_ordered.py [--events N] [--seeds N] [--share 0.015] [--sets NAME ...] [--methods NAME ...]
                                   [--report] [--quick]

`pool`: the six supervised members alone. `default`: HedgeMower1 as it comes, with four members learned on unlabelled
events. `ranks`: the pool under drift=True, whose rank members learn from the ranks that events had when they came.
`drift`: both. `drift, memories`: the same with AUCRO of half-lives of 10 and 30 labels and with AdaptiveAUCRO as
members of one's own. `RF`: a random forest of 100 trees, fitted anew whenever HedgeMower1 is.

Events are spread evenly over the whole file, so that what drifts in it does so here. A label is shown with the given
probability, after its forecast; AUC is over all forecasts but those of the first tenth, with the labels that were
kept secret. A seed chooses the labels that are shown and the model's random numbers. Finished cells are kept in
perf/out/ and not done again; --report makes the table of what there is.
"""

from __future__ import annotations

import argparse
from functools import partial
from itertools import product

import numpy as np
import pandas as pd
from cells import OUT, Cells
from muffled_data import DATA, coded, interval, load
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score

from streamlearn import AUCRO, AdaptiveAUCRO, HedgeMower1

SETS = ("electricity", "noaa_weather", "covtype", "spam_stream", "flights_nyc13", "nsl_kdd", "kdd99_10pct")
MEMBERS = ("forest", "leafy", "extra", "boosted", "logistic", "bayes")
BUFFER, FIRST, SHARE = 1000, 2, 0.1  # of HedgeMower1: labelled_buffer, refit_every, refit_share


def memories() -> list[AUCRO | AdaptiveAUCRO]:
    """Return learners that forget, trained at each refit on the labelled events in their order."""
    return [AUCRO(half_life=10.0), AUCRO(half_life=30.0), AdaptiveAUCRO()]


OURS = {
    "pool": lambda seed: HedgeMower1(unlabelled_members="off", seed=seed),
    "default": lambda seed: HedgeMower1(seed=seed),
    "ranks": lambda seed: HedgeMower1(unlabelled_members="off", drift=True, seed=seed),
    "drift": lambda seed: HedgeMower1(drift=True, seed=seed),
    "drift, memories": lambda seed: HedgeMower1(drift=True, members=[*MEMBERS, *memories()], seed=seed),
}
METHODS = ("RF", *OURS)


def stream(name: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return n events spread evenly over a set in its order, and labels 0 and 1."""
    if name in ("flights_nyc13", "nsl_kdd", "kdd99_10pct"):
        frame = pd.read_csv(DATA / f"{name}.csv.gz")
        y = (frame.pop("label") == 1).to_numpy()
        X = coded(frame)
    else:
        X, y = load(name)
    rows = np.linspace(0, len(y) - 1, min(n, len(y))).round().astype(int)
    return np.ascontiguousarray(X[rows]), (y[rows] > 0).astype(int)


def run_forest(X: np.ndarray, y: np.ndarray, shown: np.ndarray, seed: int) -> np.ndarray:
    """Return the scores of a forest that is fitted anew on HedgeMower1's schedule."""
    scores = np.full(len(y), 0.5)
    model, waiting, start = None, 0, 0
    for i in np.flatnonzero(shown):
        waiting += 1
        seen = np.flatnonzero(shown[: i + 1])[-BUFFER:]
        if waiting < max(FIRST, SHARE * len(seen)) or len(np.unique(y[seen])) < 2:
            continue
        if model is not None:
            scores[start : i + 1] = model.predict_proba(X[start : i + 1])[:, 1]
        model, waiting, start = RandomForestClassifier(100, random_state=seed).fit(X[seen], y[seen]), 0, i + 1
    if model is not None:
        scores[start:] = model.predict_proba(X[start:])[:, 1]
    return scores


def trial(name: str, share: float, seed: int, n: int, method: str) -> dict[str, float]:
    """Return the AUC over the forecasts behind the first tenth whose labels stay secret."""
    X, y = stream(name, n)
    shown = np.random.default_rng(seed).random(len(y)) < share
    if method == "RF":
        scores = run_forest(X, y, shown, seed)
    else:
        labels, model = np.where(shown, y, np.nan), OURS[method](seed)
        parts = [model.test_then_learn_many(X[a : a + 500], labels[a : a + 500]) for a in range(0, len(y), 500)]
        scores = np.concatenate(parts)
    kept = ~shown
    kept[: len(y) // 10] = False
    return {"auc": roc_auc_score(y[kept], scores[kept])}


Results = dict[str, list[dict[str, dict]]]
PAIRS = (
    ("default", "pool"),
    ("ranks", "pool"),
    ("drift", "pool"),
    ("drift", "default"),
    ("drift, memories", "drift"),
    ("pool", "RF"),
    ("default", "RF"),
    ("drift", "RF"),
)


def report(results: Results, methods: list[str], share: float, n: int) -> str:
    """Return AUC by set, and paired differences over sets."""
    lines = [
        f"prequential AUC +- 95 % interval over seeds; {share:.1%} of labels, up to {n} events spread over each stream",
        f"{'set':>14} {'seeds':>5} " + " ".join(f"{m:>15}" for m in methods),
    ]
    for name, trials in results.items():
        cells = [interval([t[m]["auc"] for t in trials]) for m in methods]
        lines.append(f"{name:>14} {len(trials):>5} " + " ".join(f"{m:>8.3f}+-{half:.3f}" for m, half in cells))
    lines += ["", "differences paired by seed +- 95 %, * where it does not hold 0"]
    pairs = [pair for pair in PAIRS if set(pair) <= set(methods)]
    lines.append(f"{'set':>14} " + " ".join(f"{f'{a} - {b}':>24}" for a, b in pairs))
    found = {
        name: [interval([t[a]["auc"] - t[b]["auc"] for t in trials]) for a, b in pairs]
        for name, trials in results.items()
    }
    for name, row in found.items():
        lines.append(
            f"{name:>14} " + " ".join(f"{f'{d:+.4f}+-{h:.4f}' + ('*' if abs(d) > h else ' '):>24}" for d, h in row)
        )
    for k, (a, b) in enumerate(pairs):
        column = [row[k] for row in found.values()]
        mean, half = interval([d for d, _ in column])
        wins, losses = sum(d > h for d, h in column), sum(d < -h for d, h in column)
        lines.append(f"{a} - {b}: {mean:+.4f}+-{half:.4f} over sets ({wins} wins, {losses} losses of {len(column)})")
    return "\n".join(lines)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=6000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--share", type=float, default=0.015)
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--report", action="store_true")
    options = parser.parse_args()
    if options.quick:
        options.events, options.seeds, options.share, options.sets = 1500, min(options.seeds, 2), 0.04, options.sets[:2]
    return options


def main() -> None:
    options = parsed()
    cells = Cells("muffled_ordered")
    for seed, name in product(range(0 if options.report else options.seeds), options.sets):
        for method in options.methods:
            key = (name, options.share, seed, options.events, method)
            cells.get(key, partial(trial, name, options.share, seed, options.events, method))
        print(f"{name}, seed {seed}", flush=True)
    results: Results = {}
    for name in options.sets:
        keys = [(name, options.share, seed, options.events) for seed in range(options.seeds)]
        if whole := cells.whole(keys, options.methods):
            results[name] = whole
    text = report(results, options.methods, options.share, options.events)
    print(text)
    (OUT / "muffled_ordered.txt").write_text(text + "\n")


if __name__ == "__main__":
    main()
