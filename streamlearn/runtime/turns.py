"""Two inputs as one, in an order that does not depend on when they are asked: events and their labels take turns.

A turn of events is `turn` records, then the labels have theirs, and so on. Labels have as many records, or, where both
inputs carry a time, those that came by the time of the newest event: for a file this is the order in which things
happened, to within one turn of events. An input that is silent gives up its turn, so that a live job never waits for
labels; one that has ended leaves the turns to the other. Turns of inputs that are never silent (files) are therefore
the same in every run; in any case the place within the turns is a part of every position.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from streamlearn.contracts import Batch, Position, Source
from streamlearn.errors import SourceError
from streamlearn.runtime.brokers import Commits, Tells
from streamlearn.runtime.records import empty_batch

PLACE = "(turns)"
"""Partition of the position that says whose turn it is."""
LABELS = "labels:"
"""What the partitions of the labels' input begin with."""
LOOK = 1024
"""Most label records asked for at a time where their time decides: what is not due yet waits in memory."""


@dataclass(frozen=True, slots=True)
class TurnBatch(Batch):
    """A batch of one of the two inputs.

    Attributes
    ----------
    are_labels : bool
        Whether it is of the labels.
    ends_turn : bool
        Whether the turn of its input ends with it.
    """

    are_labels: bool = False
    ends_turn: bool = False


@dataclass(slots=True)
class _Place:
    """Where the turns stand.

    Attributes
    ----------
    labels_turn : bool
    taken : int
        Records of the present turn so far.
    turns : int
    clock : float
        The largest time of an event.
    skip : dict of str to int
        Label records before this number of a partition were handed out, although its position stands before them.
    """

    labels_turn: bool = False
    taken: int = 0
    turns: int = 0
    clock: float = -math.inf
    skip: dict[str, int] = field(default_factory=dict)

    def position(self) -> Position:
        extra = {"labels_turn": self.labels_turn, "clock": repr(self.clock), "skip": self.skip}
        return Position(PLACE, offset=self.turns, record=self.taken, extra=json.dumps(extra))

    @classmethod
    def of(cls, position: Position) -> _Place:
        extra = json.loads(position.extra)
        clock, skip = float(extra["clock"]), dict(extra["skip"])
        return cls(bool(extra["labels_turn"]), position.record, position.offset, clock, skip)


