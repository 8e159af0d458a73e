"""The rectified form: a pool of whole classifiers and its weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from streamlearn.contracts import FloatArray
from streamlearn.learners.muffled.clusters import Clusters
from streamlearn.learners.muffled.combine import Muffled, muffle
from streamlearn.learners.muffled.layers import Extra, Layer, Layered
from streamlearn.learners.muffled.members import Member
from streamlearn.learners.muffled.model import Model, Voting
from streamlearn.learners.muffled.own_layer import OwnLayer
from streamlearn.learners.muffled.sample import Sample
from streamlearn.learners.muffled.trees import Trees
from streamlearn.learners.muffled.unlabelled import Embedded

FEW_UNLABELLED = 100
"""Below so many unlabelled rows the labelled ones, with the votes made without their labels, stand in beside them."""

ON_UNLABELLED = 0.25
"""Share of the members learned on unlabelled rows in the anchor."""

SHARES: dict[frozenset[str], dict[str, float]] = {
    frozenset({"base"}): {"base": 1.0},
    frozenset({"base", "unlabelled"}): {"base": 1.0 - ON_UNLABELLED, "unlabelled": ON_UNLABELLED},
    frozenset({"base", "ranks"}): {"base": 0.5, "ranks": 0.5},
    frozenset({"base", "unlabelled", "ranks"}): {"base": 0.4, "unlabelled": 0.2, "ranks": 0.4},
}
"""Shares of the groups of members in the anchor, by the groups that there are."""

_GROUPS = {OwnLayer.kind: "base", Clusters.kind: Embedded.kind}
"""Group of those members that have none of their own."""

KEPT = 0.3
"""Share of the last refit's weights in those of the next: what ten more labels change is mostly noise.

Of the shares that gain on the mean of streams they were not chosen on, the one with the smallest loss on any of them.
"""

_LEAST_SPREAD, _ROUNDING = 0.01, 1e-9

Maker = Callable[[Sample, int], Member]


@dataclass(frozen=True, slots=True)
class Pool:
    """Fitted members with the weights of their votes.

    Attributes
    ----------
    trees, linear : tuples of Member
    layers : tuple of Layer
        Further members.
    weights : float64[n_votes]
        Trees, linear members, layers.
    H : float64[n_labelled, n_votes]
        Votes without a row's own label.
    F : float64[n_unlabelled, n_votes]
        Votes on the unlabelled rows.
    """

    trees: tuple[Member, ...]
    linear: tuple[Member, ...]
    layers: tuple[Layer, ...]
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
        n_base = len(self.weights) - sum(len(layer.names) for layer in self.layers)
        n_trees = n_base - len(self.linear)
        model = assemble(sample, self.trees, self.linear, self.weights[:n_base], stages)
        H = np.hstack([self.H[:, :n_trees], *held_out, self.H[:, n_trees:]])
        evidence = np.concatenate([[len(sample.y)], np.clip(H, -1.0, 1.0).T @ sample.y / len(sample.y)])
        if sample.labelled_ranks is not None:
            model.used = {member.names[0]: member.used for member in self.trees if member.used is not None}
        if not self.layers:
            model.evidence = evidence
            return model
        return Layered(model, self.layers, self.weights[n_base:].copy(), evidence)


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


def anchor_of(n_base: int, extras: Sequence[Extra], *, conservative: bool) -> FloatArray:
    """Return the share of each vote in the anchor, equal inside a group: float64[n_votes].

    Parameters
    ----------
    n_base : int
        Votes of the pool's own members.
    extras : sequence of Extra
        Members that the user brought count as the pool's own.
    conservative : bool
        Members learned on unlabelled rows and on ranks have no share.
    """
    kinds = ["base"] * n_base
    for extra in extras:
        kinds += [_group(extra)] * len(extra.layer.names)
    present = frozenset(kinds)
    shares = SHARES[frozenset({"base"}) if conservative else present]
    return np.array([shares.get(kind, 0.0) / kinds.count(kind) for kind in kinds])


def weighed(
    H: FloatArray,
    y: FloatArray,
    F: FloatArray,
    extras: Sequence[Extra],
    tau: float,
    potential: str,
    *,
    conservative: bool = False,
) -> Muffled:
    """Return the weights of a pool's votes, those of further members behind them.

    Parameters
    ----------
    H, y, F, tau, potential
        As in `muffle`.
    extras, conservative
        As in `fit_pool`.
    """
    F = with_labelled(F, H)
    n_base = H.shape[1] - sum(len(extra.layer.names) for extra in extras)
    learned = any(_group(extra) == Embedded.kind for extra in extras)
    sizes = spreads(F) if learned else None
    anchor = anchor_of(n_base, extras, conservative=conservative)
    return muffle(H, y, F, tau=tau, potential=potential, anchor=anchor, sizes=sizes)


def spreads(F: FloatArray) -> FloatArray:
    """Return the standard deviation of each vote, at least a hundredth of its size, 0 where it never changes.

    Where one class is rare, nine tenths of a forest's vote are the same for every event and rank nothing, while the
    neighbours' vote is of both classes alike. Made alike by their squares, it would have the ranking to itself,
    whatever its share.

    Parameters
    ----------
    F : float64[n_rows, n_votes]
    """
    sd, size = F.std(axis=0), np.sqrt(np.square(F).mean(axis=0))
    return np.asarray(np.where(sd > _ROUNDING * size, np.maximum(sd, _LEAST_SPREAD * size), 0.0))


def _group(extra: Extra) -> str:
    return _GROUPS.get(extra.layer.kind, extra.layer.kind)


def fit_pool(
    sample: Sample,
    makers: Sequence[Maker],
    n_trees: int,
    tau: float,
    potential: str,
    *,
    extras: Sequence[Extra] = (),
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
    extras : sequence of Extra
        Further members, fitted.
    conservative : bool
        Those learned on unlabelled rows or on ranks have no share in the anchor and come in on evidence alone.
    """
    members = [make(sample, n_trees) for make in makers]
    trees = tuple(member for member in members if isinstance(member.part, Trees))
    linear = tuple(member for member in members if not isinstance(member.part, Trees))
    n_base = sum(len(member.names) for member in members)
    blank = assemble(sample, trees, linear, np.zeros(n_base))
    F = np.hstack(
        [blank.score(sample.unlabelled, np.empty(len(sample.unlabelled))), *(extra.on_unlabelled for extra in extras)]
    )
    held_out = [*(member.held_out for member in (*trees, *linear)), *(extra.held_out for extra in extras)]
    H = np.hstack(held_out)
    found = weighed(H, sample.y, F, extras, tau, potential, conservative=conservative)
    names = [name for member in (*trees, *linear) for name in member.names]
    names += [name for extra in extras for name in extra.layer.names]
    before = np.array([sample.weights.get(name, w) for name, w in zip(names, found.weights, strict=True)])
    weights = KEPT * before + (1.0 - KEPT) * found.weights
    return Pool(trees, linear, tuple(extra.layer for extra in extras), weights, H, F)


def with_labelled(unlabelled: FloatArray, held_out: FloatArray) -> FloatArray:
    """Return numbers of the unlabelled rows, those of the labelled ones behind them where there are few."""
    return unlabelled if len(unlabelled) >= FEW_UNLABELLED else np.concatenate([unlabelled, held_out])
