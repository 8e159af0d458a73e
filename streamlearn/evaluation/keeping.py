"""Forecasts and labels as flat state, for what has to wait across a restart."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import Snapshot, Tested

_ARRAYS = ("codes", "scores", "probabilities", "decisions")


def forecasts_to_state(tested: Tested, labels: NDArray[Any]) -> Snapshot:
    """Return forecasts and labels as copies of arrays and text.

    Parameters
    ----------
    tested : Tested
    labels : array [n]
        bool, numbers, text, None.
    """
    arrays = {name: getattr(tested, name).copy() for name in _ARRAYS}
    return {
        **arrays,
        "labels": labels_to_text(labels.tolist()),
        "predictions": labels_to_text(tested.predictions.tolist()),
    }


def forecasts_from_state(state: Snapshot) -> tuple[Tested, NDArray[Any]]:
    """Undo `forecasts_to_state`; labels come as objects."""
    arrays = {name: np.array(state[name]) for name in _ARRAYS}
    return Tested(predictions=labels_from_text(state["predictions"]), **arrays), labels_from_text(state["labels"])


def labels_to_text(labels: list[Any]) -> str:
    """Return labels as JSON; None stays None, numpy scalars become Python's."""
    return json.dumps(labels, default=_plain)


def labels_from_text(text: str) -> NDArray[np.object_]:
    """Undo `labels_to_text`."""
    values = json.loads(text)
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


def _plain(value: object) -> object:
    """Return the Python value of a numpy scalar."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a label must be a bool, number or text to be kept, got {value!r}")
