"""The nouns of streamlearn and the protocols between its rooms.

Data travels in batches of arrays. A source hands out `Batch` objects together with the `Position` of the next event to
read; learners, metrics and sinks have a flat `Snapshot` that goes into a checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
CodeArray = NDArray[np.int8]
"""Labels inside: 1 positive, 0 negative, -1 unlabelled."""

FeatureName = str | int
Label = bool | int | float | str


def is_missing(y: object) -> bool:
    """Tell whether y is no label: None, NaN or a missing value of a dataframe."""
    if y is None:
        return True
    if isinstance(y, (float, np.floating)):
        return bool(y != y)  # noqa: PLR0124 - NaN is the one value that differs from itself
    return type(y).__name__ in ("NAType", "NaTType")


Document = dict[str, Any]
"""JSON values by name."""

Snapshot = dict[str, Any]
"""Flat state: name -> array, number, bool, string or None. Nothing else."""


@dataclass(frozen=True, slots=True)
class Position:
    """Where the next event of one source partition will be read.

    Attributes
    ----------
    partition : str
        File path, ``"topic/3"`` or another name that stays the same across restarts.
    offset : int
        Byte offset of the next record in the (decompressed) file, row group of a Parquet file, or broker offset.
    record : int
        Number of records of this partition read so far (for messages and for Parquet rows).
    fingerprint : str
        What tells that it is still the same input (size and hash of the first 4 KiB, cluster and topic id).
    extra : str
        Whatever else the source needs to go on (column order, schema), as text of the source's own making.
    """

    partition: str
    offset: int = 0
    record: int = 0
    fingerprint: str = ""
    extra: str = ""


@dataclass(frozen=True, slots=True)
class Rejected:
    """An event that could not be used: it goes to the dead letters, or stops the job.

    Attributes
    ----------
    partition : str
    offset : int
        Byte (or broker) offset of the record.
    record : int
        Record number in its partition, from 0.
    kind : str
        One word for the counters: "syntax", "columns", "value", "label", "encoding", "too_long".
    reason : str
        One sentence with line and column or feature name.
    raw : bytes
        The record as it came.
    """

    partition: str
    offset: int
    record: int
    kind: str
    reason: str
    raw: bytes


@dataclass(frozen=True, slots=True)
class Batch:
    """Decoded events in arrays.

    Attributes
    ----------
    names : tuple of str or int
        Numeric feature columns, as at the source (any order, no duplicates).
    values : float64[n_events, n_names]
        C-contiguous and finite.
    text : mapping of str to object array [n_events]
        Columns that are not numbers: str values, ``None`` where missing. The vectoriser turns them into numbers.
    labels : object array [n_events] or numeric array
        As at the source; ``None``/NaN where the event has no label.
    records : int64[n_events]
        Record number of each event in its partition.
    keys : object array [n_events] or None
        The events' own keys, where the job names a key column.
    rejected : sequence of Rejected
        Events of the same stretch of input that could not be decoded.
    positions : tuple of Position
        The positions after this batch, for every partition that moved.
    partition : str
        The partition all events of the batch came from.
    origin : callable, row -> (offset, raw bytes), or None
        Where an event began and the record as it came, for an event that is refused later; valid while the batch lives.
    """

    names: tuple[FeatureName, ...]
    values: FloatArray
    labels: NDArray[Any]
    records: IntArray
    positions: tuple[Position, ...]
    text: Mapping[str, NDArray[np.object_]] = field(default_factory=dict)
    keys: NDArray[np.object_] | None = None
    rejected: Sequence[Rejected] = ()
    partition: str = ""
    origin: Callable[[int], tuple[int, bytes]] | None = None

    def __len__(self) -> int:
        return len(self.records)


@runtime_checkable
class HasState(Protocol):
    """Something whose state goes into a checkpoint."""

    def state(self) -> Snapshot:
        """Return the flat state; arrays are copies."""
        ...

    def restore(self, state: Snapshot) -> None:
        """Become exactly what `state` describes."""
        ...


Takes = Literal["score", "log_odds", "probability", "prediction", "value"]
"""What a metric is fed with: ranking score, logit of P(positive), P(positive), predicted code (1, 0, NaN = abstained),
or the predicted number of a regressor."""


class Metric(HasState, Protocol):
    """A measure of (label, forecast) pairs; one by one or in arrays gives equal results."""

    takes: ClassVar[Takes]

    @property
    def name(self) -> str:
        """Short lower-case name for reports, for example ``"auc"`` or ``"auc_window_1000"``."""
        ...

    def update_many(self, y: NDArray[Any], forecasts: FloatArray) -> None:
        """Take one batch in order: codes (int8: 1, 0; -1 is skipped) or target numbers, and the forecasts."""
        ...

    def get(self) -> float:
        """Return the present value; NaN while undefined."""
        ...


class Source(Protocol):
    """An input that can be read from exactly where a checkpoint left it.

    The loop calls `seek` once with the saved positions (or with none), then `poll` until it returns None, then `close`.
    """

    def seek(self, positions: Sequence[Position]) -> None:
        """Go to the saved positions; raise SourceError where the input is not the one that was read."""
        ...

    def poll(self, max_events: int, timeout_s: float) -> Batch | None:
        """Return up to about `max_events` events; an empty batch when none came in time; None at the end."""
        ...

    def close(self) -> None:
        """Release files and connections; may be called twice."""
        ...


class Sink(HasState, Protocol):
    """An output that can be cut back to what a checkpoint knows."""

    def write(self, rows: PredictionRows) -> None:
        """Take the predictions of one batch; may buffer."""
        ...

    def flush(self) -> None:
        """Make everything written so far durable; called before each checkpoint."""
        ...

    def close(self) -> None:
        """Flush and release; may be called twice."""
        ...


@dataclass(frozen=True, slots=True)
class PredictionRows:
    """What goes out for one batch: one row an event, in input order.

    Attributes
    ----------
    partition : str
    records : int64[n]
    keys : object[n] or None
    labels : array [n]
        True labels as at the source (None where unknown).
    scores : float64[n]
        Ranking scores, made before the event was learned. For a regressor the predictions.
    probabilities : float64[n]
        P(positive); NaN for a regressor.
    predictions : object[n]
        Label, number, or None for an abstention.
    """

    partition: str
    records: IntArray
    keys: NDArray[np.object_] | None
    labels: NDArray[Any]
    scores: FloatArray
    probabilities: FloatArray
    predictions: NDArray[np.object_]


class OnlineLearner(HasState, Protocol):
    """What the runtime and the evaluation ask of a learner (built by `streamlearn.learners.base.Learner`)."""

    @property
    def name(self) -> str:
        """The learner's name in reports."""
        ...

    def test_then_learn_columns(
        self, names: tuple[FeatureName, ...], values: FloatArray, labels: NDArray[Any]
    ) -> Tested:
        """Forecast each row before it is learned, then learn it; the batch is taken whole or not at all."""
        ...

    def check(self, names: tuple[FeatureName, ...], values: FloatArray, labels: NDArray[Any]) -> None:
        """Raise what learning this block would raise, and change nothing."""
        ...


@dataclass(frozen=True, slots=True)
class Tested:
    """Forecasts of one batch, each made before its own row was learned.

    Attributes
    ----------
    codes : int8[n]
        Labels as codes: 1 positive, 0 negative, -1 none. For a regressor: all -1.
    scores : float64[n]
        Ranking scores; predictions of a regressor.
    probabilities : float64[n]
        P(positive); NaN for a regressor.
    predictions : object[n]
        Labels in the caller's type, or numbers; None where the learner abstains.
    decisions : float64[n]
        The predictions as codes: 1, 0, NaN = abstained.
    """

    codes: CodeArray
    scores: FloatArray
    probabilities: FloatArray
    predictions: NDArray[np.object_]
    decisions: FloatArray
