"""Topics of Apache Kafka as a Spark stream, without the connector's jar: a Python data source over confluent-kafka.

``register_topics(session)``, then ``session.readStream.format("streamlearn-kafka")`` with the option ``topics`` and
those of the client behind ``kafka.``, as in ``kafka.bootstrap.servers``. Columns are those of a message: key, value,
topic, partition, offset, timestamp_ms.

Spark's log says which offsets make an epoch before it is read, and nothing is committed to the broker: a range of
offsets is the same messages whenever and wherever it is read, so an epoch that is handed out again is the same epoch.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, SupportsTriggerAvailableNow

from streamlearn.errors import BadParameter, SourceError

from .kafka.client import REQUEST_S, Cluster, name_of
from .kafka.options import Options, connection, resolved

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

NAME = "streamlearn-kafka"
SCHEMA = "key binary, value binary, topic string, partition int, offset long, timestamp_ms long"
OWN = ("topics", "start", "max_messages", "give_up_s")
_PREFIX = "kafka."
_AT_ONCE = 10_000
_POLL_S = 0.2
_SPEC: Any = OffsetSpec  # it has no types
Offsets = dict[str, dict[str, Any]]
"""``{"ids": {topic: its id}, "next": {"topic/partition": the next offset}}``; Spark compares them as text."""


def register_topics(session: SparkSession) -> None:
    """Make the format known to a session."""
    session.dataSource.register(KafkaTopics)


@dataclass
class Range(InputPartition):  # type: ignore[misc]  # pyspark is not there where types are checked
    """Messages of one partition of a topic, `end` excluded: what one Spark task reads."""

    topic: str
    number: int
    begin: int
    end: int


class KafkaTopics(DataSource):  # type: ignore[misc]
    """The format ``streamlearn-kafka``.

    Options: ``topics`` (comma-separated), ``start`` ("earliest", the default, or "latest"; of a new stream), for the
    messages of a micro-batch at most ``max_messages``, ``give_up_s`` (60, without a message that should be there), and
    those of the client behind ``kafka.``. Secrets are written as ``${NAME}`` of an environment variable.
    """

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return NAME

    def schema(self) -> str:
        """Return the columns of a message."""
        return SCHEMA

    def streamReader(self, schema: Any) -> TopicReader:  # noqa: N802 - Spark's name
        """Return what reads the stream."""
        return TopicReader(dict(self.options))


class TopicReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Says which offsets there are, at the driver, and reads ranges of them, in the executors.

    Parameters
    ----------
    options : mapping of str to str
        As given to Spark.

    Raises
    ------
    BadParameter
        An option is not known, or has no meaning.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        unknown = sorted(name for name in options if name not in OWN and not name.startswith(_PREFIX))
        if unknown:
            raise BadParameter(f"{NAME}: options must be of {list(OWN)} or begin with {_PREFIX!r}, got {unknown}")
        self._topics = tuple(name.strip() for name in options.get("topics", "").split(",") if name.strip())
        if not self._topics:
            raise BadParameter(f"{NAME}: topics must be names of topics, got {options.get('topics')!r}")
        self._start = options.get("start", "earliest")
        if self._start not in ("earliest", "latest"):
            raise BadParameter(f"{NAME}: start must be 'earliest' or 'latest', got {self._start!r}")
        self._most = _positive("max_messages", options.get("max_messages"))
        self._give_up_s = _positive("give_up_s", options.get("give_up_s")) or 60
        self._options: Options = {
            key.removeprefix(_PREFIX): value for key, value in options.items() if key.startswith(_PREFIX)
        }
        self._target: Offsets | None = None

    # At the driver

    def initialOffset(self) -> Offsets:  # noqa: N802
        """Return where a new stream begins."""
        return self._offsets(_SPEC.earliest() if self._start == "earliest" else _SPEC.latest())

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        """Return how many messages a micro-batch may have."""
        return ReadMaxRows(self._most) if self._most else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Note what is there now: where a stream that ends by itself ends."""
        self._target = self._offsets(_SPEC.latest())

    def latestOffset(self, start: Offsets, limit: Any) -> Offsets:  # noqa: N802
        """Return where the next micro-batch ends."""
        latest = self._target or self._offsets(_SPEC.latest())
        # Those who restart a stream with other topics are told by `partitions`.
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        ends = limited(start["next"], latest["next"], most)
        return {"ids": latest["ids"], "next": ends}

    def partitions(self, start: Offsets, end: Offsets) -> Sequence[Range]:
        """Return the ranges between two offsets.

        Raises
        ------
        SourceError
            A topic was made anew, or has lost messages.
        """
        ranges = []
        for topic, identity in start["ids"].items():
            if end["ids"].get(topic) != identity:
                raise SourceError(
                    f"{NAME}: topic {topic} must be {identity}, got {end['ids'].get(topic)}: it is another"
                )
        for name, stop in end["next"].items():
            topic, _, number = name.rpartition("/")
            begin = start["next"].get(name, 0)
            if stop < begin:
                raise SourceError(f"{NAME}: {name} must reach offset {begin}, got {stop}: messages were lost")
            if stop > begin:
                ranges.append(Range(topic, int(number), begin, stop))
        return ranges

    def _offsets(self, which: Any) -> Offsets:
        topics = Cluster(self._options).describe(self._topics)
        admin = AdminClient(resolved(connection(self._options)))
        places = {TopicPartition(topic, number): which for topic, number in topics.partitions}
        # Up to open transactions: messages behind them cannot be read yet.
        asked = admin.list_offsets(places, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=REQUEST_S)
        found = {name_of(at.topic, at.partition): int(future.result().offset) for at, future in asked.items()}
        return {"ids": dict(sorted(topics.fingerprints.items())), "next": dict(sorted(found.items()))}

    # In the executors

    def read(self, partition: Range) -> Iterator[pa.RecordBatch]:
        """Yield the messages of a range.

        Raises
        ------
        SourceError
            They are not there any more, or do not come.
        """
        consumer = Consumer(
            {
                **resolved(self._options),
                "group.id": NAME,  # the client wants one; nothing is committed
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "error",
                "isolation.level": "read_committed",
            }
        )
        try:
            consumer.assign([TopicPartition(partition.topic, partition.number, partition.begin)])
            yield from self._messages(consumer, partition)
        finally:
            consumer.close()

    def _messages(self, consumer: Consumer, wanted: Range) -> Iterator[pa.RecordBatch]:
        at, heard_s = wanted.begin, time.monotonic()
        while at < wanted.end:
            events: list[Any] = consumer.consume(_AT_ONCE, _POLL_S)
            if not events and time.monotonic() - heard_s > self._give_up_s:
                raise SourceError(f"{NAME}: {wanted} must come within {self._give_up_s} s, got up to offset {at}")
            heard_s = time.monotonic() if events else heard_s
            good = []
            for event in events:
                if (error := event.error()) is None:
                    at = int(event.offset()) + 1
                    good += [event] if at <= wanted.end else []
                elif error.code() == KafkaError._PARTITION_EOF:
                    at = max(at, int(event.offset()))  # markers of transactions may stand at the end
                elif not error.retriable():
                    raise SourceError(f"{NAME}: {wanted} must be there, got: {error.str()}") from KafkaException(error)
            if good:
                yield _batch(good)


