"""Predictions and dead letters as messages of the job's transactions."""

from __future__ import annotations

from typing import Any

import msgspec

from streamlearn.contracts import PredictionRows, Rejected, Snapshot
from streamlearn.runtime.due import LABELS
from streamlearn.runtime.outgoing import as_lists, plain

from .outbox import Outbox


class _Topic:
    """What both share: everything waits in the transaction, so there is nothing to cut back."""

    def __init__(self, outbox: Outbox, topic: str) -> None:
        self._outbox, self._topic = outbox, topic
        outbox.write_to(topic)

    def require_absent(self) -> None:
        """Do nothing: a topic may be shared, and nothing in it is destroyed."""

    def create(self) -> None:
        """Do nothing: what is in a topic stays."""

    def flush(self) -> None:
        """Return when the brokers have everything, though nobody sees it yet."""
        self._outbox.flush()

    def close(self) -> None:
        """Do nothing: the transaction is closed by itself."""

    def state(self) -> Snapshot:
        """Return nothing."""
        return {}

    def restore(self, state: Snapshot) -> None:
        """Do nothing: what was not committed is gone."""


class PredictionTopic(_Topic):
    """One JSON object an event, like a line of an NDJSON file of predictions.

    Parameters
    ----------
    outbox : Outbox
    topic : str
    columns : list of str
        The members of each object, in this order.
    """

    def __init__(self, outbox: Outbox, topic: str, columns: list[str]) -> None:
        super().__init__(outbox, topic)
        self._columns = columns
        self._row = msgspec.defstruct("Row", [(name, Any) for name in columns], gc=False)
        self._encoder = msgspec.json.Encoder(enc_hook=plain)

    def write(self, rows: PredictionRows) -> None:
        """Send one message an event."""
        columns = as_lists(rows)
        made = map(self._row, *(columns[name] for name in self._columns))
        self._outbox.send(self._topic, [self._encoder.encode(row) for row in made])


class LetterTopic(_Topic):
    """The original bytes of each bad event, with headers that say where it came from and what is wrong.

    Parameters
    ----------
    outbox : Outbox
    topic : str
    """

    def put(self, event: Rejected) -> None:
        """Send one event. The headers are ``topic``, ``partition``, ``offset``, ``kind`` and ``reason``, as text."""
        partition = event.partition.removeprefix(LABELS)
        topic, slash, number = partition.rpartition("/")
        place = (topic, number) if slash and number.isdecimal() else (partition, "")
        texts = (*place, str(event.offset), event.kind, event.reason)
        names = ("topic", "partition", "offset", "kind", "reason")
        headers = [(name, text.encode()) for name, text in zip(names, texts, strict=True)]
        self._outbox.send(self._topic, [event.raw], [headers])
