"""The algorithms as published: held-out labels for Wilson's bound, hard votes, zero-one slack."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from streamlearn.contracts import FloatArray, IntArray
from streamlearn.kernels.forest import SUM
from streamlearn.learners.muffled.descent import Problem, descend, exact_step
from streamlearn.learners.muffled.model import Model
from streamlearn.learners.muffled.potentials import POTENTIALS
from streamlearn.learners.muffled.sample import Sample
from streamlearn.learners.muffled.slack import greatest_shrink, solve
from streamlearn.learners.muffled.specialists import (
    Specialists,
    awake,
    node_weights_at_leaves,
    select_specialists,
)
from streamlearn.learners.muffled.trees import Grown, Ranked, Trees, merged

HEDGEMOWER_TRAIN_SHARE = 0.25
MARVIN_TRAIN_SHARE = 0.75
"""Labels that grow trees; the others are held out for b."""
_EXACT_MEMBERS = 200  # up to so many members the slack is minimised exactly
_HUBER_WIDTH = 0.05
_DESCENT_STEPS = 300
_SHRINK = 0.8
_DEEPEST = 20
_SPLIT = 1 << 33  # beyond the counts of rounds
_ROUND_SIZE = 1000
_FIRST_STEP = 6.0
_CORRECTIONS = 10
_CORRECTION_MINIBATCH = 100


@dataclass(frozen=True, slots=True)
class Split:
    """Labelled rows parted into those that grow trees and those held out, each class in its share."""

    train: IntArray
    held_out: IntArray

    @classmethod
    def of(cls, sample: Sample, share: float) -> Split:
        """Part the labelled rows; either part has at least one row of each class."""
        shuffled = sample.generator(_SPLIT).permutation(len(sample.y))
        positive = sample.y[shuffled] > 0
        parts: tuple[list[IntArray], list[IntArray]] = ([], [])
        for rows in (shuffled[positive], shuffled[~positive]):
            n = min(max(round(share * len(rows)), 1), len(rows) - 1)
            parts[0].append(rows[:n])
            parts[1].append(rows[n:])
        return cls(np.sort(np.concatenate(parts[0])), np.sort(np.concatenate(parts[1])))


def _hard(values: FloatArray) -> FloatArray:
    return np.where(values >= 0.0, 1.0, -1.0)


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows of one fit as trees see them."""

    sample: Sample
    split: Split

    @property
    def held_out_keys(self) -> Any:
        return self.sample.labelled_keys[self.split.held_out]

    @property
    def held_out_y(self) -> FloatArray:
        return self.sample.y[self.split.held_out]

    @property
    def unlabelled_keys(self) -> Any:
        """Unlabelled rows; where there are none the held-out ones stand in, without their labels."""
        return self.sample.unlabelled_keys if len(self.sample.unlabelled) else self.held_out_keys

    def specialists(
        self, grown: Grown, tree: int, hard: Trees, failure_prob: float, *, nodes: bool
    ) -> tuple[Specialists, Any]:
        """Return the specialists of one tree and their votes on the unlabelled rows, sparse [n_kept, n_unlabelled]."""
        votes = hard.values[hard.leaves(self.held_out_keys)[:, tree], 0]
        held_out, unlabelled = awake(grown, tree, self.held_out_keys), awake(grown, tree, self.unlabelled_keys)
        found = select_specialists(
            grown, tree, held_out, votes * self.held_out_y, unlabelled, failure_prob, nodes=nodes
        )
        on_unlabelled = hard.values[hard.leaves(self.unlabelled_keys)[:, tree], 0]
        F = unlabelled[:, found.nodes].multiply(on_unlabelled[:, None]).multiply(found.factors[None, :])
        return found, F.T.tocsr()


def fit_hedgemower(sample: Sample, n_trees: int, failure_prob: float, *, nodes: bool) -> Model:
    """Return HedgeMower-1, or with `nodes` HedgeMower: a random forest whose trees and nodes play the game.

    Parameters
    ----------
    sample : Sample
    n_trees : int
    failure_prob : float
    nodes : bool
    """
    rows = _Rows(sample, Split.of(sample, HEDGEMOWER_TRAIN_SHARE))
    train = rows.split.train
    grown, _ = Ranked.of(sample.labelled_values[train]).grow(
        sample.y[train], sample.derived(1), n_trees=n_trees, share=0.0
    )
    hard = grown.trees(_hard(grown.means)[:, None], SUM)
    found = [rows.specialists(grown, t, hard, failure_prob, nodes=nodes) for t in range(n_trees)]
    F, b = _stacked([F for _, F in found]), np.concatenate([kept.b for kept, _ in found])
    s, shrink = _weights(F, b)
    chosen = np.concatenate([kept.nodes for kept, _ in found])
    factors = np.concatenate([kept.factors for kept, _ in found])
    return _model(sample, [grown.trees(_leaf_scores(grown, chosen, s * factors), SUM)], F, b * shrink, s)


def _leaf_scores(grown: Grown, nodes: IntArray, weights: FloatArray) -> FloatArray:
    """Return the tree's vote times the summed weights of its nodes awake there: float64[n_nodes, 1]."""
    return (_hard(grown.means) * node_weights_at_leaves(grown, nodes, weights))[:, None]


def _model(sample: Sample, parts: list[Trees], F: Any, b: FloatArray, s: FloatArray) -> Model:
    model = Model.of(sample.affine, [(("trees",), merged(parts), np.ones(1))])
    problem = Problem(F, b, POTENTIALS["zero-one"], 0.0, np.zeros(len(b)))
    model.evidence[1] = min(max(problem.value(s, problem.scores(s)), 0.0) / 2.0, 0.5)
    return model


