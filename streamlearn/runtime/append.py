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

    Nothing is touched before `create` (a new job) or `restore` (a resumed one).

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
        """Start an empty file; its folder is made."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._open("wb")

    def write(self, data: bytes) -> None:
        """Append; buffered until `flush`."""
        if self._file is None:
            raise SinkError(f"{self.who}: {self.path} must be created or restored before it is written")
        try:
            self._file.write(data)
        except OSError as error:
            raise SinkError(f"{self.who}: {self.path} cannot be written: {error}") from error
        self._length += len(data)

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
        found = self.path.stat().st_size if self.path.exists() else 0
        if found < saved:
            raise SinkError(
                f"{self.who}: {self.path} must have at least the {saved} bytes that the checkpoint knows, got {found}; "
                "put the file back, or run with --fresh to start anew"
            )
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._open("ab")
        assert self._file is not None  # noqa: S101  just opened
        self._file.truncate(saved)
        self._length = saved
        self.flush()

    def _open(self, mode: str) -> None:
        try:
            self._file = self.path.open(mode, buffering=_BUFFER_BYTES)  # type: ignore[assignment]  # both modes are binary
        except OSError as error:
            raise SinkError(f"{self.who}: {self.path} cannot be opened: {error}") from error
