"""Saved but never committed: learned again in the same turns and partitions, and no dead letter is lost.

Predictions go to a file and dead letters to a topic, whose transaction is played here by a list.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from streamlearn.contracts import Batch, Position, Rejected
from streamlearn.evaluation.registry import make_metric
from streamlearn.features.categories import Vectoriser
from streamlearn.runtime.checkpoint import Checkpoint, CheckpointFolder
from streamlearn.runtime.dead_letters import DeadLetters
from streamlearn.runtime.label_rules import Patience
from streamlearn.runtime.labels import LateLabels
from streamlearn.runtime.lead import Lead
from streamlearn.runtime.loop import Loop, Parts
from streamlearn.runtime.records import empty_batch
from streamlearn.runtime.runs import Run
from streamlearn.runtime.sinks import open_sink
from streamlearn.runtime.tracks import Track
from streamlearn.runtime.turns import Turns
from streamlearn.runtime.waiting import WaitingTable
from tests.naive.logistic import NaiveLogistic
from tests.runtime.late_runs import TURN, Listed, world
from tests.runtime.test_loop import Observer

N_PARTS = 2


class Killed(Exception):
    pass


class Topic:
    """A topic of dead letters and its transactions; it outlives the job."""

    def __init__(self) -> None:
        self.seen: list[Rejected] = []
        self.pending: list[Rejected] = []
        self.committed: int | None = None
        self.commits, self.kill_at = 0, 0

    def begin(self) -> int | None:
        self.pending = []
        return self.committed

    def commit(self, events: int, positions: Sequence[Position]) -> None:
        self.commits += 1
        if self.commits == self.kill_at:
            raise Killed
        self.seen += self.pending
        self.pending, self.committed = [], events

    def put(self, event: Rejected) -> None:
        self.pending.append(event)

    def nothing(self, *_) -> dict:
        return {}

    require_absent = create = flush = close = state = restore = nothing


class Live:
    """Partitions that are silent at times, in an order that depends on the seed; with `patience` they end at last."""

    def __init__(self, name: str, records: list[tuple], seed: int) -> None:
        self.parts = {f"{name}{n}": Listed(f"{name}{n}", records[n::N_PARTS]) for n in range(N_PARTS)}
        self.chance, self.asked, self.runs = np.random.default_rng(seed), None, []
        self.name = name

    ends = False

    def replay(self, runs: Sequence[Run]) -> None:
        self.runs = list(runs)

    def seek(self, positions: Sequence[Position]) -> None:
        for part in self.parts.values():
            part.seek(positions)

    def at_end(self) -> dict[str, bool]:
        return dict.fromkeys(self.parts, False)

    def only(self, partition: str) -> None:
        self.asked = partition

    def poll(self, max_events: int, timeout_s: float) -> Batch | None:
        if all(part.at >= len(part.records) for part in self.parts.values()):
            return None
        while self.runs and self.parts[self.runs[0][0]].at >= self.runs[0][1]:
            self.runs.pop(0)
        if self.chance.random() < 0.5:
            return empty_batch(())
        name, most = self.asked or f"{self.name}{self.chance.integers(N_PARTS)}", max_events
        if self.runs:
            name, end = self.runs[0]
            most = min(most, end - self.parts[name].at)
        return self.parts[name].poll(min(most, int(self.chance.integers(1, 7))), timeout_s) or empty_batch(())

    def close(self) -> None:
        pass


class Killer(Observer):
    """Kills the job behind a number of batches, without a checkpoint."""

    def moved(self, loop: Loop) -> None:
        super().moved(loop)
        if self.asked:
            raise Killed


def make_loop(
    folder: Path, topic: Topic, events, labels, patience: Patience, every: int, tracks=None, watch=None
) -> Loop:
    tracks = tracks or [Track("naive", NaiveLogistic(), [make_metric("logloss"), make_metric("auc")])]
    vectoriser = Vectoriser()
    table = WaitingTable(folder / "waiting.sqlite", keep=3, remember=10**6)
    parts = Parts(
        source=Turns(events, labels, turn=TURN, time=patience.time),
        vectoriser=vectoriser,
        tracks=tracks,
        sink=open_sink(folder / "predictions.ndjson", "ndjson", with_keys=True, with_partitions=True),
        dead_letters=DeadLetters(topic, policy="dead-letter"),
        checkpoints=CheckpointFolder(folder / "checkpoints", keep=3),
        meaning={},
        batch_events=10,
        every=every,
        every_s=float("inf"),
        transaction=topic,
        late=LateLabels(tracks, vectoriser, table, patience),
        lead=Lead(["naive"]),
    )
    return Loop(parts, Observer(), watch or Observer())


def live_loop(folder: Path, topic: Topic, patience: Patience, seed: int, watch=None) -> Loop:
    records = world(1)
    events, labels = Live("e", records.events, seed), Live("l", records.labels, seed + 1000)
    return make_loop(folder, topic, events, labels, patience, every=30, watch=watch)


def state_of(path: Path) -> tuple[dict, dict]:
    """Return what a checkpoint knows and where it stands; what of a batch of labels is held back depends on batches."""
    saved = Checkpoint.read(path)
    state = {name: np.asarray(value).tolist() for name, value in saved.state.items()}
    skip = json.loads({place.partition: place for place in saved.positions}["(turns)"].extra)["skip"]
    places = {place.partition: place.record for place in saved.positions}
    return state, places | skip


@pytest.mark.parametrize(
    "patience", [Patience(10**6), Patience(10**6, timeout_s=12.0, time="t")], ids=["turns", "time"]
)
@pytest.mark.parametrize("again", [False, True], ids=["killed once", "killed again on the way"])
@pytest.mark.parametrize("commit", [2, 3, 5])
@pytest.mark.parametrize("seed", range(3))
def test_what_was_saved_but_never_committed_is_learned_again_in_the_turns_it_was_learned_in(
    tmp_path, patience, commit, seed, again
):
    topic = Topic()
    topic.kill_at = commit
    with pytest.raises(Killed):
        live_loop(tmp_path, topic, patience, seed).run()
    lost = max((tmp_path / "checkpoints").glob("ckpt-*"))
    predictions, saved = (tmp_path / "predictions.ndjson").read_bytes(), state_of(lost)

    if again:
        with pytest.raises(Killed):
            live_loop(tmp_path, topic, patience, seed + 50, Killer(stop_behind=3)).run()
    topic.commits, topic.kill_at = 0, 1
    with pytest.raises(Killed):
        live_loop(tmp_path, topic, patience, seed + 77).run()

    assert topic.committed is not None
    assert (tmp_path / "predictions.ndjson").read_bytes()[: len(predictions)] == predictions
    assert state_of(lost) == saved


def third_class() -> tuple[list[tuple], list[tuple], Patience, NaiveLogistic]:
    """A label of a third class before its event, which is the last one, in the middle of a turn."""
    events = [(f"k{i}", (float(i), 0.1 * i, 1.0), None) for i in range(2 * TURN + 3)]
    labels = [(f"k{i}", (float(i),), i % 2) for i in range(TURN - 1)]
    return events, [*labels, (events[-1][0], (9.0,), 7)], Patience(10**6), NaiveLogistic()


OTHER_FROM = TURN + 4


class Renamed(Listed):
    """Events with another column from some record on."""

    def poll(self, max_events: int, timeout_s: float) -> Batch | None:
        most = min(max_events, OTHER_FROM - self.at) if self.at < OTHER_FROM else max_events
        batch = super().poll(most, timeout_s)
        return replace(batch, names=("t", "a", "c")) if batch is not None and batch.records[0] >= OTHER_FROM else batch


def too_wide() -> tuple[list[tuple], list[tuple], Patience, NaiveLogistic]:
    """Events whose columns were few enough until others were learned, which they wait for without a label."""
    events = [(f"k{i}", (1.0 + i, 0.1 * i, 1.0), None) for i in range(3 * TURN + 5)]
    return events, [], Patience(10**6, timeout_events=TURN + 2), NaiveLogistic(max_features=3)


@pytest.mark.parametrize("make", [third_class, too_wide])
@pytest.mark.parametrize("every", [1, TURN // 2])
def test_a_dead_letter_of_an_event_that_could_not_be_learned_is_written_once_wherever_the_job_is_killed(
    tmp_path, make, every
):
    events, labels, patience, _ = make()

    def run(topic: Topic, folder: Path) -> Loop:
        track = Track("naive", make()[-1], [make_metric("auc")])
        inputs = Renamed("e", events), Listed("l", labels)
        loop = make_loop(folder, topic, *inputs, patience, every, [track])
        loop.run()
        return loop

    whole = Topic()
    (tmp_path / "whole").mkdir()
    late = run(whole, tmp_path / "whole").parts.late
    assert late is not None
    assert late.counts.refused == sum(letter.record < 0 for letter in whole.seen) > 0
    for commit in range(whole.commits, whole.commits - 4, -1):
        topic, folder = Topic(), tmp_path / str(commit)
        folder.mkdir()
        topic.kill_at = commit
        with pytest.raises(Killed):
            run(topic, folder)
        run(topic, folder)
        assert topic.seen == whole.seen
