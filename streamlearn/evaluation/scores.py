"""The scores of both classes since the start of a stream, in bounded memory: exact first, then between two bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import CodeArray, FloatArray, Snapshot
from streamlearn.kernels.rank_lists import collapse, merge, round_down, round_up

Mass = NDArray[Any]
ScoreList = tuple[FloatArray, Mass]
"""Distinct scores, float64[n] ascending, and what the events at each count, [2, n]: negatives, positives."""

CHUNK = 4096
"""Events are sorted and merged in chunks of this many: the merge, O(exact_events), then costs little an event."""

DEFAULT_EXACT_EVENTS = 80_000
"""Distinct scores kept one by one: at 24 bytes each, 1.9 MB."""


class ScoreLists:
    """Every (code, score) seen, as a sorted list of distinct scores; when it is full, as two shorter lists.

    Up to `exact_events` distinct scores nothing is lost. Then each event goes into two lists: in the *lows* at a
    score not above its own, in the *highs* at one not below. When a list of at most ``exact_events / 2`` keys is
    full, neighbouring keys are joined into groups of at most 8 events in `exact_events` of all seen; heavier keys
    (ties) stay exact. New scores always enter exactly, wherever they fall, so that the lists follow a distribution
    that moves.

    Parameters
    ----------
    exact_events : int
        At least 64. Memory is about 24 bytes for each, and 37 kB.
    fading : float or None
        What an event still counts one event later; None: events count 1 for ever.
    """

    def __init__(self, exact_events: int, fading: float | None) -> None:
        self.exact_events = exact_events
        self.fading = fading
        self._dtype: type[Any] = np.int64 if fading is None else np.float64
        n = min(CHUNK, exact_events // 8)
        # Element k: what an event counts k events later.
        self._decay = np.ones(n + 1, np.int64) if fading is None else np.power(fading, np.arange(n + 1.0))
        self._waiting_scores = np.empty(n)
        self._waiting_codes = np.empty(n, np.int8)
        self._n_waiting = 0
        self._sizes = [0]
        self._lists: list[ScoreList] = [self._blank(2 * n)]
        self.mass: list[Any] = [0, 0] if fading is None else [0.0, 0.0]
        """Negatives and positives of the settled chunks."""

    @property
    def exact(self) -> bool:
        """Whether no score was rounded so far."""
        return len(self._lists) == 1

    def add(self, codes: CodeArray, scores: FloatArray) -> None:
        """Take events in order.

        Parameters
        ----------
        codes : int8[n]
            1 or 0.
        scores : float64[n]
            No NaN.
        """
        start = 0
        while start < len(codes):
            n = min(len(codes) - start, len(self._waiting_codes) - self._n_waiting)
            end = self._n_waiting + n
            # Equal scores are one key, so both zeros must be written alike.
            np.add(scores[start : start + n], 0.0, out=self._waiting_scores[self._n_waiting : end])
            self._waiting_codes[self._n_waiting : end] = codes[start : start + n]
            self._n_waiting = end
            start += n
            if end == len(self._waiting_codes):
                self._settle()

    def waiting(self) -> ScoreList:
        """Return the events of the unfinished chunk as a list; the newest counts 1."""
        n = self._n_waiting
        # Where masses are counts, the order of equal scores is not seen; stable sorting takes three times as long.
        order = np.argsort(self._waiting_scores[:n], kind="quicksort" if self.fading is None else "stable")
        keys = np.empty(n)
        mass = np.empty((2, n), self._dtype)
        weights = self._decay[n - 1 - order]
        size = collapse(keys, mass, self._waiting_scores[order], self._waiting_codes[order], weights)
        return keys[:size], mass[:, :size]

    def settled(self) -> tuple[ScoreList, ScoreList]:
        """Return lows and highs of the finished chunks (their newest event counts 1): views, the same when exact."""
        views = [(keys[:size], mass[:, :size]) for (keys, mass), size in zip(self._lists, self._sizes, strict=True)]
        return views[0], views[-1]

    def everything(self) -> tuple[ScoreList, ScoreList]:
        """Return lows and highs of all events, as copies."""
        keys, mass = self.waiting()
        found = []
        for low_or_high in self.settled() if not self.exact else self.settled()[:1]:
            size = len(low_or_high[0])
            all_keys, all_mass = self._blank(size + len(keys))
            all_keys[:size] = low_or_high[0]
            all_mass[:, :size] = self._faded(low_or_high[1], self._n_waiting)
            size = merge(all_keys, all_mass, size, keys, mass)
            found.append((all_keys[:size], all_mass[:, :size]))
        return found[0], found[-1]

    def state(self) -> Snapshot:
        """Return the flat state; arrays are copies."""
        snapshot: Snapshot = {
            "n_lists": len(self._lists),
            "waiting_scores": self._waiting_scores[: self._n_waiting].copy(),
            "waiting_codes": self._waiting_codes[: self._n_waiting].copy(),
            "mass": np.array(self.mass, self._dtype),
        }
        for i, (keys, mass) in enumerate(self.settled()[: len(self._lists)]):
            snapshot[f"keys_{i}"] = keys.copy()
            snapshot[f"mass_{i}"] = mass.copy()
        return snapshot

    def restore(self, state: Snapshot) -> None:
        """Become what `state` describes."""
        self._n_waiting = len(state["waiting_scores"])
        self._waiting_scores[: self._n_waiting] = state["waiting_scores"]
        self._waiting_codes[: self._n_waiting] = state["waiting_codes"]
        self.mass = np.asarray(state["mass"], self._dtype).tolist()
        self._lists, self._sizes = [], []
        for i in range(int(state["n_lists"])):
            size = len(state[f"keys_{i}"])
            keys, mass = self._blank(size)
            keys[:] = state[f"keys_{i}"]
            mass[:] = state[f"mass_{i}"]
            self._lists.append((keys, mass))
            self._sizes.append(size)

    def _before_merge(self, new: ScoreList) -> None:
        """Use a finished chunk before it joins the lists; these are faded to its last event already."""

    def _settle(self) -> None:
        """Move the finished chunk into the lists, and round these when they are full."""
        keys, mass = self.waiting()
        n = self._n_waiting
        if self.fading is not None:
            for _, settled in self._lists:
                settled[...] *= self._decay[n]
        self._before_merge((keys, mass))
        self._n_waiting = 0
        for c in range(2):
            self.mass[c] = (self._faded(self.mass[c], n) + mass[c].sum()).item()
        for i, size in enumerate(self._sizes):
            self._reserve(i, size + len(keys))
            self._sizes[i] = merge(*self._lists[i], size, keys, mass)
        if self.exact and self._sizes[0] > self.exact_events:
            self._split()
        elif not self.exact and max(self._sizes) > self.exact_events // 2:
            self._round()

    def _faded(self, mass: Any, n_events: int) -> Any:
        return mass * self._decay[n_events]

    def _split(self) -> None:
        """Go from one exact list to two rounded ones."""
        keys, mass = self._lists[0]
        self._lists.append((keys.copy(), mass.copy()))
        self._sizes.append(self._sizes[0])
        self._round()
        capacity = self.exact_events // 2 + len(self._waiting_codes)
        for i, size in enumerate(self._sizes):
            keys, mass = self._lists[i]
            self._lists[i] = self._blank(capacity)
            self._lists[i][0][:size] = keys[:size]
            self._lists[i][1][:, :size] = mass[:, :size]

    def _round(self) -> None:
        # Nearly always at most 2 total / limit + 1 groups remain: half of the exact_events / 2 that a list may have.
        limit = 8.0 * sum(self.mass) / self.exact_events
        for i, rounded in enumerate((round_down, round_up)):
            wider = limit
            self._sizes[i] = rounded(*self._lists[i], self._sizes[i], wider)
            while self._sizes[i] > self.exact_events // 3:
                wider *= 2.0
                self._sizes[i] = rounded(*self._lists[i], self._sizes[i], wider)

    def _reserve(self, i: int, size: int) -> None:
        """Give list i room for `size` keys, twice as much as before so that short streams need little memory."""
        keys, mass = self._lists[i]
        if size <= len(keys):
            return
        most = (self.exact_events if self.exact else self.exact_events // 2) + len(self._waiting_codes)
        grown = self._blank(max(size, min(2 * size, most)))
        grown[0][: len(keys)] = keys
        grown[1][:, : len(keys)] = mass
        self._lists[i] = grown

    def _blank(self, capacity: int) -> ScoreList:
        return np.empty(capacity), np.zeros((2, capacity), self._dtype)
