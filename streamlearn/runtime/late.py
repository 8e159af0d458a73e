"""Events that wait for their labels, which come a fixed number of events late.

Event t is forecast by a model that has learned events 0 ... t - delay - 1; then event t - delay is learned, its label
being there now, and its forecast, made `delay` events ago, is what is measured.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import CodeArray, FeatureName, FloatArray, OnlineLearner, Snapshot, Tested
from streamlearn.evaluation.blocks import Block
from streamlearn.evaluation.delayed import aligned, all_names, cut, joined
from streamlearn.evaluation.keeping import forecasts_from_state, forecasts_to_state
from streamlearn.snapshot import below, nest


class LateLearner(OnlineLearner, Protocol):
    """A learner of late labels; a memo is what it wants back with the label: float64[n_rows, memo_width]."""

    def forecast_columns(self, names: tuple[FeatureName, ...], values: FloatArray) -> tuple[Tested, FloatArray]:
        """Forecast a block without learning: forecasts with codes -1, and their memo."""
        ...

    def test_then_learn_late(
        self,
        names: tuple[FeatureName, ...],
        test_values: FloatArray,
        late_values: FloatArray,
        late_labels: NDArray[Any],
        late_memo: FloatArray | None = None,
    ) -> tuple[Tested, FloatArray]:
        """For each i forecast test row i, then learn late row i: forecasts, with the codes of the late labels; memo."""
        ...


@dataclass(frozen=True, slots=True)
class Forecast:
    """Consecutive events with the forecasts made for them."""

    block: Block
    tested: Tested
    memo: FloatArray

    def __len__(self) -> int:
        return len(self.block)

    def rows(self, start: int, stop: int) -> Forecast:
        """Return some of the events, as views."""
        return Forecast(self.block.rows(start, stop), cut(self.tested, start, stop), self.memo[start:stop])

    def with_codes(self, codes: CodeArray) -> Forecast:
        """Return the same forecasts with the codes of the labels that have come."""
        return replace(self, tested=replace(self.tested, codes=codes))


class Waiting:
    """The events between their forecast and their label, oldest first.

    Parameters
    ----------
    delay : int
        How many wait; at least 1.
    """

    def __init__(self, delay: int) -> None:
        self.delay = delay
        self._queue: list[Forecast] = []

    def __len__(self) -> int:
        return sum(map(len, self._queue))

    def forecast_then_learn(self, learner: LateLearner, block: Block) -> tuple[Tested, list[Forecast]]:
        """Forecast every event of `block`, learning those whose labels come in between.

        Returns
        -------
        Tested
            The forecasts of `block`, codes all -1.
        list of Forecast
            The events that were learned, with their forecasts and the codes of their labels.
        """
        made: list[Tested] = []
        due: list[Forecast] = []
        done = 0
        while done < len(block):
            free = self.delay - len(self)
            if free > 0:
                step = block.rows(done, done + free)
                forecast = Forecast(step, *learner.forecast_columns(step.names, step.values))
            else:
                late = self._oldest(len(block) - done)
                forecast = _forecast_then_learn(learner, block.rows(done, done + len(late)), late)
                due.append(late.with_codes(forecast.tested.codes))
                forecast = forecast.with_codes(_no_codes(len(forecast)))
            self._queue.append(forecast)
            made.append(forecast.tested)
            done += len(forecast)
        return _joined(made), due

    def learn_rest(self, learner: LateLearner) -> list[Forecast]:
        """Learn the events that still wait, at the end of the input; return them like `forecast_then_learn`."""
        rest, self._queue = self._queue, []
        # The forecasts made on the way are of no use: these events have been forecast.
        return [late.with_codes(_forecast_then_learn(learner, late.block, late).tested.codes) for late in rest]

    def with_waiting(self, block: Block) -> Block:
        """Return the waiting events and those of `block` as one block: what the learner will have to take."""
        blocks = [waiting.block for waiting in self._queue] + [block]
        names = all_names(blocks)
        values = np.concatenate([aligned(part, names) for part in blocks])
        return Block(names, values, np.concatenate([part.labels.astype(object) for part in blocks]))

    def _oldest(self, most: int) -> Forecast:
        """Take waiting events off the queue: at most `most`, and of one block."""
        oldest = self._queue.pop(0)
        if len(oldest) > most:
            self._queue.insert(0, oldest.rows(most, len(oldest)))
            oldest = oldest.rows(0, most)
        return oldest

    def state(self) -> Snapshot:
        """Return the waiting events, their forecasts and memos."""
        flat: Snapshot = {"parts": len(self._queue)}
        for index, waiting in enumerate(self._queue):
            block = waiting.block
            arrays = {"values": block.values.copy(), "memo": waiting.memo.copy()}
            forecasts = forecasts_to_state(waiting.tested, block.labels)
            flat |= nest(str(index), {"names": json.dumps(block.names), **arrays, **forecasts})
        return flat

    def restore(self, state: Snapshot) -> None:
        """Take the waiting events."""
        self._queue = [_forecast_of(below(str(index), state)) for index in range(int(state["parts"]))]


def _forecast_of(part: Snapshot) -> Forecast:
    tested, labels = forecasts_from_state(part)
    return Forecast(Block(tuple(json.loads(part["names"])), part["values"], labels), tested, part["memo"])


def _forecast_then_learn(learner: LateLearner, test: Block, late: Forecast) -> Forecast:
    """Forecast row i of `test`, then learn row i of `late`, for each i; the codes are those of the late labels."""
    names = all_names([test, late.block])
    test_values, late_values = aligned(test, names), aligned(late.block, names)
    made = learner.test_then_learn_late(names, test_values, late_values, late.block.labels, late.memo)
    return Forecast(test, *made)


def _no_codes(n: int) -> CodeArray:
    return np.full(n, -1, dtype=np.int8)


def _joined(parts: Sequence[Tested]) -> Tested:
    """Return several forecasts as one."""
    no_labels = np.empty(0, dtype=object)
    return parts[0] if len(parts) == 1 else joined([(part, no_labels) for part in parts])[0]
