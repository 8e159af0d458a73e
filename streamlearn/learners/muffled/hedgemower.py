"""HedgeMower: a pool of classifiers weighed by labelled and unlabelled events together."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Self

from numpy.typing import NDArray

from streamlearn import snapshot
from streamlearn.contracts import FloatArray, Label, Snapshot
from streamlearn.errors import BadParameter
from streamlearn.kernels.embed import N_NEIGHBOURS
from streamlearn.learners.muffled.clusters import fit_clusters
from streamlearn.learners.muffled.layers import Extra, Layer
from streamlearn.learners.muffled.members import MEMBERS, checked_members, scaled_forest
from streamlearn.learners.muffled.model import Voting
from streamlearn.learners.muffled.own import Trained, checked_own, from_text, to_text
from streamlearn.learners.muffled.own_layer import own_layer
from streamlearn.learners.muffled.paper import fit_hedgemower
from streamlearn.learners.muffled.ranks import fit_ranks
from streamlearn.learners.muffled.rectified import Maker, Pool, fit_pool
from streamlearn.learners.muffled.sample import Sample
from streamlearn.learners.muffled.stream import MuffledScorer
from streamlearn.learners.muffled.unlabelled import LEAST_UNLABELLED, MOST_LABELLED, fit_embedded


class PoolScorer(MuffledScorer):
    """Base of the learners that start from a pool of whole classifiers."""

    def __init__(
        self,
        *,
        estimator: str = "rectified",
        members: str | Sequence[Any] | None = None,
        n_trees: int = 100,
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
        self.estimator = estimator
        self.members = members
        self.n_trees = n_trees
        self.unlabelled_members = unlabelled_members
        self.clusters = clusters
        self.conservative = conservative
        self.tau = tau
        self.potential = potential
        self.failure_prob = failure_prob
        self.labelled_buffer = labelled_buffer
        self.unlabelled_buffer = unlabelled_buffer
        self.reservoir = reservoir
        self.drift = drift
        self.refit_every = refit_every
        self.refit_share = refit_share
        self.refit_lag = refit_lag
        self.seed = seed
        self.max_features = max_features
        self.positive = positive
        self.reject_cost = reject_cost
        self._makers = self._chosen(checked_members(self.name, members))
        self._own = checked_own(self.name, self._listed(), positive)
        super().__init__()
        self._know_features()

    def _listed(self) -> Sequence[Any]:
        return () if self.members is None or isinstance(self.members, str) else self.members

    def _know_features(self) -> None:
        """Give the features of trained members their columns: events must then come by the same kind of names."""
        names = {name for own in self._own if isinstance(own, Trained) for name in own.voter.names}
        new = self._features.unseen(names)
        if len({type(name) for name in new}) > 1 or len(new) > self.max_features:
            raise BadParameter(
                f"{self.name}: members must know features by name or all by position, at most "
                f"max_features={self.max_features}, got {new[:3]!r} ... {new[-3:]!r}"
            )
        self._features.grow(new)
        self._widen(self.n_features)

    def _chosen(self, names: tuple[str, ...]) -> tuple[Maker, ...]:
        return tuple(MEMBERS[name] for name in names)

    def _check(self) -> None:
        super()._check()
        if self.unlabelled_members not in ("auto", "on", "off"):
            raise BadParameter(
                f"{self.name}: unlabelled_members must be 'auto', 'on' or 'off', got {self.unlabelled_members!r}"
            )
        for name, value in (("clusters", self.clusters), ("conservative", self.conservative)):
            if not isinstance(value, bool):
                raise BadParameter(f"{self.name}: {name} must be True or False, got {value!r}")
        if self.clusters and (self.unlabelled_members == "off" or self.estimator == "paper"):
            raise BadParameter(
                f"{self.name}: clusters must be False with unlabelled_members 'off' or estimator 'paper', got True"
            )
        if self._own and self.estimator == "paper":
            raise BadParameter(f"{self.name}: members of one's own must come with estimator 'rectified', got 'paper'")

    def _pool(self, sample: Sample) -> Pool:
        return fit_pool(
            sample,
            self._makers,
            self.n_trees,
            self.tau,
            self.potential,
            extras=self._extras(sample),
            conservative=self.conservative,
        )

    def _extras(self, sample: Sample) -> list[Extra]:
        found: list[tuple[Layer, FloatArray]] = []
        for count, own in enumerate(self._own):
            names = own.voter.names if isinstance(own, Trained) else ()
            found.append(own_layer(sample, own, self._features.columns(names), count))
        n, n_unlabelled = len(sample.y), len(sample.unlabelled)
        worth = n_unlabelled >= LEAST_UNLABELLED and n <= MOST_LABELLED
        possible = n_unlabelled > N_NEIGHBOURS and sample.unlabelled.shape[1] > 0
        if possible and (self.unlabelled_members == "on" or (self.unlabelled_members == "auto" and worth)):
            embedded = fit_embedded(sample)
            found += [] if embedded is None else [embedded]
            clusters = fit_clusters(sample) if self.clusters else None
            found += [] if clusters is None else [clusters]
        if self.drift:
            ranks = fit_ranks(sample, self.n_trees)
            found += [] if ranks is None else [ranks]
        return [Extra(layer, held_out, self._votes_there(layer, sample)) for layer, held_out in found]

    @staticmethod
    def _votes_there(layer: Layer, sample: Sample) -> FloatArray:
        if not layer.on_ranks or sample.unlabelled_ranks is None:
            return layer.votes(sample.unlabelled)
        return layer.votes(sample.unlabelled_ranks)

    # State: members that the user brought go into it as numbers and names

    def _portable_params(self) -> dict[str, Any]:
        params = self.params()
        if self._own:
            own = iter(self._own)
            params["members"] = [item if isinstance(item, str) else next(own) for item in self._listed()]
        return params

    def _saved_params(self) -> dict[str, Any]:
        params = self.params()
        if not (params["members"] is None or isinstance(params["members"], str)):
            params["members"] = to_text(self._listed(), self._own)
        return params

    def _arrays(self) -> dict[str, NDArray[Any]]:
        arrays = super()._arrays()
        places = [place for place, item in enumerate(self._listed()) if not isinstance(item, str)]
        for place, own in zip(places, self._own, strict=True):
            if isinstance(own, Trained):
                arrays |= snapshot.nest(f"{_MEMBER}/{place}", own.arrays())
        return arrays

    @classmethod
    def _build(cls, state: Snapshot, make: Callable[[], Self] | None = None) -> Self:
        def made() -> Any:
            params = json.loads(state["parameters"])
            text = params.get("members")
            if isinstance(text, str) and text.startswith("["):
                below = snapshot.below(f"array/{_MEMBER}", state)
                places = {name.partition("/")[0] for name in below}
                arrays = {place: snapshot.below(place, below) for place in places}
                params["members"] = from_text(cls.__name__, text, arrays)
            return cls(**params)

        return super()._build(state, made if make is None else make)


_MEMBER = "member"


class HedgeMower1(PoolScorer):
    """Whole classifiers, weighed so that the worst-case error on the unlabelled events is small.

    Balsubramani and Freund (2016), "Muffled semi-supervised learning", in two forms.

    ``estimator="rectified"``, the default, keeps the theory (weights >= 0 of least slack, the score of an event is the
    weighted sum of its members' votes, its forecast that score clipped to [-1, 1]) and changes what makes the published
    form lose to a plain random forest: few, different members with soft votes instead of a hundred exchangeable trees;
    correlations b from out-of-bag and cross-fitted votes on all labels, by a control variate; a ridge towards the equal
    vote. Its guarantee: given b, the slack is never above that of the equal vote.

    ``estimator="paper"``: a random forest on a quarter of the labels, Wilson's bounds of its trees on the others, least
    zero-one slack.

    The model is refitted as labels come in and fixed between refits. Before two labels of either class were seen every
    event gets the prior.

    Parameters
    ----------
    estimator : str
        "rectified" (default) or "paper".
    members : str, list or None
        Names of the pool's members, comma-separated: forest, leafy, extra, boosted, logistic, bayes; None = all. Or a
        list of such names and of classifiers of one's own (rectified): of scikit-learn (trees, forests, boosted trees,
        logistic regression, Gaussian naive Bayes), River (logistic regression, Hoeffding trees) or streamlearn
        (two-class learners). Trained ones vote as they stand and must not have seen the events that are labelled here;
        their second class counts as positive, unless `positive` names the first one. Untrained ones are trained at each
        refit. All become arrays, or the state of a learner, and need their library no more to vote, save or load.
    n_trees : int
        Of each forest, and at most so many boosted ones (up to 100).
    unlabelled_members : str
        "auto" (default): four further members are learned on the reservoir where it holds at least 300 events and the
        buffer at most 500 labels; "on", "off" (rectified). With few labels they raise the AUC on text, sequences and
        sensor streams.
    clusters : bool
        With those a fifth one: a logistic regression on the clusters, 10, 40 and 100, that a row lies in.
    conservative : bool
        Those have no share in the anchor and come in on evidence alone.
    tau : float
        Strength of the ridge towards the equal vote, in labels (rectified).
    potential : str
        "square" (default), "zero-one", "log", "exp" or "hinge" (rectified; the paper's form is zero-one).
    failure_prob : float
        Of one of Wilson's bounds.
    labelled_buffer : int
        The last so many labelled events are learned from.
    unlabelled_buffer : int
        Size of the reservoir of unlabelled events.
    reservoir : str
        "uniform": a fair sample of all unlabelled events. "biased": each arrival replaces a random one. "sliding": the
        last ones. "auto" (default): sliding under drift, else uniform.
    drift : bool
        For streams whose sensors or seasons change (rectified): further members learn from the ranks that events had
        among the last 500 unlabelled ones when they came, and a refit replaces a fifth of each forest instead of all of
        it. Costs a little where events come in no order.
    refit_every, refit_share : int, float
        A refit takes max(refit_every, refit_share x labels in the buffer) new labels. With 10 for the 2 the first
        models of a stream come late, and a refit on few labels takes milliseconds.
    refit_lag : int
        A refit's model comes into use so many events after the one that caused it. Meanwhile a worker process can make
        it: see `use_worker`.
    seed : int
        Of all random choices.
    max_features : int
        Bound of the width.
    positive : label or None
        The label that counts as positive.
    reject_cost : float
        `predict_one` abstains where the larger probability is below 1 - reject_cost.

    Examples
    --------
    >>> import numpy as np
    >>> from streamlearn import HedgeMower1
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 4))
    >>> y = [int(x[0] + x[1] > 0) if i < 60 else None for i, x in enumerate(X)]
    >>> model = HedgeMower1(n_trees=25).fit(X, y)
    >>> model.predict_one([1.0, 1.0, 0.0, 0.0])
    1
    """

    def fit_sample(self, sample: Sample) -> Voting:
        """Return the model of one refit; a function of parameters and sample alone."""
        if self.estimator == "paper":
            return fit_hedgemower(sample, self.n_trees, self.failure_prob, nodes=False)
        return self._pool(sample).model(sample)


class HedgeMower(HedgeMower1):
    """HedgeMower-1 with specialists: parts of trees that vote where they are awake.

    In the rectified form the forest votes four times: by its leaves, and by the deepest nodes that hold at least 3, 10
    and 30 labels. In the paper's form every node whose correlation is surely not 0 is a member of its own, with the
    vote of its tree; single nodes as members of the rectified form always hurt.

    Parameters
    ----------
    estimator, members, n_trees, unlabelled_members, clusters, conservative, tau, potential
        As for `HedgeMower1`.
    failure_prob, labelled_buffer, unlabelled_buffer, reservoir, drift, refit_every, refit_share, refit_lag, seed
        As for `HedgeMower1`.
    max_features, positive, reject_cost
        As for `HedgeMower1`.

    Examples
    --------
    >>> import numpy as np
    >>> from streamlearn import HedgeMower
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 3))
    >>> model = HedgeMower(n_trees=25).fit(X, (X[:, 0] > 0).tolist())
    >>> model.predict_one([2.0, 0.0, 0.0])
    True
    """

    def _chosen(self, names: tuple[str, ...]) -> tuple[Maker, ...]:
        return tuple(scaled_forest if name == "forest" else MEMBERS[name] for name in names)

    def fit_sample(self, sample: Sample) -> Voting:
        """Return the model of one refit; a function of parameters and sample alone."""
        if self.estimator == "paper":
            return fit_hedgemower(sample, self.n_trees, self.failure_prob, nodes=True)
        return self._pool(sample).model(sample)
