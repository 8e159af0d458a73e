"""What all decoders share: the declared columns, the decoded rows, and the rules for numbers, labels and text.

A kernel takes the plain rows at machine speed and declines the others; a declined row goes through careful Python,
which alone decides what is refused and why. Both routes give the same values, so a batch is a function of its bytes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import FeatureName, FloatArray, IntArray, Label
from streamlearn.errors import BadParameter
from streamlearn.kernels.decode import BOOLEAN, INTEGER, NO_LABEL, REAL

MAX_CELLS = 1 << 22
"""Most cells of one batch (32 MiB of doubles): wide events come in smaller batches."""
MAX_COLUMNS = 1 << 16
"""Most features of one event, and of one batch."""
EXACT_INTEGER = 2**53
"""Integers below it are exact as doubles."""
PADDING = b"\0" * 8
"""The kernels load whole words."""
CAREFUL = 5
"""Kind of a label that the careful route decoded."""

DECLARE = "; text must be declared in [features] categorical or exclude"
"""What helps against text in a column of numbers, in inputs that have columns."""

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_SHOWN = 40


@dataclass(frozen=True, slots=True)
class Columns:
    """What the job says about the columns of its source.

    Parameters
    ----------
    label : str or None
        Column with the label; None where the events have none.
    exclude : frozenset of str
        Columns to leave out.
    categorical : frozenset of str
        Text columns, handed over in ``Batch.text``.
    key : str or None
        Column with the event's own key.
    names : tuple of str or None
        Names of the columns of a file without a header.
    unread : frozenset of str
        Columns to leave out where there are any: unlike those of `exclude` they need not be there.
    """

    label: str | None = None
    exclude: frozenset[str] = frozenset()
    categorical: frozenset[str] = frozenset()
    key: str | None = None
    names: tuple[str, ...] | None = None
    unread: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        single = [name for name in (self.label, self.key) if name is not None]
        every = [*single, *self.exclude, *self.categorical, *self.unread]
        twice = sorted({name for name in every if every.count(name) > 1})
        if twice:
            raise BadParameter(
                f"Columns: a column must have one role of label, key, exclude and categorical, got {twice[0]!r} twice"
            )
        if self.names is not None and len(set(self.names)) < len(self.names):
            raise BadParameter(f"Columns: names must be different, got {list(self.names)!r}")

    @property
    def left_out(self) -> frozenset[str]:
        """The columns that are no part of an event."""
        return self.exclude | self.unread

    @property
    def texts(self) -> tuple[str, ...]:
        """The text columns in a fixed order."""
        return tuple(sorted(self.categorical))


class Refusal(Exception):
    """One record cannot be used: kind and reason. It never leaves the decoders."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind
        self.reason = reason


