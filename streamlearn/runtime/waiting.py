"""The table of events that wait for their labels, and of labels that wait for their events: on disk, by key.

SQLite keeps it, so that ten million entries need no memory and a checkpoint writes what changed and not the whole
table. Every entry carries the operation that made it and the one that settled it. A checkpoint knows the number of
operations; going back to it removes what is younger and revives what was settled later. So any checkpoint that is kept
is as right as the newest one, whatever the table went through since.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from streamlearn.contracts import Snapshot
from streamlearn.errors import SinkError

EVENT, LABEL = 0, 1
"""Kinds of entries."""
MATCHED, EXPIRED = 0, 1
"""How an entry was settled."""
CACHE_KIB = 256 * 1024
"""Pages kept in memory, as far as there are any. With a quarter of it a million events are read four times over."""
FETCH_ROWS = 4096

_SCHEMA = """
CREATE TABLE IF NOT EXISTS entries (
  op INTEGER PRIMARY KEY, key TEXT NOT NULL, kind INTEGER NOT NULL, clock REAL NOT NULL,
  form INTEGER NOT NULL, payload BLOB, gone INTEGER, how INTEGER);
CREATE INDEX IF NOT EXISTS by_key ON entries (key);
CREATE INDEX IF NOT EXISTS by_gone ON entries (gone) WHERE gone IS NOT NULL;
CREATE TABLE IF NOT EXISTS forms (form INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS about (ops INTEGER NOT NULL);
"""


@dataclass(frozen=True, slots=True)
class Known:
    """What the table knows of a key.

    Attributes
    ----------
    op : int
        The operation that made the entry; its name.
    kind : int
        `EVENT` or `LABEL`.
    how : int or None
        None while it waits, else `MATCHED` or `EXPIRED`.
    gone : int or None
        The operation that settled it.
    """

    op: int
    kind: int
    how: int | None = None
    gone: int | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """One waiting entry.

    Attributes
    ----------
    op, kind : int
    key : str
    clock : float
        When it came.
    form : int
        What the numbers of its payload are: given by `WaitingTable.form`.
    payload : bytes
        Doubles of an event; the label as JSON.
    """

    op: int
    kind: int
    key: str
    clock: float
    form: int
    payload: bytes


class WaitingTable:
    """The entries of one job.

    Nothing is touched before `create` (a new job) or `restore` (a resumed one).

    Parameters
    ----------
    path : Path or None
        The file; None: a temporary one that is gone with the process, for a job without checkpoints.
    keep : int
        How many checkpoints can be gone back to.
    remember : int
        For how many operations the key of a settled entry is remembered.
    """

    def __init__(self, path: Path | None, *, keep: int, remember: int) -> None:
        self.path, self.keep, self.remember = path, keep, remember
        self.ops = 0
        """Operations so far: an event, a label, or entries settled together."""
        self.waiting = [0, 0]
        """How many events and how many labels wait."""
        self.records = 0
        """Records that came; a checkpoint takes the place of another one behind the same number of them."""
        self._flushed = 0  # records at the newest of those checkpoints
        self._saved: list[int] = []  # operations at the checkpoints that may be gone back to
        self._floor = 0  # no entry before this operation waits
        self._emptied = 0  # entries settled before this operation have no payload
        self._forms: dict[str, int] = {}
        self._texts: dict[int, str] = {}
        self._db: sqlite3.Connection | None = None

    def next_op(self) -> int:
        """Return the number of a new operation.

        Whatever is written carries the number of an operation of its own: a checkpoint tells by it what came later.
        """
        self.ops += 1
        return self.ops - 1

    # -- entries -------------------------------------------------------------------------------------------------------
    def look_up(self, keys: Sequence[str]) -> dict[str, Known]:
        """Return what is known of those keys that are known; the youngest entry counts."""
        found = self._opened.execute(
            "SELECT e.key, e.op, e.kind, e.how, e.gone FROM json_each(?) AS k JOIN entries AS e ON e.key = k.value"
            " ORDER BY e.op",
            (json.dumps(list(dict.fromkeys(keys))),),
        )
        return {key: Known(op, kind, how, gone) for key, op, kind, how, gone in found}

    def remembered(self, known: Known | None, op: int) -> Known | None:
        """Return what is known, or None where it was settled so long before an operation that it counts as forgotten.

        When forgotten entries leave the file depends on the checkpoints; what they count as must not.
        """
        forgotten = known is None or (known.gone is not None and known.gone < op - self.remember)
        return None if forgotten else known

    def add(self, entries: Sequence[Entry]) -> None:
        """Let entries wait."""
        rows = [(e.op, e.key, e.kind, e.clock, e.form, e.payload) for e in entries]
        self._opened.executemany(
            "INSERT INTO entries (op, key, kind, clock, form, payload) VALUES (?, ?, ?, ?, ?, ?)", rows
        )
        for entry in entries:
            self.waiting[entry.kind] += 1

    def settle(self, settled: Sequence[tuple[int, int, int]], how: int) -> None:
        """Note that entries wait no more: the operation of each, its kind, and the operation that settles it."""
        rows = [(now, how, op) for op, _, now in settled]
        self._opened.executemany("UPDATE entries SET gone = ?, how = ? WHERE op = ?", rows)
        for _, kind, _ in settled:
            self.waiting[kind] -= 1

    def fetch(self, ops: Sequence[int]) -> list[Entry]:
        """Return entries by their operations, in the order asked for."""
        found = self._opened.execute(
            "SELECT e.op, e.kind, e.key, e.clock, e.form, e.payload FROM json_each(?) AS k JOIN entries AS e"
            " ON e.op = k.value",
            (json.dumps(list(ops)),),
        )
        entries = {row[0]: Entry(*row) for row in found}
        return [entries[op] for op in ops]

    def oldest(self, before: float, surplus: int) -> Iterator[list[Entry]]:
        """Give the waiting entries that came before a time, and at least the `surplus` oldest ones, oldest first.

        They are given in lists of a bounded length; each list must be settled before the next is asked for.
        """
        while True:
            found = self._opened.execute(
                "SELECT op, kind, key, clock, form, payload FROM entries WHERE op >= ? AND gone IS NULL"
                " ORDER BY op LIMIT ?",
                (self._floor, FETCH_ROWS),
            )
            rows = [Entry(*row) for row in found]
            due = [entry for n, entry in enumerate(rows) if n < surplus or entry.clock < before]
            if rows:
                self._floor = due[-1].op + 1 if due else rows[0].op
            surplus -= len(due)
            if due:
                yield due
            if len(due) < FETCH_ROWS:
                return

    def n_entries(self) -> int:
        """Return how many entries are in the file, settled ones too."""
        (n,) = self._opened.execute("SELECT count(*) FROM entries").fetchone()
        return int(n)

    def form(self, text: str) -> int:
        """Return the number under which a text is kept, for payloads that need it to be read."""
        number = self._forms.get(text)
        if number is None:
            number = len(self._forms)
            self._opened.execute("INSERT INTO forms (form, text) VALUES (?, ?)", (number, text))
            self._forms[text], self._texts[number] = number, text
        return number

    def text(self, form: int) -> str:
        """Return the text that has a number."""
        return self._texts[form]

    # -- durability ----------------------------------------------------------------------------------------------------
    def require_absent(self) -> None:
        """Do nothing: the file belongs to the checkpoints, and goes with them."""

    def create(self) -> None:
        """Start with an empty table."""
        self.close()
        for suffix in ("", "-wal", "-shm"):
            if self.path is not None:
                self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)
        self.ops, self.waiting, self._saved, self._floor, self._emptied = 0, [0, 0], [0], 0, 0
        self.records = self._flushed = 0
        self._open()
        self._opened.execute("INSERT INTO about (ops) VALUES (0)")
        self._opened.commit()

    def flush(self) -> None:
        """Make everything durable, and drop what no checkpoint can ask for any more."""
        # While nothing comes, one checkpoint replaces the other, and those before it are kept all the same.
        before = self._saved[:-1] if self.records == self._flushed else self._saved
        self._saved, self._flushed = [*before, self.ops][-self.keep - 1 :], self.records
        oldest = self._saved[0]
        db = self._opened
        db.execute("DELETE FROM entries WHERE gone < ?", (oldest - self.remember,))
        db.execute("UPDATE entries SET payload = NULL WHERE gone >= ? AND gone < ?", (self._emptied, oldest))
        self._emptied = oldest
        db.execute("UPDATE about SET ops = ?", (self.ops,))
        try:
            db.commit()
        except sqlite3.Error as error:
            raise SinkError(f"labels: {self.path} cannot be made durable: {error}") from error

    def close(self) -> None:
        """Release the file; what was not flushed is gone; may be called twice."""
        if self._db is not None:
            self._db.rollback()
            self._db.close()
            self._db = None

    def state(self) -> Snapshot:
        """Return what a checkpoint has to know; the entries stay in the file."""
        saved = json.dumps(self._saved)
        return {"ops": self.ops, "events": self.waiting[0], "labels": self.waiting[1], "saved": saved}

    def restore(self, state: Snapshot) -> None:
        """Bring the file back to what it was at a checkpoint.

        Raises
        ------
        SinkError
            The file is gone, or does not know as much as the checkpoint.
        """
        self.close()
        ops = int(state["ops"])
        if ops == 0:
            self.create()
            return
        if self.path is None or not self.path.exists():
            raise SinkError(f"labels: {self.path} must be there, as the checkpoint has waiting events in it")
        self._open()
        (found,) = self._opened.execute("SELECT ops FROM about").fetchone() or (0,)
        if found < ops:
            raise SinkError(f"labels: {self.path} must know {ops} operations, as the checkpoint does, got {found}")
        self._opened.execute("DELETE FROM entries WHERE op >= ?", (ops,))
        self._opened.execute("UPDATE entries SET gone = NULL, how = NULL WHERE gone >= ?", (ops,))
        self._opened.commit()
        self.ops, self.waiting, self._floor = ops, [int(state["events"]), int(state["labels"])], 0
        self._emptied = 0
        self.records = self._flushed = 0
        self._saved = json.loads(state["saved"])

    @property
    def _opened(self) -> sqlite3.Connection:
        if self._db is None:
            raise SinkError(f"labels: {self.path} must be created or restored before it is used")
        return self._db

    def _open(self) -> None:
        try:
            if self.path is not None:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            # The loop uses it from one thread at a time.
            self._db = sqlite3.connect(self.path or "", check_same_thread=False)
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")
            self._db.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
            self._db.executescript(_SCHEMA)
        except sqlite3.Error as error:
            raise SinkError(f"labels: {self.path} cannot be opened: {error}") from error
        forms = self._db.execute("SELECT form, text FROM forms").fetchall()
        self._texts = dict(forms)
        self._forms = {text: form for form, text in forms}
