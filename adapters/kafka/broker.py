"""The entry point: what a job that names Kafka is made of."""

from __future__ import annotations

from streamlearn.contracts import Source
from streamlearn.errors import BadJob, BadParameter
from streamlearn.runtime.brokers import LetterBox, Transaction
from streamlearn.runtime.decode import Columns
from streamlearn.runtime.job import Job
from streamlearn.runtime.sections import SourceSection
from streamlearn.runtime.sinks import PredictionSink

from .client import Contact
from .options import Options, check_options, connection
from .outbox import Outbox
from .payloads import Lines, make_payload
from .reading import BUFFER_BYTES, Reading
from .sink import LetterTopic, PredictionTopic
from .source import KafkaSource

GIVE_UP_S = 600.0
REGISTRY_PAYLOADS = ("avro", "json-schema", "protobuf")


class KafkaBroker:
    """Kafka as one job sees it.

    Parameters
    ----------
    job : Job

    Raises
    ------
    BadJob
        An option is not the job file's to set, or a secret is written out.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        self._contact = Contact(job.source.give_up_s or GIVE_UP_S)
        self._source_options = check_options("source.kafka", job.source.kafka or {})
        self._outbox = self._make_outbox() if _writes(job) else None
        self._source: KafkaSource | None = None

    def _make_outbox(self) -> Outbox:
        job = self._job
        table = job.sink.kafka if job.sink is not None else None
        options: Options = {**connection(self._source_options), **check_options("sink.kafka", table or {})}
        every_s = job.checkpoint.every_s if job.checkpoint is not None else 0.0
        return Outbox(f"streamlearn.{job.name}", options, every_s, self._contact)

    def source(self, section: SourceSection, columns: Columns) -> Source:
        """Return a source of topics.

        Parameters
        ----------
        section : SourceSection
            Of the job, or one like it.
        columns : Columns
        """
        options = check_options("source.kafka", section.kafka or {})
        in_group = section.assignment == "group"
        if in_group and options.get("isolation.level", "read_committed") != "read_committed":
            raise BadJob("source.kafka.isolation.level: must be read_committed when source.assignment is 'group'")
        payload = make_payload(
            section.payload or "json", columns, section.names, section.delimiter, self._registry(section)
        )
        reading = Reading(
            topics=tuple(section.topics or ()),
            group=section.group or "",
            options=options,
            start=section.start or "earliest",
            until_end=section.until == "end",
            round_robin=section.order == "round-robin",
            in_group=in_group,
            out_of_range=section.out_of_range or "stop",
            buffer_bytes=section.buffer_bytes or BUFFER_BYTES,
            commits=self._outbox is None or section is not self._job.source,
        )
        made = KafkaSource(reading, payload, self._contact)
        if self._outbox is not None and section is self._job.source:
            self._outbox.follow(made)
        return made

    def _registry(self, section: SourceSection) -> Lines | None:
        kind = section.payload or "json"
        if kind not in REGISTRY_PAYLOADS:
            return None
        from .registry import RegistryLines  # noqa: PLC0415 - the registry's client is an extra of its own

        return RegistryLines(kind, check_options("source.registry", section.registry or {}), self._contact)

    def sink(self, columns: list[str]) -> PredictionSink:
        """Return the sink for predictions with these columns."""
        if self._outbox is None or self._job.sink is None:
            raise BadParameter("sink: must be given to write predictions to a topic, got none")
        return PredictionTopic(self._outbox, self._job.sink.predictions, columns)

    def letters(self) -> LetterBox:
        """Return where dead letters go."""
        if self._outbox is None or self._job.bad_events.topic is None:
            raise BadParameter("bad_events: must name a topic to write dead letters to one, got none")
        return LetterTopic(self._outbox, self._job.bad_events.topic)

    def transaction(self) -> Transaction | None:
        """Return what joins the outputs."""
        return self._outbox


def _writes(job: Job) -> bool:
    return (job.sink is not None and job.sink.format == "kafka") or job.bad_events.topic is not None
