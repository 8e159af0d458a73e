"""Refits of learners beside the loop, in processes of this machine."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from multiprocessing import get_context
from typing import Protocol, Self, runtime_checkable

from streamlearn.contracts import OnlineLearner
from streamlearn.errors import BadJob
from streamlearn.runtime.executor import end_with_driver
from streamlearn.runtime.job import Job, LearnerSection
from streamlearn.runtime.tracks import Track


@runtime_checkable
class Refits(Protocol):
    """A learner whose refits may run elsewhere, and come into use `refit_lag` events after the one that caused them."""

    refit_lag: int

    def use_worker(self, executor: Executor | None) -> Self:
        """Let refits run there; the results are the same."""
        ...


def check_refits(section: LearnerSection, learner: OnlineLearner, path: str) -> None:
    """Raise BadJob where a worker is asked for that would have nothing to do."""
    if not section.refit_worker:
        return
    if not isinstance(learner, Refits):
        raise BadJob(f"{path}.refit_worker: must be false, as {section.name} is never refitted, got true")
    if learner.refit_lag == 0:
        raise BadJob(f"{path}.refit_worker: must be false unless refit_lag is above 0, got true")


class RefitWorkers:
    """The processes of those learners of a job that ask for one; they start with the first refit.

    Started anew, not forked: a fork of a process with threads may hang.

    Parameters
    ----------
    job : Job
    """

    def __init__(self, job: Job) -> None:
        self._served = [index for index, section in enumerate(job.learners) if section.refit_worker]
        self._pool: ProcessPoolExecutor | None = None
        self._tracks: Sequence[Track] = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # What is learned or saved from now on is refitted here.
        self._give(None)
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def serve(self, tracks: Sequence[Track]) -> None:
        """Give the learners that ask for it their worker."""
        self._tracks = tracks
        if self._served and self._pool is None:
            context = get_context("spawn")
            self._pool = ProcessPoolExecutor(len(self._served), mp_context=context, initializer=end_with_driver)
        self._give(self._pool)

    def _give(self, executor: Executor | None) -> None:
        for index in self._served if self._tracks else ():
            learner = self._tracks[index].learner
            assert isinstance(learner, Refits)  # noqa: S101  looked at when the job was put together
            learner.use_worker(executor)
