"""Microseconds an event of AUCRO, OPAUC and AdaptiveAUCRO by width, beside River's logistic regression in the same run.

    python perf/auc_speed.py [--quick]

One by one: predict_one and learn_one from a dict. Batches: test_then_learn_many, 1000 rows each. River's
``StandardScaler | LogisticRegression`` goes one by one from dicts that were made before. Each figure is the best of
many rounds taken in turn, after a warm-up of `N_BEFORE` events, so that a busy machine disturbs all alike. The AUC is
that of the final models on fresh events of two Gaussian classes.

The last lines compare the published gradient steps with a straightforward kernel of the same equations, which keeps no
scale and cuts nothing: the same statistics, and scores that agree to 1e-9.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numba
import numpy as np
from river import compose, linear_model, preprocessing
from sklearn.metrics import roc_auc_score

from streamlearn import AUCRO, OPAUC, AdaptiveAUCRO

OUT = Path(__file__).parent / "out"
WIDTHS = (8, 20, 50, 54, 123, 300)
N_BEFORE = 2000
BATCH = 1000
ROUNDS = 20
RATE, REGULARIZATION = 1e-3, 1e-4
SAME = 1e-9  # of the scores' standard deviation


def stream(m, n):
    rng = np.random.default_rng(m)
    y = (rng.random(n) < 0.4).astype(np.int8)
    return rng.normal(size=(n, m)) + 0.6 / np.sqrt(m) * np.abs(rng.normal(size=m)) * (2.0 * y[:, None] - 1), y


def logistic():
    return compose.Pipeline(preprocessing.StandardScaler(), linear_model.LogisticRegression())


class OneByOne:
    def __init__(self, model, X, y):
        self.model, self.truth = model, y.astype(bool).tolist()
        self.events = [{f"f{j}": v for j, v in enumerate(row)} for row in X.tolist()]

    def run(self, start, stop):
        """Return the seconds that predicting and learning take."""
        model, events, truth = self.model, self.events, self.truth
        began = time.perf_counter()
        for i in range(start, stop):
            x = events[i]
            model.predict_one(x)
            model.learn_one(x, truth[i])
        return time.perf_counter() - began

    def area(self, start, stop):
        return roc_auc_score(
            self.truth[start:stop], [self.model.predict_proba_one(x)[True] for x in self.events[start:stop]]
        )


class InBatches:
    def __init__(self, model, X, y):
        self.model, self.X, self.y = model, X, y

    def run(self, start, stop):
        began = time.perf_counter()
        for i in range(start, stop, BATCH):
            self.model.test_then_learn_many(self.X[i : min(i + BATCH, stop)], self.y[i : min(i + BATCH, stop)])
        return time.perf_counter() - began

    def area(self, start, stop):
        return roc_auc_score(self.y[start:stop], self.model.score_many(self.X[start:stop]))


CASES = {
    "River LR, one by one": (OneByOne, logistic),
    "AUCRO, one by one": (OneByOne, AUCRO),
    "AUCRO, batches": (InBatches, AUCRO),
    "OPAUC, batches": (InBatches, OPAUC),
    "AdaptiveAUCRO, one by one": (OneByOne, AdaptiveAUCRO),
    "AdaptiveAUCRO, batches": (InBatches, AdaptiveAUCRO),
}


def measure(m, n_round):
    """Return {case: (us an event, AUC)}."""
    X, y = stream(m, N_BEFORE + (ROUNDS + 4) * n_round)
    runs = {title: how(make(), X, y) for title, (how, make) in CASES.items()}
    best = dict.fromkeys(runs, float("inf"))
    for run in runs.values():
        run.run(0, N_BEFORE)
    for k in range(ROUNDS):
        start = N_BEFORE + k * n_round
        for title, run in runs.items():
            best[title] = min(best[title], run.run(start, start + n_round) / n_round * 1e6)
    fresh = N_BEFORE + ROUNDS * n_round
    return {title: (best[title], run.area(fresh, len(y))) for title, run in runs.items()}


# The published steps, without tuning


@numba.njit
def plain_steps(w, n, c, G, X, y, rate, regularization, scores):
    """Shen et al. 2020, eq. (5)-(9) at d = 1/2, with loops over whole matrices; scores are made before learning."""
    m = len(w)
    d = np.zeros(m)
    for t in range(len(X)):
        label, other, sign = y[t], 1 - y[t], 2.0 * y[t] - 1.0
        scores[t] = 0.0
        for j in range(m):
            scores[t] += w[j] * (X[t, j] - 0.5 * (c[0, j] + c[1, j]))
        n[label] += 1
        r = 1.0 / n[label]
        for j in range(m):
            d[j] = X[t, j] - c[label, j]
            c[label, j] += r * d[j]
        for i in range(m):
            for j in range(m):
                G[label, i, j] = (1 - r) * (G[label, i, j] + r * d[i] * d[j])
        if n[other] == 0:
            continue
        dw = 0.0
        for j in range(m):
            d[j] = c[other, j] - X[t, j]
            dw += d[j] * w[j]
        step = np.zeros(m)
        for i in range(m):
            Gw = 0.0
            for j in range(m):
                Gw += G[other, i, j] * w[j]
            step[i] = rate * (regularization * w[i] + sign * d[i] + d[i] * dw + Gw)
        for i in range(m):
            w[i] -= step[i]


class PlainSteps:
    """The arrays of `plain_steps`, batch by batch."""

    def __init__(self, m):
        self.w, self.n, self.c, self.G = np.zeros(m), np.zeros(2), np.zeros((2, m)), np.zeros((2, m, m))

    def test_then_learn_many(self, X, y):
        scores = np.empty(len(X))
        plain_steps(self.w, self.n, self.c, self.G, X, y, RATE, REGULARIZATION, scores)
        return scores


def measure_steps(m, n_round):
    """Return us an event of ours and of the plain kernel, and the largest difference of scores relative to their sd."""
    X, y = stream(m, (ROUNDS + 1) * n_round)
    ours = AUCRO(
        solver="sgd", margin="paper", scale="none", clip=None, learning_rate=RATE, regularization=REGULARIZATION
    )
    plain, best, apart = PlainSteps(m), [float("inf")] * 2, 0.0
    for k in range(ROUNDS + 1):
        part, made = slice(k * n_round, (k + 1) * n_round), []
        for which, model in enumerate((ours, plain)):
            began = time.perf_counter()
            made.append(model.test_then_learn_many(X[part], y[part]))
            if k:  # the first round compiles
                best[which] = min(best[which], (time.perf_counter() - began) / n_round * 1e6)
        apart = max(apart, np.abs(made[0] - made[1]).max() / made[1].std())
    return *best, apart


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two widths, few events")
    args = parser.parse_args()
    n_round = 200 if args.quick else 1000
    table = {}
    for m in (8, 20) if args.quick else WIDTHS:
        table[m] = measure(m, n_round)
        river = table[m]["River LR, one by one"][0]
        for title, (us, area) in table[m].items():
            print(f"{m:4d} features  {title:26s} {us:8.2f} us  {river / us:6.1f} x River  AUC {area:.4f}", flush=True)
    for m in (20,) if args.quick else (54, 123):
        ours, plain, apart = measure_steps(m, n_round)
        print(
            f"{m:4d} features  published steps {ours:.2f} us, plain kernel {plain:.2f} us: {plain / ours:.1f} x", end=""
        )
        print(f", scores within {apart:.0e}", flush=True)
        assert apart < SAME
        table[m]["published steps, ours and plain"] = ours, plain
    OUT.mkdir(exist_ok=True)
    (OUT / "auc_speed.json").write_text(json.dumps(table, indent=1))


if __name__ == "__main__":
    main()
