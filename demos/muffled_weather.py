"""Few labels: one day in thirty is labelled, the others fill the reservoir.

    python demos/muffled_weather.py

Fifty years of daily weather; the question is whether it rains. HedgeMower learns from the labelled days and fills its
reservoir with the others; beside it AUCRO, a supervised linear model, learns from the same labelled days alone. While
there are few labels the linear model leads, in the second half mostly the pool; over all fifty years the linear model
is ahead by a little. The picture shows the AUC of the last five years, and how scores are spread: those between -1 and
1 are hedged, those beyond would be clipped. Nobody is that sure of the weather, so all are hedged here.
"""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

from streamlearn import AUCRO, HedgeMower
from streamlearn.evaluation import AUC
from streamlearn.learners.muffled.explain import Partition

mpl.use("Agg")
HERE = Path(__file__).parent
SHOWN = 1 / 30
BATCH = 365
WINDOW = 5 * BATCH


def days() -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Return the features, whether it rained, and the names of the features."""
    with gzip.open(HERE / "data" / "noaa_weather.csv.gz", "rt") as file:
        header, *rows = csv.reader(file)
    table = np.array(rows, dtype=float)
    return table[:, :-1], table[:, -1].astype(int), header[:-1]


def auc_of(y: np.ndarray, scores: np.ndarray) -> float:
    """Return the exact AUC of forecasts."""
    metric = AUC()
    metric.update_many(y.astype(np.int8), scores)
    return metric.get()


def main() -> None:
    """Learn the stream, print the comparison and an explained day, draw the picture."""
    X, y, names = days()
    shown = np.random.default_rng(0).random(len(y)) < SHOWN
    labels = np.where(shown, y, np.nan)
    models = {"HedgeMower": HedgeMower(), "AUCRO": AUCRO()}
    scores = {name: np.empty(len(y)) for name in models}
    course: dict[str, list[float]] = {name: [] for name in models}
    for start in range(0, len(y), BATCH):
        part = slice(start, start + BATCH)
        for name, model in models.items():
            scores[name][part] = model.test_then_learn_many(X[part], labels[part])
            lately = slice(max(start + BATCH - WINDOW, 0), start + BATCH)
            course[name].append(auc_of(y[lately], scores[name][lately]))
    hedge = models["HedgeMower"]
    for name in models:
        whole, half = auc_of(y, scores[name]), auc_of(y[len(y) // 2 :], scores[name][len(y) // 2 :])
        print(f"{name:12} AUC {whole:.4f}, second half {half:.4f}, with {shown.sum()} labels of {len(y)} days")
    print(f"\nlast day, taken apart ({', '.join(f'{j} = {n}' for j, n in enumerate(names))}):")
    print(hedge.partition_one(X[-1], n_rules=3))
    picture(course, hedge.score_many(X[-3000:]), y[-3000:], hedge.partition_one(X[-1], n_rules=0))


def picture(course: dict[str, list[float]], scores: np.ndarray, y: np.ndarray, last: Partition) -> None:
    """Draw AUC over the years, the spread of the scores, and the members of one day."""
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(15, 4.5))
    for name, values in course.items():
        left.plot(np.arange(1, len(values) + 1), values, label=name)
    left.set(xlabel="years", ylabel="AUC of the last five years", title="one label a month")
    left.legend()
    edges = np.linspace(-1.6, 1.6, 49)
    for label, text in ((0, "dry"), (1, "rain")):
        middle.hist(np.clip(scores[y == label], -1.59, 1.59), edges, alpha=0.6, label=text)
    middle.axvspan(-1, 1, color="grey", alpha=0.12, label="hedged")
    sure = (np.abs(scores) >= 1.0).mean()
    middle.set(xlabel="score", ylabel="days", title=f"{1.0 - sure:.0%} of the scores are hedged, {sure:.0%} clipped")
    middle.legend()
    last.draw(right)
    right.set_title("the last day, taken apart")
    figure.tight_layout()
    out = HERE / "out"
    out.mkdir(exist_ok=True)
    figure.savefig(out / "muffled_weather.png", dpi=120)
    print(f"\npicture: {out / 'muffled_weather.png'}")


if __name__ == "__main__":
    main()
