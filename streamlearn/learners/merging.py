"""One learner from several that learned different rows apart from each other."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass

from streamlearn.errors import BadParameter
from streamlearn.learners.consensus import Consensus, How, checked_how
from streamlearn.learners.learner import Learner

_AUC = "streamlearn.learners.auc.merge:merge_aucro"
_MUFFLED = "streamlearn.learners.muffled.merge:merge_muffled"
MERGES: dict[str, str] = {
    "AUCRO": _AUC,
    "OPAUC": _AUC,
    "GeometricMedian": "streamlearn.learners.robust.merge:merge_median",
    "ORL": "streamlearn.learners.robust.merge:merge_orl",
    "ORLRegressor": "streamlearn.learners.robust.merge:merge_regressor",
    "ORLPCA": "streamlearn.learners.robust.merge_subspace:merge_pca",
    **dict.fromkeys(("HedgeMower1", "HedgeMower", "Marvin", "MarvinC", "MarvinD"), _MUFFLED),
}
"""Learners that can be merged, each with the function that does so."""


@dataclass(frozen=True, slots=True)
class Merged:
    """A merged learner and how it came about.

    Attributes
    ----------
    model : Learner
    found : Consensus
        Share of each part, its distance from the median, and whether it was trusted.
    """

    model: Learner
    found: Consensus


def require_mergeable(learner: object) -> None:
    """Raise BadParameter for a learner that cannot be merged."""
    name = type(learner).__name__
    if not isinstance(learner, Learner) or name not in MERGES:
        raise BadParameter(f"merge: learner must be one of {list(MERGES)}, got {name}")


def adds_up(learner: Learner) -> bool:
    """Return whether the mean of means is the mean: whole covariances, which parts can be added to as they come in.

    They are also the ones worth adding up at once, O(p^2) numbers each; all other estimates are O(p).
    """
    return MERGES.get(type(learner).__name__) == _AUC and getattr(learner, "_wide", None) is None


def merge_learners(
    models: Sequence[Learner], *, how: How = "trimmed", trim: float = 0.5, before: Learner | None = None
) -> Merged:
    """Return one learner from several with equal parameters; none of them is changed.

    Parameters
    ----------
    models : sequence of Learner
        In a fixed order: sums are taken in it.
    how : {"trimmed", "median", "mean"}
        "mean": what one process would have found (AUCRO), or the average of the estimates by rows. "median": their
        geometric median, which stays bounded while parts with more than half of the rows are right (the form of Feng,
        Xu and Mannor 2017). "trimmed": as the mean, without the parts that stand apart from a majority; so it is the
        mean where all are sound, and hardly moved where nearly half are not.
    trim : float
        Most of the rows that "trimmed" may leave out, in [0, 0.5].
    before : Learner or None
        A learner of earlier rows, which the parts come behind.

    Raises
    ------
    BadParameter
        The models differ in their parameters, or are of a kind that cannot be merged.
    BadLabel
        Together they have more than two labels.

    Examples
    --------
    >>> import numpy as np
    >>> from streamlearn import AUCRO
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> y = X[:, 0] > X[:, 1]
    >>> parts = [AUCRO().learn_many(X[a : a + 100], y[a : a + 100]) for a in (0, 100, 200)]
    >>> merge_learners(parts, how="mean").model.predict_one([1.0, -1.0])
    True
    """
    checked_how("merge", how, trim)
    if not models:
        raise BadParameter("merge: models must be one or more, got none")
    for model in models:
        require_mergeable(model)
    module, _, function = MERGES[type(models[0]).__name__].partition(":")
    merge = getattr(importlib.import_module(module), function)
    return Merged(*merge(models, how, trim, before))
