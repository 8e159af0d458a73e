"""Marvin's rectified loop: bags of regression trees on what the score still gets wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from streamlearn.contracts import FloatArray, IntArray
from streamlearn.kernels.forest import CLIPPED_MEAN
from streamlearn.learners.muffled.combine import rectified_b
from streamlearn.learners.muffled.descent import Problem, descend, step_by_bisection
from streamlearn.learners.muffled.potentials import Potential
from streamlearn.learners.muffled.rectified import Pool, with_labelled
from streamlearn.learners.muffled.sample import Sample
from streamlearn.learners.muffled.specialists import SCALES, scale_values
from streamlearn.learners.muffled.trees import Ranked, Trees

_BAG = 25
_LEAST = 5
_SHARE = 0.4
_MINIBATCH = 1000
_LEAST_STEP = 0.002
_MOST_REJECTS = 2
_TOLERANCE = 1e-6
_MAX_STEPS = 2_000


@dataclass(frozen=True, slots=True)
class Stage:
    """One bag.

    Attributes
    ----------
    trees : Trees
    held_out : float64[n_labelled, n_votes]
    on_unlabelled : float64[n_unlabelled, n_votes]
    weights : float64[n_votes]
    """

    trees: Trees
    held_out: FloatArray
    on_unlabelled: FloatArray
    weights: FloatArray


def fit_stages(sample: Sample, pool: Pool, n_stages: int, trust: float, psi: Potential, *, scales: bool) -> list[Stage]:
    """Add bags one by one, each with the step of least slack on the unlabelled rows that it was not grown on.

    Parameters
    ----------
    sample : Sample
    pool : Pool
        Its score is where the loop starts.
    n_stages : int
    trust : float
        c in [0, 1]: how much of the residual is taken on the labelled rows, y - c clip(s); the unlabelled ones carry
        the rest, -(1 - c) clip(s). 0 is the paper's: members then memorise hallucinated labels.
    psi : Potential
        Smooth.
    scales : bool
        Bags vote by their scale groups as well, with weight 0 for the time being.
    """
    s_labelled = pool.held_out_scores
    s_unlabelled = pool.F @ pool.weights
    stages: list[Stage] = []
    rejects = 0
    for number in range(n_stages):
        shuffled = sample.generator(100 + number).permutation(len(s_unlabelled))
        size = min(_MINIBATCH, len(s_unlabelled) // 2)
        grown_on, rest = shuffled[:size], shuffled[size:]
        bag = _grow_bag(sample, s_labelled, s_unlabelled, grown_on, trust, sample.derived(200 + number), scales=scales)
        step = _step(sample, bag, s_labelled, s_unlabelled, rest, psi)
        if step < _LEAST_STEP:
            rejects += 1
            if rejects == _MOST_REJECTS:
                break
            continue
        bag.weights[0] = step
        s_labelled = s_labelled + bag.held_out @ bag.weights
        s_unlabelled = s_unlabelled + bag.on_unlabelled @ bag.weights
        stages.append(bag)
    return stages


def _grow_bag(
    sample: Sample,
    s_labelled: FloatArray,
    s_unlabelled: FloatArray,
    grown_on: IntArray,
    trust: float,
    seed: int,
    *,
    scales: bool,
) -> Stage:
    n, size = len(sample.y), len(grown_on)
    values = np.concatenate([sample.labelled_values, sample.unlabelled_values[grown_on]])
    targets = np.concatenate(
        [sample.y - trust * np.clip(s_labelled, -1.0, 1.0), -(1.0 - trust) * np.clip(s_unlabelled[grown_on], -1.0, 1.0)]
    )
    weights = np.concatenate([np.full(n, 1.0 / n), np.full(size, 1.0 / max(size, 1))])
    grown, used = Ranked.of(values).grow(
        targets, seed, n_trees=_BAG, share=_SHARE, least=_LEAST, weights=weights, n_bootstrap=n
    )
    votes = grown.means[:, None]
    if scales:
        # Weights are shares of rows: n of them make a labelled row count 1.
        votes = np.hstack([votes, scale_values(grown, grown.means, [scale / n for scale in SCALES])])
    trees = grown.trees(votes, CLIPPED_MEAN)
    held_out = trees.votes_without(sample.labelled_keys, used[:n])
    return Stage(trees, held_out, trees.votes(sample.unlabelled_keys), np.zeros(votes.shape[1]))


def _step(
    sample: Sample,
    bag: Stage,
    s_labelled: FloatArray,
    s_unlabelled: FloatArray,
    rest: IntArray,
    psi: Potential,
) -> float:
    """Return the step in [0, 1] of least slack, with the rectified correlation of the bag."""
    scores = with_labelled(s_unlabelled[rest], s_labelled)
    moves = with_labelled(bag.on_unlabelled[rest, 0], bag.held_out[:, 0])
    sure, sure_there = np.clip(s_labelled, -1.0, 1.0), np.clip(scores, -1.0, 1.0)
    b = float(rectified_b(bag.held_out[:, :1], sample.y, moves[:, None], sure, sure_there)[0])
    return step_by_bisection(lambda a: float((moves * psi.slope(scores + a * moves)).mean()) - b, 1.0)


def corrected(
    sample: Sample, pool: Pool, stages: Sequence[Stage], tau: float, psi: Potential
) -> tuple[float, list[FloatArray]]:
    """Solve for all weights of the stages again, and for the factor of the pool, held to the present ones by a ridge.

    Returns
    -------
    factor : float
        Of the pool's weights.
    weights : list of float64[n_votes]
        Of the stages.
    """
    H = np.column_stack([pool.held_out_scores, *(stage.held_out for stage in stages)])
    F = np.column_stack([pool.F @ pool.weights, *(stage.on_unlabelled for stage in stages)])
    F = with_labelled(F, H)
    now = np.concatenate([[1.0], *(stage.weights for stage in stages)])
    sure, sure_there = np.clip(H @ now, -1.0, 1.0), np.clip(F @ now, -1.0, 1.0)
    b = rectified_b(H, sample.y, F, sure, sure_there)
    ridge = tau / len(sample.y) * float(np.square(F).mean())
    found, _ = descend(Problem(np.ascontiguousarray(F.T), b, psi, ridge, now), now, _TOLERANCE, _MAX_STEPS)
    if not found.any():
        found = now
    ends = np.cumsum([1, *(len(stage.weights) for stage in stages)])
    return float(found[0]), [found[a:b] for a, b in pairwise(ends)]
