"""The report of a job: a JSON document that a picture and a table are made from.

Everything in it but ``timing`` depends on the events alone: a run that was killed and resumed writes the same report.
"""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from streamlearn.errors import BadSnapshot
from streamlearn.evaluation.metric import BaseMetric
from streamlearn.runtime.dead_letters import DeadLetters
from streamlearn.runtime.labels import LateLabels
from streamlearn.runtime.tracks import HISTOGRAM_BINS, Track
from streamlearn.snapshot import write_atomic

FORMAT = 1
Report = dict[str, Any]

_LOWER_IS_BETTER = ("logloss", "risk", "reject_risk", "mae", "rmse", "subspace_error")
_CURVE = ("d", "reject_rate", "auc", "risk", "event_reject_rate", "event_accuracy", "event_risk")
_NEITHER = ("reject_rate", "coverage")


def make_report(
    name: str,
    tracks: list[Track],
    *,
    events: int,
    dead_letters: DeadLetters,
    timing: Report,
    late: LateLabels | None = None,
) -> Report:
    """Return the report of a job as JSON values."""
    labels = {} if late is None else {"labels": {**asdict(late.counts), "waiting": late.waiting}}
    return {
        "streamlearn_report": FORMAT,
        "job": name,
        "events": events,
        "rejected": dict(sorted(dead_letters.counts.items())),
        "rejected_examples": dict(sorted(dead_letters.examples.items())),
        "learners": [_learner(track) for track in tracks],
        **labels,
        "timing": timing,
    }


def _learner(track: Track) -> Report:
    trajectory = track.trajectory
    samples = trajectory.samples
    names = [metric.name for metric in track.metrics]
    params = getattr(track.learner, "params", dict)
    return {
        "title": track.title,
        "name": track.learner.name,
        "params": params(),
        "events": track.events,
        "labelled": track.labelled,
        "metrics": {metric.name: metric.get() for metric in track.metrics},
        "intervals": {metric.name: interval for metric in track.metrics if (interval := _interval(metric))},
        "trajectory": {
            "events": trajectory.events,
            "metrics": {name: samples[:, k].tolist() for k, name in enumerate(names)},
        },
        "histogram": {
            "edges": np.linspace(0.0, 1.0, HISTOGRAM_BINS + 1).tolist(),
            "negative": track.histogram[0].tolist(),
            "positive": track.histogram[1].tolist(),
        },
        "reject_curve": _reject_curve(track),
        "drift": _drift(track),
    }


def _reject_curve(track: Track) -> Report | None:
    """Return the reject curve, one element a cost at which pairs are left."""
    if track.curve is None:
        return None
    points = track.curve.points()
    kept = ~np.isnan(points.auc)
    return {name: getattr(points, name)[kept].tolist() for name in _CURVE}


def _drift(track: Track) -> Report | None:
    """Return what detected drift, and behind which events it was detected and answered."""
    watch = track.drift
    if watch is None:
        return None
    rules = watch.rules
    counts = {"n_detected": watch.n_found, "n_answered": watch.n_reacted}
    events = {"detected": list(watch.found), "loss_rose": list(watch.rose), "answered": list(watch.reacted)}
    return {"detector": rules.detector, "on_drift": rules.reaction, **counts, **events}


def _interval(metric: BaseMetric) -> list[float] | None:
    """Return [low, high] where the metric is not exact any more."""
    low, high = metric.interval()
    return [low, high] if low < high else None


def write_report(report: Report, path: Path) -> None:
    """Write a report, atomically; NaN becomes null."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, msgspec.json.encode(report) + b"\n")


def read_report(path: Path) -> Report:
    """Read a report.

    Raises
    ------
    BadSnapshot
        The file is not a report, or one of a newer format.
    """
    try:
        report = msgspec.json.decode(path.read_bytes())
    except msgspec.DecodeError as error:
        raise BadSnapshot(f"{path}: must be a report of streamlearn, got an error: {error}") from error
    found = report.get("streamlearn_report") if isinstance(report, dict) else None
    if found != FORMAT:
        raise BadSnapshot(f"{path}: must be a report of streamlearn in format {FORMAT}, got {found!r}")
    return report  # type: ignore[no-any-return]  # checked to be a dict


def number(value: float | None) -> float:
    """Return a number of a report that was read or made: null is NaN."""
    return math.nan if value is None else value


def shown_metric(report: Report) -> str:
    """Return the metric that is drawn over time: the first one, windowed where it is, since that shows drift."""
    names: list[str] = list(report["learners"][0]["metrics"])
    windowed = [name for name in names if name.startswith(names[0]) and "window" in name]
    return windowed[0] if windowed else names[0]


def best(name: str, values: list[float]) -> float:
    """Return the best of some values of a metric; NaN where there is no better and worse."""
    known = [value for value in values if not math.isnan(value)]
    if not known or name.startswith(_NEITHER):
        return math.nan
    return min(known) if name.startswith(_LOWER_IS_BETTER) else max(known)
