"""The pictures of the family pages, one function each.

    python demos/docs/pictures.py

draws them into demos/docs/_made/; `build.py` does so before the pages are built.
"""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.datasets import make_moons

from streamlearn import AUCRO, AdaptiveAUCRO, HedgeMower, HingeReject, LogisticReject, ORLRegressor
from streamlearn.evaluation import prequential

HERE = Path(__file__).parent
WEATHER = HERE.parent / "data" / "noaa_weather.csv.gz"
BLUE, RED, GREEN = "#0072b2", "#d55e00", "#009e73"

Array = NDArray[np.float64]


def weather() -> tuple[Array, NDArray[np.int64]]:
    """Return 50 years of daily weather and whether it rained."""
    with gzip.open(WEATHER, "rt") as file:
        _, *rows = csv.reader(file)
    table = np.array(rows, dtype=float)
    return np.ascontiguousarray(table[:, :-1]), table[:, -1].astype(np.int64)


def auc() -> Figure:
    """AUC of the last 2000 days while the weather drifts: one memory, and a mixture of memories."""
    figure, axes = canvas()
    metric = "auc:window=2000"
    for learner, colour in ((AdaptiveAUCRO(), BLUE), (AUCRO(), RED)):
        report = prequential(weather(), learner, [metric], every=250)
        name = next(iter(report.trajectories))
        axes.plot(report.at[8:], report.trajectories[name][8:], color=colour, label=learner.name)
    axes.set(xlabel="days", ylabel="AUC of the last 2000 days")
    axes.legend()
    return figure


def reject() -> Figure:
    """Error among the days that are decided, by the share of those that are not: the least certain go first."""
    X, y = weather()
    figure, axes = canvas()
    for learner, colour in ((LogisticReject(), BLUE), (HingeReject(), RED), (AdaptiveAUCRO(), GREEN)):
        tested = learner.test_then_learn_columns(tuple(range(X.shape[1])), X, y)
        sure = np.abs(tested.probabilities - 0.5)
        order = np.argsort(-sure, kind="stable")
        wrong = np.cumsum((tested.probabilities >= 0.5)[order] != y[order])
        kept = np.arange(len(y) // 5, len(y) + 1)
        axes.plot(1 - kept / len(y), wrong[kept - 1] / kept, color=colour, label=learner.name)
    axes.set(xlabel="share of days without a forecast", ylabel="error of the forecasts", xlim=(0, 0.8))
    axes.legend()
    return figure


def robust() -> Figure:
    """Distance to the true coefficients while every fifth row is wrong: robust, and least squares of all rows."""
    rng = np.random.default_rng(0)
    n, true = 4000, np.array([2.0, -1.0, 0.5])
    X = rng.normal(size=(n, 3))
    y = X @ true + 0.5 * rng.normal(size=n)
    bad = rng.random(n) < 0.2
    X[bad], y[bad] = X[bad] + 3.0, -50.0
    model, at = ORLRegressor(), np.arange(100, n + 1, 100)
    errors = []
    for stop in at:
        model.learn_many(X[stop - 100 : stop], y[stop - 100 : stop])
        plain = np.linalg.lstsq(np.column_stack([X[:stop], np.ones(stop)]), y[:stop], rcond=None)[0][:3]
        errors.append([np.linalg.norm(model.coef_ - true), np.linalg.norm(plain - true)])
    figure, axes = canvas()
    for column, (name, colour) in enumerate((("ORLRegressor", BLUE), ("least squares", RED))):
        axes.semilogy(at, np.array(errors)[:, column], color=colour, label=name)
    axes.set(xlabel="rows, one in five of them wrong", ylabel="distance to the true coefficients")
    axes.legend()
    return figure


def muffled() -> Figure:
    """Two moons by ten labels and 590 rows without one; beside it by the ten labels alone."""
    X, y = make_moons(600, noise=0.15, random_state=3)
    shown = np.random.default_rng(3).choice(len(y), 10, replace=False)
    labels = np.full(len(y), np.nan)
    labels[shown] = y[shown]
    ground = np.stack(np.meshgrid(np.linspace(-1.7, 2.7, 120), np.linspace(-1.2, 1.7, 90)), axis=-1)
    figure = Figure(figsize=(9, 3.6), dpi=120, layout="constrained")
    models = (HedgeMower().fit(X, labels), LogisticReject().learn_many(X[shown], y[shown]))
    for axes, model in zip(figure.subplots(1, 2), models, strict=True):
        p = model.predict_proba_many(ground.reshape(-1, 2))[:, 1].reshape(90, 120)
        axes.contourf(ground[..., 0], ground[..., 1], p, levels=np.linspace(0, 1, 11), cmap="RdBu", alpha=0.6)
        axes.scatter(*X.T, s=4, color="grey")
        axes.scatter(*X[shown].T, s=60, c=np.where(y[shown] == 1, BLUE, RED), edgecolors="black")
        right = ((model.predict_proba_many(X)[:, 1] >= 0.5) == y).mean()
        axes.set_title(f"{model.name}: {right:.0%} right", loc="left")
    return figure


PICTURES = (auc, reject, robust, muffled)


def canvas() -> tuple[Figure, mpl.axes.Axes]:
    """Return a figure of one panel."""
    figure = Figure(figsize=(8, 3.6), dpi=120, layout="constrained")
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def draw_all(folder: Path) -> None:
    """Write every picture as PNG, named like its function."""
    for picture in PICTURES:
        picture().savefig(folder / f"{picture.__name__}.png", metadata={"Software": None})


if __name__ == "__main__":
    (HERE / "_made").mkdir(exist_ok=True)
    draw_all(HERE / "_made")
