"""What is kept of messages that came: their bytes and their offsets.

The client's message objects are tracked by the garbage collector, which goes through all that wait again and again.
That takes longer than fetching them, so they are taken apart at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, pairwise

import numpy as np
from confluent_kafka import Message

from streamlearn.contracts import IntArray


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive messages of one partition.

    Attributes
    ----------
    values : list of bytes or None
        What they hold; None for a tombstone.
    offsets : int64[n_messages]
        Ascending, with gaps.
    n_bytes : int
        Of the values.
    """

    values: list[bytes | None]
    offsets: IntArray
    n_bytes: int

    @classmethod
    def of(cls, messages: Sequence[Message]) -> Chunk:
        """Take messages apart."""
        # A method of the type mapped over messages costs half of what a comprehension does.
        values = list(map(Message.value, messages))
        return cls(values, _offsets(messages), _size(values))

    @classmethod
    def joined(cls, chunks: Sequence[Chunk]) -> Chunk:
        """Return one chunk of all."""
        if len(chunks) == 1:
            return chunks[0]
        values = list(chain.from_iterable(chunk.values for chunk in chunks))
        return cls(values, np.concatenate([chunk.offsets for chunk in chunks]), sum(one.n_bytes for one in chunks))

    def __len__(self) -> int:
        return len(self.offsets)

    def split(self, n: int) -> tuple[Chunk, Chunk]:
        """Return the first `n` messages and the others."""
        first = self.values[:n]
        n_bytes = _size(first)
        return (
            Chunk(first, self.offsets[:n], n_bytes),
            Chunk(self.values[n:], self.offsets[n:], self.n_bytes - n_bytes),
        )

    def before(self, offset: int) -> int:
        """Return how many of the messages come before an offset."""
        return int(np.searchsorted(self.offsets, offset))


def _offsets(messages: Sequence[Message]) -> IntArray:
    """Return the offsets of consecutive messages of one partition, which ascend: most often there is no gap."""
    first, last, n = messages[0].offset(), messages[-1].offset(), len(messages)
    if first is not None and last is not None and last - first == n - 1:
        return np.arange(first, first + n, dtype=np.int64)
    return np.fromiter(map(Message.offset, messages), np.int64, n)


def _size(values: Sequence[bytes | None]) -> int:
    try:
        return sum(map(len, values))  # type: ignore[arg-type]  # there may be a None, but hardly ever is
    except TypeError:
        return sum(map(len, filter(None, values)))


def stretches(messages: Sequence[Message], *, one_topic: bool) -> Iterator[tuple[str, int, Chunk]]:
    """Give topic, partition and messages of each run of messages of one partition.

    Parameters
    ----------
    messages : sequence of Message
        None of them an error.
    one_topic : bool
        Whether all are of the same topic: to ask every message for it costs as much as to take out its value.
    """
    if one_topic:
        numbers = np.fromiter(map(Message.partition, messages), np.int64, len(messages))
        cuts = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(messages)]
    else:
        places = zip(map(Message.topic, messages), map(Message.partition, messages), strict=True)
        cuts = [0]
        for _, run in groupby(places):
            cuts.append(cuts[-1] + sum(1 for _ in run))
    for begin, end in pairwise(cuts):
        first = messages[begin]
        yield str(first.topic()), int(first.partition() or 0), Chunk.of(messages[begin:end])
