"""Events a second and prequential AUC by width, 8 to 1000 features: ours, a NumPy version of OPAUC, River.

    python perf/auc_width.py [--quick] [--parts]

All see the same two Gaussian classes in the same order, forecast before they learn. Ours go in batches of one turn,
River's ``StandardScaler | LogisticRegression`` and the NumPy version event by event, as they are written. Cases take
turns, so that a busy machine disturbs all alike; a line shows the median of the turns and their spread. "OPAUC,
published steps" is ours with the settings of the NumPy version (equations (5) to (9) at d = 1/2, BLAS products): their
scores must agree to 1e-9 of their standard deviation. Writes auc_width.json and auc_width.png, microseconds against
width on log scales.

``--parts`` prints instead of what an event costs AUCRO with the whole covariance at 54 features, in processor time:
forecast and learn, learn alone, learn without the solutions, and beside it the products ``X'X`` of BLAS for the same
blocks, which are the arithmetic of a covariance without means, classes, clipping or order of events.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from auc_speed import BATCH, RATE, REGULARIZATION, SAME, logistic, stream
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

from streamlearn import AUCRO, FSAUC, OPAUC, AdaptiveAUCRO, OAMgd, OAMseq

mpl.use("Agg")
OUT = Path(__file__).parent / "out"
TURNS = 9
N_EVENTS = {8: 2000, 54: 2000, 123: 1000, 300: 400, 1000: 100}
"""Events of a turn; the first turn warms up and is not counted."""


class NumPySteps:
    """Published steps with matrix products, one event at a time."""

    def __init__(self, m):
        self.w, self.n, self.c, self.G = np.zeros(m), np.zeros(2), np.zeros((2, m)), np.zeros((2, m, m))

    def test_then_learn_many(self, X, y):
        scores = np.empty(len(X))
        w, n, c, G = self.w, self.n, self.c, self.G
        for t, (x, label) in enumerate(zip(X, y.tolist(), strict=True)):
            other, sign = 1 - label, 2.0 * label - 1.0
            scores[t] = w @ (x - 0.5 * (c[0] + c[1]))
            n[label] += 1
            r = 1.0 / n[label]
            d = x - c[label]
            c[label] += r * d
            G[label] += r * np.outer(d, d)
            G[label] *= 1.0 - r
            if n[other]:
                d = c[other] - x
                w -= RATE * (REGULARIZATION * w + sign * d + d * (d @ w) + G[other] @ w)
        return scores


class River:
    """River's pipeline; the rows are dicts before the clock runs."""

    def __init__(self):
        self.model, self.rows = logistic(), iter(())

    def prepare(self, X):
        self.rows = iter([dict(enumerate(row)) for row in X.tolist()])  # of a turn, which comes in batches

    def test_then_learn_many(self, X, y):
        scores = np.empty(len(X))
        for i, label in enumerate(y.tolist()):
            x = next(self.rows)
            scores[i] = self.model.predict_proba_one(x).get(True, 0.5)
            self.model.learn_one(x, bool(label))
        return scores


def published():
    """OPAUC as published: AUCRO's gradient steps at d = 1/2, without scaling or clipping."""
    return AUCRO(
        solver="sgd", margin="paper", scale="none", clip=None, learning_rate=RATE, regularization=REGULARIZATION
    )


CASES = {
    "AUCRO": lambda m: AUCRO(),
    "AUCRO, diagonal": lambda m: AUCRO(covariance="diagonal"),
    "AUCRO, means": lambda m: AUCRO(covariance="means"),
    "AdaptiveAUCRO": lambda m: AdaptiveAUCRO(),
    "OPAUC": lambda m: OPAUC(),
    "OPAUC, published steps": lambda m: published(),
    "the same in NumPy": NumPySteps,
    "FSAUC": lambda m: FSAUC(),
    "OAMseq": lambda m: OAMseq(),
    "OAMgd": lambda m: OAMgd(),
    "River LR": lambda m: River(),
}


