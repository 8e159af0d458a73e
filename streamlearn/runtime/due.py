"""Labels whose time has come, of an input that may have several partitions.

A turn of labels takes the partitions one behind the other, sorted by topic and number: of each all that is due, up to
the first one that is not. So a label that comes too soon in one partition holds up that partition and no other, and the
order in which labels are learned depends on times and places alone: not on batches, nor on which partition came first.
Within a partition the order is that of the input, also where a later record bears an earlier time.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from streamlearn.contracts import Batch, Position, Source
from streamlearn.errors import SourceError
from streamlearn.runtime.brokers import Partitioned
from streamlearn.runtime.records import empty_batch
from streamlearn.runtime.turn_batch import Run

LABELS = "labels:"
"""What the partitions of the labels' input begin with."""
LOOK = 1024
"""Most label records asked for at a time where their time decides: what is not due yet waits in memory."""
_ALL = ""  # an input that is read in one order only: everything it has counts as one partition


class DueLabels:
    """The labels' input, seen by the time of the newest event.

    Parameters
    ----------
    source : Source
    time : str
        Numeric column with the time of a record.
    """

    def __init__(self, source: Source, time: str) -> None:
        self._source, self._time = source, time
        self.skip: dict[str, int] = {}
        """Records before this number of a partition were handed out, although its position stands before them."""
        self._held: dict[str, deque[Batch]] = {}
        self._passed: set[str] = set()
        self._told: dict[str, Position] = {}
        self._ended = False
        self._recorded: deque[Run] = deque()
        self._newest = -math.inf  # time of a label that this process has seen

    def replay(self, runs: Sequence[Run]) -> None:
        """Hand out these stretches first, in this order, whatever the time; called before `seek`.

        Parameters
        ----------
        runs : sequence of (partition, number of the record behind it)
        """
        self._recorded = deque(runs)

    def seek(self, skip: dict[str, int]) -> None:
        """Begin anew, behind what was handed out; the source has been sent to its positions."""
        self.skip, self._held, self._passed, self._told, self._ended = skip, {}, set(), {}, False

    @property
    def ended(self) -> bool:
        """Whether all labels were handed out and no more can come."""
        return self._ended and not any(self._held.values())

    def begin_turn(self) -> None:
        """Look at every partition again."""
        self._passed.clear()

    def next(self, clock: float, most: int, timeout_s: float) -> Batch | None:
        """Return what of the next partition was due at a time.

        Parameters
        ----------
        clock : float
        most : int
            At most so many records.
        timeout_s : float
            How long to wait for an input that ends, and so cannot be silent.

        Returns
        -------
        Batch or None
            An empty one where such an input, or a recorded stretch, has to be waited for; None where nothing is due in
            any partition.
        """
        if self._recorded:
            return self._with_told(self._next_recorded(most, timeout_s))
        while (name := self._present()) is not None:
            held = self._held.setdefault(name, deque())
            if held:
                due = self._cut(held, name, clock, most)
                if due is not None:
                    return self._with_told(due)
            elif not self._read(name, most, timeout_s if self._waits else 0.0):
                if self._must_wait(name):
                    return self._with_told(empty_batch(()))
                self._passed.add(name)
        self._see_end(most)
        return self._with_told(empty_batch(())) if self._told else None

    # -- partitions ----------------------------------------------------------------------------------------------------
    def _present(self) -> str | None:
        """Return the first partition that may have something due."""
        source = self._source
        names = source.at_end() if isinstance(source, Partitioned) else (_ALL,)
        return next((name for name in names if name not in self._passed), None)

    def _must_wait(self, name: str) -> bool:
        source = self._source
        return not self._ended and isinstance(source, Partitioned) and source.ends and not source.at_end()[name]

    def _see_end(self, most: int) -> None:
        """Ask once more where every partition is at its end: that is how a source tells its own."""
        source = self._source
        if not self._ended and isinstance(source, Partitioned) and all(source.at_end().values()):
            found = source.poll(most, 0.0)
            self._ended = found is None
            if found is not None:
                self._take(found)

    @property
    def _waits(self) -> bool:
        return isinstance(self._source, Partitioned) and self._source.ends

    def _read(self, name: str, most: int, timeout_s: float) -> bool:
        """Read what a partition has next; return whether anything came, also if it is of another one."""
        source = self._source
        if isinstance(source, Partitioned):
            if source.at_end()[name]:
                return False
            source.only(name)
        if self._ended:
            return False
        found = source.poll(most, timeout_s)
        if found is None:
            self._ended = True
            return False
        self._take(found)
        return bool(len(found) or found.rejected)

    def _next_recorded(self, most: int, timeout_s: float) -> Batch:
        """Return the next of a recorded stretch, or an empty batch where it has to be waited for."""
        partition, end = self._recorded[0]
        name = self._key(partition.removeprefix(LABELS))
        held = self._held.setdefault(name, deque())
        if not held:
            if not self._read(name, LOOK, timeout_s) and self._is_behind(partition, name, end):
                self._recorded.popleft()  # compaction has removed the last of it
            return empty_batch(())
        due = self._hand_out(held, end, most)
        if due is None:
            self._recorded.popleft()
            return empty_batch(())
        if _numbers(due)[-1] + 1 >= end or (held and _numbers(held[0])[0] >= end):
            self._recorded.popleft()
        return due

    def _is_behind(self, partition: str, name: str, end: int) -> bool:
        """Whether a partition, of which nothing is held, has been read to a record that is not there."""
        if self._ended or not isinstance(self._source, Partitioned):
            return self._ended
        told = self._told.get(partition)
        return self._source.at_end()[name] or (told is not None and told.offset >= end)

    def _take(self, found: Batch) -> None:
        """Hold a batch, without what was handed out before a restart."""
        own = self._key(found.partition)
        renamed = replace(found, partition=LABELS + found.partition, positions=())
        batch = _cut_at(renamed, self.skip.get(renamed.partition, 0))[1]
        for position in found.positions:
            told = replace(position, partition=LABELS + position.partition)
            behind = self._held.get(self._key(position.partition))
            if position.partition == found.partition and (len(batch) or batch.rejected):
                batch = replace(batch, positions=(told,))
            elif behind:
                # It is right only when everything before it was handed out.
                last = behind.pop()
                others = tuple(known for known in last.positions if known.partition != told.partition)
                behind.append(replace(last, positions=(*others, told)))
            else:
                self._told[told.partition] = told
        if len(batch) or batch.rejected:
            self._held.setdefault(own, deque()).append(batch)

    def _key(self, partition: str) -> str:
        return partition if isinstance(self._source, Partitioned) else _ALL

    # -- what is due ---------------------------------------------------------------------------------------------------
    def _cut(self, held: deque[Batch], name: str, clock: float, most: int) -> Batch | None:
        """Take what is due off the first batch that is held; None, and the partition is passed, where nothing is."""
        batch = held[0]
        times = times_of(batch, self._time, self._newest)
        self._newest = max(self._newest, float(times.max(initial=-math.inf)))
        later = np.flatnonzero(times > clock)
        due = self._hand_out(held, int(batch.records[later[0]]) if len(later) else None, most)
        if due is None:
            self._passed.add(name)
        return due

    def _hand_out(self, held: deque[Batch], before: int | None, most: int) -> Batch | None:
        """Take the records before a number off the first batch that is held, but not too many; None for none."""
        batch = held.popleft()
        numbers = _numbers(batch)
        first = numbers[-1] + 1 if before is None else before
        if most < len(numbers):
            first = min(first, numbers[most])
        due, rest = _cut_at(batch, first)
        if not (len(rest) or rest.rejected):
            self.skip.pop(batch.partition, None)
            return due
        held.appendleft(rest)
        if not (len(due) or due.rejected):
            return None
        # The position stays before the batch, whose first records are passed over after a restart.
        self.skip[batch.partition] = first
        return replace(due, positions=())

    def _with_told(self, batch: Batch) -> Batch:
        told, self._told = tuple(self._told.values()), {}
        return replace(batch, positions=(*told, *batch.positions))


