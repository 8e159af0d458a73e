"""What all Kafka clients of a job share: their errors, and what they know of the cluster."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient

from streamlearn.errors import SourceError
from streamlearn.runtime.brokers import Rewind

from .options import Options, connection, resolved

log = logging.getLogger("streamlearn.kafka")
T = TypeVar("T")

REQUEST_S = 10.0
PAUSE_S = 0.5
SAY_EVERY_S = 10.0
MOCK = "mockCluster"
"""How the cluster id of librdkafka's mock cluster begins, which knows no topic ids."""
_UNKNOWN = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError.UNKNOWN_TOPIC_ID)


class Event(Protocol):
    """A message that came with a place, or an error in its stead; the client's own type allows for less."""

    def topic(self) -> str:
        """Return the topic."""
        ...

    def partition(self) -> int:
        """Return the number of the partition."""
        ...

    def offset(self) -> int:
        """Return the offset."""
        ...

    def value(self) -> bytes | None:
        """Return what it holds; None for a tombstone."""
        ...

    def __len__(self) -> int:
        """Return the number of bytes."""
        ...


def name_of(topic: str, number: int) -> str:
    """Return the name of a partition in positions, outputs and messages.

    Examples
    --------
    >>> name_of("clicks", 3)
    'clicks/3'
    """
    return f"{topic}/{number}"


def error_of(exception: KafkaException) -> KafkaError:
    """Return what the client says about an exception."""
    error: KafkaError = exception.args[0]
    return error


@dataclass(slots=True)
class Contact:
    """How long ago the job has heard of a broker, and what it heard last.

    Parameters
    ----------
    give_up_s : float
        The longest silence.
    """

    give_up_s: float
    heard_s: float = field(default_factory=time.monotonic)
    lost: str = ""
    """What is wrong now; empty while all is well."""
    _said_s: float = float("-inf")

    def heard(self) -> None:
        """Note that a broker has answered."""
        self.heard_s = time.monotonic()
        if self.lost:
            log.info("a broker answers again")
            self.lost, self._said_s = "", float("-inf")

    def failed(self, error: object) -> None:
        """Note that none has; SourceError when that has lasted too long."""
        now = time.monotonic()
        self.lost = str(error)
        silent = now - self.heard_s
        if now - self._said_s >= SAY_EVERY_S:
            self._said_s = now
            log.warning("no broker answers (%s) for %.0f s; giving up after %.0f s", error, silent, self.give_up_s)
        if silent > self.give_up_s:
            raise SourceError(f"source: must hear of a broker within {self.give_up_s:g} s, got none: {error}")


def shut_out(error: KafkaError) -> bool:
    """Return whether a client can do nothing more, as if another one had taken its place."""
    return error.fatal() or error.code() in {KafkaError._FENCED, KafkaError.FENCED_INSTANCE_ID}


def trying(contact: Contact, what: str, call: Callable[[], T]) -> T:
    """Call until it succeeds, while the only trouble is that no broker answers.

    Raises
    ------
    Rewind
        The transaction that the call belongs to is lost.
    SourceError
        Anything else, or the silence lasts too long.
    """
    while True:
        try:
            found = call()
        except KafkaException as exception:
            error = error_of(exception)
            if shut_out(error):
                raise SourceError(f"{what}: must be done by one instance of the job, got: {error.str()}") from exception
            if error.txn_requires_abort():
                raise Rewind(f"{what}: {error.str()}") from exception
            if not (error.retriable() or error.code() in _PASSING):
                raise SourceError(f"{what}: must be allowed and valid, got: {error.str()}") from exception
            contact.failed(error.str())
            time.sleep(PAUSE_S)
        else:
            contact.heard()
            return found


_PASSING = {
    KafkaError._UNKNOWN_PARTITION,  # the client has not heard of a new one yet
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._TIMED_OUT,
    KafkaError._TRANSPORT,
    KafkaError._RESOLVE,
    KafkaError._WAIT_COORD,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.NETWORK_EXCEPTION,
    KafkaError.UNSTABLE_OFFSET_COMMIT,
    KafkaError.BROKER_NOT_AVAILABLE,
    KafkaError.REPLICA_NOT_AVAILABLE,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
}
"""Troubles that pass by themselves when brokers come and go."""


@dataclass(frozen=True, slots=True)
class Topics:
    """The topics of a source as the cluster describes them.

    Attributes
    ----------
    fingerprints : dict of str to str
        ``"<cluster id>/<topic id>"`` of each topic: another one is another topic, whatever its name.
    counts : dict of str to int
        Partitions of each topic.
    """

    fingerprints: dict[str, str]
    counts: dict[str, int]

    @property
    def partitions(self) -> list[tuple[str, int]]:
        """Every partition, sorted by topic and number."""
        return [(topic, number) for topic in sorted(self.counts) for number in range(self.counts[topic])]


class Cluster:
    """Questions about the cluster.

    Parameters
    ----------
    options : dict
        As in the job file.
    """

    def __init__(self, options: Options) -> None:
        settings: Options = {**resolved(connection(options)), "logger": log}
        self._admin = AdminClient(settings)

    def describe(self, names: tuple[str, ...]) -> Topics:
        """Return what the cluster says of the topics now.

        Raises
        ------
        KafkaException
            No broker answers.
        SourceError
            A topic is not there.
        """
        found = self._admin.list_topics(timeout=REQUEST_S)
        for name in names:
            if name not in found.topics:
                raise SourceError(f"source.topics: must be topics of the cluster, got {name!r}, which it does not have")
            if (error := found.topics[name].error) is not None:
                raise KafkaException(error)
        ids = dict.fromkeys(names, "")
        if not str(found.cluster_id).startswith(MOCK):
            asked = self._admin.describe_topics(TopicCollection(list(names)), request_timeout=REQUEST_S)
            try:
                ids = {name: str(future.result(REQUEST_S).topic_id) for name, future in asked.items()}
            except TimeoutError as error:
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "topics were not described")) from error
        return Topics(
            {name: f"{found.cluster_id}/{ids[name]}" for name in names},
            {name: len(found.topics[name].partitions) for name in names},
        )


def watermarks(consumer: Consumer, topic: str, number: int) -> tuple[int, int]:
    """Return the offsets of the first event that is there and of the next one to come."""
    low, high = consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=REQUEST_S)
    return int(low), int(high)


def is_unknown_topic(error: Any) -> bool:
    """Whether an error says that the topic is not (or not yet) there."""
    return error.code() in _UNKNOWN
