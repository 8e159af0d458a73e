"""Members of the pool: whole classifiers, each with its votes on labelled rows made without their labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamlearn.contracts import FloatArray
from streamlearn.errors import BadParameter
from streamlearn.learners.muffled.logistic import fit_logistic
from streamlearn.learners.muffled.sample import N_FOLDS, Sample
from streamlearn.learners.muffled.specialists import SCALES, scale_values
from streamlearn.learners.muffled.trees import BoolArray, Trees, grow_boosted, merged

_BOOSTED_TREES = 100
_BOOSTING_RATE = 0.1
_VARIANCE_FLOOR = 1e-9
_REPLACED = 0.2  # of the trees of a forest at each refit under drift


@dataclass(frozen=True, slots=True)
class Member:
    """One fitted member.

    Attributes
    ----------
    names : tuple of str
        Of its votes.
    held_out : float64[n_labelled, n_votes]
        Votes in [-1, 1] on the labelled rows, each made by parts that did not see the row's label.
    part : Trees or float64[1 + 2 n_features]
        What votes: trees, or bias, weights and weights of the squares for log-odds.
    used : bool[n_labelled, n_trees] or None
        Labelled rows that each tree of a forest saw.
    """

    names: tuple[str, ...]
    held_out: FloatArray
    part: Trees | FloatArray
    used: BoolArray | None = None


def _forest(
    sample: Sample, name: str, count: int, n_trees: int, *, least: int = 1, random: bool = False, scales: bool = False
) -> Member:
    kept = None if sample.warm is None else sample.warm.trees.get(name)
    n_new = max(1, round(_REPLACED * n_trees))
    if kept is None or len(kept.roots) != n_trees or n_new >= n_trees:
        kept, n_new = None, n_trees
    grown, used = sample.ranked.grow(
        sample.y, sample.derived(count), n_trees=n_new, share=0.0, least=least, random_thresholds=random
    )
    soft = grown.soft(sample.prior)
    values = soft[:, None]
    names: tuple[str, ...] = (name,)
    if scales:
        values = np.hstack([values, scale_values(grown, soft)])
        names += tuple(f"{name}, {scale:g} labels" for scale in SCALES)
    trees = grown.trees(values)
    if kept is not None and sample.warm is not None:
        trees = merged([kept.without_first(n_new), trees])
        used = np.hstack([sample.warm.used[name][:, n_new:], used])
    return Member(names, trees.votes_without(sample.labelled_keys, used), trees, used)


def forest(sample: Sample, n_trees: int) -> Member:
    """Fit a random forest of whole trees."""
    return _forest(sample, "forest", 1, n_trees)


def scaled_forest(sample: Sample, n_trees: int) -> Member:
    """Fit a random forest with scale groups: votes of the deepest nodes with at least 3, 10 and 30 labels."""
    return _forest(sample, "forest", 1, n_trees, scales=True)


def leafy_forest(sample: Sample, n_trees: int) -> Member:
    """Fit a random forest with at least five labels a leaf."""
    return _forest(sample, "leafy", 2, n_trees, least=5)


def extra_trees(sample: Sample, n_trees: int) -> Member:
    """Fit extremely randomised trees on bootstrap samples, at least two labels a leaf."""
    return _forest(sample, "extra", 3, n_trees, least=2, random=True)


def boosted(sample: Sample, n_trees: int) -> Member:
    """Fit `n_trees`, but at most a hundred, boosted trees of depth three."""
    values, order = sample.labelled_values, sample.ranked.order()
    if not len(order):  # without any feature it is as if there were one that never changes
        values, order = np.zeros((len(sample.y), 1), np.float32), np.arange(len(sample.y), dtype=np.int32)[None]
    rounds = min(n_trees, _BOOSTED_TREES)
    held_out = np.empty(len(sample.y))
    for fold in range(N_FOLDS):
        inside = sample.folds != fold
        learned = order[inside[order]].reshape(len(order), np.count_nonzero(inside))
        _, log_odds = grow_boosted(values, learned, sample.y, n_trees=rounds, rate=_BOOSTING_RATE)
        held_out[~inside] = np.tanh(0.5 * log_odds[~inside])
    trees, _ = grow_boosted(values, order, sample.y, n_trees=rounds, rate=_BOOSTING_RATE)
    return Member(("boosted",), held_out[:, None], trees)


Fit = Callable[[FloatArray, FloatArray], tuple[float, FloatArray, FloatArray]]


def _linear(sample: Sample, name: str, fit: Fit) -> Member:
    """Fit on all rows and without each fold; `fit` gives bias, weights and weights of the squares."""
    z = sample.standardised
    held_out = np.empty(len(sample.y))
    for fold in range(N_FOLDS):
        inside = sample.folds != fold
        bias, w, q = fit(z[inside], sample.y[inside])
        rest = z[~inside]
        held_out[~inside] = np.tanh(0.5 * (bias + rest @ w + np.square(rest) @ q))
    bias, w, q = fit(z, sample.y)
    return Member((name,), held_out[:, None], np.concatenate([[bias], w, q]))


def logistic(sample: Sample, n_trees: int) -> Member:
    """Fit a logistic regression on standardised features.

    Its penalty is fixed: chosen by cross-validated loss it gains nothing on the pool's score, at 50 labels or at 200.
    """

    def fit(z: FloatArray, y: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        bias, w = fit_logistic(z, y, 1.0)
        return bias, w, np.zeros(z.shape[1])

    return _linear(sample, "logistic", fit)


def bayes(sample: Sample, n_trees: int) -> Member:
    """Fit Gaussian naive Bayes."""
    return _linear(sample, "bayes", _fit_bayes)


def _fit_bayes(z: FloatArray, y: FloatArray) -> tuple[float, FloatArray, FloatArray]:
    """Log-odds of two Gaussians a feature: sum of log(s0 / s1) + (z - m0)^2 / 2 v0 - (z - m1)^2 / 2 v1."""
    one, zero = z[y > 0], z[y < 0]
    floor = _VARIANCE_FLOOR * float(z.var(axis=0).max(initial=0.0)) + 1e-300
    m1, m0, v1, v0 = one.mean(axis=0), zero.mean(axis=0), one.var(axis=0) + floor, zero.var(axis=0) + floor
    bias = np.log(len(one)) - np.log(len(zero))
    bias += float((0.5 * (np.log(v0) - np.log(v1)) + 0.5 * (m0 * m0 / v0 - m1 * m1 / v1)).sum())
    return float(bias), m1 / v1 - m0 / v0, 0.5 / v0 - 0.5 / v1


MEMBERS: dict[str, Callable[[Sample, int], Member]] = {
    "forest": forest,
    "leafy": leafy_forest,
    "extra": extra_trees,
    "boosted": boosted,
    "logistic": logistic,
    "bayes": bayes,
}
"""Members by name, in the order in which they vote."""


def checked_members(who: str, members: str | Sequence[Any] | None) -> tuple[str, ...]:
    """Return the names among the members, in the order in which they vote; None = all of them.

    Raises
    ------
    BadParameter
    """
    if members is None:
        return tuple(MEMBERS)
    given = members.split(",") if isinstance(members, str) else members
    listed = isinstance(given, (list, tuple)) and len(given) > 0
    names = tuple(name.strip() for name in given if isinstance(name, str)) if listed else ()
    if not listed or len(set(names)) < len(names) or not set(names) <= set(MEMBERS):
        raise BadParameter(
            f"{who}: members must be different ones of {list(MEMBERS)}, comma-separated, or a list of such names and "
            f"of classifiers, got {members!r}"
        )
    return names
