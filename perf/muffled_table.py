"""The paper's protocol: fresh labelled subsamples, AUC by scores, 95 % intervals, every algorithm in both forms.

    python perf/muffled_table.py            full: 20 trials (hours)
    python perf/muffled_table.py --quick    three sets, three trials (minutes)

Writes a table, a JSON file and a picture to perf/out/.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
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
OUT = Path(__file__).parent / "out"
REFERENCE = "RF"


def baselines(seed: int) -> dict:
    return {
        "RF": RandomForestClassifier(100, random_state=seed),
        "AdaBoost": AdaBoostClassifier(n_estimators=100, random_state=seed),
        "LogitBoost": GradientBoostingClassifier(n_estimators=100, max_depth=3, random_state=seed),
        "LR": make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)),
    }


def run_trial(name: str, n_labels: int, seed: int, forms: tuple[str, ...], rounds: int) -> dict[str, dict[str, float]]:
    """Return AUC by score, AUC by hard label and seconds of every method."""
    L, y, U, test, y_test = trial(name, n_labels, seed)
    found: dict[str, dict[str, float]] = {}
    for method, model in baselines(seed).items():
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(L, y)
        score = (
            model.decision_function(test) if not hasattr(model, "predict_proba") else model.predict_proba(test)[:, 1]
        )
        found[method] = {
            "auc": roc_auc_score(y_test, score),
            "hard": roc_auc_score(y_test, model.predict(test)),
            "s": time.perf_counter() - start,
        }
    X = np.vstack([L, U])
    labels = np.concatenate([y, np.full(len(U), np.nan)])
    for form in forms:
        for cls in OURS:
            options = {"n_rounds": rounds} if issubclass(cls, Marvin) and form == "paper" else {}
            model = cls(estimator=form, seed=seed, **options)
            start = time.perf_counter()
            model.fit(X, labels)
            score = model.score_many(test)
            found[cls.__name__ + ("" if form == "rectified" else " (paper)")] = {
                "auc": roc_auc_score(y_test, score),
                "hard": roc_auc_score(y_test, np.sign(score)),
                "s": time.perf_counter() - start,
            }
            if cls is HedgeMower1 and form == "rectified":
                H, F = model._pool(model._sample()).H, model.votes_many(test)
                stack = LogisticRegression(C=1.0).fit(H, y)
                for method, s in (("stacking", F @ stack.coef_[0]), ("mean", F.mean(axis=1))):
                    found[method] = {"auc": roc_auc_score(y_test, s), "hard": float("nan"), "s": float("nan")}
    return found


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
    parser.add_argument("--sets", nargs="+", default=None)
    parser.add_argument("--labels", nargs="+", type=int, default=None)
    parser.add_argument("--forms", nargs="+", default=["rectified", "paper"])
    parser.add_argument("--name", default="muffled_table")
    options = parser.parse_args()
    sets = options.sets or (("a9a", "splice", "electricity") if options.quick else SETS)
    n_trials = options.trials or (3 if options.quick else 20)
    rounds = 15 if options.quick else 50
    OUT.mkdir(exist_ok=True)
    results: dict = {}
    for name in sets:
        own = sorted(n for n in splits(name) if n <= 1000)
        for n in options.labels or own or (LABELS[:2] if options.quick else LABELS):
            if n > len(load(name)[1]) * 2 // 3:
                continue
            start = time.perf_counter()
            results[name, n] = [run_trial(name, n, seed, tuple(options.forms), rounds) for seed in range(n_trials)]
            trials = results[name, n]
            line = " ".join(f"{m}={np.mean([t[m]['auc'] for t in trials]):.3f}" for m in trials[0])
            print(f"{name} {n} ({time.perf_counter() - start:.0f} s) {line}", flush=True)
            plain = [{"set": s, "labels": k, "trials": t} for (s, k), t in results.items()]
            (OUT / f"{options.name}.json").write_text(json.dumps(plain))
    methods = list(next(iter(results.values()))[0])
    text = report(results, methods)
    (OUT / f"{options.name}.txt").write_text(text + "\n")
    print(text)
    picture(results, methods, OUT / f"{options.name}.png")


if __name__ == "__main__":
    main()
