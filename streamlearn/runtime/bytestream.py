"""Bytes of a file, a compressed file or standard input, in order, with a fingerprint of their beginning."""

from __future__ import annotations

import gzip
import hashlib
import os
import select
import zlib
from io import RawIOBase
from pathlib import Path
from typing import IO, Protocol

import zstandard

from streamlearn.errors import SourceError

HEAD_BYTES = 4096
"""How much of an input's beginning tells whether it is still the same."""
_ZSTD_CHUNK = 1 << 16


class Head:
    """The first bytes of an input, hashed as far as they were there.

    Parameters
    ----------
    path : str
        For messages.
    expected : str
        The fingerprint of a checkpoint, ``"<bytes>:<hash>"``; empty for none.
    """

    def __init__(self, path: str, expected: str = "") -> None:
        self._path, self._expected = path, expected
        self._bytes = b""

    def take(self, chunk: bytes) -> None:
        """Take the next bytes; raise SourceError where they are not those of the checkpoint."""
        if len(self._bytes) >= HEAD_BYTES:
            return
        self._bytes = (self._bytes + chunk)[:HEAD_BYTES]
        n_bytes = self.expected_bytes
        if self._expected and len(self._bytes) >= n_bytes:
            if fingerprint(self._bytes[:n_bytes]) != self._expected:
                raise SourceError(f"{self._path}: must be the input of the checkpoint, got other first {n_bytes} bytes")
            self._expected = ""

    def finish(self) -> None:
        """Raise SourceError where the input ended before the checkpoint's first bytes were seen."""
        if self._expected and len(self._bytes) < self.expected_bytes:
            raise SourceError(
                f"{self._path}: must be the input of the checkpoint, got {len(self._bytes)} bytes instead of at least "
                f"{self.expected_bytes}"
            )

    @property
    def expected_bytes(self) -> int:
        """How many bytes the checkpoint hashed."""
        return hashed_bytes(self._expected)

    @property
    def seen(self) -> bytes:
        """The first bytes, at most HEAD_BYTES."""
        return self._bytes

    @property
    def text(self) -> str:
        """The fingerprint of what was seen so far."""
        return fingerprint(self._bytes)


def fingerprint(head: bytes) -> str:
    """Return ``"<bytes>:<hash>"``, which a file that grows keeps matching."""
    return f"{len(head)}:{hashlib.blake2b(head, digest_size=16).hexdigest()}"


def hashed_bytes(text: str) -> int:
    """Return how many bytes a fingerprint covers."""
    return int(text.partition(":")[0]) if text else 0


class ByteStream(Protocol):
    """Bytes in order. `read` never waits; `wait` does."""

    ended: bool
    """Nothing will come any more."""
    keep_tail: bool
    """Whether a last line without its newline is a record, once ended."""

    def read(self, n_bytes: int) -> bytes:
        """Return up to `n_bytes`, nothing where nothing is there now."""
        ...

    def skip_to(self, offset: int) -> bool:
        """Go to `offset` without reading where that is possible."""
        ...

    def wait(self, timeout_s: float) -> None:
        """Wait until something may be there."""
        ...

    def identity(self) -> int:
        """Return the inode, or 0."""
        ...

    def close(self) -> None:
        """Release the file."""
        ...


class FileStream:
    """A file that does not grow, plain or compressed by gzip or zstd (told by its ending).

    Parameters
    ----------
    path : str
    end : int or None
        Of a plain file: the byte to stop before.
    """

    keep_tail = True

    def __init__(self, path: str, end: int | None = None) -> None:
        self._path, self._end = path, end
        self.ended = False
        try:
            self._file: IO[bytes] | RawIOBase | gzip.GzipFile = _open(path)
        except OSError as error:
            raise SourceError(f"{path}: must be a readable file, got {error.strerror or error}") from None
        self._plain = not path.endswith((".gz", ".zst"))

    def read(self, n_bytes: int) -> bytes:
        """Return up to `n_bytes`; nothing at the end only."""
        if self._end is not None:
            n_bytes = max(0, min(n_bytes, self._end - self._file.tell()))
        try:
            chunk = self._file.read(n_bytes) or b""
        except (OSError, EOFError, zlib.error, zstandard.ZstdError) as error:
            raise SourceError(f"{self._path}: must be a whole, readable file, got {error}") from error
        self.ended = not chunk
        return chunk

    def skip_to(self, offset: int) -> bool:
        """Seek, in a plain file; a compressed one must be read from its start."""
        if not self._plain:
            return False
        size = os.fstat(self._file.fileno()).st_size
        if size < offset:
            raise SourceError(f"{self._path}: must have the {offset} bytes already read, got {size}")
        self._file.seek(offset)
        return True

    def wait(self, timeout_s: float) -> None:
        """Return at once: a file is always ready."""

    def identity(self) -> int:
        """Return 0: a file that does not grow is known by its first bytes."""
        return 0

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _open(path: str) -> IO[bytes] | RawIOBase | gzip.GzipFile:
    if path.endswith(".gz"):
        return gzip.open(path, "rb")
    if path.endswith(".zst"):
        return _ZstdFile(path)
    return Path(path).open("rb", buffering=0)


class _ZstdFile(RawIOBase):
    """A zstd file, frame by frame; unlike the library's reader it tells a truncated frame from the end."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self._file = Path(path).open("rb", buffering=0)  # noqa: SIM115 - closed by close
        self._frame = zstandard.ZstdDecompressor().decompressobj()
        self._inside = False
        self._rest = b""
        self._ready = b""

    def read(self, n_bytes: int = -1) -> bytes:
        """Return up to `n_bytes`, nothing at the end."""
        while not self._ready and self._more():
            pass
        chunk, self._ready = self._ready[:n_bytes], self._ready[n_bytes:]
        return chunk

    def _more(self) -> bool:
        data = self._rest or self._file.read(_ZSTD_CHUNK)
        if not data:
            if self._inside:
                raise EOFError("a zstd frame without its end")
            return False
        self._ready = self._frame.decompress(data)
        self._inside, self._rest = not self._frame.eof, b""
        if self._frame.eof:
            self._rest = self._frame.unused_data
            self._frame = zstandard.ZstdDecompressor().decompressobj()
        return True

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()


class PipeStream:
    """Standard input or another descriptor that is read once.

    Parameters
    ----------
    descriptor : int
    """

    keep_tail = True

    def __init__(self, descriptor: int = 0) -> None:
        self._descriptor = descriptor
        self.ended = False

    def read(self, n_bytes: int) -> bytes:
        """Return what is there."""
        if self.ended or not select.select([self._descriptor], [], [], 0.0)[0]:
            return b""
        chunk = os.read(self._descriptor, n_bytes)
        self.ended = not chunk
        return chunk

    def skip_to(self, offset: int) -> bool:
        """Return False: what was read before must be sent again, and is skipped."""
        return False

    def wait(self, timeout_s: float) -> None:
        """Wait for bytes or the end."""
        select.select([self._descriptor], [], [], timeout_s)

    def identity(self) -> int:
        """Return 0."""
        return 0

    def close(self) -> None:
        """Leave the descriptor open: it is not ours."""
