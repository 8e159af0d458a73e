"""How many events a loop takes at a time."""

from __future__ import annotations

FIRST_BATCH = 1024
QUICK_S, SLOW_S = 0.05, 0.2
"""A batch that took less or more than this is followed by a larger or a smaller one."""


class Pace:
    """Large batches where learning is quick, small ones where it is slow; no result depends on it.

    Between two batches go 0.5 ms, half of what 1024 events of 20 features cost; but stop requests and timed checkpoints
    wait for the end of a batch, and there are learners that take a millisecond an event.

    Parameters
    ----------
    most : int
        Never more events at a time.
    """

    def __init__(self, most: int) -> None:
        self._least, self._most = min(FIRST_BATCH, most), most
        self.events = self._least
        """How many to take next."""

    def took(self, seconds: float) -> None:
        """Hear how long the last batch took."""
        if seconds < QUICK_S:
            self.events = min(self._most, 2 * self.events)
        elif seconds > SLOW_S:
            self.events = max(self._least, self.events // 2)
