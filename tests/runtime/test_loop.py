"""The loop: nothing lost, nothing twice, and no trace of batches, checkpoints, stops or restarts in any output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import numpy as np
import pytest

from streamlearn.contracts import Batch, Position, Rejected
from streamlearn.errors import BadEvent, BadJob, NotResumable, SinkError
from streamlearn.evaluation.curve import RejectCurve
from streamlearn.evaluation.registry import make_metric
from streamlearn.features.categories import Vectoriser
from streamlearn.runtime.checkpoint import CheckpointFolder
from streamlearn.runtime.dead_letters import DeadLetters
from streamlearn.runtime.loop import Loop, Parts
from streamlearn.runtime.report import make_report
from streamlearn.runtime.sinks import open_sink
from streamlearn.runtime.tracks import Track
from tests.naive.logistic import NaiveLogistic

N_EVENTS = 400
SEED = 11
UNDECODABLE, NOT_FINITE, THIRD_LABEL, UNLABELLED = {5, 130, 131, 399}, {40, 200}, {77}, {3, 150, 151}


def events() -> tuple[np.ndarray, list[str], list[object]]:
    """Return values, one text column and labels; the text decides as much as the values."""
    rng = np.random.default_rng(SEED)
    values = rng.normal(size=(N_EVENTS, 3))
    colours = rng.choice(["red", "green", "blue"], size=N_EVENTS).tolist()
    shift = np.array([1.0 if colour == "red" else -0.5 for colour in colours])
    labels: list[object] = (values[:, 0] + shift + rng.normal(size=N_EVENTS) > 0).astype(int).tolist()
    for row in NOT_FINITE:
        values[row, 1] = np.nan
    for row in THIRD_LABEL:
        labels[row] = 9
    for row in UNLABELLED:
        labels[row] = None
    return values, colours, labels


class MemorySource:
    """A source over arrays, resumable at any record."""

    def __init__(self) -> None:
        self.values, self.colours, self.labels = events()
        self.at = 0
        self.committed: list[int] = []
        self.closed = False

    def seek(self, positions: Sequence[Position]) -> None:
        self.at = positions[0].record if positions else 0

    def poll(self, max_events: int, timeout_s: float) -> Batch | None:
        if self.at == N_EVENTS:
            return None
        stretch = range(self.at, min(N_EVENTS, self.at + max_events))
        good = [row for row in stretch if row not in UNDECODABLE]
        self.at = stretch.stop
        return Batch(
            names=("a", "b", "c"),
            values=self.values[good].reshape(len(good), 3),
            labels=np.array([self.labels[row] for row in good], dtype=object),
            records=np.array(good, dtype=np.int64),
            positions=(Position("memory", offset=8 * self.at, record=self.at),),
            text={"colour": np.array([self.colours[row] for row in good], dtype=object)},
            rejected=[Rejected("memory", 8 * r, r, "syntax", "no number", b"?") for r in stretch if r in UNDECODABLE],
            partition="memory",
            origin=lambda row: (8 * good[row], f"event {good[row]}".encode()),
        )

    def commit(self, positions: tuple[Position, ...]) -> None:
        self.committed.append(positions[0].record if positions else 0)

    def close(self) -> None:
        self.closed = True


@dataclass
class Observer:
    """Watches a loop and asks it to stop behind a number of batches."""

    stop_behind: float = float("inf")
    asked: bool = False
    batches: int = 0
    resumed_at: list[int] = field(default_factory=list)
    polls: int = 0
    saves: list[float] = field(default_factory=list)

    def polled(self, loop: Loop) -> None:
        self.polls += 1

    def saved(self, loop: Loop, seconds: float) -> None:
        self.saves.append(seconds)

    def resumed(self, n_events: int) -> None:
        self.resumed_at.append(n_events)

    def moved(self, loop: Loop) -> None:
        self.batches += 1
        self.asked = self.batches >= self.stop_behind


def parts_in(
    folder: Path, *, batch_events=64, every=None, meaning="same", checkpoints=True, delay=0, source=None, **letters
) -> Parts:
    metrics = ("auc", "auc:window=50", "logloss", "kappa_t", "reject_auc:d=0.4")
    return Parts(
        source=source or MemorySource(),
        vectoriser=Vectoriser(),
        tracks=[
            Track(
                title,
                NaiveLogistic(rate=rate),
                [make_metric(spec) for spec in metrics],
                curve=RejectCurve(),
                delay=delay,
            )
            for title, rate in (("first", 0.1), ("shadow", 0.5))
        ],
        sink=open_sink(folder / "predictions.ndjson", "ndjson", with_keys=False, with_partitions=False),
        dead_letters=DeadLetters(folder / "bad.ndjson", **{"policy": "dead-letter", **letters}),
        checkpoints=CheckpointFolder(folder / "checkpoints", keep=2) if checkpoints else None,
        meaning={"key": meaning},
        batch_events=batch_events,
        every=every,
        every_s=float("inf"),
    )


def outputs(folder: Path, parts: Parts) -> dict[str, bytes]:
    report = make_report("job", parts.tracks, events=0, dead_letters=parts.dead_letters, timing={})
    models = {
        f"model {k}": repr(sorted(track.learner.state().items(), key=str)) for k, track in enumerate(parts.tracks)
    }
    return {
        "predictions": (folder / "predictions.ndjson").read_bytes(),
        "dead letters": (folder / "bad.ndjson").read_bytes(),
        "report": msgspec.json.encode(report),
        **{name: text.encode() for name, text in models.items()},
    }


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    parts = parts_in(folder)
    assert Loop(parts, Observer(), Observer()).run()
    return outputs(folder, parts)


def test_every_event_goes_out_once_or_is_a_dead_letter_once(uninterrupted):
    lines = uninterrupted["predictions"].splitlines()
    gone = [msgspec.json.decode(line) for line in lines]
    dead = [msgspec.json.decode(line) for line in uninterrupted["dead letters"].splitlines()]

    bad = UNDECODABLE | NOT_FINITE | THIRD_LABEL
    assert [row["record"] for row in gone] == [row for row in range(N_EVENTS) if row not in bad]
    assert [row["record"] for row in dead] == sorted(bad)


def test_dead_letters_say_kind_place_and_raw_bytes(uninterrupted):
    dead = {row["record"]: row for row in map(msgspec.json.decode, uninterrupted["dead letters"].splitlines())}

    assert {dead[row]["kind"] for row in NOT_FINITE} == {"value"}
    assert {dead[row]["kind"] for row in THIRD_LABEL} == {"label"}
    assert (dead[77]["offset"], dead[77]["raw"], dead[77]["partition"]) == (616, "event 77", "memory")
    assert "9" in dead[77]["reason"]


def test_events_without_label_are_scored(uninterrupted):
    rows = {row["record"]: row for row in map(msgspec.json.decode, uninterrupted["predictions"].splitlines())}

    for record in UNLABELLED:
        assert rows[record]["label"] is None
        assert isinstance(rows[record]["score"], float)


@pytest.mark.parametrize("batch_events", [1, 7, 1000])
@pytest.mark.parametrize("every", [None, 1, 50])
def test_neither_batches_nor_checkpoints_show_in_any_output(batch_events, every, tmp_path, uninterrupted):
    parts = parts_in(tmp_path, batch_events=batch_events, every=every)

    assert Loop(parts, Observer(), Observer()).run()

    assert outputs(tmp_path, parts) == uninterrupted


@pytest.mark.parametrize("stop_behind", [1, 2, 5])
@pytest.mark.parametrize("batch_events", [13, 64])
def test_stopped_and_resumed_equals_never_stopped(stop_behind, batch_events, tmp_path, uninterrupted):
    for attempt in range(100):
        parts = parts_in(tmp_path, batch_events=batch_events + attempt % 3)
        observer = Observer(stop_behind)
        if Loop(parts, observer, observer).run():
            break

    assert attempt >= 1
    assert outputs(tmp_path, parts) == uninterrupted


def test_labels_that_come_late_survive_a_restart(tmp_path):
    whole = tmp_path / "whole"
    parts = parts_in(whole, delay=30)
    Loop(parts, Observer(), Observer()).run()
    for track in parts.tracks:
        track.finish()

    for _ in range(100):
        again = parts_in(tmp_path, delay=30, batch_events=23)
        observer = Observer(stop_behind=3)
        if Loop(again, observer, observer).run():
            break
    for track in again.tracks:
        track.finish()

    assert outputs(tmp_path, again) == outputs(whole, parts)


class TwoNames(MemorySource):
    """The same stream with text labels, of which the greater one, the positive, comes first and alone for a while."""

    N_ALONE = 60

    def __init__(self) -> None:
        super().__init__()
        names = {0: "dry", 1: "wet", None: None, 9: None}
        self.labels = ["wet" if row < self.N_ALONE else names[label] for row, label in enumerate(self.labels)]


@pytest.mark.parametrize("delay", [0, 30])
def test_forecasts_from_before_both_labels_were_seen_are_measured_alike_through_restarts(delay, tmp_path):
    whole = tmp_path / "whole"
    parts = parts_in(whole, delay=delay, batch_events=N_EVENTS, source=TwoNames())
    Loop(parts, Observer(), Observer()).run()

    for _ in range(100):
        again = parts_in(tmp_path, delay=delay, batch_events=11, source=TwoNames())
        observer = Observer(stop_behind=2)
        if Loop(again, observer, observer).run():
            break
    for track in (*parts.tracks, *again.tracks):
        track.finish()

    assert outputs(tmp_path, again) == outputs(whole, parts)
    assert parts.tracks[0].metrics[0].get() > 0.6


def test_what_was_written_behind_the_checkpoint_is_cut_back(tmp_path, uninterrupted):
    observer = Observer(stop_behind=2)
    Loop(parts_in(tmp_path), observer, observer).run()
    for name in ("predictions.ndjson", "bad.ndjson"):
        with (tmp_path / name).open("ab") as file:
            file.write(b"half a li")

    parts = parts_in(tmp_path)
    assert Loop(parts, Observer(), Observer()).run()

    assert outputs(tmp_path, parts) == uninterrupted


def test_a_finished_job_that_is_run_again_does_nothing_and_reports_the_same(tmp_path, uninterrupted):
    Loop(parts_in(tmp_path), Observer(), Observer()).run()

    parts = parts_in(tmp_path)
    observer = Observer()
    assert Loop(parts, observer, observer).run()

    assert (observer.batches, observer.resumed_at) == (0, [N_EVENTS])
    assert outputs(tmp_path, parts) == uninterrupted


def test_the_input_is_told_of_a_position_only_when_a_checkpoint_has_it(tmp_path):
    parts = parts_in(tmp_path, every=100)
    saved = []

    class Spy(CheckpointFolder):
        def save(self, checkpoint):
            assert parts.source.committed == saved[1:]  # the checkpoint before the first event is not committed
            saved.append(checkpoint.events)
            return super().save(checkpoint)

    parts.checkpoints = Spy(tmp_path / "checkpoints", keep=2)
    Loop(parts, Observer(), Observer()).run()

    assert saved == [0, 100, 200, 300, 400, 400]
    assert parts.source.committed == [100, 200, 300, 400, 400]


def test_checkpoints_come_by_the_clock_too(tmp_path):
    parts = parts_in(tmp_path, batch_events=50)
    parts.every_s = 1e-9

    Loop(parts, Observer(), Observer()).run()

    assert parts.source.committed == [50, 100, 150, 200, 250, 300, 350, 400, 400]


def test_a_job_that_changed_is_refused(tmp_path):
    observer = Observer(stop_behind=2)
    Loop(parts_in(tmp_path), observer, observer).run()

    with pytest.raises(BadJob, match=r"^key: must be as in the checkpoint"):
        Loop(parts_in(tmp_path, meaning="other"), Observer(), Observer()).run()


def test_output_of_another_run_is_not_written_over_unless_asked(tmp_path, uninterrupted):
    (tmp_path / "predictions.ndjson").write_bytes(b"precious\n")

    with pytest.raises(SinkError, match="--fresh"):
        Loop(parts_in(tmp_path), Observer(), Observer()).run()
    assert (tmp_path / "predictions.ndjson").read_bytes() == b"precious\n"

    parts = parts_in(tmp_path)
    Loop(parts, Observer(), Observer()).run(fresh=True)
    assert outputs(tmp_path, parts) == uninterrupted


def test_fresh_replaces_checkpoints_and_outputs_of_a_run_before(tmp_path, uninterrupted):
    observer = Observer(stop_behind=2)
    Loop(parts_in(tmp_path, meaning="other"), observer, observer).run()

    parts = parts_in(tmp_path)
    Loop(parts, Observer(), Observer()).run(fresh=True)

    assert outputs(tmp_path, parts) == uninterrupted


def test_a_job_without_checkpoints_runs_and_leaves_none(tmp_path, uninterrupted):
    parts = parts_in(tmp_path, checkpoints=False, every=50)

    assert Loop(parts, Observer(), Observer()).run()

    assert outputs(tmp_path, parts) == uninterrupted
    assert not (tmp_path / "checkpoints").exists()


def test_a_learner_without_state_is_refused_before_anything_is_written(tmp_path):
    class Stateless(NaiveLogistic):
        def state(self):
            raise NotResumable("no state")

    parts = parts_in(tmp_path)
    parts.tracks[1].learner = Stateless()

    with pytest.raises(NotResumable):
        Loop(parts, Observer(), Observer()).run()
    assert list(tmp_path.iterdir()) == []


def test_the_policy_to_stop_ends_the_job_and_the_checkpoint_before_is_sound(tmp_path, uninterrupted):
    with pytest.raises(BadEvent, match="event 40: value: NaiveLogistic"):
        Loop(parts_in(tmp_path, every=20, stop_kinds=frozenset({"value"})), Observer(), Observer()).run()

    parts = parts_in(tmp_path)
    observer = Observer()
    Loop(parts, observer, observer).run()
    assert observer.resumed_at == [40]
    assert outputs(tmp_path, parts) == uninterrupted


def test_who_looks_on_hears_of_every_poll_and_every_checkpoint(tmp_path):
    observer = Observer()

    Loop(parts_in(tmp_path, batch_events=100, every=200), Observer(), observer).run()

    assert observer.batches == 4
    assert observer.polls == 5  # the last one has nothing
    assert len(observer.saves) == 3
    assert all(seconds > 0.0 for seconds in observer.saves)


def test_the_source_is_closed_whatever_happens(tmp_path):
    parts = parts_in(tmp_path, policy="stop")

    with pytest.raises(BadEvent):
        Loop(parts, Observer(), Observer()).run()

    assert parts.source.closed
