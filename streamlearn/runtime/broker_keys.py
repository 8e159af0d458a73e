"""The rules of a job file that has to do with a message broker."""

from __future__ import annotations

from datetime import datetime

from streamlearn.errors import BadJob
from streamlearn.runtime.sections import JobFile, SourceSection

KIND = "kafka"
_KEYS = (
    "topics", "group", "payload", "start", "until", "order", "assignment", "out_of_range", "buffer_bytes", "give_up_s",
    "kafka", "registry",
)  # fmt: skip
_FILE_KEYS = ("path", "format", "header")
_WITH_NAMES = ("csv", "f4", "f8")
_WITH_REGISTRY = ("avro", "json-schema", "protobuf")
_STARTS = ("earliest", "latest")


def writes_to_broker(spec: JobFile) -> bool:
    """Whether predictions or dead letters go to topics."""
    to_topic = spec.sink is not None and spec.sink.format == KIND
    return to_topic or spec.bad_events.topic is not None


def check_broker_keys(spec: JobFile) -> None:
    """Raise BadJob where a key of a broker is missing, out of place or against its rule."""
    source, sink, bad = spec.source, spec.sink, spec.bad_events
    _check_input(source, "source")
    if spec.labels.source is not None:
        _check_input(spec.labels.source, "labels.source")
        if spec.labels.source.assignment == "group":
            raise BadJob("labels.source.assignment: must be 'all', as labels are not shared, got 'group'")
    if sink is not None and sink.kafka is not None and not writes_to_broker(spec):
        raise BadJob("sink.kafka: must be absent unless predictions or dead letters go to a topic, got a table")
    if bad.topic is not None and bad.path is not None:
        raise BadJob(f"bad_events.topic: must be absent beside bad_events.path, got {bad.topic!r}")
    if writes_to_broker(spec):
        _check_outputs(spec)
    if source.assignment == "group":
        _check_group(spec)


def _check_input(source: SourceSection, place: str) -> None:
    try:
        if source.kind == KIND:
            _check_source(source)
        else:
            _require_absent(source, _KEYS, f"unless kind is {KIND!r}")
    except BadJob as error:
        raise BadJob(str(error).replace("source.", f"{place}.", 1)) from None


def _check_source(source: SourceSection) -> None:
    _require_absent(source, _FILE_KEYS, f"for kind {KIND!r}")
    if source.follow:
        raise BadJob(f"source.follow: must be false for kind {KIND!r}, got true")
    for key in ("topics", "group"):
        if not getattr(source, key):
            raise BadJob(f"source.{key}: must be given for kind {KIND!r}")
    if not (source.kafka or {}):
        raise BadJob("source.kafka: must be given for kind 'kafka', with at least bootstrap.servers")
    topics = source.topics or ()
    if len(set(topics)) < len(topics):
        raise BadJob(f"source.topics: must name each topic once, got {list(topics)!r}")
    _check_payload(source)
    if source.start not in {None, *_STARTS}:
        _check_time(source.start or "")


def _check_payload(source: SourceSection) -> None:
    payload = source.payload or "json"
    if payload in _WITH_NAMES and not source.names:
        raise BadJob(f"source.names: must name the columns for payload {payload!r}, got None")
    if payload not in _WITH_NAMES and source.names:
        raise BadJob(f"source.names: must be absent for payload {payload!r}, got {list(source.names)!r}")
    if payload != "csv" and source.delimiter is not None:
        raise BadJob(f"source.delimiter: must be absent for payload {payload!r}, got {source.delimiter!r}")
    if payload in _WITH_REGISTRY and not source.registry:
        raise BadJob(f"source.registry: must be given for payload {payload!r}, with at least url")
    if payload not in _WITH_REGISTRY and source.registry is not None:
        raise BadJob(f"source.registry: must be absent for payload {payload!r}, got a table")


def _check_time(text: str) -> None:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        raise BadJob(f"source.start: must be earliest, latest or a date and time, got {text!r}") from None


def _check_outputs(spec: JobFile) -> None:
    if spec.checkpoint is None:
        raise BadJob("checkpoint: must be given where outputs go to a topic, as each transaction ends with one")
    if spec.checkpoint.keep < 2:
        raise BadJob(f"checkpoint.keep: must be int >= 2 where outputs go to a topic, got {spec.checkpoint.keep}")
    options = spec.sink.kafka if spec.sink is not None else None
    if spec.source.kind != KIND and "bootstrap" not in str(options or {}):
        raise BadJob("sink.kafka: must be given with bootstrap.servers, as the source is not a topic, got none")


def _check_group(spec: JobFile) -> None:
    if spec.sink is None or spec.sink.format != KIND:
        raise BadJob(
            "source.assignment: must be 'all' unless sink.format is 'kafka' (files are not shared), got 'group'"
        )
    if spec.bad_events.topic is None and spec.bad_events.policy != "stop":
        raise BadJob("bad_events.topic: must be given when source.assignment is 'group', as a file cannot be shared")
    if spec.labels.source is not None:
        raise BadJob("labels.source: must be absent when source.assignment is 'group', as labels are not shared")
    for key, value in (("order", "round-robin"), ("until", "end")):
        if getattr(spec.source, key) == value:
            raise BadJob(f"source.{key}: must be absent when source.assignment is 'group', got {value!r}")


def _require_absent(source: SourceSection, keys: tuple[str, ...], where: str) -> None:
    for key in keys:
        if getattr(source, key) is not None:
            raise BadJob(f"source.{key}: must be absent {where}, got {_shown(source, key)}")


def _shown(source: SourceSection, key: str) -> str:
    """Tables of options may hold secrets: they are never shown."""
    return "a table" if key in {"kafka", "registry"} else repr(getattr(source, key))
