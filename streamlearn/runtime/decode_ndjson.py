"""Lines of JSON objects to rows."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import FeatureName, FloatArray, IntArray, Label
from streamlearn.kernels.decode import FIRST, FIRST_SHIFT, LABEL, NEW_KEY, NUMBER, OPEN, SKIP, TEXT, ndjson_rows
from streamlearn.runtime.decode import (
    DECLARE,
    MAX_CELLS,
    MAX_COLUMNS,
    Columns,
    Decoded,
    Event,
    Refusal,
    View,
    object_array,
    shown,
    text_of,
)
from streamlearn.runtime.rows import Rows

NEVER = np.iinfo(np.int64).max
_INTEGER = re.compile(r"-?[0-9]+")


class _Number(str):
    """A JSON number as it was written."""

    __slots__ = ()


class _Pairs(list[tuple[str, Any]]):
    """A JSON object with its keys as they came, duplicates too."""


_JSON = json.JSONDecoder(object_pairs_hook=_Pairs, parse_int=_Number, parse_float=_Number, parse_constant=_Number)


class Keys:
    """The keys met so far, as the kernel wants them: a cache, which changes no meaning.

    Attributes
    ----------
    names : list of str
        Feature of each column of the values, in the order met.
    """

    def __init__(self, columns: Columns) -> None:
        self._role_of: dict[str, tuple[int, int]] = dict.fromkeys(columns.left_out, (SKIP, -1))
        self._role_of |= {name: (TEXT, span) for span, name in enumerate(columns.texts, start=2)}
        if columns.label is not None:
            self._role_of[columns.label] = (LABEL, 0)
        if columns.key is not None:
            self._role_of[columns.key] = (TEXT, 1)
        self.clear()

    def clear(self) -> None:
        """Forget all keys."""
        self.place_of: dict[str, int] = {}
        self.names: list[str] = []
        self.column_of: dict[str, int] = {}
        self._roles: list[int] = []
        self._targets: list[int] = []
        self._written: list[bytes] = []
        self._pack()

    def learn(self, names: Sequence[str]) -> None:
        """Take the keys of one event, in its order."""
        for name in names:
            if name in self.place_of:
                continue
            role, target = self._role_of.get(name, (NUMBER, len(self.names)))
            if role == NUMBER:
                self.column_of[name] = target
                self.names.append(name)
            self.place_of[name] = len(self._roles)
            self._roles.append(role)
            self._targets.append(target)
            self._written.append(json.dumps(name, ensure_ascii=False)[1:].encode("utf-8"))
        self._pack()

    def _pack(self) -> None:
        words = [-(-len(key) // 8) for key in self._written]
        padded = b"".join(key.ljust(8 * n, b"\0") for key, n in zip(self._written, words, strict=True))
        counted = b"".join(
            (b"\xff" * len(key)).ljust(8 * n, b"\0") for key, n in zip(self._written, words, strict=True)
        )
        pairs = [np.frombuffer(text, dtype="<u8") for text in (padded, counted)]
        self.words: NDArray[np.uint64] = np.column_stack(pairs).astype(np.uint64)
        self.table: IntArray = np.zeros((len(words) + 1, 4), dtype=np.int64)
        self.table[1:, 0] = np.cumsum(words)
        self.table[:-1, 1] = [len(key) for key in self._written]
        self.table[:-1, 2] = self._roles
        self.table[:-1, 3] = self._targets

    def scratch(self, firsts: IntArray) -> IntArray:
        """Return fresh scratch for the kernel; `firsts` are the first appearances of the keys known before."""
        fresh: IntArray = np.full((len(self._written), 3), -1, dtype=np.int64)
        fresh[:, FIRST] = NEVER
        fresh[: len(firsts), FIRST] = firsts
        return fresh


class NdjsonDecoder:
    """Decode lines of JSON objects.

    Parameters
    ----------
    path : str
        For messages.
    columns : Columns
    max_record_bytes : int
    """

    def __init__(self, path: str, columns: Columns, max_record_bytes: int) -> None:
        self._path, self._columns, self._max_bytes = path, columns, max_record_bytes
        self._special = {columns.label, columns.key, *columns.left_out, *columns.categorical}
        self._keys = Keys(columns)
        self._view = View(b"")

    def decode(self, buffer: bytes, pos: int, end: int, line: int, limit: int) -> Decoded:
        """Decode up to `limit` records of ``buffer[pos:end]``."""
        if buffer is not self._view.buffer:
            self._view = View(buffer)
        keys = self._keys
        if len(keys.place_of) >= MAX_COLUMNS:
            keys.clear()
        limit = max(1, min(limit, end - pos, MAX_CELLS // max(1, len(keys.names))))
        rows = Rows(self._view, limit, 2 + len(self._columns.texts))
        values: FloatArray = np.zeros((limit, len(keys.names)))
        scratch = keys.scratch(np.empty(0, dtype=np.int64))
        n, done = 0, 0
        while True:
            n, pos, line, why = ndjson_rows(
                self._view.bytes, pos, end, line, self._max_bytes, self._view.utf8, keys.words, keys.table, scratch,
                n, values, rows.spans, rows.label_values, rows.label_kinds, rows.places[: len(values)],
                rows.status[: len(values)],
            )  # fmt: skip
            for row in (done + np.flatnonzero(rows.status[done:n])).tolist():
                values, scratch = self._careful_row(rows, row, values, scratch, n)
            done = n
            if why != NEW_KEY:
                break
            values, scratch = self._careful_row(rows, n, values, scratch, n + 1)
            pos, line = buffer.index(b"\n", pos) + 1, line + 1
            n = done = n + 1
            if n >= len(values) or len(keys.place_of) >= MAX_COLUMNS:
                break
        return self._finish(rows, values, scratch[:, FIRST], (n, pos, line, why == OPEN))

    def _careful_row(
        self, rows: Rows, row: int, values: FloatArray, scratch: IntArray, used: int
    ) -> tuple[FloatArray, IntArray]:
        """Decode one row carefully; its new keys become columns. `used` rows are written, `row` or not the last."""
        event = rows.careful(row, self._careful)
        rows.spans[row] = -1
        if event is None:
            return values, scratch
        keys = self._keys
        if any(name not in keys.place_of for name in event.keys):
            keys.learn(event.keys)
            scratch = keys.scratch(scratch[:, FIRST])
            values = _widened(values, len(keys.names), used)
        values[row] = 0.0
        for place, name in enumerate(event.keys):
            key = keys.place_of[name]
            scratch[key, FIRST] = min(scratch[key, FIRST], row << FIRST_SHIFT | place)
        for feature, value in event.numbers.items():
            values[row, keys.column_of[str(feature)]] = value
        return values, scratch

    def _careful(self, raw: bytes, line: int) -> Event:
        where = f"{self._path}, line {line}"
        pairs = read_object(text_of(raw, where), where)
        event = Event({}, text=dict.fromkeys(self._columns.texts))
        event.keys = [name for name, _ in pairs]
        if len(set(event.keys)) < len(pairs):
            twice = next(name for place, name in enumerate(event.keys) if name in event.keys[:place])
            raise Refusal("syntax", f"{where}: must name each key once, got {shown(twice)} twice")
        if len(pairs) > MAX_COLUMNS:
            raise Refusal("columns", f"{where}: must have at most {MAX_COLUMNS} keys, got {len(pairs)}")
        for name, value in pairs:
            if name not in self._special:
                event.numbers[name] = as_number(value, where, name)
            elif name == self._columns.label:
                event.label = as_label(value, where, name)
            elif name == self._columns.key:
                event.key = _as_key(value, where, name)
            elif name in self._columns.categorical:
                event.text[name] = _as_text(value, where, name)
        return event

    def _finish(self, rows: Rows, values: FloatArray, firsts: IntArray, end: tuple[int, int, int, bool]) -> Decoded:
        accepted = rows.accepted(end[0])
        columns = self._columns
        # The names of a batch are those of its own events in the order they came: nothing read before has a say.
        number_firsts = firsts[[self._keys.place_of[name] for name in self._keys.names]]
        order = np.argsort(number_firsts, kind="stable")
        order = order[number_firsts[order] < NEVER]
        names: tuple[FeatureName, ...] = tuple(self._keys.names[column] for column in order)
        if len(order) == values.shape[1] and (order == np.arange(len(order))).all():
            values = values[: end[0]] if len(accepted) == end[0] else values[accepted]
        else:
            values = np.ascontiguousarray(values[np.ix_(accepted, order)])
        unlabelled = columns.label is None
        labels = object_array([None] * len(accepted)) if unlabelled else rows.labels(accepted, 0, None)
        text = {
            name: rows.texts(accepted, span, name, empty_is_missing=False)
            for span, name in enumerate(columns.texts, start=2)
        }
        keys = None if columns.key is None else self._key_array(rows, accepted)
        return rows.decoded(accepted, names, values, labels, text, keys, end)

    @staticmethod
    def _key_array(rows: Rows, accepted: IntArray) -> NDArray[np.object_]:
        spans = rows.spans[accepted, 1]
        found: list[Any] = list(rows.view.texts(spans))
        for place, begin in enumerate(spans[:, 0].tolist()):
            # A token without a quote before it is a number or a boolean.
            if begin >= 0 and rows.view.buffer[begin - 1] != ord('"'):
                found[place] = json.loads(found[place])
        for row, event in rows.events.items():
            found[int(np.searchsorted(accepted, row))] = event.key
        return object_array(found)


def _widened(values: FloatArray, width: int, used: int) -> FloatArray:
    """Return the values with at least `width` columns, half more than before where they grow again and again."""
    if width <= values.shape[1]:
        return values
    capacity = max(width, values.shape[1] * 3 // 2)
    wide = np.zeros((max(used, min(len(values), MAX_CELLS // capacity)), capacity))
    wide[:used, : values.shape[1]] = values[:used]
    return wide


def read_object(text: str, where: str) -> list[tuple[str, Any]]:
    """Return the pairs of one JSON object, refusing everything else."""
    try:
        found = _JSON.decode(text)
    except json.JSONDecodeError as error:
        raise Refusal("syntax", f"{where}, column {error.colno}: must be JSON, got {error.msg}") from None
    except RecursionError:
        raise Refusal("syntax", f"{where}: must be a flat JSON object, got one nested too deeply") from None
    if not isinstance(found, _Pairs):
        raise Refusal("syntax", f"{where}: must be a JSON object, got {_json(found)}")
    if "\\u" in text:
        _refuse_surrogates(found, where)
    return found


def _refuse_surrogates(pairs: _Pairs, where: str) -> None:
    """Half a surrogate pair can be written as an escape, but is no text and cannot be written out again."""
    for part in (part for pair in pairs for part in pair if isinstance(part, str)):
        if any("\ud800" <= c <= "\udfff" for c in part):
            raise Refusal("encoding", f"{where}: must be text, got a lone surrogate in {shown(part)}")


def as_number(value: Any, where: str, name: str) -> float:
    """Return a JSON value as a feature: numbers, and booleans as 1 and 0."""
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, _Number):
        number = float(value)
        if math.isfinite(number):
            return number
    hint = DECLARE if isinstance(value, str) and not isinstance(value, _Number) else ""
    if isinstance(value, list):
        hint = "; flatten or exclude it"
    raise Refusal("value", f"{where}: {shown(name)} must be a finite number, got {_json(value)}{hint}")


def as_label(value: Any, where: str, name: str) -> Label | None:
    """Return a JSON value as a label of its own type; None where it is null or NaN."""
    if value is None or isinstance(value, bool) or type(value) is str:
        return value
    if isinstance(value, _Number):
        if _INTEGER.fullmatch(value) and len(value) < 40:
            return int(value)
        number = float(value)
        if math.isfinite(number):
            return number
        if math.isnan(number):
            return None
    raise Refusal("label", f"{where}: {shown(name)} must be a number, boolean, text or null, got {_json(value)}")


def _as_text(value: Any, where: str, name: str) -> str | None:
    if value is None or type(value) is str:
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, _Number):
        return str(value)
    raise Refusal("value", f"{where}: {shown(name)} must be text, got {_json(value)}")


def _as_key(value: Any, where: str, name: str) -> Any:
    if isinstance(value, list):
        raise Refusal("value", f"{where}: {shown(name)} must be a key, got {_json(value)}")
    return json.loads(value) if isinstance(value, _Number) else value


def _json(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, list):
        return "an object" if isinstance(value, _Pairs) else "an array"
    return str(value) if isinstance(value, _Number) else shown(value)
