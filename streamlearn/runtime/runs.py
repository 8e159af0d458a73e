"""The order in which events of several partitions were learned, kept from one checkpoint to the next."""

from __future__ import annotations

import json
from collections.abc import Sequence

from streamlearn.contracts import Batch, Snapshot
from streamlearn.runtime.checkpoint import Checkpoint

Run = tuple[str, int]
"""A stretch of events of one partition, up to (not with) an offset."""
_NAME = "runs"


class Runs:
    """Which events of which partition were learned in which order since the checkpoint before.

    Without it a state that was learned from several partitions could not be made again from that checkpoint.
    """

    def __init__(self, stretches: Sequence[Run] = ()) -> None:
        self.stretches: list[Run] = list(stretches)

    def add(self, batch: Batch) -> None:
        """Take the next batch."""
        ends = [position.offset for position in batch.positions if position.partition == batch.partition]
        if not ends or not (len(batch) or batch.rejected):
            return
        if self.stretches and self.stretches[-1][0] == batch.partition:
            self.stretches.pop()
        self.stretches.append((batch.partition, ends[-1]))

    def taken(self) -> Snapshot:
        """Return the log for a checkpoint and begin a new one."""
        stretches, self.stretches = self.stretches, []
        return {_NAME: json.dumps(stretches)}

    @classmethod
    def of(cls, checkpoint: Checkpoint) -> Runs:
        """Return the log of a checkpoint."""
        return cls([(partition, end) for partition, end in json.loads(checkpoint.state.get(_NAME, "[]"))])
