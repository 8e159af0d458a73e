"""One muffled learner from several that learned different events: their classifiers in one game.

Worker j learned its labels L_j and hands on its forecast h_j, a function into [-1, 1], with its labelled buffer and its
reservoir. The pool of all h_j is weighed as members of one learner are: weights >= 0 of least slack on the merged
reservoir, with a ridge towards an anchor (`muffle`). What that needs of the labels is b_j = E[h_j y], and a worker's
own labels cannot tell it, since h_j was made of them. All others can, because the parts are disjoint::

    b_j = mean over L without L_j of h_j (y - g) + mean over U of h_j g,    g = clip(kappa v)

where v, on a label of L_i, is the mean of the forecasts of the others: no vote here has seen the label that it is held
against, so b is unbiased without folds, out-of-bag rows or a further fit. Two parts are judged by each other.

The anchor are the parts' shares in the consensus of their forecasts on the reservoir, vectors whose distance is the
root mean square difference: for "median" the geometric median of functions, which parts with turned labels cannot
outvote while they hold less than half of the labels. Parts that are not trusted give neither votes nor events.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import CodeArray, FloatArray, IntArray
from streamlearn.errors import BadParameter
from streamlearn.kernels import muffled as kernels
from streamlearn.learners.consensus import Consensus, consensus
from streamlearn.learners.ground import Ground
from streamlearn.learners.muffled.combine import muffle
from streamlearn.learners.muffled.layers import Layered, PartLayer
from streamlearn.learners.muffled.model import Model
from streamlearn.learners.muffled.rectified import with_labelled
from streamlearn.learners.muffled.sample import Sample, derived_seed
from streamlearn.learners.muffled.stream import MuffledScorer

MOST_PARTS = 64
"""Forecasts of so many parts are kept, those of the largest weights: a stream of micro-batches brings ever more."""

_SEEDS = 1 << 34  # beyond the counts of refits


@dataclass(frozen=True, slots=True)
class Kept:
    """What one worker kept of its events, in the columns of all.

    Attributes
    ----------
    rows : float64[n_labelled, n_features]
        In the order of its stream.
    codes : int8[n_labelled]
    unlabelled : float64[n_unlabelled, n_features]
    counters : int64[10]
    """

    rows: FloatArray
    codes: CodeArray
    unlabelled: FloatArray
    counters: IntArray

    @classmethod
    def of(cls, model: MuffledScorer, place: IntArray, n: int) -> Kept:
        """Read a learner."""
        rows, y = model._buffers.labelled_in_order()
        spread = [np.zeros((len(part), n)) for part in (rows, model._buffers.unlabelled)]
        spread[0][:, place], spread[1][:, place] = rows, model._buffers.unlabelled
        return cls(spread[0], (y > 0).astype(np.int8), spread[1], model._buffers.counters)


def merge_muffled(
    models: Sequence[MuffledScorer], how: str, trim: float, before: MuffledScorer | None = None
) -> tuple[MuffledScorer, Consensus]:
    """Return one learner from several; arguments as for `merge_aucro`. A learner of earlier events is one more part.

    The merged model stays until enough labels came in for a refit, which is one of the merged buffers.

    Raises
    ------
    BadParameter
        ``estimator="paper"``, whose bounds are those of one sample; drift; members of one's own.
    """
    everyone = [*models, *([] if before is None else [before])]
    for model in everyone:
        _check(model)
    ground = Ground.of(everyone)
    made = ground.blank()
    everyone = [ground.oriented(model) for model in everyone]
    places = [ground.places(model) for model in everyone]
    kept = [Kept.of(model, place, len(ground.names)) for model, place in zip(everyone, places, strict=True)]
    voters = [_voters(model, place) for model, place in zip(everyone, places, strict=True)]
    found = _agreed(kept[: len(models)], voters[: len(models)], made, how, trim)
    good = [k for k, trusted in enumerate([*found.trusted.tolist(), *([] if before is None else [True])]) if trusted]
    shares = _shares(kept, len(models), found)
    _fill(made, [kept[k] for k in good])
    _weigh(made, [kept[k] for k in good], [voters[k] for k in good], shares[good])
    return made, found


def _check(model: MuffledScorer) -> None:
    own = getattr(model, "members", None)
    if model.estimator != "rectified":
        raise BadParameter(f"{model.name}: estimator must be 'rectified' to be merged, got {model.estimator!r}")
    if model.drift:
        raise BadParameter(f"{model.name}: drift must be False to be merged: ranks are those of one stream")
    if not (own is None or isinstance(own, str) or all(isinstance(item, str) for item in own)):
        raise BadParameter(f"{model.name}: members must be names to be merged, got {own!r}")


def _voters(model: MuffledScorer, place: IntArray) -> list[PartLayer]:
    """Return the forecasts of a learner: its model, or those that were merged into it."""
    if model._waiting is not None:
        raise BadParameter(f"{model.name}: refit_lag must be 0 to be merged while a refit is under way")
    fitted = model._model
    if fitted is None:
        return []
    if isinstance(fitted, Layered) and fitted.layers and all(isinstance(one, PartLayer) for one in fitted.layers):
        parts = [one for one in fitted.layers if isinstance(one, PartLayer)]
        return [PartLayer(one.title, one.model, place[one.columns]) for one in parts]
    return [PartLayer("part", fitted, place)]


def _agreed(
    kept: Sequence[Kept], voters: Sequence[Sequence[PartLayer]], made: MuffledScorer, how: str, trim: float
) -> Consensus:
    """Hold the parts' forecasts on a common reservoir together, each by its labels."""
    counts = np.array(
        [float(one.counters[kernels.LABELLED]) if v else 0.0 for one, v in zip(kept, voters, strict=True)]
    )
    counts = counts if counts.any() else np.ones(len(kept))
    rows = _reservoir(made, kept)
    if len(rows) == 0:
        rows = np.concatenate([one.rows for one in kept])
    votes = np.zeros((len(kept), len(rows)))
    for k, several in enumerate(voters):
        for one in several:
            votes[k] += one.votes(rows)[:, 0] / len(several)
    return consensus(votes / np.sqrt(max(len(rows), 1)), counts, how, trim)


