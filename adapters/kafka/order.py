"""In which order the events of several partitions are learned.

Within a partition it is always that of the broker. Across partitions there are two orders, and the log of either, which
is kept in every checkpoint, can be followed again:

``arrival``
    The partition that waited longest is handed out next, as far as its messages have come. Quick, and never held up by
    a silent partition; two runs over the same topics may differ.
``round-robin``
    Rounds of `ROUND` messages of each partition, partitions sorted by topic and number. Whose turn it is depends on
    nothing but the number of messages read from each, so every run over the same topics is the same, however it was
    interrupted. A silent partition holds up the others, until it ends.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from typing import Protocol

from streamlearn.runtime.runs import Run

from .partitions import Partition

ROUND = 1000
"""Messages of a partition in one round: enough for a batch, few enough to wait in memory for a slow partition."""

Pick = tuple[Partition, int, int | None]
"""Which partition is next, how many messages at most, and the offset before which they must be."""


class Order(Protocol):
    """Chooses what is handed out next."""

    def next(self, partitions: Collection[Partition]) -> Pick | None:
        """Return the pick; its partition may have nothing yet, and then it is waited for. None: nobody has anything."""
        ...


class Arrival:
    """Whoever waited longest."""

    def next(self, partitions: Collection[Partition]) -> Pick | None:
        """Return the partition with messages that was served least recently."""
        waiting = [partition for partition in partitions if partition.chunks]
        if not waiting:
            return None
        return min(waiting, key=lambda partition: partition.turn), _ANY, None


_ANY = 1 << 62


class RoundRobin:
    """Rounds of a fixed number of messages."""

    def next(self, partitions: Collection[Partition]) -> Pick | None:
        """Return the first partition, by name, of those that are furthest behind by whole rounds."""
        going = [partition for partition in partitions if partition.chunks or not partition.done]
        if not going:
            return None
        first = min(going, key=lambda partition: (_round(partition), partition.topic, partition.number))
        return first, ROUND - (first.record - first.base) % ROUND, None

    @staticmethod
    def join(partition: Partition, others: Collection[Partition]) -> None:
        """Let a new partition begin in the round that the others are in."""
        present = min((_round(other) for other in others), default=0)
        partition.base = partition.record - present * ROUND


def _round(partition: Partition) -> int:
    return (partition.record - partition.base) // ROUND


class Only:
    """One partition, as long as somebody wants no other.

    Parameters
    ----------
    partition : str
    """

    def __init__(self, partition: str) -> None:
        self._partition = partition

    def next(self, partitions: Collection[Partition]) -> Pick | None:
        """Return the partition; None where it has come to its end."""
        for partition in partitions:
            if partition.name == self._partition and (partition.chunks or not partition.done):
                return partition, _ANY, None
        return None


class Recorded:
    """The order of a log, then another one.

    Parameters
    ----------
    runs : sequence of (partition, offset)
    then : Order
    """

    def __init__(self, runs: Sequence[Run], then: Order) -> None:
        self._runs = deque(runs)
        self._then = then

    def next(self, partitions: Collection[Partition]) -> Pick | None:
        """Return the partition of the log's next stretch."""
        known = {partition.name: partition for partition in partitions}
        while self._runs:
            name, end = self._runs[0]
            partition = known.get(name)
            if partition is None:
                return None
            if max(partition.offset, partition.ahead) < end:
                return partition, _ANY, end
            self._runs.popleft()
        return self._then.next(partitions)
