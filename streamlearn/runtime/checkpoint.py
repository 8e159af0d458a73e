"""Checkpoints: one file each, written whole or not at all; the newest sound one is the truth.

A checkpoint holds everything that a job needs to go on as if it had never stopped: what the job was, the next event to
read of every partition, and the state of learners, vectoriser, metrics and outputs.
"""

from __future__ import annotations

import fcntl
import logging
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from streamlearn import snapshot
from streamlearn.contracts import Position, Snapshot
from streamlearn.errors import BadJob, BadSnapshot, NewerSnapshot, SinkError
from streamlearn.runtime.crash import reach

KIND = "checkpoint"
_NAME = "ckpt-{:012d}.safetensors"
_ALL_NAMES = "ckpt-*.safetensors"
_LEFT_BEHIND = ".ckpt-*.tmp"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a job knows between two batches.

    Attributes
    ----------
    events : int
        Events taken so far, bad ones included.
    job : dict of str to str
        The keys of the job that give the state its meaning, with their values as text.
    positions : tuple of Position
        The next event to read, per partition.
    state : dict
        Flat state of all parts, each below its own prefix.
    """

    events: int
    job: dict[str, str]
    positions: tuple[Position, ...]
    state: Snapshot

    def pack(self) -> bytes:
        """Return the bytes of the file; equal checkpoints give equal bytes."""
        values, arrays = snapshot.split(self.state)
        about = {"events": self.events, "job": self.job, "positions": [asdict(place) for place in self.positions]}
        return snapshot.pack(KIND, {"about": about, "state": values}, arrays)

    @classmethod
    def read(cls, path: Path) -> Checkpoint:
        """Read one file; BadSnapshot names it when it is not sound."""
        document, arrays = snapshot.read(path, KIND)
        about = document["about"]
        positions = tuple(Position(**place) for place in about["positions"])
        return cls(about["events"], about["job"], positions, snapshot.join(document["state"], arrays))


class CheckpointFolder:
    """The checkpoints of one job.

    Parameters
    ----------
    path : Path
        The folder; made on the first save.
    keep : int
        How many of the newest checkpoints stay.
    """

    def __init__(self, path: Path, keep: int) -> None:
        self.path = path
        self.keep = keep
        self._lock: int | None = None
        self._uncommitted: Path | None = None  # its log is wanted until there is a newer checkpoint

    def lock(self) -> None:
        """Shut out other processes: two that save here would undo each other's work.

        The lock ends with the process, however it ends.

        Raises
        ------
        SinkError
            Another process has it.
        """
        if self._lock is not None or not self.path.is_dir():
            return  # a folder that is not there yet is locked when it is made
        descriptor = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            raise SinkError(f"{self.path}: must be used by one process at a time, got another that runs") from error
        self._lock = descriptor

    def unlock(self) -> None:
        """Let others in; may be called twice."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def files(self) -> list[Path]:
        """Return the checkpoints, oldest first."""
        return sorted(self.path.glob(_ALL_NAMES))

    def save(self, checkpoint: Checkpoint) -> Path:
        """Write `checkpoint` durably under its final name, then remove what `keep` no longer covers."""
        if not self.path.is_dir():
            self.path.mkdir(parents=True)
            self.lock()
        target = self.path / _NAME.format(checkpoint.events)
        snapshot.write_atomic(target, checkpoint.pack())
        if self._uncommitted not in {None, target}:
            self._remove(filter(None, [self._uncommitted]))
        self._uncommitted = None
        reach("after_save")
        for old in self.files()[: -self.keep]:
            old.unlink()
        return target

    def newest(self) -> Checkpoint | None:
        """Return the newest sound checkpoint, or None where there is none at all.

        A damaged file is passed over with a warning: an older checkpoint is as right as the newest one, because sources
        are read again from its positions and outputs are cut back to its lengths; only work is lost. A file of a newer
        format is not damaged and is never passed over.

        Raises
        ------
        BadSnapshot
            All of them are damaged: starting anew must be somebody's decision.
        NewerSnapshot
            The newest was written by a newer release.
        """
        damaged: list[str] = []
        for path in reversed(self.files()):
            try:
                checkpoint = Checkpoint.read(path)
            except NewerSnapshot:
                raise
            except BadSnapshot as error:
                _log.warning("%s; going on from the checkpoint before it", error)
                damaged.append(str(error))
                continue
            self._remove(self.path.glob(_LEFT_BEHIND))
            return checkpoint
        if damaged:
            raise BadSnapshot(f"{self.path}: no sound checkpoint is left, run with --fresh to start anew: {damaged[0]}")
        return None

    def committed(self, events: int | None) -> tuple[Checkpoint | None, Checkpoint | None]:
        """Return the checkpoint of a committed transaction, and the one that was saved behind it but never committed.

        Parameters
        ----------
        events : int or None
            The events of the last committed checkpoint, None where nothing was ever committed.

        Returns
        -------
        Checkpoint or None
            None where the job has not begun.
        Checkpoint or None
            The newest of those behind it, whose outputs were never seen; it stays until another one is saved, in case
            that its work is lost once more. The others are removed.

        Raises
        ------
        BadSnapshot
            The committed one is not there, or damaged: no other one fits the outputs.
        """
        files = self.files()
        if not files and not events:
            return None, None
        wanted = _NAME.format(events or 0)
        found = [path for path in files if path.name == wanted]
        if not found or (events is None and len(files) > 1):
            shown = "none" if events is None else f"the one behind {events} events"
            raise BadSnapshot(
                f"{self.path}: must hold the checkpoint whose outputs were committed ({shown} is known to the broker), "
                f"got {[path.name for path in files]}; put the folder back, or run with --fresh to start anew"
            )
        behind = [path for path in files if path.name > wanted]
        later = self._sound(behind[-1]) if behind else None
        self._uncommitted = behind.pop() if later is not None else None
        self._remove(behind)
        self._remove(self.path.glob(_LEFT_BEHIND))
        return Checkpoint.read(found[0]), later

    @staticmethod
    def _sound(path: Path) -> Checkpoint | None:
        try:
            return Checkpoint.read(path)
        except BadSnapshot as error:
            _log.warning("%s; it was never committed", error)
            return None

    def clear(self) -> None:
        """Remove all checkpoints, and what a crash left of one."""
        self._remove(self.files())
        self._remove(self.path.glob(_LEFT_BEHIND))

    @staticmethod
    def _remove(paths: Iterable[Path]) -> None:
        for path in paths:
            path.unlink()


def check_same_job(saved: Mapping[str, str], present: Mapping[str, str], where: Path) -> None:
    """Raise BadJob where a key that gives the saved state its meaning has changed; the message begins with the key."""
    for key in sorted(saved.keys() | present.keys()):
        before, now = saved.get(key, "absent"), present.get(key, "absent")
        if before != now:
            raise BadJob(
                f"{key}: must be as in the checkpoint of {where} ({before}), got {now}; "
                "set it back, or run with --fresh to start anew"
            )
