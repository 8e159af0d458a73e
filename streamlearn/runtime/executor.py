"""Rounds on the cores of one machine."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context, parent_process

from streamlearn.contracts import Snapshot
from streamlearn.errors import BadParameter, RoundFailed
from streamlearn.runtime.rounds import ATTEMPTS, Part, Task, answer, estimate_of, packed_model

IN_FLIGHT = 2
"""Parts that wait for each worker: enough to keep it busy, few enough that an error ends a round soon."""


class LocalExecutor:
    """Runs the parts of a round in worker processes; the reference that every other executor equals bit for bit.

    Workers start on the first round and stay. They are started anew, not forked: a fork of a process with threads may
    hang. So a script that uses this needs the usual ``if __name__ == "__main__":``.

    Parameters
    ----------
    n_workers : int or None
        None: the cores that this process may use.

    Examples
    --------
    ``with LocalExecutor(2) as executor: executor.run_round(task, parts)``
    """

    def __init__(self, n_workers: int | None = None) -> None:
        if n_workers is not None and (isinstance(n_workers, bool) or not isinstance(n_workers, int) or n_workers < 1):
            raise BadParameter(f"LocalExecutor: n_workers must be a whole number >= 1 or None, got {n_workers!r}")
        self.n_workers = n_workers or len(os.sched_getaffinity(0))
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> LocalExecutor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run_round(self, task: Task, parts: Sequence[Part], model: Snapshot | None = None) -> list[Snapshot]:
        """Return the estimates in the order of the parts; what a part raises comes through."""
        packed = packed_model(model)
        found: dict[int, bytes] = {}
        for _ in range(ATTEMPTS):
            missing = [part for part in parts if part.index not in found]
            if not missing:
                break
            self._try(task, missing, packed, found)
        lost = [part for part in parts if part.index not in found]
        if lost:
            raise RoundFailed(
                f"LocalExecutor: a worker must live through part {lost[0].index} of {lost[0].partition}, "
                f"got {ATTEMPTS} lost ones (out of memory?)"
            )
        return [estimate_of(found[part.index]) for part in parts]

    def _start(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(self.n_workers, mp_context=get_context("spawn"), initializer=end_with_driver)

    def _try(self, task: Task, parts: Sequence[Part], model: bytes, found: dict[int, bytes]) -> None:
        """Write the answers to `found`; those that were out when a worker was lost are not there."""
        pool = self._pool = self._pool or self._start()
        waiting = list(reversed(parts))
        out: dict[Future[bytes], Part] = {}
        try:
            while waiting or out:
                while waiting and len(out) < IN_FLIGHT * self.n_workers:
                    part = waiting.pop()
                    out[pool.submit(answer, task, part, model)] = part
                done = next(as_completed(out))
                found[out.pop(done).index] = done.result()
        except BrokenProcessPool:
            self.close()
        except BaseException:
            for future in out:
                future.cancel()
            raise

    def close(self) -> None:
        """End the workers; may be called twice."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None


def end_with_driver() -> None:
    """End this worker when its driver is gone: killed, it could not tell, and the workers would wait for ever."""
    driver = parent_process()
    if driver is not None:
        threading.Thread(target=_wait_and_exit, args=(driver.join,), daemon=True).start()


def _wait_and_exit(wait: Callable[[], object]) -> None:
    wait()
    os._exit(1)