def limited(start: Mapping[str, int], end: Mapping[str, int], most: int | None) -> dict[str, int]:
    """Return ends such that at most so many messages lie before them, each partition's share as it is behind."""
    behind = {name: max(stop - start.get(name, 0), 0) for name, stop in end.items()}
    total = sum(behind.values())
    if most is None or total <= most:
        return dict(end)
    given = {name: n * most // total for name, n in behind.items()}
    left = most - sum(given.values())
    for name in sorted(behind, key=lambda name: given[name] - behind[name] * most / total)[:left]:
        given[name] += 1
    return {name: start.get(name, 0) + n for name, n in given.items()}


def _positive(name: str, text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isdigit() or int(text) < 1:
        raise BadParameter(f"{NAME}: {name} must be a whole number >= 1, got {text!r}")
    return int(text)


def _batch(events: Sequence[Any]) -> pa.RecordBatch:
    import pyarrow as pa  # noqa: PLC0415 - known in the executors

    return pa.RecordBatch.from_pydict(
        {
            "key": pa.array([event.key() for event in events], pa.binary()),
            "value": pa.array([event.value() for event in events], pa.binary()),
            "topic": pa.array([event.topic() for event in events], pa.string()),
            "partition": pa.array([event.partition() for event in events], pa.int32()),
            "offset": pa.array([event.offset() for event in events], pa.int64()),
            "timestamp_ms": pa.array([event.timestamp()[1] for event in events], pa.int64()),
        }
    )
