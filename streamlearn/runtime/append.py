"""A file that only grows, whose length a checkpoint knows, and that can be cut back to it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

from streamlearn.contracts import Snapshot
from streamlearn.errors import SinkError

_BUFFER_BYTES = 1 << 20


class AppendFile:
    """An output file of the job, cut back on resume so that it equals the output of a run that never stopped.

    Nothing is touched before `create` (a new job) or `restore` (a resumed one), and there is no file before the first
    byte, so that a job without bad events leaves no empty dead-letter file.

    Parameters
    ----------
    who : str
        The key of the job that names the file, for messages.
    path : Path
    """

    def __init__(self, who: str, path: Path) -> None:
        self.who = who
        self.path = path
        self._file: BinaryIO | None = None
        self._length = 0
        self._ready = False

    @property
    def length(self) -> int:
        """Bytes written so far, buffered ones included."""
        return self._length

    def require_absent(self) -> None:
        """Raise SinkError where the file has content that a new job would destroy."""
        if self.path.exists() and self.path.stat().st_size > 0:
            raise SinkError(
                f"{self.who}: {self.path} must not exist when a job starts anew; run with --fresh to replace it"
            )

    def create(self) -> None:
        """Start with nothing, removing what is there."""
        self.path.unlink(missing_ok=True)
        self._length = 0
        self._ready = True

    def write(self, data: bytes) -> None:
        """Append; buffered until `show` or `flush`."""
        if not data:
            return
        try:
            self._opened().write(data)
        except OSError as error:
            raise SinkError(f"{self.who}: {self.path} cannot be written: {error}") from error
        self._length += len(data)

    def show(self) -> None:
        """Let others read what was written, which is durable only from `flush` on."""
        if self._file is None:
            return
        try:
            self._file.flush()
        except OSError as error:
            raise SinkError(f"{self.who}: {self.path} cannot be written: {error}") from error

    def flush(self) -> None:
        """Make everything written so far durable."""
        if self._file is None:
            return
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise SinkError(f"{self.who}: {self.path} cannot be made durable: {error}") from error

    def close(self) -> None:
        """Flush and release; may be called twice."""
        if self._file is not None:
            self.flush()
            self._file.close()
            self._file = None

    def state(self) -> Snapshot:
        """Return the length in bytes."""
        return {"bytes": self._length}

    def restore(self, state: Snapshot) -> None:
        """Cut the file back to the saved length and go on behind it.

        Raises
        ------
        SinkError
            The file is shorter than it was: somebody removed, replaced or cut it.
        """
        saved = int(state["bytes"])
        if saved == 0:
            self.create()
            return
        found = self.path.stat().st_size if self.path.exists() else 0
        if found < saved:
            raise SinkError(
                f"{self.who}: {self.path} must have at least the {saved} bytes that the checkpoint knows, got {found}; "
                "put the file back, or run with --fresh to start anew"
            )
        self._ready = True
        self._opened().truncate(saved)
        self._length = saved
        self.flush()

    def _opened(self) -> BinaryIO:
        if self._file is None:
            if not self._ready:
                raise SinkError(f"{self.who}: {self.path} must be created or restored before it is written")
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self._file = self.path.open("ab", buffering=_BUFFER_BYTES)
                _make_durable(self.path.parent)
            except OSError as error:
                raise SinkError(f"{self.who}: {self.path} cannot be opened: {error}") from error
        return self._file


def _make_durable(folder: Path) -> None:
    """Make the name of a new file in `folder` survive a power cut: the file's own fsync does not."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
