"""The one table of learners: public name -> module. A saved file or a job can name these and nothing else."""

from __future__ import annotations

import difflib
import importlib
import os
from collections.abc import Mapping
from typing import Any

from streamlearn import snapshot
from streamlearn.contracts import Snapshot
from streamlearn.errors import BadParameter, BadSnapshot
from streamlearn.learners.learner import Learner

MODULES: dict[str, str] = {
    "HedgeMower1": "streamlearn.learners.muffled.hedgemower",
    "HedgeMower": "streamlearn.learners.muffled.hedgemower",
    "Marvin": "streamlearn.learners.muffled.marvin",
    "MarvinC": "streamlearn.learners.muffled.marvin",
    "MarvinD": "streamlearn.learners.muffled.marvin",
    "GeometricMedian": "streamlearn.learners.robust.median",
    "AUCRO": "streamlearn.learners.auc.aucro",
    "AdaptiveAUCRO": "streamlearn.learners.auc.adaptive",
    "ORL": "streamlearn.learners.robust.orl",
    "ORLPCA": "streamlearn.learners.robust.pca",
    "ORLRegressor": "streamlearn.learners.robust.regression",
    "OPAUC": "streamlearn.learners.auc.opauc",
    "FSAUC": "streamlearn.learners.auc.fsauc",
    "HingeReject": "streamlearn.learners.auc.reject",
    "LogisticReject": "streamlearn.learners.auc.reject",
    "OAMgd": "streamlearn.learners.auc.oam",
    "OAMseq": "streamlearn.learners.auc.oam",
}


def _key(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


_BY_KEY = {_key(name): name for name in MODULES}


def learner_class(name: str) -> type[Learner]:
    """Return the class of a learner by its name; case, ``_`` and ``-`` do not matter.

    Raises
    ------
    BadParameter
        Where there is none of that name.
    """
    known = _BY_KEY.get(_key(name))
    if known is None:
        close = difflib.get_close_matches(_key(name), _BY_KEY, n=1)
        hint = f", did you mean {_BY_KEY[close[0]]!r}?" if close else ""
        raise BadParameter(f"learner must be one of {sorted(MODULES)}, got {name!r}{hint}")
    found: type[Learner] = getattr(importlib.import_module(MODULES[known]), known)
    return found


def make_learner(name: str, params: Mapping[str, Any]) -> Learner:
    """Return an untrained learner.

    Raises
    ------
    BadParameter
        Where name, a parameter's name or its value is wrong.
    """
    cls = learner_class(name)
    unknown = sorted(set(params) - set(cls.parameter_names()))
    if unknown:
        raise BadParameter(f"{cls.__name__}: parameters must be of {list(cls.parameter_names())}, got {unknown}")
    return cls(**params)


def from_state(state: Snapshot) -> Learner:
    """Return the learner that `state` describes, whatever its class."""
    name = state.get("class")
    if not isinstance(name, str) or name not in MODULES:
        raise BadSnapshot(f"the saved learner must be one of {sorted(MODULES)}, got {name!r}")
    return learner_class(name).from_state(state)


def load(path: str | os.PathLike[str], like: Learner | None = None) -> Learner:
    """Read a learner that `save` wrote.

    Parameters
    ----------
    path : path
    like : Learner or None
        A learner with the same parameters, for one that holds what no file can: ``load(path, like=ORL(Ridge()))``. It
        is not changed.

    Raises
    ------
    BadSnapshot
        Where the file is truncated, altered or not a model. Nothing in it is ever executed.
    NewerSnapshot
        Where a newer release wrote it.
    """
    document, arrays = snapshot.read(path, "model")
    try:
        return _made(snapshot.join(document, arrays), like)
    except BadSnapshot as error:
        raise BadSnapshot(f"{os.fspath(path)}: {error}") from error


def _made(state: Snapshot, like: Learner | None) -> Learner:
    if like is None:
        return from_state(state)
    made = like.clone()
    made.restore(state)
    return made
