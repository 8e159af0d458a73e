"""From a checked job to the parts that do its work. Nothing of the job's files is touched here but its input."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from streamlearn.contracts import OnlineLearner, Source
from streamlearn.errors import BadJob, BadParameter
from streamlearn.evaluation.curve import RejectCurve
from streamlearn.evaluation.drift import DETECTORS, make_detector
from streamlearn.evaluation.metric import BaseMetric
from streamlearn.evaluation.registry import make_metric
from streamlearn.features.categories import Vectoriser
from streamlearn.learners.registry import learner_class, make_learner
from streamlearn.runtime.broker_keys import KIND
from streamlearn.runtime.brokers import Broker, load_broker
from streamlearn.runtime.checkpoint import CheckpointFolder
from streamlearn.runtime.dead_letters import DeadLetters
from streamlearn.runtime.drift import Clones, DriftRules
from streamlearn.runtime.duels import Duels
from streamlearn.runtime.extensions import extensions, load_extension
from streamlearn.runtime.job import Job, LearnerSection
from streamlearn.runtime.label_rules import DEFAULT_TURN, patience_of
from streamlearn.runtime.labels import LateLabels
from streamlearn.runtime.lead import Lead
from streamlearn.runtime.loop import Parts
from streamlearn.runtime.refit_workers import check_refits
from streamlearn.runtime.sections import SourceSection
from streamlearn.runtime.sinks import PredictionSink, open_sink, sink_columns
from streamlearn.runtime.sources import Columns, open_source
from streamlearn.runtime.tracks import Track
from streamlearn.runtime.turns import Turns
from streamlearn.runtime.waiting import WaitingTable

LATER_KEYS = frozenset({"source.topics", "source.payload", "source.order", "bad_events.topic", "evaluate.bands"})

_ANY_LOSS = " or ".join(name for name, detector in DETECTORS.items() if not detector.unit)

GROUP = "streamlearn.learners"
"""Entry points of foreign learners: ``prefix:path`` of a job is given to the one called ``prefix``."""


def assemble(job: Job) -> Parts:
    """Return the parts of a job.

    Raises
    ------
    BadJob
        A learner, a metric or a parameter is wrong; the message begins with the path of the key.
    SourceError
        The input cannot be read.
    """
    broker = load_broker(KIND, job) if job.uses_broker else None
    tracks = [make_track(job, index) for index in range(len(job.learners))]
    _require_scale_taken(job)
    checkpoint = job.checkpoint
    vectoriser = make_vectoriser(job)
    return Parts(
        source=_sources(job, broker),
        vectoriser=vectoriser,
        tracks=tracks,
        sink=_sink(job, broker),
        dead_letters=make_dead_letters(job, broker),
        checkpoints=checkpoint_folder(job),
        meaning=meaning(job),
        batch_events=job.source.batch_events,
        every=checkpoint.every if checkpoint is not None else None,
        every_s=checkpoint.every_s if checkpoint is not None else float("inf"),
        transaction=broker.transaction() if broker is not None else None,
        late=_late_labels(job, tracks, vectoriser),
        duels=Duels(tracks, job.evaluate.bands) if job.evaluate.bands else None,
        lead=Lead([section.title for section in job.learners], job.checkpoint_dir),
    )


def checkpoint_folder(job: Job) -> CheckpointFolder | None:
    """Return the folder of a job's checkpoints; None where there are none."""
    checkpoint, path = job.checkpoint, job.checkpoint_dir
    return CheckpointFolder(path, checkpoint.keep) if checkpoint is not None and path is not None else None


