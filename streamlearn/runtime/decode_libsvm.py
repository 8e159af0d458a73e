"""LIBSVM text to rows: ``label index:value index:value ... # comment``."""

from __future__ import annotations

import re

import numpy as np

from streamlearn.contracts import FeatureName, FloatArray, IntArray, Label
from streamlearn.errors import BadParameter
from streamlearn.kernels.decode import DECLINED, TAKEN, cells
from streamlearn.kernels.decode_libsvm import OPEN, libsvm_rows
from streamlearn.runtime.decode import (
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
    shown,
    text_of,
)
from streamlearn.runtime.rows import Rows

_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")
_ENTRY_BYTES = 4  # " 1:1"
_TABLE = 1 << 22  # indexes below it are ordered by a table, larger ones by sorting


class LibsvmDecoder:
    """Decode lines of LIBSVM text; a feature's name is its index, as an int.

    Parameters
    ----------
    path : str
        For messages.
    columns : Columns
        Only `exclude` (indexes) says anything here: the label comes first on each line, everything else is a number.
    max_record_bytes : int
    """

    def __init__(self, path: str, columns: Columns, max_record_bytes: int) -> None:
        given = {"categorical": columns.categorical, "key": columns.key, "names": columns.names}
        for role, value in given.items():
            if value:
                raise BadParameter(f"{path}: {role} must be absent for LIBSVM text, got {value!r}")
        if columns.label not in {None, "label"}:
            raise BadParameter(f"{path}: label must be absent for LIBSVM text (it comes first), got {columns.label!r}")
        wrong = sorted(name for name in columns.exclude if not _INDEX.fullmatch(name))
        if wrong:
            raise BadParameter(f"{path}: exclude must hold indexes for LIBSVM text, got {wrong[0]!r}")
        self._exclude: IntArray = np.array(sorted(map(int, columns.exclude)), dtype=np.int64)
        self._path, self._max_bytes = path, max_record_bytes
        self._view = View(b"")
        # How many rows to try, so that wide ones are not parsed again and again to find how many fit; no result depends
        # on it.
        self._fitting = MAX_CELLS

    def decode(self, buffer: bytes, pos: int, end: int, line: int, limit: int) -> Decoded:
        """Decode up to `limit` records of ``buffer[pos:end]``."""
        if buffer is not self._view.buffer:
            self._view = View(buffer)
        start, limit = (pos, line), min(limit, self._fitting)
        self._fitting = min(2 * self._fitting, MAX_CELLS)
        while True:
            rows = Rows(self._view, max(1, min(limit, end - pos)), 1)
            n, pos, line, why, entries = self._cut(rows, start, end)
            row_of, indexes, values = entries
            names, column_of = self._columns_of(indexes)
            if n * len(names) <= MAX_CELLS or n == 1:
                break
            limit = self._fitting = max(1, min(n // 2, MAX_CELLS // len(names)))
        accepted = rows.accepted(n)
        dense: FloatArray = np.zeros((len(accepted), len(names)))
        dense[np.searchsorted(accepted, row_of), column_of] = values
        labels = rows.labels(accepted, 0, quick_label) if len(accepted) else object_array([])
        return rows.decoded(accepted, names, dense, labels, {}, None, (n, pos, line, why == OPEN))

    def _cut(
        self, rows: Rows, start: tuple[int, int], end: int
    ) -> tuple[int, int, int, int, tuple[IntArray, IntArray, FloatArray]]:
        """Parse the rows; return the kernel's answer and the entries of accepted rows as (row, index, value)."""
        room = min((end - start[0]) // _ENTRY_BYTES + 1, MAX_CELLS)
        room = max(room, self._max_bytes // _ENTRY_BYTES + 1) if room == MAX_CELLS else room
        pointers: IntArray = np.empty(len(rows.places) + 1, dtype=np.int64)
        indexes: IntArray = np.empty(room, dtype=np.int64)
        spans: IntArray = np.empty((room, 2), dtype=np.int64)
        text = self._view.bytes
        n, pos, line, why = libsvm_rows(
            text, start[0], end, start[1], self._max_bytes, rows.spans[:, 0], pointers, indexes, spans, rows.places,
            rows.status,
        )  # fmt: skip
        used = int(pointers[n])
        values: FloatArray = np.empty((used, 1))
        nothing: FloatArray = np.empty((n, 0))
        status = np.zeros(used, dtype=np.int8)
        cells(text, spans[:used, np.newaxis], -1, values, rows.label_values, rows.label_kinds, status)
        cells(text, rows.spans, 0, nothing, rows.label_values, rows.label_kinds, rows.status[:n])
        rows.decline_bad_labels(n, 0, quick_label)
        row_of: IntArray = np.repeat(np.arange(n), np.diff(pointers[: n + 1]))
        rows.status[row_of[status == DECLINED]] = DECLINED
        entries = [(row_of, indexes[:used], values[:, 0])]
        entries += [self._careful_row(rows, row) for row in rows.declined(n)]
        row_of, index, value = (np.concatenate(parts) for parts in zip(*entries, strict=True))
        # The careful route's entries replace what a kernel left behind of the same row.
        late = np.arange(len(row_of)) >= used
        careful = np.zeros(n, dtype=np.bool_)
        careful[list(rows.events)] = True
        keep = (rows.status[row_of] == TAKEN) & (late == careful[row_of]) & ~np.isin(index, self._exclude)
        order = np.flatnonzero(keep)
        if rows.events:
            order = order[np.argsort(row_of[order], kind="stable")]
        return n, pos, line, why, (row_of[order], index[order], value[order])

    def _careful_row(self, rows: Rows, row: int) -> tuple[IntArray, IntArray, FloatArray]:
        event = rows.careful(row, self._careful)
        found = {} if event is None else event.numbers
        return (
            np.full(len(found), row, dtype=np.int64),
            np.array([int(name) for name in found], dtype=np.int64),
            np.array(list(found.values()), dtype=np.float64),
        )

    def _careful(self, raw: bytes, line: int) -> Event:
        where = f"{self._path}, line {line}"
        parts = text_of(raw, where).partition("#")[0].split()
        if not parts:
            raise Refusal("syntax", f"{where}: must be a label and index:value pairs, got only a comment")
        event = Event({}, label=None if ":" in parts[0] else _label(parts[0], where))
        for part in parts if ":" in parts[0] else parts[1:]:
            name, colon, value = part.partition(":")
            if name == "qid":
                raise Refusal("columns", f"{where}: must have no qid (ranking groups are not supported), got {part}")
            if not colon or not _INDEX.fullmatch(name):
                raise Refusal("syntax", f"{where}: must be index:value with an index below 10**9, got {shown(part)}")
            if int(name) in event.numbers:
                raise Refusal("columns", f"{where}: must name each index once, got {name} twice")
            event.numbers[int(name)] = number_of(value, f"{where}: feature {name}")
        if len(event.numbers) > MAX_COLUMNS:
            raise Refusal("columns", f"{where}: must have at most {MAX_COLUMNS} features, got {len(event.numbers)}")
        return event

    @staticmethod
    def _columns_of(indexes: IntArray) -> tuple[tuple[FeatureName, ...], IntArray]:
        """Return the features in the order they first appear, and the column of each entry."""
        if len(indexes) == 0:
            return (), np.empty(0, dtype=np.int64)
        highest = int(indexes.max())
        if highest >= _TABLE:
            different, inverse = np.unique(indexes, return_inverse=True)
        else:
            different, inverse = np.arange(highest + 1), indexes
        first: IntArray = np.full(len(different), len(indexes))
        # The last write to a place wins, so writing backwards leaves the first appearance.
        first[inverse[::-1]] = np.arange(len(indexes))[::-1]
        met = np.sort(first[first < len(indexes)])
        column: IntArray = np.empty(len(different), dtype=np.int64)
        column[inverse[met]] = np.arange(len(met))
        return tuple(indexes[met].tolist()), column[inverse]


def _label(text: str, where: str) -> Label | None:
    if "," in text:
        raise Refusal("label", f"{where}: label must be one value, got {shown(text)}")
    return label_of(text, f"{where}: label")
