"""Predictions as columns of plain Python values, for the writers of all formats."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamlearn.contracts import PredictionRows


def as_lists(rows: PredictionRows) -> dict[str, list[Any]]:
    """Return the columns of `rows` as lists of plain Python values, ``partition`` and ``key`` included."""
    n = len(rows.records)
    return {
        "partition": [rows.partition] * n,
        "record": rows.records.tolist(),
        "key": [None] * n if rows.keys is None else rows.keys.tolist(),
        "label": rows.labels.tolist(),
        "score": rows.scores.tolist(),
        "probability": rows.probabilities.tolist(),
        "prediction": rows.predictions.tolist(),
    }


def plain(value: object) -> object:
    """Return the Python value of a numpy scalar; an object array keeps them as they are."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"sink.predictions: labels must be a number, text, bool or nothing, got {value!r}")
