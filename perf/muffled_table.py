"""The paper's protocol: fresh labelled subsamples, AUC by scores, 95 % intervals, every algorithm in both forms.

    python perf/muffled_table.py            full: 20 trials (hours)
    python perf/muffled_table.py --quick    three sets, two trials (minutes)

Finished cells (set, labels, trial, method) are kept in perf/out/ and not done again: an interrupted run goes on where
it was, parts can be made one after the other (--sets, --labels, --methods, --trials), and --again forgets the cells of
methods that have changed. --report makes the table and the picture of what there is. Sets with published splits are
measured on those.
"""

from __future__ import annotations

import argparse
import time
import warnings
from functools import cache
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from muffled_cells import OUT, Cells
from muffled_data import interval, load, splits, trial
from sklearn.ensemble import AdaBoostClassifier, GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from streamlearn import HedgeMower, HedgeMower1, Marvin, MarvinC, MarvinD

SETS = (
    "a1a",
    "a9a",
    "w8a",
    "covtype",
    "connect4",
    "letter",
    "splice",
    "electricity",
    "ssl_secstr",
    "ssl_text",
    "phishing",
)
LABELS = (50, 200, 1000)
OURS = (HedgeMower1, HedgeMower, Marvin, MarvinC, MarvinD)
mpl.use("Agg")
REFERENCE = "RF"
MOST_TRIALS = 100


def baselines(seed: int) -> dict:
    return {
        "RF": RandomForestClassifier(100, random_state=seed),
        "AdaBoost": AdaBoostClassifier(n_estimators=100, random_state=seed),
        "LogitBoost": GradientBoostingClassifier(n_estimators=100, max_depth=3, random_state=seed),
        "LR": make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)),
    }


def names() -> list[str]:
    """Return the methods: baselines, the columns' plain mean and stacking, ours in both forms."""
    ours = [cls.__name__ for cls in OURS]
    return [*baselines(0), "mean", "stacking", *ours, *(f"{name} (paper)" for name in ours)]


@cache
def rows_of(name: str, n_labels: int, seed: int):
    """Return the rows of one trial, the last ones kept: methods of a trial come one after the other."""
    return trial(name, n_labels, seed)


def run_cell(name: str, n_labels: int, seed: int, method: str, rounds: int) -> dict[str, float]:
    """Return AUC by score, AUC by hard label and seconds of one method on one trial."""
    L, y, U, test, y_test = rows_of(name, n_labels, seed)
    start = time.perf_counter()
    if method in baselines(seed):
        model = baselines(seed)[method]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(L, y)
        score, hard = model.predict_proba(test)[:, 1], model.predict(test)
    else:
        X = np.vstack([L, U])
        labels = np.concatenate([y, np.full(len(U), np.nan)])
        if method in ("mean", "stacking"):
            model = HedgeMower1(seed=seed).fit(X, labels)
            F = model.votes_many(test)
            score = F.mean(axis=1)
            if method == "stacking":
                # The refit's own sample: the same members with the same held-out votes.
                H = model._pool(model._sample()).H
                score = F @ LogisticRegression(C=1.0).fit(H, y).coef_[0]
        else:
            short, _, form = method.partition(" ")
            cls = next(cls for cls in OURS if cls.__name__ == short)
            options = {"n_rounds": rounds} if issubclass(cls, Marvin) and form else {}
            model = cls(estimator="paper" if form else "rectified", seed=seed, **options).fit(X, labels)
            score = model.score_many(test)
        hard = np.sign(score)
    seconds = time.perf_counter() - start
    return {"auc": roc_auc_score(y_test, score), "hard": roc_auc_score(y_test, hard), "s": seconds}


def wanted(sets, labels, quick: bool) -> list[tuple[str, int]]:
    """Return sets and numbers of labels, published splits where there are some."""
    found = []
    for name in sets:
        own = sorted(n for n in splits(name) if n <= max(LABELS))
        counts = labels or own or (LABELS[:2] if quick else LABELS)
        most = len(load(name)[1]) * 2 // 3
        found += [(name, n) for n in counts if n <= most and (not own or n in own)]
    return found


def whole_trials(cells: Cells, name: str, n: int, methods: list[str]) -> list[dict[str, dict]]:
    """Return the trials of which every method is there."""
    trials = []
    for seed in range(MOST_TRIALS):
        there = {m: cells.find((name, n, seed, m)) for m in methods}
        if all(there.values()):
            trials.append(there)
    return trials


