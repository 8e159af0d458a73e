"""The job file: read, overridden, checked, with every path made absolute.

What a key means stands in `streamlearn.runtime.sections`; here are the rules that join several keys. Messages begin
with the path of the wrong key.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from streamlearn.errors import BadJob
from streamlearn.runtime.broker_keys import KIND, check_broker_keys
from streamlearn.runtime.engine_rules import check_engine
from streamlearn.runtime.label_rules import check_labels
from streamlearn.runtime.overrides import apply_overrides
from streamlearn.runtime.places import check_places
from streamlearn.runtime.schema import convert_tables
from streamlearn.runtime.sections import (
    BadEventsSection,
    CheckpointSection,
    EngineSection,
    EvaluateSection,
    FeaturesSection,
    JobFile,
    LabelsSection,
    MonitorSection,
    SinkSection,
    SourceSection,
)

_FORMATS = {".ndjson": "ndjson", ".jsonl": "ndjson", ".json": "ndjson", ".csv": "csv", ".parquet": "parquet"}


@dataclass(frozen=True, slots=True)
class LearnerSection:
    """One ``[[learner]]``.

    Attributes
    ----------
    name : str
        As ``streamlearn learners`` prints it, or ``river:path.to.Class``.
    title : str
        Its name in the report, different from that of every other learner of the job.
    params : dict
        The learner's parameters.
    refit_worker : bool
        Refits run in a process of their own. Never changes a result.
    """

    name: str
    title: str
    params: dict[str, Any]
    refit_worker: bool = False


@dataclass(frozen=True, slots=True)
class Job:
    """A checked job.

    Attributes
    ----------
    name : str
    folder : Path
        What relative paths are relative to: the folder of the job file.
    source, features, evaluate, labels, checkpoint, sink, bad_events
        The sections; `checkpoint` and `sink` are None where the job has none.
    learners : tuple of LearnerSection
    out : str
        Folder of the outputs, as written.
    """

    name: str
    folder: Path
    source: SourceSection
    learners: tuple[LearnerSection, ...]
    features: FeaturesSection = field(default_factory=FeaturesSection)
    evaluate: EvaluateSection = field(default_factory=EvaluateSection)
    labels: LabelsSection = field(default_factory=LabelsSection)
    checkpoint: CheckpointSection | None = None
    sink: SinkSection | None = None
    bad_events: BadEventsSection = field(default_factory=BadEventsSection)
    monitor: MonitorSection | None = None
    engine: EngineSection | None = None
    out: str = "out"

    def resolve(self, path: str) -> Path:
        """Return `path` as it is seen from the job file."""
        return self.folder / Path(path).expanduser()

    def output(self, suffix: str) -> Path:
        """Return ``<out>/<name><suffix>``."""
        return self.resolve(self.out) / f"{self.name}{suffix}"

    def model_path(self, title: str) -> Path:
        """Return where a trained learner is saved."""
        return self.output(f".{file_name(title)}.safetensors")

    @property
    def source_paths(self) -> list[str]:
        """The input paths or patterns, absolute; empty for ``stdin``."""
        return self.paths_of(self.source)

    def paths_of(self, source: SourceSection) -> list[str]:
        """Return the input paths or patterns of a source, absolute; empty for ``stdin``."""
        path = source.path
        texts = [] if path is None else [path] if isinstance(path, str) else list(path)
        return [str(self.resolve(text)) for text in texts]

    @property
    def uses_broker(self) -> bool:
        """Whether the job reads topics or writes to some."""
        to_topic = self.sink is not None and self.sink.format == KIND
        labels = self.labels.source
        reads = self.source.kind == KIND or (labels is not None and labels.kind == KIND)
        return reads or to_topic or self.bad_events.topic is not None

    @property
    def has_partitions(self) -> bool:
        """Whether a record number alone may not name an event: topics, several files, or a pattern."""
        several = len(self.source_paths) > 1 or self.source.kind == KIND
        return several or any(sign in path for path in self.source_paths for sign in "*?[")

    @property
    def checkpoint_dir(self) -> Path | None:
        """Folder of the checkpoints, or None."""
        if self.checkpoint is None:
            return None
        return self.resolve(self.checkpoint.dir) if self.checkpoint.dir else self.output(".checkpoints")

    @property
    def report_path(self) -> Path:
        """Where the report goes."""
        return self.resolve(self.evaluate.report) if self.evaluate.report else self.output(".report.json")

    @property
    def dead_letter_path(self) -> Path:
        """Where bad events go."""
        return self.resolve(self.bad_events.path) if self.bad_events.path else self.output(".bad.ndjson")

    @property
    def sink_format(self) -> str:
        """Format of the predictions: as written, or by the ending of the path."""
        assert self.sink is not None  # noqa: S101  asked only for a job that has one
        return self.sink.format or _FORMATS[Path(self.sink.predictions).suffix]


def read_job(path: Path, sets: Iterable[str] = (), environ: Mapping[str, str] | None = None) -> Job:
    """Read and check a job file.

    Parameters
    ----------
    path : Path
        The TOML file.
    sets : iterable of str
        ``section.key=value`` texts that change it.
    environ : mapping, optional
        Environment variables that change it.

    Raises
    ------
    BadJob
        The file cannot be read, is not TOML, or breaks a rule.
    """
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise BadJob(f"{path}: must be a readable TOML file, got {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise BadJob(f"{path}: must be TOML, got an error: {error}") from error
    apply_overrides(tables, sets, environ or {})
    return check_job(tables, folder=path.resolve().parent, name=path.stem)


def check_job(tables: dict[str, Any], *, folder: Path, name: str) -> Job:
    """Return the job that the tables of a job file describe; BadJob where a rule is broken."""
    spec = convert_tables(tables)
    check_broker_keys(spec)
    if spec.source.kind != KIND:
        _check_source(spec.source)
    check_labels(spec)
    if spec.labels.source is not None and spec.labels.source.kind != KIND:
        _check_source(spec.labels.source, "labels.source")
    _check_features(spec)
    _check_evaluate(spec)
    _check_sink(spec.sink)
    check_engine(spec)
    job = Job(
        name=spec.name or name,
        folder=folder,
        source=spec.source,
        learners=_learners(spec.learner),
        features=spec.features,
        evaluate=spec.evaluate,
        labels=spec.labels,
        checkpoint=spec.checkpoint,
        sink=spec.sink,
        bad_events=spec.bad_events,
        monitor=spec.monitor,
        engine=spec.engine,
        out=spec.out,
    )
    check_places(job)
    return job


def _check_source(source: SourceSection, place: str = "source") -> None:
    is_stdin = source.kind == "stdin"
    if is_stdin and source.path is not None:
        raise BadJob(f"{place}.path: must be absent for kind 'stdin', got {source.path!r}")
    if not is_stdin and not source.path:
        raise BadJob(f"{place}.path: must be given for kind {source.kind!r}")
    if is_stdin and source.format in {None, "parquet"}:
        raise BadJob(f"{place}.format: must be 'csv', 'ndjson' or 'libsvm' for kind 'stdin', got {source.format!r}")
    if not is_stdin and source.format is not None:
        raise BadJob(f"{place}.format: must be absent unless kind is 'stdin', got {source.format!r}")
    if source.follow and (is_stdin or source.kind == "parquet"):
        raise BadJob(f"{place}.follow: must be false for kind {source.kind!r}, got true")
    _check_csv_keys(source, place)


def _check_csv_keys(source: SourceSection, place: str) -> None:
    is_csv = "csv" in {source.kind, source.format}
    for key in ("delimiter", "header", "names"):
        value = getattr(source, key)
        if value is not None and not is_csv:
            raise BadJob(f"{place}.{key}: must be absent unless the input is CSV, got {value!r}")
    if source.header is False and source.names is None:
        raise BadJob(f"{place}.names: must name the columns when header is false, got None")


def _check_evaluate(spec: JobFile) -> None:
    evaluate = spec.evaluate
    if evaluate.drift is None and evaluate.on_drift != "alert":
        raise BadJob(f"evaluate.on_drift: must be absent unless evaluate.drift is given, got {evaluate.on_drift!r}")


def _check_features(spec: JobFile) -> None:
    features, is_libsvm = spec.features, "libsvm" in {spec.source.kind, spec.source.format}
    if is_libsvm:
        for key in ("label", "exclude", "categorical"):
            if value := getattr(features, key):
                raise BadJob(f"features.{key}: must be absent for libsvm input, got {value!r}")
        if spec.labels.key:
            raise BadJob(f"labels.key: must be absent for libsvm input, got {spec.labels.key!r}")
    elif features.label is None:
        raise BadJob("features.label: must be given")
    _check_roles(spec)


def _check_roles(spec: JobFile) -> None:
    roles: dict[str, str] = {}
    named = [("features.label", [spec.features.label]), ("labels.key", [spec.labels.key])]
    named.append(("labels.time", [spec.labels.time]))
    named += [
        ("features.exclude", list(spec.features.exclude)),
        ("features.categorical", list(spec.features.categorical)),
    ]
    for place, columns in named:
        for column in filter(None, columns):
            if column in roles:
                raise BadJob(f"{place}: must not name a column of {roles[column]}, got {column!r}")
            roles[column] = place


def _check_sink(sink: SinkSection | None) -> None:
    if sink is None or sink.format is not None:
        return
    suffix = Path(sink.predictions).suffix
    if suffix not in _FORMATS:
        endings = ", ".join(_FORMATS)
        raise BadJob(f"sink.predictions: must end in {endings} or have sink.format beside it, got {sink.predictions!r}")


def _learners(tables: list[dict[str, Any]]) -> tuple[LearnerSection, ...]:
    if not tables:
        raise BadJob("learner: must be one or more [[learner]] tables, got none")
    sections: list[LearnerSection] = []
    for index, table in enumerate(tables):
        params = dict(table)
        name = params.pop("name", None)
        title = params.pop("title", name)
        for key, value in (("name", name), ("title", title)):
            if not isinstance(value, str) or not value:
                raise BadJob(f"learner[{index}].{key}: must be a text, got {value!r}")
        if file_name(title) in {file_name(section.title) for section in sections}:
            raise BadJob(f"learner[{index}].title: must differ from the titles of the other learners, got {title!r}")
        refit_worker = params.pop("refit_worker", False)
        if not isinstance(refit_worker, bool):
            raise BadJob(f"learner[{index}].refit_worker: must be true or false, got {refit_worker!r}")
        sections.append(LearnerSection(name, title, params, refit_worker))
    return tuple(sections)


def file_name(title: str) -> str:
    """Return a title as part of a file name.

    Examples
    --------
    >>> file_name("AUCRO, half-life 100")
    'AUCRO-half-life-100'
    """
    return re.sub(r"[^A-Za-z0-9_.]+", "-", title).strip("-.") or "learner"
