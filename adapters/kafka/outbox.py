"""Everything that a job writes to topics: one transaction between two checkpoints.

The producer's transactional id belongs to the job's name, so a second instance of the same job shuts the first one out.
Together with the outputs each transaction writes two positions: how far the source has come, for its group, and the
number of events of the checkpoint, for a group of its own. The latter says at the next start which of the kept
checkpoints belongs to the outputs that others can see.

A transaction that was open for too long, as when brokers were away, is ended by them, and the client hears the same as
if another instance had taken over. It was time and nobody else where the committed number is still ours.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, NoReturn

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from streamlearn.contracts import Position
from streamlearn.errors import SinkError, SourceError
from streamlearn.runtime.brokers import Rewind

from .client import REQUEST_S, Cluster, Contact, error_of, log, shut_out, trying
from .options import Options, connection, resolved

if TYPE_CHECKING:
    from .source import KafkaSource

INIT_S = 30.0
FLUSH_S = 5.0
HUNG_S = 3 * REQUEST_S
TRANSACTION_MS = 60_000
"""A transaction that is open for longer is aborted by the broker; a checkpoint must come before."""


class Outbox:
    """The transactional producer of a job.

    Parameters
    ----------
    transactional_id : str
        Unless the options name one.
    options : dict
        Of the client, secrets as names of variables.
    every_s : float
        Seconds between two checkpoints, which the transaction must outlast.
    contact : Contact
    """

    def __init__(self, transactional_id: str, options: Options, every_s: float, contact: Contact) -> None:
        timeout_ms = max(TRANSACTION_MS, int(3000 * every_s))
        defaults = {"transactional.id": transactional_id, "transaction.timeout.ms": timeout_ms, "linger.ms": 20}
        settings = {**defaults, **options}
        self.id = str(settings["transactional.id"])
        self._timeout_ms = int(settings["transaction.timeout.ms"])
        # Word of what was delivered would take a tenth of a job that writes as many events as it reads.
        self._producer = Producer({**resolved(settings), "delivery.report.only.error": True, "logger": log})
        # This consumer never reads: it stands for the group in which the number of the checkpoint is kept.
        self._marker = Consumer({**resolved(connection(options)), "group.id": f"{self.id}.checkpoint", "logger": log})
        self._cluster = Cluster(options)
        self._contact = contact
        self._topics: list[str] = []
        self._source: KafkaSource | None = None
        self._failed: KafkaError | None = None
        self._is_open = self._closed = self._hung = False
        self._opened_s = 0.0
        self._ours: set[int] = set()  # what the committed number can be while nobody else has committed

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics that are written to."""
        return tuple(self._topics)

    def write_to(self, topic: str) -> None:
        """Declare a topic."""
        self._topics.append(topic)

    def follow(self, source: KafkaSource) -> None:
        """Commit the positions of this source together with the outputs."""
        self._source = source

    # -- the contract of a transaction ---------------------------------------------------------------------------------
    def begin(self) -> int | None:
        """Shut out earlier instances and return the number of events of the last committed checkpoint."""
        try:
            trying(self._contact, "sink.kafka", lambda: self._cluster.describe(self.topics))
            trying(self._contact, "sink.kafka", lambda: self._producer.init_transactions(INIT_S))
            found = self._committed()
        except SourceError as error:
            raise SinkError(str(error).replace("source.topics", "sink.predictions or bad_events.topic")) from error
        self._ours = {found}
        return found if found >= 0 else None

    def _committed(self) -> int:
        """Return the number of events of the last committed checkpoint, negative before the first."""
        (found,) = trying(
            self._contact, "sink.kafka", lambda: self._marker.committed([self._mark(0)], timeout=REQUEST_S)
        )
        return int(found.offset)

    def commit(self, events: int, positions: Sequence[Position]) -> None:
        """Make everything visible, with the positions and the number of the checkpoint."""
        self._open()
        self.flush()
        self._ours.add(events)
        if self._source is not None and positions:
            offsets, group = self._source.share(positions)
            if offsets:
                self._try(lambda: self._producer.send_offsets_to_transaction(offsets, group, REQUEST_S))
        mark, marker = [self._mark(events)], self._marker.consumer_group_metadata()
        self._try(lambda: self._producer.send_offsets_to_transaction(mark, marker, REQUEST_S))
        self._try(lambda: self._producer.commit_transaction(REQUEST_S))
        self._is_open = False
        self._ours = {events}

    def close(self) -> None:
        """Abort what was not committed; may be called twice."""
        if self._closed:
            return
        self._closed = True
        if self._hung:
            # Destroying it would wait for the call that hangs: it stays until the process ends.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._producer))
        elif self._is_open:
            try:
                self._producer.abort_transaction(FLUSH_S)
            except KafkaException as exception:  # the next start aborts it, or the broker after a while
                log.info("a transaction was left open: %s", error_of(exception).str())
        self._marker.close()

    # -- for the sinks -------------------------------------------------------------------------------------------------
    def send(
        self, topic: str, values: Sequence[bytes], headers: Sequence[list[tuple[str, bytes]]] | None = None
    ) -> None:
        """Hand over messages of one partition's events, in their order."""
        self._open()
        given: Sequence[dict[str, Any]] = [] if headers is None else [{"headers": header} for header in headers]
        done = 0
        while done < len(values):
            done += self._queued(topic, values[done:], given[done:])
            if done < len(values):
                self._hear(lambda: self._producer.poll(0.1))  # the client's queue is full: let it send
        self._hear(lambda: self._producer.poll(0))
        self._raise_failed()

    def _queued(self, topic: str, values: Sequence[bytes], given: Sequence[dict[str, Any]]) -> int:
        """Hand over messages until the client's queue is full; return how many."""
        produce, told, done = self._producer.produce, self._delivered, 0
        try:
            if given:
                for value, extra in zip(values, given, strict=True):
                    produce(topic, value, on_delivery=told, **extra)
                    done += 1
            else:
                for value in values:  # one a prediction: nothing more is done here than must be
                    produce(topic, value, on_delivery=told)
                    done += 1
        except BufferError:
            return done
        except KafkaException as exception:
            self._refused(error_of(exception))
        return done

    def _refused(self, error: KafkaError) -> NoReturn:
        """Say why the client takes no more messages."""
        if shut_out(error) or error.code() == KafkaError._FATAL:
            self._see_who(error)
        if error.code() == KafkaError._STATE:  # what it belonged to is lost
            raise Rewind(f"a message could not be written: {error.str()}")
        raise SinkError(f"sink.kafka: must be allowed and valid, got: {error.str()}")

    def flush(self) -> None:
        """Return when the brokers have everything."""
        while self._hear(lambda: self._producer.flush(FLUSH_S)):
            self._raise_failed()
            self._contact.failed("messages wait to be sent")
        self._raise_failed()

    def _hear(self, call: Callable[[], int]) -> int:
        """Let the client call back: that is where it tells of fatal errors."""
        try:
            return call()
        except (KafkaException, SystemError) as exception:
            told = _told(exception)
            if not isinstance(told, KafkaException):
                raise
            self._refused(error_of(told))

    def _open(self) -> None:
        if not self._is_open:
            self._producer.begin_transaction()
            self._is_open, self._opened_s = True, time.monotonic()

    def _delivered(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None and self._failed is None:
            self._failed = error

    def _raise_failed(self) -> None:
        if self._failed is not None:
            self._try(lambda: self._raise(self._failed))

    @staticmethod
    def _raise(error: KafkaError | None) -> None:
        if error is not None and (error.fatal() or error.code() in _HOPELESS):
            raise KafkaException(error)
        raise Rewind(f"a message could not be written: {error.str() if error is not None else ''}")

    def _try(self, call: Callable[[], object]) -> None:
        try:
            trying(self._contact, "sink.kafka", lambda: self._bounded(call))
        except SourceError as error:
            cause = error.__cause__
            if isinstance(cause, KafkaException) and shut_out(error_of(cause)):
                self._see_who(error_of(cause))
            raise SinkError(str(error)) from error

    def _see_who(self, error: KafkaError) -> NoReturn:
        """Tell another instance from a transaction that the brokers have ended because it took too long."""
        open_s, timeout_s = time.monotonic() - self._opened_s, self._timeout_ms / 1000
        if self._is_open and open_s > timeout_s and self._committed() in self._ours:
            raise Rewind(f"a transaction was open for {open_s:.0f} s, longer than its {timeout_s:g} s")
        raise SinkError(f"sink.kafka: must be done by one instance of the job, got: {error.str()}")

    def _bounded(self, call: Callable[[], object]) -> None:
        """Call, but not for ever.

        When the node that coordinates the transaction dies in the middle of a call, the client has been seen
        (librdkafka 2.16) never to return, whatever time it was given. Nothing is lost then: another producer of the
        same id ends the transaction one way or the other, and the committed number tells which.
        """
        answers: SimpleQueue[BaseException | None] = SimpleQueue()

        def run() -> None:
            try:
                call()
            except BaseException as error:  # raised again below
                answers.put(error)
            else:
                answers.put(None)

        Thread(target=run, name="kafka-transaction", daemon=True).start()
        try:
            error = answers.get(timeout=HUNG_S)
        except Empty:
            self._hung = True
            raise Rewind(f"the client did not answer for {HUNG_S:g} s in the middle of a transaction") from None
        if error is not None:
            raise _told(error)

    def _mark(self, events: int) -> TopicPartition:
        return TopicPartition(self._topics[0], 0, events)


def _told(error: BaseException) -> BaseException:
    """Return what the client said.

    It (2.16) raises a fatal error, then goes on with other callbacks, which end in a SystemError because of it.
    """
    cause = error.__cause__
    return cause if isinstance(error, SystemError) and isinstance(cause, KafkaException) else error


_HOPELESS = {
    KafkaError.MSG_SIZE_TOO_LARGE,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.INVALID_RECORD,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_TOPIC,
}
"""What would be refused again."""
