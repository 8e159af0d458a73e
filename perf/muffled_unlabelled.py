"""What unlabelled events add: members learned on them, beside the same members learned on the labelled rows alone.

    python perf/muffled_unlabelled.py [--quick] [--trials N] [--sets NAME ...] [--curve]

Three columns, AUC on fresh rows: the base pool; the pool with the four members learned on U; the control, where the
same four members are learned on L in place of U. `--curve` draws AUC against |U|.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from muffled_data import interval, trial
from sklearn.metrics import roc_auc_score

from streamlearn.learners.muffled.combine import muffle
from streamlearn.learners.muffled.members import MEMBERS
from streamlearn.learners.muffled.rectified import ON_UNLABELLED, fit_pool
from streamlearn.learners.muffled.sample import Sample, derived_seed
from streamlearn.learners.muffled.unlabelled import NAMES, fit_embedded

mpl.use("Agg")
OUT = Path(__file__).parent / "out"
SETS = (
    "ssl_text",
    "splice_letters",
    "digits",
    "spam_stream",
    "letter",
    "phishing",
    "a9a",
    "electricity",
    "noaa_weather",
    "covtype",
    "bank_campaign",
)
LABELS = (20, 60, 200)
SIZES = (100, 300, 1000, 3000)


def run_trial(name: str, n_labels: int, seed: int, n_unlabelled: int = 3000) -> dict[str, float]:
    L, y, U, test, y_test = trial(name, n_labels, seed, n_unlabelled=n_unlabelled)
    sample = Sample(np.ascontiguousarray(L), y, np.ascontiguousarray(U), derived_seed(seed, 1))
    test = np.ascontiguousarray(test)
    base = fit_pool(sample, list(MEMBERS.values()), 100, 30.0, "square")
    votes = base.model(sample).score(test, np.empty(len(test)))
    found = {"base": roc_auc_score(y_test, votes @ base.weights)}
    p = base.H.shape[1]
    anchor = np.concatenate([np.full(p, (1 - ON_UNLABELLED) / p), np.full(len(NAMES), ON_UNLABELLED / len(NAMES))])
    for column, learned_on in (("U", sample), ("L", replace(sample, unlabelled=sample.labelled))):
        fitted = fit_embedded(learned_on)
        if fitted is None:
            found[column] = found["base"]
            continue
        extra, held_out = fitted
        H, F = np.hstack([base.H, held_out]), np.hstack([base.F, extra.votes(sample.unlabelled)])
        weights = muffle(H, y, F, anchor=anchor).weights
        found[column] = roc_auc_score(y_test, np.hstack([votes, extra.votes(test)]) @ weights)
        if column == "U":
            for k, member in enumerate(NAMES):
                found[member] = roc_auc_score(y_test, extra.votes(test)[:, k])
    return found


def table(results: dict) -> str:
    members = " ".join(f"{m:>12}" for m in NAMES)
    lines = [f"{'set':>14} {'labels':>6} {'base':>7} {'with U':>7} {'U - base':>17} {'U - control':>17} {members}"]
    for (name, n), trials in results.items():
        mean = {k: np.mean([t[k] for t in trials]) for k in trials[0]}
        cells = []
        for against in ("base", "L"):
            d, half = interval([t["U"] - t[against] for t in trials])
            cells.append(f"{d:+.4f}+-{half:.4f}{'*' if abs(d) > half else ' '}")
        own = " ".join(f"{mean.get(m, float('nan')):12.3f}" for m in NAMES)
        lines.append(f"{name:>14} {n:>6} {mean['base']:7.3f} {mean['U']:7.3f} {cells[0]:>17} {cells[1]:>17} {own}")
    for n in sorted({n for _, n in results}):
        for against in ("base", "L"):
            every = [interval([t["U"] - t[against] for t in tr]) for (_, k), tr in results.items() if k == n]
            wins, losses = sum(d > h for d, h in every), sum(d < -h for d, h in every)
            lines.append(f"{n} labels: U - {against}: {np.mean([d for d, _ in every]):+.4f} ({wins}/{losses})")
    return "\n".join(lines)


def curve(sets, n_trials: int) -> None:
    figure, axis = plt.subplots(figsize=(7, 5))
    for name in sets:
        gains = []
        for size in SIZES:
            trials = [run_trial(name, 20, seed, size) for seed in range(n_trials)]
            gains.append(np.mean([t["U"] - t["base"] for t in trials]))
        axis.plot(SIZES, gains, marker="o", label=name)
        print(name, [f"{g:+.4f}" for g in gains], flush=True)
    axis.set(xscale="log", xlabel="unlabelled events", ylabel="AUC gained over the base pool, 20 labels")
    axis.axhline(0.0, color="black", linewidth=0.8)
    axis.legend()
    figure.tight_layout()
    figure.savefig(OUT / "muffled_unlabelled_curve.png", dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--trials", type=int)
    parser.add_argument("--sets", nargs="+")
    parser.add_argument("--labels", nargs="+", type=int)
    parser.add_argument("--curve", action="store_true")
    options = parser.parse_args()
    OUT.mkdir(exist_ok=True)
    sets = options.sets or (("splice_letters", "letter") if options.quick else SETS)
    n_trials = options.trials or (4 if options.quick else 8)
    if options.curve:
        curve(sets, n_trials)
        return
    results: dict = {}
    for name in sets:
        for n in options.labels or LABELS:
            start = time.perf_counter()
            results[name, n] = [run_trial(name, n, seed) for seed in range(n_trials)]
            mean = {k: round(float(np.mean([t[k] for t in results[name, n]])), 4) for k in results[name, n][0]}
            print(name, n, f"({time.perf_counter() - start:.0f} s)", mean, flush=True)
    text = table(results)
    print(text)
    (OUT / "muffled_unlabelled.txt").write_text(text + "\n")
    plain = [{"set": s, "labels": n, "trials": t} for (s, n), t in results.items()]
    (OUT / "muffled_unlabelled.json").write_text(json.dumps(plain))


if __name__ == "__main__":
    main()
