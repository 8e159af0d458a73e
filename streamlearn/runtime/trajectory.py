"""How the measures moved: a bounded number of samples at event counts that do not depend on batches or checkpoints."""

from __future__ import annotations

import numpy as np

from streamlearn.contracts import FloatArray, Snapshot
from streamlearn.errors import BadSnapshot

FIRST_STEP = 200
MAX_SAMPLES = 96
"""Reading a cumulative AUC costs the more the more scores it holds: so many samples about 0.25 us an event at first."""


class Trajectory:
    """Samples of a row of numbers every `step` events; when there are too many, half of them go and `step` doubles.

    Parameters
    ----------
    width : int
        Numbers in a sample.
    """

    def __init__(self, width: int) -> None:
        self._step = FIRST_STEP
        self._width = width
        self._samples: list[FloatArray] = []

    def next_after(self, events: int) -> int:
        """Return the event count of the first sample behind `events`."""
        return (events // self._step + 1) * self._step

    def add(self, sample: FloatArray) -> None:
        """Take the sample for the event count that `next_after` told."""
        self._samples.append(sample)
        if len(self._samples) > MAX_SAMPLES:
            self._samples = self._samples[1::2]
            self._step *= 2

    @property
    def events(self) -> list[int]:
        """Event counts of the samples."""
        return [self._step * (k + 1) for k in range(len(self._samples))]

    @property
    def samples(self) -> FloatArray:
        """float64[n_samples, width]."""
        return np.array(self._samples).reshape(-1, self._width)

    def state(self) -> Snapshot:
        """Return step and samples."""
        return {"step": self._step, "samples": self.samples}

    def restore(self, state: Snapshot) -> None:
        """Take step and samples."""
        samples = state["samples"]
        if samples.ndim != 2 or samples.shape[1] != self._width:
            raise BadSnapshot(f"trajectory: samples must have {self._width} columns, got shape {list(samples.shape)}")
        self._step = int(state["step"])
        self._samples = list(samples)