@dataclass(slots=True)
class Event:
    """One record, decoded by the careful route."""

    numbers: dict[FeatureName, float]
    label: Label | None = None
    key: Any = None
    text: dict[str, str | None] = field(default_factory=dict)
    keys: Sequence[str] = ()
    """The keys of a JSON object, all of them, in their order."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """The records of one stretch of a buffer.

    Attributes
    ----------
    names : tuple of str or int
    values : float64[n_accepted, n_names]
    labels : array [n_accepted]
    text : dict of str to object[n_accepted]
    keys : object[n_accepted] or None
    accepted : int64[n_accepted]
        Which of the records were accepted, ascending.
    places : int64[n_records, 3]
        Begin, end and line of each record in the buffer.
    refusals : sequence of (record, kind, reason)
    pos, line : int
        Where the next record begins.
    open : bool
        Whether the record at `pos` does not end within the buffer or the longest record.
    """

    names: tuple[FeatureName, ...]
    values: FloatArray
    labels: NDArray[Any]
    text: dict[str, NDArray[np.object_]]
    keys: NDArray[np.object_] | None
    accepted: IntArray
    places: IntArray
    refusals: Sequence[tuple[int, str, str]]
    pos: int
    line: int
    open: bool


class Decoder(Protocol):
    """Turns a stretch of text into rows; keeps nothing that changes what later rows mean."""

    def decode(self, buffer: bytes, pos: int, end: int, line: int, limit: int) -> Decoded:
        """Decode up to `limit` records of ``buffer[pos:end]``, which ends with a newline."""
        ...


def shown(value: object) -> str:
    """Return the value for a message, not longer than a line."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def text_of(raw: bytes, where: str) -> str:
    """Decode one record, refusing what is not UTF-8 text."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refusal("encoding", f"{where}, byte {error.start + 1}: must be UTF-8, got {error.reason}") from None
    if "\0" in text:
        raise Refusal("encoding", f"{where}, column {text.index(chr(0)) + 1}: must be text, got a NUL byte")
    return text


def number_of(text: str, where: str, advice: str = "") -> float:
    """Return the finite number that a cell holds; nothing else passes for one.

    `advice` is added to the message where the cell holds text.
    """
    stripped = text.strip(" \t")
    if _NUMBER.fullmatch(stripped):
        value = float(stripped)
        if math.isfinite(value):
            return value
        raise Refusal("value", f"{where} must be a finite number, got {shown(text)}")
    if not stripped:
        raise Refusal("value", f"{where} must be a finite number, got nothing")
    advice = "" if stripped.lower().lstrip("+-") in {"nan", "inf", "infinity"} else advice
    raise Refusal("value", f"{where} must be a finite number, got {shown(text)}{advice}")


def label_of(text: str, where: str) -> Label | None:
    """Return an untyped label: int where it is written as one, else float, else text; None where there is none."""
    stripped = text.strip(" \t")
    if stripped.lower() in {"", "nan"}:
        return None
    if not _NUMBER.fullmatch(stripped):
        return text
    if _INTEGER.fullmatch(stripped) and len(stripped) < _SHOWN:
        return int(stripped)
    value = float(stripped)
    if not math.isfinite(value):
        raise Refusal("label", f"{where} must be finite, got {shown(text)}")
    return value


@lru_cache(maxsize=4096)
def quick_label(raw: bytes) -> Label | None:
    """Return `label_of` for a cell that a kernel took (valid text; there are few different labels)."""
    return label_of(raw.decode("utf-8"), "label")


def object_array(items: Sequence[Any]) -> NDArray[np.object_]:
    """Return object[n], whatever the items are."""
    out = np.empty(len(items), dtype=object)
    out[:] = items
    return out


class View:
    """A buffer as the kernels and the text columns want it, made once per buffer."""

    __slots__ = ("_text", "buffer", "bytes", "utf8")

    def __init__(self, buffer: bytes) -> None:
        self.buffer = buffer
        # What ends with the padding ends behind its last line, as that has a line end: no copy is needed.
        padded = buffer if buffer.endswith(PADDING) else buffer + PADDING
        self.bytes: NDArray[np.uint8] = np.frombuffer(padded, dtype=np.uint8)
        self._text: str | None = None
        self.utf8 = True
        if not buffer.isascii():
            try:
                buffer.decode("utf-8")
            except UnicodeDecodeError:
                self.utf8 = False

    def texts(self, spans: IntArray) -> list[str | None]:
        """Return the texts of int64[n, 2] spans; None for spans that were not written (begin < 0)."""
        pairs = zip(spans[:, 0].tolist(), spans[:, 1].tolist(), strict=True)
        if not self.buffer.isascii():
            return [None if begin < 0 else self.buffer[begin:end].decode("utf-8") for begin, end in pairs]
        if self._text is None:
            self._text = self.buffer.decode("ascii")
        text = self._text
        return [None if begin < 0 else text[begin:end] for begin, end in pairs]


def homogeneous_labels(values: FloatArray, kinds: NDArray[np.int8]) -> NDArray[Any] | None:
    """Return the labels as one numeric array where all are of one kind, else None."""
    if len(kinds) == 0 or (kinds != kinds[0]).any():
        return None
    if kinds[0] == INTEGER and np.abs(values).max() < EXACT_INTEGER:
        return values.astype(np.int64)
    if kinds[0] == REAL:
        return values.copy()
    if kinds[0] == BOOLEAN:
        return values.astype(np.bool_)
    return object_array([None] * len(kinds)) if kinds[0] == NO_LABEL else None