def _shares(kept: Sequence[Kept], n_new: int, found: Consensus) -> FloatArray:
    """Return the share of each part in the anchor; a learner of earlier events has that of its labels."""
    labels = np.array([float(one.counters[kernels.LABELLED]) for one in kept])
    earlier = float(labels[n_new:].sum()) / max(float(labels.sum()), 1.0)
    # Where a part lies at the median itself the others have no share in it, and would have none in the game.
    least = 1e-3 / len(kept)
    return np.concatenate([(1.0 - earlier) * np.maximum(found.shares, least), np.full(len(kept) - n_new, earlier)])


def _reservoir(made: MuffledScorer, kept: Sequence[Kept]) -> FloatArray:
    """Return a fair sample of all unlabelled events: each part gives as many as its events drew."""
    size = made.unlabelled_buffer
    totals = np.array([int(one.counters[kernels.UNLABELLED]) for one in kept])
    if totals.sum() <= size:
        return np.concatenate([one.unlabelled for one in kept])
    seed = derived_seed(made.seed, _SEEDS + int(totals.sum()))
    generator = np.random.Generator(np.random.Philox(key=seed))
    # Vitter's reservoir of a part is a fair sample of its events, so a fair sample of that is one, too.
    drawn = generator.multivariate_hypergeometric(totals, size, method="marginals")
    chosen = [
        one.unlabelled[np.sort(generator.permutation(len(one.unlabelled))[:n])]
        for one, n in zip(kept, drawn.tolist(), strict=True)
    ]
    return np.concatenate(chosen)


def _shared_out(sizes: Sequence[int], room: int) -> list[int]:
    """Return how many of its rows each part may keep: all, or its share of the room, largest remainders first."""
    total = sum(sizes)
    if total <= room:
        return list(sizes)
    exact = np.array(sizes) * (room / total)
    given = np.floor(exact).astype(np.int64)
    given[np.argsort(given - exact, kind="stable")[: room - int(given.sum())]] += 1
    return [int(n) for n in given]