def measure(m, n_turn, turns):
    """Return {case: (us an event by turn, prequential AUC)} and how far the two published forms are apart."""
    X, y = stream(m, n_turn * (turns + 1))
    models = {title: make(m) for title, make in CASES.items()}
    scores = {title: np.empty(len(X)) for title in CASES}
    seconds = {title: [] for title in CASES}
    for k in range(turns + 1):
        rows = slice(k * n_turn, (k + 1) * n_turn)
        for title, model in models.items():
            if title == "River LR":
                model.prepare(X[rows])
            step = min(BATCH, n_turn)
            began = time.perf_counter()
            for i in range(rows.start, rows.stop, step):
                scores[title][i : i + step] = model.test_then_learn_many(X[i : i + step], y[i : i + step])
            if k:
                seconds[title].append((time.perf_counter() - began) / n_turn * 1e6)
    ours, numpy = scores["OPAUC, published steps"], scores["the same in NumPy"]
    table = {title: (seconds[title], roc_auc_score(y[n_turn:], scores[title][n_turn:])) for title in CASES}
    return table, np.abs(ours - numpy).max() / numpy.std()


def parts(m, n, turns):
    """Print what the parts of an event cost, in blocks of BATCH rows, each part in turn."""
    X, y = stream(m, n)
    blocks = [(X[i : i + BATCH], y[i : i + BATCH]) for i in range(0, n, BATCH)]

    def each(verb, **params):
        model = AUCRO(**params)
        return lambda: [getattr(model, verb)(rows, labels) for rows, labels in blocks]

    work = {
        "forecast and learn": each("test_then_learn_many"),
        "learn": each("learn_many"),
        "learn, never solve": each("learn_many", solve_every=10**9),
        "X'X by BLAS": lambda: [rows.T @ rows for rows, _ in blocks],
    }
    us = {title: [] for title in work}
    for k in range(turns + 1):
        for title, run in work.items():
            began = time.process_time()
            run()
            if k:  # the first turn warms up
                us[title].append((time.process_time() - began) / n * 1e6)
    for title, took in us.items():
        print(
            f"{m:5d} features  {title:19s} {np.median(took):6.3f} us ({min(took):.3f}-{max(took):.3f})"
            f"  {1e6 / np.median(took):10,.0f} events/s",
            flush=True,
        )


def draw(table, path):
    """Microseconds an event against width, one line a case."""
    figure, axis = plt.subplots(figsize=(8, 5.5), layout="constrained")
    for k, title in enumerate(CASES):
        widths = list(table)
        us = np.array([np.percentile(table[m][title][0], (0, 50, 100)) for m in widths])
        axis.plot(widths, us[:, 1], marker="o", ms=4, label=title, color=f"C{k % 10}", ls="--" if k > 7 else "-")
        axis.fill_between(widths, us[:, 0], us[:, 2], color=f"C{k % 10}", alpha=0.12, lw=0)
    axis.set(xscale="log", yscale="log", xlabel="features", ylabel="microseconds an event (forecast and learn)")
    axis.set_xticks(list(table), [str(m) for m in table])
    axis.minorticks_off()
    axis.grid(alpha=0.25)
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two widths, three turns")
    parser.add_argument("--parts", action="store_true", help="what an event costs at 54 features")
    parser.add_argument("--out", type=Path, default=OUT)
    args = parser.parse_args()
    if args.parts:
        with threadpool_limits(1):
            parts(54, 10_000 if args.quick else 100_000, 3 if args.quick else TURNS)
        return
    args.out.mkdir(parents=True, exist_ok=True)
    table = {}
    with threadpool_limits(1):  # one core for all
        for m, n_turn in {8: 200, 54: 200}.items() if args.quick else N_EVENTS.items():
            table[m], apart = measure(m, n_turn, 3 if args.quick else TURNS)
            river = np.array(table[m]["River LR"][0])
            for title, (us, area) in table[m].items():
                ratio = river / us
                print(
                    f"{m:5d} features  {title:23s} {np.median(us):9.2f} us ({min(us):.2f}-{max(us):.2f})"
                    f"  {1e6 / np.median(us):10,.0f} events/s  {np.median(ratio):7.1f} x River"
                    f" ({ratio.min():.1f}-{ratio.max():.1f})  AUC {area:.4f}",
                    flush=True,
                )
            print(
                f"{m:5d} features  published steps and NumPy: scores within {apart:.0e} of their deviation", flush=True
            )
            assert apart < SAME
    (args.out / "auc_width.json").write_text(json.dumps(table, indent=1))
    draw(table, args.out / "auc_width.png")


if __name__ == "__main__":
    main()