def _stacked(parts: list[Any]) -> Any:
    from scipy.sparse import vstack  # noqa: PLC0415 - the import costs 30 ms and only fits need it

    return vstack(parts, format="csr")


def _weights(F: Any, b: FloatArray) -> tuple[FloatArray, float]:
    """Return the weights of least zero-one slack, and the factor of b with which some labelling allows it."""
    psi = POTENTIALS["zero-one"]
    shrink = 1.0
    while (b > 0.0).any():
        if len(b) <= _EXACT_MEMBERS:
            s = _exact(F.toarray(), shrink * b)
        else:
            # The few hundred steps are early stopping: the noise of b is larger than what the last ones gain.
            problem = Problem(F, shrink * b, psi, 0.0, np.zeros(len(b)))
            s, _ = descend(problem.with_potential(psi.smoothed(_HUBER_WIDTH)), np.zeros(len(b)), 1e-6, _DESCENT_STEPS)
            s = s if problem.value(s, problem.scores(s)) >= 0.0 else None
        if s is not None:
            return (s if s.any() else _equal(b)), shrink
        shrink *= _SHRINK
    return _equal(b), 1.0


def _exact(F: FloatArray, b: FloatArray) -> FloatArray | None:
    return solve(F, b, POTENTIALS["zero-one"], "lp", 0.0).weights if greatest_shrink(F, b) >= 1.0 else None


def _equal(b: FloatArray) -> FloatArray:
    """Return equal weights: without any evidence a vote is as good as another, and silence ranks nothing."""
    return np.full(len(b), 1.0 / len(b))


def fit_marvin(sample: Sample, n_rounds: int, failure_prob: float, *, corrective: bool, nodes: bool) -> Model:
    """Return Marvin: one tree a round, grown on labels and hallucinated labels.

    Parameters
    ----------
    sample : Sample
    n_rounds : int
    failure_prob : float
    corrective : bool
        Marvin-C: all weights take ten steps after each round.
    nodes : bool
        Marvin-D: the nodes of each tree come in as specialists.
    """
    rows = _Rows(sample, Split.of(sample, MARVIN_TRAIN_SHARE))
    keys = rows.unlabelled_keys
    values = sample.unlabelled_values if len(sample.unlabelled) else sample.labelled_values[rows.split.held_out]
    m = np.zeros(len(keys))
    parts, kept_all, grown_all = [], [], []
    s = b = np.zeros(0)
    for t in range(n_rounds):
        round_rows = sample.generator(300 + t).permutation(len(keys))[:_ROUND_SIZE]
        grown = _round_tree(sample, rows.split, values, m, round_rows, t)
        hard = grown.trees(_hard(grown.means)[:, None], SUM)
        kept, F = rows.specialists(grown, 0, hard, failure_prob, nodes=nodes)
        moves = np.asarray(F.sum(axis=0)).ravel()
        longest = _FIRST_STEP if t == 0 else (t + 5.0) ** -0.5
        step = exact_step(m, moves, float(kept.b.sum()), longest)
        parts.append(F)
        kept_all.append(kept)
        grown_all.append(grown)
        s, b = np.concatenate([s, np.full(len(kept.b), step)]), np.concatenate([b, kept.b])
        m = m + step * moves
        if corrective:
            s, m = _corrected(_stacked(parts), b, s, m, sample.generator(600 + t))
    if not s.any():
        s = _equal(b)
    ends = np.cumsum([0, *(len(kept.b) for kept in kept_all)])
    trees = [
        grown.trees(_leaf_scores(grown, kept.nodes, s[a:z] * kept.factors), SUM)
        for grown, kept, a, z in zip(grown_all, kept_all, ends[:-1], ends[1:], strict=True)
    ]
    return _model(sample, trees, _stacked(parts), b, s)


def _round_tree(sample: Sample, split: Split, values: Any, m: FloatArray, round_rows: IntArray, t: int) -> Grown:
    """Grow the tree of one round: labels of weight 1 / n each, clipped rows with the opposite of their sign."""
    train = split.train
    clipped = round_rows[np.abs(m[round_rows]) >= 1.0]
    grown, _ = Ranked.of(np.concatenate([sample.labelled_values[train], values[clipped]])).grow(
        np.concatenate([sample.y[train], -np.sign(m[clipped])]),
        sample.derived(400 + t),
        n_trees=1,
        share=1.0,
        deepest=_DEEPEST,
        weights=np.concatenate([np.full(len(train), 1.0 / len(train)), np.full(len(clipped), 1.0 / len(round_rows))]),
        n_bootstrap=0,
    )
    return grown


def _corrected(
    F: Any, b: FloatArray, s: FloatArray, m: FloatArray, generator: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Take ten steps of least slack over all weights, each along the gradient on a minibatch; none may raise it."""
    psi = POTENTIALS["zero-one"]
    problem = Problem(F, b, psi, 0.0, np.zeros(len(b)))
    value = problem.value(s, m)
    for _ in range(_CORRECTIONS):
        batch = generator.permutation(F.shape[1])[:_CORRECTION_MINIBATCH]
        direction = b - F[:, batch] @ psi.slope(m[batch]) / len(batch)
        direction[(s <= 0.0) & (direction < 0.0)] = 0.0
        step = exact_step(m, F.T @ direction, float(b @ direction), _FIRST_STEP)
        new = np.maximum(s + step * direction, 0.0)
        new_m = problem.scores(new)
        new_value = problem.value(new, new_m)
        if 0.0 <= new_value < value:  # below 0 no labelling allows b any more
            s, m, value = new, new_m, new_value
    return s, m
