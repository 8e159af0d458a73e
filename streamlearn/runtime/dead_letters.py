"""Events that could not be used: written down with their bytes, place and reason, and counted by kind."""

from __future__ import annotations

import base64
import json
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from streamlearn.contracts import Rejected, Snapshot
from streamlearn.errors import BadEvent
from streamlearn.runtime.append import AppendFile
from streamlearn.runtime.brokers import LetterBox
from streamlearn.runtime.sections import Policy

N_LAST = 20
_encoder = msgspec.json.Encoder()


class LetterFile(AppendFile):
    """The dead-letter file, one JSON object a line.

    ``raw`` is the record where its bytes are UTF-8, ``raw_base64`` where they are not; either gives back every byte.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        super().__init__("bad_events.path", path)

    def put(self, event: Rejected) -> None:
        """Append one event."""
        self.write(_line(event))


class DeadLetters:
    """Bad events on their way out: checked against the policy, counted, written.

    Parameters
    ----------
    where : Path or LetterBox
        A file, or what an adapter brings.
    policy : "dead-letter" or "stop"
    stop_kinds : frozenset of str
        Kinds of which one event ends the job, whatever the policy.
    max_count : int, optional
        More bad events than this end the job.
    """

    def __init__(
        self,
        where: Path | LetterBox,
        *,
        policy: Policy,
        stop_kinds: frozenset[str] = frozenset(),
        max_count: int | None = None,
    ) -> None:
        self._box: LetterBox = LetterFile(where) if isinstance(where, Path) else where
        self._policy = policy
        self._stop_kinds = stop_kinds
        self._max_count = max_count
        self.counts: dict[str, int] = {}
        self.examples: dict[str, str] = {}
        """Why the first event of each kind was bad."""
        self.last: deque[str] = deque(maxlen=N_LAST)
        """The last bad events of this process, newest first; no part of the state."""

    @property
    def total(self) -> int:
        """How many events were bad."""
        return sum(self.counts.values())

    def take(self, rejected: Sequence[Rejected]) -> None:
        """Write down the events, in the order given.

        Raises
        ------
        BadEvent
            The policy is to stop, or there are more bad events than the job allows. Events before the one that stops
            the job are written and counted; it and those behind it are not.
        """
        for event in rejected:
            self._check(event)
            self._box.put(event)
            self.counts[event.kind] = self.counts.get(event.kind, 0) + 1
            self.examples.setdefault(event.kind, event.reason)
            self.last.appendleft(_place(event))

    def _check(self, event: Rejected) -> None:
        where = _place(event)
        if self._policy == "stop":
            raise BadEvent(f"bad_events.policy is 'stop': {where}")
        if event.kind in self._stop_kinds:
            raise BadEvent(f"features.on_bad_value is 'stop': {where}")
        if self._max_count is not None and self.total >= self._max_count:
            raise BadEvent(f"bad_events.max_count: must be at most {self._max_count} bad events, got one more: {where}")

    def require_absent(self) -> None:
        """Raise SinkError where the file has content that a new job would destroy."""
        self._box.require_absent()

    def create(self) -> None:
        """Start an empty file."""
        self._box.create()

    def flush(self) -> None:
        """Make everything written so far durable."""
        self._box.flush()

    def close(self) -> None:
        """Flush and release; may be called twice."""
        self._box.close()

    def state(self) -> Snapshot:
        """Return the length of the file, the counts and the examples."""
        texts = {"counts": json.dumps(self.counts, sort_keys=True), "examples": json.dumps(self.examples)}
        return {**self._box.state(), **texts}

    def restore(self, state: Snapshot) -> None:
        """Cut the file back and take the counts."""
        self._box.restore(state)
        self.counts = dict(json.loads(state["counts"]))
        self.examples = dict(json.loads(state["examples"]))


def _place(event: Rejected) -> str:
    return f"{event.partition}, event {event.record}: {event.kind}: {event.reason}"


def _line(event: Rejected) -> bytes:
    row: dict[str, Any] = {
        "partition": event.partition,
        "offset": event.offset,
        "record": event.record,
        "kind": event.kind,
        "reason": event.reason,
    }
    try:
        row["raw"] = event.raw.decode("utf-8")
    except UnicodeDecodeError:
        row["raw_base64"] = base64.b64encode(event.raw).decode("ascii")
    return _encoder.encode(row) + b"\n"
