"""The order in which events of several partitions were learned, kept from one checkpoint to the next."""

from __future__ import annotations

import json
from collections.abc import Sequence

from streamlearn.contracts import Batch, Snapshot
from streamlearn.runtime.checkpoint import Checkpoint
from streamlearn.runtime.turn_batch import Run, TurnBatch

__all__ = ["Run", "Runs"]

_NAME = "runs"


class Runs:
    """Which events of which partition were learned in which order since the checkpoint before, and in which turns.

    Without it a state that was learned from several partitions could not be made again from that checkpoint.
    """

    def __init__(self, stretches: Sequence[Run] = ()) -> None:
        self.stretches: list[Run] = list(stretches)
        self._turn: list[Run] = []  # the one that has not ended

    def add(self, batch: Batch) -> None:
        """Take the next batch."""
        end = _end(batch)
        if end is not None:
            if self.stretches and self.stretches[-1][0] == batch.partition:
                self.stretches.pop()
            self.stretches.append((batch.partition, end))
        if isinstance(batch, TurnBatch):
            self._turn = [] if batch.ends_turn or not batch.in_turn else [batch.run]
            if batch.ends_turn:
                self.stretches.append(batch.run)

    def taken(self) -> Snapshot:
        """Return the log for a checkpoint and begin a new one."""
        found = [*self.stretches, *self._turn]
        self.stretches, self._turn = [], []
        return {_NAME: json.dumps(found)}

    @classmethod
    def of(cls, checkpoint: Checkpoint) -> Runs:
        """Return the log of a checkpoint."""
        return cls([(partition, end) for partition, end in json.loads(checkpoint.state.get(_NAME, "[]"))])


def _end(batch: Batch) -> int | None:
    """Return where the stretch of a batch ends, None where it has no records."""
    if not (len(batch) or batch.rejected):
        return None
    if isinstance(batch, TurnBatch) and batch.by_record:
        records: list[int] = batch.records[-1:].tolist()
        return 1 + max([*records, *(event.record for event in batch.rejected)])
    ends = [position.offset for position in batch.positions if position.partition == batch.partition]
    return ends[-1] if ends else None
