"""A file that grows, read like ``tail -F``: through rotation and truncation."""

from __future__ import annotations

import logging
import os
import time
from pathlib import Path
from typing import IO

from streamlearn.contracts import Position
from streamlearn.errors import SourceError
from streamlearn.runtime.bytestream import HEAD_BYTES, fingerprint, hashed_bytes

log = logging.getLogger(__name__)
PAUSE_S = 0.05
"""How often a quiet file is looked at."""


class FollowStream:
    """The file that stands at `path` when it is first read, until another one takes its place.

    It ends when the file was renamed and its successor has bytes (so that the writer has moved on), or when it was cut.
    A file that is not there yet is waited for.

    Parameters
    ----------
    path : str
        The name that is followed.
    actual : str or None
        Where the file stands now, if it was already renamed.
    """

    def __init__(self, path: str, actual: str | None = None) -> None:
        self._path = path
        self._actual = Path(actual or path)
        self._file: IO[bytes] | None = None
        self._offset = 0
        self._head = b""
        self.ended = False
        self.keep_tail = True

    def read(self, n_bytes: int) -> bytes:
        """Return what was added; nothing where nothing was, or where the file has ended."""
        file = self._opened()
        if file is None or self.ended:
            return b""
        if self._was_cut(file):
            # What was cut away is gone, a line begun in it too: nothing that a restart could not read again is used.
            log.warning(
                "%s was cut below the %d bytes already read; reading it from its start", self._path, self._offset
            )
            self.ended, self.keep_tail = True, False
            return b""
        gone = self._was_replaced(file)
        chunk = os.pread(file.fileno(), n_bytes, self._offset)
        self._offset += len(chunk)
        # Looked for a successor before reading: whatever the writer added before it moved on has been read.
        self.ended = gone and not chunk
        if len(self._head) < HEAD_BYTES:
            self._head = os.pread(file.fileno(), min(HEAD_BYTES, self._offset), 0)
        return chunk

    def _opened(self) -> IO[bytes] | None:
        if self._file is None:
            try:
                self._file = self._actual.open("rb", buffering=0)
            except FileNotFoundError:
                return None
            except OSError as error:
                raise SourceError(f"{self._actual}: must be a readable file, got {error.strerror}") from None
        return self._file

    def _was_cut(self, file: IO[bytes]) -> bool:
        if os.fstat(file.fileno()).st_size < self._offset:
            return True
        # A file that was cut and has grown past our place again shows it by its beginning.
        return os.pread(file.fileno(), len(self._head), 0) != self._head

    def _was_replaced(self, file: IO[bytes]) -> bool:
        try:
            there = Path(self._path).stat()
        except FileNotFoundError:
            return False
        mine = os.fstat(file.fileno())
        return (there.st_dev, there.st_ino) != (mine.st_dev, mine.st_ino) and there.st_size > 0

    def skip_to(self, offset: int) -> bool:
        """Go on at `offset`; a file that is now shorter was cut while nobody read it."""
        file = self._opened()
        if file is None or os.fstat(file.fileno()).st_size < offset:
            raise SourceError(f"{self._path}: must have the {offset} bytes already read, got fewer")
        self._offset = offset
        return True

    def wait(self, timeout_s: float) -> None:
        """Pause before the next look."""
        time.sleep(min(PAUSE_S, timeout_s))

    def identity(self) -> int:
        """Return the inode of the open file, 0 before it is there."""
        return 0 if self._file is None else os.fstat(self._file.fileno()).st_ino

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


def find_rotated(path: str, position: Position, inode: int) -> list[str]:
    """Return the files to read after a restart, oldest first; the last one is `path` itself.

    A file that was renamed while nobody read is looked for among its neighbours ``<name>*``: by its beginning, and by
    its inode where more than one begins so. Those that were renamed after it come next, by time of last change.

    Raises
    ------
    SourceError
        The file that the checkpoint read is not there any more.
    """
    here = Path(path)
    n_bytes = hashed_bytes(position.fingerprint)
    neighbours = [found for found in sorted(here.parent.glob(f"{here.name}*")) if found.is_file()]
    same = [found for found in neighbours if _matches(found, position, n_bytes)]
    chosen = [found for found in same if found.stat().st_ino == inode] or [found for found in same if n_bytes > 0]
    if not chosen:
        if n_bytes == 0:
            return [path]
        raise SourceError(
            f"{path}: must be the input of the checkpoint, or have it beside it under a longer name, got no file "
            f"with the same first {n_bytes} bytes and at least {position.offset} bytes"
        )
    first = here if here in chosen else chosen[0]
    if first == here:
        return [path]
    changed = first.stat().st_mtime_ns
    later = [
        found
        for found in neighbours
        if found not in {first, here} and found.stat().st_mtime_ns > changed and found.suffix not in {".gz", ".zst"}
    ]
    later.sort(key=lambda found: found.stat().st_mtime_ns)
    return [str(first), *map(str, later), path]


def _matches(found: Path, position: Position, n_bytes: int) -> bool:
    with found.open("rb") as file:
        head = file.read(n_bytes)
    return fingerprint(head) == position.fingerprint and found.stat().st_size >= position.offset
