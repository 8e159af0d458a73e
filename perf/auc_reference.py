"""Prequential results of AUCRO and AdaptiveAUCRO beside River's learners, on real streams.

    python perf/auc_reference.py [--group held-out] [--quick] [--data FOLDER] [--sets NAME ...] [--forest-rows N]

The sets of the group "reference" were looked at when the constants of the learners were chosen (schedule, ridge, bank,
mixture); those of "held-out" were not. Three tables, printed and written to perf/out/auc_<group>.json:

1. whole streams (flights, covtype, kdd99: the first 100,000 events) beside ``StandardScaler | LogisticRegression``;
2. the first N events (20,000) beside River's Hoeffding adaptive tree and adaptive random forest as well;
3. whole streams with labels 8 and 48 events late.

Every learner has its defaults, sees raw values, and forecasts an event before it learns it. AUC is cumulative and the
mean over windows of 1000 events with both classes; Kappa-T compares with repeating the last label. Files are in their
own order, but w8a and w1a, sorted by class there, are shuffled (seed 0); letter is 13 letters (seed 0) against 13;
connect4 is a win against the rest; a1a goes on with its test part.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import time
from collections import deque
from pathlib import Path

import numpy as np
import polars as pl
from river import compose, forest, linear_model, preprocessing, tree
from sklearn.datasets import load_svmlight_file
from sklearn.metrics import roc_auc_score

from streamlearn import AUCRO, AdaptiveAUCRO

ROOT = Path(__file__).parent.parent
DATA = ROOT.parent / "shared" / "data"
OUT = ROOT / "perf" / "out"
WINDOW = 1000
BLOCK = 1000
MAX_ROWS = 100_000
QUICK_ROWS = 2000
DELAYS = (8, 48)
LIBSVM_WIDTH = {"a9a": 123, "w8a": 300, "phishing": 68, "connect4": 126, "w1a": 300, "a1a": 123}
CONTINUED = {"a1a": ("a1a", "a1a_test")}
POSITIVE = {"covtype": 2}
ONE_HOT = {
    "covtype": ("wilderness", "soil"),
    "flights_nyc13": ("carrier", "origin", "dest"),
    "nsl_kdd": ("protocol_type", "service", "flag"),
}
SHUFFLED = ("w8a", "w1a")
CUT = ("covtype", "flights_nyc13", "kdd99_10pct")
DROPPED = {"flights_nyc13": ("dep_delay", "arr_delay")}  # they tell the label
SETS = (
    "electricity", "noaa_weather", "covtype", "flights_nyc13", "a9a", "w8a", "kdd_http", "bank_campaign", "letter",
    "splice", "german_numer", "diabetes",
)  # fmt: skip
HELD_OUT = (
    "phishing", "nsl_kdd", "kdd99_10pct", "higgs_7500", "connect4", "creditcard_fraud_enriched", "fourclass", "w1a",
    "a1a",
)  # fmt: skip
GROUPS = {"reference": SETS, "held-out": HELD_OUT}
SMALL = {"reference": ("noaa_weather", "splice", "diabetes"), "held-out": ("phishing", "higgs_7500", "fourclass")}


# Data


def read(folder, name):
    """Return X float64[n, m] and y int8[n]."""
    if name in LIBSVM_WIDTH:
        X, y = sparse(folder, name)
    else:
        with gzip.open(folder / f"{name}.csv.gz") as file:
            frame = pl.read_csv(file.read())
        frame = frame.head(MAX_ROWS) if name in CUT else frame
        y = labels(name, frame["label"].to_numpy())
        X = features(frame.drop("label", *DROPPED.get(name, ())), ONE_HOT.get(name, ()))
    if name in SHUFFLED:
        order = np.random.default_rng(0).permutation(len(y))
        X, y = X[order], y[order]
    return np.ascontiguousarray(X, dtype=np.float64), y.astype(np.int8)


def sparse(folder, name):
    parts = []
    for part in CONTINUED.get(name, (name,)):
        with gzip.open(folder / f"{part}.libsvm.gz") as file:
            X, y = load_svmlight_file(file, n_features=LIBSVM_WIDTH[name])
        parts.append((X.toarray(), y > 0))
    return np.vstack([X for X, _ in parts]), np.concatenate([y for _, y in parts])


def labels(name, column):
    if name == "letter":
        return np.isin(column, np.random.default_rng(0).permutation(26)[:13] + 1)
    return column == POSITIVE[name] if name in POSITIVE else column > 0


def features(frame, one_hot):
    numbers = frame.drop(*one_hot).to_numpy().astype(np.float64)
    bits = [frame[c].to_numpy()[:, None] == np.array(sorted(set(frame[c])))[None] for c in one_hot]
    return np.hstack([numbers, *bits])


# Runs: each returns P(1) and ranking scores, made before the event's label was known, and seconds


def run_ours(model, X, y, delay):
    names = tuple(range(X.shape[1]))
    step = min(BLOCK, delay) if delay else BLOCK
    parts, memo = [], None
    start = time.perf_counter()
    if delay:
        tested, memo = model.forecast_columns(names, X[:delay])
        parts.append(tested)
    for i in range(delay, len(X), step):
        block = X[i : i + step]
        if not delay:
            parts.append(model.test_then_learn_columns(names, block, y[i : i + step]))
            continue
        late = slice(i - delay, i - delay + len(block))
        tested, memo = model.test_then_learn_late(names, block, X[late], y[late], memo[: len(block)])
        parts.append(tested)
    seconds = time.perf_counter() - start
    return np.concatenate([p.probabilities for p in parts]), np.concatenate([p.scores for p in parts]), seconds


def run_river(model, X, y, delay):
    events = [dict(enumerate(row)) for row in X.tolist()]
    truth, waiting = y.astype(bool).tolist(), deque()
    p = np.empty(len(X))
    start = time.perf_counter()
    for t, x in enumerate(events):
        p[t] = model.predict_proba_one(x).get(True, 0.5 if t <= delay else 0.0)
        waiting.append((x, truth[t]))
        if len(waiting) > delay:
            model.learn_one(*waiting.popleft())
    return p, p, time.perf_counter() - start


def logistic():
    return compose.Pipeline(preprocessing.StandardScaler(), linear_model.LogisticRegression())


OURS = {"AUCRO": AUCRO, "AdaptiveAUCRO": AdaptiveAUCRO}
LINEAR = {"River LR": logistic}
FORESTS = {
    "River HAT": lambda: tree.HoeffdingAdaptiveTreeClassifier(seed=0),
    "River ARF": lambda: forest.ARFClassifier(seed=0),
}


def measure(name, title, make, X, y, delay=0):
    runner = run_ours if title in OURS else run_river
    p, scores, seconds = runner(make(), X, y, delay)
    return {
        "set": name, "learner": title, "rows": len(y), "delay": delay,
        "auc": roc_auc_score(y, scores), "auc_window": windowed(y, scores),
        "log_loss": float(-np.log(np.clip(np.where(y == 1, p, 1 - p), 1e-15, 1)).mean()),
        "kappa_t": kappa_t(y, p), "events_per_s": len(y) / seconds,
    }  # fmt: skip


def windowed(y, scores):
    cuts = [slice(i, i + WINDOW) for i in range(0, len(y), WINDOW)]
    both = [c for c in cuts if 0 < y[c].sum() < len(y[c])]
    return float(np.mean([roc_auc_score(y[c], scores[c]) for c in both])) if both else float("nan")


def kappa_t(y, p):
    right, same = np.mean((p >= 0.5) == y), np.mean(y[1:] == y[:-1])
    return float((right - same) / (1 - same))


def show(row):
    cells = [row["set"][:14].ljust(14), row["learner"].ljust(14), f"{row['delay']:3d}", f"{row['rows']:7d}"]
    cells += [f"{row[k]:8.4f}" for k in ("auc", "auc_window", "log_loss", "kappa_t")]
    print("  ".join([*cells, f"{row['events_per_s']:10,.0f}/s"]), flush=True)


def warm_up():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    for make in OURS.values():
        run_ours(make(), X, (X[:, 0] > 0).astype(np.int8), 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--group", choices=sorted(GROUPS), default="reference")
    parser.add_argument("--quick", action="store_true", help=f"the first {QUICK_ROWS} rows of three small sets")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--sets", nargs="*", default=None)
    parser.add_argument("--forest-rows", type=int, default=20_000)
    args = parser.parse_args()
    if not args.data.is_dir():
        print(f"skipped: {args.data} is not there; --data names the folder of data sets")
        return
    names = args.sets or (SMALL if args.quick else GROUPS)[args.group]
    warm_up()
    rows = []
    print("set             learner         late    rows       AUC  window      loss    Kappa-T        speed")
    for name in names:
        X, y = read(args.data, name)
        X, y = (X[:QUICK_ROWS], y[:QUICK_ROWS]) if args.quick else (X, y)
        few = min(len(y), QUICK_ROWS if args.quick else args.forest_rows)
        jobs = [(t, m, len(y), d) for d in (0, *DELAYS) for t, m in (OURS | LINEAR).items()]
        jobs += [(t, m, few, 0) for t, m in ((OURS | LINEAR) if few < len(y) else {}).items()]
        jobs += [(t, m, few, 0) for t, m in FORESTS.items()]
        for title, make, n, delay in jobs:
            if 0 < y[:n].sum() < n:
                rows.append(measure(name, title, make, X[:n], y[:n], delay))
                show(rows[-1])
    print("\nmean AUC over the sets, whole streams")
    for delay in (0, *DELAYS):
        for title in OURS | LINEAR:
            areas = {}
            for row in rows:
                if row["learner"] == title and row["delay"] == delay:
                    areas.setdefault(row["set"], row["auc"])
            if areas:
                print(f"{title:14s} late {delay:2d}  {np.mean(list(areas.values())):.4f}")
    OUT.mkdir(exist_ok=True)
    (OUT / f"auc_{args.group}.json").write_text(json.dumps({"command": sys.argv, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
