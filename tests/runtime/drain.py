"""Reading a source to its end, as plain Python values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Drained:
    """What came out: events and refusals by record number, the batches' sizes, the last positions."""

    events: dict[int, tuple] = field(default_factory=dict)
    rejected: dict[int, Any] = field(default_factory=dict)
    sizes: list[int] = field(default_factory=list)
    positions: dict[str, Any] = field(default_factory=dict)

    def take(self, batch):
        self.sizes.append(len(batch) + len(batch.rejected))
        labels = batch.labels.tolist()
        for row, record in enumerate(batch.records.tolist()):
            numbers = {k: v for k, v in zip(batch.names, batch.values[row].tolist(), strict=True) if v != 0}
            texts = {name: column[row] for name, column in batch.text.items()}
            key = None if batch.keys is None else batch.keys[row]
            self._add(self.events, (batch.partition, record), (numbers, labels[row], texts, key, batch.origin(row)))
        for bad in batch.rejected:
            self._add(self.rejected, (bad.partition, bad.record), bad)
        self.positions |= {position.partition: position for position in batch.positions}

    @staticmethod
    def _add(table, key, value):
        assert key not in table
        table[key] = value

    def in_order(self):
        """Return events and refusals by record number, which leave no gap."""
        whole = {**self.events, **self.rejected}
        assert len(whole) == len(self.events) + len(self.rejected)
        return [whole[key] for key in sorted(whole)]


def drain(source, max_events=1000, into=None):
    """Poll until the end."""
    found = into or Drained()
    while (batch := source.poll(max_events, 0.0)) is not None:
        found.take(batch)
    source.close()
    return found
