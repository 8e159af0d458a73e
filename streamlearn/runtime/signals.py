"""Stopping cleanly: the first SIGTERM or Ctrl-C asks, the second kills."""

from __future__ import annotations

import signal
from types import FrameType, TracebackType
from typing import Any, Self

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopRequest:
    """A context in which the first signal only leaves a note, which the loop reads between two batches.

    The signal's former handler comes back with that first signal, so that a second one ends the process at once.
    """

    def __init__(self) -> None:
        self.asked = False
        self._former: dict[int, Any] = {}

    def __enter__(self) -> Self:
        self._former = {number: signal.signal(number, self._note) for number in _SIGNALS}
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._put_back()

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self.asked = True
        self._put_back()

    def _put_back(self) -> None:
        for number, handler in self._former.items():
            signal.signal(number, handler)
        self._former = {}
