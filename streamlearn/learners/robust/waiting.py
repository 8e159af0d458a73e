"""Rows that wait for their batch to be full."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import FloatArray

LARGEST = 1e150


def clipped(X: FloatArray) -> FloatArray:
    """Return rows of size at most 1e150: themselves where they are."""
    return X if X.size == 0 or (X.max() <= LARGEST and X.min() >= -LARGEST) else np.clip(X, -LARGEST, LARGEST)


class WaitingRows:
    """A mini-batch being filled, part of the state.

    Rows have memory while some wait: where whole batches come in none ever do.

    Attributes
    ----------
    targets : float64[batch_size]
    """

    def __init__(self, batch_size: int) -> None:
        self._shape = (batch_size, 0)
        self._rows: FloatArray | None = None
        self.targets: FloatArray = np.zeros(batch_size)
        self._count = np.zeros(1, dtype=np.int64)

    def __len__(self) -> int:
        return int(self._count[0])

    @property
    def rows(self) -> FloatArray:
        """The rows float64[batch_size, n_features], zeros behind those that wait."""
        if self._rows is None:
            self._rows = np.zeros(self._shape)
        return self._rows

    @property
    def full(self) -> bool:
        """As many rows wait as a batch has."""
        return len(self) == self._shape[0]

    def widen(self, n_features: int) -> None:
        """Append columns that were 0 for ever."""
        if self._rows is not None:
            self._rows = np.pad(self._rows, ((0, 0), (0, n_features - self._shape[1])))
        self._shape = (self._shape[0], n_features)

    def take(self, x: FloatArray, y: float) -> None:
        """Add one row; there must be room."""
        n = len(self)
        np.clip(x, -LARGEST, LARGEST, out=self.rows[n])
        self.targets[n] = min(max(y, -LARGEST), LARGEST)
        self._count[0] = n + 1

    def room(self) -> int:
        """Return how many more rows fit."""
        return self._shape[0] - len(self)

    def take_many(self, X: FloatArray) -> None:
        """Add rows without targets; there must be room."""
        n = len(self)
        np.clip(X, -LARGEST, LARGEST, out=self.rows[n : n + len(X)])
        self._count[0] = n + len(X)

    def middle(self) -> float:
        """Return the median of the waiting targets; 0 where there is none."""
        return float(np.median(self.targets[: len(self)])) if len(self) else 0.0

    def clear(self) -> None:
        """Forget all rows."""
        self._rows = None
        self.targets[:] = 0.0
        self._count[0] = 0

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the state (not copies)."""
        return {"waiting_rows": self.rows, "waiting_targets": self.targets, "waiting_count": self._count}
