"""Online learning on live streams.

Names are imported when first used, so that ``import streamlearn`` itself costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streamlearn.learners.auc.adaptive import AdaptiveAUCRO
    from streamlearn.learners.auc.aucro import AUCRO
    from streamlearn.learners.auc.fsauc import FSAUC
    from streamlearn.learners.auc.oam import OAMgd, OAMseq
    from streamlearn.learners.auc.opauc import OPAUC
    from streamlearn.learners.auc.reject import HingeReject, LogisticReject
    from streamlearn.learners.muffled.hedgemower import HedgeMower, HedgeMower1
    from streamlearn.learners.muffled.marvin import Marvin, MarvinC, MarvinD
    from streamlearn.learners.muffled.slack import minimise_slack
    from streamlearn.learners.muffled.wilson import wilson_lower_bound
    from streamlearn.learners.registry import load
    from streamlearn.learners.robust.median import GeometricMedian, geometric_median
    from streamlearn.learners.robust.orl import ORL
    from streamlearn.learners.robust.pca import ORLPCA
    from streamlearn.learners.robust.regression import ORLRegressor
    from streamlearn.learners.robust.subspace import rc_pca
    from streamlearn.learners.robust.trimmed import rotr, trimmed_inner_product

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
    "geometric_median",
    "load",
    "minimise_slack",
    "rc_pca",
    "rotr",
    "trimmed_inner_product",
    "wilson_lower_bound",
]

_MODULES = {
    "ORL": "streamlearn.learners.robust.orl",
    "rc_pca": "streamlearn.learners.robust.subspace",
    "ORLPCA": "streamlearn.learners.robust.pca",
    "MarvinD": "streamlearn.learners.muffled.marvin",
    "MarvinC": "streamlearn.learners.muffled.marvin",
    "Marvin": "streamlearn.learners.muffled.marvin",
    "HedgeMower": "streamlearn.learners.muffled.hedgemower",
    "HedgeMower1": "streamlearn.learners.muffled.hedgemower",
    "rotr": "streamlearn.learners.robust.trimmed",
    "trimmed_inner_product": "streamlearn.learners.robust.trimmed",
    "ORLRegressor": "streamlearn.learners.robust.regression",
    "minimise_slack": "streamlearn.learners.muffled.slack",
    "wilson_lower_bound": "streamlearn.learners.muffled.wilson",
    "geometric_median": "streamlearn.learners.robust.median",
    "GeometricMedian": "streamlearn.learners.robust.median",
    "AUCRO": "streamlearn.learners.auc.aucro",
    "AdaptiveAUCRO": "streamlearn.learners.auc.adaptive",
    "OPAUC": "streamlearn.learners.auc.opauc",
    "FSAUC": "streamlearn.learners.auc.fsauc",
    "HingeReject": "streamlearn.learners.auc.reject",
    "LogisticReject": "streamlearn.learners.auc.reject",
    "OAMgd": "streamlearn.learners.auc.oam",
    "OAMseq": "streamlearn.learners.auc.oam",
    "load": "streamlearn.learners.registry",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'streamlearn' has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
