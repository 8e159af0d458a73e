"""Checkpoints: written whole, kept in number, read back exactly, damaged ones passed over in the open."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
import pytest

from streamlearn.contracts import Position
from streamlearn.errors import BadJob, BadSnapshot, NewerSnapshot, SinkError
from streamlearn.runtime.checkpoint import Checkpoint, CheckpointFolder, check_same_job


def checkpoint_at(events: int) -> Checkpoint:
    state = {"learner/0/array/w": np.arange(events, dtype=np.float64), "dead/counts": '{"value": 2}', "sink/bytes": 71}
    position = Position("events.csv", offset=10 * events, record=events, fingerprint="4096:ab", extra='["a", "b"]')
    return Checkpoint(events, {"source.kind": "'csv'"}, (position,), state)


@pytest.fixture
def folder(tmp_path):
    return CheckpointFolder(tmp_path / "deep" / "checkpoints", keep=2)


def test_a_checkpoint_comes_back_as_it_was_saved(folder):
    folder.save(checkpoint_at(5))

    found = folder.newest()

    assert found.pack() == checkpoint_at(5).pack()
    assert found.positions == checkpoint_at(5).positions
    assert found.state["learner/0/array/w"].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_there_is_none_before_the_first_save(folder):
    assert folder.newest() is None


def test_the_newest_wins_and_only_the_kept_number_stays(folder):
    for events in (9, 10, 11, 100):
        folder.save(checkpoint_at(events))

    assert folder.newest().events == 100
    assert [path.name for path in folder.files()] == ["ckpt-000000000011.safetensors", "ckpt-000000000100.safetensors"]


def test_what_a_crash_left_of_a_half_written_file_is_removed(folder):
    folder.save(checkpoint_at(5))
    left = folder.path / ".ckpt-000000000009.safetensors.123.tmp"
    left.write_bytes(b"half")

    assert folder.newest().events == 5
    assert not left.exists()


@pytest.mark.parametrize(
    "damage", [lambda data: data[: len(data) // 2], lambda data: data[:-1] + b"\x7f", lambda _: b""]
)
def test_a_damaged_newest_is_passed_over_with_a_warning_that_names_it(folder, damage, caplog):
    folder.save(checkpoint_at(5))
    newest = folder.save(checkpoint_at(7))
    newest.write_bytes(damage(newest.read_bytes()))

    with caplog.at_level(logging.WARNING):
        found = folder.newest()

    assert found.events == 5
    assert str(newest) in caplog.text


def test_when_all_are_damaged_somebody_must_decide(folder):
    folder.save(checkpoint_at(5)).write_bytes(b"gone")

    with pytest.raises(BadSnapshot, match="no sound checkpoint is left, run with --fresh"):
        folder.newest()


def test_a_file_of_a_newer_format_is_never_passed_over(folder, monkeypatch):
    folder.save(checkpoint_at(5))
    monkeypatch.setattr("streamlearn.snapshot.FORMAT", 99)
    folder.save(checkpoint_at(7))
    monkeypatch.undo()

    with pytest.raises(NewerSnapshot, match="ckpt-000000000007"):
        folder.newest()


def test_clearing_removes_all_of_them_and_nothing_else(folder):
    folder.save(checkpoint_at(5))
    other = folder.path / "notes.txt"
    other.write_text("mine")

    folder.clear()

    assert list(folder.path.iterdir()) == [other]


@pytest.mark.parametrize(
    ("now", "message"),
    [
        ({"a.b": "1", "c.d": "3"}, r"^c\.d: must be as in the checkpoint of .* \(2\), got 3"),
        ({"a.b": "1"}, r"^c\.d: must be as in the checkpoint of .* \(2\), got absent"),
        ({"a.b": "1", "c.d": "2", "e": "5"}, r"^e: must be as in the checkpoint of .* \(absent\), got 5"),
    ],
)
def test_a_job_that_changed_is_refused_by_the_key_that_changed(now, message, tmp_path):
    with pytest.raises(BadJob, match=message):
        check_same_job({"a.b": "1", "c.d": "2"}, now, tmp_path)


def test_the_same_job_passes(tmp_path):
    check_same_job({"a.b": "1"}, {"a.b": "1"}, tmp_path)


def test_a_folder_is_used_by_one_process_at_a_time(tmp_path):
    first, second = CheckpointFolder(tmp_path / "c", 2), CheckpointFolder(tmp_path / "c", 2)
    first.save(Checkpoint(0, {}, (), {}))

    with pytest.raises(SinkError, match="must be used by one process at a time"):
        second.lock()
    first.unlock()
    second.lock()
    second.unlock()


def numbered(folder, *events):
    for n in events:
        folder.save(Checkpoint(n, {}, (), {}))
    folder.unlock()
    return folder


@pytest.mark.parametrize("next_one", [15, 25, 30])
def test_the_committed_checkpoint_is_chosen_and_the_last_one_behind_it_stays_until_the_next(tmp_path, next_one):
    folder = numbered(CheckpointFolder(tmp_path / "c", 4), 0, 10, 20, 25)

    for again in (folder, CheckpointFolder(tmp_path / "c", 4)):
        saved, later = again.committed(10)
        assert (saved.events, later.events) == (10, 25)
        assert [int(path.name[5:17]) for path in again.files()] == [0, 10, 25]
    again.save(replace(saved, events=next_one))

    assert [int(path.name[5:17]) for path in again.files()] == [0, 10, next_one]


def test_a_job_that_died_before_its_first_commit_goes_on_from_its_first_checkpoint(tmp_path):
    saved, later = numbered(CheckpointFolder(tmp_path / "c", 3), 0).committed(None)

    assert (saved.events, later) == (0, None)
    assert CheckpointFolder(tmp_path / "other", 3).committed(None) == (None, None)


@pytest.mark.parametrize("committed", [None, 15])
def test_a_checkpoint_that_is_not_the_committed_one_is_refused(tmp_path, committed):
    folder = numbered(CheckpointFolder(tmp_path / "c", 3), 0, 10, 20)

    with pytest.raises(BadSnapshot, match="must hold the checkpoint whose outputs were committed"):
        folder.committed(committed)
