"""Potentials: what a loss makes of the score of an unlabelled event."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from streamlearn.contracts import FloatArray
from streamlearn.errors import BadParameter

_Map = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, slots=True)
class Potential:
    """One loss of Balsubramani and Freund (2016, "Optimal binary classifier aggregation for general losses").

    Attributes
    ----------
    name : str
    kink : float
        Where the slope jumps from 0 to 1 (losses with a flat zone), 0 for smooth ones.
    curvature : float
        Bound of the second derivative; infinite with a kink.
    value, slope, prediction : functions float64[...] -> float64[...]
        Psi(m); Psi'(m), the hallucinated label; the minimax prediction g(m).
    """

    name: str
    kink: float
    curvature: float
    value: _Map
    slope: _Map
    prediction: _Map

    def smoothed(self, width: float) -> Potential:
        """Return this potential with its kink rounded off over `width` (Huber); itself where it has none."""
        if self.kink == 0.0:
            return self
        start = self.kink - width / 2.0

        def value(m: FloatArray) -> FloatArray:
            over = np.abs(m) - start
            inside = np.clip(over, 0.0, width)
            return np.asarray(self.kink + inside * inside / (2.0 * width) + np.maximum(over - width, 0.0))

        def slope(m: FloatArray) -> FloatArray:
            return np.asarray(np.sign(m) * np.clip((np.abs(m) - start) / width, 0.0, 1.0))

        return Potential(self.name, 0.0, 1.0 / width, value, slope, self.prediction)


def _clip(m: FloatArray) -> FloatArray:
    return np.asarray(np.clip(m, -1.0, 1.0))


def _hedged(kink: float) -> tuple[_Map, _Map, _Map]:
    """Return the maps of max(kink, |m|). |m| = kink counts as clipped: else the first member would teach nothing."""
    return (
        lambda m: np.maximum(kink, np.abs(m)),
        lambda m: np.where(np.abs(m) >= kink, np.sign(m), 0.0),
        lambda m: _clip(m / kink),
    )


def _square(m: FloatArray) -> FloatArray:
    return np.asarray(np.where(np.abs(m) <= 1.0, 0.5 * (1.0 + np.minimum(m * m, 1.0)), np.abs(m)))


def _half_tanh(m: FloatArray) -> FloatArray:
    return np.asarray(np.tanh(0.5 * m))


def _root(m: FloatArray) -> FloatArray:
    return np.asarray(m / np.sqrt(4.0 + m * m))


POTENTIALS = {
    found.name: found
    for found in (
        Potential("zero-one", 1.0, np.inf, *_hedged(1.0)),
        Potential("hinge", 2.0, np.inf, *_hedged(2.0)),
        Potential("square", 0.0, 1.0, _square, _clip, _clip),
        Potential("log", 0.0, 0.5, lambda m: np.abs(m) + 2.0 * np.log1p(np.exp(-np.abs(m))), _half_tanh, _half_tanh),
        Potential("exp", 0.0, 0.5, lambda m: np.sqrt(4.0 + m * m), _root, _root),
    )
}
"""The five losses: zero-one, hinge (1 - g), square, log, exp (that of AdaBoost)."""


def checked_potential(who: str, name: str) -> Potential:
    """Return the potential of this name, or raise BadParameter."""
    if not isinstance(name, str) or name not in POTENTIALS:
        raise BadParameter(f"{who}: potential must be one of {sorted(POTENTIALS)}, got {name!r}")
    return POTENTIALS[name]
