"""Events with the forecasts that were made for them, cut, joined and brought to common columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import CodeArray, FeatureName, FloatArray, IntArray, Tested
from streamlearn.evaluation.blocks import Block

Rows = slice | IntArray


@dataclass(frozen=True, slots=True)
class Forecast:
    """Events that wait for their labels, with the forecasts made for them.

    Attributes
    ----------
    block : Block
    tested : Tested
    memo : float64[n_events, memo_width]
        What the learner wants back with the labels.
    made_at : int64[n_events]
        How many forecasts had been made before each of these.
    ready : float64[n_events]
        When the label comes; infinity: never.
    """

    block: Block
    tested: Tested
    memo: FloatArray
    made_at: IntArray
    ready: FloatArray

    def __len__(self) -> int:
        return len(self.block)

    def rows(self, rows: Rows) -> Forecast:
        """Return some of the events: views for a slice, copies for indexes."""
        block = Block(self.block.names, self.block.values[rows], self.block.labels[rows])
        return Forecast(block, picked(self.tested, rows), self.memo[rows], self.made_at[rows], self.ready[rows])


@dataclass(frozen=True, slots=True)
class Due:
    """Events that were learned, with the forecasts made for them before.

    Attributes
    ----------
    tested : Tested
        The codes are those of the labels that have come.
    labels : array [n_events]
    made_at : int64[n_events]
        How many forecasts had been made before each of these.
    came_at : int64[n_events]
        How many forecasts had been made when the label came.
    swap_at : int64[n_events]
        Forecasts from this one on were made after the classes were exchanged, if this label made the learner do so.
    """

    tested: Tested
    labels: NDArray[Any]
    made_at: IntArray
    came_at: IntArray
    swap_at: IntArray

    def __len__(self) -> int:
        return len(self.labels)


def none_due() -> Due:
    """Return no events."""
    none = np.empty(0, np.int64)
    return Due(*joined([]), none, none, none)


def due_together(parts: Sequence[Due]) -> Due:
    """Return several stretches of learned events as one."""
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return none_due()
    tested, labels = joined([(part.tested, part.labels) for part in parts])
    places = [np.concatenate([getattr(part, name) for part in parts]) for name in ("made_at", "came_at", "swap_at")]
    return Due(tested, labels, *places)


def put_together(parts: Sequence[Forecast]) -> Forecast:
    """Return several stretches of waiting events as one, with the columns of all."""
    if len(parts) == 1:
        return parts[0]
    tested, labels = joined([(part.tested, part.block.labels) for part in parts])
    names = all_names([part.block for part in parts])
    values = np.concatenate([aligned(part.block, names) for part in parts])
    memo, made_at, ready = (np.concatenate([getattr(part, name) for part in parts]) for name in _OTHERS)
    return Forecast(Block(names, values, labels), tested, memo, made_at, ready)


_OTHERS = ("memo", "made_at", "ready")


def picked(tested: Tested, rows: Rows) -> Tested:
    """Return some rows of the forecasts: views for a slice, copies for indexes."""
    return Tested(
        tested.codes[rows],
        tested.scores[rows],
        tested.probabilities[rows],
        tested.predictions[rows],
        tested.decisions[rows],
    )


def cut(tested: Tested, start: int, stop: int) -> Tested:
    """Return consecutive rows of the forecasts, as views."""
    return picked(tested, slice(start, stop))


def with_codes(tested: Tested, codes: CodeArray) -> Tested:
    """Return the same forecasts with the codes of the labels that have come."""
    return replace(tested, codes=codes)


def no_codes(n: int) -> CodeArray:
    """Return the codes of `n` events without labels."""
    return np.full(n, -1, np.int8)


def joined(parts: list[tuple[Tested, NDArray[Any]]]) -> tuple[Tested, NDArray[Any]]:
    """Return the forecasts and labels of consecutive events as one."""
    if not parts:
        none = np.empty(0)
        return Tested(np.empty(0, np.int8), none, none, np.empty(0, object), none), np.empty(0, object)
    columns = [[getattr(tested, name) for tested, _ in parts] for name in _COLUMNS]
    return Tested(*map(np.concatenate, columns)), joined_labels([labels for _, labels in parts])


_COLUMNS = ("codes", "scores", "probabilities", "predictions", "decisions")


def joined_labels(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return labels as one array: of their own type where all have one, else as objects (True stays True)."""
    if len({part.dtype for part in parts}) > 1:
        return np.concatenate([part.astype(object) for part in parts])
    return np.concatenate(parts)


def all_names(blocks: Sequence[Block]) -> tuple[FeatureName, ...]:
    """Return the names of all columns of some blocks, in the order in which they come."""
    return tuple(dict.fromkeys(name for block in blocks for name in block.names))


def aligned(block: Block, names: tuple[FeatureName, ...]) -> FloatArray:
    """Return the values of a block with columns `names`, absent ones 0; its own array where it has just these."""
    if block.names == names:
        return block.values
    place = {name: k for k, name in enumerate(names)}
    values = np.zeros((len(block), len(names)))
    values[:, [place[name] for name in block.names]] = block.values
    return values
