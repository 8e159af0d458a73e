"""How long a stream stands still while a muffled learner is refitted, with and without a worker process.

    python perf/muffled_pause.py [ROUNDS]

Events are forecast and learned one by one as fast as they go, one in 200 labelled, under a refit_lag of 20,000 events;
the longest step of a round is its pause. CPU seconds are those of this process alone: with a worker they hold the
hand-over, without one the refit. Wall seconds hold the waiting too, where the worker is not done by the event at which
its model comes into use; they depend on what else the machine does. Scores are checked to be the same bits. Printed are
medians, with least and most.
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import Executor, ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
from sklearn.datasets import make_classification

from streamlearn import HedgeMower, HedgeMower1, Marvin

N_BEFORE, N_LABELS, N_EVENTS, LAG, LABELLED_EACH = 3_000, 1_000, 50_000, 20_000, 200


def stream() -> tuple[np.ndarray, list[int | None]]:
    X, y = make_classification(N_BEFORE + N_EVENTS, 20, n_informative=8, flip_y=0.1, random_state=0)
    shown = [i < N_LABELS or (i >= N_BEFORE and i % LABELLED_EACH == 0) for i in range(len(y))]
    return X, [int(v) if known else None for v, known in zip(y, shown, strict=True)]


def steps(model, X: np.ndarray, labels: list[int | None]) -> tuple[np.ndarray, list[float]]:
    """Return CPU and wall seconds of each event, float64[2, n_events], and the forecasts."""
    spent, scores = np.empty((2, len(X))), []
    for k, (row, label) in enumerate(zip(X, labels, strict=True)):
        cpu, wall = time.process_time(), time.perf_counter()
        scores.append(model.score_one(row))
        model.learn_one(row, label)
        spent[:, k] = time.process_time() - cpu, time.perf_counter() - wall
    return spent, scores


def text(values: list[float]) -> str:
    return f"{np.median(values) * 1e3:8.1f} ({min(values) * 1e3:.1f}-{max(values) * 1e3:.1f})"


def measured(cls, executor: Executor, n_rounds: int) -> None:
    X, labels = stream()
    before = cls(refit_lag=LAG).fit(X[:N_BEFORE], labels[:N_BEFORE])
    state, forecasts = before.state(), []
    for title, worker in (("here", None), ("in a worker", executor)):
        longest: list[list[float]] = [[], [], []]
        for _ in range(n_rounds):
            model = cls.from_state(state).use_worker(worker)
            spent, scores = steps(model, X[N_BEFORE:], labels[N_BEFORE:])
            refits = model.n_refits - before.n_refits
            forecasts.append(scores)
            for kept, value in zip(longest, (*spent.max(axis=1), np.median(spent[0])), strict=True):
                kept.append(float(value))
        cpu, wall, usual = longest
        print(
            f"{cls.__name__:12} {title:12} {refits:6} {text(cpu):>24} {text(wall):>24} {np.median(usual) * 1e6:10.1f}"
        )
    assert all(scores == forecasts[0] for scores in forecasts)


def main() -> None:
    n_rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    print(f"{'':12} {'refits':12} {'':>6} {'longest step, CPU ms':>24} {'wall ms':>24} {'usual, us':>10}")
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor:
        executor.submit(abs, 1).result()
        for cls in (HedgeMower1, HedgeMower, Marvin):
            measured(cls, executor, n_rounds)


if __name__ == "__main__":
    main()
