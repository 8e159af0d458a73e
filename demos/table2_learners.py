"""The learners of Table 2 as the paper ran them: parameters, grids, and the choice of parameters on training rows.

Features come scaled, so nothing is scaled or cut here. Every learner sees its rows once, in order, but LR-R and SVM-BW:
the paper fitted these in batch, so they see them `BATCH_PASSES` times.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import RepeatedStratifiedKFold
from table2_data import DataSet, to_range

from streamlearn import AUCRO, FSAUC, OPAUC, HingeReject, LogisticReject, OAMgd, OAMseq
from streamlearn.evaluation import AUC
from streamlearn.learners.base import BinaryScorer

BATCH_PASSES = 5
TIE = 0.001  # differences of inner AUC below this say nothing
RACE_AFTER, RACE_MARGIN = 2, 0.02  # inner folds, and how far behind the best of them a candidate goes on
Parameters = Mapping[str, Any]  # numbers, for constructors that also take words
Grid = Mapping[str, tuple[float, ...]]


def powers(base: float, low: int, high: int) -> tuple[float, ...]:
    """Return base^low ... base^high."""
    return tuple(base**k for k in range(low, high + 1))


# The paper goes on to 2^10 for the step; a step above 1 is refused by the learner, and diverges on all of these sets.
SGD_GRID = {"learning_rate": powers(2.0, -12, 0), "regularization": powers(2.0, -10, 2)}
FSAUC_GRID = {"learning_rate": powers(2.0, -10, 10), "radius": powers(10.0, -1, 5)}
OAM_GRID = {"C": powers(2.0, -10, 10)}
LINEAR_GRID = {"l2": powers(2.0, -10, 10)}


@dataclass(frozen=True, slots=True)
class Contestant:
    """One row of the table.

    Attributes
    ----------
    name : str
    make : callable, (cost of rejecting, parameters) -> untrained learner
    rejects : str
        "paper pairs" and "pairs" compare margins of two rows with tau(d), the first after multiplying them by alpha(d);
        "log-odds events" and "hinge events" leave out single rows; "nothing" only ranks.
    grid : mapping of parameter to values
        The paper's, from which parameters are chosen by inner cross-validation.
    n_passes : int
    """

    name: str
    make: Callable[[float, Parameters], BinaryScorer]
    rejects: str
    grid: Grid = field(default_factory=dict)
    n_passes: int = 1

    @property
    def trained_per_cost(self) -> bool:
        """Whether the cost of rejecting enters the loss that is minimised."""
        return self.rejects == "hinge events"

    def fit(self, rows: DataSet, cost: float, parameters: Parameters) -> BinaryScorer:
        """Return the learner trained on scaled rows."""
        model = self.make(cost, parameters)
        for _ in range(self.n_passes):
            model.learn_many(rows.X, rows.y)
        return model


CONTESTANTS = {
    c.name: c
    for c in (
        Contestant(
            "AUCRO sgd",
            lambda d, p: AUCRO(reject_cost=d, solver="sgd", margin="paper", scale="none", clip=None, **p),
            "paper pairs",
            SGD_GRID,
        ),
        Contestant("AUCRO exact", lambda d, _: AUCRO(reject_cost=d, margin="paper", clip=None), "paper pairs"),
        Contestant("AUCRO log-odds", lambda d, _: AUCRO(reject_cost=d), "pairs"),
        Contestant("OPAUC", lambda _, p: OPAUC(scale="none", clip=None, **p), "nothing", SGD_GRID),
        Contestant("FSAUC", lambda _, p: FSAUC(scale="none", **p), "nothing", FSAUC_GRID),
        Contestant("OAMseq", lambda _, p: OAMseq(scale="none", buffer_size=100, **p), "nothing", OAM_GRID),
        Contestant("OAMgd", lambda _, p: OAMgd(scale="none", buffer_size=100, **p), "nothing", OAM_GRID),
        Contestant(
            "LR-R",
            lambda d, p: LogisticReject(reject_cost=d, scale="none", **p),
            "log-odds events",
            LINEAR_GRID,
            BATCH_PASSES,
        ),
        Contestant(
            "SVM-BW",
            lambda d, p: HingeReject(reject_cost=d, scale="none", **p),
            "hinge events",
            LINEAR_GRID,
            BATCH_PASSES,
        ),
    )
}


@dataclass(frozen=True, slots=True)
class Tuning:
    """How parameters are chosen; the paper has 2 x 5 folds of all training rows and whole grids.

    Attributes
    ----------
    n_repeats, n_folds : int
    max_rows, max_values : int
        Rows of the training part that take part in the choice: so many, and so many values of features, at most.
    stride : int
        Every so many-th value of a grid is tried.
    """

    n_repeats: int = 2
    n_folds: int = 5
    max_rows: int = 15_000
    max_values: int = 4_500_000
    stride: int = 2

    def rows(self, shape: tuple[int, ...]) -> int:
        """Return the rows that take part, of a training part of this shape."""
        return min(shape[0], self.max_rows, max(self.max_values // shape[1], 1))

    def candidates(self, grid: Grid) -> list[dict[str, float]]:
        """Return the combinations to try."""
        values = ([(name, value) for value in column[:: self.stride]] for name, column in grid.items())
        return [dict(combination) for combination in itertools.product(*values)]


def chosen(contestant: Contestant, train: DataSet, tuning: Tuning, seed: int) -> dict[str, float]:
    """Return the parameters with the best mean AUC over inner folds of the raw training rows.

    The criterion is the AUC of all pairs: that of the ranked pairs alone would favour the parameters that reject most.
    Candidates `RACE_MARGIN` behind the best after `RACE_AFTER` folds are not tried on the others.
    The AUC is blind to the size of the weights, on which the paper's reject rule depends, so that among candidates
    within `TIE` of the best the one with the least square loss of pairs is taken, where the rule is the paper's.
    Weights for cost d are those for 1/2 times a factor, so one choice serves all costs; SVM-BW is tuned at d = 1/2.
    """
    candidates = tuning.candidates(contestant.grid)
    if len(candidates) == 1:
        return candidates[0]
    small = train.part(np.arange(tuning.rows(train.X.shape)))
    folds = RepeatedStratifiedKFold(n_splits=tuning.n_folds, n_repeats=tuning.n_repeats, random_state=seed)
    found = np.full((tuning.n_folds * tuning.n_repeats, len(candidates), 2), np.nan)
    racing = np.ones(len(candidates), dtype=np.bool_)
    for fold, (inside, outside) in enumerate(folds.split(small.X, small.y)):
        fitted, held_out = scaled(small, np.sort(inside), outside)
        for k in np.flatnonzero(racing):
            found[fold, k] = _criteria(contestant.fit(fitted, 0.5, candidates[k]), held_out)
        if fold + 1 == RACE_AFTER:
            so_far = found[:RACE_AFTER, :, 0].mean(axis=0)
            racing = so_far >= so_far.max() - RACE_MARGIN
    auc, loss = np.where(racing, found.mean(axis=0).T, [[-np.inf], [np.inf]])
    if contestant.rejects == "paper pairs":
        auc = np.where(auc >= auc.max() - TIE, -loss, -np.inf)
    return candidates[int(np.argmax(auc))]


def scaled(rows: DataSet, inside: NDArray[np.int64], outside: NDArray[np.int64]) -> tuple[DataSet, DataSet]:
    """Return the rows inside and outside, scaled by those inside."""
    scale = to_range(rows.X[inside])
    return tuple(  # type: ignore[return-value]  # two of them
        DataSet(rows.name, scale(rows.X[part]), rows.y[part], rows.reading) for part in (inside, outside)
    )


def _criteria(model: BinaryScorer, rows: DataSet) -> tuple[float, float]:
    """Return AUC and mean square loss ``(1 - (s+ - s-))^2`` of the pairs of the rows."""
    scores = np.asarray(model.score_many(rows.X))
    metric = AUC()
    metric.update_many(rows.y, scores)
    positive, negative = scores[rows.y == 1], scores[rows.y == 0]
    loss = (1.0 - positive.mean() + negative.mean()) ** 2 + positive.var() + negative.var()
    return metric.get(), float(loss)
