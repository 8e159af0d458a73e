"""Refits that may run elsewhere: the same result, taken into use after an event number that is fixed beforehand."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from typing import TYPE_CHECKING, Any

from streamlearn.learners.muffled.model import Voting
from streamlearn.learners.muffled.sample import Sample

if TYPE_CHECKING:
    from streamlearn.learners.muffled.stream import MuffledScorer


def fit_sample(cls: type[MuffledScorer], params: dict[str, Any], sample: Sample) -> Voting:
    """Return the model of one refit; a function of its arguments alone, for this process or another one."""
    return cls(**params).fit_sample(sample)


class Waiting:
    """A model that is being made.

    Parameters
    ----------
    make : function without arguments
        Makes it; can be sent to another process where there is an executor.
    executor : Executor or None
        Where it is made; None = here, once it is asked for.
    """

    def __init__(self, make: Callable[[], Voting], executor: Executor | None = None) -> None:
        self._make = make
        self._made: Voting | None = None
        self._future: Future[Voting] | None = None
        if executor is not None:
            try:
                self._future = executor.submit(make)
            except RuntimeError:
                self._future = None  # its worker died before, or it was shut down: made here

    def result(self) -> Voting:
        """Wait for the model; where the worker died, make it here, with the same bits."""
        if self._made is None:
            try:
                self._made = self._make() if self._future is None else self._future.result()
            except (BrokenExecutor, CancelledError):
                self._made = self._make()
        return self._made