def _fill(made: MuffledScorer, kept: Sequence[Kept]) -> None:
    """Give a blank learner the newest labels of each part, a fair sample of the other events, and the counts of all."""
    size = made.labelled_buffer
    given = _shared_out([len(one.rows) for one in kept], size)
    rows = np.concatenate([one.rows[len(one.rows) - n :] for one, n in zip(kept, given, strict=True)])
    codes = np.concatenate([one.codes[len(one.codes) - n :] for one, n in zip(kept, given, strict=True)])
    counters = np.sum([one.counters for one in kept], axis=0)
    counters[[kernels.NEW, kernels.DUE, kernels.SWAP]] = 0
    counters[kernels.AT_REFIT] = counters[kernels.LABELLED]
    counters[kernels.POSITIVE] = int(codes.sum())
    counters[kernels.NEGATIVE] = len(codes) - int(codes.sum())
    slots = np.arange(counters[kernels.LABELLED] - len(rows), counters[kernels.LABELLED]) % size
    order = np.argsort(slots, kind="stable")
    arrays = {
        "counters": counters,
        "labelled": rows[order],
        "codes": codes[order],
        "unlabelled": _reservoir(made, kept),
    }
    made._buffers.set_arrays(made.name, arrays)


def _weigh(
    made: MuffledScorer, kept: Sequence[Kept], voters: Sequence[Sequence[PartLayer]], shares: FloatArray
) -> None:
    """Weigh the forecasts of the parts; where no part has one, the merged buffers make a model."""
    pool = [one for several in voters for one in several]
    owners = np.array([k for k, several in enumerate(voters) for _ in several], dtype=np.int64)
    if not pool:
        made.refit()
        return
    rows, y = made._buffers.labelled_in_order()
    given = _shared_out([len(one.rows) for one in kept], made.labelled_buffer)
    votes = [np.hstack([one.votes(at) for one in pool]) for at in (rows, made._buffers.unlabelled)]
    seen = np.repeat(np.arange(len(kept)), given)[:, None] == owners
    anchor = shares[owners] / np.bincount(owners)[owners]
    game = Game(votes[0], y, votes[1], seen, anchor / anchor.sum())
    weights = game.weights(made)
    if len(pool) > MOST_PARTS:
        size = np.sqrt(np.square(votes[1]).mean(axis=0)) if len(votes[1]) else 1.0
        order = np.sort(np.argsort(-weights * size, kind="stable")[:MOST_PARTS])
        pool, game = [pool[k] for k in order.tolist()], game.of(order)
        weights = game.weights(made)
    titled = [PartLayer(f"part {k + 1}", one.model, one.columns) for k, one in enumerate(pool)]
    affine = Sample(rows, y, made._buffers.unlabelled, made.seed).affine
    made._model = Layered(Model.of(affine, []), titled, weights, game.evidence())


@dataclass(frozen=True, slots=True)
class Game:
    """Forecasts, and the labels that may judge each of them.

    Attributes
    ----------
    H : float64[n_labelled, n_voters]
    y : float64[n_labelled]
    F : float64[n_unlabelled, n_voters]
    seen : bool[n_labelled, n_voters]
        The forecast was made of this label.
    anchor : float64[n_voters]
    """

    H: FloatArray
    y: FloatArray
    F: FloatArray
    seen: NDArray[np.bool_]
    anchor: FloatArray

    def of(self, order: IntArray) -> Game:
        """Return the game of some of the forecasts."""
        anchor = self.anchor[order] / max(float(self.anchor[order].sum()), 1e-300)
        return Game(self.H[:, order], self.y, self.F[:, order], self.seen[:, order], anchor)

    def honest(self) -> FloatArray:
        """Return votes with those on labels that were seen as 0 and the others so much larger that means stay means."""
        n = len(self.y)
        left = np.maximum(n - self.seen.sum(axis=0), 1)
        return np.asarray(np.where(self.seen, 0.0, self.H) * (n / left))

    def weights(self, made: MuffledScorer) -> FloatArray:
        """Return the weights of least slack; the anchor where nobody else's labels can judge."""
        if self.seen.all(axis=0).all():
            return self.anchor
        H = self.honest()
        found = muffle(H, self.y, with_labelled(self.F, H), tau=made.tau, potential=made.potential, anchor=self.anchor)
        return found.weights

    def evidence(self) -> FloatArray:
        """Return how many labels judge a forecast, at the least, and the correlations on them."""
        n = float((len(self.y) - self.seen.sum(axis=0)).min())
        return np.concatenate([[n], np.clip(self.honest().T @ self.y / len(self.y), -1.0, 1.0)])
