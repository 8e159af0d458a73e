"""What the runtime asks of a message broker, which an adapter brings by entry point.

Outputs that go to a broker are written in transactions: everything between two checkpoints is one. The loop flushes,
saves a checkpoint and then commits the transaction under the checkpoint's number of events. A crash between the two
leaves a checkpoint whose outputs nobody will ever see; so the broker is asked at the start which checkpoint it has
committed, and the job goes on from that one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from streamlearn.contracts import HasState, Position, Rejected, Source
from streamlearn.errors import BadJob, StreamlearnError
from streamlearn.runtime.extensions import extensions, load_extension
from streamlearn.runtime.outputs import Output

if TYPE_CHECKING:  # they import this file
    from streamlearn.runtime.decode import Columns
    from streamlearn.runtime.job import Job
    from streamlearn.runtime.runs import Run
    from streamlearn.runtime.sections import SourceSection
    from streamlearn.runtime.sinks import PredictionSink

GROUP = "streamlearn.brokers"
"""Entry points: callable, Job -> Broker."""


class Rewind(StreamlearnError):
    """What was done since the last checkpoint does not count: the job goes on from it. It never leaves the runtime."""


@runtime_checkable
class Urgent(Protocol):
    """A source that may have to give up partitions and waits for a checkpoint before it does."""

    @property
    def urgent(self) -> bool:
        """Whether a checkpoint is wanted as soon as what was read ahead is learned."""
        ...


@runtime_checkable
class Replays(Protocol):
    """A source of several partitions that can hand out events in an order that was recorded."""

    def replay(self, runs: Sequence[Run]) -> None:
        """Hand out these stretches first, in this order; called before `seek`."""
        ...


@runtime_checkable
class Partitioned(Protocol):
    """A source of several partitions, of which one can be asked for alone."""

    @property
    def ends(self) -> bool:
        """Whether it has an end: then it has something now, will have it soon, or is at its end, but is not silent."""
        ...

    def at_end(self) -> Mapping[str, bool]:
        """Return the partitions by topic and number, and whether everything was handed out of each that will come."""
        ...

    def only(self, partition: str) -> None:
        """Hand out this partition from now on; what was decoded already of another one still comes."""
        ...


@runtime_checkable
class Commits(Protocol):
    """A source whose input keeps a position of its own.

    `commit` may be called while another thread polls.
    """

    def commit(self, positions: tuple[Position, ...]) -> None:
        """Tell the input how far a durable checkpoint has come."""
        ...


@runtime_checkable
class Tells(Protocol):
    """A source that knows how it stands."""

    @property
    def trouble(self) -> str:
        """What keeps the job from its input now; empty while all is well."""
        ...

    def lag(self) -> Mapping[str, int]:
        """Return events still to read, by partition."""
        ...


class Transaction(Protocol):
    """The outputs between two checkpoints, seen by others all at once or never."""

    def begin(self) -> int | None:
        """Shut out earlier instances of the job; return the events of the last committed checkpoint, None for none.

        Called once, before anything is written.
        """
        ...

    def commit(self, events: int, positions: Sequence[Position]) -> None:
        """Make everything that was flushed visible, together with the positions; called behind a durable checkpoint."""
        ...

    def close(self) -> None:
        """Drop what was not committed; may be called twice."""
        ...


class LetterBox(HasState, Output, Protocol):
    """Where dead letters go."""

    def put(self, event: Rejected) -> None:
        """Take one event; may buffer."""
        ...


class Broker(Protocol):
    """One broker as one job sees it."""

    def source(self, section: SourceSection, columns: Columns) -> Source:
        """Return a source of topics."""
        ...

    def sink(self, columns: list[str]) -> PredictionSink:
        """Return the sink for predictions with these columns."""
        ...

    def letters(self) -> LetterBox:
        """Return where dead letters go."""
        ...

    def transaction(self) -> Transaction | None:
        """Return what joins the outputs, None where nothing goes to the broker; asked last."""
        ...


def load_broker(kind: str, job: Job) -> Broker:
    """Return the broker that the job names.

    Raises
    ------
    MissingExtra
        Its library is not installed.
    BadJob
        There is no adapter of that name, or it refuses the job.
    """
    found = extensions(GROUP)
    if kind not in found:
        known = ", ".join(sorted(found)) or "none"
        raise BadJob(f"source.kind: must be a broker with an adapter ({known}), got {kind!r}")
    broker: Broker = load_extension(found[kind], f"a job with {kind}")(job)
    return broker
