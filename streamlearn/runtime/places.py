"""No output of a job may be one of its inputs, or another of its outputs: a fresh start would remove the input."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from streamlearn.errors import BadJob

if TYPE_CHECKING:  # it imports this file
    from streamlearn.runtime.job import Job


def check_places(job: Job) -> None:
    """Raise BadJob where an output of a job would be written over an input or another output, or out of its folder.

    Paths are compared, links followed; that no two links are to one file is left to the file system.
    """
    if any(sign in job.name for sign in "/\\\0"):
        raise BadJob(f"name: must be a part of file names, without slashes, got {job.name!r}")
    taken: dict[Path, str] = {}
    inputs = dict(_inputs(job))
    for key, written in _outputs(job):
        path = written.resolve()
        for pattern, source in inputs.items():
            if matches(path, pattern):
                raise BadJob(f"{key}: must not be an input of {source}, got {written}")
        if path in taken:
            raise BadJob(f"{key}: must differ from the path of {taken[path]}, got {written}")
        taken[path] = key


def matches(path: Path, pattern: str) -> bool:
    """Tell whether a path, whether there is such a file or not, is among those of a pattern of the job.

    Examples
    --------
    >>> matches(Path("/data/out/p.csv"), "/data/*.csv"), matches(Path("/data/out/p.csv"), "/data/**/*.csv")
    (False, True)
    """
    given, wanted = path.parts, Path(pattern).parts
    if "**" in wanted:
        return fnmatchcase(str(path), pattern.replace("**/", "*"))
    return given == wanted or (len(given) == len(wanted) and all(map(fnmatchcase, given, wanted)))


def picture_path(report: Path) -> Path:
    """Return where the picture of a report goes: beside it."""
    return report.with_name(report.name.removesuffix(".json").removesuffix(".report") + ".png")


def _inputs(job: Job) -> Iterator[tuple[str, str]]:
    for place, source in (("source", job.source), ("labels.source", job.labels.source)):
        if source is None:
            continue
        for path in job.paths_of(source):
            yield path, place
            yield str(Path(path).resolve()), place
            if job.sink is not None and job.sink_format == "parquet" and source.kind == "parquet":
                yield str(Path(path).resolve().parent), place  # parts beside it would be taken for the job's own


def _outputs(job: Job) -> Iterator[tuple[str, Path]]:
    if job.sink is not None and job.sink_format != "kafka":
        yield "sink.predictions", job.resolve(job.sink.predictions)
    if job.bad_events.topic is None:
        yield "bad_events.path", job.dead_letter_path
    if job.checkpoint_dir is not None:
        yield "checkpoint.dir", job.checkpoint_dir
    yield "evaluate.report", job.report_path
    if job.evaluate.picture:
        yield "evaluate.report", picture_path(job.report_path)
    for section in job.learners:
        yield "learner", job.model_path(section.title)
