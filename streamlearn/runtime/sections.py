"""The sections of a job file as they may be written: names, types and ranges of every key.

Each key is acted on; a key that this release cannot act on is refused in `streamlearn.runtime.job` with the reason.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

Count = Annotated[int, Meta(ge=1)]
Whole = Annotated[int, Meta(ge=0)]
Fading = Annotated[float, Meta(gt=0, lt=1)]
Seconds = Annotated[float, Meta(gt=0)]
Port = Annotated[int, Meta(ge=0, le=65535)]
Character = Annotated[str, Meta(min_length=1, max_length=1)]
Text = Annotated[str, Meta(min_length=1)]

FileKind = Literal["csv", "ndjson", "libsvm", "parquet"]
SourceKind = Literal["csv", "ndjson", "libsvm", "parquet", "stdin", "kafka"]
SinkKind = Literal["ndjson", "csv", "parquet", "kafka"]
Scale = Literal["auto", "standard", "range", "none"]
Policy = Literal["dead-letter", "stop"]
Payload = Literal["json", "csv", "avro", "json-schema", "protobuf", "f4", "f8"]


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the job file; keys that it does not list are errors."""


class SourceSection(Section, frozen=True):
    """``[source]``: where the events come from.

    Attributes
    ----------
    kind : str
        ``csv``, ``ndjson``, ``libsvm``, ``parquet``, ``stdin`` or ``kafka``.
    path : str or list of str
        File, list of files or glob pattern, relative to the job file; ``.gz`` and ``.zst`` are decompressed.
    format : str
        What comes through ``stdin``: ``csv``, ``ndjson`` or ``libsvm``.
    follow : bool
        Wait for more when the end of the file is reached, like ``tail -F``.
    delimiter, header, names
        Of CSV: one character; whether there is a header line; the columns' names, without a header or in place of it.
    batch_events : int
        Most events decoded and learned at a time; fewer where that takes long. Never changes a result.
    topics, group : list of str, str
        Of ``kafka``, like all keys below: what is read, and the consumer group that is told how far. Both must be
        given.
    payload : str
        What a message holds: ``json`` (default), ``csv`` (one record, columns in `names`), ``avro``, ``json-schema`` or
        ``protobuf`` with a schema registry, or ``f4``, ``f8`` (little-endian numbers, columns in `names`).
    start : str
        Where a partition without a position begins: ``earliest`` (default), ``latest``, or a date and time of ISO 8601.
    until : str
        ``end``: the input ends with what is there when the job starts. By default it never ends.
    order : str
        Of events from several partitions: ``arrival`` (default) or ``round-robin``, which waits for silent partitions
        and is the same in every run.
    assignment : str
        ``all`` (default): this process reads every partition. ``group``: it shares them with other members of the
        group; its outputs must be topics then.
    out_of_range : str
        When the next event is not there any more, or the topic ends before it: ``stop`` (default), or go on at its
        ``earliest`` or ``latest`` event and count what was jumped over.
    buffer_bytes : int
        Most bytes of messages that wait to be decoded; the client's own queue is bounded by
        ``queued.max.messages.kbytes``.
    give_up_s : float
        A job that has not heard of any broker for so long fails.
    kafka, registry : table
        Options of the client and of the schema registry's client, as their documentation names them. Secrets must be
        written as ``"${NAME}"``, the name of an environment variable.
    """

    kind: SourceKind
    path: Text | tuple[Text, ...] | None = None
    format: FileKind | None = None
    follow: bool = False
    delimiter: Character | None = None
    header: bool | None = None
    names: tuple[Text, ...] | None = None
    batch_events: Count = 8192
    topics: tuple[Text, ...] | None = None
    group: Text | None = None
    payload: Payload | None = None
    start: Text | None = None
    until: Literal["end"] | None = None
    order: Literal["arrival", "round-robin"] | None = None
    assignment: Literal["all", "group"] | None = None
    out_of_range: Literal["stop", "earliest", "latest"] | None = None
    buffer_bytes: Count | None = None
    give_up_s: Seconds | None = None
    kafka: dict[str, Any] | None = None
    registry: dict[str, Any] | None = None


