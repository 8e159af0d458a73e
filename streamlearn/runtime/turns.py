"""Two inputs as one: events and their labels take turns.

A turn of events is `turn` records, then the labels have theirs, and so on. Labels have as many records, or, where both
inputs carry a time, those that came by the time of the newest event: this is the order in which things happened, to
within one turn of events (see `streamlearn.runtime.due` for labels of several partitions).

An input that has an end (a file, topics until their end) has its turn whole, so that the order does not depend on when
it was asked, and every run is the same, however it was interrupted. A live input that is silent gives up its turn, so
that forecasts never wait for labels; one that has ended leaves the turns to the other. In any case the place within the
turns is a part of every position.

What was saved but never committed is learned again in the turns that it was learned in, which the log of the checkpoint
tells: then a live input is waited for, as its records have been there before.
"""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace

from streamlearn.contracts import Batch, Position, Source
from streamlearn.runtime.brokers import Commits, Partitioned, Replays, Tells
from streamlearn.runtime.due import LABELS, LOOK, DueLabels, renamed, times_of
from streamlearn.runtime.records import empty_batch
from streamlearn.runtime.turn_batch import Run, Turn, TurnBatch, parted

PLACE = "(turns)"
"""Partition of the position that says whose turn it is."""


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
        self._recorded: deque[Turn] = deque()
        self._due = None if time is None else DueLabels(labels, time)

    def replay(self, runs: Sequence[Run]) -> None:
        """Take the turns of a log, and let each input hand out its partitions in the order of it."""
        stretches, turns = parted(runs)
        self._recorded = deque(turns)
        labels = [run for run in stretches if run[0].startswith(LABELS)]
        if isinstance(self._events, Replays):
            self._events.replay([run for run in stretches if run not in labels])
        if self._due is not None:
            self._due.replay(labels)
        elif isinstance(self._labels, Replays):
            self._labels.replay([(name.removeprefix(LABELS), end) for name, end in labels])

    def seek(self, positions: Sequence[Position]) -> None:
        """Go to the saved positions of both inputs, and to the place within the turns."""
        own = [position for position in positions if position.partition == PLACE]
        labels = [position for position in positions if position.partition.startswith(LABELS)]
        self._at = _Place.of(own[0]) if own else _Place()
        self._ended, self._silent = [False, False], False
        self._events.seek([position for position in positions if position not in own and position not in labels])
        self._labels.seek([replace(p, partition=p.partition.removeprefix(LABELS)) for p in labels])
        if self._due is not None:
            self._due.seek(self._at.skip)

    def poll(self, max_events: int, timeout_s: float) -> Batch | None:
        """Return the next batch of the one whose turn it is; an empty one where nothing came; None at their end."""
        for _ in range(4):
            if all(self._ended):
                return None
            if self._recorded and self._recorded[0].are_labels != self._at.labels_turn:
                self._change()  # nothing came in the turn between
            poll = self._poll_labels if self._at.labels_turn else self._poll_events
            batch = poll(max_events, timeout_s)
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

    # -- turns ---------------------------------------------------------------------------------------------------------
    def _poll_events(self, max_events: int, timeout_s: float) -> Batch | None:
        batch = None
        most, waits = self._room(max_events), bool(self._recorded) or _ends(self._events)
        if not self._ended[0] and most:
            batch = self._events.poll(most, timeout_s if self._silent or waits else 0.0)
            self._ended[0] = batch is None
        n = 0 if batch is None else len(batch) + len(batch.rejected)
        self._at.taken += n
        if batch is not None and n and self._time is not None:
            times = times_of(batch, self._time, self._at.clock)
            self._at.clock = max(self._at.clock, float(times.max(initial=-math.inf)))
        self._silent = not n
        over = self._is_over(ended=self._ended[0], silent=not (n or waits))
        return self._handed_out(batch, over=over, are_labels=False)

    def _poll_labels(self, max_events: int, timeout_s: float) -> Batch | None:
        batch, silent, most = None, False, self._room(max_events)
        if most and self._due is None:
            waits = bool(self._recorded) or _ends(self._labels)
            batch = self._next_labels(most, timeout_s if waits else 0.0)
            silent = batch is not None and not (len(batch) or batch.rejected or waits)
        elif most and self._due is not None:
            # Once there are no more events, no label has to wait for a later one.
            clock = math.inf if self._ended[0] else self._at.clock
            batch = self._due.next(clock, min(most, LOOK), timeout_s)
            silent, self._ended[1] = batch is None, self._due.ended
        if batch is not None:
            self._at.taken += len(batch) + len(batch.rejected)
        over = self._is_over(ended=self._due is None and self._ended[1], silent=silent)
        return self._handed_out(batch, over=over, are_labels=True)

    def _room(self, most: int) -> int:
        """Return how many records may be asked for: at most those that are left of the turn."""
        if self._recorded:
            return max(0, min(most, self._recorded[0].records - self._at.taken))
        by_count = self._due is None or not self._at.labels_turn
        return min(most, self._turn - self._at.taken) if by_count else most

    def _is_over(self, *, ended: bool, silent: bool) -> bool:
        """Return whether the turn is over; a recorded one is as long as it was."""
        if not self._recorded:
            by_count = self._due is None or not self._at.labels_turn
            return ended or silent or (by_count and self._at.taken >= self._turn)
        if not (ended or silent or self._at.taken >= self._recorded[0].records):
            return False
        return self._recorded.popleft().ended or ended

    def _change(self) -> None:
        """Begin the turn of the other input."""
        self._at.labels_turn = not self._at.labels_turn
        self._at.taken = 0
        if self._due is not None:
            self._due.begin_turn()

    def _next_labels(self, most: int, timeout_s: float) -> Batch | None:
        batch = None if self._ended[1] else self._labels.poll(most, timeout_s)
        self._ended[1] = batch is None
        return None if batch is None else renamed(batch)

    def _handed_out(self, batch: Batch | None, *, over: bool, are_labels: bool) -> Batch | None:
        """Return a batch with the place behind it; None where the turn is over and there is nothing to be told."""
        in_turn = self._at.taken
        began = in_turn > 0
        if over:
            self._change()
            self._at.turns += began
        batch = batch if batch is not None else empty_batch(())
        if not (len(batch) or batch.rejected or batch.positions or (over and began)):
            return None if over else batch
        content = {name: getattr(batch, name) for name in _FIELDS}
        content["positions"] = (*batch.positions, self._at.position())
        by_record = are_labels and self._due is not None
        return TurnBatch(**content, are_labels=are_labels, ends_turn=over, in_turn=in_turn, by_record=by_record)


_FIELDS = tuple(f.name for f in fields(Batch))


def _ends(source: Source) -> bool:
    """Whether a source that has nothing now will have more, or end."""
    return isinstance(source, Partitioned) and source.ends
