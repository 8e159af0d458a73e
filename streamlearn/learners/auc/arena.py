"""Binary scorers whose numbers all lie in one float64 array, as their kernels want it."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import FloatArray, Label
from streamlearn.errors import BadParameter
from streamlearn.kernels import reject as layout
from streamlearn.learners.base import BinaryScorer
from streamlearn.learners.labels import checked_reject_cost

BLOCK = 8
STEPS_PER_DOUBLING = 8
FARTHEST = 15.0  # of a flattened score, 3e6 deviations: differences from there still tell scores apart
SCALES = {"none": 0.0, "standard": 1.0, "range": 2.0}


def capacity(n_features: int) -> int:
    """Return the columns set aside for `n_features`: whole blocks of 8, growing by an eighth at most."""
    step = BLOCK
    while step * 2 * STEPS_PER_DOUBLING < n_features:
        step *= 2
    return max(1, -(-n_features // step)) * step


class ArenaScorer(BinaryScorer):
    """Base of scorers with the layout ``header | vectors [n_vectors, capacity]``.

    One array, since every array argument costs a call of a kernel 0.1 us. Columns beyond the width hold zeros. A
    subclass gives the two sizes, and writes its parameters into the header in `_write_parameters`.
    """

    _needs_finite_rows = False
    _header_size: ClassVar[int]

    scale: str
    max_features: int
    positive: Label | None
    _reject_cost: float

    def __init__(self) -> None:
        if self.scale not in SCALES:
            raise BadParameter(f"{self.name}: scale must be one of {sorted(SCALES)}, got {self.scale!r}")
        self._capacity = capacity(0)
        self._arena: FloatArray = np.zeros(self._header_size + self._n_vectors() * self._capacity)
        self._write_parameters()
        super().__init__()

    @property
    def reject_cost(self) -> float:
        """Cost of abstaining, where an error costs 1; may be set on a trained model."""
        return self._reject_cost

    @reject_cost.setter
    def reject_cost(self, value: float) -> None:
        self._reject_cost = checked_reject_cost(self.name, value)

    def _n_vectors(self) -> int:
        raise NotImplementedError

    def _write_parameters(self) -> None:
        """Write parameters to their header slots; a restored learner does so again."""
        raise NotImplementedError

    def _vectors(self) -> FloatArray:
        """Return float64[n_vectors, capacity], a view."""
        return self._arena[self._header_size :].reshape(self._n_vectors(), self._capacity)

    def _widen(self, n_features: int) -> None:
        wide = capacity(n_features)
        if wide == self._capacity:
            return
        old, kept = self._vectors(), min(wide, self._capacity)
        arena = np.zeros(self._header_size + self._n_vectors() * wide)
        arena[: self._header_size] = self._arena[: self._header_size]
        self._arena, self._capacity = arena, wide
        self._vectors()[:, :kept] = old[:, :kept]

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {"arena": self._arena}

    def _set_arrays(self, arrays: dict[str, NDArray[Any]]) -> None:
        super()._set_arrays(arrays)
        self._write_parameters()

    def even_score(self) -> float:
        """Return the ranking score at which both labels are equally likely: where the calibration line meets zero."""
        F = self._arena
        level = math.log(F[layout.SEEN + 1] + 0.5) - math.log(F[layout.SEEN] + 0.5) + F[layout.BIAS]
        slope, variance = 1.0 + F[layout.SLOPE], F[layout.SCORE_VARIANCE]
        if slope == 0.0 or variance <= 0.0:  # the same label for every score
            flat, variance = math.copysign(FARTHEST, -level), max(variance, 1.0)
        else:
            flat = min(max(-level / slope, -FARTHEST), FARTHEST)
        return float(F[layout.SCORE_MEAN] + math.copysign(math.expm1(abs(flat)), flat) * math.sqrt(variance))

    # Parameters

    def _checked(self, parameter: str, high: float, *, zero: bool = False) -> float:
        """Return a parameter that must be a number in (0, high], or in [0, high] where it may be zero."""
        value = getattr(self, parameter)
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not number or not (0.0 < value <= high or (zero and value == 0.0)):
            raise BadParameter(f"{self.name}: {parameter} must be in {'[' if zero else '('}0, {high:g}], got {value!r}")
        return float(value)

    def _checked_or_auto(self, parameter: str, high: float) -> float:
        """Return a parameter in (0, high], or 0 where it is ``"auto"``."""
        if getattr(self, parameter) == "auto":
            return 0.0
        try:
            return self._checked(parameter, high)
        except BadParameter as error:
            raise BadParameter(str(error).replace("must be", 'must be "auto" or')) from None

    def _checked_whole(self, parameter: str, low: int, high: int) -> int:
        """Return a parameter that must be a whole number in [low, high]."""
        value = getattr(self, parameter)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise BadParameter(f"{self.name}: {parameter} must be a whole number in [{low}, {high}], got {value!r}")
        return value
