"""Rounds on Apache Spark: parts of files, or the partitions of a data frame.

Every part is one Spark task, so a lost executor means the same part again, by Spark's own means. Rows reach the
learners as Arrow batches and go home as one packed estimate a part: O(p) or O(p^2) numbers, however many the rows.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from streamlearn.contracts import Snapshot
from streamlearn.errors import BadParameter, MissingExtra
from streamlearn.learners.consensus import How, checked_how
from streamlearn.learners.learner import Learner
from streamlearn.learners.merging import Merged, merge_learners, require_mergeable
from streamlearn.learners.muffled.stream import MuffledScorer
from streamlearn.learners.registry import from_state
from streamlearn.learners.regressor import Regressor
from streamlearn.learners.robust.blas import one_blas_thread
from streamlearn.learners.transformer import Estimator
from streamlearn.runtime.rounds import Part, Task, answer, estimate_of, model_of, packed_estimate, packed_model
from streamlearn.snapshot import below, nest

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

LOOPBACK = "127.0.0.1"
SCHEMA = "part long, estimate binary"
_NUMERIC = ("tinyint", "smallint", "int", "bigint", "float", "double", "boolean")


class SparkExecutor:
    """Runs the parts of a round as tasks of a Spark session; the bits are those of `LocalExecutor`.

    Parameters
    ----------
    session : pyspark.sql.SparkSession
    owns : bool
        Whether `close` stops the session.
    slices : int or None
        Spark tasks of a round, at most. None: one a part, so that a lost executor means little work again; where parts
        take less than the tenths of a second that Spark needs for a task, let a task take several.
    """

    def __init__(self, session: SparkSession, *, owns: bool = False, slices: int | None = None) -> None:
        if slices is not None and (isinstance(slices, bool) or not isinstance(slices, int) or slices < 1):
            raise BadParameter(f"SparkExecutor: slices must be a whole number >= 1 or None, got {slices!r}")
        self._session, self._owns, self._slices = session, owns, slices

    def run_round(self, task: Task, parts: Sequence[Part], model: Snapshot | None = None) -> list[Snapshot]:
        """Return the estimates in the order of the parts; what a part raises comes as Spark's exception."""
        if not parts:
            return []
        listed, packed = list(parts), packed_model(model)

        def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for at in batch.column("id").to_pylist():
                    yield _row(at, answer(task, listed[at], packed))

        frame = self._session.range(0, len(listed), 1, min(len(listed), self._slices or len(listed)))
        return _collected(frame, work, len(listed))

    def close(self) -> None:
        """Stop the session where it was started here; may be called twice."""
        if self._owns:
            self._session.stop()


def make_executor(master: str | None, options: Mapping[str, str]) -> SparkExecutor:
    """Return the executor of a job: ``[engine] kind = "spark"``."""
    return SparkExecutor(open_session(master, options), owns=True)


def open_session(master: str | None = None, options: Mapping[str, str] | None = None) -> SparkSession:
    """Return a session; one on this machine alone listens to nobody else.

    Executors run the Python of this process, and keep compiled kernels where it keeps them.

    Parameters
    ----------
    master : str or None
        None: as the environment says, else ``local[*]``.
    options : mapping of str to str
        Spark's configuration; it wins over what is set here.

    Raises
    ------
    MissingExtra
    """
    try:
        from pyspark.sql import SparkSession  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise MissingExtra("spark", "pyspark", "spark") from error
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {"spark.sql.execution.arrow.pyspark.enabled": "true", "spark.ui.showConsoleProgress": "false"}
    if "NUMBA_CACHE_DIR" in os.environ:
        settings["spark.executorEnv.NUMBA_CACHE_DIR"] = os.environ["NUMBA_CACHE_DIR"]
    if master is None or master.startswith("local"):
        # Without the variable the workers of a local cluster take the machine's outer address.
        os.environ.setdefault("SPARK_LOCAL_IP", LOOPBACK)
        settings |= {"spark.driver.bindAddress": LOOPBACK, "spark.driver.host": LOOPBACK, "spark.ui.enabled": "false"}
    builder: Any = SparkSession.builder.appName("streamlearn")
    if master is not None:
        builder = builder.master(master)
    for key, value in {**settings, **(options or {})}.items():
        builder = builder.config(key, value)
    session: SparkSession = builder.getOrCreate()
    return session


