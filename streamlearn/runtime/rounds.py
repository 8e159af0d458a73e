"""Rounds: one pure task over parts of fixed ranges, each answered by an estimate; whoever runs it, the bytes are equal.

The driver owns model, positions and checkpoints. A worker is handed a task, a part and the model of the rounds before,
and answers with a flat state: nothing that it knew before counts, so a lost worker means the same task again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from streamlearn import snapshot
from streamlearn.contracts import Snapshot
from streamlearn.learners.robust.blas import one_blas_thread

ESTIMATE, MODEL = "estimate", "broadcast"
ATTEMPTS = 4
"""How often a part is tried where the worker is lost: Spark's own default."""


@dataclass(frozen=True, slots=True)
class Part:
    """A fixed range of the input: bytes or rows of a file, offsets of a topic's partition, rows of a data frame.

    Attributes
    ----------
    index : int
        Its place in the order of the parts, from 0; estimates are merged in this order.
    partition : str
        File path, ``"topic/3"``, or whatever the task reads from.
    begin, end : int
        The range, `end` excluded; what it counts is the task's affair.
    """

    index: int
    partition: str
    begin: int = 0
    end: int = 0


class Task(Protocol):
    """What is done with every part. It is sent to the workers, so it holds plain values alone."""

    def estimate(self, part: Part, model: Snapshot | None) -> Snapshot:
        """Return what the part teaches: a function of the two arguments alone, without any effect.

        Parameters
        ----------
        part : Part
        model : flat state or None
            What the rounds before left, the same for all parts.
        """
        ...


class Executor(Protocol):
    """Runs rounds. The same task, parts and model give the same bits with every executor."""

    def run_round(self, task: Task, parts: Sequence[Part], model: Snapshot | None = None) -> list[Snapshot]:
        """Return the estimates in the order of the parts.

        Raises
        ------
        RoundFailed
            A part lost its worker four times.
        """
        ...

    def close(self) -> None:
        """Release the workers; may be called twice."""
        ...


def packed_model(model: Snapshot | None) -> bytes:
    """Return the model as it travels; nothing for none."""
    return b"" if model is None else _packed(MODEL, model)


def model_of(data: bytes) -> Snapshot:
    """Undo `packed_model`."""
    return snapshot.join(*snapshot.unpack(data, MODEL))


def answer(task: Task, part: Part, model: bytes) -> bytes:
    """Run the task on one part: what every executor calls in its workers.

    One thread for linear algebra, since sums that are cut by the number of cores differ in their last bits.
    """
    known = model_of(model) if model else None
    with one_blas_thread():
        return packed_estimate(task.estimate(part, known))


def packed_estimate(state: Snapshot) -> bytes:
    """Return an estimate as it travels."""
    return _packed(ESTIMATE, state)


def estimate_of(data: bytes) -> Snapshot:
    """Return the estimate that `answer` packed; BadSnapshot where it was altered on the way."""
    return snapshot.join(*snapshot.unpack(data, ESTIMATE))


def _packed(kind: str, state: Snapshot) -> bytes:
    return snapshot.pack(kind, *snapshot.split(state))
