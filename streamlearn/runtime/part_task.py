"""What a worker does with one part of a job's files: forecast, measure and learn it with learners of its own."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from streamlearn.contracts import Rejected, Snapshot
from streamlearn.errors import BadEvent
from streamlearn.runtime.assemble import make_columns, make_track, make_vectoriser
from streamlearn.runtime.job import Job
from streamlearn.runtime.loop import bad_events
from streamlearn.runtime.parts import open_part
from streamlearn.runtime.rounds import Part
from streamlearn.runtime.together import learn_together
from streamlearn.runtime.tracks import Track
from streamlearn.snapshot import nest

MOST_BAD = 10_000
"""Bad events of a part, which all go to the driver: more mean that the job does not fit the file."""
_POLL_S = 1.0


@dataclass(frozen=True, slots=True)
class PartTask:
    """Learn a part of the files of a job.

    The estimate holds each learner's state, its metrics over the part, counts, and the bad events.

    Attributes
    ----------
    job : Job
    """

    job: Job

    def estimate(self, part: Part, model: Snapshot | None) -> Snapshot:
        """Return what the part teaches; every part begins anew, so no model is looked at."""
        measured = replace(self.job, evaluate=_without_curve(self.job))
        tracks = [make_track(measured, index) for index in range(len(self.job.learners))]
        vectoriser, source = make_vectoriser(self.job), open_part(self.job.source, make_columns(self.job), part)
        bad: list[Rejected] = []
        events = 0
        try:
            while (batch := source.poll(self.job.source.batch_events, _POLL_S)) is not None:
                names, values = vectoriser.columns(batch)
                learned, screened = learn_together(tracks, names, values, batch.labels)
                bad += bad_events(batch, screened)
                if len(bad) > MOST_BAD:
                    raise BadEvent(
                        f"{part.partition}: a part must have at most {MOST_BAD} bad events, got more; the last: "
                        f"{bad[-1].reason}"
                    )
                for track, one in zip(tracks, learned, strict=False):
                    track.measure(one)
                events += len(batch) + len(batch.rejected)
        finally:
            source.close()
        for track in tracks:
            track.finish()
        flat: Snapshot = {"events": events, "bad": bad_to_text(bad)}
        for index, track in enumerate(tracks):
            flat |= nest(f"track/{index}", _of_track(track))
        return flat


def _without_curve(job: Job) -> Any:
    import msgspec  # noqa: PLC0415 - what copies a section belongs to its kind

    return msgspec.structs.replace(job.evaluate, curve=False)


def _of_track(track: Track) -> Snapshot:
    return {
        "events": track.events,
        "labelled": track.labelled,
        "histogram": track.histogram,
        "metrics": np.array([metric.get() for metric in track.metrics], dtype=np.float64),
        **nest("learner", track.learner.state()),
    }


def bad_to_text(bad: Sequence[Rejected]) -> str:
    """Return bad events as JSON."""
    return json.dumps([{**asdict(one), "raw": base64.b64encode(one.raw).decode("ascii")} for one in bad])


def bad_from_text(text: str) -> list[Rejected]:
    """Undo `bad_to_text`."""
    return [Rejected(**{**one, "raw": base64.b64decode(one["raw"])}) for one in json.loads(text)]
