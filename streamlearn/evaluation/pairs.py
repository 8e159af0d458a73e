"""Counts of (positive, negative) pairs by the sign of their score difference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from streamlearn.contracts import CodeArray, FloatArray, Snapshot
from streamlearn.evaluation.scores import ScoreList, ScoreLists, merged, sums_of
from streamlearn.kernels.rank import HIGHER, LOWER, N_NEGATIVE, N_POSITIVE, N_SEEN, empty_window, window_add
from streamlearn.kernels.rank_lists import count_inside, count_pairs, count_pairs_beyond

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
    those that came since the lists were last merged, and with the lows and the highs of all earlier ones. Each event
    is counted once, at the next read or merge behind it, so that a value can be read often.

    Parameters
    ----------
    exact_events : see `ScoreLists`
    tau : float
        Pairs whose scores differ by no more than this count neither way.
    """

    def __init__(self, exact_events: int, tau: float) -> None:
        super().__init__(exact_events, None)
        self.tau = tau
        # Higher at least, higher at most, lower at least, lower at most. Python integers: 4e9 events make 2**62 pairs.
        self._pairs = [0, 0, 0, 0]
        self._n_counted = 0  # of the events that are held: the first so many
        self._recent = self._sorted(0, 0)  # these as a list
        self._older: list[ScoreList] = []  # the lists with their `sums_of`, once they are asked for
        self._at_chunk = self._pairs  # the counts behind the last finished chunk

    def counts(self) -> PairCounts:
        """Return the present counts, the unfinished chunk included."""
        for n in (self._n_held - self._n_held % self._chunk, self._n_held):
            if self._n_counted < n:
                self._count(n)
        negatives, positives = (self._mass[c] + int(self._recent[1][c].sum()) for c in range(2))
        return PairCounts((self._pairs[0], self._pairs[1]), (self._pairs[2], self._pairs[3]), negatives * positives)

    def state(self) -> Snapshot:
        """Return the flat state; counts of pairs can pass 64 bits and are kept as text."""
        return {**super().state(), "pairs": " ".join(map(repr, self._at_chunk))}

    def restore(self, state: Snapshot) -> None:
        """Become what `state` describes."""
        super().restore(state)
        self._pairs = self._at_chunk = [int(pairs) for pairs in state["pairs"].split()]
        self._n_counted, self._recent, self._older = 0, self._sorted(0, 0), []

    def _finished(self, n: int) -> ScoreList:
        if self._n_counted < n:
            self._count(n)
        if self._n_counted == n:
            new, stop = self._recent, n
        else:
            new, stop = self._sorted(0, n), self._n_counted
        self._n_counted, self._recent, self._older = stop - n, self._sorted(n, stop), []
        return new

    def _count(self, n: int) -> None:
        """Count the pairs of the events up to the n-th that is held."""
        new = self._sorted(self._n_counted, n)
        if not self._older:
            self._older = [(one[0], sums_of(one)) for one in self._lists]
        low = pairs_of(self._older[0], new, self.tau)
        high = low if len(self._older) == 1 else pairs_of(self._older[1], new, self.tau)
        both, recent = merged(self._recent, new)
        if self.tau != 0.0:
            recent = pairs_of((self._recent[0], sums_of(self._recent)), new, self.tau)
        higher, lower = pairs_inside(new, self.tau)
        surely = higher + recent[0] + recent[2], lower + recent[1] + recent[3]
        self._pairs = [old + more for old, more in zip(self._pairs, between(surely, low, high), strict=True)]
        self._n_counted, self._recent = n, both
        if n % self._chunk == 0:
            self._at_chunk = self._pairs


class FadingPairs(ScoreLists):
    """Pair counts over a whole stream in which a pair counts the product of what its two events count.

    Exact up to `exact_events` distinct scores, then between certified bounds, as in `StreamPairs`.

    Parameters
    ----------
    exact_events, fading : see `ScoreLists`
    tau : float
        Pairs whose scores differ by no more than this count neither way.
    """

    def __init__(self, exact_events: int, fading: float, tau: float) -> None:
        super().__init__(exact_events, fading)
        self.tau = tau
        self._pairs = [0.0, 0.0, 0.0, 0.0]  # as in `StreamPairs`

    def counts(self) -> PairCounts:
        """Return the present counts, the unfinished chunk included."""
        keys, mass = self.waiting()
        n = self._n_held
        pairs = self._with(self._pairs, (keys, mass), n, n)
        negatives, positives = (self._faded(self._mass[c], n).item() + mass[c].sum().item() for c in range(2))
        return PairCounts((pairs[0], pairs[1]), (pairs[2], pairs[3]), negatives * positives)

    def state(self) -> Snapshot:
        """Return the flat state."""
        return {**super().state(), "pairs": " ".join(map(repr, self._pairs))}

    def restore(self, state: Snapshot) -> None:
        """Become what `state` describes."""
        super().restore(state)
        self._pairs = [float(pairs) for pairs in state["pairs"].split()]

    def _finished(self, n: int) -> ScoreList:
        new = super()._finished(n)
        self._pairs = self._with(self._pairs, new, n, 0)
        return new

    def _with(self, pairs: list[float], new: ScoreList, n: int, n_fade: int) -> list[float]:
        """Return the counts `n` events later, with those of `new` and of the lists, which are `n_fade` events older."""
        low, high = (self._crossed(k, new, n_fade) for k in (0, -1))
        more = between(pairs_inside(new, self.tau), low, high)
        return [float(old * self._decay[n] * self._decay[n]) + count for old, count in zip(pairs, more, strict=True)]

    def _crossed(self, k: int, new: ScoreList, n_fade: int) -> list[float]:
        old = self._lists[k]
        return [float(self._faded(count, n_fade)) for count in pairs_of((old[0], sums_of(old)), new, self.tau)]


def between(inside: Sequence[Any], low: Sequence[Any], high: Sequence[Any]) -> list[Any]:
    """Return higher at least and at most, lower at least and at most, of new events.

    Parameters
    ----------
    inside : higher and lower of pairs whose both events are known exactly
    low, high : of pairs with the lows and with the highs (`pairs_of`)
    """
    higher, lower = inside
    # A new positive surely beats a negative whose high it beats; an old one surely beats by its low.
    return [
        higher + high[0] + low[2],
        higher + low[0] + high[2],
        lower + low[1] + high[3],
        lower + high[1] + low[3],
    ]


def pairs_inside(new: ScoreList, tau: float) -> list[Any]:
    """Return how many pairs of a list have the higher positive, and how many the lower one."""
    sums = sums_of(new)
    if tau != 0.0:
        return pairs_of((new[0], sums), new, tau)[:2]
    out = np.empty(2, new[1].dtype)
    count_inside(out, sums[0], new[1][1])
    return out.tolist()


def pairs_of(old: ScoreList, new: ScoreList, tau: float) -> list[Any]:
    """Return the pairs of an event of one list and one of another, as `count_pairs` gives them.

    Parameters
    ----------
    old : scores of a list, and their `sums_of`
    new : another list
    tau : float
    """
    out = np.empty(4, new[1].dtype)
    keys, (neg, pos) = new
    if tau == 0.0:
        count_pairs(out, *old, keys, neg, pos)
    else:
        count_pairs_beyond(out, *old, keys, neg, pos, tau)
    return out.tolist()


def pair_counter(*, window: int | None, fading: float | None, exact_events: int, tau: float) -> PairCounter:
    """Return the counter for a metric's parameters (checked before)."""
    if window is not None:
        return WindowPairs(window, tau)
    return StreamPairs(exact_events, tau) if fading is None else FadingPairs(exact_events, fading, tau)
