"""Topics as a source: every event once, from exactly where the checkpoint left each partition."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from streamlearn.contracts import Batch, Position, Rejected
from streamlearn.errors import SourceError
from streamlearn.runtime.records import empty_batch
from streamlearn.runtime.runs import Run

from .chunks import Chunk
from .client import (
    REQUEST_S,
    Cluster,
    Contact,
    Event,
    Topics,
    error_of,
    is_unknown_topic,
    log,
    name_of,
    trying,
)
from .fetcher import Fetcher, Shelf
from .members import Members
from .options import resolved
from .order import Arrival, Only, Recorded, RoundRobin
from .partitions import Partition
from .payloads import Payload, Piece
from .reading import Places, Reading

QUEUE_KBYTES = 16 << 10
"""What the client may hold beside our buffer: the memory of a paused job."""
REFRESH = "topic.metadata.refresh.interval.ms"
REFRESH_MS = 10_000


class KafkaSource:
    """A source of topics.

    Parameters
    ----------
    reading : Reading
    payload : Payload
    contact : Contact
    """

    def __init__(self, reading: Reading, payload: Payload, contact: Contact) -> None:
        self._reading, self._payload, self._contact = reading, payload, contact
        self._shelf = Shelf(RoundRobin() if reading.round_robin else Arrival(), reading.buffer_bytes)
        self._cluster = Cluster(reading.options)
        # A full queue is looked at again after 10 ms: the client's own second lets a quick learner wait for most of it.
        bounds = {"queued.max.messages.kbytes": QUEUE_KBYTES, "fetch.queue.backoff.ms": 10}
        options = {**bounds, REFRESH: REFRESH_MS, **reading.options}
        own = {"group.id": reading.group, "enable.auto.commit": False, "auto.offset.reset": "error"}
        self.consumer = Consumer({**resolved(options), **own, "enable.partition.eof": True, "logger": log})
        self._members = Members(self._shelf, self.consumer, self._partition_at_group, self._tell_group, options)
        every_s = float(options[REFRESH]) / 1000
        self._fetcher = Fetcher(
            self.consumer,
            self._shelf,
            self._take_error,
            self._refresh,
            every_s,
            self._between_polls,
            one_topic=len(reading.topics) == 1,
        )
        self._told: list[TopicPartition] = []  # offsets that the group is still to hear of
        self._places = Places(reading, self.consumer, contact)
        self._topics = Topics({}, {})
        self._known: dict[str, Position] = {}
        self._pieces: Iterator[Piece] = iter(())
        self._piece_of: tuple[Partition, Chunk, int] | None = None
        self._closed = False

    # -- the contract of a source --------------------------------------------------------------------------------------
    def replay(self, runs: Sequence[Run]) -> None:
        """Hand out these stretches first, in this order; not in a group, where a partition may be elsewhere now."""
        if not self._reading.in_group:
            self._shelf.order = Recorded(runs, self._shelf.order)

    def seek(self, positions: Sequence[Position]) -> None:
        """Go to the saved positions and begin to fetch.

        Raises
        ------
        SourceError
            A topic is another one than the checkpoint has read, or its next event is not there.
        """
        self._known = {position.partition: position for position in positions}
        self._topics = trying(self._contact, "source.topics", lambda: self._cluster.describe(self._reading.topics))
        self._check_topics(self._topics)
        if self._reading.in_group:
            self._members.subscribe(self._reading.topics, lambda: self._fetcher.stopping)
        else:
            self._assign([self._partition(topic, number) for topic, number in self._topics.partitions])
        self._fetcher.start()

    def poll(self, max_events: int, timeout_s: float) -> Batch | None:
        """Return up to `max_events` events of one partition; an empty batch when none came in time; None at the end."""
        batch = self._next_piece()
        if batch is not None:
            return batch
        shelf, deadline_s = self._shelf, time.monotonic() + timeout_s
        with shelf.changed:
            while True:
                if shelf.error is not None:
                    raise shelf.error
                taken = None if self._members.waiting else shelf.take(max_events)
                if taken is not None:
                    partition, chunk = taken
                    # At once: a checkpoint of now does not have them, and must not set the partition free.
                    self._piece_of = (partition, chunk, 0)
                    shelf.changed.notify_all()
                    break
                if shelf.moved or self._members.waiting:
                    return empty_batch(self._moved())
                if self._is_at_end():
                    return None
                remaining_s = deadline_s - time.monotonic()
                if remaining_s <= 0 or not shelf.changed.wait(remaining_s):
                    return empty_batch(())
        self._pieces = self._payload.pieces(partition.name, chunk.values)
        return self._next_piece()

    def commit(self, positions: Sequence[Position]) -> None:
        """Tell the group how far a durable checkpoint has come, and let go of partitions that are to go elsewhere."""
        if self._reading.commits:
            with self._shelf.changed:
                self._told = self._offsets(positions)
        if self.urgent:
            self._members.saved(positions)

    @property
    def urgent(self) -> bool:
        """Whether partitions wait for a checkpoint to be given up."""
        return self._members.waiting and self._piece_of is None

    def close(self) -> None:
        """End the thread and leave the group; may be called twice."""
        if not self._closed:
            self._closed = True
            self._fetcher.stop()
            self._tell_group()
            self.consumer.close()

    def _between_polls(self) -> None:
        self._members.look()
        self._tell_group()

    def _tell_group(self) -> None:
        """Commit what the checkpoint has.

        The client (2.16) lets one thread in at a time, and one that polls without end keeps the others waiting for
        seconds: so this is left to the thread that polls.
        """
        with self._shelf.changed:
            told, self._told = self._told, []
        if not told:
            return
        try:
            self.consumer.commit(offsets=told, asynchronous=True)
        except KafkaException as exception:  # the checkpoint is the truth; the group only tells others
            log.warning("the group was not told the positions: %s", error_of(exception).str())

    # -- for others ----------------------------------------------------------------------------------------------------
    def share(self, positions: Sequence[Position]) -> tuple[list[TopicPartition], object]:
        """Return what a transaction commits: the positions of the partitions that are ours, and as which member.

        Raises
        ------
        Rewind
            Partitions were lost since they were read. Until we are told, we are still the member that had them,
            which the brokers refuse; so both must be looked at in one breath.
        """
        with self._shelf.changed:
            membership = self._members.present()
            if self._shelf.error is not None:
                raise self._shelf.error
            return self._offsets(positions), membership

    def _offsets(self, positions: Sequence[Position]) -> list[TopicPartition]:
        with self._shelf.changed:
            ours = dict(self._shelf.partitions)
        # A position from before a partition was ours again is behind what others have written since.
        told = [(ours[at.partition], at.offset) for at in positions if at.partition in ours]
        return [TopicPartition(part.topic, part.number, offset) for part, offset in told if offset >= part.began]

    def lag(self) -> dict[str, int]:
        """Return how many offsets each partition is behind its newest known end."""
        with self._shelf.changed:
            return {part.name: max(0, part.high - part.offset) for part in self._shelf.partitions.values()}

    def jumps(self) -> dict[str, tuple[int, int]]:
        """Return how often each partition went on elsewhere because its events were gone, and over how many offsets."""
        with self._shelf.changed:
            return {part.name: (part.jumps, part.skipped) for part in self._shelf.partitions.values() if part.jumps}

    @property
    def ends(self) -> bool:
        """Whether it has an end: then it has something now, will have it soon, or is at its end, but is not silent."""
        return self._reading.until_end

    def at_end(self) -> dict[str, bool]:
        """Return the partitions by topic and number, and whether everything was handed out of each that will come."""
        with self._shelf.changed:
            decoded = self._piece_of[0] if self._piece_of is not None else None
            parts = sorted(self._shelf.partitions.values(), key=lambda part: (part.topic, part.number))
            return {part.name: part.done and not part.chunks and part is not decoded for part in parts}

    def only(self, partition: str) -> None:
        """Hand out this partition from now on; what was decoded already of another one still comes."""
        with self._shelf.changed:
            self._shelf.order = Only(partition)
            self._shelf.changed.notify_all()

    @property
    def trouble(self) -> str:
        """What keeps the job from the brokers now; empty while all is well."""
        return self._contact.lost

    # -- batches -------------------------------------------------------------------------------------------------------
    def _next_piece(self) -> Batch | None:
        if self._piece_of is None:
            return None
        partition, chunk, begin = self._piece_of
        piece = next(self._pieces, None)
        if piece is None:
            self._piece_of = None
            return None
        self._piece_of = (partition, chunk, piece.stop)
        return self._batch(partition, chunk, begin, piece)

    def _batch(self, partition: Partition, chunk: Chunk, begin: int, piece: Piece) -> Batch:
        values, offsets = chunk.values, chunk.offsets
        with self._shelf.changed:
            partition.record += piece.stop - begin
            behind = offsets[piece.stop] if piece.stop < len(chunk) else offsets[-1] + 1
            partition.offset = int(behind)
            if piece.stop == len(chunk) and not partition.chunks:
                partition.offset = max(partition.offset, partition.fetched)
            position = partition.position()
            moved = self._moved(but=partition.name)
        name, rows = partition.name, piece.rows

        def origin(row: int) -> tuple[int, bytes]:
            index = int(rows[row])
            return int(offsets[index]), values[index] or b""

        rejected = tuple(
            Rejected(
                name,
                int(offsets[index]),
                int(offsets[index]),
                kind,
                f"{name}, offset {offsets[index]}: {reason}",
                values[index] or b"",
            )
            for index, kind, reason in piece.refused
        )
        return Batch(
            names=piece.names,
            values=piece.values,
            labels=piece.labels,
            records=offsets[rows],
            positions=(*moved, position),
            text=piece.text,
            keys=piece.keys,
            rejected=rejected,
            partition=name,
            origin=origin,
        )

    def _moved(self, but: str = "") -> tuple[Position, ...]:
        """Return the positions that changed without an event."""
        shelf = self._shelf
        found = tuple(shelf.partitions[name].position() for name in sorted(shelf.moved) if name != but)
        shelf.moved.clear()
        return found

    def _is_at_end(self) -> bool:
        parts = self._shelf.partitions.values()
        return self._reading.until_end and all(part.done and not part.chunks for part in parts)

    # -- partitions ----------------------------------------------------------------------------------------------------
    def _partition(self, topic: str, number: int, *, late: bool = False) -> Partition:
        """Return a partition where the checkpoint left it, or where a new one begins; `late`: it came with time."""
        known = self._known.get(name_of(topic, number))
        fingerprint = self._topics.fingerprints[topic]
        low, high = self._places.watermarks(topic, number)
        if known is None:
            offset = low if late else self._places.first(topic, number, low, high)
            partition = Partition(topic, number, fingerprint, offset)
        else:
            partition = Partition.at(topic, number, fingerprint, known)
            self._places.check_range(partition, low, high)
        return self._places.bounded(partition, high)

    def _partition_at_group(self, topic: str, number: int) -> Partition:
        """Return a partition where the group has come to: another member may have had it since."""
        place = TopicPartition(topic, number)
        (found,) = trying(self._contact, "source.group", lambda: self.consumer.committed([place], timeout=REQUEST_S))
        low, high = self._places.watermarks(topic, number)
        offset = found.offset if found.offset >= 0 else self._places.first(topic, number, low, high)
        known = self._known.get(name_of(topic, number), Position(name_of(topic, number)))
        partition = Partition.at(topic, number, self._topics.fingerprints[topic], known)
        partition.begin_at(offset)
        self._places.check_range(partition, low, high)
        return self._places.bounded(partition, high)

    def _assign(self, partitions: list[Partition]) -> None:
        with self._shelf.changed:
            fresh = [partition for partition in partitions if partition.name not in self._known]
            settled = [*self._shelf.partitions.values(), *(part for part in partitions if part.name in self._known)]
            for partition in fresh if settled and self._reading.round_robin else ():
                RoundRobin.join(partition, settled)
            for partition in partitions:
                self._shelf.add(partition)
            self._shelf.changed.notify_all()
        places = [TopicPartition(part.topic, part.number, part.fetched) for part in partitions]
        self.consumer.incremental_assign(places)

    # -- what the thread finds -----------------------------------------------------------------------------------------
    def _check_topics(self, found: Topics) -> None:
        """Refuse a topic of the same name that is not the one that was read."""
        for name, known in self._known.items():
            topic, _, _ = name.rpartition("/")
            present = found.fingerprints.get(topic, "")
            if known.fingerprint not in {"", present}:
                raise SourceError(
                    f"{topic}: must be the topic that the checkpoint has read ({known.fingerprint}), got another one "
                    f"of that name ({present}): it was deleted and made anew, or the cluster is another"
                )

    def _refresh(self) -> None:
        """Look at the cluster: that it answers, that topics are the same, and for partitions that were added."""
        try:
            found = self._cluster.describe(self._reading.topics)
        except KafkaException as exception:
            self._contact.failed(error_of(exception).str())
            return
        self._contact.heard()
        if found.fingerprints != self._topics.fingerprints:
            changed = [name for name, id_ in found.fingerprints.items() if self._topics.fingerprints[name] != id_]
            raise SourceError(f"{changed[0]}: must stay the same topic, got one that was deleted and made anew")
        added = [place for place in found.partitions if place[1] >= self._topics.counts[place[0]]]
        self._topics = found
        if added and not self._reading.in_group:
            log.info("new partitions: %s", ", ".join(name_of(*place) for place in added))
            self._assign([self._partition(topic, number, late=True) for topic, number in added])

    def _take_error(self, error: KafkaError, message: Event) -> None:
        if error.code() == KafkaError._AUTO_OFFSET_RESET:
            self._jump(message)
        elif error.fatal():
            raise SourceError(f"source: must be allowed to read, got a fatal error: {error.str()}")
        elif is_unknown_topic(error):
            self._refresh()
        elif error.code() in {KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.GROUP_AUTHORIZATION_FAILED}:
            raise SourceError(f"source: must be allowed to read the topics as the group, got: {error.str()}")
        else:
            log.warning("%s", error.str())

    def _jump(self, message: Event) -> None:
        """Stop, or go on elsewhere, as the broker does not have the next event."""
        partition = self._shelf.find(message)
        if partition is None:
            return
        self._refresh()  # another topic of the same name has other offsets: that is the better message
        low, high = self._places.watermarks(partition.topic, partition.number)
        with self._shelf.changed:
            at = partition.fetched
            if low <= at <= high:  # it was there by the time we looked
                place = TopicPartition(partition.topic, partition.number, at)
            else:
                self._places.check_range(_as_fetched(partition), low, high)
                place = TopicPartition(partition.topic, partition.number, partition.fetched)
                self._shelf.moved.add(partition.name)
        # The client has stopped fetching the partition, and refuses to seek in it.
        self.consumer.incremental_unassign([place])
        self.consumer.incremental_assign([place])


def _as_fetched(partition: Partition) -> Partition:
    """Let an empty partition stand where it was fetched to, so that a range check speaks of that."""
    if not partition.chunks:
        partition.offset = partition.fetched
    return partition
