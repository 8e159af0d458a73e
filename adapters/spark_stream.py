"""Learning a Spark stream exactly once.

Spark's log says which rows make an epoch, and hands an epoch out again until it is committed there. The driver's
checkpoint says which epoch the model has learned, in one file with the model. An epoch that is handed out again is
skipped where the checkpoint has it and learned where it has not: either side of a crash between the two is consistent.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamlearn.contracts import Position
from streamlearn.errors import SourceError
from streamlearn.learners.consensus import How, checked_how
from streamlearn.learners.learner import Learner
from streamlearn.learners.merging import merge_learners, require_mergeable
from streamlearn.learners.registry import from_state
from streamlearn.runtime.checkpoint import Checkpoint, CheckpointFolder, check_same_job
from streamlearn.runtime.crash import reach
from streamlearn.snapshot import below, nest

from .spark import blank_for, learn_partitions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery

OFFSETS = "spark"
"""Folder of Spark's own log, beside the checkpoints: neither is right without the other."""
_EPOCHS = "epochs"

_log = logging.getLogger(__name__)


class StreamLearner:
    """Learns micro-batches, each once; what ``foreachBatch`` calls.

    Parameters
    ----------
    learner : Learner
        Untrained; with checkpoints in the folder their model takes its place.
    folder : Path
        Of the driver's checkpoints.
    label : str or None
    merge, trim
        How the estimates of a micro-batch's partitions are merged behind the model.
    keep : int
        How many checkpoints stay.

    Attributes
    ----------
    learner : Learner
        The present model.
    epoch : int
        The last epoch that it has learned; -1 before the first.
    rows : int
        How many rows it has learned.
    """

    def __init__(
        self,
        learner: Learner,
        folder: Path,
        *,
        label: str | None = None,
        merge: How = "trimmed",
        trim: float = 0.5,
        keep: int = 2,
    ) -> None:
        require_mergeable(learner)
        checked_how("stream", merge, trim)
        self.learner, self.epoch, self.rows = learner, -1, 0
        self._label, self._merge, self._trim = label, merge, trim
        self._folder = CheckpointFolder(folder, keep)
        self._meaning = {"learner": repr(learner.state()["parameters"]), "class": learner.name, "label": repr(label)}
        self._meaning |= {"merge": merge, "trim": repr(trim)}
        self._resume()

    @property
    def offsets(self) -> Path:
        """Folder of Spark's log."""
        return self._folder.path / OFFSETS

    def _resume(self) -> None:
        saved, offsets = self._folder.newest(), self.offsets
        if saved is None:
            if offsets.exists():
                raise SourceError(f"{offsets}: must have checkpoints of the model beside it, got none")
            self._save()
            return
        check_same_job(saved.job, self._meaning, self._folder.path)
        (place,) = saved.positions
        self.epoch, self.rows = place.offset - 1, place.record
        if self.epoch >= 0 and not offsets.exists():
            raise SourceError(f"{offsets}: must be there, as the model has learned {place.offset} epochs of it")
        self.learner = from_state(below("learner", saved.state))

    def _save(self) -> None:
        place = Position(_EPOCHS, offset=self.epoch + 1, record=self.rows)
        # Named by epochs: a micro-batch may be empty, and each must leave a file of its own.
        self._folder.save(Checkpoint(self.epoch + 1, self._meaning, (place,), nest("learner", self.learner.state())))

    def __call__(self, frame: DataFrame, epoch: int) -> None:
        """Learn one micro-batch, unless the checkpoint has it."""
        if epoch <= self.epoch:
            _log.info("epoch %d is learned already, the model has %d", epoch, self.epoch)
            return
        models, rows = learn_partitions(blank_for(self.learner, frame, self._label), frame, self._label)
        reach("after_write")
        if models:
            before = self.learner if self.learner.n_features else None
            merged = merge_learners(models, how=self._merge, trim=self._trim, before=before)
            self.learner = merged.model
        self.epoch, self.rows = epoch, self.rows + rows
        self._save()  # reaches after_save
        reach("before_commit")


def learn_stream(stream: DataFrame, learner: StreamLearner, **trigger: Any) -> StreamingQuery:
    """Start learning a stream.

    Parameters
    ----------
    stream : pyspark.sql.DataFrame
        A streaming one: numeric columns, and the label.
    learner : StreamLearner
    trigger
        As for ``writeStream.trigger``: ``availableNow=True`` to end with what is there.

    Returns
    -------
    pyspark.sql.streaming.StreamingQuery
        ``awaitTermination`` waits for its end.
    """
    writer = stream.writeStream.foreachBatch(learner).option("checkpointLocation", str(learner.offsets))
    return (writer.trigger(**trigger) if trigger else writer).start()
