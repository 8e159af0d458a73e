"""A job learned in parts: rounds, a checkpoint behind each, and one merge of all estimates at the end."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from streamlearn.contracts import FloatArray, Position, Snapshot, Takes
from streamlearn.errors import BadJob, BadParameter
from streamlearn.learners.consensus import Consensus
from streamlearn.learners.learner import Learner
from streamlearn.learners.merging import Merged, adds_up, merge_learners, require_mergeable
from streamlearn.learners.registry import from_state
from streamlearn.runtime.assemble import checkpoint_folder, make_dead_letters, make_track, meaning
from streamlearn.runtime.checkpoint import Checkpoint, CheckpointFolder, check_same_job
from streamlearn.runtime.crash import reach
from streamlearn.runtime.dead_letters import DeadLetters
from streamlearn.runtime.executor import LocalExecutor
from streamlearn.runtime.extensions import extensions, load_extension
from streamlearn.runtime.job import Job
from streamlearn.runtime.loop import Stop
from streamlearn.runtime.part_task import PartTask, bad_from_text
from streamlearn.runtime.parts import plan_fingerprint, plan_parts
from streamlearn.runtime.report import Report, make_report
from streamlearn.runtime.rounds import Executor, Part
from streamlearn.runtime.sections import EngineSection
from streamlearn.runtime.sources import find_files
from streamlearn.runtime.tracks import Track
from streamlearn.runtime.warm import warm_up
from streamlearn.snapshot import below, nest

GROUP = "streamlearn.engines"
"""Entry points of executors: ``engine.kind`` names one, which is given the section."""

Say = Callable[[str], None]


@dataclass(slots=True)
class Rounds:
    """The driver's side of a job in parts: all that it holds goes into its checkpoints.

    Where the mean is asked for, and models that add up, they are added at once: the driver then holds one model however
    many the parts. Every other merge looks at all estimates together.

    Attributes
    ----------
    job : Job
    parts : list of Part
    dead_letters : DeadLetters
    estimates : list of dict
        Those of the first parts, in their order.
    added : dict of int to dict
        By learner, the state of the model that the learners of these parts were added to; they are not in `estimates`.
    """

    job: Job
    parts: list[Part]
    dead_letters: DeadLetters
    estimates: list[Snapshot] = field(default_factory=list)
    added: dict[int, Snapshot] = field(default_factory=dict)

    @property
    def events(self) -> int:
        """Events of the parts so far."""
        return sum(int(one["events"]) for one in self.estimates)

    def take(self, estimates: list[Snapshot]) -> None:
        """Take the estimates of the next parts; their bad events go out."""
        for one in estimates:
            self.dead_letters.take(bad_from_text(one.pop("bad")))
        if engine_of(self.job).merge == "mean":
            for index in range(len(self.job.learners)):
                self._add(index, estimates)
        self.estimates += estimates

    def _add(self, index: int, estimates: list[Snapshot]) -> None:
        """Add the models of the next parts to the one of the parts before, and take them out of the estimates."""
        name = f"track/{index}/learner"
        models: list[Learner] = [from_state(below(name, one)) for one in estimates]
        if index in self.added:
            models.insert(0, from_state(self.added[index]))
        if (self.estimates and index not in self.added) or not all(adds_up(model) for model in models):
            return
        self.added[index] = merge_learners(models, how="mean").model.state()
        for one in estimates:
            for key in [key for key in one if key.startswith(f"{name}/")]:
                del one[key]

    def snapshot(self, kept: dict[str, str]) -> Checkpoint:
        """Return everything as a checkpoint."""
        done = self.parts[: len(self.estimates)]
        state: Snapshot = nest("dead_letters", self.dead_letters.state())
        for part, one in zip(done, self.estimates, strict=True):
            state |= nest(f"part/{part.index}", one)
        for index, model in self.added.items():
            state |= nest(f"added/{index}", model)
        positions = {part.partition: Position(part.partition, offset=part.end) for part in done}
        return Checkpoint(self.events, kept, tuple(positions.values()), state)

    def restore(self, saved: Checkpoint) -> None:
        """Become what a checkpoint describes."""
        self.dead_letters.restore(below("dead_letters", saved.state))
        for part in self.parts:
            one = below(f"part/{part.index}", saved.state)
            if not one:
                break
            self.estimates.append(one)
        for index in range(len(self.job.learners)):
            if one := below(f"added/{index}", saved.state):
                self.added[index] = one


def engine_of(job: Job) -> EngineSection:
    """Return the engine's section of a job that has one."""
    assert job.engine is not None  # noqa: S101 - asked only for a job that has one
    return job.engine


