"""Marvin: members grown one by one on labelled and hallucinated labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from streamlearn.contracts import Label
from streamlearn.errors import BadParameter
from streamlearn.learners.muffled.hedgemower import PoolScorer
from streamlearn.learners.muffled.model import Voting
from streamlearn.learners.muffled.paper import fit_marvin
from streamlearn.learners.muffled.potentials import POTENTIALS
from streamlearn.learners.muffled.sample import Sample
from streamlearn.learners.muffled.stages import corrected, fit_stages

_HUBER_WIDTH = 0.05


class Marvin(PoolScorer):
    """New members where the worst-case error still falls.

    Balsubramani and Freund (2016), in two forms.

    ``estimator="rectified"``, the default: from the score of HedgeMower-1's pool on, each stage grows a bag of 25
    regression trees on what the score still gets wrong, mostly on labelled events (out of bag), a little on a fresh
    minibatch of the unlabelled ones, and adds it with the step of least slack on the *other* unlabelled events.

    ``estimator="paper"``: one tree a round on the labels and on the clipped unlabelled events with the opposite of
    their sign, its step by Wilson's bound on held-out labels and the zero-one slack.

    Parameters
    ----------
    estimator, members, n_trees, unlabelled_members, clusters, conservative, tau, potential
        As for `HedgeMower1`.
    n_stages : int
        Bags of the rectified form, at most.
    n_rounds : int
        Trees of the paper's form.
    trust : float
        Share of the residual that is learned on labelled events, c in [0, 1]; 0 is the paper's (rectified).
    failure_prob, labelled_buffer, unlabelled_buffer, reservoir, drift, refit_every, refit_share, refit_lag, seed
        As for `HedgeMower1`.
    max_features, positive, reject_cost
        As for `HedgeMower1`.

    Examples
    --------
    >>> import numpy as np
    >>> from streamlearn import Marvin
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 4))
    >>> y = [int(x[0] + x[1] > 0) if i < 60 else None for i, x in enumerate(X)]
    >>> model = Marvin(n_trees=25, n_stages=2).fit(X, y)
    >>> model.predict_one([1.0, 1.0, 0.0, 0.0])
    1
    """

    _corrective: ClassVar[bool] = False
    _specialists: ClassVar[bool] = False

    def __init__(
        self,
        *,
        estimator: str = "rectified",
        members: str | Sequence[Any] | None = None,
        n_trees: int = 100,
        n_stages: int = 6,
        n_rounds: int = 50,
        trust: float = 0.9,
        unlabelled_members: str = "auto",
        clusters: bool = False,
        conservative: bool = False,
        tau: float = 10.0,
        potential: str = "square",
        failure_prob: float = 0.01,
        labelled_buffer: int = 1000,
        unlabelled_buffer: int = 2000,
        reservoir: str = "auto",
        drift: bool = False,
        refit_every: int = 2,
        refit_share: float = 0.1,
        refit_lag: int = 0,
        seed: int = 0,
        max_features: int = 100_000,
        positive: Label | None = None,
        reject_cost: float = 0.5,
    ) -> None:
        self.n_stages = n_stages
        self.n_rounds = n_rounds
        self.trust = trust
        super().__init__(
            estimator=estimator,
            members=members,
            n_trees=n_trees,
            unlabelled_members=unlabelled_members,
            clusters=clusters,
            conservative=conservative,
            tau=tau,
            potential=potential,
            failure_prob=failure_prob,
            labelled_buffer=labelled_buffer,
            unlabelled_buffer=unlabelled_buffer,
            reservoir=reservoir,
            drift=drift,
            refit_every=refit_every,
            refit_share=refit_share,
            refit_lag=refit_lag,
            seed=seed,
            max_features=max_features,
            positive=positive,
            reject_cost=reject_cost,
        )

    def _check(self) -> None:
        super()._check()
        for name in ("n_stages", "n_rounds"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise BadParameter(f"{self.name}: {name} must be a whole number >= 1, got {value!r}")
        if isinstance(self.trust, bool) or not isinstance(self.trust, (int, float)) or not 0 <= self.trust <= 1:
            raise BadParameter(f"{self.name}: trust must be in [0, 1], got {self.trust!r}")

    def fit_sample(self, sample: Sample) -> Voting:
        """Return the model of one refit; a function of parameters and sample alone."""
        if self.estimator == "paper":
            return fit_marvin(
                sample, self.n_rounds, self.failure_prob, corrective=self._corrective, nodes=self._specialists
            )
        pool = self._pool(sample)
        psi = POTENTIALS[self.potential].smoothed(_HUBER_WIDTH)
        stages = fit_stages(sample, pool, self.n_stages, self.trust, psi, scales=self._specialists)
        weights = [stage.weights for stage in stages]
        if self._corrective and stages:
            factor, weights = corrected(sample, pool, stages, self.tau, psi)
            pool.weights[:] *= factor
        bags = [
            (_names(k, len(w)), stage.trees, np.asarray(w))
            for k, (stage, w) in enumerate(zip(stages, weights, strict=True))
        ]
        return pool.model(sample, bags, [stage.held_out for stage in stages])


def _names(stage: int, n_votes: int) -> tuple[str, ...]:
    return (f"stage {stage + 1}", *(f"stage {stage + 1}, scale {k}" for k in range(1, n_votes)))


class MarvinC(Marvin):
    """Marvin with total correction: after each round, or once at the end (rectified), all weights are solved again.

    Parameters
    ----------
    estimator, members, n_trees, n_stages, n_rounds, trust, unlabelled_members, clusters, conservative, tau, potential
        As for `Marvin`.
    failure_prob, labelled_buffer, unlabelled_buffer, reservoir, drift, refit_every, refit_share, refit_lag, seed
        As for `Marvin`.
    max_features, positive, reject_cost
        As for `Marvin`.

    Examples
    --------
    >>> import numpy as np
    >>> from streamlearn import MarvinC
    >>> X = np.random.default_rng(0).normal(size=(300, 3))
    >>> MarvinC(n_trees=25, n_stages=2).fit(X, (X[:, 0] > 0).tolist()).predict_one([2.0, 0.0, 0.0])
    True
    """

    _corrective = True


class MarvinD(MarvinC):
    """Marvin-C whose trees come with specialists: scale groups of each bag, or the nodes of each tree (paper).

    Parameters
    ----------
    estimator, members, n_trees, n_stages, n_rounds, trust, unlabelled_members, clusters, conservative, tau, potential
        As for `Marvin`.
    failure_prob, labelled_buffer, unlabelled_buffer, reservoir, drift, refit_every, refit_share, refit_lag, seed
        As for `Marvin`.
    max_features, positive, reject_cost
        As for `Marvin`.

    Examples
    --------
    >>> import numpy as np
    >>> from streamlearn import MarvinD
    >>> X = np.random.default_rng(0).normal(size=(300, 3))
    >>> MarvinD(n_trees=25, n_stages=2).fit(X, (X[:, 0] > 0).tolist()).predict_one([2.0, 0.0, 0.0])
    True
    """

    _specialists = True
