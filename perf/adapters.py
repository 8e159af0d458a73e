"""What the River estimators cost over the bare learners, and River's progressive validation of ours beside River's own.

    python perf/adapters.py [--quick] [--data FOLDER] [--sets NAME ...] [--turns N] [--rows N] [--only TABLE]
                            [--resume] [--budget-s S] [--no-slow]

Three tables, printed and written to perf/out/adapters.json. Times are the processor's, so that other work on the
machine counts little; within a turn the models take turns. Every measurement is kept in perf/out/adapters.jsonl as soon
as it is made; with --resume those are not made again, and with --budget-s none is begun later than that.

1. overhead: microseconds a call of the estimator more than the same call of an equal bare learner, at 20 features:
   the median over the turns and their spread.
2. whole: `river.evaluate.progressive_val_score` over whole files, raw values in the files' own order: the exact AUC,
   and events a second. Linear models of River stand behind its StandardScaler, without which they are lost on raw
   values; every model has its defaults. The models that take minutes for one file are marked * and measured once.
3. first: the same over the first --rows events of each file.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

import numpy as np
from auc_reference import DATA, read
from river import evaluate, forest, linear_model, preprocessing, tree
from streamlearn.adapters import river as ours

from streamlearn.learners.registry import MODULES

OUT = Path(__file__).parent / "out"
BUNDLED = Path(__file__).parent.parent / "demos" / "data"
SETS = ("electricity", "phishing", "noaa_weather", "a9a")
QUICK_ROWS = 500
WIDTH = 20
LEARNED, CALLS = 500, 2000
QUICK_LEARNED, QUICK_CALLS = 60, 400
CHUNK = 50
LIMIT_US = 1.5


def scaled(model):
    return preprocessing.StandardScaler() | model


OURS = {name: getattr(ours, name) for name in ("AUCRO", "AdaptiveAUCRO", "OPAUC", "FSAUC", "OAMgd", "OAMseq")}
OURS |= {name: getattr(ours, name) for name in ("LogisticReject", "HingeReject")}
SLOW_OURS = {"HedgeMower1 *": ours.HedgeMower1}
LINEAR = {
    "River LogisticRegression": lambda: scaled(linear_model.LogisticRegression()),
    "River PAClassifier": lambda: scaled(linear_model.PAClassifier()),
    "River ALMAClassifier": lambda: scaled(linear_model.ALMAClassifier()),
}
TREES = {
    "River HoeffdingTree": tree.HoeffdingTreeClassifier,
    "River HoeffdingAdaptiveTree": lambda: tree.HoeffdingAdaptiveTreeClassifier(seed=0),
}
SLOW_TREES = {"River ARFClassifier *": lambda: forest.ARFClassifier(seed=0)}
BASELINE = "River LogisticRegression"
QUICK = OURS | LINEAR | TREES
SLOW = SLOW_OURS | SLOW_TREES


# Overhead


def stream(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, WIDTH))
    y = X[:, 0] - X[:, 1] + rng.normal(size=n) > 0
    return [dict(zip((f"f{j}" for j in range(WIDTH)), row, strict=True)) for row in X.tolist()], y.tolist()


def learned(name, n_learned):
    model = getattr(ours, name)()
    for x, y in zip(*stream(n_learned, 0), strict=True):
        learn(model, x, y)
    if "refit_every" in model._mutable_attributes:
        model.mutate({"refit_every": 10**9})  # a refit takes as long as a million calls, with the adapter or without
    return model


def learn(model, x, y):
    if model._supervised:
        model.learn_one(x, y)
    else:
        model.learn_one(x)


def overhead(name, turns, n_learned, n_calls):
    """Return {verb: (microseconds more a call, microseconds of the bare call), one for each turn}.

    Two equal learners take turns every few calls, as to which of them is called through the estimator, and which comes
    first: where its arrays happen to lie makes more of a difference than the adapter. The median over the rounds of
    these four counts: the batches that some learners estimate now and then fall out, and so does other work.
    """
    estimators = [learned(name, n_learned) for _ in range(2)]
    X, y = stream(n_calls, 1)
    arguments = {"learn_one": list(zip(X, y, strict=True)) if estimators[0]._supervised else [(x,) for x in X]}
    for verb in ("predict_one", "predict_proba_one", "transform_one"):
        if hasattr(estimators[0], verb):
            arguments[verb] = [(x,) for x in X]
    found = {verb: [] for verb in arguments}
    for turn in range(turns + 1):
        for verb, calls in arguments.items():
            chunks = [one_chunk(verb, estimators[:: 1 - 2 * (k % 2)], calls, k) for k in range(n_calls // CHUNK)]
            more, bare = np.array(chunks).reshape(-1, 4, 2).mean(axis=1).T / CHUNK * 1e6
            if turn:  # the first one warms up
                found[verb].append((float(np.median(more)), float(np.median(bare))))
    return found


def one_chunk(verb, estimators, calls, k):
    """Return the seconds that the first estimator takes more than the second one's learner, and those of the latter."""
    calls = calls[k * CHUNK : (k + 1) * CHUNK]
    for x, *_ in calls:  # whoever comes first would fetch the events into the cache for the other
        list(x.values())
    estimator, learner = estimators[0], estimators[1].learner
    timed = [
        lambda: seconds(getattr(estimator, verb), calls),
        lambda: seconds(getattr(learner, verb if hasattr(learner, verb) else "error_one"), calls),
    ]
    if k % 4 < 2:
        through, bare = (run() for run in timed)
    else:
        bare, through = (run() for run in reversed(timed))
    return through - bare, bare


