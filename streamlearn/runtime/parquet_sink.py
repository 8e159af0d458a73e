"""Predictions as a folder of Parquet part files.

A Parquet file cannot be appended to, so rows go out in parts of a fixed number of rows and the rows of the unfinished
part wait in the checkpoint. A part is therefore the same bytes wherever the checkpoints fell.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np

from streamlearn import snapshot
from streamlearn.contracts import PredictionRows, Snapshot
from streamlearn.errors import SinkError
from streamlearn.runtime.outgoing import as_lists, plain

PART_ROWS = 65_536
"""Rows of a part: about 2 MB of Parquet, and at most about 3 MB of waiting rows in a checkpoint (some 15 ms)."""

_PART = "part-{:06d}.parquet"
_ALL_PARTS = "part-*.parquet"
_NUMBERS = {"record": np.int64, "score": np.float64, "probability": np.float64}


class ParquetParts:
    """A folder of parts of `PART_ROWS` rows each; the last may be shorter.

    Parameters
    ----------
    who : str
        The key of the job that names the folder, for messages.
    path : Path
        The folder.
    columns : list of str
        Columns of the parts, in this order.
    part_rows : int
    """

    def __init__(self, who: str, path: Path, columns: list[str], part_rows: int = PART_ROWS) -> None:
        self.who = who
        self.path = path
        self._part_rows = part_rows
        self._waiting: dict[str, list[Any]] = {name: [] for name in columns}
        self._parts = 0

    def require_absent(self) -> None:
        """Raise SinkError where there are parts that a new job would destroy."""
        if any(self.path.glob(_ALL_PARTS)):
            raise SinkError(
                f"{self.who}: {self.path} must hold no parts when a job starts anew; run with --fresh to replace them"
            )

    def create(self) -> None:
        """Start with no parts."""
        self.path.mkdir(parents=True, exist_ok=True)
        self._remove_parts_from(0)

    def write(self, rows: PredictionRows) -> None:
        """Take the rows; every part that becomes full is written durably."""
        taken = as_lists(rows)
        for name, waiting in self._waiting.items():
            waiting.extend(taken[name])
        while len(self._waiting["record"]) >= self._part_rows:
            self._write_part(self._part_rows)
            for name in self._waiting:
                del self._waiting[name][: self._part_rows]
            self._parts += 1

    def flush(self) -> None:
        """Do nothing: full parts are durable, and waiting rows go into the checkpoint."""

    def close(self) -> None:
        """Write the rows that wait as a last, shorter part; may be called twice."""
        if self._waiting["record"]:
            self._write_part(len(self._waiting["record"]))

    def state(self) -> Snapshot:
        """Return the number of full parts and the waiting rows."""
        numbers = {name: np.array(self._waiting[name], dtype) for name, dtype in _NUMBERS.items()}
        texts = {name: waiting for name, waiting in self._waiting.items() if name not in _NUMBERS}
        return {"parts": self._parts, **numbers, "texts": json.dumps(texts, default=plain)}

    def restore(self, state: Snapshot) -> None:
        """Remove the parts behind the saved ones and take the waiting rows; SinkError where a saved part is missing."""
        self._parts = int(state["parts"])
        for number in range(self._parts):
            if not self._part(number).is_file():
                hint = "put it back, or run with --fresh to start anew"
                raise SinkError(f"{self.who}: {self._part(number)} must exist, as the checkpoint knows it; {hint}")
        self._waiting |= {name: state[name].tolist() for name in _NUMBERS} | json.loads(state["texts"])
        self.path.mkdir(parents=True, exist_ok=True)
        self._remove_parts_from(self._parts)

    def _part(self, number: int) -> Path:
        return self.path / _PART.format(number)

    def _remove_parts_from(self, number: int) -> None:
        for path in self.path.glob(_ALL_PARTS):
            if path.name >= _PART.format(number):
                path.unlink()

    def _write_part(self, n_rows: int) -> None:
        import polars as pl  # noqa: PLC0415 - 0.4 s that only this format needs

        try:
            frame = pl.DataFrame({name: waiting[:n_rows] for name, waiting in self._waiting.items()}, strict=True)
        except (TypeError, pl.exceptions.PolarsError) as error:
            raise SinkError(f"{self.who}: labels must be of one type to go into Parquet: {error}") from error
        data = io.BytesIO()
        frame.fill_nan(None).write_parquet(data)
        snapshot.write_atomic(self._part(self._parts), data.getvalue())
