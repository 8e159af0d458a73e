"""What unlabelled events add: members learned on them, beside the same members learned on the labelled rows alone.

    python perf/muffled_unlabelled.py [--quick] [--trials N] [--sets NAME ...] [--labels N ...] [--report] [--curve]

Three columns, AUC on fresh rows: the base pool; the pool with the four members learned on U; the control, where the
same four members are learned on L in place of U. All three with the settings of the default HedgeMower1, but |U| = 3000
in place of its 2000. Then what `clusters`, a fifth member on U that is off by default, adds to the four. Finished cells
are kept in perf/out/ and not done again; --report makes the table of what there is. `--curve` draws AUC against |U|.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from functools import partial
from itertools import product

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from cells import OUT, Cells
from muffled_data import interval, trial
from sklearn.metrics import roc_auc_score

from streamlearn import HedgeMower1
from streamlearn.learners.muffled.clusters import fit_clusters
from streamlearn.learners.muffled.layers import Extra
from streamlearn.learners.muffled.members import MEMBERS
from streamlearn.learners.muffled.rectified import Pool, fit_pool, weighed
from streamlearn.learners.muffled.sample import Sample, derived_seed
from streamlearn.learners.muffled.unlabelled import NAMES, fit_embedded

mpl.use("Agg")
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


DEFAULT = HedgeMower1()
CLUSTERS = "with clusters"


def weights_of(pool: Pool, y: np.ndarray, extras: list[Extra]) -> np.ndarray:
    """Return the weights of the pool's votes and those of further members, as the learner's first refit finds them."""
    H = np.hstack([pool.H, *(extra.held_out for extra in extras)])
    F = np.hstack([pool.F, *(extra.on_unlabelled for extra in extras)])
    return weighed(H, y, F, extras, DEFAULT.tau, DEFAULT.potential).weights


def run_trial(name: str, n_labels: int, seed: int, n_unlabelled: int = 3000) -> dict[str, float]:
    """Return the AUC of the three columns and of each member learned on U."""
    L, y, U, test, y_test = trial(name, n_labels, seed, n_unlabelled=n_unlabelled)
    sample = Sample(np.ascontiguousarray(L), y, np.ascontiguousarray(U), derived_seed(seed, 1))
    test = np.ascontiguousarray(test)
    pool = fit_pool(sample, list(MEMBERS.values()), DEFAULT.n_trees, DEFAULT.tau, DEFAULT.potential)
    votes = pool.model(sample).score(test, np.empty(len(test)))
    found = {"base": roc_auc_score(y_test, votes @ pool.weights)}
    for column, learned_on in (("U", sample), ("L", replace(sample, unlabelled=sample.labelled))):
        fitted = fit_embedded(learned_on)
        if fitted is None:
            found[column] = found["base"]
            continue
        layer, held_out = fitted
        learned = Extra(layer, held_out, layer.votes(sample.unlabelled))
        weights = weights_of(pool, y, [learned])
        own = layer.votes(test)
        found[column] = roc_auc_score(y_test, np.hstack([votes, own]) @ weights)
        if column == "U":
            found |= {member: roc_auc_score(y_test, own[:, k]) for k, member in enumerate(NAMES)}
            found[CLUSTERS] = with_clusters(sample, pool, learned, votes, own, test, y_test)
    return found


def with_clusters(sample: Sample, pool: Pool, learned: Extra, votes, own, test, y_test) -> float:
    """Return the AUC of the pool with the four members and the optional fifth one."""
    layer, held_out = fit_clusters(sample)
    extras = [learned, Extra(layer, held_out, layer.votes(sample.unlabelled))]
    return roc_auc_score(y_test, np.hstack([votes, own, layer.votes(test)]) @ weights_of(pool, sample.y, extras))


def table(results: dict) -> str:
    members = " ".join(f"{m:>12}" for m in NAMES)
    lines = [
        "AUC; paired differences +- 95 % interval, * where it does not hold 0; at the right each member on U by itself",
        f"{'set':>14} {'labels':>6} {'trials':>6} {'base':>7} {'with U':>7} {'U - base':>17} {'U - control':>17} "
        f"{'clusters - U':>17} " + members,
    ]
    for (name, n), trials in results.items():
        mean = {k: np.mean([t[k] for t in trials]) for k in trials[0]}
        cells = []
        for against in ("base", "L"):
            d, half = interval([t["U"] - t[against] for t in trials])
            cells.append(f"{d:+.4f}+-{half:.4f}{'*' if abs(d) > half else ' '}")
        added = [t[CLUSTERS] - t["U"] for t in trials if CLUSTERS in t]
        d, half = interval(added) if added else (float("nan"), float("nan"))
        cells.append(f"{d:+.4f}+-{half:.4f}{'*' if abs(d) > half else ' '}" if added else "")
        own = " ".join(f"{mean.get(m, float('nan')):12.3f}" for m in NAMES)
        numbers = f"{len(trials):>6} {mean['base']:7.3f} {mean['U']:7.3f}"
        lines.append(f"{name:>14} {n:>6} {numbers} {' '.join(f'{c:>17}' for c in cells)} {own}")
    for n in sorted({n for _, n in results}):
        for against in ("base", "L"):
            every = [interval([t["U"] - t[against] for t in tr]) for (_, k), tr in results.items() if k == n]
            wins, losses = sum(d > h for d, h in every), sum(d < -h for d, h in every)
            column = "base" if against == "base" else "control"
            lines.append(
                f"{n} labels: U - {column}: {np.mean([d for d, _ in every]):+.4f} "
                f"({wins} significant wins, {losses} losses of {len(every)})"
            )
    return "\n".join(lines)


def curve(sets, n_trials: int) -> None:
    """Draw what members on U add with 20 labels against the number of unlabelled events, mean and 95 % interval."""
    cells = Cells("muffled_unlabelled_curve")
    figure, axis = plt.subplots(figsize=(8, 5), layout="constrained")
    for name in sets:
        gains = []
        for size in SIZES:
            keys = [(name, 20, seed, size) for seed in range(n_trials)]
            trials = [cells.get(key, partial(run_trial, *key)) for key in keys]
            gains.append(interval([t["U"] - t["base"] for t in trials]))
        mean, half = np.array(gains).T
        axis.errorbar(SIZES, mean, yerr=half, marker="o", capsize=3, label=name)
        print(name, [f"{m:+.4f}+-{h:.4f}" for m, h in gains], flush=True)
    axis.set(xscale="log", xlabel="unlabelled events", ylabel="AUC gained over the base pool, 20 labels")
    axis.axhline(0.0, color="black", linewidth=0.8)
    figure.legend(*axis.get_legend_handles_labels(), loc="outside right center")
    figure.savefig(OUT / "muffled_unlabelled_curve.png", dpi=120)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--trials", type=int)
    parser.add_argument("--sets", nargs="+")
    parser.add_argument("--labels", nargs="+", type=int, default=list(LABELS))
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--curve", action="store_true")
    return parser.parse_args()


def main() -> None:
    options = parsed()
    sets = options.sets or (("splice_letters", "letter") if options.quick else SETS)
    n_trials = options.trials or (4 if options.quick else 8)
    if options.curve:
        curve(sets, n_trials)
        return
    cells = Cells("muffled_unlabelled")
    for seed, name, n in product(range(0 if options.report else n_trials), sets, options.labels):
        cells.get((name, n, seed), partial(run_trial, name, n, seed))
        print(f"{name} {n}, trial {seed}", flush=True)
    found = {
        (name, n): [t for seed in range(n_trials) if (t := cells.find((name, n, seed)))]
        for name, n in product(sets, options.labels)
    }
    text = table({key: trials for key, trials in found.items() if trials})
    print(text)
    (OUT / "muffled_unlabelled.txt").write_text(text + "\n")


if __name__ == "__main__":
    main()
