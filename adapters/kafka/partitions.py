"""The partitions that a source reads: what waits to be handed out, and the position of each."""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from streamlearn.contracts import Position

from .chunks import Chunk
from .client import name_of


@dataclass(slots=True)
class Partition:
    """One partition.

    Attributes
    ----------
    topic, number : str, int
    fingerprint : str
        Cluster and topic id.
    offset : int
        Offset of the next event to hand out; what is there may begin later, as compaction, aborted transactions and the
        marks that end transactions leave gaps.
    record : int
        Messages handed out so far, by all runs of the job.
    base : int
        What `record` counts from in the rounds of the round-robin order: a partition that comes later joins the present
        round.
    jumps, skipped : int
        How often the source went on elsewhere because its next event was not there, and over how many offsets.
    began : int
        Offset at which this process took it over.
    fetched : int
        Offset behind the last message that came.
    chunks : deque of Chunk
        What came and was not handed out: `n_messages` of `n_bytes`.
    turn : int
        When it was handed something last, for fairness.
    stop : int or None
        Where it ends, in a source that ends; `done` when it has come there.
    high : int
        The newest end of the partition that is known.
    """

    topic: str
    number: int
    fingerprint: str
    offset: int
    record: int = 0
    base: int = 0
    jumps: int = 0
    skipped: int = 0
    began: int = 0
    fetched: int = 0
    chunks: deque[Chunk] = field(default_factory=deque)
    n_messages: int = 0
    n_bytes: int = 0
    turn: int = 0
    stop: int | None = None
    done: bool = False
    high: int = 0
    name: str = ""

    def __post_init__(self) -> None:
        self.name = name_of(self.topic, self.number)
        self.begin_at(self.offset)

    @classmethod
    def at(cls, topic: str, number: int, fingerprint: str, position: Position) -> Partition:
        """Return the partition as a checkpoint left it."""
        extra: dict[str, Any] = json.loads(position.extra) if position.extra else {}
        return cls(topic, number, fingerprint, position.offset, position.record, **extra)

    def begin_at(self, offset: int) -> None:
        """Go on from an offset, before anything came."""
        self.offset = self.fetched = self.began = offset

    def position(self) -> Position:
        """Return where the next event begins."""
        numbers = {"base": self.base, "jumps": self.jumps, "skipped": self.skipped}
        extra = {name: number for name, number in numbers.items() if number}
        text = json.dumps(extra) if extra else ""
        return Position(self.name, self.offset, self.record, self.fingerprint, text)

    def put(self, chunk: Chunk) -> None:
        """Take messages that came."""
        if self.stop is not None and int(chunk.offsets[-1]) >= self.stop:
            # It is still written to: whoever is quick enough behind the end must not be a part of the run.
            chunk, self.done = chunk.split(chunk.before(self.stop))[0], True
        # A fetch that was under way when the position was changed may bring what was handed out before.
        known = chunk.before(self.fetched)
        if known == len(chunk):
            return
        if known:
            _, chunk = chunk.split(known)
        self.fetched = int(chunk.offsets[-1]) + 1
        self.chunks.append(chunk)
        self.n_messages += len(chunk)
        self.n_bytes += chunk.n_bytes
        self.high = max(self.high, self.fetched)

    @property
    def ahead(self) -> int:
        """Offset of the first message that waits, or of the next one to come."""
        return int(self.chunks[0].offsets[0]) if self.chunks else self.fetched

    def take(self, limit: int, before: int | None = None) -> Chunk | None:
        """Hand out up to `limit` messages, none at offset `before` or behind it; None where there is none."""
        taken: list[Chunk] = []
        while self.chunks and limit > 0:
            chunk = self.chunks.popleft()
            n = min(limit, len(chunk) if before is None else chunk.before(before))
            if n < len(chunk):
                chunk, rest = chunk.split(n)
                self.chunks.appendleft(rest)
                limit = n  # nothing behind it
            if n:
                taken.append(chunk)
            limit -= n
        if not taken:
            return None
        found = Chunk.joined(taken)
        self.n_messages -= len(found)
        self.n_bytes -= found.n_bytes
        return found

    def reached_end(self, offset: int) -> bool:
        """Note that nothing is there before `offset`; return whether the position moved without an event."""
        offset = offset if self.stop is None else min(offset, self.stop)
        self.fetched = max(self.fetched, offset)
        self.high = max(self.high, offset)
        self.done = self.stop is not None and self.fetched >= self.stop
        if self.chunks or self.offset >= self.fetched:
            return False
        self.offset = self.fetched
        return True

    def clear(self) -> None:
        """Drop what waits, as if it had not come: whoever is next begins with it."""
        self.fetched = self.ahead
        self.chunks.clear()
        self.n_messages = self.n_bytes = 0
