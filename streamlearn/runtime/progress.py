"""Looking on while a job runs: a live line on a terminal, plain lines elsewhere, JSON lines for machines."""

from __future__ import annotations

import logging
import math
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self, TextIO

import msgspec
from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from streamlearn.contracts import Position
from streamlearn.runtime.loop import Loop

LINE_EVERY_S = 5.0
LIVE_EVERY_S = 0.2


@dataclass(frozen=True, slots=True)
class Status:
    """What there is to see.

    Attributes
    ----------
    events : int
    events_per_s : float
        Of this process.
    share : float or None
        How far the input has been read, 0 to 1; None where nobody knows.
    metric : str
    value : float
        The metric of the first learner that is shown.
    rejected : int
    """

    events: int
    events_per_s: float
    share: float | None
    metric: str
    value: float
    rejected: int

    def __str__(self) -> str:
        share = "" if self.share is None else f" ({self.share:.0%})"
        value = "-" if math.isnan(self.value) else f"{self.value:.4f}"
        bad = f", {self.rejected:,} bad" if self.rejected else ""
        return f"{self.events:,} events{share}, {self.events_per_s:,.0f}/s, {self.metric} {value}{bad}"


class Display(Protocol):
    """Something that shows a status."""

    every_s: float

    def show(self, status: Status) -> None:
        """Show where the job stands."""
        ...

    def say(self, text: str) -> None:
        """Show one sentence."""
        ...

    def close(self) -> None:
        """Leave the output as it was found."""
        ...


class Lines:
    """Plain lines, for logs."""

    every_s = LINE_EVERY_S

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def show(self, status: Status) -> None:
        """Print one line."""
        self.say(str(status))

    def say(self, text: str) -> None:
        """Print one line."""
        print(text, file=self._out, flush=True)

    def close(self) -> None:
        """Do nothing."""


class JsonLines:
    """One JSON object a line, for machines."""

    every_s = LINE_EVERY_S

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def show(self, status: Status) -> None:
        """Print the status."""
        self._print({"kind": "progress", **asdict(status)})

    def say(self, text: str) -> None:
        """Print a message."""
        self._print({"kind": "message", "text": text})

    def _print(self, row: dict[str, object]) -> None:
        print(msgspec.json.encode(row).decode(), file=self._out, flush=True)

    def close(self) -> None:
        """Do nothing."""


class LiveLine:
    """A bar and a line that are drawn over, for a terminal."""

    every_s = LIVE_EVERY_S

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, refresh_per_second=1.0 / LIVE_EVERY_S, transient=True)
        self._live.start()

    def show(self, status: Status) -> None:
        """Draw bar and line."""
        row = Table.grid(padding=(0, 1))
        bar = ProgressBar(total=1.0, completed=status.share or 0.0, width=30, pulse=status.share is None)
        row.add_row(bar, str(status))
        self._live.update(row)

    def say(self, text: str) -> None:
        """Print one line above the bar."""
        self._console.print(text, highlight=False, soft_wrap=True)

    def close(self) -> None:
        """Remove bar and line."""
        self._live.stop()


class Progress:
    """A watch of the loop that shows its status every so often.

    Parameters
    ----------
    display : Display
    """

    def __init__(self, display: Display) -> None:
        self.display = display
        self._began_s = self._shown_s = time.monotonic()
        self._resumed_at = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.display.close()

    def resumed(self, events: int) -> None:
        """Say where the job goes on."""
        self._resumed_at = events
        self.display.say(f"going on behind event {events:,}")

    def moved(self, loop: Loop) -> None:
        """Show the status, if it is time."""
        now = time.monotonic()
        if now - self._shown_s >= self.display.every_s:
            self._shown_s = now
            self.display.show(self.status(loop, now - self._began_s))

    def polled(self, loop: Loop) -> None:
        """Do nothing: what has not moved is shown already."""

    def saved(self, loop: Loop, seconds: float) -> None:
        """Do nothing: a checkpoint is no news."""

    def status(self, loop: Loop, seconds: float) -> Status:
        """Return where the job stands."""
        metric = loop.parts.tracks[0].metrics[0]
        rate = (loop.events - self._resumed_at) / max(seconds, 1e-9)
        rejected = loop.parts.dead_letters.total
        return Status(loop.events, rate, share_read(loop.positions), metric.name, metric.get(), rejected)


def share_read(positions: Mapping[str, Position]) -> float | None:
    """Return how much of the input has been read, where it is one plain text file; else None.

    Offsets are those of the decompressed text, whose length nobody knows beforehand.
    """
    if len(positions) != 1:
        return None
    (position,) = positions.values()
    path = Path(position.partition)
    if not path.is_file() or path.suffix in {".gz", ".zst", ".parquet"}:
        return None
    return min(1.0, position.offset / max(1, path.stat().st_size))


class _JsonFormatter(logging.Formatter):
    """One JSON object a record."""

    def format(self, record: logging.LogRecord) -> str:
        row: dict[str, object] = {
            "kind": "log",
            "time": datetime.fromtimestamp(record.created, UTC),
            "level": record.levelname,
            "logger": record.name,
            "text": record.getMessage(),
        }
        if record.exc_info:
            row["exception"] = self.formatException(record.exc_info)
        return msgspec.json.encode(row).decode()


def log_json() -> None:
    """Let the log be written as one JSON object a line from here on."""
    for handler in logging.getLogger().handlers:
        handler.setFormatter(_JsonFormatter())


def open_display(*, as_json: bool, log: str = "text") -> Display:
    """Return the display that fits: JSON lines if asked for, a live line on a terminal, else plain lines."""
    if as_json or log == "json":
        return JsonLines(sys.stdout if as_json else sys.stderr)
    console = Console(stderr=True)
    return LiveLine(console) if console.is_terminal else Lines(sys.stderr)
