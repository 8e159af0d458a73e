"""The cells of the cross-validation as tables: ours, the paper's, the two-Gaussian prediction, and their agreement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from table2_paper import COSTS, published, two_gaussians
from table2_protocol import Cell

TOLERANCE = 0.005
PUBLISHED = ("AUCRO sgd", "AUCRO exact", "OPAUC")
"""Learners with known numbers of the paper beside them."""
Column = Literal["auc", "pair_rate", "row_rate", "risk"]
Row = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Summary:
    """What the folds of one set gave that are finished.

    Attributes
    ----------
    name, reading : str
    cells : sequence of Cell
    parameters : sequence of {learner: parameters}, one for each fold
    n_repeats, n_folds : int
        How many there are to be.
    """

    name: str
    reading: str
    cells: Sequence[Cell]
    parameters: Sequence[dict[str, dict[str, float]]]
    n_repeats: int
    n_folds: int

    @property
    def learners(self) -> list[str]:
        """Names, in the order they were run."""
        return list(dict.fromkeys(cell.learner for cell in self.cells))

    def missing(self, learner: str) -> str:
        """Return how much of a learner's folds there is, where it is not all."""
        n = len({cell.fold for cell in self.cells if cell.learner == learner})
        if n == self.n_repeats * self.n_folds:
            return ""
        whole, rest = divmod(n, self.n_folds)
        return f"{whole} of {self.n_repeats} repeats" + (f" and {rest} folds" if rest else "")

    def over_folds(self, learner: str, column: Column) -> tuple[Row, Row]:
        """Return mean and standard deviation at each of `COSTS`; NaN where there is nothing."""
        means, spreads = np.full((2, len(COSTS)), np.nan)
        for i, cost in enumerate(COSTS):
            values = np.array([getattr(c, column) for c in self.cells if c.learner == learner and c.cost == cost])
            values = values[np.isfinite(values)]
            if len(values):
                means[i] = values.mean()
                spreads[i] = values.std(ddof=1) if len(values) > 1 else np.nan
        return means, spreads

    def paper(self, learner: str) -> Row:
        """Return the known numbers of the paper for a learner: OPAUC's is AUCRO's at d = 1/2."""
        if learner not in PUBLISHED:
            return np.full(len(COSTS), np.nan)
        row = published(self.name)
        if learner == "OPAUC":
            row[1:] = np.nan
        return row

    def predicted(self, learner: str) -> tuple[Row, Row]:
        """Return AUC and reject rate that the two-Gaussian model makes of the learner's own AUC at d = 1/2."""
        own = self.over_folds(learner, "auc")[0][0]
        auc, rate = zip(*(two_gaussians(own, cost) for cost in COSTS), strict=True)
        return np.array(auc), np.array(rate)


def block(summary: Summary) -> str:
    """Return the table of one set."""
    head = "".join(f"{f'd = {cost:.2f}':>17}" for cost in COSTS)
    lines = [
        f"== {summary.name}: {summary.reading}",
        f"{'':20}{head}   pairs rejected at these d, %        rows rejected, %",
    ]
    for learner in summary.learners:
        auc, spread = summary.over_folds(learner, "auc")
        pair_rate, row_rate = (summary.over_folds(learner, c)[0] for c in ("pair_rate", "row_rate"))
        cells = "".join(f"{_cell(m, s):>17}" for m, s in zip(auc, spread, strict=True))
        lines.append(f"{learner:20}{cells}   {_rates(pair_rate)}   {_rates(row_rate)}".rstrip())
        if summary.missing(learner):
            lines[-1] += f"   {summary.missing(learner)}"
        paper = summary.paper(learner)
        if np.isfinite(paper).any():
            lines.append(f"{'  paper':20}" + "".join(f"{_paper(p, i):>17}" for i, p in enumerate(paper)))
        if learner in PUBLISHED[:2]:
            predicted, rate = summary.predicted(learner)
            cells = "".join(f"{_cell(p, np.nan):>17}" for p in predicted)
            lines.append(f"{'  two Gaussians':20}{cells}   {_rates(rate)}")
    lines.append("chosen most often: " + "; ".join(_chosen(summary)))
    return "\n".join(lines)


def agreement(summaries: Sequence[Summary]) -> str:
    """Return how far ours are from the paper's, and from the two-Gaussian model, over all sets."""
    lines = [
        "Ours minus the paper's AUC, at d = .50 .48 .46 .44 .42 (at .50 the implied one).",
        f"strict: all within {TOLERANCE}; with sd: within {TOLERANCE} + one standard deviation over our folds, as",
        "those of the paper are not known here.",
    ]
    for learner in [name for name in PUBLISHED if any(name in summary.learners for summary in summaries)]:
        lines.append(f"-- {learner}")
        verdicts = []
        for summary in (s for s in summaries if learner in s.learners):
            difference, spread = _difference(summary, learner)
            if not np.isfinite(difference).any():
                continue
            verdicts.append((_within(difference, 0.0 * spread), _within(difference, spread)))
            shown = "".join(f"{d:+9.4f}" if np.isfinite(d) else f"{'':9}" for d in difference)
            words = " ".join("yes" if verdict else "no " for verdict in verdicts[-1])
            lines.append(f"{summary.name:14}{shown}   strict, with sd: {words} {summary.missing(learner)}".rstrip())
        strict, lenient = (sum(v[k] for v in verdicts) for k in (0, 1))
        lines.append(f"agree: {strict} of {len(verdicts)} strictly, {lenient} of {len(verdicts)} with sd")
    lines.append("-- ours minus what two Gaussians with our AUC at d = 1/2 give: AUC, reject rate at d = .48 ... .42")
    lines += [
        f"{summary.name:14}{learner:12}" + _against_model(summary, learner)
        for summary in summaries
        for learner in PUBLISHED[:2]
        if learner in summary.learners
    ]
    return "\n".join(lines)


def _difference(summary: Summary, learner: str) -> tuple[Row, Row]:
    mean, spread = summary.over_folds(learner, "auc")
    return mean - summary.paper(learner), spread


def _within(difference: Row, spread: Row) -> bool:
    known = np.isfinite(difference)
    return bool((np.abs(difference[known]) <= TOLERANCE + np.nan_to_num(spread[known])).all())


def _against_model(summary: Summary, learner: str) -> str:
    predicted, rate = summary.predicted(learner)
    auc = summary.over_folds(learner, "auc")[0] - predicted
    rates = summary.over_folds(learner, "pair_rate")[0] - rate
    return " ".join(f"{v:+.4f}" for v in auc[1:]) + "   " + " ".join(f"{v:+.3f}" for v in rates[1:])


def _chosen(summary: Summary) -> list[str]:
    found = []
    for learner in summary.learners:
        choices = [tuple(p[learner].items()) for p in summary.parameters if p.get(learner)]
        if choices:
            most = max(sorted(set(choices)), key=choices.count)
            found.append(f"{learner} " + ", ".join(f"{name} = {value:.3g}" for name, value in most))
    return found


def _cell(mean: float, spread: float) -> str:
    if not np.isfinite(mean):
        return ""
    return f"{mean:.4f}" + (f" ({spread:.4f})" if np.isfinite(spread) else "         ")


def _paper(value: float, column: int) -> str:
    # The number at d = 1/2 was not printed but follows from those that were computed from it.
    return "" if not np.isfinite(value) else f"{value:.4f}" + (" implied " if column == 0 else "         ")


def _rates(rates: Row) -> str:
    return " ".join(f"{100 * rate:5.1f}" if np.isfinite(rate) else f"{'':5}" for rate in rates)
