"""Untrained River estimators of every learner, small ones of the costly, and streams for them."""

from __future__ import annotations

from typing import Any

import numpy as np
from streamlearn.adapters import river as adapted

from streamlearn.learners.base import BinaryScorer
from streamlearn.learners.registry import MODULES, learner_class
from streamlearn.learners.regressor import Regressor

_FEW_TREES = {"n_trees": 5, "refit_share": 0.9, "labelled_buffer": 200, "unlabelled_buffer": 100}
SMALL = {
    "HedgeMower1": _FEW_TREES,
    "HedgeMower": _FEW_TREES,
    **{name: {**_FEW_TREES, "n_stages": 2} for name in ("Marvin", "MarvinC", "MarvinD")},
}
"""Refitting 100 trees with each tenth of the labels takes minutes here, and shows nothing more than 5 do."""

CLASSIFIERS = sorted(name for name in MODULES if issubclass(learner_class(name), BinaryScorer))
REGRESSORS = sorted(name for name in MODULES if issubclass(learner_class(name), Regressor))
TRANSFORMERS = sorted(set(MODULES) - set(CLASSIFIERS) - set(REGRESSORS))


def make(name: str, **params: Any) -> Any:
    """Return an untrained estimator."""
    return getattr(adapted, name)(**{**SMALL.get(name, {}), **params})


def events(n: int = 400, m: int = 4, seed: int = 0, noise: float = 0.5) -> list[tuple[dict[str, float], bool]]:
    """Return events whose label depends on a line through them, of unlike units."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m))
    y = X[:, 0] - X[:, 1] + noise * rng.normal(size=n) > 0.2
    X *= [1.0, 30.0, 0.1, 1.0][:m]
    return [({f"f{j}": v for j, v in enumerate(row)}, bool(label)) for row, label in zip(X.tolist(), y, strict=True)]


def targets(n: int = 400, seed: int = 0) -> list[tuple[dict[str, float], float]]:
    """Return events with a linear target, some of them gross outliers."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = X @ [3.0, -2.0, 0.0, 1.0] + 5.0 + 0.1 * rng.normal(size=n)
    y[::20] += 500.0
    return [({f"f{j}": v for j, v in enumerate(row)}, t) for row, t in zip(X.tolist(), y.tolist(), strict=True)]
