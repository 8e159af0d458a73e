"""Speed of the muffled learners beside scikit-learn in the same run: one event, many rows, refits.

    python perf/muffled_speed.py [ROUNDS]

Everything runs on one core and is measured in CPU seconds of the process, all in turn, ROUNDS times (default 7):
printed are medians and, behind them, least and most. The forest and its flattened copy are the same trees with the same
votes to the last bit; the default pool has 400 trees and two linear members and is compared with a forest of as many
trees and with scikit-learn's own pool of the same members.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence

import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import ExtraTreesClassifier, GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.naive_bayes import GaussianNB
from threadpoolctl import threadpool_limits

from streamlearn import HedgeMower, HedgeMower1, Marvin

N_LABELS, N_UNLABELLED, N_TEST, N_FEATURES, N_EVENTS = 1000, 2000, 8192, 20, 300


class Pool:
    """The members of the default pool as scikit-learn has them, with equal votes."""

    def __init__(self) -> None:
        self.members = [
            RandomForestClassifier(100, random_state=0),
            RandomForestClassifier(100, min_samples_leaf=5, random_state=1),
            ExtraTreesClassifier(100, min_samples_leaf=2, bootstrap=True, random_state=2),
            GradientBoostingClassifier(n_estimators=100, random_state=3),
            LogisticRegression(),
            GaussianNB(),
        ]

    def fit(self, X: np.ndarray, y: np.ndarray) -> Pool:
        for member in self.members:
            member.fit(X, y)
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return np.mean([member.predict_proba(X) for member in self.members], axis=0)


def seconds(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def in_turn(n_rounds: int, calls: Sequence[Callable[[], object]]) -> np.ndarray:
    """Return float64[n_rounds, n_calls] of CPU seconds, after one round that does not count."""
    for call in calls:
        call()
    return np.array([[seconds(call) for call in calls] for _ in range(n_rounds)])


def text(values: np.ndarray, digits: int) -> str:
    return f"{np.median(values):.{digits}f} ({values.min():.{digits}f}-{values.max():.{digits}f})"


def main() -> None:
    n_rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    X, y = make_classification(3000 + N_TEST, N_FEATURES, n_informative=8, flip_y=0.1, random_state=0)
    known, y_known, test, y_test = X[:N_LABELS], y[:N_LABELS], np.ascontiguousarray(X[3000:]), y[3000:]
    rest: list[int | None] = [None] * N_UNLABELLED
    labels = [int(v) for v in y_known] + rest
    events = [dict(enumerate(row.tolist())) for row in test[:N_EVENTS]]
    forest, large, pool = (
        model.fit(known, y_known) for model in (RandomForestClassifier(100, random_state=0), large_forest(), Pool())
    )
    # A trained member must not have seen the labelled events, so others are labelled for it.
    copy = HedgeMower1(members=[forest], unlabelled_members="off").fit(
        X[N_LABELS:3000], [int(v) for v in y[N_LABELS:1200]] + rest[:1800]
    )
    assert (copy.votes_many(test)[:, 0] == 2.0 * forest.predict_proba(test)[:, 1] - 1.0).all()
    ours = [HedgeMower1(), HedgeMower(), Marvin(), HedgeMower1()]
    for model in ours[:3]:
        model.fit(X[:3000], labels)
    # With few labels four further members are learned on the unlabelled events.
    ours[3].fit(X[:N_UNLABELLED], labels[:200] + [None] * (N_UNLABELLED - 200))
    theirs = [("RF(100)", forest), ("RF(400)", large), ("pool of 400 trees", pool)]
    names = [f"scikit-learn {name}" for name, _ in theirs]
    names += ["the same RF(100) here", *(f"{model.name}, 400 trees" for model in ours[:2]), "Marvin, up to 550 trees"]
    names.append("HedgeMower1, 200 labels")
    many = in_turn(
        n_rounds,
        [
            *(lambda m=m: m.predict_proba(test) for _, m in theirs),
            *(lambda m=m: m.score_many(test) for m in (copy, *ours)),
        ],
    )
    one = in_turn(
        n_rounds,
        [
            *(lambda m=m: [m.predict_proba(row[None]) for row in test[:5]] for _, m in theirs),
            *(lambda m=m: [m.score_one(x) for x in events] for m in (copy, *ours)),
        ],
    ) / np.array([5] * 3 + [N_EVENTS] * 5)
    fits = in_turn(
        min(n_rounds, 3),
        [
            lambda: RandomForestClassifier(100, random_state=0).fit(known, y_known),
            lambda: large_forest().fit(known, y_known),
            lambda: Pool().fit(known, y_known),
            *(m.refit for m in ours),
        ],
    )
    fits = np.insert(fits, 3, np.nan, axis=1)
    found = [m.predict_proba(test)[:, 1] for _, m in theirs] + [m.score_many(test) for m in (copy, *ours)]
    print(f"{'':32} {'one event, us':>24} {'many, us a row':>22} {'fit, 1000 labels, s':>22} {'AUC':>7}")
    for j, name in enumerate(names):
        fit = "" if np.isnan(fits[0, j]) else text(fits[:, j], 2)
        auc = roc_auc_score(y_test, found[j])
        print(f"{name:32} {text(one[:, j] * 1e6, 1):>24} {text(many[:, j] / N_TEST * 1e6, 2):>22} {fit:>22} {auc:7.4f}")
    print("\ntimes as fast in the same round:        many rows                one event")
    for a, b in ((3, 0), (4, 1), (4, 2), (5, 2), (4, 0)):
        what = f"{names[a].split(',')[0]} : {names[b]}"
        print(f"  {what:50} {text(many[:, b] / many[:, a], 1):>16} {text(one[:, b] / one[:, a], 0):>20}")


def large_forest() -> RandomForestClassifier:
    return RandomForestClassifier(400, random_state=0)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