def seconds(call, arguments):
    start = time.thread_time()
    for these in arguments:
        call(*these)
    return time.thread_time() - start


def overhead_table(turns, n_learned, n_calls):
    print(f"at {WIDTH} features, us a call: bare, more through River: median (least to most of {turns} turns)")
    rows = []
    for name in sorted(MODULES):
        for verb, pairs in overhead(name, turns, n_learned, n_calls).items():
            figures = [more for more, _ in pairs]
            bare = statistics.median(bare for _, bare in pairs)
            median = statistics.median(figures)
            spread = f"({min(figures):.2f} to {max(figures):.2f})"
            verdict = "yes" if median <= LIMIT_US else "NO"
            print(f"  {name:16s} {verb:18s} {bare:8.2f} {median:6.2f}  {spread:18s} {verdict}", flush=True)
            rows.append({"learner": name, "verb": verb, "us": figures, "bare_us": bare})
    return rows


# Progressive validation


def progressive(make, events):
    """Return the exact AUC, and the processor's seconds."""
    model, metric = make(), ours.RejectAUC(d=0.5)
    start = time.process_time()
    evaluate.progressive_val_score(events, model, metric)
    return metric.get(), time.process_time() - start


class Kept:
    """The measurements made so far, one JSON line each, so that a long table can be made in several sittings."""

    def __init__(self, path, *, resume, budget_s):
        self.path, self.until = path, time.monotonic() + budget_s
        path.parent.mkdir(parents=True, exist_ok=True)
        if not resume:
            path.unlink(missing_ok=True)
        self.rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def of(self, table, name, title):
        """Return the measurements of one model on one set, in order of the turns."""
        return [row for row in self.rows if [row["table"], row["set"], row["learner"]] == [table, name, title]]

    def measure(self, table, name, title, events, make):
        """Make one measurement and keep it, unless the time is over."""
        if time.monotonic() > self.until:
            return
        auc, spent = progressive(make, events)
        row = {"table": table, "set": name, "learner": title, "rows": len(events), "auc": auc, "seconds": spent}
        self.rows.append(row)
        with self.path.open("a") as file:
            file.write(json.dumps(row) + "\n")


