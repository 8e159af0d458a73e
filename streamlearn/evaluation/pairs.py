"""Counts of (positive, negative) pairs by the sign of their score difference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from streamlearn.contracts import CodeArray, FloatArray, Snapshot
from streamlearn.evaluation.scores import ScoreList, ScoreLists
from streamlearn.kernels.rank import HIGHER, LOWER, N_NEGATIVE, N_POSITIVE, N_SEEN, empty_window, window_add
from streamlearn.kernels.rank_lists import count_pairs

Number = int | float


@dataclass(frozen=True, slots=True)
class PairCounts:
    """Bounds on the counts of pairs; low and high are equal while the count is exact.

    Attributes
    ----------
    higher : tuple of two numbers
        Pairs whose positive scores higher than the negative by more than tau: at least, at most.
    lower : tuple of two numbers
        Pairs whose positive scores lower by more than tau.
    total : number
        All pairs.
    """

    higher: tuple[Number, Number]
    lower: tuple[Number, Number]
    total: Number


class PairCounter(Protocol):
    """Something that counts pairs over a stream of (code, score) events."""

    def add(self, codes: CodeArray, scores: FloatArray) -> None:
        """Take events in order (codes 1 or 0, no NaN)."""
        ...

    def counts(self) -> PairCounts:
        """Return the present counts; changes nothing."""
        ...

    def state(self) -> Snapshot:
        """Return the flat state; arrays are copies."""
        ...

    def restore(self, state: Snapshot) -> None:
        """Become what `state` describes; the counter must be fresh."""
        ...


class WindowPairs:
    """Exact pair counts over the last `window` events: O(log window) an event, O(1) a read, O(window) memory.

    Parameters
    ----------
    window : int
    tau : float
        Pairs whose scores differ by no more than this count neither way.
    """

    def __init__(self, window: int, tau: float) -> None:
        self.window = window
        self.tau = tau
        self._arrays = empty_window(window)

    def add(self, codes: CodeArray, scores: FloatArray) -> None:
        """Take events in order."""
        window_add(*self._arrays, codes, scores, self.tau)

    def counts(self) -> PairCounts:
        """Return the present counts."""
        counters = self._arrays[0].tolist()
        higher, lower = counters[HIGHER], counters[LOWER]
        return PairCounts((higher, higher), (lower, lower), counters[N_NEGATIVE] * counters[N_POSITIVE])

    def state(self) -> Snapshot:
        """Return the events of the window, oldest first: the counts follow from them."""
        n_seen = int(self._arrays[0][N_SEEN])
        slots = np.arange(max(0, n_seen - self.window), n_seen) % self.window
        return {"scores": self._arrays[1][slots + 1], "codes": self._arrays[-1][slots]}

    def restore(self, state: Snapshot) -> None:
        """Become what `state` describes."""
        self.add(np.ascontiguousarray(state["codes"], np.int8), np.ascontiguousarray(state["scores"], np.float64))


class StreamPairs(ScoreLists):
    """Pair counts over a whole stream, counted when the later event of the pair comes.

    Exact up to `exact_events` distinct scores, then between certified bounds: a new event is compared exactly with
    those of its own chunk, and with the lows and the highs of all earlier ones. With `fading` a pair counts the
    product of what its two events count.

    Parameters
    ----------
    exact_events, fading : see `ScoreLists`
    tau : float
        Pairs whose scores differ by no more than this count neither way.
    """

    def __init__(self, exact_events: int, fading: float | None, tau: float) -> None:
        super().__init__(exact_events, fading)
        self.tau = tau
        # Higher at least, higher at most, lower at least, lower at most. Python integers: 4e9 events make 2**62 pairs.
        self._pairs: list[Any] = [0, 0, 0, 0] if fading is None else [0.0, 0.0, 0.0, 0.0]

    def counts(self) -> PairCounts:
        """Return the present counts, the unfinished chunk included."""
        keys, mass = self.waiting()
        n = self._n_waiting
        new = self._new_pairs((keys, mass), n)
        pairs = [self._faded_twice(old, n) + more for old, more in zip(self._pairs, new, strict=True)]
        negatives, positives = (self._faded(self.mass[c], n).item() + mass[c].sum().item() for c in range(2))
        return PairCounts((pairs[0], pairs[1]), (pairs[2], pairs[3]), negatives * positives)

    def state(self) -> Snapshot:
        """Return the flat state; counts of pairs can pass 64 bits and are kept as text."""
        return {**super().state(), "pairs": " ".join(map(repr, self._pairs))}

    def restore(self, state: Snapshot) -> None:
        """Become what `state` describes."""
        super().restore(state)
        number = int if self.fading is None else float
        self._pairs = [number(pairs) for pairs in state["pairs"].split()]

    def _before_merge(self, new: ScoreList) -> None:
        # The lists have been faded to the end of the chunk already.
        more = self._new_pairs(new, 0)
        self._pairs = [
            self._faded_twice(old, self._n_waiting) + count for old, count in zip(self._pairs, more, strict=True)
        ]

    def _faded_twice(self, pairs: Any, n_events: int) -> Any:
        return pairs if self.fading is None else float(pairs * self._decay[n_events] * self._decay[n_events])

    def _new_pairs(self, new: ScoreList, n_fade: int) -> list[Any]:
        """Count the pairs of new events, among themselves and with the settled ones, these `n_fade` events older."""
        lows, highs = self.settled()
        inside = self._count(new, new)
        low = [self._faded(count, n_fade).item() for count in self._count(lows, new)]
        high = low if self.exact else [self._faded(count, n_fade).item() for count in self._count(highs, new)]
        # A new positive surely beats a negative whose high it beats; an old one surely beats by its low.
        return [
            inside[0].item() + high[0] + low[2],
            inside[0].item() + low[0] + high[2],
            inside[1].item() + low[1] + high[3],
            inside[1].item() + high[1] + low[3],
        ]

    def _count(self, old: ScoreList, new: ScoreList) -> Any:
        out = np.empty(4, self._dtype)
        count_pairs(out, *old, *new, self.tau)
        return out


def pair_counter(*, window: int | None, fading: float | None, exact_events: int, tau: float) -> PairCounter:
    """Return the counter for a metric's parameters (checked before)."""
    if window is not None:
        return WindowPairs(window, tau)
    return StreamPairs(exact_events, fading, tau)
