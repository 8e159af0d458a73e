"""What every detector of drift shares: checked losses, the same detections one by one and in arrays, state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streamlearn.contracts import FloatArray, IntArray, Snapshot
from streamlearn.errors import BadParameter, BadSnapshot, BadValue


class DriftDetector(ABC):
    """Base of the detectors. One by one and in arrays leave the same state and give the same detections.

    Parameters are River's, with its defaults, and so are the detections.
    """

    short: ClassVar[str]
    n_numbers: ClassVar[int]
    unit: ClassVar[bool] = True
    """Whether losses must be in [0, 1]."""

    def __init__(self) -> None:
        self._numbers = np.zeros(self.n_numbers)

    def update_many(self, losses: ArrayLike) -> IntArray:
        """Take losses in order; return the indexes of those with which a change was detected, int64[n_changes].

        Parameters
        ----------
        losses : float64[n]
            NaN: no loss (no label, or the learner abstained); it is passed over.

        Raises
        ------
        BadValue
            A loss is infinite, or outside of what the detector takes; nothing was changed then.
        """
        return self.changes(losses)[0]

    def changes(self, losses: ArrayLike) -> tuple[IntArray, NDArray[np.bool_]]:
        """Take losses like `update_many`; return the indexes of changes and whether the mean loss rose with them."""
        values = np.asarray(losses, np.float64)
        known = np.flatnonzero(~np.isnan(values))
        kept = np.ascontiguousarray(values[known])
        bad = np.isinf(kept) if not self.unit else ~((kept >= 0.0) & (kept <= 1.0))
        if bad.any():
            rule = "in [0, 1]" if self.unit else "finite"
            raise BadValue(f"{type(self).__name__}: losses must be {rule}, got {float(kept[bad.argmax()])!r}")
        out = np.zeros(len(kept), np.int8)
        self._run(out, kept)
        found = np.flatnonzero(out)
        return known[found], out[found] > 0

    def update(self, loss: float) -> bool:
        """Take one loss; return whether a change was detected with it."""
        return bool(len(self.update_many([loss])))

    def state(self) -> Snapshot:
        """Return the flat state; arrays are copies."""
        return {"detector": self.short, **{name: array.copy() for name, array in self._arrays().items()}}

    def restore(self, state: Snapshot) -> None:
        """Become exactly what `state` describes.

        Raises
        ------
        BadSnapshot
            It is the state of another detector.
        """
        if state.get("detector") != self.short:
            raise BadSnapshot(f"{type(self).__name__}: state must be of {self.short!r}, got {state.get('detector')!r}")
        for name, mine in self._arrays().items():
            found = state.get(name)
            if not isinstance(found, np.ndarray) or found.shape != mine.shape:
                raise BadSnapshot(f"{type(self).__name__}: state must have {name} of shape {list(mine.shape)}")
            mine[...] = found

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {"numbers": self._numbers}

    @abstractmethod
    def _run(self, out: NDArray[np.int8], losses: FloatArray) -> None:
        """Take checked losses and write where a change was detected: 1 a rise, -1 a fall."""


def check_open(who: str, name: str, value: float, most: float) -> None:
    """Raise BadParameter unless `value` is a number in (0, `most`)."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 < value < most:
        raise BadParameter(f"{who}: {name} must be in (0, {most:g}), got {value!r}")
