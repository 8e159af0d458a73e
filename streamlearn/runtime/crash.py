"""Points of the loop at which a test can have the process killed.

``STREAMLEARN_CRASH_AT=after_flush:3`` kills the process, as ``kill -9`` would, the third time it flushed its outputs.
Without the variable a point costs one comparison per batch or checkpoint.
"""

from __future__ import annotations

import os
import signal

from streamlearn.errors import BadParameter

VARIABLE = "STREAMLEARN_CRASH_AT"
POINTS = ("after_write", "after_flush", "after_save", "before_commit")


def _parse(text: str) -> tuple[str, int]:
    point, _, count = text.partition(":")
    if text and (point not in POINTS or not count.isdecimal() or int(count) < 1):
        raise BadParameter(f"{VARIABLE}: must be one of {', '.join(POINTS)} with :count, got {text!r}")
    return point, int(count or 0)


class _Fuse:
    """Counts how often the chosen point is still to be passed."""

    def __init__(self, text: str) -> None:
        self.point, self.left = _parse(text)

    def reach(self, point: str) -> None:
        if point != self.point:
            return
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


_fuse = _Fuse(os.environ.get(VARIABLE, ""))
reach = _fuse.reach
"""Say that the loop has come to the named point."""
