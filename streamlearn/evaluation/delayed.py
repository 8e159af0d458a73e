"""Labels that come some events late."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import CodeArray, FeatureName, FloatArray, Tested
from streamlearn.evaluation.blocks import Block
from streamlearn.evaluation.verbs import Blockwise


class DelayedLearner:
    """Runs a learner on a stream whose labels come `delay` events late.

    Row t is forecast by a model that has learned rows 0 ... t - delay - 1; then row t - delay is learned, its label
    being there now, and its forecast, made `delay` events ago, is handed out with it. Delay 0 is test then learn.

    A learner that can do a block of this in one go offers ``test_then_learn_late(names, test_values, late_values,
    late_labels) -> Tested``: for each i forecast row i of the first, then learn row i of the second; the codes are
    those of the late labels. Without it each row costs two calls.

    Parameters
    ----------
    learner : Blockwise
    delay : int
    """

    def __init__(self, learner: Blockwise, delay: int) -> None:
        self.learner = learner
        self.delay = delay
        self._waiting: deque[tuple[Block, Tested]] = deque()
        self._n_waiting = 0

    def run(self, block: Block) -> tuple[Tested, NDArray[Any]]:
        """Forecast the rows of a block, learn those whose labels are due; return these rows' forecasts and labels."""
        if self.delay == 0:
            return self.learner.test_then_learn_columns(block.names, block.values, block.labels), block.labels
        done = [part for i in range(0, len(block), self.delay) for part in self._step(block.rows(i, i + self.delay))]
        return joined(done)

    def finish(self) -> tuple[Tested, NDArray[Any]]:
        """Learn the rows that still wait for their labels, in order; return their forecasts and labels."""
        rest, self._waiting, self._n_waiting = self._waiting, deque(), 0
        done = []
        for block, tested in rest:
            codes = self.learner.test_then_learn_columns(block.names, block.values, block.labels).codes
            done.append((replace(tested, codes=codes), block.labels))
        return joined(done)

    def _step(self, block: Block) -> list[tuple[Tested, NDArray[Any]]]:
        """Take at most `delay` rows: so none of them is due before the last was forecast."""
        n_early = min(len(block), max(0, self.delay - self._n_waiting))
        if n_early:
            early = block.rows(0, n_early)
            self._keep(early, self._forecast(early))
        done = []
        start = n_early
        while start < len(block):
            late, forecast = self._due(len(block) - start)
            test = block.rows(start, start + len(late))
            codes, tested = self._forecast_then_learn(test, late)
            self._keep(test, tested)
            done.append((replace(forecast, codes=codes), late.labels))
            start += len(late)
        return done

    def _forecast(self, block: Block) -> Tested:
        return self.learner.forecast_columns(block.names, block.values)

    def _forecast_then_learn(self, test: Block, late: Block) -> tuple[CodeArray, Tested]:
        """For each i: forecast row i of `test`, then learn row i of `late`; return the late codes and the forecasts."""
        in_one_go = getattr(self.learner, "test_then_learn_late", None)
        if in_one_go is not None:
            names = all_names([test, late])
            tested: Tested = in_one_go(names, aligned(test, names), aligned(late, names), late.labels)
            return tested.codes, tested
        codes = np.empty(len(test), np.int8)
        forecasts = []
        for i in range(len(test)):
            forecasts.append((self._forecast(test.rows(i, i + 1)), late.labels[:0]))
            row = late.rows(i, i + 1)
            codes[i] = self.learner.test_then_learn_columns(row.names, row.values, row.labels).codes[0]
        return codes, joined(forecasts)[0]

    def _keep(self, block: Block, tested: Tested) -> None:
        self._waiting.append((block, tested))
        self._n_waiting += len(block)

    def _due(self, most: int) -> tuple[Block, Tested]:
        """Take the oldest waiting rows, up to `most`, as far as their columns are the same.

        As one block whatever the cuts were when they came: else small batches would leave ever smaller pieces.
        """
        names = self._waiting[0][0].names
        taken: list[tuple[Block, Tested]] = []
        n = 0
        while n < most and self._waiting and self._waiting[0][0].names == names:
            block, tested = self._waiting.popleft()
            if n + len(block) > most:
                self._waiting.appendleft((block.rows(most - n, len(block)), cut(tested, most - n, len(block))))
                block, tested = block.rows(0, most - n), cut(tested, 0, most - n)
            taken.append((block, tested))
            n += len(block)
        self._n_waiting -= n
        tested, labels = joined([(tested, block.labels) for block, tested in taken])
        return Block(names, np.concatenate([block.values for block, _ in taken]), labels), tested


def cut(tested: Tested, start: int, stop: int) -> Tested:
    """Return some rows of the forecasts, as views."""
    return Tested(
        tested.codes[start:stop],
        tested.scores[start:stop],
        tested.probabilities[start:stop],
        tested.predictions[start:stop],
        tested.decisions[start:stop],
    )


def joined(parts: list[tuple[Tested, NDArray[Any]]]) -> tuple[Tested, NDArray[Any]]:
    """Return the forecasts and labels of consecutive events as one."""
    if not parts:
        none = np.empty(0)
        return Tested(np.empty(0, np.int8), none, none, np.empty(0, object), none), np.empty(0, object)

    def column(name: str) -> FloatArray:
        joined: FloatArray = np.concatenate([getattr(tested, name) for tested, _ in parts])
        return joined

    tested = Tested(
        np.concatenate([tested.codes for tested, _ in parts]),
        column("scores"),
        column("probabilities"),
        np.concatenate([tested.predictions for tested, _ in parts]),
        column("decisions"),
    )
    return tested, np.concatenate([labels for _, labels in parts])


def all_names(blocks: Sequence[Block]) -> tuple[FeatureName, ...]:
    """Return the names of all columns of some blocks, in the order in which they come."""
    return tuple(dict.fromkeys(name for block in blocks for name in block.names))


def aligned(block: Block, names: tuple[FeatureName, ...]) -> FloatArray:
    """Return the values of a block with columns `names`, absent ones 0; its own array where it has just these."""
    if block.names == names:
        return block.values
    place = {name: k for k, name in enumerate(names)}
    values = np.zeros((len(block), len(names)))
    values[:, [place[name] for name in block.names]] = block.values
    return values
