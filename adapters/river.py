"""Every learner as a River estimator under its own name, River estimators as learners of a job, and a River metric.

The estimators work wherever River's own do: in pipelines and unions, in ensembles, samplers and drift wrappers, in
model selection and progressive validation, one event or one frame at a time. Further learners are one class each.

Examples
--------
>>> from river import evaluate, metrics, preprocessing
>>> from streamlearn.adapters.river import AdaptiveAUCRO
>>> model = preprocessing.StandardScaler() | AdaptiveAUCRO(reject_cost=0.4)
>>> stream = [({"a": k % 7, "b": k % 5}, k % 7 > k % 5) for k in range(500)]
>>> evaluate.progressive_val_score(stream, model, metrics.Accuracy()).get() > 0.9
True
"""

from __future__ import annotations

from streamlearn.learners.auc import adaptive, aucro, fsauc, oam, opauc, reject
from streamlearn.learners.muffled import hedgemower, marvin
from streamlearn.learners.robust import median, orl, pca, regression

from .river_base import AdaptedClassifier, AdaptedProjector, AdaptedRegressor, AdaptedTransformer
from .river_job import RiverClassifier, RiverRegressor, make_learner
from .river_metric import RejectAUC

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
    "RejectAUC",
    "RiverClassifier",
    "RiverRegressor",
    "make_learner",
]

_REFITS = ("reject_cost", "refit_every", "refit_share")


class AUCRO(AdaptedClassifier, learner=aucro.AUCRO, mutable=("reject_cost", "learning_rate", "regularization")):
    """`streamlearn.AUCRO` as a River classifier."""


class AdaptiveAUCRO(AdaptedClassifier, learner=adaptive.AdaptiveAUCRO, mutable=("reject_cost",)):
    """`streamlearn.AdaptiveAUCRO` as a River classifier."""


class OPAUC(AdaptedClassifier, learner=opauc.OPAUC, mutable=("learning_rate", "regularization")):
    """`streamlearn.OPAUC` as a River classifier."""


class FSAUC(AdaptedClassifier, learner=fsauc.FSAUC, mutable=("reject_cost", "learning_rate")):
    """`streamlearn.FSAUC` as a River classifier."""


class OAMseq(AdaptedClassifier, learner=oam.OAMseq, mutable=("reject_cost", "C")):
    """`streamlearn.OAMseq` as a River classifier."""


class OAMgd(AdaptedClassifier, learner=oam.OAMgd, mutable=("reject_cost", "C")):
    """`streamlearn.OAMgd` as a River classifier."""


class LogisticReject(AdaptedClassifier, learner=reject.LogisticReject, mutable=("reject_cost", "learning_rate", "l2")):
    """`streamlearn.LogisticReject` as a River classifier."""


class HingeReject(AdaptedClassifier, learner=reject.HingeReject, mutable=("reject_cost", "learning_rate", "l2")):
    """`streamlearn.HingeReject` as a River classifier."""


class HedgeMower1(AdaptedClassifier, learner=hedgemower.HedgeMower1, mutable=_REFITS):
    """`streamlearn.HedgeMower1` as a River classifier."""


class HedgeMower(AdaptedClassifier, learner=hedgemower.HedgeMower, mutable=_REFITS):
    """`streamlearn.HedgeMower` as a River classifier."""


class Marvin(AdaptedClassifier, learner=marvin.Marvin, mutable=_REFITS):
    """`streamlearn.Marvin` as a River classifier."""


class MarvinC(AdaptedClassifier, learner=marvin.MarvinC, mutable=_REFITS):
    """`streamlearn.MarvinC` as a River classifier."""


class MarvinD(AdaptedClassifier, learner=marvin.MarvinD, mutable=_REFITS):
    """`streamlearn.MarvinD` as a River classifier."""


class ORL(AdaptedRegressor, learner=orl.ORL):
    """`streamlearn.ORL` as a River regressor."""


class ORLRegressor(AdaptedRegressor, learner=regression.ORLRegressor):
    """`streamlearn.ORLRegressor` as a River regressor."""


class GeometricMedian(AdaptedTransformer, learner=median.GeometricMedian):
    """`streamlearn.GeometricMedian` as a River transformer: an event becomes its distance to the median."""


class ORLPCA(AdaptedProjector, learner=pca.ORLPCA):
    """`streamlearn.ORLPCA` as a River transformer: an event becomes its projection."""