def run_parts(job: Job, stop: Stop, say: Say, *, fresh: bool = False) -> tuple[list[Track], Report] | int:
    """Learn a job in parts.

    Parameters
    ----------
    job : Job
        With an engine.
    stop : Stop
        Looked at between two rounds.
    say : callable, text -> None
    fresh : bool
        Replace what an earlier run left, instead of going on with it.

    Returns
    -------
    list of Track and Report
        With the merged learners; or the number of events so far, where somebody asked to stop.
    """
    engine, began = engine_of(job), time.perf_counter()
    _check_learners(job)
    # Workers then load what would else be compiled by each of them at the same time.
    warm_up([make_track(job, index) for index in range(len(job.learners))], say)
    rounds = Rounds(
        job, plan_parts(job.source, find_files(job.source_paths), engine.parts), make_dead_letters(job, None)
    )
    keys = ["parts", "merge", "trim", *(["round"] if engine.merge == "mean" else [])]  # added up round by round
    kept = {
        **meaning(job),
        **{f"engine.{key}": repr(getattr(engine, key)) for key in keys},
        "engine.plan": plan_fingerprint(rounds.parts),
    }
    executor = open_executor(engine)
    try:
        ended = _run(rounds, executor, kept, stop, say, fresh=fresh)
    finally:
        executor.close()
        rounds.dead_letters.close()
    if not ended:
        return rounds.events
    merged_at = time.perf_counter()
    merged = [_merge(rounds, index) for index in range(len(job.learners))]
    seconds = time.perf_counter() - began
    say(f"merged {len(rounds.parts)} parts in {time.perf_counter() - merged_at:.2f} s")
    return _reported(rounds, merged, seconds)


def open_executor(engine: EngineSection) -> Executor:
    """Return what runs the rounds.

    Raises
    ------
    MissingExtra
        The library behind it is not installed.
    """
    if engine.kind == "local":
        return LocalExecutor(engine.workers)
    found = extensions(GROUP)
    if engine.kind not in found:
        raise BadJob(f"engine.kind: must be one of {sorted({'local', *found})}, got {engine.kind!r}")
    make = load_extension(found[engine.kind], f"engine {engine.kind}", engine.kind)
    executor: Executor = make(engine.master, engine.options)
    return executor


def _run(rounds: Rounds, executor: Executor, kept: dict[str, str], stop: Stop, say: Say, *, fresh: bool) -> bool:
    """Run the rounds that are left; return whether all were run."""
    job, engine = rounds.job, engine_of(rounds.job)
    folder = _start(rounds, kept, say, fresh=fresh)
    task = PartTask(job)
    while len(rounds.estimates) < len(rounds.parts):
        if stop.asked:
            return False
        began, at = time.perf_counter(), len(rounds.estimates)
        due = rounds.parts[at : at + engine.round]
        rounds.take(executor.run_round(task, due))
        rounds.dead_letters.flush()
        reach("after_flush")
        if folder is not None:
            folder.save(rounds.snapshot(kept))
        took = time.perf_counter() - began
        say(f"{at + len(due)} of {len(rounds.parts)} parts, {rounds.events:,} events, the round took {took:.1f} s")
    return True


