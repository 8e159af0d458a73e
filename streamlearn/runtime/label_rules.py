"""The rules of ``[labels]`` where labels come late by key, and what its keys mean."""

from __future__ import annotations

import re
from dataclasses import dataclass

from streamlearn.errors import BadJob
from streamlearn.runtime.sections import JobFile, LabelsSection

DEFAULT_CAPACITY = 10_000_000
DEFAULT_TURN = 1024

_TIMEOUT = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]+)?) *(?P<unit>s|m|h|d|events)")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_ONLY_LATE = ("source", "timeout", "capacity", "time", "turn")


@dataclass(frozen=True, slots=True)
class Patience:
    """How long events and labels wait for each other.

    Attributes
    ----------
    timeout_s : float or None
        Seconds of the events' own time, counted to the end of the turn before where labels have times.
    timeout_events : int or None
        Events, counted likewise.
    capacity : int
        At most so many entries wait; the oldest give way.
    time : str or None
        Column with the events' own time.
    """

    capacity: int
    timeout_s: float | None = None
    timeout_events: int | None = None
    time: str | None = None


def check_labels(spec: JobFile) -> None:
    """Raise BadJob where a rule of ``[labels]`` is broken."""
    labels = spec.labels
    if labels.source is None:
        if labels.arrive == "late":
            raise BadJob("labels.source: must be given where labels arrive late (a fixed lateness: evaluate.delay)")
        for key in _ONLY_LATE:
            if (value := getattr(labels, key)) is not None:
                raise BadJob(f"labels.{key}: must be absent unless labels.source is given, got {value!r}")
        return
    if labels.key is None:
        raise BadJob("labels.key: must name the key column where labels have a source of their own")
    if spec.evaluate.delay:
        raise BadJob(f"evaluate.delay: must be 0 where labels come by key, got {spec.evaluate.delay}")
    for place, source in (("source", spec.source), ("labels.source", labels.source)):
        if "libsvm" in {source.kind, source.format}:
            raise BadJob(f"{place}.kind: must have key columns where labels come by key, got 'libsvm'")
    if labels.source.kind == spec.source.kind == "stdin":
        raise BadJob("labels.source.kind: must differ from source.kind, as there is one standard input, got 'stdin'")
    if labels.timeout is not None:
        _timeout(labels)


def patience_of(labels: LabelsSection) -> Patience:
    """Return how long events and labels wait for each other."""
    seconds, events = _timeout(labels) if labels.timeout is not None else (None, None)
    capacity = labels.capacity if labels.capacity is not None else DEFAULT_CAPACITY
    return Patience(capacity, seconds, events, labels.time)


def _timeout(labels: LabelsSection) -> tuple[float | None, int | None]:
    """Return seconds or events."""
    found = _TIMEOUT.fullmatch((labels.timeout or "").strip())
    if found is None:
        raise BadJob(
            "labels.timeout: must be a number and s, m, h, d or events, as in '7d' or '50000 events', "
            f"got {labels.timeout!r}"
        )
    if found["unit"] == "events":
        return None, int(float(found["number"]))
    if labels.time is None:
        raise BadJob(f"labels.timeout: must be in events unless labels.time names a column, got {labels.timeout!r}")
    return float(found["number"]) * _SECONDS[found["unit"]], None
