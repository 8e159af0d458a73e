"""When the labels of a stream come: after some events, after some time, by an array, a column or a function."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from streamlearn.contracts import FloatArray
from streamlearn.errors import BadParameter, BadShape, BadValue
from streamlearn.evaluation.blocks import Block

WHO = "prequential"


class Arrivals:
    """Tells for each event when it comes and when its label does.

    Parameters
    ----------
    delay : int, float, timedelta, str, array or callable (x, y) -> any of the numbers
        How late labels come: events, or seconds where `moment` is given. A text names the column that holds it, an
        array has one number an event. Infinity: the label never comes.
    moment : str, array, callable x -> seconds or datetime, or None
        When each event comes. Time does not go back: an event that seems to come before another one counts as coming
        with it.
    """

    def __init__(self, delay: Any, moment: Any = None) -> None:
        self._delay, self._moment = delay, moment
        self._n_before = 0
        self._clock = -math.inf
        _check(delay, moment)

    @property
    def fixed(self) -> int | None:
        """The delay where it is one number of events, else None."""
        whole = isinstance(self._delay, int) and not isinstance(self._delay, bool)
        return int(self._delay) if whole and self._moment is None else None

    def take(self, block: Block) -> tuple[Block, FloatArray, FloatArray]:
        """Return the next events without the columns that tell times, when their labels come, and when they do.

        Returns
        -------
        Block
        float64[n_events]
        float64[n_events + 1]
            See `DelayedLearner.run`.
        """
        n = len(block)
        delays = self._numbers("delay", self._delay, block, with_label=True)
        if (delays < 0.0).any() or np.isnan(delays).any():
            raise BadValue(f"{WHO}: a delay must be >= 0, got {float(delays[~(delays >= 0.0)][0])!r}")
        if self._moment is None:
            now = np.arange(self._n_before, self._n_before + n + 1, dtype=np.float64)
            ready = now[1:] + delays
        else:
            moments = self._numbers("moment", self._moment, block, with_label=False)
            if not np.isfinite(moments).all():
                raise BadValue(f"{WHO}: a moment must be finite, got {float(moments[~np.isfinite(moments)][0])!r}")
            now = np.maximum(np.maximum.accumulate(moments), self._clock)
            ready = now + delays
            now = np.append(now, now[-1:])
            self._clock = float(now[-1]) if n else self._clock
        self._n_before += n
        return self._without_times(block), ready, now

    def _numbers(self, what: str, given: Any, block: Block, *, with_label: bool) -> FloatArray:
        if isinstance(given, str):
            if given not in block.names:
                raise BadShape(f"{WHO}: {what} must name a column of the stream, got {given!r}")
            return block.values[:, block.names.index(given)]
        if callable(given):
            return np.array([_seconds(value) for value in _called(given, block, with_label=with_label)], np.float64)
        if isinstance(given, int | float | timedelta):
            return np.full(len(block), _seconds(given))
        stop = self._n_before + len(block)
        if len(given) < stop:
            raise BadShape(f"{WHO}: {what} must have one value an event, got {len(given)} for at least {stop}")
        return np.array([_seconds(value) for value in given[self._n_before : stop]], np.float64)

    def _without_times(self, block: Block) -> Block:
        told = {name for name in (self._delay, self._moment) if isinstance(name, str)}
        if not told:
            return block
        kept = [k for k, name in enumerate(block.names) if name not in told]
        names = tuple(block.names[k] for k in kept)
        return Block(names, np.ascontiguousarray(block.values[:, kept]), block.labels)


def _called(function: Callable[..., Any], block: Block, *, with_label: bool) -> list[Any]:
    rows = [dict(zip(block.names, row, strict=True)) for row in block.values.tolist()]
    if not with_label:
        return [function(x) for x in rows]
    return [function(x, y) for x, y in zip(rows, block.labels.tolist(), strict=True)]


def _seconds(value: Any) -> float:
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, datetime):
        return value.timestamp()
    if isinstance(value, np.datetime64):
        return float(value.astype("datetime64[ns]").astype(np.int64)) / 1e9
    if isinstance(value, np.timedelta64):
        return float(value / np.timedelta64(1, "s"))
    return float(value)


def _check(delay: Any, moment: Any) -> None:
    if isinstance(delay, timedelta) and moment is None:
        raise BadParameter(f"{WHO}: moment must be given where delay is a time, got {delay!r}")
    number = isinstance(delay, int | float) and not isinstance(delay, bool)
    if number and not delay >= 0:
        raise BadParameter(f"{WHO}: delay must be >= 0, got {delay!r}")
    if isinstance(delay, float) and moment is None and not (delay.is_integer() or math.isinf(delay)):
        raise BadParameter(f"{WHO}: delay must be a whole number of events unless moment is given, got {delay!r}")
    if isinstance(delay, bool) or not (
        number or isinstance(delay, timedelta | str) or callable(delay) or hasattr(delay, "__len__")
    ):
        raise BadParameter(f"{WHO}: delay must be a number, time, column, array or function, got {delay!r}")
