"""Rules that join ``[engine]`` with the other sections of a job: what has no meaning where parts are learned apart."""

from __future__ import annotations

from typing import Any

from streamlearn.errors import BadJob
from streamlearn.runtime.sections import EngineSection, JobFile, Section

FILES = ("csv", "ndjson", "libsvm", "parquet")


def check_engine(spec: JobFile) -> None:
    """Check a job with an engine.

    Raises
    ------
    BadJob
    """
    engine = spec.engine
    if engine is None:
        return
    if spec.source.kind not in FILES:
        raise BadJob(f"source.kind: must be one of {', '.join(FILES)} with [engine], got {spec.source.kind!r}")
    evaluate = spec.evaluate
    absent: list[tuple[str, Any, Any]] = [
        ("source.follow", spec.source.follow, False),
        ("sink", spec.sink, None),
        ("monitor", spec.monitor, None),
        ("evaluate.delay", evaluate.delay, 0),
        ("evaluate.drift", evaluate.drift, None),
        ("evaluate.bands", evaluate.bands, 0),
        ("labels.arrive", spec.labels.arrive, "inline"),
        ("bad_events.topic", spec.bad_events.topic, None),
    ]
    for key, value, plain in absent:
        if value != plain:
            got = "one" if isinstance(value, Section) else repr(value)
            raise BadJob(f"{key}: must be absent with [engine], where no event comes behind another, got {got}")
    _check_keys_of_kind(engine)


def _check_keys_of_kind(engine: EngineSection) -> None:
    of_others: dict[str, dict[str, Any]] = {"local": {"master": None, "options": {}}, "spark": {"workers": None}}
    for key, plain in of_others[engine.kind].items():
        if (value := getattr(engine, key)) != plain:
            raise BadJob(f"engine.{key}: must be absent for kind {engine.kind!r}, got {value!r}")
