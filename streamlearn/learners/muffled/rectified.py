"""The rectified form: a pool of whole classifiers and its weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from streamlearn.contracts import FloatArray
from streamlearn.learners.muffled.combine import muffle
from streamlearn.learners.muffled.members import Member
from streamlearn.learners.muffled.model import Model, Voting
from streamlearn.learners.muffled.sample import Sample
from streamlearn.learners.muffled.trees import Trees
from streamlearn.learners.muffled.unlabelled import NAMES, Embedded, Layered, fit_embedded

FEW_UNLABELLED = 100
"""Below so many unlabelled rows the labelled ones, with the votes made without their labels, stand in beside them."""

ON_UNLABELLED = 0.25
"""Share of the members learned on unlabelled rows in the anchor."""

Maker = Callable[[Sample, int], Member]


@dataclass(frozen=True, slots=True)
class Pool:
    """Fitted members with the weights of their votes.

    Attributes
    ----------
    trees, linear : tuples of Member
    extra : Embedded or None
        Members learned on unlabelled rows.
    weights : float64[n_votes]
        Trees, linear members, extra ones.
    H : float64[n_labelled, n_votes]
        Votes without a row's own label.
    F : float64[n_unlabelled, n_votes]
        Votes on the unlabelled rows.
    """

    trees: tuple[Member, ...]
    linear: tuple[Member, ...]
    extra: Embedded | None
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
    ) -> Voting:
        """Return the model of this pool, with further trees behind its own and what these voted on labelled rows."""
        n_more = 0 if self.extra is None else len(NAMES)
        n_base = len(self.weights) - n_more
        n_trees = n_base - len(self.linear)
        model = assemble(sample, self.trees, self.linear, self.weights[:n_base], stages)
        H = np.hstack([self.H[:, :n_trees], *held_out, self.H[:, n_trees:]])
        evidence = np.concatenate([[len(sample.y)], np.clip(H, -1.0, 1.0).T @ sample.y / len(sample.y)])
        if self.extra is None:
            model.evidence = evidence
            return model
        self.extra.weights[:] = self.weights[n_base:]
        return Layered(model, self.extra, evidence)


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


def fit_pool(
    sample: Sample,
    makers: Sequence[Maker],
    n_trees: int,
    tau: float,
    potential: str,
    *,
    embedded: bool = False,
    conservative: bool = False,
) -> Pool:
    """Fit the members and find the weights of their votes.

    Parameters
    ----------
    sample : Sample
    makers : sequence of functions of a sample and a number of trees
    n_trees : int
    tau, potential
        As in `muffle`.
    embedded : bool
        With the members that are learned on unlabelled rows.
    conservative : bool
        These have no share in the anchor and come in on evidence alone.
    """
    members = [make(sample, n_trees) for make in makers]
    trees = tuple(member for member in members if isinstance(member.part, Trees))
    linear = tuple(member for member in members if not isinstance(member.part, Trees))
    H = np.hstack([member.held_out for member in (*trees, *linear)])
    blank = assemble(sample, trees, linear, np.zeros(H.shape[1]))
    F = blank.score(sample.unlabelled, np.empty(len(sample.unlabelled)))
    anchor = np.full(H.shape[1], 1.0 / H.shape[1])
    fitted = fit_embedded(sample) if embedded else None
    if fitted is not None:
        share = 0.0 if conservative else ON_UNLABELLED
        anchor = np.concatenate([(1.0 - share) * anchor, np.full(len(NAMES), share / len(NAMES))])
        H, F = np.hstack([H, fitted[1]]), np.hstack([F, fitted[0].votes(sample.unlabelled)])
    found = muffle(H, sample.y, with_labelled(F, H), tau=tau, potential=potential, anchor=anchor)
    return Pool(trees, linear, None if fitted is None else fitted[0], found.weights, H, F)


def with_labelled(unlabelled: FloatArray, held_out: FloatArray) -> FloatArray:
    """Return numbers of the unlabelled rows, those of the labelled ones behind them where there are few."""
    return unlabelled if len(unlabelled) >= FEW_UNLABELLED else np.concatenate([unlabelled, held_out])
