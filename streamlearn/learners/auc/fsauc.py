"""Fast stochastic AUC maximisation: the saddle-point form of the pairwise square loss, in stages."""

from __future__ import annotations

from typing import Literal

from streamlearn.contracts import CodeArray, FloatArray, Label
from streamlearn.kernels import fsauc as kernels
from streamlearn.learners.auc.arena import SCALES, ArenaScorer

MAX_RADIUS = 1e10
MAX_RATE = 1e10


class FSAUC(ArenaScorer):
    """Fast stochastic AUC maximisation: primal-dual steps on a saddle form that needs no pairs, in shrinking stages.

    The published algorithm knows the number n of events. Here the stream has no known length: epochs of 2^6, 2^7, ...
    events each run the stages of their own length, starting from the average that the epoch before ended with.
    Forecasts come from the running average of the present stage, so there is one at any time; right after a stage
    began it rests on few events.

    Parameters
    ----------
    learning_rate : float or "auto"
        Step of an epoch's first stage. "auto" is ``1 / (4 (1 + mean |z|^2))`` with the running mean, below the
        smoothness of each event's loss (Bach & Moulines 2013): nothing to tune. Later stages shrink it as published.
    radius : float
        L1 bound R of the weights. For scaled features 10 leaves the solution free but for collinear ones: one feature
        that separates the classes perfectly has weight 1/2.
    scale : {"standard", "range", "none"}
        Running scaling of features.
    reject_cost : float in (0, 0.5]
        `predict_one` abstains where the larger probability is below 1 - reject_cost.
    max_features : int
    positive : label or None

    Notes
    -----
    `score_one` is ``w.z``; `predict_proba_one` is a calibrated map of it (Platt's line, fitted online by Newton steps
    on forecasts made before learning). Differs from the paper in the doubling, in k (largest norm so far instead of a
    known bound), in p and the class means (all events so far) and in the automatic first step.

    References
    ----------
    Liu, Zhang, Chen, Wang & Yang, ICML 2018.

    Examples
    --------
    >>> model = FSAUC()
    >>> for k in range(60):
    ...     model = model.learn_one({"x": float(k % 10)}, k % 10 > 4)
    >>> model.score_one({"x": 9.0}) > model.score_one({"x": 0.0})
    True
    """

    _header_size = kernels.HEADER

    def __init__(
        self,
        *,
        learning_rate: float | Literal["auto"] = "auto",
        radius: float = 10.0,
        scale: str = "standard",
        reject_cost: float = 0.5,
        max_features: int = 10_000,
        positive: Label | None = None,
    ) -> None:
        self.learning_rate = learning_rate
        self.radius = radius
        self.scale = scale
        self.reject_cost = reject_cost
        self.max_features = max_features
        self.positive = positive
        super().__init__()

    def _n_vectors(self) -> int:
        return kernels.N_VECTORS

    def _write_parameters(self) -> None:
        F = self._arena
        F[kernels.SCALING], F[kernels.RADIUS] = SCALES[self.scale], self._checked("radius", MAX_RADIUS)
        F[kernels.RATE] = self._checked_or_auto("learning_rate", MAX_RATE)

    def _swap_classes(self) -> None:
        # Only one class was seen so far: no step was made.
        F, V = self._arena, self._vectors()
        F[kernels.SEEN : kernels.SEEN + 2] = F[kernels.SEEN : kernels.SEEN + 2][::-1].copy()
        V[kernels.CENTRES : kernels.CENTRES + 2] = V[kernels.CENTRES : kernels.CENTRES + 2][::-1].copy()

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
