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
"""Lists are rounded, and fade, behind chunks of this many events, so that neither depends on how the events came."""

MOST_HELD = 8
"""So many finished chunks are sorted and merged at once where nothing falls due before: a merge goes through all of
both lists, `exact_events` keys."""

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
        At least 64. Memory is about 24 bytes for each, up to 9 for each event of `MOST_HELD` chunks, and as much again
        as a list while it is merged.
    fading : float or None
        What an event still counts one event later; None: events count 1 for ever.
    """

    def __init__(self, exact_events: int, fading: float | None) -> None:
        self.exact_events = exact_events
        self.fading = fading
        self._dtype: type[Any] = np.int64 if fading is None else np.float64
        self._chunk = n = min(CHUNK, exact_events // 8)
        # Element k: what an event counts k events later; looked at only where events fade.
        self._decay = np.power(1.0 if fading is None else fading, np.arange(n + 1.0))
        self._held_scores = np.empty(n)
        self._held_codes = np.empty(n, np.int8)
        self._n_held = 0
        self._lists: list[ScoreList] = [(np.empty(0), np.zeros((2, 0), self._dtype))]
        self._mass: list[Any] = [0, 0] if fading is None else [0.0, 0.0]  # negatives and positives of the lists

    @property
    def exact(self) -> bool:
        """Whether no score was rounded so far."""
        self._settle_finished()
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
            n = min(len(codes) - start, self._chunk - self._n_held % self._chunk)
            end = self._n_held + n
            self._reserve(end)
            # Equal scores are one key, so both zeros must be written alike.
            np.add(scores[start : start + n], 0.0, out=self._held_scores[self._n_held : end])
            self._held_codes[self._n_held : end] = codes[start : start + n]
            self._n_held = end
            start += n
            if end % self._chunk == 0 and self._is_due():
                self._settle(end)

    def waiting(self) -> ScoreList:
        """Return the events of the unfinished chunk as a list; the newest counts 1."""
        self._settle_finished()
        return self._sorted(0, self._n_held)

    def settled(self) -> tuple[ScoreList, ScoreList]:
        """Return lows and highs of the finished chunks (their newest event counts 1): views, the same when exact."""
        self._settle_finished()
        return self._lists[0], self._lists[-1]

    def everything(self) -> tuple[ScoreList, ScoreList]:
        """Return lows and highs of all events, as copies."""
        new = self.waiting()
        n = self._n_held
        found = [merged((keys, self._faded(mass, n)), new)[0] for keys, mass in self._lists]
        return found[0], found[-1]

    def state(self) -> Snapshot:
        """Return the flat state; arrays are copies."""
        self._settle_finished()
        snapshot: Snapshot = {
            "n_lists": len(self._lists),
            "waiting_scores": self._held_scores[: self._n_held].copy(),
            "waiting_codes": self._held_codes[: self._n_held].copy(),
            "mass": np.array(self._mass, self._dtype),
        }
        for i, (keys, mass) in enumerate(self._lists):
            snapshot[f"keys_{i}"] = keys.copy()
            snapshot[f"mass_{i}"] = mass.copy()
        return snapshot

    def restore(self, state: Snapshot) -> None:
        """Become what `state` describes."""
        self._n_held = len(state["waiting_scores"])
        self._held_scores[: self._n_held] = state["waiting_scores"]
        self._held_codes[: self._n_held] = state["waiting_codes"]
        self._mass = np.asarray(state["mass"], self._dtype).tolist()
        self._lists = [
            (np.array(state[f"keys_{i}"], np.float64), np.array(state[f"mass_{i}"], self._dtype))
            for i in range(int(state["n_lists"]))
        ]

    def _finished(self, n: int) -> ScoreList:
        """Return the first `n` events that are held, which are about to be merged, as a list.

        The lists have faded to the last of them.
        """
        return self._sorted(0, n)

    def _is_due(self) -> bool:
        """Tell whether a list may have to be rounded, behind a finished chunk, or whether enough are held."""
        most = max(len(keys) for keys, _ in self._lists) + self._n_held
        return self.fading is not None or most > self._limit or self._n_held >= MOST_HELD * self._chunk

    @property
    def _limit(self) -> int:
        return self.exact_events if len(self._lists) == 1 else self.exact_events // 2

    def _settle_finished(self) -> None:
        """Merge the chunks that are finished; nothing that is told depends on when it is done."""
        finished = self._n_held - self._n_held % self._chunk
        if finished:
            self._settle(finished)

    def _settle(self, n: int) -> None:
        """Move the first `n` events that are held, whole chunks, into the lists, and round these when they are full."""
        if self.fading is not None:
            for _, mass in self._lists:
                mass[...] *= self._decay[n]
        new = self._finished(n)
        for c in range(2):
            self._mass[c] = (self._faded(self._mass[c], n) + new[1][c].sum()).item()
        self._lists = [merged(one, new)[0] for one in self._lists]
        left = self._n_held - n
        self._held_scores[:left] = self._held_scores[n : self._n_held]
        self._held_codes[:left] = self._held_codes[n : self._n_held]
        self._n_held = left
        if max(len(keys) for keys, _ in self._lists) > self._limit:
            self._lists = self._rounded(self._lists[0], self._lists[-1])

    def _sorted(self, start: int, stop: int) -> ScoreList:
        """Return events `start` ... `stop` of those held as a list; the last of them counts 1."""
        scores, n = self._held_scores[start:stop], stop - start
        # Where masses are counts, the order of equal scores is not seen; stable sorting takes three times as long.
        order = np.argsort(scores, kind="quicksort" if self.fading is None else "stable")
        keys = np.empty(n)
        mass = np.empty((2, n), self._dtype)
        weights = np.ones(n, np.int64) if self.fading is None else self._decay[n - 1 - order]
        size = collapse(keys, mass, scores[order], self._held_codes[start:stop][order], weights)
        return keys[:size], mass[:, :size]

    def _faded(self, mass: Any, n_events: int) -> Any:
        return mass if self.fading is None else mass * self._decay[n_events]

    def _rounded(self, lows: ScoreList, highs: ScoreList) -> list[ScoreList]:
        # Nearly always at most 2 total / limit + 1 groups remain: half of the exact_events / 2 that a list may have.
        limit = 8.0 * sum(self._mass) / self.exact_events
        found = []
        if lows is highs:
            highs = (lows[0].copy(), lows[1].copy())
        for rounded, (keys, views) in ((round_down, lows), (round_up, highs)):
            mass = np.ascontiguousarray(views)
            size, wider = rounded(keys, mass, len(keys), limit), limit
            while size > self.exact_events // 3:
                wider *= 2.0
                size = rounded(keys, mass, size, wider)
            found.append((keys[:size].copy(), mass[:, :size].copy()))
        return found

    def _reserve(self, n: int) -> None:
        """Make room to hold `n` events, twice as much as before so that short streams need little memory."""
        if n > len(self._held_scores):
            room = min(2 * len(self._held_scores), MOST_HELD * self._chunk)
            self._held_scores = np.append(self._held_scores, np.empty(room - len(self._held_scores)))
            self._held_codes = np.append(self._held_codes, np.empty(room - len(self._held_codes), np.int8))


def merged(old: ScoreList, new: ScoreList) -> tuple[ScoreList, list[Any]]:
    """Return one list of the events of both, and the pairs of one of each as `count_pairs` gives them."""
    pairs = np.zeros(4, new[1].dtype)
    if not len(old[0]):
        return new, pairs.tolist()
    room = len(old[0]) + len(new[0])
    keys, mass = np.empty(room), np.empty((2, room), new[1].dtype)
    size = merge(pairs, keys, mass, old[0], old[1][0], old[1][1], new[0], new[1][0], new[1][1])
    return (keys[:size], mass[:, :size]), pairs.tolist()


def sums_of(scores: ScoreList) -> Mass:
    """Return the mass of each class at the first so many scores of a list: [2, n + 1]."""
    sums = np.zeros((2, len(scores[0]) + 1), scores[1].dtype)
    np.cumsum(scores[1], axis=1, out=sums[:, 1:])
    return sums
