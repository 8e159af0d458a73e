"""Cross-validation of the learners of Table 2: AUC of what is ranked, reject rates and risk, fold by fold."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import RepeatedStratifiedKFold
from table2_data import DataSet
from table2_learners import CONTESTANTS, RACE_AFTER, RACE_MARGIN, Contestant, Tuning, chosen, scaled
from table2_paper import COSTS, alpha, tau

from streamlearn.evaluation import AUC, RejectAUC, RejectRate, RejectRisk
from streamlearn.learners.base import BinaryScorer

if TYPE_CHECKING:
    from table2_finished import Finished

LARGE = 20_000


@dataclass(frozen=True, slots=True)
class Plan:
    """How much of the protocol is run; the paper has 5 x 5 folds.

    Attributes
    ----------
    n_repeats, n_folds : int
    n_large_repeats : int
        Repeats for sets of over `LARGE` rows: their folds are large enough to agree with each other.
    max_rows : int
        Rows of a set that take part.
    tuning : Tuning
    seed : int
        Of the folds; rows are shuffled with it before, and inner folds follow from it.
    split_seed : int or None
        Of the random halves of the classes of multi-class sets.
    """

    n_repeats: int = 5
    n_folds: int = 5
    n_large_repeats: int = 5
    max_rows: int = 70_000
    tuning: Tuning = field(default_factory=Tuning)
    seed: int = 0
    split_seed: int | None = None

    def repeats(self, n_rows: int) -> int:
        """Return the repeats for a set of so many rows."""
        return self.n_large_repeats if n_rows > LARGE else self.n_repeats

    def key(self) -> dict[str, Any]:
        """Return what the numbers of a fold depend on: all but how many repeats there are."""
        return {name: value for name, value in asdict(self).items() if not name.endswith("repeats")}

    def text(self) -> str:
        """Return what is run, for the head of the output."""
        t = self.tuning
        groups = "named per set" if self.split_seed is None else f"drawn with seed {self.split_seed}"
        return (
            f"{self.n_repeats} x {self.n_folds} stratified folds, {self.n_large_repeats} x {self.n_folds} of sets with "
            f"over {LARGE} rows; at most {self.max_rows} rows of a set; seed {self.seed}\n"
            f"classes of multi-class sets {groups}\n"
            f"tuning on training rows only, by the AUC of all pairs: {t.n_repeats} x {t.n_folds} inner folds of at "
            f"most {t.max_rows} rows and {t.max_values} values, one in {t.stride} values of the paper's grids; "
            f"candidates {RACE_MARGIN} of AUC behind the best of {RACE_AFTER} inner folds end there"
        )


@dataclass(frozen=True, slots=True)
class Cell:
    """One learner at one cost on one fold.

    Attributes
    ----------
    learner : str
    fold : int
    cost : float
    auc : float
        Of the ranked pairs; of the pairs of two kept rows for learners that leave out rows.
    pair_rate : float
        Share of pairs that are not ranked.
    row_rate : float
        Share of rows left out; NaN for learners that reject pairs.
    risk : float
        Share of wrong pairs plus cost times share of rejected ones; a pair with a row left out is a rejected pair.
    """

    learner: str
    fold: int
    cost: float
    auc: float
    pair_rate: float
    row_rate: float
    risk: float


@dataclass(frozen=True, slots=True)
class Result:
    """What one learner did on one fold: its cells, and the parameters chosen for it."""

    cells: list[Cell]
    parameters: dict[str, float]


def run(data: DataSet, names: Sequence[str], plan: Plan, finished: Finished) -> None:
    """Measure what is not finished yet of the learners on a set, fold by fold."""
    outer = RepeatedStratifiedKFold(n_splits=plan.n_folds, n_repeats=plan.repeats(len(data.y)), random_state=plan.seed)
    for fold, (inside, outside) in enumerate(outer.split(data.X, data.y)):
        missing = [name for name in names if finished.get(data.name, name, fold) is None]
        if not missing:
            continue
        order = np.random.default_rng([plan.seed, fold]).permutation(inside)
        raw, (train, test) = data.part(order), scaled(data, order, outside)
        for name in missing:
            began = time.process_time()
            # AUCRO at d = 1/2 is OPAUC: what is chosen for the one serves the other.
            twin = finished.get(data.name, "AUCRO sgd", fold) if name == "OPAUC" else None
            parameters = twin.parameters if twin else chosen(CONTESTANTS[name], raw, plan.tuning, plan.seed + fold)
            cells = measured(CONTESTANTS[name], train, test, parameters, fold)
            finished.add(data.name, name, fold, Result(cells, parameters), time.process_time() - began)


def measured(
    contestant: Contestant, train: DataSet, test: DataSet, parameters: dict[str, float], fold: int
) -> list[Cell]:
    """Return the cells of one learner on one fold."""
    costs = (0.5,) if contestant.rejects == "nothing" else COSTS
    model = contestant.fit(train, 0.5, parameters)
    cells = []
    for cost in costs:
        if contestant.trained_per_cost and cost < 0.5:
            model = contestant.fit(train, cost, parameters)
        auc, pair_rate, row_rate, risk = MEASURES[contestant.rejects](model, test, cost)
        cells.append(Cell(contestant.name, fold, cost, auc, pair_rate, row_rate, risk))
    return cells


Measured = tuple[float, float, float, float]


def pairs(y: NDArray[np.int8], margins: NDArray[np.float64], cost: float) -> Measured:
    """Return AUC, pair reject rate, NaN and risk of the rule that ranks a pair whose margins differ by over tau(d)."""
    metrics = RejectAUC(cost), RejectRate(cost), RejectRisk(cost)
    for metric in metrics:
        metric.update_many(y, margins)
    auc, rate, risk = (metric.get() for metric in metrics)
    return auc, rate, float("nan"), risk


def rows_kept(y: NDArray[np.int8], scores: NDArray[np.float64], kept: NDArray[np.bool_], cost: float) -> Measured:
    """Return AUC of the pairs of two kept rows, share of the other pairs, share of the other rows, and risk."""
    n_pairs = float((y == 1).sum()) * float((y == 0).sum())
    kept_pairs = float((y[kept] == 1).sum()) * float((y[kept] == 0).sum())
    metric = AUC()
    metric.update_many(y[kept], scores[kept])
    auc, rate = metric.get(), 1.0 - kept_pairs / n_pairs
    wrong = (1.0 - auc) * kept_pairs / n_pairs if kept_pairs else 0.0
    return auc, rate, 1.0 - float(kept.mean()), wrong + cost * rate


def _paper_pairs(model: BinaryScorer, test: DataSet, cost: float) -> Measured:
    return pairs(test.y, alpha(cost) * np.asarray(model.score_many(test.X)), cost)


def _log_odds_pairs(model: BinaryScorer, test: DataSet, cost: float) -> Measured:
    return pairs(test.y, np.asarray(model.score_many(test.X)), cost)


def _log_odds_rows(model: BinaryScorer, test: DataSet, cost: float) -> Measured:
    scores = np.asarray(model.score_many(test.X))
    return rows_kept(test.y, scores, np.abs(scores) >= tau(cost), cost)


def _hinge_rows(model: BinaryScorer, test: DataSet, cost: float) -> Measured:
    kept = np.array([label is not None for label in model.predict_many(test.X)])
    return rows_kept(test.y, np.asarray(model.score_many(test.X)), kept, cost)


MEASURES = {
    "paper pairs": _paper_pairs,
    "pairs": _log_odds_pairs,
    "nothing": _log_odds_pairs,
    "log-odds events": _log_odds_rows,
    "hinge events": _hinge_rows,
}
