"""Labels that come late: events wait after their forecast, and are learned in the order of their labels.

One engine serves `prequential` and the runtime. What happens is a sequence of forecasts (F) and lessons (L) that does
not depend on the cut into blocks; neighbours are taken together: a run ``F F F`` in one call, and ``F L F L L F L`` in
one call of pairs "forecast row i of these, then learn row i of those", where a lesson without a forecast before it is
paired with a forecast nobody asked for (it changes nothing).
"""

from __future__ import annotations

import heapq
import itertools
import json
from dataclasses import replace

import numpy as np

from streamlearn.contracts import FloatArray, IntArray, Snapshot, Tested
from streamlearn.evaluation.blocks import Block
from streamlearn.evaluation.forecasts import (
    Due,
    Forecast,
    aligned,
    all_names,
    due_together,
    joined,
    no_codes,
    none_due,
    put_together,
    with_codes,
)
from streamlearn.evaluation.keeping import forecasts_from_state, forecasts_to_state
from streamlearn.evaluation.memory import Memory
from streamlearn.evaluation.verbs import LateLearner
from streamlearn.snapshot import below, nest

MOST_JOINED = 4096
"""Waiting stretches are put together up to this many events: else small blocks would leave ever smaller pieces."""
FIRST_LOOK = 64
"""How far to look for the first event whose label comes before its block is through; then four times as far."""