def fit(
    learner: Learner,
    dataframe: DataFrame,
    *,
    label: str | None = None,
    merge: How = "trimmed",
    trim: float = 0.5,
) -> Merged:
    """Learn a data frame: each of its partitions apart, then one merge.

    Parameters
    ----------
    learner : Learner
        It is not changed. One that has learned already comes before the rows.
    dataframe : pyspark.sql.DataFrame
        Numeric columns, and the label. Its partitions are the parts, so ``dataframe.repartition(n)`` sets how many.
    label : str or None
        The column with the labels or targets; None for learners that have none.
    merge : {"trimmed", "median", "mean"}
    trim : float
        As for `streamlearn.learners.merging.merge_learners`.

    Returns
    -------
    Merged
        The model, and what each partition had to do with it.

    Raises
    ------
    BadParameter
        A column is not numeric, the label is missing, or the learner cannot be merged.
    """
    require_mergeable(learner)
    checked_how("fit", merge, trim)
    models, _ = learn_partitions(blank_for(learner, dataframe, label), dataframe, label)
    before = learner if learner.n_features else None
    return merge_learners(models, how=merge, trim=trim, before=before)


def blank_for(learner: Learner, dataframe: DataFrame, label: str | None) -> Learner:
    """Return an untrained learner that knows the columns of a data frame."""
    needs = not isinstance(learner, Estimator)
    if needs != (label is not None) or (label is not None and label not in dataframe.columns):
        what = f"one of {dataframe.columns}" if needs else "None: the learner has no labels"
        raise BadParameter(f"fit: label must be {what}, got {label!r}")
    names = [name for name in dataframe.columns if name != label]
    for name, kind in dataframe.dtypes:
        if name in names and kind not in _NUMERIC and not kind.startswith("decimal"):
            raise BadParameter(f"fit: column {name!r} must be numeric, got {kind}")
    kind = dict(dataframe.dtypes).get(label or "")
    if isinstance(learner, Regressor) and kind is not None and kind not in _NUMERIC:
        raise BadParameter(f"fit: label {label!r} must be numeric for {learner.name}, got {kind}")
    blank = learner.clone()
    blank.begin(sorted(names))
    return blank


def learn_partitions(blank: Learner, dataframe: DataFrame, label: str | None) -> tuple[list[Learner], int]:
    """Return a learner a partition, in the order of the partitions, and how many rows there were."""
    packed = packed_model(blank.state())
    names = [str(name) for name in blank.feature_names]

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext  # noqa: PLC0415 - known in the executors

        context = TaskContext.get()
        part = context.partitionId() if context is not None else 0
        yield _row(part, learn_batches(packed, names, label, batches))

    chosen = dataframe.select(*[dataframe[name].cast("double") for name in names], *([label] if label else []))
    found = _collected(chosen, work, None)
    return [from_state(below("learner", one)) for one in found], sum(int(one["rows"]) for one in found)


def learn_batches(blank: bytes, names: Sequence[str], label: str | None, batches: Iterator[pa.RecordBatch]) -> bytes:
    """Let a fresh learner take Arrow batches; return the count of rows and its state as an estimate."""
    import pyarrow as pa  # noqa: PLC0415 - known in the executors

    learner: Any = from_state(model_of(blank))
    rows = 0
    once = learner.one_refit() if isinstance(learner, MuffledScorer) else nullcontext()
    with one_blas_thread(), once:
        for batch in batches:
            rows += batch.num_rows
            if batch.num_rows:
                table = pa.Table.from_batches([batch])
                y = None if label is None else table.column(label).to_pylist()
                X = table.select(list(names))
                learner.learn_many(X) if label is None else learner.learn_many(X, y)
    return packed_estimate({"rows": rows, **nest("learner", learner.state())})


def _row(part: int, estimate: bytes) -> pa.RecordBatch:
    import pyarrow as pa  # noqa: PLC0415 - known in the executors

    return pa.RecordBatch.from_pydict(
        {"part": pa.array([part], pa.int64()), "estimate": pa.array([estimate], pa.binary())}
    )


def _collected(frame: DataFrame, work: Callable[..., Any], expected: int | None) -> list[Snapshot]:
    rows = sorted(frame.mapInArrow(work, SCHEMA).collect(), key=lambda row: row["part"])
    if expected is not None and [row["part"] for row in rows] != list(range(expected)):
        raise BadParameter(f"spark: a round must bring {expected} estimates, got {len(rows)}")
    return [estimate_of(bytes(row["estimate"])) for row in rows]
