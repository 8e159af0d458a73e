"""Parquet files, read in slices of rows."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import Batch, FloatArray, Position, Rejected
from streamlearn.errors import SourceError
from streamlearn.runtime.bytestream import HEAD_BYTES
from streamlearn.runtime.decode import MAX_CELLS, Columns, object_array, shown
from streamlearn.runtime.decode_csv import check_header

if TYPE_CHECKING:
    import polars as pl

SLICE_ROWS = 1 << 16
"""Rows read at once: the file's own row groups are decoded as far as they overlap (16 Ki rows: a third of the rate)."""


class ParquetReader:
    """Read one Parquet file from a row on.

    A position's `offset` and `record` are both the number of the next row. Row groups need no mention: the reader finds
    the one that holds a row.

    Parameters
    ----------
    partition : str
    path : str
    columns : Columns
    position : Position
    end : int or None
        The row to stop before.
    """

    def __init__(self, partition: str, path: str, columns: Columns, position: Position, end: int | None = None) -> None:
        import polars as pl  # noqa: PLC0415 - 0.2 s that other sources need not pay

        self._partition, self._columns = partition, columns
        self._fingerprint = _file_fingerprint(path)
        if position.fingerprint and position.fingerprint != self._fingerprint:
            raise SourceError(
                f"{path}: must be the file of the checkpoint ({position.fingerprint}), got {self._fingerprint}"
            )
        try:
            self._frame = pl.scan_parquet(path, glob=False)
            schema = self._frame.collect_schema()
            self._n_rows = int(self._frame.select(pl.len()).collect().item())
            self._n_rows = self._n_rows if end is None else min(self._n_rows, end)
        except (OSError, pl.exceptions.PolarsError) as error:
            raise SourceError(f"{path}: must be a readable Parquet file, got {error}") from None
        check_header(path, list(schema), columns, read=False)
        special = {columns.label, columns.key, *columns.left_out, *columns.categorical}
        self._names = tuple(name for name in schema if name not in special)
        self._kept = [name for name in schema if name not in columns.left_out]
        self._wrong = {
            name: str(kind) for name, kind in schema.items() if not (kind.is_numeric() or kind == pl.Boolean)
        }
        self._slice_rows = max(1, min(SLICE_ROWS, MAX_CELLS // max(1, len(self._kept))))
        self._row = position.offset
        self._begin = 0  # row of the slice's first row
        self._slice: _Slice | None = None
        if columns.label is not None:
            _check_label(path, columns.label, schema[columns.label])

    @property
    def ended(self) -> bool:
        """Whether every row was handed out."""
        return self._row >= self._n_rows

    def position(self) -> Position:
        """Return the number of the next row."""
        return Position(self._partition, offset=self._row, record=self._row, fingerprint=self._fingerprint)

    def check(self) -> None:
        """Do nothing: everything was checked when the file was opened."""

    def wait(self, timeout_s: float) -> None:
        """Return at once: a file is always ready."""

    def close(self) -> None:
        """Drop the slice."""
        self._slice = None

    def poll(self, limit: int) -> Batch | None:
        """Return up to `limit` events; None at the end."""
        if self.ended:
            return None
        if self._slice is None or self._row >= self._begin + len(self._slice.values):
            self._begin = self._row
            n_rows = min(self._slice_rows, self._n_rows - self._row)
            frame = self._frame.select(self._kept).slice(self._row, n_rows).collect()
            self._slice = _Slice(frame, self._names, self._columns, self._wrong)
        begin = self._row - self._begin
        end = min(begin + limit, len(self._slice.values))
        self._row += end - begin
        return self._batch(self._slice, begin, end)

    def _batch(self, found: _Slice, begin: int, end: int) -> Batch:
        rows = begin + np.flatnonzero(found.good[begin:end])
        first = self._begin

        def origin(row: int) -> tuple[int, bytes]:
            return first + int(rows[row]), found.raw(int(rows[row]))

        rejected = []
        for row in (begin + np.flatnonzero(~found.good[begin:end])).tolist():
            kind, what = found.complaint(row)
            reason = f"{self._partition}, row {first + row + 1}: {what}"
            rejected.append(Rejected(self._partition, first + row, first + row, kind, reason, found.raw(row)))
        return Batch(
            names=self._names if len(rows) else (),
            values=np.ascontiguousarray(found.values[rows]) if len(rows) else np.empty((0, 0)),
            labels=found.labels[rows],
            records=first + rows,
            positions=(self.position(),),
            text={name: column[rows] for name, column in found.text.items()},
            keys=None if found.keys is None else found.keys[rows],
            rejected=tuple(rejected),
            partition=self._partition,
            origin=origin,
        )


class _Slice:
    """Some rows of the file in arrays."""

    def __init__(self, frame: pl.DataFrame, names: tuple[str, ...], columns: Columns, wrong: dict[str, str]) -> None:
        self._frame, self._names, self._label = frame, names, columns.label
        self._wrong = {name: kind for name, kind in wrong.items() if name in names}
        self.values: FloatArray = np.full((len(frame), len(names)), np.nan)
        for column, name in enumerate(names):
            if name not in self._wrong:
                self.values[:, column] = frame[name].cast(float).fill_null(np.nan).to_numpy()
        self.good: NDArray[np.bool_] = np.asarray(np.isfinite(self.values).all(axis=1))
        self.labels = self._labels(columns.label)
        self.text = {name: object_array(frame[name].cast(str).to_list()) for name in columns.texts}
        self.keys = None if columns.key is None else object_array(frame[columns.key].to_list())

    def _labels(self, label: str | None) -> NDArray[Any]:
        if label is None:
            return object_array([None] * len(self._frame))
        column = self._frame[label]
        if column.dtype.is_numeric() or column.dtype == bool:
            if column.dtype.is_float():
                self.good &= ~column.is_infinite().fill_null(value=False).to_numpy()
            if column.null_count() == 0:
                return column.to_numpy()
            return object_array(column.to_list())
        return object_array(column.cast(str).to_list())

    def raw(self, row: int) -> bytes:
        """Return the row as JSON: the file has no bytes of its own for it."""
        return json.dumps(self._frame.row(row, named=True), default=str, ensure_ascii=False).encode("utf-8")

    def complaint(self, row: int) -> tuple[str, str]:
        """Return the kind and the sentence of a row that cannot be used."""
        bad = np.flatnonzero(~np.isfinite(self.values[row]))
        if len(bad) == 0:
            return (
                "label",
                f"label column {self._label!r} must be finite, got {shown(self._frame[self._label or ''][row])}",
            )
        name = self._names[int(bad[0])]
        what = f"column {name!r} must be a finite number, got {shown(self._frame[name][row])}"
        if name in self._wrong:
            what += f" ({self._wrong[name]}); it must be declared in [features] categorical or exclude"
        return "value", what


def _check_label(path: str, name: str, kind: pl.DataType) -> None:
    if kind.is_nested() or kind.is_temporal() or kind.is_decimal():
        raise SourceError(f"{path}: label column {name!r} must hold numbers, booleans or text, got {kind}")


def _file_fingerprint(path: str) -> str:
    """Return size and hash of both ends: a Parquet file does not grow, and its footer tells it best."""
    try:
        with Path(path).open("rb") as file:
            head = file.read(HEAD_BYTES)
            size = file.seek(0, 2)
            file.seek(max(0, size - HEAD_BYTES))
            digest = hashlib.blake2b(head + file.read(HEAD_BYTES), digest_size=16).hexdigest()
    except OSError as error:
        raise SourceError(f"{path}: must be a readable file, got {error.strerror or error}") from None
    return f"{size}:{digest}"
