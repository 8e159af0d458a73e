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
from streamlearn.runtime.outgoing import plain
from streamlearn.snapshot import below, nest


class LateLearner(OnlineLearner, Protocol):
    """A learner that can also forecast without learning."""

    def score_columns(self, names: tuple[FeatureName, ...], values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return ranking scores and P(positive)."""
        ...

    def decide_columns(self, codes: CodeArray, scores: FloatArray, probabilities: FloatArray) -> Tested:
        """Return scores and probabilities with the decisions that follow from them."""
        ...


@dataclass(frozen=True, slots=True)
class Forecast:
    """Consecutive events with the forecasts made for them."""

    block: Block
    tested: Tested

    def __len__(self) -> int:
        return len(self.block)

    def rows(self, start: int, stop: int) -> Forecast:
        """Return some of the events, as views."""
        return Forecast(self.block.rows(start, stop), cut(self.tested, start, stop))


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
                tested = _forecast(learner, step)
            else:
                late = self._oldest(len(block) - done)
                step = block.rows(done, done + len(late))
                tested, codes = _forecast_then_learn(learner, step, late.block)
                due.append(Forecast(late.block, replace(late.tested, codes=codes)))
            self._queue.append(Forecast(step, tested))
            made.append(tested)
            done += len(step)
        return joined(made), due

    def learn_rest(self, learner: OnlineLearner) -> list[Forecast]:
        """Learn the events that still wait, at the end of the input; return them like `forecast_then_learn`."""
        rest, self._queue = self._queue, []
        due = []
        for waiting in rest:
            block = waiting.block
            codes = learner.test_then_learn_columns(block.names, block.values, block.labels).codes
            due.append(Forecast(block, replace(waiting.tested, codes=codes)))
        return due

    def with_waiting(self, block: Block) -> Block:
        """Return the waiting events and those of `block` as one block: what the learner will have to take."""
        blocks = [waiting.block for waiting in self._queue] + [block]
        names = tuple(dict.fromkeys(name for part in blocks for name in part.names))
        place = {name: k for k, name in enumerate(names)}
        values = np.zeros((sum(map(len, blocks)), len(names)))
        start = 0
        for part in blocks:
            values[start : start + len(part), [place[name] for name in part.names]] = part.values
            start += len(part)
        labels = np.concatenate([part.labels.astype(object) for part in blocks])
        return Block(names, values, labels)

    def _oldest(self, most: int) -> Forecast:
        """Take waiting events off the queue: at most `most`, and of one block."""
        oldest = self._queue.pop(0)
        if len(oldest) > most:
            self._queue.insert(0, oldest.rows(most, len(oldest)))
            oldest = oldest.rows(0, most)
        return oldest

    def state(self) -> Snapshot:
        """Return the waiting events and their forecasts; predicted labels are not measured and not kept."""
        flat: Snapshot = {"parts": len(self._queue)}
        for index, waiting in enumerate(self._queue):
            block = waiting.block
            texts = json.dumps({"names": block.names, "labels": block.labels.tolist()}, default=plain)
            tested = waiting.tested
            arrays = {"values": block.values, "scores": tested.scores}
            arrays |= {"probabilities": tested.probabilities, "decisions": tested.decisions}
            flat |= nest(str(index), {"texts": texts, **{name: array.copy() for name, array in arrays.items()}})
        return flat

    def restore(self, state: Snapshot) -> None:
        """Take the waiting events."""
        self._queue = [_forecast_of(below(str(index), state)) for index in range(int(state["parts"]))]


def _forecast_of(part: Snapshot) -> Forecast:
    texts = json.loads(part["texts"])
    n = len(part["scores"])
    labels, nothing = np.empty(n, dtype=object), np.full(n, None, dtype=object)
    labels[:] = texts["labels"]
    tested = Tested(_no_codes(n), part["scores"], part["probabilities"], nothing, part["decisions"])
    return Forecast(Block(tuple(texts["names"]), part["values"], labels), tested)


def _forecast(learner: LateLearner, block: Block) -> Tested:
    scores, probabilities = learner.score_columns(block.names, block.values)
    return learner.decide_columns(_no_codes(len(block)), scores, probabilities)


def _forecast_then_learn(learner: LateLearner, test: Block, late: Block) -> tuple[Tested, CodeArray]:
    """For each i: forecast row i of `test`, then learn row i of `late`; return the forecasts and the late codes."""
    in_one_go = getattr(learner, "test_then_learn_late", None)
    if in_one_go is not None and test.names == late.names:
        tested: Tested = in_one_go(test.names, test.values, late.values, late.labels)
        return replace(tested, codes=_no_codes(len(test))), tested.codes
    made, codes = [], np.empty(len(test), dtype=np.int8)
    for i in range(len(test)):
        made.append(_forecast(learner, test.rows(i, i + 1)))
        row = late.rows(i, i + 1)
        codes[i] = learner.test_then_learn_columns(row.names, row.values, row.labels).codes[0]
    return joined(made), codes


def _no_codes(n: int) -> CodeArray:
    return np.full(n, -1, dtype=np.int8)


def cut(tested: Tested, start: int, stop: int) -> Tested:
    """Return some rows of forecasts, as views."""
    rows = slice(start, stop)
    scores, probabilities = tested.scores[rows], tested.probabilities[rows]
    return Tested(tested.codes[rows], scores, probabilities, tested.predictions[rows], tested.decisions[rows])


def joined(parts: Sequence[Tested]) -> Tested:
    """Return several forecasts as one."""

    def column(name: str) -> NDArray[Any]:
        return np.concatenate([getattr(part, name) for part in parts])

    names = ("codes", "scores", "probabilities", "predictions", "decisions")
    return parts[0] if len(parts) == 1 else Tested(*map(column, names))
