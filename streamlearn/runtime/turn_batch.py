"""Batches of two inputs that take turns, and how the log of a checkpoint tells the turns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from streamlearn.contracts import Batch

Run = tuple[str, int]
"""A stretch of events of one partition, up to (not with) an offset; or, by a name of its own, a turn of so many records
that ends, or stands, where it is found in the log."""


@dataclass(frozen=True, slots=True)
class TurnBatch(Batch):
    """A batch of one of the two inputs.

    Attributes
    ----------
    are_labels : bool
        Whether it is of the labels.
    ends_turn : bool
        Whether the turn of its input ends with it.
    in_turn : int
        Records of the turn up to its end.
    by_record : bool
        Whether the log tells its end by the number of its last record, as its position may stand before it.
    """

    are_labels: bool = False
    ends_turn: bool = False
    in_turn: int = 0
    by_record: bool = False

    @property
    def run(self) -> Run:
        """The turn, for the log."""
        return _NAMES[self.are_labels, self.ends_turn], self.in_turn


_NAMES = {
    (False, False): "(turn of events)",
    (False, True): "(turn of events, ended)",
    (True, False): "(turn of labels)",
    (True, True): "(turn of labels, ended)",
}
_TURNS = {name: turn for turn, name in _NAMES.items()}


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn of a log.

    Attributes
    ----------
    are_labels : bool
    records : int
    ended : bool
        Whether it ended there, or went on behind the log.
    """

    are_labels: bool
    records: int
    ended: bool


def parted(runs: Sequence[Run]) -> tuple[list[Run], list[Turn]]:
    """Return the stretches of a log, and the turns."""
    stretches = [run for run in runs if run[0] not in _TURNS]
    turns = [Turn(_TURNS[name][0], records, _TURNS[name][1]) for name, records in runs if name in _TURNS]
    return stretches, turns
