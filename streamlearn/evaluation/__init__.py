"""Metrics of (label, forecast) pairs and prequential evaluation."""

from streamlearn.evaluation.auc import AUC
from streamlearn.evaluation.comparison import BlockBootstrap, Comparison, McNemar, compare
from streamlearn.evaluation.curve import RejectCurve, RejectPoints
from streamlearn.evaluation.detector import DriftDetector
from streamlearn.evaluation.drift import DETECTORS, make_detector
from streamlearn.evaluation.feed import feed
from streamlearn.evaluation.folds import FoldReport, prequential_folds
from streamlearn.evaluation.metrics import MAE, RMSE, Accuracy, Coverage, Kappa, KappaM, KappaT, LogLoss, Risk
from streamlearn.evaluation.prequential import Report, prequential
from streamlearn.evaluation.registry import METRICS, make_metric
from streamlearn.evaluation.reject import RejectAUC, RejectRate, RejectRisk
from streamlearn.evaluation.subspace import SubspaceError

__all__ = [
    "AUC",
    "DETECTORS",
    "MAE",
    "METRICS",
    "RMSE",
    "Accuracy",
    "BlockBootstrap",
    "Comparison",
    "Coverage",
    "DriftDetector",
    "FoldReport",
    "Kappa",
    "KappaM",
    "KappaT",
    "LogLoss",
    "McNemar",
    "RejectAUC",
    "RejectCurve",
    "RejectPoints",
    "RejectRate",
    "RejectRisk",
    "Report",
    "Risk",
    "SubspaceError",
    "compare",
    "feed",
    "make_detector",
    "make_metric",
    "prequential",
    "prequential_folds",
]
