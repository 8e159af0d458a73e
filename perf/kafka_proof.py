"""What a consumer with read_committed sees of a job: how often each event came out, and how far the job has come."""

from __future__ import annotations

import time

import msgspec
import numpy as np
from confluent_kafka import Consumer, KafkaError, TopicPartition
from streamlearn.adapters.kafka.client import Contact, trying

REQUEST_S = 30.0
FINISH_S = 300.0


class Row(msgspec.Struct):
    """Where the event of a prediction was."""

    partition: str
    record: int


class Proof:
    """Counts how often each event came out: as a prediction or as a dead letter.

    Events are known by partition and offset, so this is also right for those that cannot be decoded.
    """

    def __init__(self, bootstrap: str, topic: str, partitions: int, outputs: list[str]) -> None:
        self.topic, self.read = topic, 0
        self.counts = {f"{topic}/{number}": np.zeros(1 << 20, np.uint8) for number in range(partitions)}
        self._decoder = msgspec.json.Decoder(Row)
        settings = {"bootstrap.servers": bootstrap, "group.id": f"{topic}.proof", "enable.auto.commit": False}
        self._consumer = Consumer(settings | {"isolation.level": "read_committed", "enable.partition.eof": True})
        # What no transaction covers any more is the same for both; what one still covers only this one sees.
        self._all = Consumer(settings | {"isolation.level": "read_uncommitted"})
        self._outputs = outputs
        self._reached = dict.fromkeys(outputs, -1)
        self._consumer.assign([TopicPartition(output, 0, 0) for output in outputs])

    def look(self, timeout_s: float) -> None:
        """Take what has come."""
        offsets: dict[str, list[int]] = {name: [] for name in self.counts}
        for message in self._consumer.consume(20_000, timeout_s):
            error = message.error()
            if error is None:
                name, offset = self._place(message)
                offsets[name].append(offset)
            elif error.code() == KafkaError._PARTITION_EOF:
                self._reached[message.topic()] = message.offset()
        for name, seen in offsets.items():
            self._count(name, np.array(seen, np.int64))

    def _place(self, message) -> tuple[str, int]:
        headers = dict(message.headers() or ())
        if "offset" in headers:
            return f"{headers['topic'].decode()}/{headers['partition'].decode()}", int(headers["offset"])
        row = self._decoder.decode(message.value())
        return row.partition, row.record

    def _count(self, name: str, offsets: np.ndarray) -> None:
        if not len(offsets):
            return
        counts = self.counts[name]
        while len(counts) <= offsets.max():
            counts = np.concatenate([counts, np.zeros_like(counts)])
        np.add.at(counts, offsets, 1)
        self.counts[name] = counts
        self.read += len(offsets)

    def finish(self) -> None:
        """Take all that was written, once nobody writes any more.

        Having been at an end before says nothing: a transaction that was committed since may not have come yet.
        """
        ends = {output: self._end(output) for output in self._outputs}
        began = time.monotonic()
        while any(self._reached[output] < end for output, end in ends.items()):
            self.look(0.5)
            assert time.monotonic() - began < FINISH_S, f"all must be visible, got {self._reached} of {ends}"

    def _end(self, output: str) -> int:
        """Return where a topic ends, open transactions and all."""
        return self._all.get_watermark_offsets(TopicPartition(output, 0), REQUEST_S)[1]

    def verdict(self, ends: dict[str, int]) -> tuple[int, int, int]:
        """Return how many events came out once, never, and more than once; or where there was none."""
        once = never = more = 0
        for name, end in ends.items():
            counts = self.counts[name]
            once += int((counts[:end] == 1).sum())
            never += int((counts[:end] == 0).sum()) + max(0, end - len(counts))
            more += int((counts[:end] > 1).sum()) + int((counts[end:] > 0).sum())
        return once, never, more

    def close(self) -> None:
        self._consumer.close()
        self._all.close()


class Lag:
    """How far the group's committed offsets are behind the ends of the topic."""

    def __init__(self, bootstrap: str, topic: str, partitions: int, group: str) -> None:
        self._consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False})
        self._places = [TopicPartition(topic, number) for number in range(partitions)]
        self._contact = Contact(REQUEST_S)

    def ends(self) -> dict[str, int]:
        """Return the end of each partition."""
        found = {f"{p.topic}/{p.partition}": self._consumer.get_watermark_offsets(p, REQUEST_S) for p in self._places}
        return {name: high for name, (_, high) in found.items()}

    def now(self) -> tuple[int, int]:
        """Return how many events are committed, and how many are not yet."""
        # A broker that has just begun does not know yet who keeps the group's offsets.
        known = trying(self._contact, "the group", lambda: self._consumer.committed(self._places, REQUEST_S))
        committed = sum(max(0, place.offset) for place in known)
        return committed, sum(self.ends().values()) - committed

    def close(self) -> None:
        self._consumer.close()
