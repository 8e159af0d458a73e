"""Speed of the default pool: one event from a dict, many rows, refits; beside scikit-learn in the same run.

python perf/muffled_speed.py
"""

from __future__ import annotations

import time
from functools import partial

import pandas as pd
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score

from streamlearn import HedgeMower, HedgeMower1, Marvin

N_LABELS, N_UNLABELLED, N_FEATURES = 1000, 2000, 20


def best_of(n: int, call) -> float:
    best = float("inf")
    for _ in range(n):
        start = time.process_time()
        call()
        best = min(best, time.process_time() - start)
    return best


def main() -> None:
    X, y = make_classification(13_000, N_FEATURES, n_informative=8, flip_y=0.1, random_state=0)
    test, y_test = X[3000:], y[3000:]
    labels = [int(v) for v in y[:N_LABELS]] + [None] * N_UNLABELLED
    names = [f"f{j}" for j in range(N_FEATURES)]
    events = [dict(zip(names, row.tolist(), strict=True)) for row in test[:500]]
    frame = pd.DataFrame(X[:3000], columns=names)
    forest = RandomForestClassifier(100, random_state=0).fit(X[:N_LABELS], y[:N_LABELS])
    forest_many = best_of(3, lambda: forest.predict_proba(test))
    parts = [test[a : a + 1000] for a in range(0, len(test), 1000)]
    forest_thousands = best_of(3, lambda: [forest.predict_proba(part) for part in parts])
    forest_one = best_of(5, lambda: forest.predict_proba(test[:1]))
    forest_fit = best_of(2, lambda: RandomForestClassifier(100, random_state=0).fit(X[:N_LABELS], y[:N_LABELS]))
    auc = roc_auc_score(y_test, forest.predict_proba(test)[:, 1])
    print(f"{'':28} {'one event':>12} {'many, a row':>12} {'fit, 1000 labels':>17} {'AUC':>7}")
    print(
        f"{'scikit-learn RF(100)':28} {forest_one * 1e6:9.1f} us {forest_many / len(test) * 1e6:9.2f} us "
        f"{forest_fit:15.3f} s {auc:7.4f}"
    )
    rows = pd.DataFrame(test, columns=names)
    for model in (HedgeMower1(members="forest"), HedgeMower1(), HedgeMower(), Marvin()):
        model.fit(frame, labels)
        refit = best_of(3, model.refit)
        one = best_of(20, partial(score_each, model, events)) / len(events)
        many = best_of(3, partial(model.score_many, rows)) / len(test)
        blocks = [rows[a : a + 1000] for a in range(0, len(rows), 1000)]
        thousands = best_of(3, partial(score_blocks, model, blocks)) / len(test)
        auc = roc_auc_score(y_test, model.score_many(rows))
        print(f"{model.name:28} {one * 1e6:9.1f} us {many * 1e6:9.2f} us {refit:15.3f} s {auc:7.4f}", flush=True)
        print(
            f"{'':28} times RF: one event {forest_one / one:.0f}, many rows {forest_many / len(test) / many:.1f}, "
            f"in thousands {forest_thousands / len(test) / thousands:.1f}"
        )


def score_each(model, events) -> None:
    for x in events:
        model.score_one(x)


def score_blocks(model, blocks) -> None:
    for block in blocks:
        model.score_many(block)


if __name__ == "__main__":
    main()
