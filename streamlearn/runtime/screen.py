"""Finding the events of a batch that a learner would refuse, before any learner has learned any of it.

Learners take a batch whole or not at all, and all learners of a job see the same events: an event that one of them
refuses is learned by none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import FeatureName, FloatArray, IntArray
from streamlearn.errors import BadLabel, BadValue, TooManyFeatures

KINDS: dict[type[Exception], str] = {BadValue: "value", BadLabel: "label", TooManyFeatures: "features"}
REFUSALS = tuple(KINDS)
_ROW = re.compile(r",? in row \d+")


class Checks(Protocol):
    """Whoever can say beforehand what it would refuse."""

    def check(self, names: tuple[FeatureName, ...], values: FloatArray, labels: NDArray[Any]) -> None:
        """Raise what learning this block would raise, and change nothing."""
        ...


@dataclass(slots=True)
class Screened:
    """The outcome: which rows can be learned, and why the others cannot.

    Attributes
    ----------
    good : int64[n_good]
        Indexes of the rows that all learners take, in order.
    refused : dict of int to (kind, reason)
        For each other row why the first learner that refused it did so.
    """

    good: IntArray
    refused: dict[int, tuple[str, str]] = field(default_factory=dict)


def screen(
    learners: Sequence[Checks],
    names: tuple[FeatureName, ...],
    values: FloatArray,
    labels: NDArray[Any],
) -> Screened:
    """Return which rows of a block can be learned.

    Whether a row is good depends on the good rows before it (a third label is the one that came last), never on those
    behind it, so the outcome does not depend on the cut into batches. A block without bad events costs one check a
    learner, one with k bad events about k log n of them.
    """
    search = _Search(learners, names, values, labels)
    search.run(np.arange(len(values), dtype=np.int64))
    return Screened(np.array(search.good, dtype=np.int64), search.refused)


class _Search:
    """Bisection that keeps the good rows found so far in front of the rows it asks about."""

    def __init__(
        self,
        learners: Sequence[Checks],
        names: tuple[FeatureName, ...],
        values: FloatArray,
        labels: NDArray[Any],
    ) -> None:
        self._learners = learners
        self._names, self._values, self._labels = names, values, labels
        self.good: list[int] = []
        self.refused: dict[int, tuple[str, str]] = {}

    def run(self, rows: IntArray) -> None:
        """Sort `rows` into good and refused, in order."""
        refusal = self._ask(rows)
        if refusal is None:
            self.good.extend(rows.tolist())
        elif len(rows) == 1:
            self.refused[int(rows[0])] = refusal
        else:
            middle = len(rows) // 2
            self.run(rows[:middle])
            self.run(rows[middle:])

    def _ask(self, rows: IntArray) -> tuple[str, str] | None:
        """Return kind and reason of the first refusal.

        Not the exception: whoever holds that keeps the arrays of this call alive, in a cycle of frames.
        """
        taken = np.concatenate([np.array(self.good, dtype=np.int64), rows])
        whole = len(taken) == len(self._values)  # the common case, and then in order
        values, labels = (self._values, self._labels) if whole else (self._values[taken], self._labels[taken])
        for learner in self._learners:
            try:
                learner.check(self._names, values, labels)
            except REFUSALS as refusal:
                # Learners count the rows of the block they were asked about, which says nothing about the input.
                return KINDS[type(refusal)], _ROW.sub("", str(refusal))
        return None
