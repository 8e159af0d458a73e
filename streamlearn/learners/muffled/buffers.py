"""What a semi-supervised learner keeps of its stream: labelled events, a reservoir of the others, ranks, counters."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import CodeArray, FloatArray, IntArray
from streamlearn.errors import BadSnapshot
from streamlearn.kernels import arrival
from streamlearn.kernels import muffled as kernels
from streamlearn.learners.learner import fitting
from streamlearn.learners.muffled.ranks import LEAST, WINDOW

RESERVOIRS = {"uniform": kernels.UNIFORM, "biased": kernels.BIASED, "sliding": kernels.SLIDING}
_FIRST_ROOM = 64
_NEVER = 2**62


class Buffers:
    """Buffers of a stream, and when the next refit is due.

    Parameters
    ----------
    labelled_buffer, unlabelled_buffer : int
        Greatest numbers of rows.
    reservoir : str
        Key of `RESERVOIRS`.
    refit_every, seed : int
    refit_share : float
    ranked : bool
        Rows are kept with their ranks among the unlabelled ones before them: they are twice as wide.
    """

    def __init__(
        self,
        labelled_buffer: int,
        unlabelled_buffer: int,
        reservoir: str,
        refit_every: int,
        seed: int,
        refit_share: float,
        *,
        ranked: bool,
    ) -> None:
        sizes = [labelled_buffer, unlabelled_buffer, RESERVOIRS[reservoir], refit_every, seed]
        self._sizes = np.array(sizes, dtype=np.int64)
        self._share = refit_share
        self._width = 0
        self.ranked = ranked
        self.counters = np.zeros(kernels.N_COUNTERS, dtype=np.int64)
        self._labelled = np.zeros((0, 0))
        self._codes = np.zeros(0, dtype=np.int8)
        self._unlabelled = np.zeros((0, 0))
        self._window = np.zeros((WINDOW if ranked else 0, 0))
        self._seen = np.zeros(1, dtype=np.int64)

    def count(self, which: int) -> int:
        """Return one of the counters."""
        return int(self.counters[which])

    @property
    def n_labelled(self) -> int:
        """Labelled rows kept."""
        return min(self.count(kernels.LABELLED), int(self._sizes[0]))

    @property
    def n_unlabelled(self) -> int:
        """Unlabelled rows kept."""
        return min(self.count(kernels.UNLABELLED), int(self._sizes[1]))

    @property
    def both_classes(self) -> bool:
        """At least two labels of either class are kept."""
        return bool(self.counters[[kernels.POSITIVE, kernels.NEGATIVE]].min() >= kernels.LEAST_OF_A_CLASS)

    @property
    def prior(self) -> float:
        """Score of every event while there is no model."""
        positive, negative = self.counters[kernels.POSITIVE], self.counters[kernels.NEGATIVE]
        return float((positive - negative) / (positive + negative + 1))

    @property
    def unlabelled(self) -> FloatArray:
        """The unlabelled rows, as wide as they are kept."""
        return self._unlabelled[: self.n_unlabelled]

    def labelled_in_order(self) -> tuple[FloatArray, FloatArray]:
        """Return labelled rows in the order of the stream, as wide as they are kept, and labels 1 / -1."""
        total, size = self.count(kernels.LABELLED), int(self._sizes[0])
        slots = np.arange(max(total - size, 0), total) % size
        return self._labelled[slots], np.where(self._codes[slots] == 1, 1.0, -1.0)

    def set_refits(self, every: int | None) -> None:
        """Say how many new labels a refit takes at least; None = no refits."""
        self._sizes[3] = _NEVER if every is None else every

    def widen(self, n_features: int) -> None:
        """Make room for new features: absent so far, they were 0, of rank 0."""
        more, halves = n_features - self._width, 2 if self.ranked else 1
        if more <= 0:
            return
        self._labelled = _wider(self._labelled, self._width, more, halves)
        self._unlabelled = _wider(self._unlabelled, self._width, more, halves)
        self._window = _wider(self._window, self._width, more, 1)
        self._width = n_features

    def swap_classes(self) -> None:
        """Exchange the two classes."""
        self._codes[: self.n_labelled] = 1 - self._codes[: self.n_labelled]
        c = self.counters
        c[kernels.POSITIVE], c[kernels.NEGATIVE] = int(c[kernels.NEGATIVE]), int(c[kernels.POSITIVE])

    def arriving(self, X_test: FloatArray, X_learn: FloatArray, codes: CodeArray) -> tuple[FloatArray, FloatArray]:
        """Return both kinds of rows as models see them and as they are kept; the window of ranks moves on."""
        if not self.ranked:
            return X_test, X_learn
        two = X_test is not X_learn
        learn_ranks = np.empty(X_learn.shape)
        test_ranks = np.empty(X_test.shape) if two else learn_ranks
        arrival.arrival_ranks(X_test, X_learn, codes, self._window, self._seen, LEAST, two, test_ranks, learn_ranks)
        learn = np.hstack([X_learn, learn_ranks])
        return (np.hstack([X_test, test_ranks]) if two else learn), learn

    def seen_now(self, X: FloatArray) -> FloatArray:
        """Return rows as models see them at this moment."""
        if not self.ranked:
            return X
        ranks = np.empty(X.shape)
        arrival.ranks_now(X, self._window, self._seen[0], LEAST, ranks)
        return np.hstack([X, ranks])

    def absorb(self, rows: FloatArray, codes: CodeArray, at: int, *, stop_at_label: bool) -> int:
        """Keep rows from `at` on until a refit or a swap is due; return where to go on."""
        return kernels.absorb(
            rows,
            codes,
            at,
            stop_at_label,
            self._labelled,
            self._codes,
            self._unlabelled,
            self.counters,
            self._sizes,
            self._share,
        )

    def make_room(self, n_rows: int) -> None:
        """Let the buffers grow as they fill: most streams of few labels never need all of them."""
        most_labelled, most_unlabelled = int(self._sizes[0]), int(self._sizes[1])
        labelled, unlabelled = (self.count(which) + n_rows for which in (kernels.LABELLED, kernels.UNLABELLED))
        if labelled > len(self._codes) < most_labelled:
            room = _room(len(self._codes), labelled, most_labelled)
            self._labelled = _longer(self._labelled, room)
            self._codes = np.concatenate([self._codes, np.zeros(room - len(self._codes), dtype=np.int8)])
        if unlabelled > len(self._unlabelled) < most_unlabelled:
            self._unlabelled = _longer(self._unlabelled, _room(len(self._unlabelled), unlabelled, most_unlabelled))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of the state."""
        arrays: dict[str, NDArray[Any]] = {
            "counters": self.counters,
            "labelled": self._labelled[: self.n_labelled],
            "codes": self._codes[: self.n_labelled],
            "unlabelled": self.unlabelled,
        }
        return arrays | ({"window": self._window, "seen": self._seen} if self.ranked else {})

    def set_arrays(self, who: str, arrays: dict[str, NDArray[Any]]) -> None:
        """Take what `arrays` gave, checked; the width is known.

        Raises
        ------
        BadSnapshot
        """
        self.counters[...] = fitting(who, "counters", arrays, self.counters)
        if (self.counters < 0).any() or self.counters[kernels.DUE] != 0:
            raise BadSnapshot(f"{who}: counters of the saved state must not be negative, and no refit due")
        n, N, width = self.n_labelled, self.n_unlabelled, self._width * (2 if self.ranked else 1)
        self._labelled = fitting(who, "labelled", arrays, np.empty((n, width))).copy()
        self._codes = fitting(who, "codes", arrays, np.empty(n, dtype=np.int8)).copy()
        self._unlabelled = fitting(who, "unlabelled", arrays, np.empty((N, width))).copy()
        if self.ranked:
            self._window[...] = fitting(who, "window", arrays, self._window)
            self._seen[...] = fitting(who, "seen", arrays, self._seen)
        positive = int((self._codes == 1).sum())
        found: IntArray = self.counters[[kernels.POSITIVE, kernels.NEGATIVE]]
        if found.tolist() != [positive, n - positive] or self._seen[0] < 0:
            raise BadSnapshot(f"{who}: the labels of the saved state do not fit its counters")


def _wider(rows: FloatArray, width: int, more: int, halves: int) -> FloatArray:
    gap = np.zeros((len(rows), more))
    parts = [part for k in range(halves) for part in (rows[:, k * width : (k + 1) * width], gap)]
    return np.hstack(parts)


def _room(have: int, needed: int, most: int) -> int:
    return min(most, max(needed, 2 * have, _FIRST_ROOM))


def _longer(rows: FloatArray, n_rows: int) -> FloatArray:
    return np.concatenate([rows, np.zeros((n_rows - len(rows), rows.shape[1]))])