def significance(cells: dict, method: str, against: str) -> str:
    wins = losses = 0
    means = []
    for trials in cells.values():
        mean, half = interval([t[method]["auc"] - t[against]["auc"] for t in trials])
        means.append(mean)
        wins += mean > half
        losses += mean < -half
    return f"{np.mean(means):+.4f} ({wins}/{losses} of {len(cells)})"


def report(results: dict, methods: list[str]) -> str:
    lines = ["AUC by score; in parentheses the AUC that hard labels would give", ""]
    lines.append(f"{'set':>12} {'labels':>6} " + " ".join(f"{m:>20}" for m in methods))
    for (name, n), trials in results.items():
        cells = []
        for m in methods:
            mean, half = interval([t[m]["auc"] for t in trials])
            cells.append(f"{mean:.3f}+-{half:.3f} ({np.mean([t[m]['hard'] for t in trials]):.3f})")
        lines.append(f"{name:>12} {n:>6} " + " ".join(f"{c:>20}" for c in cells))
    lines += ["", "mean difference (significant wins / losses)"]
    for n in sorted({n for _, n in results}):
        cells = {key: trials for key, trials in results.items() if key[1] == n}
        for m in methods:
            if m != REFERENCE:
                lines.append(f"{n:>6} labels  {m:>22} - RF {significance(cells, m, REFERENCE)}")
        for against in ("stacking", "mean"):
            if not {against, "HedgeMower1"} <= set(methods):
                continue
            lines.append(
                f"{n:>6} labels  {'HedgeMower1':>22} - {against} {significance(cells, 'HedgeMower1', against)}"
            )
    return "\n".join(lines)


def picture(results: dict, methods: list[str], path: Path) -> None:
    shown = [m for m in methods if m != REFERENCE]
    counts = sorted({n for _, n in results})
    figure, axes = plt.subplots(1, len(counts), figsize=(5 * len(counts), 5), sharey=True, squeeze=False)
    for axis, n in zip(axes[0], counts, strict=True):
        for k, method in enumerate(shown):
            for (_, m), trials in results.items():
                if m == n:
                    mean, half = interval([t[method]["auc"] - t[REFERENCE]["auc"] for t in trials])
                    axis.errorbar(mean, k, xerr=half, fmt="o", color=f"C{k % 10}", alpha=0.6, capsize=2)
        axis.axvline(0.0, color="black", linewidth=0.8)
        axis.set(title=f"{n} labels", xlabel="AUC minus that of a random forest", yticks=range(len(shown)))
        axis.set_yticklabels(shown)
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--trials", type=int)
    parser.add_argument("--sets", nargs="+")
    parser.add_argument("--labels", nargs="+", type=int)
    parser.add_argument("--methods", nargs="+")
    parser.add_argument("--again", nargs="+", default=[])
    parser.add_argument("--report", action="store_true")
    options = parser.parse_args()
    sets = options.sets or (("a9a", "splice", "electricity") if options.quick else SETS)
    n_trials = options.trials or (2 if options.quick else 20)
    rounds = 15 if options.quick else 50
    methods = options.methods or names()
    cells = Cells("muffled_table_quick" if options.quick else "muffled_table")
    cells.forget(lambda key: key[-1] in options.again)
    for name, n in wanted(sets, options.labels, options.quick):
        for seed in range(0 if options.report else n_trials):
            for method in methods:
                cells.get((name, n, seed, method), lambda m=method, s=seed: run_cell(name, n, s, m, rounds))  # noqa: B023 - called at once
            rows_of.cache_clear()
        found = whole_trials(cells, name, n, methods)
        line = " ".join(f"{m}={np.mean([t[m]['auc'] for t in found]):.3f}" for m in methods) if found else "nothing"
        print(f"{name} {n} ({len(found)} trials) {line}", flush=True)
    results = {key: whole_trials(cells, *key, methods) for key in wanted(sets, options.labels, options.quick)}
    results = {key: trials for key, trials in results.items() if trials}
    text = report(results, methods)
    (OUT / "muffled_table.txt").write_text(text + "\n")
    print(text)
    picture(results, methods, OUT / "muffled_table.png")


if __name__ == "__main__":
    main()
