"""What the loop asks of everything that it writes to."""

from __future__ import annotations

from typing import Protocol


class Output(Protocol):
    """An output of the job: a file, a folder, or what goes to a broker."""

    def require_absent(self) -> None:
        """Raise SinkError where there is output that a new job would destroy."""
        ...

    def create(self) -> None:
        """Start with nothing written."""
        ...

    def flush(self) -> None:
        """Make everything written so far durable."""
        ...

    def close(self) -> None:
        """Flush and release; may be called twice."""
        ...
