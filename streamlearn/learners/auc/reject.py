"""Online linear classifiers that abstain: logistic regression, and the support vector machine of the bent hinge."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from streamlearn.contracts import CodeArray, FloatArray, Label, Tested
from streamlearn.kernels import reject as kernels
from streamlearn.learners.auc.arena import SCALES, ArenaScorer

MAX_RATE = 1e6
MAX_L2 = 1e6
MAX_SLOPE = 1e12  # of the bent hinge below 0: its squared gradients stay finite on saturated values


class _RejectingClassifier(ArenaScorer):
    """What the two share: one weight a feature, an intercept, adaptive implicit subgradient steps.

    Each coordinate moves by ``learning_rate / sqrt(m)`` (the intercept by ``learning_rate``) over the root of the sum
    of its squared gradients (Duchi, Hazan & Singer 2011), so steps have no unit and need no horizon; each step is
    implicit (Kulis & Bartlett 2010), so that no event, however far out, moves its own margin past its optimum.
    """

    _header_size = kernels.HEADER
    _loss: ClassVar[float]

    learning_rate: float
    l2: float

    def _n_vectors(self) -> int:
        return kernels.N_VECTORS

    def _write_parameters(self) -> None:
        F = self._arena
        F[kernels.SCALING], F[kernels.LOSS] = SCALES[self.scale], self._loss
        F[kernels.RATE] = self._checked("learning_rate", MAX_RATE)
        F[kernels.L2] = self._checked("l2", MAX_L2, zero=True)

    def _slope(self) -> float:
        return min((1.0 - self.reject_cost) / self.reject_cost, MAX_SLOPE)

    def _swap_classes(self) -> None:
        # Only one class was seen so far, so calibration has not begun. 0 - w keeps zeros positive, as steps do.
        F, V = self._arena, self._vectors()
        V[kernels.W] = 0.0 - V[kernels.W]
        F[kernels.INTERCEPT] = 0.0 - F[kernels.INTERCEPT]
        F[kernels.SEEN : kernels.SEEN + 2] = F[kernels.SEEN : kernels.SEEN + 2][::-1].copy()

    def even_score(self) -> float:
        """Return 0: the score is the log-odds, or decides by its sign."""
        return 0.0

    def _learn(self, X: FloatArray, codes: CodeArray) -> int:
        return kernels.learn(self._arena, X, codes, self._slope())

    def _score(self, X: FloatArray, out: FloatArray) -> int:
        return kernels.score(self._arena, X, out)

    def _probability(self, X: FloatArray, out: FloatArray) -> int:
        return kernels.probability(self._arena, X, out)

    def _test_then_learn(
        self, X_test: FloatArray, X_learn: FloatArray, codes: CodeArray, scores: FloatArray, probabilities: FloatArray
    ) -> int:
        return kernels.test_then_learn(self._arena, X_test, X_learn, codes, self._slope(), scores, probabilities)


class LogisticReject(_RejectingClassifier):
    """Online logistic regression that abstains where neither class is likely enough (LR-R).

    Abstains where ``d < P(positive) < 1 - d``, the Bayes rule of cost d; on the boundary, where both cost the same, it
    decides, so that d = 1/2 never abstains. The ranking score is the log-odds ``w.z + b``. The cost may be changed on a
    trained model.

    Parameters
    ----------
    reject_cost : float in (0, 0.5]
        Cost d of abstaining, where an error costs 1.
    learning_rate : float
        Factor of the steps; 1 = derived from the regret bound (see the source), not tuned.
    l2 : float >= 0
        Strength of ``l2/2 |w|^2`` in each event's loss.
    scale : {"standard", "range", "none"}
        Running scaling of features.
    max_features : int
    positive : label or None

    References
    ----------
    Herbei & Wegkamp 2006 for the rule. They fit a batch; the steps here are online.

    Examples
    --------
    >>> model = LogisticReject(reject_cost=0.1)
    >>> for k in range(60):
    ...     model = model.learn_one({"x": float(k % 10)}, k % 10 > 4)
    >>> model.predict_one({"x": 9.0}), model.predict_one({"x": 4.5})
    (True, None)
    """

    _loss = kernels.LOGISTIC

    def __init__(
        self,
        *,
        reject_cost: float = 0.5,
        learning_rate: float = 1.0,
        l2: float = 0.0,
        scale: str = "standard",
        max_features: int = 10_000,
        positive: Label | None = None,
    ) -> None:
        self.reject_cost = reject_cost
        self.learning_rate = learning_rate
        self.l2 = l2
        self.scale = scale
        self.max_features = max_features
        self.positive = positive
        super().__init__()


class HingeReject(_RejectingClassifier):
    """Online linear classifier of the bent hinge loss, which abstains by its score (SVM-BW).

    The loss of an event is ``max(0, 1 - z, 1 - a z)`` with ``z = y f(x)``, ``a = (1 - d)/d``: its minimiser is 1, -1 or
    0, where 0 says that neither class is likelier than 1 - d. Abstains where ``|f(x)| <= threshold`` (never at d = 1/2,
    where the loss is the plain hinge); the label is the sign of f. `predict_proba_one` is a calibrated map of f
    (Platt's line, fitted online by Newton steps on forecasts made before learning), and says nothing about abstaining.

    Parameters
    ----------
    reject_cost : float in (0, 0.5]
        Cost d of abstaining. A change on a trained model bends the loss of the events from then on.
    threshold : float in (0, 1 - reject_cost]
        Bar for |f|; any of them is consistent, 1/2 is the usual one.
    learning_rate, l2, scale, max_features, positive
        As in `LogisticReject`.

    References
    ----------
    Bartlett & Wegkamp 2008. They fit a batch; the steps here are online.

    Examples
    --------
    >>> model = HingeReject(reject_cost=0.2)
    >>> for k in range(200):
    ...     model = model.learn_one({"x": float(k % 10)}, k % 10 > 4)
    >>> model.predict_one({"x": 9.0}), model.predict_one({"x": 4.5})
    (True, None)
    """

    _loss = kernels.HINGE

    def __init__(
        self,
        *,
        reject_cost: float = 0.5,
        threshold: float = 0.5,
        learning_rate: float = 1.0,
        l2: float = 0.0,
        scale: str = "standard",
        max_features: int = 10_000,
        positive: Label | None = None,
    ) -> None:
        self.reject_cost = reject_cost
        self.threshold = threshold
        self.learning_rate = learning_rate
        self.l2 = l2
        self.scale = scale
        self.max_features = max_features
        self.positive = positive
        super().__init__()
        self._checked("threshold", 1.0 - reject_cost)

    def predict_one(self, x: Any) -> Label | None:
        """Return the label by the sign of the score, or None to abstain: where ``|score| <= threshold``.

        None as well before the first label was seen.
        """
        f = self._one(x, self._score)
        if self.reject_cost < 0.5 and abs(f) <= self.threshold:
            return None
        return self._decided[f >= 0.0]

    def _decide_scores(self, scores: FloatArray) -> FloatArray:
        """Return 1, 0 or NaN (abstained) for each score."""
        decisions = (scores >= 0.0).astype(np.float64)
        if self.reject_cost < 0.5:
            decisions[np.abs(scores) <= self.threshold] = np.nan
        return decisions

    def predict_many(self, X: Any) -> Any:
        """Return a label a row, None where the learner abstains."""
        return self._predictions(X, self._decide_scores(self._outputs(X, self._score)))

    def decide_columns(self, codes: CodeArray, scores: FloatArray, probabilities: FloatArray) -> Tested:
        """Return scores and probabilities with the decisions that follow from the scores; for the runtime."""
        decisions = self._decide_scores(scores)
        return Tested(codes, scores, probabilities, self._named(decisions), decisions)