def progressive_table(table, folder, names, models, limit, turns, kept):
    print(
        "progressive_val_score: AUC, events/s: median (least to most of the turns), ratio to River LogisticRegression"
    )
    rows = []
    for name in names:
        X, y = read(folder, name)
        events = list(zip(map(named, X[:limit].tolist()), y[:limit].astype(bool).tolist(), strict=True))
        for turn in range(turns):
            for title, make in models.items():
                if len(kept.of(table, name, title)) <= turn and (turn == 0 or title not in SLOW):
                    kept.measure(table, name, title, events, make)
        print(f"  {name}, {len(events):,} events of {X.shape[1]} features")
        rows += show_all(table, name, models, kept)
    return rows


def show_all(table, name, models, kept):
    """Print one set, the best first, and return its rows."""
    rows = []
    for title in models:
        made = kept.of(table, name, title)
        if made:
            rows.append({**made[0], "seconds": [row["seconds"] for row in made]})
        else:
            print(f"    {title:28s} not measured: the time was over; go on with --resume")
    baseline = [statistics.median(row["seconds"]) for row in rows if row["learner"] == BASELINE]
    for row in sorted(rows, key=lambda row: -row["auc"]):
        show(row, baseline[0] if baseline else float("nan"))
    return rows


def named(row):
    return {f"f{j}": value for j, value in enumerate(row)}


def show(row, baseline):
    speeds = sorted(row["rows"] / spent for spent in row["seconds"])
    ratio = baseline / statistics.median(row["seconds"])
    spread = f"({speeds[0]:,.0f} to {speeds[-1]:,.0f})"
    median = statistics.median(speeds)
    print(f"    {row['learner']:28s} {row['auc']:.4f} {median:10,.0f}  {spread:20s} {ratio:7.2f}", flush=True)


def warm_up():
    X, y = stream(60, 2)
    for make in (OURS | SLOW_OURS).values():
        evaluate.progressive_val_score(list(zip(X, y, strict=True)), make(), ours.RejectAUC())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"the first {QUICK_ROWS} events of what is bundled")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--sets", nargs="+", default=None)
    parser.add_argument("--turns", type=int, default=None)
    parser.add_argument("--rows", type=int, default=5000, help="of the third table")
    parser.add_argument("--only", choices=("overhead", "whole", "first"), default=None)
    parser.add_argument("--resume", action="store_true", help="keep what was measured before, and measure the rest")
    parser.add_argument("--budget-s", type=float, default=float("inf"), help="begin no measurement later than this")
    parser.add_argument("--no-slow", action="store_true", help="without the models marked *")
    parser.add_argument("--out", type=Path, default=OUT)
    args = parser.parse_args()
    turns = args.turns or (1 if args.quick else 3)
    wanted = {args.only} if args.only else {"overhead", "first"} | (set() if args.quick else {"whole"})
    document = {"command": sys.argv}
    if "overhead" in wanted:
        sizes = (1, QUICK_LEARNED, QUICK_CALLS) if args.quick else (3 * turns, LEARNED, CALLS)
        document["overhead"] = overhead_table(*sizes)
    folder = BUNDLED if args.quick else args.data
    names = args.sets or (("noaa_weather",) if args.quick else SETS)
    if not folder.is_dir():
        print(f"skipped: {folder} is not there; --data names the folder of data sets")
        wanted &= {"overhead"}
    if wanted & {"first", "whole"}:
        warm_up()
    kept = Kept(args.out / "adapters.jsonl", resume=args.resume, budget_s=args.budget_s)
    limits = {"first": QUICK_ROWS if args.quick else args.rows, "whole": None}
    models = QUICK if args.no_slow else QUICK | SLOW
    for table in ("first", "whole"):
        if table in wanted:
            document[table] = progressive_table(table, folder, names, models, limits[table], turns, kept)
    (args.out / "adapters.json").write_text(json.dumps(document, indent=1))


if __name__ == "__main__":
    main()
