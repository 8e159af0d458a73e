"""What all muffled learners share: buffers of the stream, refits that depend on its events alone, state."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import CodeArray, Document, FeatureName, FloatArray
from streamlearn.errors import BadParameter, BadSnapshot
from streamlearn.features.frames import from_one
from streamlearn.kernels import muffled as kernels
from streamlearn.learners.base import BinaryScorer, checked_reject_cost
from streamlearn.learners.learner import fitting
from streamlearn.learners.muffled.explain import Partition, partition
from streamlearn.learners.muffled.model import Voting
from streamlearn.learners.muffled.potentials import checked_potential
from streamlearn.learners.muffled.sample import Sample, derived_seed
from streamlearn.learners.muffled.slack import certified_error
from streamlearn.learners.muffled.unlabelled import medoids, model_from_arrays
from streamlearn.learners.muffled.wilson import wilson_lower_bound

_RESERVOIRS = {"uniform": kernels.UNIFORM, "biased": kernels.BIASED, "sliding": kernels.SLIDING}
_NEVER = 2**62
_FIRST_ROOM = 64
_MODEL = "model_"


class MuffledScorer(BinaryScorer):
    """Base of the muffled learners: a subclass fits a model to a sample.

    A model is refitted when enough labels came in; between refits it does not change. Refits fall on event numbers
    that depend on the labels alone, and their random choices on seed and number of the refit.
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
    refit_every: int
    refit_share: float
    seed: int

    def __init__(self) -> None:
        self._check()
        sizes = [self.labelled_buffer, self.unlabelled_buffer, _RESERVOIRS[self.reservoir], self.refit_every, self.seed]
        self._sizes = np.array(sizes, dtype=np.int64)
        self._counters = np.zeros(kernels.N_COUNTERS, dtype=np.int64)
        self._labelled = np.zeros((0, 0))
        self._codes = np.zeros(0, dtype=np.int8)
        self._unlabelled = np.zeros((0, 0))
        self._model: Voting | None = None
        super().__init__()

    def _check(self) -> None:
        if self.estimator not in ("rectified", "paper"):
            raise BadParameter(f"{self.name}: estimator must be 'rectified' or 'paper', got {self.estimator!r}")
        if self.reservoir not in _RESERVOIRS:
            raise BadParameter(f"{self.name}: reservoir must be one of {sorted(_RESERVOIRS)}, got {self.reservoir!r}")
        checked_potential(self.name, self.potential)
        checked_reject_cost(self.name, self.reject_cost)
        whole = {"n_trees": 1, "labelled_buffer": 4, "unlabelled_buffer": 0, "refit_every": 1, "seed": 0}
        for name, least in whole.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value < 2**62:
                raise BadParameter(f"{self.name}: {name} must be a whole number >= {least}, got {value!r}")
        for name, low, high in (("tau", 0.0, np.inf), ("refit_share", 0.0, 1.0), ("failure_prob", 1e-300, 1.0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value < high:
                raise BadParameter(f"{self.name}: {name} must be in [{low:g}, {high:g}), got {value!r}")

    @abstractmethod
    def _fit(self, sample: Sample) -> Voting:
        """Return the model of one refit."""

    # Refits

    @property
    def n_refits(self) -> int:
        """Number of refits so far."""
        return int(self._counters[kernels.REFITS])

    @property
    def is_fitted(self) -> bool:
        """A model exists: before the first refit every event gets the prior."""
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
                votes.append(self._model.score(rows, out).copy())
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
        ``print(model.partition_one(x))`` is a table.
        """
        rows = self._known_rows(*from_one(self.name, x))
        if self._model is None:
            return Partition(self._prior(), (), ())
        return partition(self._model, rows, self.feature_names, n_rules)

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
        model = self._model
        if model is None or self._n_unlabelled == 0:
            return 0.5
        n_labels, correlations = model.evidence[0], model.evidence[1:]
        if n_labels == 0.0:
            return float(correlations[0])
        share = self.failure_prob / len(correlations)
        b = wilson_lower_bound(np.clip(correlations, 0.0, 1.0), n_labels, share)
        rows = self._unlabelled[: self._n_unlabelled]
        votes = np.clip(model.score(rows, np.empty(len(rows))), -1.0, 1.0)
        return certified_error(np.ascontiguousarray(votes.T), b)

    def refit(self) -> Self:
        """Fit the model to what is in the buffers now; nothing happens below two labels of either class."""
        if min(self._counters[kernels.POSITIVE], self._counters[kernels.NEGATIVE]) >= kernels.LEAST_OF_A_CLASS:
            self._refit()
        return self

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn a batch with one refit, at its end, in place of those that its labels would cause one by one.

        Parameters
        ----------
        X : array [n_rows, n_features], dataframe, or sequence of mappings
        y : array, series or sequence [n_rows], or None
            Labels; None or NaN = unlabelled.
        """
        self._sizes[3] = _NEVER
        try:
            self.learn_many(X, y)
        finally:
            self._sizes[3] = self.refit_every
        return self.refit()

    def _refit(self) -> None:
        self._counters[kernels.REFITS] += 1
        self._counters[kernels.NEW] = 0
        self._counters[kernels.DUE] = 0
        self._model = self._fit(self._sample())

    def _sample(self) -> Sample:
        """Return the buffers as they stand, labelled rows in the order of the stream."""
        total, size = int(self._counters[kernels.LABELLED]), self.labelled_buffer
        slots = np.arange(max(total - size, 0), total) % size
        y = np.where(self._codes[slots] == 1, 1.0, -1.0)
        seed = derived_seed(self.seed, int(self._counters[kernels.REFITS]))
        return Sample(self._labelled[slots], y, self._unlabelled[: self._n_unlabelled].copy(), seed)

    @property
    def _n_labelled(self) -> int:
        return min(int(self._counters[kernels.LABELLED]), self.labelled_buffer)

    @property
    def _n_unlabelled(self) -> int:
        return min(int(self._counters[kernels.UNLABELLED]), self.unlabelled_buffer)

    # Hooks of the base

    def _widen(self, n_features: int) -> None:
        more = n_features - self._labelled.shape[1]
        if more > 0:
            self._labelled = np.hstack([self._labelled, np.zeros((len(self._labelled), more))])
            self._unlabelled = np.hstack([self._unlabelled, np.zeros((len(self._unlabelled), more))])
        if self._model is not None:
            self._model = self._model.widened(n_features)

    def _swap_classes(self) -> None:
        # Only ever before both classes were seen, so there is no model yet.
        self._codes[: self._n_labelled] = 1 - self._codes[: self._n_labelled]
        c = self._counters
        c[kernels.POSITIVE], c[kernels.NEGATIVE] = int(c[kernels.NEGATIVE]), int(c[kernels.POSITIVE])

    def _learn(self, X: FloatArray, codes: CodeArray) -> int:
        self._make_room(len(X))
        at = 0
        while at < len(X):
            at = self._absorb(X, codes, at, stop_at_label=False)
        return -1

    def _absorb(self, X: FloatArray, codes: CodeArray, at: int, *, stop_at_label: bool) -> int:
        at = kernels.absorb(
            X,
            codes,
            at,
            stop_at_label,
            self._labelled,
            self._codes,
            self._unlabelled,
            self._counters,
            self._sizes,
            self.refit_share,
        )
        if self._counters[kernels.DUE]:
            self._refit()
        return at

    def _make_room(self, n_rows: int) -> None:
        """Let the buffers grow as they fill: most streams of few labels never need all of them."""
        counters = self._counters
        if counters[kernels.LABELLED] + n_rows > len(self._codes) < self.labelled_buffer:
            room = _room(len(self._codes), int(counters[kernels.LABELLED]) + n_rows, self.labelled_buffer)
            self._labelled = _longer(self._labelled, room)
            self._codes = np.concatenate([self._codes, np.zeros(room - len(self._codes), dtype=np.int8)])
        if counters[kernels.UNLABELLED] + n_rows > len(self._unlabelled) < self.unlabelled_buffer:
            needed = int(counters[kernels.UNLABELLED]) + n_rows
            self._unlabelled = _longer(self._unlabelled, _room(len(self._unlabelled), needed, self.unlabelled_buffer))

    def _prior(self) -> float:
        """Return the score while there is no model."""
        positive, negative = self._counters[kernels.POSITIVE], self._counters[kernels.NEGATIVE]
        return float((positive - negative) / (positive + negative + 1))

    def _score(self, X: FloatArray, out: FloatArray) -> int:
        if self._model is None:
            out[:] = self._prior()
        else:
            self._model.score(X, out)
        return -1

    def _probability(self, X: FloatArray, out: FloatArray) -> int:
        self._score(X, out)
        out[:] = 0.5 * (1.0 + np.clip(out, -1.0, 1.0))
        return -1

    def _test_then_learn(
        self, X_test: FloatArray, X_learn: FloatArray, codes: CodeArray, scores: FloatArray, probabilities: FloatArray
    ) -> int:
        self._make_room(len(X_learn))
        at = 0
        while at < len(X_learn):
            # The forecasts of the rows up to the next change are those of the model, or the prior, before them.
            model, prior = self._model, self._prior()
            stop = self._absorb(X_learn, codes, at, stop_at_label=model is None)
            if model is None:
                scores[at:stop] = prior
            else:
                model.score(X_test[at:stop], scores[at:stop])
            at = stop
        probabilities[:] = 0.5 * (1.0 + np.clip(scores, -1.0, 1.0))
        return -1

    # State

    def _arrays(self) -> dict[str, NDArray[Any]]:
        arrays: dict[str, NDArray[Any]] = {
            "counters": self._counters,
            "labelled": self._labelled[: self._n_labelled],
            "codes": self._codes[: self._n_labelled],
            "unlabelled": self._unlabelled[: self._n_unlabelled],
        }
        if self._model is not None:
            arrays |= {_MODEL + name: array for name, array in self._model.arrays().items()}
        return arrays

    def _set_arrays(self, arrays: dict[str, NDArray[Any]]) -> None:
        self._counters[...] = fitting(self.name, "counters", arrays, self._counters)
        if (self._counters < 0).any() or self._counters[kernels.DUE] != 0:
            raise BadSnapshot(f"{self.name}: counters of the saved state must not be negative, and no refit due")
        m = self.n_features
        self._labelled = fitting(self.name, "labelled", arrays, np.empty((self._n_labelled, m))).copy()
        self._codes = fitting(self.name, "codes", arrays, np.empty(self._n_labelled, dtype=np.int8)).copy()
        self._unlabelled = fitting(self.name, "unlabelled", arrays, np.empty((self._n_unlabelled, m))).copy()
        positive = int((self._codes == 1).sum())
        if (self._counters[[kernels.POSITIVE, kernels.NEGATIVE]] != [positive, len(self._codes) - positive]).any():
            raise BadSnapshot(f"{self.name}: the labels of the saved state do not fit its counters")
        if self._votes is not None:
            parts = {name[len(_MODEL) :]: array for name, array in arrays.items() if name.startswith(_MODEL)}
            self._model = model_from_arrays(self.name, parts, self._votes, m)

    def _numbers(self) -> Document:
        return {} if self._model is None else {"votes": list(self._model.names)}

    _votes: list[str] | None = None

    def _set_numbers(self, numbers: Document) -> None:
        votes = numbers.get("votes")
        if set(numbers) - {"votes"} or not (votes is None or all(isinstance(name, str) for name in votes)):
            raise BadSnapshot(f"{self.name}: the saved state must have the names of its votes and no other numbers")
        self._votes = votes


def _room(have: int, needed: int, most: int) -> int:
    return min(most, max(needed, 2 * have, _FIRST_ROOM))


def _longer(rows: FloatArray, n_rows: int) -> FloatArray:
    return np.concatenate([rows, np.zeros((n_rows - len(rows), rows.shape[1]))])
