"""The rectified form: a pool of whole classifiers and its weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from streamlearn.contracts import FloatArray
from streamlearn.learners.muffled.combine import muffle
from streamlearn.learners.muffled.members import Member
from streamlearn.learners.muffled.model import Model
from streamlearn.learners.muffled.sample import Sample
from streamlearn.learners.muffled.trees import Trees

FEW_UNLABELLED = 100
"""Below so many unlabelled rows the labelled ones, with the votes made without their labels, stand in beside them."""

Maker = Callable[[Sample, int], Member]


@dataclass(frozen=True, slots=True)
class Pool:
    """Fitted members with the weights of their votes.

    Attributes
    ----------
    trees, linear : tuples of Member
    weights : float64[n_votes]
        Those of the trees first.
    H : float64[n_labelled, n_votes]
        Votes without a row's own label.
    F : float64[n_unlabelled, n_votes]
        Votes on the unlabelled rows.
    """

    trees: tuple[Member, ...]
    linear: tuple[Member, ...]
    weights: FloatArray
    H: FloatArray
    F: FloatArray

    @property
    def held_out_scores(self) -> FloatArray:
        """Scores of the labelled rows without their labels: float64[n_labelled]."""
        return self.H @ self.weights

    def model(
        self,
        sample: Sample,
        stages: Sequence[tuple[Sequence[str], Trees, FloatArray]] = (),
        held_out: Sequence[FloatArray] = (),
    ) -> Model:
        """Return the model of this pool, with further trees behind its own and what these voted on labelled rows."""
        model = assemble(sample, self.trees, self.linear, self.weights, stages)
        n_lines = len(self.linear)
        H = np.hstack([self.H[:, : self.H.shape[1] - n_lines], *held_out, self.H[:, self.H.shape[1] - n_lines :]])
        model.evidence[0] = len(sample.y)
        model.evidence[1:] = np.clip(H, -1.0, 1.0).T @ sample.y / len(sample.y)
        return model


def assemble(
    sample: Sample,
    trees: Sequence[Member],
    linear: Sequence[Member],
    weights: FloatArray,
    stages: Sequence[tuple[Sequence[str], Trees, FloatArray]] = (),
) -> Model:
    """Return the model of members whose votes have these weights."""
    grouped, at = [], 0
    for member in trees:
        k = len(member.names)
        if isinstance(member.part, Trees):
            grouped.append((member.names, member.part, weights[at : at + k]))
        at += k
    lines = [
        (member.names[0], member.part, float(w))
        for member, w in zip(linear, weights[at:], strict=True)
        if not isinstance(member.part, Trees)
    ]
    return Model.of(sample.affine, [*grouped, *stages], lines)


def fit_pool(sample: Sample, makers: Sequence[Maker], n_trees: int, tau: float, potential: str) -> Pool:
    """Fit the members and find the weights of their votes.

    Parameters
    ----------
    sample : Sample
    makers : sequence of functions of a sample and a number of trees
    n_trees : int
    tau, potential
        As in `muffle`.
    """
    members = [make(sample, n_trees) for make in makers]
    trees = tuple(member for member in members if isinstance(member.part, Trees))
    linear = tuple(member for member in members if not isinstance(member.part, Trees))
    H = np.hstack([member.held_out for member in (*trees, *linear)])
    blank = assemble(sample, trees, linear, np.zeros(H.shape[1]))
    F = blank.score(sample.unlabelled, np.empty(len(sample.unlabelled)))
    found = muffle(H, sample.y, with_labelled(F, H), tau=tau, potential=potential)
    return Pool(trees, linear, found.weights, H, F)


def with_labelled(unlabelled: FloatArray, held_out: FloatArray) -> FloatArray:
    """Return numbers of the unlabelled rows, those of the labelled ones behind them where there are few."""
    return unlabelled if len(unlabelled) >= FEW_UNLABELLED else np.concatenate([unlabelled, held_out])
