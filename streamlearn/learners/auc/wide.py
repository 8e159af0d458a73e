"""What AUCRO and its bank keep of wide events, by the name of the part of the covariance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import CodeArray, FloatArray
from streamlearn.errors import BadParameter
from streamlearn.features.entries import SparseRows
from streamlearn.kernels import auc_wide
from streamlearn.kernels.rows import first_bad_row
from streamlearn.learners.auc.records import Records, entries
from streamlearn.learners.auc.sketch import Sketches

Covariance = Literal["auto", "full", "diagonal", "means", "sketch"]
COVARIANCES = ("auto", "full", "diagonal", "means", "sketch")
FULL_UP_TO = 500
"""The widest events for which ``covariance="auto"`` keeps all of it."""
MAX_SKETCH = 1024
SMALLEST_DECAY = 1e-30  # what weighs less beside the next event is gone
NOTHING = np.empty((0, 1))
NO_CHANCES = np.empty(0)


class Engine(Protocol):
    """What learns wide events: the records below, or a sketch."""

    def memory(self, e: int) -> FloatArray:
        """Return the header of memory e, a view, with the slots of the kernels."""
        ...

    def header(self) -> FloatArray:
        """Return the common header, a view."""
        ...

    def widen(self, n_features: int) -> None:
        """Make room for columns that were 0 for ever."""
        ...

    def keep(self, memories: Sequence[int]) -> None:
        """Keep but these memories."""
        ...

    def swap_classes(self) -> None:
        """Exchange the classes, of which only one has been seen."""
        ...

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the state as views."""
        ...

    def write_sizes(self) -> None:
        """Write what kernels rely on to the header: a saved state that was copied in may be damaged."""
        ...

    def run(self, X: FloatArray | SparseRows, codes: CodeArray, ratios: FloatArray, chances: FloatArray) -> int:
        """Forecast and learn each row as the kernels' `run` does; return -1, or the first row that is not finite."""
        ...


def checked_sketch(who: str, size: int) -> int:
    """Return a number of directions that a sketch may keep, or raise BadParameter."""
    if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= MAX_SKETCH:
        raise BadParameter(f"{who}: sketch_size must be a whole number in [1, {MAX_SKETCH}], got {size!r}")
    return size


def checked_every(who: str, every: int | None) -> int | None:
    """Return after how many events weights are solved, None for a schedule, or raise BadParameter."""
    if every is not None and (isinstance(every, bool) or not isinstance(every, int) or every < 1):
        raise BadParameter(f"{who}: solve_every must be a whole number >= 1 or None, got {every!r}")
    return every


def decay(half_life: float | None) -> float:
    """Return what an event weighs beside the next one."""
    return 1.0 if half_life is None else max(0.5 ** (1.0 / half_life), SMALLEST_DECAY)


def made(covariance: Covariance, n_memories: int, sketch_size: int) -> Engine | None:
    """Return what learns wide events by this part of the covariance; None where that is left to whole ones."""
    if covariance in ("diagonal", "means"):
        return Records("diagonal" if covariance == "diagonal" else "means", n_memories)
    return Sketches(sketch_size, n_memories) if covariance == "sketch" else None


def takes_steps(engine: Any) -> bool:
    """Tell whether this learns by steps against class means, whose ridge is that of steps."""
    return isinstance(engine, Records) and engine.form == "means"


def saved_on_diagonal(engine: Any, arrays: dict[str, NDArray[Any]]) -> Records | None:
    """Return room for records of variances where saved arrays hold these, and `engine` takes steps; else None.

    States of ``covariance="auto"`` were such beyond `FULL_UP_TO` features; they are read, and stay what they are.
    """
    if not takes_steps(engine) or "records" not in arrays:
        return None
    made = Records("diagonal", engine.n_memories)
    made.widen(len(engine.R))
    return made if arrays["records"].shape == made.R.shape else None


def write_parameters(engine: Engine, *, clip: float | None, scaling: float, raw: bool) -> None:
    """Write parameters to the common header."""
    F = engine.header()
    F[auc_wide.CLIP] = 0.0 if clip is None else clip
    F[auc_wide.SCALING], F[auc_wide.RAW] = scaling, raw


def rows_in(X: FloatArray | SparseRows, part: slice) -> FloatArray | SparseRows:
    """Return some consecutive rows."""
    if isinstance(X, SparseRows):
        start, stop, _ = part.indices(len(X))
        return X.part(start, stop)
    return X[part]


def first_bad_in(X: FloatArray | SparseRows) -> int:
    """Return the first row with a NaN or an infinity, or -1."""
    return -1 if isinstance(X, SparseRows) else first_bad_row(X)


def forecast(engine: Engine, X: FloatArray | SparseRows, ratios: FloatArray, chances: FloatArray) -> int:
    """Write ratios and P(class 1) of rows; return -1, or the first one that is not finite."""
    return engine.run(X, np.full(len(X), -2, dtype=np.int8), ratios, chances)


def test_then_learn(
    engine: Engine,
    X_test: FloatArray | SparseRows,
    X_learn: FloatArray | SparseRows,
    codes: CodeArray,
    ratios: FloatArray,
    chances: FloatArray,
) -> int:
    """For each i: forecast X_test[i], then learn X_learn[i]; return -1, or the first row that is not finite."""
    if X_test is X_learn:
        return engine.run(X_learn, codes, ratios, chances)
    tested, learned = entries(X_test), entries(X_learn)
    if isinstance(tested, int) or isinstance(learned, int):
        return tested if isinstance(tested, int) else int(learned) if isinstance(learned, int) else -1
    both = np.stack([np.full(len(codes), -2, dtype=np.int8), codes], axis=1).ravel()
    found, likely = np.zeros((len(both), ratios.shape[1])), np.empty(len(both))
    engine.run(SparseRows.interleaved(tested, learned), both, found, likely)
    ratios[...] = found[::2]
    if chances.size:
        chances[:] = likely[::2]
    return -1