def _numbers(batch: Batch) -> list[int]:
    """Return the record numbers of a batch, bad events included, ascending."""
    return sorted([*batch.records.tolist(), *(event.record for event in batch.rejected)])


def times_of(batch: Batch, name: str, known: float) -> Any:
    """Return the times of a batch, float64[n_events].

    Parameters
    ----------
    batch : Batch
    name : str
        Column with the time.
    known : float
        The largest time of this input so far, -inf while there is none: then the column must be there. Later a record
        without it has the time 0, like any absent feature, whether others of its batch have one or not.

    Raises
    ------
    SourceError
        There never was such a column.
    """
    if name in batch.names:
        return batch.values[:, batch.names.index(name)]
    if len(batch) and known == -math.inf:
        raise SourceError(f"labels.time: {batch.partition} must have a numeric column {name!r}, got {batch.names!r}")
    return np.zeros(len(batch))


def renamed(batch: Batch) -> Batch:
    """Return a batch with partitions that tell it from events."""
    return replace(batch, partition=LABELS + batch.partition, positions=as_labels(batch.positions))


def as_labels(positions: Sequence[Position]) -> tuple[Position, ...]:
    """Return positions of the labels' input as the job knows them."""
    return tuple(replace(position, partition=LABELS + position.partition) for position in positions)


def _cut_at(batch: Batch, record: int) -> tuple[Batch, Batch]:
    """Return the records of a batch before a number, without its positions, and the others with them."""
    before = tuple(event for event in batch.rejected if event.record < record)
    behind = tuple(event for event in batch.rejected if event.record >= record)
    early = batch.records < record
    head = replace(_rows(batch, np.flatnonzero(early)), rejected=before)
    return head, replace(_rows(batch, np.flatnonzero(~early)), rejected=behind)


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
