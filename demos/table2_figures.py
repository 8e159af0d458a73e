"""Figures 1 to 4 of the AUCRO paper: reject curves beside LR-R and SVM-BW; influence of step, penalty, events seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import PercentFormatter
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold
from table2_data import DataSet, read
from table2_learners import CONTESTANTS, Tuning, chosen, powers, scaled
from table2_paper import COSTS, alpha
from table2_protocol import pairs

from streamlearn import AUCRO
from streamlearn.evaluation import RejectCurve, RejectPoints
from streamlearn.learners.base import BinaryScorer

mpl.use("Agg")
WIDEST = 8.0  # the largest tau of the curve's default costs
SHOWN_RATE = 0.9  # beyond it too few pairs are left to say anything
N_FOLDS = 3
TUNING = Tuning(n_repeats=1, n_folds=3, max_rows=1000, stride=2)
COLOURS = {"AUCRO": "C0", "LR-R": "C1", "SVM-BW": "C3"}
Margin = Literal["paper", "log-odds"]
MARGINS: tuple[Margin, ...] = ("paper", "log-odds")
COST_OF_CURVE = 0.42  # the hinge is bent for this cost; its band is then varied


def draw_all(sets: Sequence[str], out: Path, *, max_rows: int) -> list[Path]:
    """Draw the four figures from at most `max_rows` rows of each set; return their paths."""
    out.mkdir(parents=True, exist_ok=True)
    folds = {name: _folds(read(name, max_rows=max_rows, seed=0)) for name in sets}
    return [
        reject_curves(folds, out / "figure1_reject_curves.png"),
        influence(folds, "learning_rate", powers(2.0, -12, 0), "step", out / "figure2_step.png"),
        influence(folds, "regularization", powers(2.0, -10, 2), "regularisation", out / "figure3_regularisation.png"),
        events_seen(folds, out / "figure4_events.png"),
    ]


Folds = list[tuple[DataSet, DataSet, dict[str, dict[str, float]]]]


def _folds(data: DataSet) -> Folds:
    """Return scaled training and test rows, and the parameters tuned for each learner, of each fold."""
    found = []
    split = StratifiedKFold(n_splits=N_FOLDS, shuffle=True, random_state=0)
    for fold, (inside, outside) in enumerate(split.split(data.X, data.y)):
        order = np.random.default_rng(fold).permutation(inside)
        tuned = {
            name: chosen(CONTESTANTS[name], data.part(order), TUNING, fold) for name in ("AUCRO sgd", "LR-R", "SVM-BW")
        }
        found.append((*scaled(data, order, outside), tuned))
    return found


# Figure 1


def reject_curves(folds: Mapping[str, Folds], path: Path) -> Path:
    """Draw AUC against the reject rate, at equal rates of pairs, and as in the paper: pairs beside single rows."""
    figure, axes = _grid(len(folds), 2)
    for column, (name, parts) in enumerate(folds.items()):
        train, test, tuned = parts[0]
        ours = {margin: AUCRO(margin=margin, clip=None).learn_many(train.X, train.y) for margin in MARGINS}
        curve = _curve(test, ours["paper"])
        above, below = axes[0, column], axes[1, column]
        for axis in (above, below):
            _line(axis, curve.reject_rate, curve.auc, "AUCRO", "AUCRO, pairs")
            _mark_costs(axis, ours, test)
        for peer in ("LR-R", "SVM-BW"):
            model = CONTESTANTS[peer].fit(train, COST_OF_CURVE, tuned[peer])
            other = _curve(test, model)
            _line(above, other.event_pair_reject_rate, other.event_auc, peer, f"{peer}, rows")
            _line(below, other.event_reject_rate, other.event_auc, peer, f"{peer}, rows")
        above.set(title=name)
        above.set_xlabel("pairs rejected")
        below.set_xlabel("pairs or rows rejected")
        for axis in (above, below):
            axis.xaxis.set_major_formatter(PercentFormatter(1.0))
    axes[0, 0].set_ylabel("AUC of what is ranked\nat equal rates of pairs")
    axes[1, 0].set_ylabel("AUC of what is ranked\nas in the paper")
    _legend(figure, axes[0, 0])
    return _save(figure, path)


def _curve(test: DataSet, model: BinaryScorer) -> RejectPoints:
    """Return the curve of a model's scores, their unit chosen so that the thresholds cover the differences."""
    scores = np.asarray(model.score_many(test.X))
    low, high = np.quantile(scores, [0.001, 0.999])
    metric = RejectCurve()
    metric.update_many(test.y, scores * (WIDEST / (high - low)))
    return metric.points()


def _line(axis: Any, rate: NDArray[np.float64], auc: NDArray[np.float64], colour: str, label: str) -> None:
    shown = (rate <= SHOWN_RATE) & np.isfinite(auc)
    axis.plot(rate[shown], auc[shown], color=COLOURS[colour], label=label, linewidth=1.6)