class FeaturesSection(Section, frozen=True):
    """``[features]``: which columns are what.

    Attributes
    ----------
    label : str
        The label column; for ``libsvm`` the label comes first in each line and needs no name.
    exclude : list of str
        Columns to leave out, for example those that leak the label.
    categorical : list of str
        Columns of text or codes, turned into columns of 0 and 1.
    encoding : str
        ``onehot``: a column a value, in the order in which they come; ``hash``: a fixed number of columns.
    max_categories, n_buckets : int
        Bounds of either, per categorical column.
    scale : str
        Given to the learners that have a parameter ``scale`` and do not set it themselves.
    on_bad_value : str
        What happens to an event with NaN, infinity, nothing or text where a number belongs: ``reject`` (it goes the way
        of ``[bad_events]``) or ``stop``.
    """

    label: Text | None = None
    exclude: tuple[Text, ...] = ()
    categorical: tuple[Text, ...] = ()
    encoding: Literal["onehot", "hash"] = "onehot"
    max_categories: Count = 200
    n_buckets: Count = 64
    scale: Scale | None = None
    on_bad_value: Literal["reject", "stop"] = "reject"


class EvaluateSection(Section, frozen=True):
    """``[evaluate]``: what is measured, prequentially, for every learner.

    Attributes
    ----------
    metrics : list of str
        ``auc``, ``logloss``, ``kappa_t``, ``reject_auc:d=0.4``, ...
    window : int
        Beside each metric that can be windowed also its value over the last `window` labelled events.
    delay : int
        Labels arrive this many events late: a learner is asked about an event before it saw the last `delay` labels.
    fading : float
        Beside each metric that can fade also its value where an event counts `fading` times less one event later.
    bands : int
        Copies of a bootstrap that gives each metric a band and compares every learner with the first one; 0: none. A
        checkpoint holds them, up to 400 kB for each copy of an AUC.
    drift : str
        What looks for drift in the errors of each learner: ``adwin``, ``page_hinkley:threshold=20``, ``ddm``, ...
    on_drift : str
        ``alert``: tell it; ``reset``: go on with an untrained learner; ``shorten_memory``: go on with an untrained
        learner that has learned the last `drift_memory` events.
    drift_memory : int
        Events kept for that.
    report : str
        Path of the report; the picture goes beside it. Default: ``<out>/<name>.report.json``.
    curve : bool
        Whether the reject curve is measured, at every cost of rejecting (0.2 us an event).
    picture : bool
        Whether the report is drawn at the end; ``streamlearn plot`` can do it later.
    """

    metrics: Annotated[tuple[Text, ...], Meta(min_length=1)] = ("auc", "logloss")
    window: Count | None = None
    delay: Whole = 0
    fading: Fading | None = None
    bands: Whole = 0
    drift: Text | None = None
    on_drift: Literal["alert", "reset", "shorten_memory"] = "alert"
    drift_memory: Count = 1000
    report: Text | None = None
    curve: bool = True
    picture: bool = True


class LabelsSourceSection(SourceSection, frozen=True):
    """``[labels.source]``: where late labels come from.

    Attributes
    ----------
    exclude : list of str
        Columns that are not read.
    """

    exclude: tuple[Text, ...] = ()


class LabelsSection(Section, frozen=True):
    """``[labels]``: how labels come.

    Attributes
    ----------
    arrive : str
        ``inline``: with their events; ``late``: by key from `source`, which says the same.
    key : str
        Column that identifies an event; it is not a feature, and goes out with the predictions.
    source : table
        Where late labels come from: the keys of ``[source]``, and `exclude`, columns there that are not read. It has
        the column `key` and the one of ``features.label``; in the events the latter is not read then.
    timeout : str
        How long events wait for their labels, and labels for their events: ``"7d"``, ``"36h"``, ``"90s"`` by the
        events' own `time`, or ``"50000 events"``. An expired event is learned without label. Default: for ever.
    capacity : int
        Most events and labels that wait; the oldest give way. Default: 10,000,000.
    time : str
        Numeric column in both inputs with the time in seconds; not a feature. Labels then come in the order of the
        times, to within one turn of events.
    turn : int
        Events between two looks at the labels (and, without `time`, labels between two looks at the events). A live
        input that is silent gives its turn up. Default: 1024.
    """

    arrive: Literal["inline", "late"] = "inline"
    key: Text | None = None
    source: LabelsSourceSection | None = None
    timeout: Text | None = None
    capacity: Count | None = None
    time: Text | None = None
    turn: Count | None = None


