"""Sources of files and standard input: `open_source` makes the one a job asks for."""

from __future__ import annotations

import glob as globbing
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from streamlearn.contracts import Batch, Position, Source
from streamlearn.errors import BadParameter, SourceError
from streamlearn.runtime.bytestream import ByteStream, FileStream, PipeStream
from streamlearn.runtime.decode import Columns, Decoder, Refusal
from streamlearn.runtime.decode_csv import CsvDecoder, check_header, split_record
from streamlearn.runtime.decode_libsvm import LibsvmDecoder
from streamlearn.runtime.decode_ndjson import NdjsonDecoder
from streamlearn.runtime.follow import FollowStream, find_rotated
from streamlearn.runtime.records import Limits, RecordReader, Start, empty_batch

__all__ = ["Columns", "FileSource", "open_source"]

TEXT_KINDS = ("csv", "ndjson", "libsvm")
STDIN = "-"


class Reader(Protocol):
    """One input, from a position to its end."""

    @property
    def ended(self) -> bool:
        """Whether every event was handed out."""
        ...

    def check(self) -> None:
        """Raise SourceError early where the input is not the one of the position."""
        ...

    def poll(self, limit: int) -> Batch | None:
        """Return up to `limit` events; None where none is there."""
        ...

    def position(self) -> Position:
        """Return the position of the next event."""
        ...

    def wait(self, timeout_s: float) -> None:
        """Wait until something may be there."""
        ...

    def close(self) -> None:
        """Release the input."""
        ...