def _mark_costs(axis: Any, ours: Mapping[Margin, AUCRO], test: DataSet) -> None:
    """Mark where the costs of the table lie on the curve, which is the same for both margins."""
    for (margin, model), marker in zip(ours.items(), "os", strict=True):
        scores = np.asarray(model.score_many(test.X))
        scaled_by = alpha if margin == "paper" else _one
        points = np.array([pairs(test.y, scaled_by(d) * scores, d)[:2] for d in COSTS])
        label = f"d = .50 ... .42 by {'the paper' if margin == 'paper' else 'log-odds'}"
        axis.plot(points[:, 1], points[:, 0], marker, color=COLOURS["AUCRO"], markersize=5, mfc="white", label=label)


def _one(_: float) -> float:
    return 1.0


# Figures 2 to 4


def influence(folds: Mapping[str, Folds], parameter: str, values: Sequence[float], label: str, path: Path) -> Path:
    """Draw AUC of the ranked pairs against one parameter of AUCRO by gradient, the other as tuned.

    Where steps are too short or the penalty too strong, margins stay small and nearly all pairs are rejected: the AUC
    of the few left is high at d < 1/2, and says little.
    """
    figure, axes = _grid(2, 1)
    for k, (name, parts) in enumerate(folds.items()):
        found = np.array([[_ranked(part, "AUCRO sgd", {parameter: value}) for value in values] for part in parts])
        tuned = np.median([part[2]["AUCRO sgd"][parameter] for part in parts])
        for axis, column in zip(axes[0], (0, 1), strict=True):
            mean = found[:, :, column].mean(axis=0)
            axis.plot(values, mean, color=f"C{k}", marker=".", label=name)
            axis.plot(tuned, np.interp(np.log(tuned), np.log(values), mean), "o", color=f"C{k}", mfc="white")
    _set_axes(axes[0], label)
    for axis in axes[0]:
        axis.set_xscale("log", base=2)
    _legend(figure, axes[0, 0], f"AUCRO by gradient; rings: {label} as tuned on training rows")
    return _save(figure, path)


def events_seen(folds: Mapping[str, Folds], path: Path) -> Path:
    """Draw AUC of the ranked pairs against the number of events learned, by gradient and in closed form."""
    figure, axes = _grid(2, 1)
    for k, (name, parts) in enumerate(folds.items()):
        n = min(len(train.y) for train, _, _ in parts)
        counts = np.unique(np.geomspace(min(50, n), n, 9).astype(int))
        for learner, style in (("AUCRO sgd", "-"), ("AUCRO exact", ":")):
            found = np.array([[_ranked(part, learner, {}, count) for count in counts] for part in parts])
            for axis, column in zip(axes[0], (0, 1), strict=True):
                label = name if style == "-" else None
                axis.plot(counts, found[:, :, column].mean(axis=0), style, color=f"C{k}", label=label)
    _set_axes(axes[0], "events learned")
    for axis in axes[0]:
        axis.set_xscale("log")
    _legend(figure, axes[0, 0], "lines: by gradient as tuned; dots: in closed form")
    return _save(figure, path)


def _ranked(
    part: tuple[DataSet, DataSet, dict[str, dict[str, float]]],
    learner: str,
    changes: Mapping[str, float],
    n_rows: int | None = None,
) -> tuple[float, float]:
    """Return the AUC of the ranked pairs at d = 1/2 and at the lowest cost, NaN where nothing is ranked."""
    train, test, tuned = part
    first = train if n_rows is None else train.part(np.arange(n_rows))
    model = CONTESTANTS[learner].fit(first, 0.5, {**tuned.get(learner, {}), **changes})
    scores = np.asarray(model.score_many(test.X))
    at_half, at_lowest = (pairs(test.y, alpha(d) * scores, d)[0] for d in (COSTS[0], COSTS[-1]))
    return at_half, at_lowest


def _set_axes(axes: Any, label: str) -> None:
    for axis, cost in zip(axes, (COSTS[0], COSTS[-1]), strict=True):
        axis.set(xlabel=label, ylabel="AUC of the ranked pairs", title=f"d = {cost:.2f}")


# Drawing


def _grid(n_columns: int, n_rows: int) -> tuple[Any, Any]:
    width = 3.2 * n_columns if n_rows > 1 else 5.0 * n_columns
    size = (max(width, 6.5), 3.0 * n_rows + 1.0)
    return plt.subplots(n_rows, n_columns, figsize=size, squeeze=False, layout="constrained")


def _legend(figure: Any, axis: Any, title: str | None = None) -> None:
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles, labels, title=title, loc="outside upper center", ncols=min(len(labels), 9), frameon=False)


def _save(figure: Any, path: Path) -> Path:
    for axis in figure.axes:
        axis.grid(alpha=0.25)
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)
    plt.close(figure)
    return path