def _start(rounds: Rounds, kept: dict[str, str], say: Say, *, fresh: bool) -> CheckpointFolder | None:
    folder = checkpoint_folder(rounds.job)
    if fresh and folder is not None:
        folder.clear()
    saved = folder.newest() if folder is not None else None
    if saved is not None and folder is not None:
        check_same_job(saved.job, kept, folder.path)
        rounds.restore(saved)
        say(f"going on behind part {len(rounds.estimates)} of {len(rounds.parts)}")
        return folder
    if not fresh:
        rounds.dead_letters.require_absent()
    if folder is not None:
        folder.save(rounds.snapshot(kept))
    rounds.dead_letters.create()
    return folder


def _check_learners(job: Job) -> None:
    for index in range(len(job.learners)):
        try:
            require_mergeable(make_track(job, index).learner)
        except BadParameter as error:
            raise BadJob(f"learner[{index}].name: {error}") from error


def _merge(rounds: Rounds, index: int) -> Merged:
    engine = engine_of(rounds.job)
    if index in rounds.added:
        return _added(rounds, index)
    models: list[Learner] = [from_state(below(f"track/{index}/learner", one)) for one in rounds.estimates]
    return merge_learners(models, how=engine.merge, trim=engine.trim)


def _added(rounds: Rounds, index: int) -> Merged:
    """Return the model that all parts were added to; what is no longer there has no distance."""
    labelled = np.array([float(one[f"track/{index}/labelled"]) for one in rounds.estimates])
    n = len(labelled)
    shares = labelled / labelled.sum() if labelled.any() else np.full(n, 1.0 / n)
    found = Consensus(np.zeros(0), shares, np.full(n, np.nan), np.ones(n, dtype=np.bool_))
    return Merged(from_state(rounds.added[index]), found)


# What is told about it


class PartsMetric:
    """A metric of the parts: the mean of their own values, each by its labelled events.

    Parameters
    ----------
    name : str
    takes : str
    values, counts : float64[n_parts]
    """

    takes: ClassVar[Takes] = "score"

    def __init__(self, name: str, values: FloatArray, counts: FloatArray) -> None:
        self.name = name
        known = ~np.isnan(values) & (counts > 0.0)
        self._value = float(np.average(values[known], weights=counts[known])) if known.any() else np.nan

    def get(self) -> float:
        """Return the mean; NaN where no part has a value."""
        return self._value

    def interval(self) -> tuple[float, float]:
        """Return the value twice: it is what it says."""
        return self._value, self._value


def _reported(rounds: Rounds, merged: list[Merged], seconds: float) -> tuple[list[Track], Report]:
    tracks = [_track(rounds, index, one) for index, one in enumerate(merged)]
    timing = {"seconds": seconds, "events": rounds.events, "learners": {track.title: seconds for track in tracks}}
    report = make_report(rounds.job.name, tracks, events=rounds.events, dead_letters=rounds.dead_letters, timing=timing)
    engine = engine_of(rounds.job)
    report["parts"] = {
        "merge": engine.merge,
        "ranges": [[part.partition, part.begin, part.end] for part in rounds.parts],
        "events": [int(one["events"]) for one in rounds.estimates],
        "learners": [
            {
                "shares": one.found.shares.tolist(),
                "distances": [None if np.isnan(value) else value for value in one.found.distances.tolist()],
                "trusted": one.found.trusted.tolist(),
            }
            for one in merged
        ],
    }
    return tracks, report


def _track(rounds: Rounds, index: int, merged: Merged) -> Track:
    """Return a learner with what its parts measured, each with its own forecasts."""
    blank = make_track(rounds.job, index)
    told = [below(f"track/{index}", one) for one in rounds.estimates]
    counts = np.array([float(one["labelled"] or one["events"]) for one in told])
    values = np.array([one["metrics"] for one in told]).reshape(len(told), len(blank.metrics))
    metrics: list[Any] = [PartsMetric(metric.name, values[:, k], counts) for k, metric in enumerate(blank.metrics)]
    track = Track(blank.title, merged.model, metrics)  # type: ignore[arg-type]  # all merged learners forecast
    track.events = sum(int(one["events"]) for one in told)
    track.labelled = sum(int(one["labelled"]) for one in told)
    track.histogram = np.sum([one["histogram"] for one in told], axis=0)
    return track
