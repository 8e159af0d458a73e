"""The loop: source, vectorise, test then learn, metrics, sink; and, every so often, flush, save, commit."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from streamlearn.contracts import Batch, IntArray, Position, PredictionRows, Rejected, Snapshot, Source, Tested
from streamlearn.features.categories import Vectoriser
from streamlearn.runtime.ahead import ReadAhead
from streamlearn.runtime.brokers import Commits, Replays, Transaction, Urgent
from streamlearn.runtime.checkpoint import Checkpoint, CheckpointFolder, check_same_job
from streamlearn.runtime.crash import reach
from streamlearn.runtime.dead_letters import DeadLetters
from streamlearn.runtime.duels import Duels
from streamlearn.runtime.lead import Lead
from streamlearn.runtime.outputs import Output
from streamlearn.runtime.pace import Pace
from streamlearn.runtime.runs import Runs
from streamlearn.runtime.screen import Screened
from streamlearn.runtime.sinks import PredictionSink
from streamlearn.runtime.together import learn_together
from streamlearn.runtime.tracks import Track
from streamlearn.snapshot import below, nest

if TYPE_CHECKING:  # it imports this file
    from streamlearn.runtime.labels import LateLabels

POLL_S = 0.2
"""How long a poll may wait: the longest that a stop request or a timed checkpoint waits for a silent source."""


class Stop(Protocol):
    """Whether somebody asked the job to stop."""

    asked: bool


class Watch(Protocol):
    """Somebody who looks on."""

    def resumed(self, events: int) -> None:
        """Hear that the job goes on behind `events` events of an earlier run."""
        ...

    def moved(self, loop: Loop) -> None:
        """Hear that another batch was taken."""
        ...

    def polled(self, loop: Loop) -> None:
        """Hear that the source answered, also where it had nothing: at least every `POLL_S` while all is well."""
        ...

    def saved(self, loop: Loop, seconds: float) -> None:
        """Hear that a checkpoint was made, and how long it took from flush to commit."""
        ...


class Watches:
    """Several that look on, as one.

    Parameters
    ----------
    watches : sequence of Watch
    """

    def __init__(self, watches: Sequence[Watch]) -> None:
        self._watches = tuple(watches)

    def resumed(self, events: int) -> None:
        """Tell each."""
        for watch in self._watches:
            watch.resumed(events)

    def moved(self, loop: Loop) -> None:
        """Tell each."""
        for watch in self._watches:
            watch.moved(loop)

    def polled(self, loop: Loop) -> None:
        """Tell each."""
        for watch in self._watches:
            watch.polled(loop)

    def saved(self, loop: Loop, seconds: float) -> None:
        """Tell each."""
        for watch in self._watches:
            watch.saved(loop, seconds)


@dataclass(slots=True)
class Parts:
    """What a job is made of.

    Attributes
    ----------
    source : Source
    vectoriser : Vectoriser
    tracks : list of Track
    sink : PredictionSink or None
    dead_letters : DeadLetters
    checkpoints : CheckpointFolder or None
    meaning : dict of str to str
        The keys of the job that give the state its meaning.
    batch_events : int
        At most so many at a time.
    every, every_s
        Events and seconds between two checkpoints.
    late : LateLabels or None
        What lets events wait, where labels come by key.
    transaction : Transaction or None
        What joins the outputs that go to a broker.
    lead : Lead
        Whose predictions go out.
    duels : Duels or None
        What gives the metrics their bands and compares the learners.
    """

    source: Source
    vectoriser: Vectoriser
    tracks: list[Track]
    sink: PredictionSink | None
    dead_letters: DeadLetters
    checkpoints: CheckpointFolder | None
    meaning: dict[str, str]
    batch_events: int
    every: int | None
    every_s: float
    transaction: Transaction | None = None
    late: LateLabels | None = None
    lead: Lead = field(default_factory=Lead)
    duels: Duels | None = None


@dataclass(slots=True)
class _Due:
    """When the next checkpoint is due."""

    every: int | None
    every_s: float
    events: int = 0
    at_s: float = field(default_factory=time.monotonic)

    def room(self, events: int) -> int | None:
        return None if self.every is None else self.events + self.every - events

    def room_behind(self, events: int) -> int | None:
        """Like `room`, but behind a checkpoint where one is due at `events`."""
        room = self.room(events)
        return room if room is None or room > 0 else self.every

    def is_due(self, events: int) -> bool:
        room = self.room(events)
        return (room is not None and room <= 0) or time.monotonic() - self.at_s >= self.every_s

    def saved(self, events: int) -> None:
        self.events, self.at_s = events, time.monotonic()


class Loop:
    """One job at work.

    Parameters
    ----------
    parts : Parts
    stop : Stop
        Looked at between two batches.
    watch : Watch
    """

    def __init__(self, parts: Parts, stop: Stop, watch: Watch) -> None:
        self.parts = parts
        self.events = 0
        self.resumed_at = 0
        self.positions: dict[str, Position] = {}
        self._stop = stop
        self._watch = watch
        self._due = _Due(parts.every, parts.every_s)
        self._pace = Pace(parts.batch_events)
        self._source = ReadAhead(parts.source)
        self._runs = Runs()
        self._outputs: list[Output] = [parts.dead_letters, *([parts.sink] if parts.sink is not None else [])]
        if parts.late is not None:
            self._outputs.append(parts.late.table)

    def run(self, *, fresh: bool = False) -> bool:
        """Work until the input ends or somebody asks to stop; return whether the input ended.

        With `fresh` an earlier run's checkpoints and outputs are replaced.
        """
        try:
            self._start(fresh)
            ended = False
            while not ended and not self._stop.asked:
                batch = self._source.poll(self._room(self.events), POLL_S)
                ended = batch is None
                if batch is not None and not self._is_urgent():
                    self._source.begin(self._room(self.events + len(batch) + len(batch.rejected)), POLL_S)
                if batch is not None and (len(batch) or batch.rejected or batch.positions):
                    self._take(batch)
                    self._watch.moved(self)
                self._watch.polled(self)
                # What was read ahead of an urgent checkpoint may belong to others behind it, so it is learned before.
                urgent = self._is_urgent() and not self._source.began
                if ended or urgent or self._stop.asked or self._due.is_due(self.events):
                    self._checkpoint()
            return ended
        finally:
            self._close()

    def _take(self, batch: Batch) -> None:
        began = time.monotonic()
        late = self.parts.late
        rows, n_stray = (self._learn(batch), 0) if late is None else self._learn_late(batch, late)
        if rows is not None and self.parts.sink is not None:
            self.parts.sink.write(rows)
        self.events += len(batch) + len(batch.rejected) + n_stray
        self.positions |= {position.partition: position for position in batch.positions}
        self._runs.add(batch)
        self._pace.took(time.monotonic() - began)
        reach("after_write")

    def _learn(self, batch: Batch) -> PredictionRows | None:
        names, values = self.parts.vectoriser.columns(batch)
        learned, screened = learn_together(self.parts.tracks, names, values, batch.labels)
        self.parts.dead_letters.take(bad_events(batch, screened))
        for track, one in zip(self.parts.tracks, learned, strict=False):
            track.measure(one)
        return prediction_rows(batch, screened.good, learned[self.parts.lead.index].tested) if learned else None

    def _learn_late(self, batch: Batch, late: LateLabels) -> tuple[PredictionRows | None, int]:
        """Return what goes out, and how many dead letters belong to no record of the batch.

        These are counted like events: two checkpoints with other outputs between them must not have the same number.
        """
        rows, rejected = late.take(batch, self.parts.lead.index)
        self.parts.dead_letters.take(rejected)
        return rows, sum(event.record < 0 for event in rejected)

    def _checkpoint(self) -> None:
        """Flush, save, commit, in this order: else a crash between them loses outputs or events."""
        began = time.monotonic()
        for output in self._outputs:
            output.flush()
        reach("after_flush")
        if self.parts.checkpoints is not None:
            self.parts.lead.follow_request()
            self.parts.checkpoints.save(self._snapshot())
            reach("before_commit")
            if self.parts.transaction is not None:
                self.parts.transaction.commit(self.events, tuple(self.positions.values()))
            if isinstance(self.parts.source, Commits):
                self.parts.source.commit(tuple(self.positions.values()))
            self.parts.lead.followed()
        self._due.saved(self.events)
        self._watch.saved(self, time.monotonic() - began)

    def _is_urgent(self) -> bool:
        return isinstance(self.parts.source, Urgent) and self.parts.source.urgent

    def _room(self, events: int) -> int:
        """Events to ask for behind `events`: a batch, but not past the next checkpoint that is due by count."""
        room = self._due.room_behind(events)
        return self._pace.events if room is None else min(self._pace.events, room)

    def _start(self, fresh: bool) -> None:
        folder = self.parts.checkpoints
        if folder is not None:
            folder.lock()
        if fresh and folder is not None:
            folder.clear()
        saved = self._saved(fresh)
        if saved is not None and folder is not None:
            check_same_job(saved.job, self.parts.meaning, folder.path)
            self._restore(saved)
            self.resumed_at = self.events
            self._watch.resumed(self.events)
        else:
            self._begin(fresh)
        self._source.seek(tuple(self.positions.values()))
        self._due.saved(self.events)

    def _saved(self, fresh: bool) -> Checkpoint | None:
        """Return the checkpoint to go on from."""
        folder = self.parts.checkpoints
        if folder is None:
            return None
        if self.parts.transaction is None:
            return folder.newest()
        committed = self.parts.transaction.begin()
        if fresh:
            return None
        saved, later = folder.committed(committed)
        if later is not None and isinstance(self.parts.source, Replays):
            # Its outputs were never seen; in the same order the job comes to the same state again.
            self.parts.source.replay(Runs.of(later).stretches)
        return saved

    def _begin(self, fresh: bool) -> None:
        """Start anew: save first, so that from the first byte of output on there is a checkpoint that knows of it."""
        if not fresh:
            for output in self._outputs:
                output.require_absent()
        if self.parts.transaction is not None:
            self.parts.transaction.commit(0, ())
        if self.parts.checkpoints is not None:
            self.parts.checkpoints.save(self._snapshot())
        for output in self._outputs:
            output.create()

    def _snapshot(self) -> Checkpoint:
        state: Snapshot = {}
        for prefix, part in self._stateful():
            state |= nest(prefix, part.state())
        state |= self._runs.taken()
        return Checkpoint(self.events, self.parts.meaning, tuple(self.positions.values()), state)

    def _restore(self, saved: Checkpoint) -> None:
        for prefix, part in self._stateful():
            part.restore(below(prefix, saved.state))
        self.events = saved.events
        self.positions = {position.partition: position for position in saved.positions}

    def _stateful(self) -> list[tuple[str, Any]]:
        tracks: list[tuple[str, Any]] = [(f"track/{index}", track) for index, track in enumerate(self.parts.tracks)]
        sink = [("sink", self.parts.sink)] if self.parts.sink is not None else []
        tracks.append(("lead", self.parts.lead))
        if self.parts.late is not None:
            tracks.append(("labels", self.parts.late))
        if self.parts.duels is not None:
            tracks.append(("duels", self.parts.duels))
        return [*tracks, ("vectoriser", self.parts.vectoriser), ("dead_letters", self.parts.dead_letters), *sink]

    def _close(self) -> None:
        for output in self._outputs:
            output.close()
        self._source.close()
        if self.parts.transaction is not None:
            self.parts.transaction.close()
        if self.parts.checkpoints is not None:
            self.parts.checkpoints.unlock()


def bad_events(batch: Batch, screened: Screened) -> list[Rejected]:
    """Return the events that could not be decoded and those that a learner refused, in the order of the input."""
    refused = []
    for row, (kind, reason) in screened.refused.items():
        offset, raw = batch.origin(row) if batch.origin is not None else (-1, b"")
        refused.append(Rejected(batch.partition, offset, int(batch.records[row]), kind, reason, raw))
    return sorted([*batch.rejected, *refused], key=lambda event: event.record)


def prediction_rows(batch: Batch, good: IntArray, tested: Tested) -> PredictionRows:
    """Return what goes out for the events of a batch that were forecast."""
    rows = slice(None) if len(good) == len(batch) else good  # a copy only where events are left out
    return PredictionRows(
        partition=batch.partition,
        records=batch.records[rows],
        keys=batch.keys[rows] if batch.keys is not None else None,
        labels=batch.labels[rows],
        scores=tested.scores,
        probabilities=tested.probabilities,
        predictions=tested.predictions,
    )
