"""From messages to columns: one message is one event.

JSON and CSV messages are joined by line ends and go to the decoders of files, so that a topic and a file with the same
lines give the same events. Payloads of a schema registry become JSON lines first. Raw numbers are one array.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import FeatureName, FloatArray, IntArray
from streamlearn.errors import BadParameter
from streamlearn.runtime.decode import PADDING, Columns, Decoded, Decoder, Refusal, object_array
from streamlearn.runtime.decode_csv import CsvDecoder, check_header
from streamlearn.runtime.decode_ndjson import NdjsonDecoder

MOST_BYTES = 1 << 30
"""The broker bounds messages; the decoders must only not stumble."""

Refused = tuple[int, str, str]
"""Which message, the kind, and the reason."""


@dataclass(frozen=True, slots=True)
class Piece:
    """The events of some consecutive messages.

    Attributes
    ----------
    stop : int
        The message behind them.
    names, values, labels, text, keys
        As in a batch.
    rows : int64[n_events]
        The message of each event.
    refused : list of (message, kind, reason)
    """

    stop: int
    refused: list[Refused]
    names: tuple[FeatureName, ...] = ()
    values: FloatArray = field(default_factory=lambda: np.empty((0, 0)))
    labels: NDArray[Any] = field(default_factory=lambda: np.empty(0, dtype=object))
    text: dict[str, NDArray[np.object_]] = field(default_factory=dict)
    keys: NDArray[np.object_] | None = None
    rows: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))


class Payload(Protocol):
    """Decodes the values of messages of one partition."""

    def pieces(self, where: str, values: Sequence[bytes | None]) -> Iterator[Piece]:
        """Decode all of them, in one or more pieces."""
        ...


class Lines(Protocol):
    """Turns a message that is not yet a line into one, or refuses it."""

    def line(self, value: bytes) -> bytes:
        """Return the line, without its end; raise Refusal."""
        ...


class JsonLines:
    """JSON that may be written over several lines."""

    def line(self, value: bytes) -> bytes:
        """Return the value in one line: between tokens a line end means nothing, inside text it is not allowed."""
        stripped = value.strip()
        if b"\n" not in stripped:
            return stripped
        try:
            json.loads(stripped)
        except (ValueError, RecursionError) as error:
            reason = getattr(error, "msg", "brackets nested too deeply")  # a line of the message says little
            raise Refusal("syntax", f"must be JSON, got {reason}") from None
        return stripped.replace(b"\n", b" ")


class CsvLines:
    """One CSV record without its line end."""

    def line(self, value: bytes) -> bytes:
        """Return the record; an open quote would swallow the next message."""
        stripped = value.removesuffix(b"\n").removesuffix(b"\r")
        if b"\n" in stripped or stripped.count(b'"') % 2:
            raise Refusal("syntax", "must be one CSV record of one line, got a line end or an open quote in it")
        return stripped


class TextPayload:
    """Lines of text.

    Parameters
    ----------
    decoder : Decoder
    lines : Lines
    quick : bool
        Whether values are lines unless line ends or quotes are in them.
    """

    def __init__(self, decoder: Decoder, lines: Lines, *, quick: bool) -> None:
        self._decoder, self._lines, self._quick = decoder, lines, quick

    def pieces(self, where: str, values: Sequence[bytes | None]) -> Iterator[Piece]:
        """Decode lines; `where` begins the reasons that the decoder gives."""
        messages: IntArray = np.arange(len(values))
        refused: list[Refused] = []
        buffer, decoded = self._joined(values), None
        if buffer is not None:
            decoded = self._decode(buffer, 0, 0, len(values))
            # At the end the decoder has counted the lines. To count them before it takes a tenth of what it takes.
            whole = decoded.pos == len(buffer) - len(PADDING) and decoded.line == len(values)
            if not whole and buffer.count(b"\n") != len(values):
                buffer = decoded = None
        if buffer is None:
            buffer, messages, refused = self._careful(values)
        pos = line = done = 0
        while pos < len(buffer) - len(PADDING):
            if decoded is None:
                decoded = self._decode(buffer, pos, line, len(messages))
            pos, line = decoded.pos, decoded.line
            found = _refused(decoded, messages)
            if decoded.open:
                found.append((int(messages[line]), "syntax", "must be one record, got one without an end"))
                pos, line = buffer.index(b"\n", pos) + 1, line + 1
            found += _blank(decoded, messages[done:line], messages)
            done = line
            stop = int(messages[line]) if line < len(messages) else len(values)
            earlier = [one for one in refused if one[0] < stop]
            refused = refused[len(earlier) :]
            yield Piece(
                stop,
                sorted(earlier + found),
                decoded.names,
                decoded.values,
                decoded.labels,
                decoded.text,
                decoded.keys,
                messages[decoded.places[decoded.accepted, 2]],
            )
            decoded = None
        if len(buffer) == len(PADDING):
            yield Piece(len(values), refused)

    def _decode(self, buffer: bytes, pos: int, line: int, limit: int) -> Decoded:
        return self._decoder.decode(buffer, pos, len(buffer) - len(PADDING), line, limit)

    def _joined(self, values: Sequence[bytes | None]) -> bytes | None:
        """Return the values as lines and the padding, None where they cannot all be lines as they came."""
        if not self._quick or None in values:
            return None
        buffer = b"\n".join([*values, PADDING])  # type: ignore[list-item]  # None was looked for
        return buffer if isinstance(self._lines, JsonLines) or b'"' not in buffer else None

    def _careful(self, values: Sequence[bytes | None]) -> tuple[bytes, IntArray, list[Refused]]:
        lines, kept, refused = [], [], []
        for index, value in enumerate(values):
            try:
                if value is None:
                    raise Refusal("tombstone", "must have a value, got a message without one")  # noqa: TRY301 - like all
                lines.append(self._lines.line(value) + b"\n")
            except Refusal as refusal:
                refused.append((index, refusal.kind, refusal.reason))
            else:
                kept.append(index)
        return b"".join([*lines, PADDING]), np.array(kept, dtype=np.int64), refused


def _refused(decoded: Decoded, messages: IntArray) -> list[Refused]:
    """Return the refusals by message, with the place taken off the reasons: a line of the buffer says nothing."""
    found = []
    for record, kind, reason in decoded.refusals:
        line = int(decoded.places[record, 2])
        _, _, text = reason.partition(f"line {line}")
        found.append((int(messages[line]), kind, text.lstrip(":, ") or reason))
    return found


def _blank(decoded: Decoded, expected: IntArray, messages: IntArray) -> list[Refused]:
    """Return a refusal for each message that the decoder took for an empty line."""
    if len(decoded.places) + decoded.open == len(expected):
        return []
    seen = set(messages[decoded.places[:, 2]].tolist())
    return [(index, "syntax", "must be one record, got nothing") for index in expected.tolist() if index not in seen]


class NumbersPayload:
    """Little-endian floating-point numbers, one a column.

    Parameters
    ----------
    names : tuple of str
    columns : Columns
    dtype : "<f4" or "<f8"

    Raises
    ------
    BadParameter
        The columns cannot be those of numbers.
    """

    def __init__(self, names: tuple[str, ...], columns: Columns, dtype: str) -> None:
        if columns.categorical:
            raise BadParameter(f"source: payload of raw numbers must have no text, got {columns.texts} as categorical")
        declared = [name for name in (columns.label, columns.key, *sorted(columns.exclude)) if name is not None]
        missing = [name for name in declared if name not in names]
        if missing or len(set(names)) < len(names):
            raise BadParameter(f"source: names must be different and hold {declared}, got {list(names)}")
        self._names, self._columns, self._dtype = names, columns, np.dtype(dtype)
        apart = {*declared, *columns.unread}
        self._features = [place for place, name in enumerate(names) if name not in apart]

    def pieces(self, where: str, values: Sequence[bytes | None]) -> Iterator[Piece]:
        """Decode all values at once."""
        width = self._dtype.itemsize * len(self._names)
        whole = [index for index, value in enumerate(values) if value is not None and len(value) == width]
        refused = [self._wrong(index, value, width) for index, value in enumerate(values) if index not in set(whole)]
        joined = b"".join(values[index] or b"" for index in whole)
        table = np.frombuffer(joined, self._dtype).reshape(len(whole), len(self._names)).astype(np.float64)
        rows: IntArray = np.array(whole, dtype=np.int64)
        features = np.ascontiguousarray(table[:, self._features])
        good = np.isfinite(features).all(axis=1)
        for row in np.flatnonzero(~good).tolist():
            place = int(np.flatnonzero(~np.isfinite(features[row]))[0])
            name = self._names[self._features[place]]
            refused.append((int(rows[row]), "value", f"{name!r} must be a finite number, got {features[row, place]}"))
        names: tuple[FeatureName, ...] = tuple(self._names[place] for place in self._features)
        labels = self._column(table[good], self._columns.label)
        yield Piece(
            len(values),
            sorted(refused),
            names if good.any() else (),
            np.ascontiguousarray(features[good]) if good.any() else np.empty((0, 0)),
            object_array([None] * int(good.sum())) if labels is None else labels,
            keys=self._column(table[good], self._columns.key),
            rows=rows[good],
        )

    @staticmethod
    def _wrong(index: int, value: bytes | None, width: int) -> Refused:
        if value is None:
            return index, "tombstone", "must have a value, got a message without one"
        return index, "columns", f"must be {width} bytes, got {len(value)}"

    def _column(self, table: FloatArray, name: str | None) -> NDArray[np.object_] | None:
        """Return a column as Python values: int where it is whole, None for NaN."""
        if name is None:
            return None
        numbers = table[:, self._names.index(name)].tolist()
        return object_array([_plain(number) for number in numbers])


def _plain(number: float) -> float | int | None:
    if number != number:  # noqa: PLR0124 - NaN
        return None
    return int(number) if number.is_integer() else number


def make_payload(
    kind: str, columns: Columns, names: tuple[str, ...] | None, delimiter: str | None, registry: Lines | None
) -> Payload:
    """Return what decodes a kind of payload; `registry` turns those of a schema registry into lines.

    Raises
    ------
    SourceError, BadParameter
        The declared columns do not fit.
    """
    if kind in {"f4", "f8"}:
        return NumbersPayload(names or (), columns, f"<{kind}")
    if kind == "csv":
        check_header("source.names", list(names or ()), columns, read=False)
        csv = CsvDecoder("message", names or (), columns, delimiter or ",", MOST_BYTES)
        return TextPayload(csv, CsvLines(), quick=True)
    decoder = NdjsonDecoder("message", columns, MOST_BYTES)
    if registry is None:
        return TextPayload(decoder, JsonLines(), quick=True)
    return TextPayload(decoder, registry, quick=False)