def meaning(job: Job) -> dict[str, str]:
    """Return the keys without which the state of a checkpoint means something else, with their values as text.

    How often checkpoints are made, how many are kept, the size of batches, whether a file is followed and what ends the
    job may change between two runs.
    """
    source, features = job.source, job.features
    kept: dict[str, Any] = {
        **{f"source.{key}": getattr(source, key) for key in ("kind", "path", "format", "delimiter", "header", "names")},
        **{f"source.{key}": getattr(source, key) for key in ("topics", "payload", "order")},
        **{f"features.{key}": getattr(features, key) for key in ("label", "exclude", "categorical", "scale")},
        **{f"features.{key}": getattr(features, key) for key in ("encoding", "max_categories", "n_buckets")},
        **{f"evaluate.{key}": getattr(job.evaluate, key) for key in ("metrics", "window", "delay", "curve")},
        **{f"evaluate.{key}": getattr(job.evaluate, key) for key in ("drift", "on_drift", "drift_memory", "fading")},
        **{f"labels.{key}": getattr(job.labels, key) for key in ("key", "timeout", "capacity", "time", "turn")},
        "evaluate.bands": job.evaluate.bands or None,
        "labels.source": None if job.labels.source is None else (job.labels.source.kind, job.labels.source.path),
        "sink.predictions": job.sink.predictions if job.sink is not None else None,
        "sink.format": job.sink_format if job.sink is not None else None,
        "bad_events.path": job.bad_events.path,
        "bad_events.topic": job.bad_events.topic,
    }
    for index, section in enumerate(job.learners):
        kept[f"learner[{index}].name"] = section.name
        kept |= {f"learner[{index}].{key}": value for key, value in section.params.items()}
    # A key that came with a later release is only named where it is used, so that older checkpoints go on.
    return {key: repr(value) for key, value in kept.items() if value is not None or key not in LATER_KEYS}


def make_track(job: Job, index: int) -> Track:
    """Return one learner of a job with its metrics."""
    section = job.learners[index]
    learner = _learner(job, section, f"learner[{index}]")
    check_refits(section, learner, f"learner[{index}]")
    delay = job.evaluate.delay
    if delay and not hasattr(learner, "test_then_learn_late"):
        raise BadJob(f"evaluate.delay: must be 0, as {section.name} cannot learn late labels, got {delay}")
    curve = RejectCurve() if job.evaluate.curve else None
    drift = _drift_rules(job, learner, section)
    return Track(section.title, learner, _metrics(job), curve=curve, delay=delay, drift=drift)


def _drift_rules(job: Job, learner: OnlineLearner, section: LearnerSection) -> DriftRules | None:
    evaluate = job.evaluate
    if evaluate.drift is None:
        return None
    if evaluate.on_drift != "alert" and not isinstance(learner, Clones):
        raise BadJob(
            f"evaluate.on_drift: must be 'alert', as {section.name} cannot be made anew, got {evaluate.on_drift!r}"
        )
    try:
        detector = make_detector(evaluate.drift)
    except BadParameter as error:
        raise BadJob(f"evaluate.drift: {error}") from error
    if detector.unit and all(make_metric(spec).takes == "value" for spec in evaluate.metrics):
        raise BadJob(f"evaluate.drift: must be {_ANY_LOSS} for metrics of predicted numbers, got {evaluate.drift!r}")
    return DriftRules(evaluate.drift, evaluate.on_drift, evaluate.drift_memory)


def _learner(job: Job, section: LearnerSection, path: str) -> OnlineLearner:
    params = dict(section.params)
    if _takes_scale(job, section):
        params.setdefault("scale", job.features.scale)
    try:
        prefix, colon, rest = section.name.partition(":")
        made = _foreign(job, prefix, rest, params) if colon else make_learner(section.name, params)
    except BadParameter as error:
        raise BadJob(f"{path}: {error}") from error
    if not (hasattr(made, "test_then_learn_columns") and hasattr(made, "check")):
        raise BadJob(f"{path}.name: must be a learner that forecasts labels or numbers, got {section.name!r}")
    return cast("OnlineLearner", made)


def _foreign(job: Job, prefix: str, path: str, params: Mapping[str, Any]) -> OnlineLearner:
    found = extensions(GROUP)
    if prefix not in found:
        raise BadParameter(f"learner must be of {sorted(found)} before the colon, got {prefix!r}")
    make = load_extension(found[prefix], f"learner {prefix}:{path}", prefix)
    allow_pickle = job.checkpoint is not None and job.checkpoint.allow_pickle
    learner: OnlineLearner = make(path, params, allow_pickle=allow_pickle)
    return learner


def _takes_scale(job: Job, section: LearnerSection) -> bool:
    if job.features.scale is None or ":" in section.name:
        return False
    try:
        return "scale" in learner_class(section.name).parameter_names()
    except BadParameter:
        return False  # the name is refused when the learner is made


def _require_scale_taken(job: Job) -> None:
    if job.features.scale is not None and not any(_takes_scale(job, section) for section in job.learners):
        names = ", ".join(section.name for section in job.learners)
        raise BadJob(
            f"features.scale: must be absent, as no learner of the job ({names}) scales, got {job.features.scale!r}"
        )


