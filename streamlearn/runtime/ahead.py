"""Reading the next batch while the present one is learned."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait

from streamlearn.contracts import Batch, Position, Source


class ReadAhead:
    """A source whose next batch is read and decoded in a thread of its own.

    Decoding takes about as long as learning, and the kernels of both release the global lock, so on two cores a run
    takes half as long. At most one batch is read ahead. It comes with its own positions, which nobody has seen before
    `poll` hands it out: a checkpoint in between is as if it had not been read.

    Parameters
    ----------
    source : Source
        Never polled by two threads at once.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="read-ahead")
        self._next: Future[Batch | None] | None = None

    def begin(self, max_events: int, timeout_s: float) -> None:
        """Begin to read up to `max_events` events for the next `poll`; returns at once."""
        if self._next is None:
            self._next = self._thread.submit(self._source.poll, max_events, timeout_s)

    @property
    def began(self) -> bool:
        """Whether something was begun that `poll` has not handed out."""
        return self._next is not None

    def poll(self, max_events: int, timeout_s: float) -> Batch | None:
        """Return what `begin` has begun to read, or raise what came of it; without it, read now."""
        found, self._next = self._next, None
        return self._source.poll(max_events, timeout_s) if found is None else found.result()

    def seek(self, positions: Sequence[Position]) -> None:
        """Go to the saved positions; what was read ahead is dropped."""
        self._drop()
        self._source.seek(positions)

    def close(self) -> None:
        """Wait for the thread, then release the source; may be called twice."""
        self._drop()
        self._thread.shutdown()
        self._source.close()

    def _drop(self) -> None:
        if self._next is not None:
            wait([self._next])  # its error too: nobody asked for this batch
            self._next = None
