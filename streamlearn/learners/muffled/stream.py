"""What all muffled learners share: refits that depend on the events alone, forecasts, state."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from streamlearn import snapshot
from streamlearn.contracts import CodeArray, Document, FeatureName, FloatArray, Snapshot
from streamlearn.errors import BadParameter, BadSnapshot
from streamlearn.features.frames import from_one
from streamlearn.kernels import muffled as kernels
from streamlearn.learners.base import BinaryScorer
from streamlearn.learners.labels import checked_reject_cost
from streamlearn.learners.muffled.buffers import RESERVOIRS, Buffers
from streamlearn.learners.muffled.clusters import medoids
from streamlearn.learners.muffled.explain import Partition, partition
from streamlearn.learners.muffled.layers import Layered, checked_numbers, handed_on, model_from_arrays
from streamlearn.learners.muffled.model import Model, Voting
from streamlearn.learners.muffled.potentials import checked_potential
from streamlearn.learners.muffled.refits import Waiting, fit_sample
from streamlearn.learners.muffled.sample import Sample, derived_seed
from streamlearn.learners.muffled.slack import certified_error
from streamlearn.learners.muffled.wilson import wilson_lower_bound

_LEAST = {"n_trees": 1, "labelled_buffer": 4, "unlabelled_buffer": 0, "refit_every": 1, "refit_lag": 0, "seed": 0}
_MODEL, _WAITING = "model", "waiting"


class MuffledScorer(BinaryScorer):
    """Base of the muffled learners: a subclass fits a model to a sample.

    A model is refitted when enough labels came in; between refits it does not change. Refits, and the events after
    which their models come into use, fall on event numbers that depend on the labels alone, and their random choices on
    seed and number of the refit.
    """

    learns_unlabelled: ClassVar[bool] = True
    """Events without a label change the state: they fill the reservoir."""
    _needs_finite_rows: ClassVar[bool] = True

    estimator: str
    tau: float
    potential: str
    failure_prob: float
    n_trees: int
    labelled_buffer: int
    unlabelled_buffer: int
    reservoir: str
    drift: bool
    refit_every: int
    refit_share: float
    refit_lag: int
    seed: int

    def __init__(self) -> None:
        self._check()
        kind = self.reservoir
        if kind == "auto":
            kind = "sliding" if self.drift else "uniform"
        self._buffers = Buffers(
            self.labelled_buffer,
            self.unlabelled_buffer,
            kind,
            self.refit_every,
            self.seed,
            self.refit_share,
            ranked=self.drift,
        )
        self._model: Voting | None = None
        self._waiting: Waiting | None = None
        self._executor: Executor | None = None
        self._found: dict[str, tuple[list[str], list[Document]]] = {}
        super().__init__()

    def _check(self) -> None:
        if self.estimator not in ("rectified", "paper"):
            raise BadParameter(f"{self.name}: estimator must be 'rectified' or 'paper', got {self.estimator!r}")
        if self.reservoir not in ("auto", *RESERVOIRS):
            raise BadParameter(
                f"{self.name}: reservoir must be one of {sorted(('auto', *RESERVOIRS))}, got {self.reservoir!r}"
            )
        if not isinstance(self.drift, bool) or (self.drift and self.estimator == "paper"):
            raise BadParameter(
                f"{self.name}: drift must be False, or True with estimator 'rectified', got {self.drift!r}"
            )
        checked_potential(self.name, self.potential)
        checked_reject_cost(self.name, self.reject_cost)
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value < 2**62:
                raise BadParameter(f"{self.name}: {name} must be a whole number >= {least}, got {value!r}")
        for name, low, high in (("tau", 0.0, np.inf), ("refit_share", 0.0, 1.0), ("failure_prob", 1e-300, 1.0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value < high:
                raise BadParameter(f"{self.name}: {name} must be in [{low:g}, {high:g}), got {value!r}")

    @abstractmethod
    def fit_sample(self, sample: Sample) -> Voting:
        """Return the model of one refit; a function of parameters and sample alone."""

    def _portable_params(self) -> dict[str, Any]:
        """Return the parameters as another process may be given them."""
        return self.params()

    # What there is

    @property
    def n_refits(self) -> int:
        """Number of refits so far."""
        return self._buffers.count(kernels.REFITS)

    @property
    def is_fitted(self) -> bool:
        """A model exists: before the first one every event gets the prior."""
        return self._model is not None

    @property
    def vote_names(self) -> tuple[str, ...]:
        """Names of the members' votes; empty before the first refit."""
        return () if self._model is None else self._model.names

    @property
    def vote_weights(self) -> FloatArray:
        """What each vote weighs: float64[n_votes], a copy."""
        return np.empty(0) if self._model is None else self._model.weights.copy()

    def votes_many(self, X: Any) -> FloatArray:
        """Return the members' votes on rows: float64[n_rows, n_votes]. Times `vote_weights` they are the scores."""
        votes: list[FloatArray] = []

        def keep(rows: FloatArray, out: FloatArray) -> int:
            if self._model is None:
                votes.append(np.empty((len(rows), 0)))
            else:
                votes.append(self._model.score(self._buffers.seen_now(rows), out).copy())
            return -1

        self._outputs(X, keep)
        return votes[0]

    def partition_one(self, x: Any, *, n_rules: int = 10) -> Partition:
        """Take the score of one event apart: which members carry it, and which rules of their trees.

        Parameters
        ----------
        x : mapping of name to number, or 1-D array
        n_rules : int
            How many rules to show, those of the largest parts.

        Examples
        --------
        ``print(model.partition_one(x))`` is a table, ``model.partition_one(x).draw(axes)`` a picture of bars.
        """
        rows = self._known_rows(*from_one(self.name, x))
        if self._model is None:
            return Partition(self._buffers.prior, (), ())
        return partition(self._model, self._buffers.seen_now(rows), self.feature_names, n_rules)

    def suggest_labels(self, k: int) -> list[dict[FeatureName, float]]:
        """Return the events of the reservoir whose labels would teach most at the start, the most typical first.

        Parameters
        ----------
        k : int
            At most so many: medoids of clusters. Once there are labels, ask for random events instead.

        Returns
        -------
        list of dict
            Feature values by name.
        """
        if isinstance(k, bool) or not isinstance(k, int) or k < 1:
            raise BadParameter(f"{self.name}: k must be a whole number >= 1, got {k!r}")
        sample = self._sample()
        if len(sample.unlabelled) < 2 or self.n_features == 0:
            chosen = sample.unlabelled[:k]
        else:
            chosen = sample.unlabelled[medoids(sample, k)]
        return [dict(zip(self.feature_names, row.tolist(), strict=True)) for row in chosen]

    def error_bound(self) -> float:
        """Return a bound of the expected error of the randomised forecast on events like the unlabelled ones.

        Half of the least slack on the reservoir with Wilson's bounds of the votes' correlations; together they fail
        with probability `failure_prob` (the paper's form: with its own bounds, each of that probability). 1/2 where
        nothing is known. It says how sure one may be, not how good the model is: weights do not depend on it.
        """
        model, rows = self._model, self._buffers.unlabelled
        if model is None or len(rows) == 0:
            return 0.5
        n_labels, correlations = model.evidence[0], model.evidence[1:]
        if n_labels == 0.0:
            return float(correlations[0])
        share = self.failure_prob / len(correlations)
        b = wilson_lower_bound(np.clip(correlations, 0.0, 1.0), n_labels, share)
        votes = np.clip(model.score(rows, np.empty(len(rows))), -1.0, 1.0)
        return certified_error(np.ascontiguousarray(votes.T), b)

    # Refits

    def refit(self) -> Self:
        """Fit the model to what is in the buffers now; nothing happens below two labels of either class."""
        if self._buffers.both_classes:
            self._model = self.fit_sample(self._start_refit())
            self._waiting = None
        return self

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn a batch with one refit, at its end, in place of those that its labels would cause one by one.

        Parameters
        ----------
        X : array [n_rows, n_features], dataframe, or sequence of mappings
        y : array, series or sequence [n_rows], or None
            Labels; None or NaN = unlabelled.
        """
        with self.one_refit():
            self.learn_many(X, y)
        return self

    @contextmanager
    def one_refit(self) -> Iterator[None]:
        """Learn what is learned inside with one refit, at its end: for a batch that comes in pieces."""
        self._buffers.set_refits(None)
        try:
            yield
        finally:
            self._buffers.set_refits(self.refit_every)
        self.refit()

    def use_worker(self, executor: Executor | None) -> Self:
        """Let refits run in the worker of an executor while the stream goes on, up to `refit_lag` events.

        The result is the same with and without a worker, whatever the timing; where a worker dies, the refit is made
        here. The worker is no part of the state.

        Parameters
        ----------
        executor : concurrent.futures.Executor or None
            For instance a ``ProcessPoolExecutor(1)``; who makes it shuts it down.
        """
        self._executor = executor
        return self

    def clone(self, **changes: Any) -> Self:
        """Return an untrained learner with the same parameters but for `changes`, and with the same worker."""
        return super().clone(**changes).use_worker(self._executor)

    def _start_refit(self) -> Sample:
        counters = self._buffers.counters
        before = int(counters[kernels.AT_REFIT])
        counters[kernels.REFITS] += 1
        counters[[kernels.NEW, kernels.DUE, kernels.SWAP]] = 0
        counters[kernels.AT_REFIT] = counters[kernels.LABELLED]
        return self._sample(int(counters[kernels.LABELLED]) - before)

    def _sample(self, n_new: int | None = None) -> Sample:
        """Return the buffers as they stand; with `n_new` labels since the last model, also what that hands on."""
        rows, y = self._buffers.labelled_in_order()
        unlabelled = self._buffers.unlabelled.copy()
        m = self.n_features
        seed = derived_seed(self.seed, self.n_refits)
        kept_ranks, unlabelled_ranks = (
            np.ascontiguousarray(part[:, m:]) if self.drift else None for part in (rows, unlabelled)
        )
        labelled, unlabelled = (np.ascontiguousarray(part[:, :m]) for part in (rows, unlabelled))
        sample = Sample(labelled, y, unlabelled, seed, kept_ranks, unlabelled_ranks)
        if self._model is None or n_new is None:
            return sample
        weights = dict(zip(self._model.names, self._model.weights.tolist(), strict=True))
        warm = handed_on(self._model, len(y), n_new) if self.drift else None
        return replace(sample, warm=warm, weights=weights)

    def _change(self) -> None:
        """Do what is due after an event: begin a refit, or take its model into use."""
        counters = self._buffers.counters
        if counters[kernels.DUE]:
            sample = self._start_refit()
            if self.refit_lag == 0:
                self._model = self.fit_sample(sample)
                return
            counters[kernels.SWAP] = counters[kernels.EVENTS] + self.refit_lag
            make = partial(fit_sample, type(self), self._portable_params(), sample)
            self._waiting = Waiting(make, self._executor)
        elif self._waiting is not None and counters[kernels.SWAP] == counters[kernels.EVENTS]:
            self._model = self._waiting.result().widened(self.n_features)
            self._waiting = None
            counters[kernels.SWAP] = 0

    # Hooks of the base

    def _widen(self, n_features: int) -> None:
        self._buffers.widen(n_features)
        if self._model is not None:
            self._model = self._model.widened(n_features)

    def _swap_classes(self) -> None:
        # Only ever before both classes were seen, so there is no model yet.
        self._buffers.swap_classes()

    def _learn(self, X: FloatArray, codes: CodeArray) -> int:
        self._buffers.make_room(len(X))
        _, rows = self._buffers.arriving(X, X, codes)
        at = 0
        while at < len(X):
            at = self._buffers.absorb(rows, codes, at, stop_at_label=False)
            self._change()
        return -1

    def _score(self, X: FloatArray, out: FloatArray) -> int:
        if self._model is None:
            out[:] = self._buffers.prior
        else:
            self._model.score(self._buffers.seen_now(X), out)
        return -1

    def _probability(self, X: FloatArray, out: FloatArray) -> int:
        self._score(X, out)
        out[:] = 0.5 * (1.0 + np.clip(out, -1.0, 1.0))
        return -1

    def _test_then_learn(
        self, X_test: FloatArray, X_learn: FloatArray, codes: CodeArray, scores: FloatArray, probabilities: FloatArray
    ) -> int:
        self._buffers.make_room(len(X_learn))
        tested, rows = self._buffers.arriving(X_test, X_learn, codes)
        at = 0
        while at < len(rows):
            # The forecasts of the rows up to the next change are those of the model, or the prior, before them.
            model, prior = self._model, self._buffers.prior
            stop = self._buffers.absorb(rows, codes, at, stop_at_label=model is None)
            self._change()
            if model is None:
                scores[at:stop] = prior
            else:
                model.score(tested[at:stop], scores[at:stop])
            at = stop
        probabilities[:] = 0.5 * (1.0 + np.clip(scores, -1.0, 1.0))
        return -1

    # State

    def _models(self) -> dict[str, Voting]:
        """Return the models by name; one that waits is made by now: the state must not depend on timing."""
        models = {} if self._model is None else {_MODEL: self._model}
        if self._waiting is not None:
            models[_WAITING] = self._waiting.result().widened(self.n_features)
        return models

    def _arrays(self) -> dict[str, NDArray[Any]]:
        arrays = self._buffers.arrays()
        for name, model in self._models().items():
            arrays |= snapshot.nest(name, model.arrays())
        return arrays

    def _set_arrays(self, arrays: dict[str, NDArray[Any]]) -> None:
        self._buffers.set_arrays(self.name, arrays)
        models = {
            name: model_from_arrays(self.name, snapshot.below(name, arrays), votes, self.n_features, layers)
            for name, (votes, layers) in self._found.items()
        }
        self._model = models.get(_MODEL)
        if (_WAITING in models) != (self._buffers.count(kernels.SWAP) > 0):
            raise BadSnapshot(f"{self.name}: the saved state must have a waiting model exactly where a swap is due")
        if _WAITING in models:
            self._waiting = Waiting(lambda: models[_WAITING])
        self._check_used(models.get(_WAITING, self._model))

    def _check_used(self, newest: Voting | None) -> None:
        base = newest.base if isinstance(newest, Layered) else newest
        most = min(self._buffers.count(kernels.AT_REFIT), self.labelled_buffer)
        if isinstance(base, Model) and any(len(used) != most for used in base.used.values()):
            raise BadSnapshot(f"{self.name}: the saved trees must know {most} labelled rows")

    def _numbers(self) -> Document:
        return {name: {"votes": list(m.names), "layers": m.documents()} for name, m in self._models().items()}

    def _set_numbers(self, numbers: Document) -> None:
        if set(numbers) - {_MODEL, _WAITING}:
            raise BadSnapshot(f"{self.name}: the saved state must have no other numbers than those of its models")
        found = {name: checked_numbers(self.name, entry) for name, entry in numbers.items()}
        self._found = found

    def restore(self, state: Snapshot) -> None:
        """Become exactly what `state` describes, parameters included; untouched where that fails. The worker stays."""
        executor = self._executor
        super().restore(state)
        self._executor = executor
