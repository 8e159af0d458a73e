"""A thread that keeps talking to the brokers and holds a bounded number of messages ready.

A consumer that does not ask for messages for some minutes loses its partitions. So this thread asks without end, also
while learning is slow: it stops taking messages when enough wait, and pauses the partitions when that lasts.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import cast

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from .chunks import Chunk, stretches
from .client import Event, log
from .order import Order
from .partitions import Partition

CHUNK = 1000
"""Messages asked for at once; more at once is slower."""
MOST_MESSAGES = 1 << 16
ROOM = 0.5
WAIT_S = 0.1
PATIENCE_S = 1.0
"""How long to wait for room before the partitions are paused. What the client has fetched by then is dropped by it and
fetched again later, so this must not happen between two batches."""


class Shelf:
    """The messages that are ready, and the lock around them.

    Parameters
    ----------
    order : Order
    most_bytes : int
        About so many bytes of messages, and at most a few chunks more than `MOST_MESSAGES` of them.
    """

    def __init__(self, order: Order, most_bytes: int) -> None:
        self.order = order
        self.changed = threading.Condition()
        self.partitions: dict[str, Partition] = {}
        self.moved: set[str] = set()
        """Partitions whose positions changed without an event."""
        self.fresh: set[str] = set()
        """Partitions that were added since the fetcher looked: the client remembers whether it had paused them."""
        self.error: BaseException | None = None
        self._most_bytes = most_bytes
        self._turn = 0
        self._places: dict[tuple[str, int], Partition] = {}

    def add(self, partition: Partition) -> None:
        """Take a partition in."""
        self.partitions[partition.name] = partition
        self._places[partition.topic, partition.number] = partition
        self.moved.add(partition.name)
        self.fresh.add(partition.name)

    def drop(self, names: list[str]) -> None:
        """Forget partitions with all that waits."""
        for name in names:
            partition = self.partitions.pop(name, None)
            if partition is not None:
                del self._places[partition.topic, partition.number]
            self.moved.discard(name)
            self.fresh.discard(name)

    def find(self, message: Event) -> Partition | None:
        """Return the partition of a message, None where it was given up meanwhile."""
        return self._places.get((message.topic(), message.partition()))

    def put(self, came: Iterable[tuple[str, int, Chunk]]) -> None:
        """Take messages that came, in their order, with topic and number of their partitions."""
        for topic, number, chunk in came:
            partition = self._places.get((topic, number))
            if partition is not None:  # else it was given up meanwhile
                if not partition.chunks:
                    partition.turn = self._next_turn()
                partition.put(chunk)

    def take(self, limit: int) -> tuple[Partition, Chunk] | None:
        """Hand out the next messages; None where they have not come."""
        pick = self.order.next(self.partitions.values())
        if pick is None:
            return None
        partition, most, before = pick
        taken = partition.take(min(limit, most), before)
        if taken is None:
            return None
        partition.turn = self._next_turn()
        return partition, taken

    def _next_turn(self) -> int:
        self._turn += 1
        return self._turn

    def load(self) -> float:
        """Return how full it is; 1 or more is full."""
        n_bytes = sum(partition.n_bytes for partition in self.partitions.values())
        n_messages = sum(partition.n_messages for partition in self.partitions.values())
        return max(n_bytes / self._most_bytes, n_messages / MOST_MESSAGES)

    def wanted(self) -> Partition | None:
        """Return the partition that everything waits for, if its messages have not come."""
        pick = self.order.next(self.partitions.values())
        return pick[0] if pick is not None and not pick[0].chunks else None


class Fetcher:
    """The thread.

    Parameters
    ----------
    consumer : Consumer
        Polled by this thread alone.
    shelf : Shelf
    on_error : callable, (error, message) -> None
        Told of errors that came in place of messages, other than ends of partitions.
    refresh : callable
        Called every `every_s` seconds.
    every_s : float
    between : callable
        Called between two calls of the consumer.
    one_topic : bool
        Whether all messages are of one topic.
    """

    def __init__(
        self,
        consumer: Consumer,
        shelf: Shelf,
        on_error: Callable[[KafkaError, Event], None],
        refresh: Callable[[], None],
        every_s: float,
        between: Callable[[], None],
        *,
        one_topic: bool,
    ) -> None:
        self._consumer, self._shelf = consumer, shelf
        self._on_error, self._refresh, self._every_s = on_error, refresh, every_s
        self._between, self._one_topic = between, one_topic
        self._thread = threading.Thread(target=self._run, name="kafka-fetcher", daemon=True)
        self._stopping = False
        self._full = False
        self._paused: set[str] = set()

    def start(self) -> None:
        """Begin to fetch."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread and wait for it; may be called twice."""
        self._stopping = True
        with self._shelf.changed:
            self._shelf.changed.notify_all()
        if self._thread.ident is not None:
            self._thread.join()

    @property
    def stopping(self) -> bool:
        """Whether `stop` was called."""
        return self._stopping

    def _run(self) -> None:
        try:
            due_s = time.monotonic() + self._every_s
            while not self._stopping:
                self._fetch()
                if time.monotonic() >= due_s:
                    self._refresh()
                    due_s = time.monotonic() + self._every_s
        except BaseException as error:  # raised again by the thread that polls the source
            with self._shelf.changed:
                self._shelf.error = self._shelf.error or error
                self._shelf.changed.notify_all()

    def _fetch(self) -> None:
        self._make_room()
        self._between()
        if self._stopping:
            return
        first = self._consumer.poll(WAIT_S)
        if first is None:
            return
        came = [first, *self._consumer.consume(CHUNK - 1, 0)]
        bad: list[tuple[KafkaError, Event]] = []
        if any(map(Message.error, came)):  # every error is true
            bad = [(error, cast("Event", message)) for message in came if (error := message.error()) is not None]
            came = [message for message in came if message.error() is None]
        chunks = list(stretches(came, one_topic=self._one_topic)) if came else []
        with self._shelf.changed:
            self._shelf.put(chunks)
            for error, message in bad:
                if error.code() == KafkaError._PARTITION_EOF:
                    self._reach_end(message)
            self._shelf.changed.notify_all()
        for error, message in bad:
            if error.code() != KafkaError._PARTITION_EOF:
                self._on_error(error, message)

    def _reach_end(self, message: Event) -> None:
        partition = self._shelf.find(message)
        if partition is not None and partition.reached_end(message.offset()):
            self._shelf.moved.add(partition.name)

    # -- room ----------------------------------------------------------------------------------------------------------
    def _make_room(self) -> None:
        """Return when there is room, or when the partitions that have none are paused."""
        shelf = self._shelf
        with shelf.changed:
            # Once full it stays so until half of it is gone: else it would change with every batch.
            self._full = shelf.load() > (ROOM if self._full else 1.0)
            wanted = shelf.wanted() if self._full else None
            if self._full and wanted is None and not self._paused:
                self._full = not shelf.changed.wait_for(lambda: self._stopping or shelf.load() <= ROOM, PATIENCE_S)
            hold = set(shelf.partitions) if self._full else set()
            hold -= {wanted.name} if wanted is not None else set()
            fresh, shelf.fresh = shelf.fresh, set()
            self._paused = (self._paused & set(shelf.partitions)) - fresh
            places = {name: (part.topic, part.number) for name, part in shelf.partitions.items()}
        self._switch(hold, places, fresh)

    def _switch(self, hold: set[str], places: dict[str, tuple[str, int]], fresh: set[str]) -> None:
        # A partition that was paused, given up and taken over again is still paused for the client (2.16).
        pause, resume = hold - self._paused, (self._paused | fresh) - hold
        if pause:
            self._consumer.pause([TopicPartition(*places[name]) for name in sorted(pause)])
            log.debug("paused %s", sorted(pause))
        if resume:
            self._consumer.resume([TopicPartition(*places[name]) for name in sorted(resume)])
            log.debug("resumed %s", sorted(resume))
        self._paused = hold