class FileSource:
    """Read files one after the other, or follow one that grows.

    Each batch comes from one file. A file that was read to its end keeps its position, so that a restart knows it.

    Parameters
    ----------
    partitions : sequence of str
        Paths in the order they are read.
    open_reader : callable, (partition, path, position) -> Reader
    follow : bool
        Whether the only file is followed through rotations; the source then never ends.
    """

    def __init__(
        self, partitions: Sequence[str], open_reader: Callable[[str, str, Position], Reader], *, follow: bool = False
    ) -> None:
        self._partitions, self._open_reader, self._follow = list(partitions), open_reader, follow
        self._reader: Reader | None = None
        self._queue: list[tuple[str, str]] = [(partition, partition) for partition in self._partitions]
        self._start: Position | None = None
        self._passed: list[Position] = []  # ends of files that no batch has told yet

    def seek(self, positions: Sequence[Position]) -> None:
        """Go to the saved positions; raise SourceError where the input is not the one that was read."""
        self.close()
        self._passed = []
        known = {position.partition: position for position in positions}
        read = [partition for partition in self._partitions if partition in known]
        if len(read) < len(known):
            self._check_missing(known)
        last = self._partitions.index(read[-1]) if read else 0
        for partition in self._partitions[:last]:
            if partition not in known:
                raise SourceError(
                    f"{partition}: must sort after {self._partitions[last]}, which the checkpoint has read, got a "
                    "new file before it"
                )
        self._start = known.get(self._partitions[last])
        self._queue = [(partition, partition) for partition in self._partitions[last:]]
        if self._follow and self._start is not None:
            inode = json.loads(self._start.extra).get("inode", 0) if self._start.extra else 0
            self._queue = [
                (self._partitions[0], path) for path in find_rotated(self._partitions[0], self._start, inode)
            ]
        if self._start is not None and self._open_next() and self._reader is not None:
            with self._closed_on_error():
                self._reader.check()

    @contextmanager
    def _closed_on_error(self) -> Iterator[None]:
        """Leave no file open behind an error: nothing can come any more."""
        try:
            yield
        except SourceError:
            self.close()
            raise

    def _check_missing(self, known: dict[str, Position]) -> None:
        """Files that were read to their end may be gone, the one being read may not."""
        missing = sorted(set(known) - set(self._partitions))
        if missing[-1] == max(known):
            raise SourceError(f"{missing[-1]}: must be there, since the checkpoint was reading it, got no such input")

    def poll(self, max_events: int, timeout_s: float) -> Batch | None:
        """Return up to `max_events` events; an empty batch when none came in time; None at the end."""
        deadline = time.monotonic() + timeout_s
        with self._closed_on_error():
            while self._reader is not None or self._open_next():
                batch = self._poll_reader(max(1, max_events), deadline)
                if batch is not None:
                    return batch
        return empty_batch(self._told()) if self._passed else None

    def _poll_reader(self, max_events: int, deadline: float) -> Batch | None:
        """Return the next batch, an empty one after the deadline, None where the reader should be asked again."""
        reader = self._reader
        if reader is None:
            return None
        batch = reader.poll(max_events)
        if batch is not None:
            return replace(batch, positions=self._told() + batch.positions) if self._passed else batch
        remaining = deadline - time.monotonic()
        if reader.ended:
            self._leave(reader)
        elif remaining <= 0:
            return empty_batch(self._told())
        else:
            reader.wait(remaining)
        return None

    def _told(self) -> tuple[Position, ...]:
        passed, self._passed = tuple(self._passed), []
        return passed

    def _open_next(self) -> bool:
        if not self._queue:
            return False
        partition, path = self._queue.pop(0)
        start, self._start = self._start or Position(partition), None
        self._reader = self._open_reader(partition, path, start)
        return True

    def _leave(self, reader: Reader) -> None:
        """Close a file that has ended; the one that took its place goes on with the record numbers."""
        end = reader.position()
        self.close()
        if not self._follow:
            self._passed.append(end)
            return
        self._start = Position(end.partition, record=end.record)
        self._queue = self._queue or [(end.partition, end.partition)]

    def close(self) -> None:
        """Release the open file; may be called twice."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None


def open_source(
    kind: str,
    path: str | Path | Sequence[str | Path] | None = None,
    columns: Columns | None = None,
    *,
    format: str | None = None,
    follow: bool = False,
    delimiter: str | None = None,
    header: bool | None = None,
    block_bytes: int = 1 << 20,
    max_record_bytes: int = 1 << 20,
    descriptor: int = 0,
    end: int | None = None,
) -> Source:
    """Open a file source.

    Parameters
    ----------
    kind : str
        ``"csv"``, ``"ndjson"``, ``"libsvm"``, ``"parquet"`` or ``"stdin"``.
    path : path, pattern, or sequence of them
        Several files are read one after the other, sorted by name. ``"-"`` is standard input. Text files may end in
        ``.gz`` or ``.zst``.
    columns : Columns
    format : str or None
        The text kind that comes on standard input.
    follow : bool
        Wait for more at the end of the file, like ``tail -F``.
    delimiter : str
        Of CSV; a comma if not given.
    header : bool
        Whether a CSV file begins with a header; if not given, it does unless ``columns.names`` is given.
    block_bytes : int
        How much is read at once.
    max_record_bytes : int
        A longer record is refused; memory stays bounded by both.
    descriptor : int
        Standard input's.
    end : int or None
        Of one plain file: the byte, or the row of a Parquet file, to stop before.

    Returns
    -------
    Source

    Raises
    ------
    BadParameter
        An option does not fit the kind.
    SourceError
        There is no such file.
    """
    columns = columns or Columns()
    stdin = kind == "stdin" or path == STDIN
    text = format if kind == "stdin" else kind
    if kind not in {*TEXT_KINDS, "parquet", "stdin"}:
        raise BadParameter(f"source: kind must be csv, ndjson, libsvm, parquet or stdin, got {kind!r}")
    if kind == "stdin" and text not in TEXT_KINDS:
        raise BadParameter(f"source: format must be csv, ndjson or libsvm for standard input, got {format!r}")
    if kind != "stdin" and format not in {None, kind}:
        raise BadParameter(f"source: format must be absent or {kind!r} for kind {kind!r}, got {format!r}")
    for name, size in (("block_bytes", block_bytes), ("max_record_bytes", max_record_bytes)):
        if not 1 <= size < 1 << 30:
            raise BadParameter(f"source: {name} must be in [1, 2**30), got {size}")
    partitions = [STDIN] if stdin else find_files(path)
    _check_follow(partitions, text or "", follow=follow, stdin=stdin)
    _check_csv_options(text or "", columns, delimiter, header)
    if text == "parquet":
        return FileSource(partitions, _parquet_opener(columns, end))
    limits = Limits(block_bytes, max_record_bytes)
    start_of = _starts(text or "", columns, delimiter or ",", header, max_record_bytes)

    def open_reader(partition: str, actual: str, position: Position) -> Reader:
        if follow:
            stream: ByteStream = FollowStream(partition, actual)
        else:
            stream = PipeStream(descriptor) if stdin else FileStream(actual, end)
        return RecordReader(partition, stream, start_of(partition), limits, position)

    # Wrong declarations of a kind that has no header are told before anything is read.
    if text == "libsvm":
        LibsvmDecoder(partitions[0], columns, max_record_bytes)
    return FileSource(partitions, open_reader, follow=follow)


def find_files(path: str | Path | Sequence[str | Path] | None) -> list[str]:
    """Return the files of paths and patterns, in the order in which they are read."""
    if path is None:
        raise BadParameter("source: path must be given, got None")
    found: list[str] = []
    for one in [path] if isinstance(path, str | Path) else path:
        name = str(one)
        if globbing.has_magic(name) and not Path(name).exists():
            matches = globbing.glob(name, recursive=True)  # noqa: PTH207 - the pattern may be absolute
            if not matches:
                raise SourceError(f"{name}: must match a file, got none")
            found += matches
        else:
            found.append(name)
    if not found:
        raise BadParameter("source: path must name a file, got an empty list")
    if len(set(found)) < len(found):
        raise BadParameter(f"source: path must name each file once, got {sorted(found)!r}")
    return sorted(found)


def _check_follow(partitions: list[str], kind: str, *, follow: bool, stdin: bool) -> None:
    if not follow:
        missing = [name for name in partitions if name != STDIN and not Path(name).is_file()]
        if missing:
            raise SourceError(f"{missing[0]}: must be a file, got none of that name")
        return
    if len(partitions) > 1 or stdin or kind == "parquet" or partitions[0].endswith((".gz", ".zst")):
        raise BadParameter(f"source: follow must be false except for one plain text file, got {partitions[0]!r}")


def _check_csv_options(kind: str, columns: Columns, delimiter: str | None, header: bool | None) -> None:
    if kind != "csv":
        for name, value in (("delimiter", delimiter), ("header", header), ("names", columns.names)):
            if value is not None:
                raise BadParameter(f"source: {name} must be absent for kind {kind!r}, got {value!r}")
        return
    if delimiter is not None and (len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n\0'):
        raise BadParameter(f"source: delimiter must be one ASCII character, no quote or line end, got {delimiter!r}")
    if header is False and columns.names is None:
        raise BadParameter("source: names must be given for a CSV file without a header, got None")


def _parquet_opener(columns: Columns, end: int | None) -> Callable[[str, str, Position], Reader]:
    def open_reader(partition: str, path: str, position: Position) -> Reader:
        from streamlearn.runtime.parquet import ParquetReader  # noqa: PLC0415 - polars is slow to import

        return ParquetReader(partition, path, columns, position, end)

    return open_reader


def _starts(
    kind: str, columns: Columns, delimiter: str, header: bool | None, max_record_bytes: int
) -> Callable[[str], Start]:
    """Return what makes a decoder for each file."""
    has_header = kind == "csv" and (header is True or (header is None and columns.names is None))

    def csv(path: str, record: bytes | None) -> Decoder:
        names = list(columns.names or ())
        if record is not None:
            try:
                found = split_record(record, delimiter, f"{path}, line 1")
            except Refusal as refusal:
                raise SourceError(refusal.reason) from None
            if names and len(names) != len(found):
                raise SourceError(f"{path}, line 1: must have {len(names)} columns as names, got {len(found)}")
            check_header(path, names or found, columns, read=not names)
            names = names or found
        elif not has_header:
            check_header(path, names, columns, read=False)
        return CsvDecoder(path, names, columns, delimiter, max_record_bytes)

    def make(path: str, record: bytes | None) -> Decoder:
        if kind == "csv":
            return csv(path, record)
        if kind == "ndjson":
            return NdjsonDecoder(path, columns, max_record_bytes)
        return LibsvmDecoder(path, columns, max_record_bytes)

    return lambda path: Start(lambda record: make(path, record), has_header, delimiter)