def _metrics(job: Job) -> list[BaseMetric]:
    metrics: list[BaseMetric] = []
    for index, spec in enumerate(job.evaluate.metrics):
        try:
            metric = make_metric(spec)
            metrics.append(metric)
            # A metric with parameters of its own is meant as it stands.
            if job.evaluate.window is not None and ":" not in spec and "window" in metric.params():
                metrics.append(make_metric(f"{spec}:window={job.evaluate.window}"))
            if job.evaluate.fading is not None and ":" not in spec and "fading" in metric.params():
                metrics.append(make_metric(f"{spec}:fading={job.evaluate.fading}"))
        except BadParameter as error:
            raise BadJob(f"evaluate.metrics[{index}]: {error}") from error
    names = [metric.name for metric in metrics]
    if len(set(names)) < len(names):
        raise BadJob(f"evaluate.metrics: must differ from each other, got {names}")
    return metrics


def _late_labels(job: Job, tracks: list[Track], vectoriser: Vectoriser) -> LateLabels | None:
    if job.labels.source is None:
        return None
    for section, track in zip(job.learners, tracks, strict=True):
        if not hasattr(track.learner, "test_then_learn_late"):
            raise BadJob(f"labels.source: must be absent, as {section.name} cannot learn late labels")
    patience, folder = patience_of(job.labels), job.checkpoint_dir
    path = None if folder is None else folder / "waiting.sqlite"
    keep = job.checkpoint.keep if job.checkpoint is not None else 1
    table = WaitingTable(path, keep=keep, remember=patience.capacity)
    return LateLabels(tracks, vectoriser, table, patience)


def _sources(job: Job, broker: Broker | None) -> Source:
    labels = job.labels
    if labels.source is None:
        return _source(job, broker, job.source, make_columns(job), "source")
    label, key, exclude = job.features.label, labels.key, frozenset(labels.source.exclude)
    told = Columns(label=label, exclude=exclude, key=key, names=labels.source.names)
    # A label that an event brings along, as records of the past do, would give itself away as a feature.
    unread = frozenset() if label is None else frozenset({label})
    told_early = replace(make_columns(job), label=None, unread=unread)
    events = _source(job, broker, job.source, told_early, "source")
    late = _source(job, broker, labels.source, told, "labels.source")
    return Turns(events, late, turn=labels.turn or DEFAULT_TURN, time=labels.time)


def _source(job: Job, broker: Broker | None, source: SourceSection, columns: Columns, place: str) -> Source:
    try:
        if source.kind == KIND and broker is not None:
            return broker.source(source, columns)
        return open_source(
            source.kind,
            job.paths_of(source) or None,
            columns,
            format=source.format,
            follow=source.follow,
            delimiter=source.delimiter,
            header=source.header,
        )
    except BadParameter as error:
        # "source: delimiter must be ..." begins with the path of the key but for the dot.
        raise BadJob(str(error).replace("source: ", f"{place}.", 1)) from error


def make_columns(job: Job) -> Columns:
    """Return what a job says about the columns of its source."""
    return Columns(
        label=job.features.label,
        exclude=frozenset(job.features.exclude),
        categorical=frozenset(job.features.categorical),
        key=job.labels.key,
        names=job.source.names,
    )


def make_vectoriser(job: Job) -> Vectoriser:
    """Return what turns the text columns of a job into numbers."""
    features = job.features
    return Vectoriser(encoding=features.encoding, max_categories=features.max_categories, n_buckets=features.n_buckets)


def _sink(job: Job, broker: Broker | None) -> PredictionSink | None:
    if job.sink is None:
        return None
    if job.sink_format == KIND and broker is not None:
        return broker.sink(sink_columns(with_keys=job.labels.key is not None, with_partitions=job.has_partitions))
    return open_sink(
        job.resolve(job.sink.predictions),
        job.sink_format,
        with_keys=job.labels.key is not None,
        with_partitions=job.has_partitions,
    )


def make_dead_letters(job: Job, broker: Broker | None) -> DeadLetters:
    """Return where the bad events of a job go."""
    stop_kinds = frozenset({"value"}) if job.features.on_bad_value == "stop" else frozenset[str]()
    return DeadLetters(
        job.dead_letter_path if job.bad_events.topic is None or broker is None else broker.letters(),
        policy=job.bad_events.policy,
        stop_kinds=stop_kinds,
        max_count=job.bad_events.max_count,
    )
