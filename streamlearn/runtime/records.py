"""One text input: bytes to batches, with the exact position after each."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from streamlearn.contracts import Batch, IntArray, Position, Rejected
from streamlearn.errors import SourceError
from streamlearn.kernels.decode_csv import csv_record_end
from streamlearn.runtime.bytestream import ByteStream, Head
from streamlearn.runtime.decode import Decoded, Decoder

BOM = b"\xef\xbb\xbf"
OTHER_BOMS = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is read at once, and the longest record.

    Attributes
    ----------
    block_bytes : int
    max_record_bytes : int
    """

    block_bytes: int = 1 << 20
    max_record_bytes: int = 1 << 20


@dataclass(frozen=True, slots=True)
class Start:
    """Makes the decoder of an input.

    Attributes
    ----------
    make : callable, header record or None -> Decoder
    header : bool
        Whether the input begins with a header record.
    delimiter : str
        Delimiter of the header.
    """

    make: Callable[[bytes | None], Decoder]
    header: bool = False
    delimiter: str = ","


class RecordReader:
    """Read one stream from a position on.

    Parameters
    ----------
    partition : str
    stream : ByteStream
        At its beginning.
    start : Start
    limits : Limits
    position : Position
        Where to go on; offset 0 for the beginning.
    """

    def __init__(self, partition: str, stream: ByteStream, start: Start, limits: Limits, position: Position) -> None:
        self._partition, self._stream, self._start, self._limits = partition, stream, start, limits
        self._head = Head(partition, position.fingerprint)
        self._target = position.offset
        self._record = position.record
        self._line = 1
        self._buffer, self._pos, self._end = b"", 0, 0
        self._base = 0  # offset of the buffer's first byte
        self._n_bytes = 0  # bytes of the stream, as far as read
        self._finished = False  # the end was met and its last line has got its newline
        self._decoder: Decoder | None = None
        self._header: bytes | None = None
        self._long: tuple[int, bytes] | None = None  # offset and beginning of a record that is being skipped
        self._saved_line = int(json.loads(position.extra).get("line", 1)) if position.extra else 1

    # -- position ------------------------------------------------------------------------------------------------------
    def position(self) -> Position:
        """Return where the next record begins."""
        begun = self._decoder is not None
        return Position(
            self._partition,
            # The newline that was put after an unfinished last line is not in the file.
            offset=min(self._base + self._pos, self._n_bytes) if begun else self._target,
            record=self._record,
            fingerprint=self._head.text,
            extra=json.dumps({"line": self._line if begun else self._saved_line, "inode": self._stream.identity()}),
        )

    @property
    def ended(self) -> bool:
        """Whether every record was handed out."""
        return self._finished and self._pos >= len(self._buffer) and self._long is None

    def wait(self, timeout_s: float) -> None:
        """Wait until something may be there."""
        self._stream.wait(timeout_s)

    def close(self) -> None:
        """Close the stream."""
        self._stream.close()

    # -- reading -------------------------------------------------------------------------------------------------------
    def poll(self, limit: int) -> Batch | None:
        """Return up to `limit` events; None where none is there now, or at the end."""
        decoder = self._decoder or self._begin()
        if decoder is None:
            return None
        while True:
            if self._long is not None:
                batch = self._skip_long()
                if batch is not None or self._long is not None:
                    return batch
            if self._pos < self._end:
                decoded = decoder.decode(self._buffer, self._pos, self._end, self._line, limit)
                self._pos, self._line = decoded.pos, decoded.line
                if len(decoded.places):
                    return self._batch(decoded)
                if not decoded.open:
                    continue
            if self._is_too_long():
                batch = self._refuse_record()
                if batch is not None:
                    return batch
            elif not self._refill():
                return None

    def _refill(self) -> bool:
        """Read the next block; False where nothing came."""
        if self._finished:
            return False
        chunk = self._stream.read(self._limits.block_bytes)
        if chunk:
            self._n_bytes += len(chunk)
            self._head.take(chunk)
            self._append(chunk)
            return True
        if not self._stream.ended:
            return False
        self._head.finish()
        self._finished = True
        if not self._stream.keep_tail:
            self._buffer, self._pos, self._end = b"", 0, 0
            return False
        if self._pos < len(self._buffer) and not self._buffer.endswith(b"\n"):
            self._append(b"\n")
        return True

    def _append(self, chunk: bytes) -> None:
        newline = chunk.rfind(b"\n")
        kept = len(self._buffer) - self._pos
        self._base += self._pos
        self._buffer = self._buffer[self._pos :] + chunk if kept else chunk
        self._end = kept + newline + 1 if newline >= 0 else max(0, self._end - self._pos)
        self._pos = 0

    # -- the beginning -------------------------------------------------------------------------------------------------
    def check(self) -> None:
        """Raise SourceError where the input is not the one of the position, as far as its bytes are there."""
        if self._decoder is None:
            self._begin()

    def _begin(self) -> Decoder | None:
        """Read byte order mark and header, then go to the position; None while they are not all there."""
        needed = max(len(BOM), self._head.expected_bytes)
        while self._n_bytes < needed and not self._finished:
            if not self._refill():
                return None
        if self._base + self._pos == 0:
            if self._buffer.startswith(OTHER_BOMS):
                raise SourceError(f"{self._partition}: must be UTF-8, got the byte order mark of UTF-16")
            self._pos = len(BOM) if self._buffer.startswith(BOM) else 0
        if self._start.header and self._header is None:
            self._header = self._take_header()
            if self._header is None and not self._finished:
                return None
        if not self._go_to_target():
            return None
        self._decoder = self._start.make(self._header)
        return self._decoder

    def _take_header(self) -> bytes | None:
        """Return the first record that is not blank; None where it is not there (yet)."""
        while True:
            while self._buffer.startswith((b"\n", b"\r\n"), self._pos):
                self._pos += 1 if self._buffer.startswith(b"\n", self._pos) else 2
                self._line += 1
            array = np.frombuffer(self._buffer, dtype=np.uint8)
            stop, lines = csv_record_end(array, self._pos, self._end, ord(self._start.delimiter))
            if stop >= 0:
                header = self._buffer[self._pos : stop].removesuffix(b"\r")
                self._pos, self._line = stop + 1, self._line + lines
                return header
            if len(self._buffer) - self._pos > self._limits.max_record_bytes:
                raise SourceError(
                    f"{self._partition}, line {self._line}: must have a header of at most "
                    f"{self._limits.max_record_bytes} bytes, got a longer line or a quote that is never closed"
                )
            if not self._refill():
                if self._finished and self._pos < len(self._buffer):
                    raise SourceError(f"{self._partition}, line {self._line}: must have a header, got an open quote")
                return None

    def _go_to_target(self) -> bool:
        """Skip what was read before the checkpoint; False where it is not all there yet."""
        if self._target <= self._base + self._pos:
            return True
        # The byte before the target is kept, to see that a record ends there.
        if self._n_bytes < self._target and self._stream.skip_to(self._target - 1):
            self._buffer, self._pos, self._end = b"", 0, 0
            self._base = self._n_bytes = self._target - 1
            self._finished = False
        while self._n_bytes < self._target:
            self._pos = max(0, len(self._buffer) - 1)
            if not self._refill():
                return False
            if self._finished:
                raise SourceError(
                    f"{self._partition}: must have the {self._target} bytes already read, got {self._n_bytes}"
                )
        self._pos = self._target - self._base
        self._line = self._saved_line
        self._check_boundary()
        return True

    def _check_boundary(self) -> None:
        """Refuse a last line that had no newline when it was read and was continued since."""
        before = self._buffer[self._pos - 1 : self._pos]
        if self._pos == len(self._buffer):
            self._refill()
        after = self._buffer[self._pos : self._pos + 1]
        if before != b"\n" and after not in {b"", b"\n", b"\r"}:
            raise SourceError(
                f"{self._partition}: must have a record begin at byte {self._target}, got the rest of a line that had "
                "no end when it was read"
            )

    # -- records that do not end ---------------------------------------------------------------------------------------
    def _is_too_long(self) -> bool:
        rest = len(self._buffer) - self._pos
        return rest > self._limits.max_record_bytes + 1 or (self._finished and rest > 0)

    def _refuse_record(self) -> Batch | None:
        """Refuse the record at the position, which does not end within bounds."""
        limit = self._limits.max_record_bytes
        stop = self._buffer.find(b"\n", self._pos, self._pos + limit + 2)
        raw = self._buffer[self._pos : stop].removesuffix(b"\r")
        if stop >= 0 and len(raw) <= limit:
            # Only an open quote goes on over line ends. Its first line is refused, the next ones may be whole.
            reason = f"must close its quotes within {limit} bytes, got none that closes"
            rejected = self._rejected(self._base + self._pos, "syntax", reason, raw)
            self._pos, self._line = stop + 1, self._line + 1
            return self._empty_batch(rejected)
        self._long = (self._base + self._pos, self._buffer[self._pos : self._pos + limit])
        return self._skip_long()

    def _skip_long(self) -> Batch | None:
        """Drop the rest of a line that is too long; None where its end is not there yet."""
        if self._long is None:
            return None
        while True:
            stop = self._buffer.find(b"\n", self._pos)
            if stop >= 0:
                break
            self._pos = len(self._buffer)
            if not self._refill() and not self._finished:
                return None
            if self._finished and self._pos >= len(self._buffer):
                if not self._stream.keep_tail:
                    self._long = None
                    return None
                stop = self._pos
                break
        offset, raw = self._long
        self._long = None
        n_bytes = self._base + stop - offset
        reason = f"must have at most {self._limits.max_record_bytes} bytes, got {n_bytes}; kept are the first ones"
        rejected = self._rejected(offset, "too_long", reason, raw)
        self._pos, self._line = min(stop + 1, len(self._buffer)), self._line + 1
        return self._empty_batch(rejected)

    def _rejected(self, offset: int, kind: str, reason: str, raw: bytes) -> Rejected:
        record = self._record
        self._record += 1
        return Rejected(self._partition, offset, record, kind, f"{self._partition}, line {self._line}: {reason}", raw)

    # -- batches -------------------------------------------------------------------------------------------------------
    def _empty_batch(self, *rejected: Rejected) -> Batch:
        return empty_batch((self.position(),), rejected, self._partition)

    def _batch(self, decoded: Decoded) -> Batch:
        buffer, base, places = self._buffer, self._base, decoded.places
        first, self._record = self._record, self._record + len(places)
        accepted: IntArray = decoded.accepted

        def origin(row: int) -> tuple[int, bytes]:
            begin, end, _ = places[accepted[row]].tolist()
            return base + begin, buffer[begin:end]

        rejected = []
        for record, kind, reason in decoded.refusals:
            begin, end, _ = places[record].tolist()
            rejected.append(Rejected(self._partition, base + begin, first + record, kind, reason, buffer[begin:end]))
        return Batch(
            names=decoded.names,
            values=decoded.values,
            labels=decoded.labels,
            records=first + accepted,
            positions=(self.position(),),
            text=decoded.text,
            keys=decoded.keys,
            rejected=tuple(rejected),
            partition=self._partition,
            origin=origin,
        )


def empty_batch(positions: tuple[Position, ...], rejected: tuple[Rejected, ...] = (), partition: str = "") -> Batch:
    """Return a batch without events."""
    return Batch(
        names=(),
        values=np.empty((0, 0)),
        labels=np.empty(0, dtype=object),
        records=np.empty(0, dtype=np.int64),
        positions=positions,
        rejected=rejected,
        partition=partition,
    )
