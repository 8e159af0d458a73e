"""The paper's protocol: fresh labelled subsamples, AUC by scores, 95 % intervals, every algorithm in both forms.

    python perf/muffled_table.py            full: 20 trials (hours)
    python perf/muffled_table.py --quick    three sets, two trials (minutes)

Finished cells (set, labels, trial, method) are kept in perf/out/ and not done again: an interrupted run goes on where
it was, parts can be made one after the other (--sets, --labels, --methods, --trials), and --again forgets the cells of
methods that have changed. --report makes the table and the picture of what there is. Sets with published splits are
measured on those, with at most as many trials as there are splits. HedgeMower1, the Marvins, mean and stacking share
one fitted pool a trial.
"""

from __future__ import annotations

import argparse
import warnings
from dataclasses import replace
from functools import cache
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from cells import OUT, Cells
from muffled_data import interval, load, splits, trial
from scipy.stats import ttest_1samp
from sklearn.ensemble import AdaBoostClassifier, GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from streamlearn import HedgeMower, HedgeMower1, Marvin, MarvinC, MarvinD
from streamlearn.learners.muffled.rectified import Pool
from streamlearn.learners.muffled.sample import Sample

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


def mixed_rows(name: str, n_labels: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return labelled rows before unlabelled ones, and labels, NaN where there is none."""
    L, y, U, _, _ = rows_of(name, n_labels, seed)
    return np.vstack([L, U]), np.concatenate([y, np.full(len(U), np.nan)])


@cache
def fitted(name: str, n_labels: int, seed: int) -> tuple[HedgeMower1, Pool]:
    """Return the default HedgeMower1 of one trial with its pool, the last ones kept."""
    pools = []

    class Kept(HedgeMower1):
        def _pool(self, sample: Sample) -> Pool:
            pools.append(super()._pool(sample))
            return pools[-1]

    return Kept(seed=seed).fit(*mixed_rows(name, n_labels, seed)), pools[-1]


def rectified(cls: type, name: str, n_labels: int, seed: int) -> HedgeMower1 | Marvin:
    """Return one of ours in its default form, fitted.

    The pool of HedgeMower1 and of all Marvins is the same, bit for bit, where the seed is: it is fitted once a trial.
    """
    model, pool = fitted(name, n_labels, seed)
    if cls is HedgeMower1:
        return model

    class Given(cls):
        def _pool(self, sample: Sample) -> Pool:
            # Marvin-C scales the weights in place.
            return replace(pool, weights=pool.weights.copy())

    made = cls(seed=seed) if cls is HedgeMower else Given(seed=seed)
    return made.fit(*mixed_rows(name, n_labels, seed))


def scores_of(name: str, n_labels: int, seed: int, method: str, rounds: int) -> np.ndarray:
    """Return the scores of the test rows by one of our methods or by a simple use of the same members."""
    _, y, _, test, _ = rows_of(name, n_labels, seed)
    if method in ("mean", "stacking"):
        model, pool = fitted(name, n_labels, seed)
        votes = model.votes_many(test)
        return votes.mean(axis=1) if method == "mean" else votes @ LogisticRegression(C=1.0).fit(pool.H, y).coef_[0]
    short, _, form = method.partition(" ")
    cls = next(cls for cls in OURS if cls.__name__ == short)
    if not form:
        return rectified(cls, name, n_labels, seed).score_many(test)
    options = {"n_rounds": rounds} if issubclass(cls, Marvin) else {}
    return cls(estimator="paper", seed=seed, **options).fit(*mixed_rows(name, n_labels, seed)).score_many(test)


def run_cell(name: str, n_labels: int, seed: int, method: str, rounds: int) -> dict[str, float]:
    """Return AUC by score and AUC by hard label of one method on one trial."""
    L, y, _, test, y_test = rows_of(name, n_labels, seed)
    if method in baselines(seed):
        model = baselines(seed)[method]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(L, y)
        score, hard = model.predict_proba(test)[:, 1], model.predict(test)
    else:
        score = scores_of(name, n_labels, seed, method, rounds)
        hard = np.sign(score)
    return {"auc": roc_auc_score(y_test, score), "hard": roc_auc_score(y_test, hard)}


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
    return cells.whole([(name, n, seed) for seed in range(MOST_TRIALS)], methods)


def paired(trials: list[dict], method: str, against: str) -> np.ndarray:
    """Return the differences of AUC, trial by trial."""
    return np.array([t[method]["auc"] - t[against]["auc"] for t in trials])


def significance(results: dict, method: str, against: str) -> str:
    """Return mean difference, and on how many sets its 95 % interval is above 0 and below 0."""
    every = [interval(paired(trials, method, against)) for trials in results.values()]
    wins, losses = sum(d > half for d, half in every), sum(d < -half for d, half in every)
    return f"{np.mean([d for d, _ in every]):+.4f} ({wins}/{losses} of {len(every)})"


def difference(trials: list[dict], method: str) -> str:
    """Return difference from the forest with its 95 % interval and the p of the paired t test."""
    d = paired(trials, method, REFERENCE)
    mean, half = interval(d)
    if not d.any():
        return "the same"
    p = ttest_1samp(d, 0.0).pvalue if len(d) > 1 else float("nan")
    return f"{mean:+.4f}+-{half:.4f} p={p:.0e}{'*' if abs(mean) > half else ' '}"


def grid(results: dict, methods: list[str], cell) -> list[str]:
    """Return a line a set and number of labels, a column a method."""
    lines = [f"{'set':>12} {'labels':>6} {'trials':>6} " + " ".join(f"{m:>22}" for m in methods)]
    for (name, n), trials in results.items():
        lines.append(f"{name:>12} {n:>6} {len(trials):>6} " + " ".join(f"{cell(trials, m):>22}" for m in methods))
    return lines


def auc_cell(trials: list[dict], method: str) -> str:
    mean, half = interval([t[method]["auc"] for t in trials])
    return f"{mean:.3f}+-{half:.3f} ({np.mean([t[method]['hard'] for t in trials]):.3f})"


def report(results: dict, methods: list[str]) -> str:
    """Return AUC, paired differences from the forest, and a summary."""
    lines = ["AUC by score +- 95 % interval over trials; in parentheses the AUC that hard labels would give"]
    lines += grid(results, methods, auc_cell)
    others = [m for m in methods if m != REFERENCE]
    if REFERENCE in methods:
        lines += [
            "",
            f"AUC minus that of {REFERENCE}, paired by trial: 95 % interval, p of the paired t test, * p < .05",
        ]
        lines += grid(results, others, difference)
    lines += ["", "mean difference over sets (sets with a 95 % interval above 0 / below 0)"]
    for n in sorted({n for _, n in results}):
        cells = {key: trials for key, trials in results.items() if key[1] == n}
        pairs = [(m, REFERENCE) for m in others if REFERENCE in methods]
        pairs += [("HedgeMower1", m) for m in ("stacking", "mean") if {m, "HedgeMower1"} <= set(methods)]
        lines += [f"{n:>6} labels  {m:>22} - {against:<8} {significance(cells, m, against)}" for m, against in pairs]
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
    parser.add_argument("--methods", nargs="+", choices=names())
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
        own = splits(name).get(n)
        for seed in range(0 if options.report else min(n_trials, len(own or range(n_trials)))):
            for method in methods:
                cells.get((name, n, seed, method), lambda m=method, s=seed: run_cell(name, n, s, m, rounds))  # noqa: B023 - called at once
            rows_of.cache_clear()
            fitted.cache_clear()
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
