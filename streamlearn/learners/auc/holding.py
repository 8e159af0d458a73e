"""A reject rate that is held on the stream, for single events and for pairs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from streamlearn.contracts import CodeArray, FloatArray
from streamlearn.kernels import holding


class RateHold:
    """Finds the cost of rejecting single events, and the margin for pairs, that give a wanted rate now.

    Parameters
    ----------
    rate : float
        Share of events to abstain on, and of pairs of one event of each class to reject, in (0, 1].

    Attributes
    ----------
    R : float64[holding.SIZE]
        The state: two fading quantile sketches and the last scores of each class.
    cost, bar : float
        The present cost d of single events, 1/2 while none is to be rejected, and the margin within which pairs are.
    """

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self.R = np.zeros(holding.SIZE)
        self._remembered: list[FloatArray] | None = None
        holding.start(self.R, rate)
        self.refresh()

    def refresh(self) -> None:
        """Read cost and bar from the state anew."""
        self.cost = holding.event_cost(self.R)
        self.bar = holding.pair_bar(self.R)

    def take(self, codes: CodeArray, chances: FloatArray, scores: FloatArray) -> None:
        """Take the forecasts of events, made before they were learned, in order.

        Parameters
        ----------
        codes : int8[n]
            Events without a label (-1) change nothing.
        chances, scores : float64[n]
            P(positive) and ranking scores.
        """
        costs = np.empty(len(codes))
        holding.observe(self.R, self.rate, codes, chances, scores, costs, np.empty(len(codes)))
        self.refresh()
        if self._remembered is not None:
            self._remembered.append(costs)

    @contextmanager
    def remembering(self) -> Iterator[None]:
        """Remember the cost that each event was decided with, until the block ends."""
        self._remembered = []
        try:
            yield
        finally:
            self._remembered = None

    def costs(self, n: int) -> FloatArray:
        """Return the cost of each of n events: as remembered, else the present one."""
        if self._remembered is None:
            return np.full(n, self.cost)
        return np.concatenate([*self._remembered, np.empty(0)])

    def swap_classes(self) -> None:
        """Exchange the classes, of which only one was seen."""
        holding.swap_classes(self.R)
