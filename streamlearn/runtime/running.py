"""Running a job from start to finish: the loop, then models, report, picture and table."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from streamlearn.errors import MissingExtra, SourceError
from streamlearn.runtime.assemble import assemble
from streamlearn.runtime.brokers import Rewind
from streamlearn.runtime.collector import seldom_collecting
from streamlearn.runtime.job import Job
from streamlearn.runtime.loop import Loop, Parts, Stop, Watch, Watches
from streamlearn.runtime.places import picture_path
from streamlearn.runtime.plots import draw
from streamlearn.runtime.progress import Progress
from streamlearn.runtime.refit_workers import RefitWorkers
from streamlearn.runtime.report import Report, make_report, write_report
from streamlearn.runtime.tracks import Track
from streamlearn.runtime.warm import warm_up

MOST_VAIN = 10
PAUSE_S = 0.5
"""How often a job goes back without having come further, and how much longer it waits each time."""


@runtime_checkable
class Saves(Protocol):
    """A learner that can be written to a file."""

    def save(self, path: Path) -> None:
        """Write the whole learner to one file."""
        ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended.

    Attributes
    ----------
    ended : bool
        Whether the input ended, or else somebody asked to stop.
    events : int
    report : dict or None
        None unless the input ended.
    files : tuple of Path
        What was written at the end.
    missing : str
        What would have to be installed for more; empty where nothing is missing.
    """

    ended: bool
    events: int
    report: Report | None = None
    files: tuple[Path, ...] = ()
    missing: str = ""


def run_job(job: Job, stop: Stop, progress: Progress, *, fresh: bool = False) -> Outcome:
    """Run a job until its input ends or somebody asks to stop.

    Parameters
    ----------
    job : Job
    stop : Stop
    progress : Progress
    fresh : bool
        Replace what an earlier run left, instead of going on with it.
    """
    if job.engine is not None:
        return _run_parts(job, stop, progress, fresh=fresh)
    parts = assemble(job)
    warm_up(parts.tracks, progress.display.say)
    began, processor = time.perf_counter(), time.process_time()
    with ExitStack() as opened:
        watches = [progress, *_monitor(job, progress.display.say, opened)]
        workers = opened.enter_context(RefitWorkers(job))
        opened.enter_context(seldom_collecting())
        loop, ended = _run_through(job, parts, workers, stop, Watches(watches), progress.display.say, fresh=fresh)
    if ended and loop.events == loop.resumed_at > 0:
        progress.display.say("there was nothing new to read; --fresh starts anew")
    if not ended:
        return Outcome(ended=False, events=loop.events)
    seconds, processor_seconds = time.perf_counter() - began, time.process_time() - processor
    tracks = loop.parts.tracks
    for track in tracks:
        track.finish()
    timing = {
        "seconds": seconds,
        "processor_seconds": processor_seconds,
        "events": loop.events - loop.resumed_at,
        "learners": {track.title: track.seconds for track in tracks},
    }
    late = loop.parts.late
    events = loop.events - (late.n_not_events if late is not None else 0)
    letters = loop.parts.dead_letters
    report = make_report(job.name, tracks, events=events, dead_letters=letters, timing=timing, late=late)
    if loop.parts.duels is not None:
        report["comparison"] = loop.parts.duels.report()
    return _finish(job, tracks, report, loop.events)


def _run_parts(job: Job, stop: Stop, progress: Progress, *, fresh: bool) -> Outcome:
    # Only jobs that are cut into parts need what merges them.
    from streamlearn.runtime.engine import run_parts  # noqa: PLC0415

    done = run_parts(job, stop, progress.display.say, fresh=fresh)
    if isinstance(done, int):
        return Outcome(ended=False, events=done)
    tracks, report = done
    return _finish(job, tracks, report, int(report["events"]))


def _run_through(
    job: Job,
    parts: Parts,
    workers: RefitWorkers,
    stop: Stop,
    watch: Watch,
    say: Callable[[str], None],
    *,
    fresh: bool,
) -> tuple[Loop, bool]:
    """Run the loop, again with new parts where what it did since its last checkpoint does not count."""
    vain = 0
    while True:
        workers.serve(parts.tracks)
        loop = Loop(parts, stop, watch)
        try:
            return loop, loop.run(fresh=fresh)
        except Rewind as error:
            vain = vain + 1 if loop.events == loop.resumed_at else 0
            if vain == MOST_VAIN:
                raise SourceError(
                    f"source: must come further than the last checkpoint, got {vain} times: {error}"
                ) from error
            say(f"going back to the last checkpoint: {error}")
        time.sleep(PAUSE_S * vain)
        parts, fresh = assemble(job), False


def _monitor(job: Job, say: Callable[[str], None], stack: ExitStack) -> list[Watch]:
    if job.monitor is None:
        return []
    # Only jobs that are looked at need the library behind it.
    from streamlearn.runtime.monitor import Monitor  # noqa: PLC0415

    every_s = job.checkpoint.every_s if job.checkpoint is not None else float("inf")
    monitor = stack.enter_context(Monitor(job.monitor, job.name, every_s))
    say(f"look at {monitor.url}")
    return [monitor]


def _finish(job: Job, tracks: list[Track], report: Report, events: int) -> Outcome:
    files = [_save(job, track) for track in tracks if isinstance(track.learner, Saves)]
    write_report(report, job.report_path)
    files.append(job.report_path)
    if not job.evaluate.picture:
        return Outcome(True, events, report, tuple(files))
    picture = picture_path(job.report_path)
    try:
        draw(report, picture)
    except MissingExtra as error:
        return Outcome(True, events, report, tuple(files), str(error))
    return Outcome(True, events, report, (*files, picture))


def _save(job: Job, track: Track) -> Path:
    assert isinstance(track.learner, Saves)  # noqa: S101  the caller looked
    path = job.model_path(track.title)
    path.parent.mkdir(parents=True, exist_ok=True)
    track.learner.save(path)
    return path