class CheckpointSection(Section, frozen=True):
    """``[checkpoint]``: without this section the job cannot be resumed.

    Attributes
    ----------
    dir : str
        Folder of the checkpoints. Default: ``<out>/<name>.checkpoints``.
    every : int
        Events between two checkpoints; whichever of `every` and `every_s` comes first.
    every_s : float
        Seconds between two checkpoints.
    keep : int
        How many checkpoints stay.
    allow_pickle : bool
        Whether learners whose state only pickle can keep (``river:...``) may be in the job. Loading a pickle runs any
        code that is in it: only where nobody else can write to the folder.
    """

    dir: Text | None = None
    every: Count | None = None
    every_s: Seconds = 5.0
    keep: Count = 2
    allow_pickle: bool = False


class SinkSection(Section, frozen=True):
    """``[sink]``: where the first learner's predictions go.

    Attributes
    ----------
    predictions : str
        Path of the file (for ``parquet`` a folder of part files, for ``kafka`` a topic).
    format : str
        ``ndjson``, ``csv``, ``parquet`` or ``kafka``; by default what the path ends in.
    kafka : table
        Options of the client that writes to topics, dead letters too; what connects and identifies comes from
        ``[source.kafka]`` where it is not given here.
    """

    predictions: Text
    format: SinkKind | None = None
    kafka: dict[str, Any] | None = None


class BadEventsSection(Section, frozen=True):
    """``[bad_events]``: events that cannot be decoded or learned.

    Attributes
    ----------
    policy : str
        ``dead-letter``: write them down and go on; ``stop``: end the job at the first one.
    path : str
        The dead-letter file. Default: ``<out>/<name>.bad.ndjson``.
    topic : str
        The dead-letter topic, in place of a file.
    max_count : int
        End the job when more than this many events were bad.
    """

    policy: Policy = "dead-letter"
    path: Text | None = None
    topic: Text | None = None
    max_count: Whole | None = None


class MonitorSection(Section, frozen=True):
    """``[monitor]``: a live page, ``/metrics`` for Prometheus, ``/healthz`` and ``/readyz``.

    Attributes
    ----------
    port : int
        0 takes any free one and says which.
    host : str
        Address to listen on. One that is not loopback needs a token in ``STREAMLEARN_MONITOR_TOKEN``.
    stuck_s : float
        A job that is silent for so long, or takes no event for so long where there are some, is not healthy.
    """

    port: Port
    host: Text = "127.0.0.1"
    stuck_s: Seconds = 60.0


class EngineSection(Section, frozen=True):
    """``[engine]``: learn the parts of the input apart, on many cores or machines, and merge the models.

    Attributes
    ----------
    kind : str
        ``local``: processes of this machine; ``spark``: Apache Spark, whose executors must see the files by path.
    workers : int
        Of ``local``: how many processes; all cores by default. Never changes a result.
    parts : int
        How many parts of about equal size the input is cut into; they do change the result.
    merge : str
        ``mean``: what one process would find, or the average by rows; ``trimmed``: that of the parts that do not stand
        apart from a majority; ``median``: geometric median of the parts' estimates.
    trim : float
        Of ``trimmed``: most of the rows that may be left out.
    round : int
        Parts of one round; behind each there is a checkpoint.
    master : str
        Of ``spark``: the master's URL; by default what the environment says.
    options : table
        Of ``spark``: its configuration.
    """

    kind: Literal["local", "spark"] = "local"
    workers: Count | None = None
    parts: Count = 16
    merge: Literal["median", "mean", "trimmed"] = "trimmed"
    trim: Annotated[float, Meta(ge=0, le=0.5)] = 0.5
    round: Count = 16
    master: Text | None = None
    options: dict[str, str] = {}


class JobFile(Section, frozen=True):
    """The whole file.

    Attributes
    ----------
    name : str
        Name of the job, in the names of its outputs. Default: the file's name.
    out : str
        Folder of the outputs, relative to the job file.
    learner : list of tables
        ``name`` (as ``streamlearn learners`` prints it), ``title`` (its name in the report) and the parameters. With
        ``refit_worker = true`` the refits of a learner with ``refit_lag`` above 0 run in a process of their own, while
        the loop takes the next ``refit_lag`` events; a result never changes.
    """

    source: SourceSection
    learner: list[dict[str, Any]]
    features: FeaturesSection = FeaturesSection()
    evaluate: EvaluateSection = EvaluateSection()
    labels: LabelsSection = LabelsSection()
    checkpoint: CheckpointSection | None = None
    sink: SinkSection | None = None
    bad_events: BadEventsSection = BadEventsSection()
    monitor: MonitorSection | None = None
    engine: EngineSection | None = None
    name: Text | None = None
    out: Text = "out"
