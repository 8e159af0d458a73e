"""Online AUC maximisation with reservoir buffers: OAMseq and OAMgd."""

from __future__ import annotations

from typing import ClassVar, Literal

from streamlearn.contracts import CodeArray, FloatArray, Label
from streamlearn.kernels import oam as kernels
from streamlearn.learners.auc.arena import SCALES, ArenaScorer

MAX_C = 1e10
MAX_BUFFER = 100_000
MAX_SEED = 2**32 - 1


class _OnlineAUC(ArenaScorer):
    """Base of the two forms: a uniform sample of each class, and a linear score that ranks an event against the other.

    An event is compared with the buffer B of the other class by the pairwise hinge loss. Each pair of the buffer stands
    for ``max(1, M / |B|)`` pairs of the stream, M the number of events of that class so far. Buffers keep raw events:
    differences are scaled by the scaling of the moment.
    """

    _header_size = kernels.HEADER
    _sequential: ClassVar[bool]

    def __init__(
        self,
        *,
        C: float | Literal["auto"] = "auto",
        buffer_size: int = 100,
        scale: str = "standard",
        reject_cost: float = 0.5,
        seed: int = 0,
        max_features: int = 10_000,
        positive: Label | None = None,
    ) -> None:
        self.C = C
        self.buffer_size = buffer_size
        self.scale = scale
        self.reject_cost = reject_cost
        self.seed = seed
        self.max_features = max_features
        self.positive = positive
        self._checked_whole("buffer_size", 1, MAX_BUFFER)
        self._checked_whole("seed", 0, MAX_SEED)
        super().__init__()

    def _n_vectors(self) -> int:
        return kernels.N_VECTORS + 2 * self.buffer_size

    def _write_parameters(self) -> None:
        F = self._arena
        F[kernels.SCALING], F[kernels.SIZE], F[kernels.SEED] = SCALES[self.scale], self.buffer_size, self.seed
        F[kernels.C], F[kernels.SEQUENTIAL] = self._checked_or_auto("C", MAX_C), float(self._sequential)

    def _swap_classes(self) -> None:
        # Only one class was seen so far: no step was made. The draws do not depend on the class.
        F, size = self._arena, self.buffer_size
        F[kernels.SEEN : kernels.SEEN + 2] = F[kernels.SEEN : kernels.SEEN + 2][::-1].copy()
        buffers = self._vectors()[kernels.N_VECTORS :].reshape(2, size, self._capacity)
        buffers[:] = buffers[::-1].copy()

    def _learn(self, X: FloatArray, codes: CodeArray) -> int:
        return kernels.learn(self._arena, X, codes)

    def _score(self, X: FloatArray, out: FloatArray) -> int:
        return kernels.score(self._arena, X, out)

    def _probability(self, X: FloatArray, out: FloatArray) -> int:
        return kernels.probability(self._arena, X, out)

    def _test_then_learn(
        self, X_test: FloatArray, X_learn: FloatArray, codes: CodeArray, scores: FloatArray, probabilities: FloatArray
    ) -> int:
        return kernels.test_then_learn(self._arena, X_test, X_learn, codes, scores, probabilities)


class OAMseq(_OnlineAUC):
    """Online AUC maximisation, sequential: a passive-aggressive step on each pair of an event in turn.

    ``w += min(C_t / 2, hinge / |d|^2) y d`` with ``d = x_t - x`` for each x of the other class's buffer.

    Parameters
    ----------
    C : float or "auto"
        A number: ``C_t = C max(1, M / |B|)`` as published, which grows with the stream. "auto": ``C_t / 2`` is the
        regret bound's ``D / sqrt(sum of squared gradient norms)`` (Streeter & McMahan 2010) times the same weight, D
        one over the root mean square distance of pairs; nothing to tune.
    buffer_size : int
        Events kept of each class, a uniform sample drawn by the learner's own seeded generator.
    scale : {"standard", "range", "none"}
        Running scaling of features.
    reject_cost : float in (0, 0.5]
        `predict_one` abstains where the larger probability is below 1 - reject_cost.
    seed : int in [0, 2^32)
    max_features : int
    positive : label or None

    Notes
    -----
    `score_one` is ``w.z``; `predict_proba_one` is a calibrated map of it (Platt's line, fitted online by Newton steps
    on forecasts made before learning).

    References
    ----------
    Zhao, Hoi, Jin & Yang, ICML 2011.

    Examples
    --------
    >>> model = OAMseq()
    >>> for k in range(60):
    ...     model = model.learn_one({"x": float(k % 10)}, k % 10 > 4)
    >>> model.score_one({"x": 9.0}) > model.score_one({"x": 0.0})
    True
    """

    _sequential = True


class OAMgd(_OnlineAUC):
    """Online AUC maximisation by gradient descent: one step on the sum over the pairs of an event.

    ``w += C_t / 2 sum y d`` over the pairs ``d = x_t - x`` with ``y w.d <= 1``, the weights held still meanwhile.

    Parameters
    ----------
    C, buffer_size, scale, reject_cost, seed, max_features, positive
        As in `OAMseq`.

    References
    ----------
    Zhao, Hoi, Jin & Yang, ICML 2011.

    Examples
    --------
    >>> model = OAMgd()
    >>> for k in range(60):
    ...     model = model.learn_one({"x": float(k % 10)}, k % 10 > 4)
    >>> model.score_one({"x": 9.0}) > model.score_one({"x": 0.0})
    True
    """

    _sequential = False
