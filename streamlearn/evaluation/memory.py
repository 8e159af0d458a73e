"""The last learned events, for a learner that takes the place of another one."""

from __future__ import annotations

import json
from collections import deque

import numpy as np

from streamlearn.contracts import Snapshot
from streamlearn.evaluation.blocks import Block
from streamlearn.evaluation.forecasts import aligned, all_names, joined_labels
from streamlearn.evaluation.keeping import labels_from_text, labels_to_text

MOST_BLOCKS = 64
"""More blocks than this are put together: event by event there would be one for each."""


class Memory:
    """The last events that were given to it.

    Parameters
    ----------
    size : int
        How many; 0: none is kept.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._blocks: deque[Block] = deque()
        self._n = 0

    def __len__(self) -> int:
        return self._n

    def add(self, block: Block) -> None:
        """Take events in order."""
        if not self.size:
            return
        kept = block.rows(max(0, len(block) - self.size), len(block))
        # A copy: views would keep whole batches.
        self._blocks.append(Block(kept.names, kept.values.copy(), kept.labels.copy()))
        self._n += len(kept)
        while self._n > self.size:
            first = self._blocks.popleft()
            extra = min(self._n - self.size, len(first))
            self._n -= extra
            if extra < len(first):
                self._blocks.appendleft(first.rows(extra, len(first)))
        if len(self._blocks) > MOST_BLOCKS:
            self._blocks = deque([_together(list(self._blocks))])

    def blocks(self) -> list[Block]:
        """Return the events, oldest first."""
        return list(self._blocks)

    def state(self) -> Snapshot:
        """Return the events as copies."""
        if not self._blocks:
            return {"held": 0}
        block = _together(list(self._blocks))
        labels = labels_to_text(block.labels.tolist())
        return {"held": len(block), "names": json.dumps(block.names), "values": block.values.copy(), "labels": labels}

    def restore(self, state: Snapshot) -> None:
        """Take the events."""
        self._n = int(state["held"])
        self._blocks = deque()
        if self._n:
            names = tuple(json.loads(state["names"]))
            self._blocks.append(Block(names, state["values"].copy(), labels_from_text(state["labels"])))


def _together(blocks: list[Block]) -> Block:
    names = all_names(blocks)
    values = np.concatenate([aligned(block, names) for block in blocks])
    return Block(names, values, joined_labels([block.labels for block in blocks]))
