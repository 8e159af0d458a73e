"""The learners as scikit-learn estimators, each under its own name.

One class a learner; a test compares them with the registry. They learn in one pass: `fit` forgets and learns its rows
once, in order, and `partial_fit` goes on, so that both leave the same model, bit for bit. (The semi-supervised ones are
refitted by `fit` once, at its end, and by `partial_fit` as labels come.)

Examples
--------
>>> from sklearn.datasets import load_breast_cancer
>>> from sklearn.model_selection import cross_val_score
>>> from streamlearn.adapters.sklearn import AUCRO
>>> X, y = load_breast_cancer(return_X_y=True)
>>> bool(cross_val_score(AUCRO(), X, y, scoring="roc_auc").mean() > 0.98)
True
"""

from __future__ import annotations

from streamlearn.contracts import FloatArray

from .sklearn_base import OnlineOutlierScorer, OnlineRegressor, OnlineTransformer
from .sklearn_classifier import OnlineClassifier

__all__ = [
    "AUCRO",
    "FSAUC",
    "OPAUC",
    "ORL",
    "ORLPCA",
    "AdaptiveAUCRO",
    "GeometricMedian",
    "HedgeMower",
    "HedgeMower1",
    "HingeReject",
    "LogisticReject",
    "Marvin",
    "MarvinC",
    "MarvinD",
    "OAMgd",
    "OAMseq",
    "ORLRegressor",
]


class AUCRO(OnlineClassifier, learner="AUCRO"):
    """AUC optimisation with a reject option, as a binary classifier."""


class AdaptiveAUCRO(OnlineClassifier, learner="AdaptiveAUCRO"):
    """AUC optimisation that finds its own memory, as a binary classifier."""


class OPAUC(OnlineClassifier, learner="OPAUC"):
    """One-pass AUC optimisation, as a binary classifier."""


class FSAUC(OnlineClassifier, learner="FSAUC"):
    """Fast stochastic AUC maximisation, as a binary classifier."""


class OAMseq(OnlineClassifier, learner="OAMseq"):
    """Online AUC maximisation with buffers, sequential updates, as a binary classifier."""


class OAMgd(OnlineClassifier, learner="OAMgd"):
    """Online AUC maximisation with buffers, gradient updates, as a binary classifier."""


class LogisticReject(OnlineClassifier, learner="LogisticReject"):
    """Online logistic regression that may abstain, as a binary classifier."""


class HingeReject(OnlineClassifier, learner="HingeReject"):
    """Online classifier of the bent hinge loss, which may abstain by its score, as a binary classifier."""


class HedgeMower1(OnlineClassifier, learner="HedgeMower1"):
    """Whole classifiers weighed by labelled and unlabelled rows, as a semi-supervised classifier."""


class HedgeMower(OnlineClassifier, learner="HedgeMower"):
    """HedgeMower-1 with specialists, as a semi-supervised classifier."""


class Marvin(OnlineClassifier, learner="Marvin"):
    """New members where the worst-case error still falls, as a semi-supervised classifier."""


class MarvinC(OnlineClassifier, learner="MarvinC"):
    """Marvin with total correction, as a semi-supervised classifier."""


class MarvinD(OnlineClassifier, learner="MarvinD"):
    """Marvin-C with specialists, as a semi-supervised classifier."""


class ORL(OnlineRegressor, learner="ORL"):
    """Outlier-robust learning around any mini-batch estimator, as a regressor."""

    @property
    def estimate_(self) -> FloatArray:
        """The geometric median of the batches' estimates, in the learner's order of features."""
        estimate: FloatArray = self.learner_.estimate_
        return estimate


class ORLRegressor(OnlineRegressor, learner="ORLRegressor"):
    """Outlier-robust online linear regression, as a regressor."""

    @property
    def coef_(self) -> FloatArray:
        """Coefficients in the order of the input: float64[n_features_in_]."""
        return self._in_input_order(self.learner_.coef_)

    @property
    def intercept_(self) -> float:
        """Prediction where all features are 0, but for clipping."""
        return float(self.learner_.intercept_)

    @property
    def scale_(self) -> float:
        """Standard deviation of the residuals of good rows."""
        return float(self.learner_.scale_)


class ORLPCA(OnlineTransformer, learner="ORLPCA"):
    """Outlier-robust online principal components, as a transformer."""

    @property
    def components_(self) -> FloatArray:
        """Orthonormal rows in the order of the input: float64[n_components, n_features_in_]."""
        return self._in_input_order(self.learner_.components_)

    @property
    def mean_(self) -> FloatArray:
        """Centre in the order of the input: float64[n_features_in_]."""
        return self._in_input_order(self.learner_.mean_)


class GeometricMedian(OnlineOutlierScorer, learner="GeometricMedian"):
    """The geometric median of rows, which scores how far a row lies off."""

    @property
    def median_(self) -> FloatArray:
        """The median in the order of the input: float64[n_features_in_]."""
        return self._in_input_order(self.learner_.median_)
