"""CSV records to rows."""

from __future__ import annotations

import csv
import difflib
import io
from collections.abc import Sequence

import numpy as np

from streamlearn.contracts import FloatArray, IntArray
from streamlearn.errors import SourceError
from streamlearn.kernels.decode import cells
from streamlearn.kernels.decode_csv import OPEN, csv_rows
from streamlearn.runtime.decode import (
    DECLARE,
    MAX_CELLS,
    MAX_COLUMNS,
    Columns,
    Decoded,
    Event,
    Refusal,
    View,
    label_of,
    number_of,
    object_array,
    quick_label,
    text_of,
)
from streamlearn.runtime.rows import Rows

MOST_NAMED = 12
"""Columns that a message names."""


def split_record(raw: bytes, delimiter: str, where: str) -> list[str]:
    """Return the cells of one record, by the csv module."""
    text = text_of(raw, where)
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    except csv.Error as error:
        raise Refusal("syntax", f"{where}: must be one CSV record, got {error}") from None
    if len(rows) != 1:
        # A lone carriage return is a line end to the csv module.
        raise Refusal("syntax", f"{where}: must be one CSV record, got {len(rows)}")
    return rows[0]


def check_header(path: str, header: Sequence[str], columns: Columns, *, read: bool) -> None:
    """Refuse a header that cannot be used.

    Parameters
    ----------
    path : str
    header : sequence of str
    columns : Columns
    read : bool
        Whether the header was read from the file rather than given.

    Raises
    ------
    SourceError
        It is too wide, has one name twice, lacks a declared column, or is a row of numbers.
    """
    if len(header) > MAX_COLUMNS:
        raise SourceError(f"{path}: must have at most {MAX_COLUMNS} columns, got {len(header)}")
    places: dict[str, int] = {}
    for place, name in enumerate(header, start=1):
        if name in places:
            raise SourceError(
                f"{path}, line 1: column names must be different, got {name!r} as columns {places[name]} and {place}"
            )
        places[name] = place
    declared: dict[str, Sequence[str | None]] = {
        "label": [columns.label],
        "key": [columns.key],
        "exclude": sorted(columns.exclude),
        "categorical": columns.texts,
    }
    if read and _all_numbers(header):
        raise SourceError(f"{path}, line 1: must be a header, got only numbers; give the names of its columns")
    for role, names in declared.items():
        for wanted in names:
            if wanted is not None and wanted not in places:
                raise SourceError(
                    f"{path}: {role} must name a column of the file, got {wanted!r}{_suggestion(wanted, header)}"
                )


def _suggestion(wanted: str, header: Sequence[str]) -> str:
    """Return the column that was meant, or else what there is, of a wide file its beginning and its end."""
    close = difflib.get_close_matches(wanted, header, n=1)
    if close:
        return f", did you mean {close[0]!r}?"
    shown = header if len(header) <= MOST_NAMED else [*header[: MOST_NAMED - 2], "...", *header[-2:]]
    return f"; it has {', '.join(shown)}"


def _all_numbers(header: Sequence[str]) -> bool:
    try:
        for name in header:
            number_of(name, "")
    except Refusal:
        return False
    return True


class CsvDecoder:
    """Decode the records of one CSV file.

    Parameters
    ----------
    path : str
        For messages.
    header : sequence of str
        Names of the columns.
    columns : Columns
    delimiter : str
    max_record_bytes : int
    """

    def __init__(
        self, path: str, header: Sequence[str], columns: Columns, delimiter: str, max_record_bytes: int
    ) -> None:
        self._path, self._header, self._columns = path, tuple(header), columns
        self._delimiter, self._max_bytes = delimiter, max_record_bytes
        special = {columns.label, columns.key, *columns.left_out, *columns.categorical}
        self._names = tuple(name for name in self._header if name not in special)
        others = [name for name in (columns.label, *columns.texts, columns.key) if name is not None]
        span_of = {name: span for span, name in enumerate((*self._names, *others))}
        self._targets: IntArray = np.array([span_of.get(name, -1) for name in self._header], dtype=np.int64)
        self._span_of = span_of
        self._label = -1 if columns.label is None else span_of[columns.label]
        self._view = View(b"")

    def decode(self, buffer: bytes, pos: int, end: int, line: int, limit: int) -> Decoded:
        """Decode up to `limit` records of ``buffer[pos:end]``."""
        if buffer is not self._view.buffer:
            self._view = View(buffer)
        view, width = self._view, len(self._names)
        limit = max(1, min(limit, end - pos, MAX_CELLS // max(1, len(self._span_of))))
        rows = Rows(view, limit, len(self._span_of))
        n, pos, line, why = csv_rows(
            view.bytes, pos, end, line, self._max_bytes, ord(self._delimiter), view.utf8, self._targets, rows.spans,
            rows.places, rows.status,
        )  # fmt: skip
        values: FloatArray = np.empty((n, width))
        cells(view.bytes, rows.spans, self._label, values, rows.label_values, rows.label_kinds, rows.status[:n])
        rows.decline_bad_labels(n, self._label, quick_label)
        for row in rows.declined(n):
            event = rows.careful(row, self._careful)
            if event is not None:
                values[row] = [event.numbers[name] for name in self._names]
        accepted = rows.accepted(n)
        return rows.decoded(
            accepted,
            self._names if len(accepted) else (),
            self._compact(values, accepted),
            self._labels(rows, accepted),
            {name: self._texts(rows, accepted, name) for name in self._columns.texts},
            self._keys(rows, accepted),
            (n, pos, line, why == OPEN),
        )

    def _careful(self, raw: bytes, line: int) -> Event:
        where = f"{self._path}, line {line}"
        found = split_record(raw, self._delimiter, where)
        if len(found) != len(self._header):
            raise Refusal("columns", f"{where}: must have {len(self._header)} columns as the header, got {len(found)}")
        cell = dict(zip(self._header, found, strict=True))
        columns = self._columns
        event = Event({name: number_of(cell[name], f"{where}: column {name!r}", DECLARE) for name in self._names})
        if columns.label is not None:
            event.label = label_of(cell[columns.label], f"{where}: label column {columns.label!r}")
        if columns.key is not None:
            event.key = cell[columns.key] or None
        event.text = {name: cell[name] or None for name in columns.texts}
        return event

    @staticmethod
    def _compact(values: FloatArray, accepted: IntArray) -> FloatArray:
        if len(accepted) == 0:
            return np.empty((0, 0))
        return values if len(accepted) == len(values) else values[accepted]

    def _labels(self, rows: Rows, accepted: IntArray) -> np.ndarray[tuple[int], np.dtype[np.generic]]:
        if self._label < 0:
            return object_array([None] * len(accepted))
        return rows.labels(accepted, self._label, quick_label)

    def _texts(self, rows: Rows, accepted: IntArray, name: str) -> np.ndarray[tuple[int], np.dtype[np.object_]]:
        return rows.texts(accepted, self._span_of[name], name, empty_is_missing=True)

    def _keys(self, rows: Rows, accepted: IntArray) -> np.ndarray[tuple[int], np.dtype[np.object_]] | None:
        if self._columns.key is None:
            return None
        found = [text or None for text in rows.view.texts(rows.spans[accepted, self._span_of[self._columns.key]])]
        for row, event in rows.events.items():
            found[int(np.searchsorted(accepted, row))] = event.key
        return object_array(found)
