"""Members of the pool: whole classifiers, each with its votes on labelled rows made without their labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from streamlearn.contracts import FloatArray
from streamlearn.errors import BadParameter
from streamlearn.learners.muffled.logistic import fit_logistic
from streamlearn.learners.muffled.sample import N_FOLDS, Sample
from streamlearn.learners.muffled.specialists import SCALES, scale_values
from streamlearn.learners.muffled.trees import Trees, grow_boosted

_BOOSTED_TREES = 100
_BOOSTING_RATE = 0.1
_VARIANCE_FLOOR = 1e-9


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
    """

    names: tuple[str, ...]
    held_out: FloatArray
    part: Trees | FloatArray


def _forest(
    sample: Sample, name: str, count: int, n_trees: int, *, least: int = 1, random: bool = False, scales: bool = False
) -> Member:
    grown, used = sample.ranked.grow(
        sample.y, sample.derived(count), n_trees=n_trees, share=0.0, least=least, random_thresholds=random
    )
    soft = grown.soft(sample.prior)
    values = soft[:, None]
    names: tuple[str, ...] = (name,)
    if scales:
        values = np.hstack([values, scale_values(grown, soft)])
        names += tuple(f"{name}, {scale:g} labels" for scale in SCALES)
    trees = grown.trees(values)
    return Member(names, trees.votes_without(sample.labelled_keys, used), trees)


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
    order = sample.ranked.order()
    rounds = min(n_trees, _BOOSTED_TREES)
    held_out = np.empty(len(sample.y))
    for fold in range(N_FOLDS):
        inside = sample.folds != fold
        learned = order[inside[order]].reshape(order.shape[0], -1)
        _, log_odds = grow_boosted(sample.labelled_values, learned, sample.y, n_trees=rounds, rate=_BOOSTING_RATE)
        held_out[~inside] = np.tanh(0.5 * log_odds[~inside])
    trees, _ = grow_boosted(sample.labelled_values, order, sample.y, n_trees=rounds, rate=_BOOSTING_RATE)
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
    """Fit a logistic regression on standardised features."""

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


def checked_members(who: str, members: str | None) -> tuple[str, ...]:
    """Return the names of the members; None = all of them.

    Raises
    ------
    BadParameter
    """
    if members is None:
        return tuple(MEMBERS)
    names = tuple(name.strip() for name in members.split(",")) if isinstance(members, str) else ()
    if not names or len(set(names)) < len(names) or not set(names) <= set(MEMBERS):
        raise BadParameter(
            f"{who}: members must be different ones of {list(MEMBERS)}, comma-separated, got {members!r}"
        )
    return names
