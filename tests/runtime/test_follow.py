"""A file that grows, is rotated and is cut, read as it happens and across restarts."""

from __future__ import annotations

import pytest

from streamlearn.errors import SourceError
from streamlearn.runtime.sources import Columns, open_source
from tests.runtime.drain import Drained

LABEL = Columns(label="label")
HEADER = "x,label\n"


class Log:
    """A log file and a source that follows it."""

    def __init__(self, folder, kind="csv"):
        self.path, self.kind = folder / "events.log", kind
        self.found = Drained()
        self.source = self._open()

    def _open(self):
        return open_source(self.kind, self.path, LABEL, follow=True, block_bytes=64)

    def write(self, text):
        with self.path.open("a", newline="") as file:
            file.write(text)

    def poll(self, max_events=100):
        """Return the x of what came now."""
        out = []
        while len(batch := self.source.poll(max_events, 0.0)) or batch.rejected:
            self.found.take(batch)
            out += batch.values[:, list(batch.names).index("x")].tolist() if len(batch) else []
        self.found.positions |= {position.partition: position for position in batch.positions}
        return out

    def restart(self):
        self.source.close()
        self.source = self._open()
        self.source.seek(list(self.found.positions.values()))

    def rotate(self, name):
        self.path.rename(self.path.with_name(name))


@pytest.fixture
def log(tmp_path):
    log = Log(tmp_path)
    yield log
    log.source.close()


def test_a_half_written_line_waits_for_its_newline(log):
    assert log.poll() == []
    log.write("x,la")
    assert log.poll() == []
    log.write("bel\n1,0\n2,")
    assert log.poll() == [1.0]
    log.write("1")
    assert log.poll() == []
    log.write("\n3,0\n")
    assert log.poll() == [2.0, 3.0]


@pytest.mark.parametrize("restart", [False, True])
def test_a_rotated_file_is_finished_before_the_new_one_begins(log, restart):
    log.write(HEADER + "1,0\n2,0\n")
    assert log.poll(1) == [1.0, 2.0]
    log.rotate("events.log.1")
    with log.path.with_name("events.log.1").open("a") as old:
        old.write("3,0\n4,1")  # the writer has not noticed yet
    if restart:
        log.restart()
    assert log.poll() == [3.0]
    log.write("")
    assert log.poll() == []  # an empty successor proves nothing
    log.write(HEADER + "5,0\n")
    if restart:
        log.restart()
    assert log.poll() == [4.0, 5.0]
    assert [record for _, record in sorted(log.found.events)] == list(range(5))
    log.write("6,0\n")
    if restart:
        log.restart()
    assert log.poll() == [6.0]


def test_two_rotations_while_nobody_reads_lose_nothing(log):
    log.write(HEADER + "1,0\n")
    assert log.poll() == [1.0]
    log.write("2,0\n")
    log.rotate("events.log.2")
    log.write(HEADER + "3,0\n")
    log.rotate("events.log.1")
    log.write(HEADER + "4,0\n")
    log.restart()
    assert log.poll() == [2.0, 3.0, 4.0]


@pytest.mark.parametrize("again", ["9,0\n", "9,0\n" + "8,0\n" * 20])
def test_a_cut_file_is_read_from_its_start_again(log, again, caplog):
    log.write(HEADER + "1,0\n2,0\n3,")
    assert log.poll() == [1.0, 2.0]
    log.path.write_text("label,x\n" + again.replace("9,0", "0,9").replace("8,0", "0,8"))
    assert log.poll() == [9.0] + [8.0] * (again.count("8"))
    assert [record for _, record in sorted(log.found.events)][:3] == [0, 1, 2]
    assert "was cut" in caplog.text


def test_a_cut_while_nobody_reads_is_refused(log):
    log.write(HEADER + "1,0\n2,0\n")
    log.poll()
    log.path.write_text(HEADER)
    with pytest.raises(SourceError, match="must be the input of the checkpoint"):
        log.restart()


def test_json_lines_are_followed_too(tmp_path):
    log = Log(tmp_path, "ndjson")
    log.write('{"x": 1}\n{"x": 2')
    assert log.poll() == [1.0]
    log.write("}\n")
    log.restart()
    assert log.poll() == [2.0]
    log.source.close()
