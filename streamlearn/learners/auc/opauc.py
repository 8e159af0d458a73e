"""One-pass AUC optimisation, without a reject option."""

from __future__ import annotations

from typing import Literal

from streamlearn.contracts import Label
from streamlearn.learners.auc.aucro import AUCRO


class OPAUC(AUCRO):
    """Ranks events by stochastic gradient on the pairwise square loss: AUCRO at ``reject_cost=0.5, solver="sgd"``.

    Parameters
    ----------
    half_life, clock, learning_rate, regularization, scale, clip, max_features, positive
        As for `AUCRO`.

    Notes
    -----
    Gao, Jin, Zhu, Zhou 2013, "One-Pass AUC Optimization". Unlike there, features are scaled while running, steps stay
    below the smoothness bound, and far values are cut; ``scale="none", clip=None`` and a number for the step give the
    published algorithm.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> model = OPAUC().learn_many(X, X[:, 0] > X[:, 1])
    >>> model.score_one([1.0, -1.0, 0.0]) > model.score_one([0.0, 0.0, 0.0])
    True
    """

    def __init__(
        self,
        *,
        half_life: float | None = None,
        clock: Literal["time", "class"] = "time",
        learning_rate: float | Literal["auto"] = "auto",
        regularization: float | Literal["auto"] = "auto",
        scale: Literal["auto", "standard", "range", "none"] = "auto",
        clip: float | None = 3.0,
        max_features: int = 2048,
        positive: Label | None = None,
    ) -> None:
        super().__init__(
            solver="sgd",
            half_life=half_life,
            clock=clock,
            learning_rate=learning_rate,
            regularization=regularization,
            scale=scale,
            clip=clip,
            max_features=max_features,
            positive=positive,
        )