class DelayedLearner:
    """Runs a learner on a stream whose labels come late.

    Parameters
    ----------
    learner : LateLearner
    delay : int
        For `run` without times: row t is forecast by a model that has learned rows 0 ... t - delay - 1; then row
        t - delay is learned. 0 is test then learn.
    remember : int
        How many learned events are kept for a learner that takes the place of this one.
    """

    def __init__(self, learner: LateLearner, delay: int = 0, *, remember: int = 0) -> None:
        self.learner = learner
        self.delay = delay
        self._memory = Memory(remember)
        self._n_made = 0
        self._runs: dict[int, Forecast] = {}  # each in the order in which its labels come
        self._heap: list[tuple[float, int, int]] = []  # (first label, its event, run)
        self._last_run = -1
        self._n_runs = 0

    def __len__(self) -> int:
        return sum(map(len, self._runs.values()))

    def run(self, block: Block, ready: FloatArray | None = None, now: FloatArray | None = None) -> tuple[Tested, Due]:
        """Forecast the rows of a block, learning before each of them the events whose labels have come.

        Parameters
        ----------
        block : Block
        ready : float64[n_events], optional
            When the label of each row comes; infinity: never. By default `delay` events later.
        now : float64[n_events + 1], optional
            When each row comes, never falling, and how late it is behind the last one: an event is learned before the
            first row with ``now >= ready``.

        Returns
        -------
        Tested
            The forecasts of `block`, codes -1 unless they were learned at once.
        Due
            The events that were learned, in order.
        """
        n = len(block)
        if ready is None or now is None:
            now = np.arange(self._n_made, self._n_made + n + 1, dtype=np.float64)
            ready = now[1:] + float(self.delay)
        ready = np.maximum(ready, now[:-1])  # a label that is there before its event is learned behind it
        if not n:
            return joined([])[0], none_due()
        if not self._runs and (ready <= now[1:]).all():
            return self._test_then_learn(block)
        made: list[Tested] = []
        due: list[Due] = []
        start = 0
        while start < n:
            stop = _stop(ready, now, start)
            tested, learned = self._step(block.rows(start, stop), ready[start:stop], now[start : stop + 1])
            made.append(tested)
            due.append(learned)
            start = stop
        due.append(self._learn(self._take(now[n], np.inf)))
        return joined([(part, part.codes[:0]) for part in made])[0], due_together([part for part in due if len(part)])

    def finish(self) -> Due:
        """Learn the events that still wait, in order, as no more input comes; those whose label never comes without."""
        waiting = self._take(np.inf, np.inf)
        if waiting is None:
            return none_due()
        never = np.isinf(waiting.ready)
        if never.any():
            labels = waiting.block.labels.astype(object)
            labels[never] = None
            waiting = replace(waiting, block=replace(waiting.block, labels=labels))
        return self._learn(waiting)

    def forecast(self, block: Block) -> Forecast:
        """Forecast rows whose labels the caller brings to `learn`, at any time and in any order."""
        tested, memo = self.learner.forecast_columns(block.names, block.values)
        return Forecast(block, tested, memo, self._count(len(block)), np.full(len(block), np.inf))

    def learn(self, late: Forecast, *, with_memo: bool = True) -> Due:
        """Learn rows that were forecast by `forecast`, their labels being in their block now.

        Parameters
        ----------
        late : Forecast
        with_memo : bool
            False where another learner made the forecasts: this one then makes a memo of each row as it learns it.
        """
        return self._learn(late, with_memo=with_memo)

    def replace_learner(self, learner: LateLearner) -> None:
        """Go on with another learner: it learns the remembered events and gets its own memos for those waiting."""
        self.learner = learner
        for block in self._memory.blocks():
            learner.test_then_learn_columns(block.names, block.values, block.labels)
        for key, run in self._runs.items():
            memo = learner.forecast_columns(run.block.names, run.block.values)[1]
            self._runs[key] = replace(run, memo=memo)

    def with_waiting(self, block: Block) -> Block:
        """Return the waiting events and those of `block` as one block: what the learner will have to take."""
        blocks = [*(run.block for run in self._runs.values()), block]
        names = all_names(blocks)
        values = np.concatenate([aligned(part, names) for part in blocks])
        return Block(names, values, np.concatenate([part.labels.astype(object) for part in blocks]))

    # -- forecasting and learning --------------------------------------------------------------------------------------
    def _test_then_learn(self, block: Block) -> tuple[Tested, Due]:
        tested = self.learner.test_then_learn_columns(block.names, block.values, block.labels)
        self._memory.add(block)
        made_at = self._count(len(block))
        return tested, Due(tested, block.labels, made_at, made_at + 1, made_at)

    def _count(self, n: int) -> IntArray:
        self._n_made += n
        return np.arange(self._n_made - n, self._n_made)

    def _step(self, block: Block, ready: FloatArray, now: FloatArray) -> tuple[Tested, Due]:
        """Take rows of which none is due before the last of them was forecast."""
        late = self._take(now[-1], float(ready.min()))
        if late is None:
            tested, memo = self.learner.forecast_columns(block.names, block.values)
            due = none_due()
        else:
            before = np.searchsorted(now, late.ready)  # each is learned before this row
            tested, memo, due = self._interleave(block, late, before)
        self._keep(_sorted(Forecast(block, tested, memo, self._count(len(block)), ready)))
        return tested, due

    def _interleave(self, block: Block, late: Forecast, before: IntArray) -> tuple[Tested, FloatArray, Due]:
        """Forecast the rows of `block`, each late event learned before the row of its place in `before`."""
        lessons = np.bincount(before, minlength=len(block) + 1)
        alone = lessons[1:] == 0  # a forecast that no lesson follows
        parts: list[tuple[Tested, FloatArray]] = []
        due: list[Due] = []
        taken = 0
        if lessons[0]:
            due.append(self._learn(late.rows(slice(0, int(lessons[0])))))
            taken = int(lessons[0])
        edges = [0, *(np.flatnonzero(np.diff(alone)) + 1).tolist(), len(block)]
        for row, stop in itertools.pairwise(edges):
            part = block.rows(row, stop)
            if alone[row]:
                parts.append(self.learner.forecast_columns(part.names, part.values))
                continue
            counts = lessons[row + 1 : stop + 1]
            told = late.rows(slice(taken, taken + int(counts.sum())))
            tested, memo, learned = self._pairs(part, told, counts, self._n_made + row)
            parts.append((tested, memo))
            due.append(learned)
            taken += len(told)
        tested = joined([(part, part.codes[:0]) for part, _ in parts])[0]
        return tested, np.concatenate([memo for _, memo in parts]), due_together(due)

    def _pairs(self, test: Block, late: Forecast, counts: IntArray, n_made: int) -> tuple[Tested, FloatArray, Due]:
        """Forecast row i of `test`, then learn the next ``counts[i] >= 1`` of `late`, for each i, in one call."""
        names = all_names([test, late.block])
        test_values, late_values = aligned(test, names), aligned(late.block, names)
        first = np.cumsum(counts) - counts
        came_at = n_made + 1 + np.repeat(np.arange(len(test)), counts)
        swap_at = came_at.copy()
        swap_at[first] -= 1  # classes are exchanged before the forecast of the same pair
        whole = len(test) == len(late)
        if not whole:
            padded = late_values.copy()
            padded[first] = test_values
            test_values = padded
        made, memo = self.learner.test_then_learn_late(names, test_values, late_values, late.block.labels, late.memo)
        self._memory.add(late.block)
        due = Due(with_codes(late.tested, made.codes), late.block.labels, late.made_at, came_at, swap_at)
        if not whole:
            made, memo = Forecast(late.block, made, memo, late.made_at, late.ready).rows(first).tested, memo[first]
        return with_codes(made, no_codes(len(test))), memo, due

    def _learn(self, late: Forecast | None, *, with_memo: bool = True) -> Due:
        """Learn events that nothing is forecast in between."""
        if late is None:
            return none_due()
        block = late.block
        memo = late.memo if with_memo else None
        made, _ = self.learner.test_then_learn_late(block.names, block.values, block.values, block.labels, memo)
        self._memory.add(block)
        now = np.full(len(late), self._n_made)
        return Due(with_codes(late.tested, made.codes), block.labels, late.made_at, now, now)

    # -- the waiting events --------------------------------------------------------------------------------------------
    def _keep(self, forecast: Forecast) -> None:
        """Let events wait; put them together with those before where these are about as few, and have their columns."""
        while (last := self._runs.get(self._last_run)) is not None and (
            len(last) <= 2 * len(forecast)
            and len(last) + len(forecast) <= MOST_JOINED
            and last.block.names == forecast.block.names
        ):
            del self._runs[self._last_run]  # its place in the heap is passed over
            forecast = _sorted(put_together([last, forecast]))
            self._last_run = max(self._runs, default=-1)
        self._last_run = self._n_runs
        self._n_runs += 1
        self._runs[self._last_run] = forecast
        self._push(self._last_run, forecast)

    def _push(self, key: int, run: Forecast) -> None:
        heapq.heappush(self._heap, (float(run.ready[0]), int(run.made_at[0]), key))

    def _take(self, now: float, most: float) -> Forecast | None:
        """Take the events off that are due by `now` and by `most`, in the order of their labels; None: there are none.

        Labels of the same time come in the order of their events.
        """
        limit = min(now, most)
        taken: list[Forecast] = []
        while self._heap and self._heap[0][0] <= limit:
            _, _, key = heapq.heappop(self._heap)
            run = self._runs.pop(key, None)
            if run is None:
                continue
            n = int(np.searchsorted(run.ready, limit, side="right"))
            taken.append(run.rows(slice(0, n)))
            if n < len(run):
                self._runs[key] = run.rows(slice(n, len(run)))
                self._push(key, self._runs[key])
        if not taken:
            return None
        return _sorted(put_together(taken))

    # -- state ---------------------------------------------------------------------------------------------------------
    def state(self) -> Snapshot:
        """Return the waiting events, their forecasts and memos."""
        flat: Snapshot = {"parts": len(self._runs), "n_made": self._n_made, **nest("memory", self._memory.state())}
        for index, (_, run) in enumerate(sorted(self._runs.items())):
            arrays = {name: getattr(run, name).copy() for name in ("memo", "made_at", "ready")}
            forecasts = forecasts_to_state(run.tested, run.block.labels)
            names = json.dumps(run.block.names)
            flat |= nest(str(index), {"names": names, "values": run.block.values.copy(), **arrays, **forecasts})
        return flat

    def restore(self, state: Snapshot) -> None:
        """Take the waiting events."""
        self._n_made = int(state["n_made"])
        self._memory.restore(below("memory", state))
        self._runs = {index: _forecast_of(below(str(index), state)) for index in range(int(state["parts"]))}
        self._n_runs = len(self._runs)
        self._last_run = self._n_runs - 1
        self._heap = []
        for key, run in self._runs.items():
            self._push(key, run)


def _stop(ready: FloatArray, now: FloatArray, start: int) -> int:
    """Return the first row before which the label of one from `start` on comes."""
    n, look = len(ready), FIRST_LOOK
    while True:
        stop = min(n, start + look)
        soonest = np.minimum.accumulate(ready[start:stop])
        found = np.flatnonzero(soonest <= now[start + 1 : stop + 1])
        if len(found):
            return start + 1 + int(found[0])
        if stop == n:
            return n
        look *= 4


def _sorted(forecast: Forecast) -> Forecast:
    """Return events in the order of their labels."""
    order = np.lexsort((forecast.made_at, forecast.ready))
    return forecast if (np.diff(order) == 1).all() else forecast.rows(order)


def _forecast_of(part: Snapshot) -> Forecast:
    tested, labels = forecasts_from_state(part)
    block = Block(tuple(json.loads(part["names"])), part["values"], labels)
    return Forecast(block, tested, part["memo"], part["made_at"], part["ready"])
