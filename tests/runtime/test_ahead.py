"""A batch read ahead is the batch that would have been read, at the time at which it is asked for."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from streamlearn.contracts import Batch, Position
from streamlearn.errors import SourceError
from streamlearn.runtime.ahead import ReadAhead
from streamlearn.runtime.records import empty_batch
from streamlearn.runtime.sources import Columns, open_source

TIMEOUT_S = 20.0


class Gate:
    """A source of numbered empty batches, whose polls wait for the gate and whose `fail_at` raises."""

    def __init__(self, *, fail_at: int = -1) -> None:
        self.open = threading.Event()
        self.entered = threading.Event()
        self.fail_at = fail_at
        self.asked: list[int] = []
        self.threads: set[int] = set()
        self.at = 0
        self.closed_at: list[int] = []

    def seek(self, positions: tuple[Position, ...]) -> None:
        self.at = positions[0].record if positions else 0

    def poll(self, max_events: int, timeout_s: float) -> Batch:
        self.entered.set()
        assert self.open.wait(TIMEOUT_S)
        self.asked.append(max_events)
        self.threads.add(threading.get_ident())
        if self.at == self.fail_at:
            raise SourceError("numbers: must go on, got an end")
        self.at += 1
        return empty_batch((Position("numbers", record=self.at),))

    def close(self) -> None:
        self.closed_at.append(len(self.asked))


def record(batch: Batch | None) -> int:
    assert batch is not None
    return batch.positions[0].record


def test_the_next_batch_is_read_while_the_caller_is_busy():
    source = Gate()
    ahead = ReadAhead(source)
    ahead.begin(10, 0.0)
    assert source.entered.wait(TIMEOUT_S)  # the poll runs, and this thread does too
    source.open.set()
    assert record(ahead.poll(99, 0.0)) == 1
    assert source.asked == [10]
    assert threading.get_ident() not in source.threads
    ahead.close()


def test_without_a_beginning_the_batch_is_read_when_it_is_asked_for():
    source = Gate()
    source.open.set()
    ahead = ReadAhead(source)
    assert record(ahead.poll(7, 0.0)) == 1
    assert source.asked == [7]
    assert source.threads == {threading.get_ident()}
    ahead.close()


def test_only_one_batch_is_read_ahead():
    source = Gate()
    source.open.set()
    ahead = ReadAhead(source)
    ahead.begin(1, 0.0)
    ahead.begin(2, 0.0)
    assert record(ahead.poll(3, 0.0)) == 1
    assert record(ahead.poll(4, 0.0)) == 2
    assert source.asked == [1, 4]
    ahead.close()


def test_an_error_is_raised_where_the_batch_would_have_come():
    source = Gate(fail_at=1)
    source.open.set()
    ahead = ReadAhead(source)
    assert record(ahead.poll(1, 0.0)) == 1
    ahead.begin(1, 0.0)
    with pytest.raises(SourceError, match="must go on"):
        ahead.poll(1, 0.0)
    ahead.close()


def test_seeking_drops_what_was_read_ahead():
    source = Gate()
    source.open.set()
    ahead = ReadAhead(source)
    ahead.begin(1, 0.0)
    ahead.seek((Position("numbers", record=40),))
    assert record(ahead.poll(1, 0.0)) == 41
    ahead.close()


def test_closing_waits_for_the_thread_and_swallows_what_nobody_asked_for():
    source = Gate(fail_at=0)
    ahead = ReadAhead(source)
    ahead.begin(1, 0.0)
    assert source.entered.wait(TIMEOUT_S)
    source.open.set()
    ahead.close()
    ahead.close()
    assert source.closed_at == [1, 1]


def test_a_file_read_ahead_gives_the_events_and_positions_of_one_that_is_not(tmp_path):
    path = tmp_path / "rows.csv"
    rng = np.random.default_rng(3)
    rows = [f"{a:.17g},{b:.6g},{int(a > b)}" for a, b in rng.normal(size=(5000, 2)).tolist()]
    path.write_text("\n".join(["a,b,label", *rows, "x,1,0", ""]))

    def batches(*, with_ahead: bool) -> list[Batch]:
        source = ReadAhead(open_source("csv", path, Columns(label="label"), block_bytes=4096))
        source.seek(())
        found = []
        while (batch := source.poll(100, 0.0)) is not None:
            if with_ahead:
                source.begin(100, 0.0)
            found.append(batch)
        source.close()
        return found

    plain, ahead = batches(with_ahead=False), batches(with_ahead=True)
    assert [batch.positions for batch in ahead] == [batch.positions for batch in plain]
    assert [batch.rejected for batch in ahead] == [batch.rejected for batch in plain]
    for name in ("values", "labels", "records"):
        mine, other = (
            np.concatenate([getattr(batch, name) for batch in found if len(batch)]) for found in (ahead, plain)
        )
        assert mine.tolist() == other.tolist()
    assert [event.raw for batch in ahead for event in batch.rejected] == [b"x,1,0"]
