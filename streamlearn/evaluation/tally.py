"""Sums of a few columns over all events, over a sliding window, or fading."""

from __future__ import annotations

import numpy as np

from streamlearn.contracts import FloatArray, Snapshot
from streamlearn.kernels.tally import add_faded, add_sums


class Tally:
    """Column sums that forget nothing (compensated), all but a window (exact), or exponentially.

    A window keeps its rows and adds them up when it is read: a running sum with subtraction would keep the rounding
    errors of everything that ever passed (one event of 1e300 would spoil it for good).

    Parameters
    ----------
    n_columns : int
    window : int or None
        Number of rows that count.
    fading : float or None
        What a row still counts one event later.
    """

    def __init__(self, n_columns: int, *, window: int | None, fading: float | None) -> None:
        self.n_columns = n_columns
        self.window = window
        self.fading = fading
        self._sums = np.zeros((2, n_columns))
        self._rows = np.zeros((0 if window is None else window, n_columns))
        self._n_seen = 0

    def add(self, rows: FloatArray) -> None:
        """Add rows (float64[n, n_columns], C-contiguous) in order."""
        if self.window is not None:
            self._slide(rows, self.window)
        elif self.fading is not None:
            add_faded(self._sums[0], rows, self.fading)
        else:
            add_sums(self._sums, rows)

    def _slide(self, rows: FloatArray, window: int) -> None:
        self._n_seen += len(rows)
        rows = rows[-window:]
        self._rows[np.arange(self._n_seen - len(rows), self._n_seen) % window] = rows

    def _in_order(self) -> FloatArray:
        n = len(self._rows)
        if self._n_seen < n:
            return self._rows[: self._n_seen]
        return np.roll(self._rows, -(self._n_seen % n), axis=0)

    def totals(self) -> FloatArray:
        """Return the sums, float64[n_columns]."""
        if self.window is None:
            sums = self._sums
        else:
            sums = np.zeros((2, self.n_columns))
            add_sums(sums, self._in_order())
        totals: FloatArray = sums[0] + sums[1]
        return totals

    def state(self) -> Snapshot:
        """Return the flat state; arrays are copies."""
        if self.window is None:
            return {"sums": self._sums.copy()}
        return {"rows": self._in_order().copy()}

    def restore(self, state: Snapshot) -> None:
        """Become what `state` describes; the tally must be fresh."""
        if self.window is None:
            self._sums = np.array(state["sums"], np.float64).reshape(2, self.n_columns)
        else:
            self.add(np.ascontiguousarray(state["rows"], np.float64).reshape(-1, self.n_columns))
