"""The partitions that a source reads: what waits to be handed out, and the position of each."""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from streamlearn.contracts import Position

from .client import Event, name_of


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
    messages : deque of Event
        What came and was not handed out, its total size `n_bytes`.
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
    messages: deque[Event] = field(default_factory=deque)
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

    def put(self, messages: list[Event]) -> None:
        """Take messages that came."""
        # A fetch that was under way when the position was changed may bring what was handed out before.
        if messages[0].offset() < self.fetched:
            messages = [message for message in messages if message.offset() >= self.fetched]
            if not messages:
                return
        self.fetched = messages[-1].offset() + 1
        self.messages.extend(messages)
        self.n_bytes += sum(map(len, messages))
        self.high = max(self.high, self.fetched)

    def take(self, limit: int, before: int | None = None) -> list[Event]:
        """Hand out up to `limit` messages, none at offset `before` or behind it."""
        queue = self.messages
        taken: list[Event] = []
        while queue and len(taken) < limit and (before is None or queue[0].offset() < before):
            taken.append(queue.popleft())
        self.n_bytes -= sum(map(len, taken))
        return taken

    def reached_end(self, offset: int) -> bool:
        """Note that nothing is there before `offset`; return whether the position moved without an event."""
        self.fetched = max(self.fetched, offset)
        self.high = max(self.high, offset)
        self.done = self.stop is not None and self.fetched >= self.stop
        if self.messages or self.offset >= self.fetched:
            return False
        self.offset = self.fetched
        return True

    def clear(self) -> None:
        """Drop what waits, as if it had not come: whoever is next begins with it."""
        if self.messages:
            self.fetched = self.messages[0].offset()
        self.messages.clear()
        self.n_bytes = 0
