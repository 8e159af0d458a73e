"""What rejecting costs: risk (W + d R)/(n+ n-) against the cost d, for six ways to decide what to reject.

    python demos/reject_risk.py [--sets NAME ...] [--rows N] [--out FOLDER]

W pairs of one positive and one negative row are ranked wrong, R are rejected. Rejecting is worth its price only where
the risk falls as it becomes cheaper. Learners have their defaults and see raw values in one pass; every row is scored
before it is learned (prequential), so nothing is fitted to what measures it. Compared are

* AUCRO's pair rule on log-odds margins (the default), on the paper's margins (refused where alpha(d) <= 0), and
  AdaptiveAUCRO's;
* LR-R and SVM-BW, which leave out rows: a pair with such a row counts as rejected. SVM-BW is trained anew for each d;
* LR-R's log-odds under AUCRO's pair rule, to tell the rule from the learner.

A rise of the risk as d falls is shown with its standard error. Writes reject_risk.txt and reject_risk.png.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray
from table2_data import DataSet, available, read
from table2_paper import alpha, tau
from table2_protocol import pairs, rows_kept

from streamlearn import AUCRO, AdaptiveAUCRO, HingeReject, LogisticReject
from streamlearn.learners.auc.pairs import ALPHA_ROOT
from streamlearn.learners.base import BinaryScorer

mpl.use("Agg")
COSTS = (0.5, 0.48, 0.46, 0.44, 0.42, 0.4, 0.35, 0.3, 0.25, 0.2, 0.15)
HINGE_THRESHOLD = 0.5
N_GROUPS = 20
OUT = Path(__file__).parent / "out"
Row = NDArray[np.float64]
Rule = Callable[[float, NDArray[np.intp]], tuple[float, float, float, float]]
COLOURS = {
    "AUCRO, log-odds": "C0",
    "AdaptiveAUCRO": "C2",
    "AUCRO, paper's margins": "C4",
    "LR-R, pairs": "C5",
    "LR-R, rows": "C1",
    "SVM-BW, rows": "C3",
}


def scores_before(model: BinaryScorer, data: DataSet) -> Row:
    """Return the score of each row, made before it was learned."""
    return np.asarray(model.test_then_learn_many(data.X, data.y), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Curve:
    """What one rule costs on one set.

    Attributes
    ----------
    risk, rate : float64[n_costs]
        Risk and share of rejected pairs at each cost; NaN where the rule refuses the cost.
    rise : float
        By how much the risk rises at most as d falls, from the least it was at a greater cost.
    error : float
        Standard error of that rise, by a jackknife that leaves out one of `N_GROUPS` parts of the rows at a time.
    """

    risk: Row
    rate: Row
    rise: float
    error: float


def curves(data: DataSet) -> dict[str, Curve]:
    """Return the curve of each rule."""
    y = data.y
    log_odds = scores_before(AUCRO(), data)
    adaptive = scores_before(AdaptiveAUCRO(), data)
    margins = scores_before(AUCRO(margin="paper"), data)
    logistic = scores_before(LogisticReject(), data)
    hinge = {d: scores_before(HingeReject(reject_cost=d), data) for d in COSTS}
    rules: dict[str, Rule] = {
        "AUCRO, log-odds": lambda d, part: pairs(y[part], log_odds[part], d),
        "AdaptiveAUCRO": lambda d, part: pairs(y[part], adaptive[part], d),
        "AUCRO, paper's margins": lambda d, part: _paper_pairs(y[part], margins[part], d),
        "LR-R, pairs": lambda d, part: pairs(y[part], logistic[part], d),
        "LR-R, rows": lambda d, part: rows_kept(y[part], logistic[part], np.abs(logistic[part]) >= tau(d), d),
        "SVM-BW, rows": lambda d, part: _hinge(y[part], hinge[d][part], d),
    }
    return {name: _curve(rule, len(y)) for name, rule in rules.items()}


def _curve(rule: Rule, n_rows: int) -> Curve:
    found = np.array([rule(d, np.arange(n_rows)) for d in COSTS])
    risk = found[:, 3]
    high, low = steepest(risk)
    most = float(risk[low] - risk[high])
    # Rows far apart in the stream share a group, so that drift is in all of them alike.
    groups = [np.flatnonzero(np.arange(n_rows) % N_GROUPS != g) for g in range(N_GROUPS)]
    left = (
        np.array([rule(COSTS[low], part)[3] - rule(COSTS[high], part)[3] for part in groups]) if most else np.zeros(1)
    )
    error = float(np.sqrt((N_GROUPS - 1) * np.mean((left - left.mean()) ** 2)))
    return Curve(risk, found[:, 1], most, error)


def _paper_pairs(y: NDArray[np.int8], margins: Row, cost: float) -> tuple[float, float, float, float]:
    if cost <= ALPHA_ROOT:
        return (np.nan,) * 4
    return pairs(y, alpha(cost) * margins, cost)


def _hinge(y: NDArray[np.int8], scores: Row, cost: float) -> tuple[float, float, float, float]:
    kept = np.abs(scores) > HINGE_THRESHOLD if cost < COSTS[0] else np.ones(len(scores), dtype=bool)
    return rows_kept(y, scores, kept, cost)


def steepest(risk: Row) -> tuple[int, int]:
    """Return where the greatest rise of the risk begins and ends, as places in `COSTS`; NaN are passed over."""
    known = np.where(np.isfinite(risk), risk, np.inf)
    low = int(np.argmax(np.where(np.isfinite(risk), risk - np.minimum.accumulate(known), -1.0)))
    return int(np.argmin(known[: low + 1])), low


def block(data: DataSet, found: dict[str, Curve]) -> str:
    """Return the table of one set."""
    lines = [
        f"== {data.name}: {data.reading}",
        f"{'risk at d =':24}" + "".join(f"{d:8.2f}" for d in COSTS) + "   rise (error)",
    ]
    for name, curve in found.items():
        cells = "".join(f"{value:8.4f}" if np.isfinite(value) else f"{'':8}" for value in curve.risk)
        lines.append(f"{name:24}{cells}{curve.rise:+9.5f} ({curve.error:.5f})")
    lines.append("pairs rejected, %")
    for name, curve in found.items():
        rates = "".join(f"{100 * v:8.1f}" if np.isfinite(v) else f"{'':8}" for v in curve.rate)
        lines.append(f"{name:24}{rates}")
    return "\n".join(lines)


def picture(results: dict[str, dict[str, Curve]], path: Path) -> Path:
    """Draw risk against cost, one panel a set, as a share of the risk without rejects."""
    n_columns = min(len(results), 5)
    n_rows = -(-len(results) // n_columns)
    size = (max(3.0 * n_columns, 9.0), 2.8 * n_rows + 0.8)
    figure, axes = plt.subplots(n_rows, n_columns, figsize=size, squeeze=False, layout="constrained")
    for axis in axes.flat[len(results) :]:
        axis.set_visible(False)
    for axis, (name, found) in zip(axes.flat, results.items(), strict=False):
        for rule, curve in found.items():
            axis.plot(COSTS, curve.risk / curve.risk[0], color=COLOURS[rule], label=rule, linewidth=1.6)
        axis.axhline(1.0, color="black", linewidth=0.7)
        axis.set(title=name, xlabel="cost d of rejecting", ylim=(0.3, 2.5))
        axis.invert_xaxis()
        axis.grid(alpha=0.25)
        axis.spines[["top", "right"]].set_visible(False)
    for axis in axes[:, 0]:
        axis.set_ylabel("risk / risk at d = .5")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=6, frameon=False)
    figure.savefig(path, dpi=130)
    plt.close(figure)
    return path


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line; run each set; print, write, draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    there = available()
    parser.add_argument("--sets", nargs="+", choices=there, default=there, metavar="NAME", help=", ".join(there))
    parser.add_argument("--rows", type=int, default=20_000, help="most rows of a set (20,000)")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    results = {}
    lines = []
    for name in options.sets:
        data = read(name, max_rows=options.rows, seed=0)
        results[name] = curves(data)
        lines.append(block(data, results[name]))
        print(f"{lines[-1]}\n", flush=True)
    worst = {
        rule: max((found[rule].rise, found[rule].error, name) for name, found in results.items()) for rule in COLOURS
    }
    lines.append("greatest rise of the risk as d falls (its standard error):")
    lines += [f"{rule:24}{most:+9.5f} ({error:.5f})  on {name}" for rule, (most, error, name) in worst.items()]
    print("\n".join(lines[-len(worst) - 1 :]))
    (options.out / "reject_risk.txt").write_text("\n\n".join(lines[: len(results)]) + "\n\n")
    with (options.out / "reject_risk.txt").open("a") as file:
        file.write("\n".join(lines[len(results) :]) + "\n")
    print(picture(results, options.out / "reject_risk.png"))


if __name__ == "__main__":
    main()