class Turns:
    """Events and labels in turns.

    Parameters
    ----------
    events, labels : Source
    turn : int
        Records of a turn.
    time : str or None
        Numeric column with the time of a record, in both inputs.
    """

    def __init__(self, events: Source, labels: Source, *, turn: int, time: str | None = None) -> None:
        self._events, self._labels = events, labels
        self._turn, self._time = turn, time
        self._at = _Place()
        self._ended = [False, False]
        self._silent = False
        self._held: Batch | None = None  # labels that were read and are not due

    def seek(self, positions: Sequence[Position]) -> None:
        """Go to the saved positions of both inputs, and to the place within the turns."""
        own = [position for position in positions if position.partition == PLACE]
        labels = [position for position in positions if position.partition.startswith(LABELS)]
        self._at = _Place.of(own[0]) if own else _Place()
        self._ended, self._silent, self._held = [False, False], False, None
        self._events.seek([position for position in positions if position not in own and position not in labels])
        self._labels.seek([replace(p, partition=p.partition.removeprefix(LABELS)) for p in labels])

    def poll(self, max_events: int, timeout_s: float) -> Batch | None:
        """Return the next batch of the one whose turn it is; an empty one where both are silent; None at their end."""
        for _ in range(4):
            if all(self._ended):
                return None
            batch = self._poll_labels(max_events) if self._at.labels_turn else self._poll_events(max_events, timeout_s)
            if batch is not None:
                return batch
        return empty_batch(())

    def commit(self, positions: tuple[Position, ...]) -> None:
        """Tell an input that keeps a position of its own how far a durable checkpoint has come."""
        labels = tuple(p for p in positions if p.partition.startswith(LABELS))
        events = tuple(p for p in positions if p not in labels and p.partition != PLACE)
        own = tuple(replace(p, partition=p.partition.removeprefix(LABELS)) for p in labels)
        for source, told in ((self._events, events), (self._labels, own)):
            if isinstance(source, Commits):
                source.commit(told)

    @property
    def trouble(self) -> str:
        """What keeps the job from its inputs now; empty while all is well."""
        both = (source.trouble for source in (self._events, self._labels) if isinstance(source, Tells))
        return "; ".join(filter(None, both))

    def lag(self) -> dict[str, int]:
        """Return events and labels still to read, by partition, where their source knows."""
        events = dict(self._events.lag()) if isinstance(self._events, Tells) else {}
        labels = self._labels.lag() if isinstance(self._labels, Tells) else {}
        return events | {f"{LABELS}{partition}": n for partition, n in labels.items()}

    def close(self) -> None:
        """Release both inputs; may be called twice."""
        self._events.close()
        self._labels.close()

    # -- events --------------------------------------------------------------------------------------------------------
    def _poll_events(self, max_events: int, timeout_s: float) -> Batch | None:
        batch = None
        if not self._ended[0]:
            batch = self._events.poll(min(max_events, self._turn - self._at.taken), timeout_s if self._silent else 0.0)
            self._ended[0] = batch is None
        n = 0 if batch is None else len(batch) + len(batch.rejected)
        self._at.taken += n
        if batch is not None and n and self._time is not None:
            self._at.clock = max(self._at.clock, float(times_of(batch, self._time).max(initial=-math.inf)))
        began = self._at.taken > 0
        self._silent = not n
        return self._handed_out(batch, began=began, ends=not n or self._at.taken >= self._turn, are_labels=False)

    def _handed_out(self, batch: Batch | None, *, began: bool, ends: bool, are_labels: bool) -> Batch | None:
        """Return a batch with the place behind it; None where there is nothing to be told."""
        if ends:
            self._at.labels_turn = not are_labels
            self._at.taken = 0
            self._at.turns += began
        batch = batch if batch is not None else empty_batch(())
        if not (began or batch.positions):
            return None
        content = {name: getattr(batch, name) for name in _FIELDS}
        content["positions"] = (*batch.positions, self._at.position())
        return TurnBatch(**content, are_labels=are_labels, ends_turn=ends)

    # -- labels --------------------------------------------------------------------------------------------------------
    def _poll_labels(self, max_events: int) -> Batch | None:
        batch = self._next_labels(max_events)
        n = 0 if batch is None else len(batch) + len(batch.rejected)
        self._at.taken += n
        waits = self._held is not None  # the next one is not due
        ends = not n or waits or (self._time is None and self._at.taken >= self._turn)
        return self._handed_out(batch, began=self._at.taken > 0, ends=ends, are_labels=True)

    def _next_labels(self, max_events: int) -> Batch | None:
        """Return labels that are due; None where there are none now."""
        batch, self._held = self._held, None
        if batch is None:
            batch = self._read_labels(min(max_events, LOOK if self._time is not None else self._turn - self._at.taken))
        return batch if batch is None or self._time is None else self._due(batch)

    def _read_labels(self, room: int) -> Batch | None:
        """Read labels; those that were handed out before a restart are passed over, and do not count as silence."""
        told: tuple[Position, ...] = ()
        while not self._ended[1]:
            found = self._labels.poll(room, 0.0)
            if found is None:
                self._ended[1] = True
                break
            batch = self._renamed(found)
            told += batch.positions
            if len(batch) or batch.rejected or not len(found):
                return replace(batch, positions=told)
        return empty_batch(told) if told else None

    def _renamed(self, batch: Batch) -> Batch:
        """Return a batch with partitions that tell it from events, without the records that were handed out before."""
        positions = tuple(replace(p, partition=LABELS + p.partition) for p in batch.positions)
        batch = replace(batch, partition=LABELS + batch.partition, positions=positions)
        before = self._at.skip.get(batch.partition, 0)
        rejected = tuple(event for event in batch.rejected if event.record >= before)
        return replace(_rows(batch, np.flatnonzero(batch.records >= before)), rejected=rejected)

    def _due(self, batch: Batch) -> Batch | None:
        """Return what of a batch of labels came by the time of the newest event; hold the rest."""
        assert self._time is not None  # noqa: S101  asked only where times decide
        # Once there are no more events, no label has to wait for a later one.
        later = np.flatnonzero(times_of(batch, self._time) > (math.inf if self._ended[0] else self._at.clock))
        if not len(later):
            return batch
        first = int(batch.records[later[0]])
        due = np.flatnonzero(batch.records < first)
        now = tuple(event for event in batch.rejected if event.record < first)
        rest = tuple(event for event in batch.rejected if event.record >= first)
        self._held = replace(_rows(batch, np.flatnonzero(batch.records >= first)), rejected=rest)
        if not len(due) and not now:
            return None
        # The position stays before the batch, whose first records are passed over after a restart.
        self._at.skip[batch.partition] = first
        return replace(_rows(batch, due), rejected=now, positions=())


_FIELDS = tuple(f.name for f in fields(Batch))


def times_of(batch: Batch, name: str) -> Any:
    """Return the times of a batch, float64[n_events]."""
    if name not in batch.names:
        if not len(batch):
            return np.empty(0)
        raise SourceError(f"labels.time: {batch.partition} must have a numeric column {name!r}, got {batch.names!r}")
    return batch.values[:, batch.names.index(name)]


def _rows(batch: Batch, rows: Any) -> Batch:
    """Return some events of a batch; bad events are left as they are."""
    if len(rows) == len(batch):
        return batch
    origin = batch.origin
    return replace(
        batch,
        values=batch.values[rows],
        labels=batch.labels[rows],
        records=batch.records[rows],
        text={name: column[rows] for name, column in batch.text.items()},
        keys=None if batch.keys is None else batch.keys[rows],
        origin=None if origin is None else lambda row: origin(int(rows[row])),
    )
