"""What a source is asked to do, and where its partitions begin and end."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from confluent_kafka import Consumer, TopicPartition

from streamlearn.errors import SourceError

from .client import REQUEST_S, Contact, log, name_of, trying, watermarks
from .options import Options
from .partitions import Partition

BUFFER_BYTES = 32 << 20


@dataclass(frozen=True, slots=True)
class Reading:
    """What a source is asked to do.

    Attributes
    ----------
    topics : tuple of str
    group : str
    options : dict
        Of the client, secrets as names of variables.
    start : str
        ``earliest``, ``latest`` or a time.
    until_end : bool
    round_robin : bool
    in_group : bool
        Whether partitions are shared with other members.
    out_of_range : str
        ``stop``, ``earliest`` or ``latest``.
    buffer_bytes : int
    commits : bool
        Whether the source tells the group how far it has come, or else a transaction does.
    """

    topics: tuple[str, ...]
    group: str
    options: Options
    start: str = "earliest"
    until_end: bool = False
    round_robin: bool = False
    in_group: bool = False
    out_of_range: str = "stop"
    buffer_bytes: int = BUFFER_BYTES
    commits: bool = True


class Places:
    """Where partitions begin and end.

    Parameters
    ----------
    reading : Reading
    consumer : Consumer
    contact : Contact
    """

    def __init__(self, reading: Reading, consumer: Consumer, contact: Contact) -> None:
        self._reading, self._consumer, self._contact = reading, consumer, contact

    def watermarks(self, topic: str, number: int) -> tuple[int, int]:
        """Return the offsets of the first event that is there and of the next one to come."""
        return trying(self._contact, name_of(topic, number), lambda: watermarks(self._consumer, topic, number))

    def bounded(self, partition: Partition, high: int) -> Partition:
        """Tell a partition where it ends now, which is its end in a source that ends."""
        partition.high = high
        if self._reading.until_end:
            partition.stop = high
            partition.done = partition.offset >= high
        return partition

    def first(self, topic: str, number: int, low: int, high: int) -> int:
        """Return where a partition that nobody has read begins."""
        start = self._reading.start
        if start in {"earliest", "latest"}:
            return low if start == "earliest" else high
        at_ms = int(datetime.fromisoformat(start).timestamp() * 1000)
        asked = [TopicPartition(topic, number, at_ms)]
        (found,) = trying(self._contact, "source.start", lambda: self._consumer.offsets_for_times(asked, REQUEST_S))
        return int(found.offset) if found.offset >= 0 else high

    def check_range(self, partition: Partition, low: int, high: int) -> None:
        """Go on elsewhere where the next event is not there, or raise SourceError, by the declared policy."""
        if low <= partition.offset <= high:
            return
        policy = self._reading.out_of_range
        if policy == "stop":
            raise SourceError(
                f"{partition.name}: must still have the next event, at offset {partition.offset}, got offsets {low} to "
                f"{high}; events are lost: source.out_of_range = 'earliest' or 'latest' goes on behind them"
            )
        offset = low if policy == "earliest" else high
        log.warning("%s: going on at offset %d, as %d is not there", partition.name, offset, partition.offset)
        partition.jumps += 1
        partition.skipped += max(0, offset - partition.fetched)
        partition.fetched = offset
        if not partition.chunks:
            partition.offset = offset
            partition.began = min(partition.began, offset)
