"""The command line: ``streamlearn run``, ``promote``, ``evaluate``, ``inspect``, ``plot``, ``learners``.

Exit codes: 0 done, 1 the job failed, 2 bad usage or bad job file, 130 interrupted after a clean stop. Each command
imports what it needs when it runs, so that ``--help`` answers at once.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, CycloptsError, Parameter

from streamlearn.errors import BadJob, StreamlearnError

if TYPE_CHECKING:
    from streamlearn.runtime.job import Job

Flag = Annotated[bool, Parameter(negative=())]
Many = Annotated[list[str], Parameter(negative=(), consume_multiple=False)]

WIDE = 160
"""Columns of a table that goes into a file or a pipe."""

DONE, FAILED, BAD_USAGE, INTERRUPTED = 0, 1, 2, 130

app = App(
    name="streamlearn",
    help="Online learning on live streams: forecast, measure, learn; exactly once.",
    version=lambda: metadata.version("streamlearn"),
    result_action="return_value",
)


@app.command
def run(
    job: Path,
    /,
    *,
    set_: Annotated[Many | None, Parameter(name="--set")] = None,
    workers: int | None = None,
    fresh: Flag = False,
    json: Flag = False,
    log: Literal["text", "json"] = "text",
) -> int:
    """Run a job: read, forecast, measure, learn and write until the input ends, with checkpoints.

    A job that was stopped or killed goes on where its newest checkpoint left it.

    Parameters
    ----------
    job
        The job file (TOML).
    set_
        Change a key of the job file: section.key=value. May be given several times.
    workers
        Learn parts of the input in so many processes and merge the models: engine.workers. For file sources.
    fresh
        Start anew and replace what an earlier run left.
    json
        Write progress and report as JSON lines to the standard output.
    log
        Write log and progress to the standard error as text, or as one JSON object a line.
    """
    from streamlearn.runtime.job import read_job  # noqa: PLC0415 - commands import what they use

    if log == "json":
        from streamlearn.runtime.progress import log_json  # noqa: PLC0415

        log_json()
    sets = [*(set_ or ()), *([] if workers is None else [f"engine.workers={workers}"])]
    return _run(read_job(job, sets, os.environ), fresh=fresh, as_json=json, log=log)[0]


@app.command
def evaluate(
    file: Path,
    /,
    *,
    learner: Many,
    label: str | None = None,
    metric: Many | None = None,
    window: int = 1000,
    delay: int = 0,
    fading: float | None = None,
    bands: int = 30,
    drift: str | None = None,
    on_drift: str = "alert",
    exclude: Many | None = None,
    categorical: Many | None = None,
    kind: str | None = None,
    out: Path = Path("out"),
    json: Flag = False,
) -> int:
    """Compare learners on one file, prequentially: each event is forecast before it is learned.

    Parameters
    ----------
    file
        CSV, NDJSON, LIBSVM or Parquet, compressed or not.
    learner
        A learner, with parameters if need be: aucro, aucro:half_life=100, river:linear_model.LogisticRegression.
        May be given several times.
    label
        The label column; not for LIBSVM.
    metric
        auc, logloss, kappa_t, mae, reject_auc:d=0.4, ... May be given several times.
    window
        Length of the windowed metrics, in labelled events.
    delay
        How many events late the labels come.
    fading
        Beside each metric also its value where an event counts so many times less one event later.
    bands
        Copies of the bootstrap behind the bands and the comparison with the first learner; 0: none.
    drift
        What looks for drift in the errors: adwin, page_hinkley:threshold=20, ddm, eddm, hddm_a, hddm_w, fhddm,
        kswin.
    on_drift
        alert, reset or shorten_memory.
    exclude
        A column to leave out. May be given several times.
    categorical
        A column of text or codes. May be given several times.
    kind
        csv, ndjson, libsvm or parquet, where the file's name does not tell.
    out
        Folder of report and picture.
    json
        Write progress and report as JSON lines to the standard output.
    """
    from streamlearn.runtime.comparing import advice, comparison  # noqa: PLC0415 - commands import what they use

    job = comparison(
        file,
        label=label,
        learners=learner,
        metrics=metric,
        window=window,
        delay=delay,
        fading=fading,
        bands=bands,
        drift=drift,
        on_drift=on_drift,
        exclude=exclude or [],
        categorical=categorical or [],
        kind=kind,
        out=out,
    )
    code, report = _run(job, fresh=True, as_json=json)
    problem = advice(report) if report is not None else None
    if problem is not None:
        print(f"error: {problem}", file=sys.stderr)
    return code if problem is None else FAILED


@app.command
def promote(
    job: Path,
    learner: str,
    /,
    *,
    set_: Annotated[Many | None, Parameter(name="--set")] = None,
) -> int:
    """Let another learner's predictions go out: from the next checkpoint on, whether the job runs now or later.

    Parameters
    ----------
    job
        The job file (TOML).
    learner
        Title of the learner that takes over; the others go on in its shadow.
    set_
        Changes of the job file that the running job was given.
    """
    from streamlearn.runtime.job import read_job  # noqa: PLC0415 - commands import what they use
    from streamlearn.runtime.lead import request_lead  # noqa: PLC0415

    found = read_job(job, set_ or (), os.environ)
    titles = [section.title for section in found.learners]
    if learner not in titles:
        raise BadJob(f"promote: must name one of {titles}, got {learner!r}")
    if found.checkpoint_dir is None:
        raise BadJob("checkpoint: must be in the job for another learner to take over, got none")
    request_lead(found.checkpoint_dir, learner)
    print(f"predictions of {learner} go out from the next checkpoint on")
    return DONE


@app.command
def inspect(file: Path, /, *, json: Flag = False) -> int:
    """Show what is in a checkpoint or a saved model.

    Parameters
    ----------
    file
        A checkpoint, a folder of checkpoints, or a model.
    json
        Write it as JSON to the standard output.
    """
    from rich.console import Console  # noqa: PLC0415 - commands import what they use

    from streamlearn.runtime.listing import describe_file, newest_in, print_file  # noqa: PLC0415

    described = describe_file(newest_in(file))
    if json:
        _print_json(described)
    else:
        print_file(described, Console())
    return DONE


@app.command
def plot(report: Path, /, *, out: Path | None = None) -> int:
    """Draw a report: a metric over time, the reject curve, the histogram of the scores.

    Parameters
    ----------
    report
        The report that a run wrote.
    out
        The picture; beside the report by default.
    """
    from streamlearn.runtime.places import picture_path  # noqa: PLC0415 - commands import what they use
    from streamlearn.runtime.plots import draw  # noqa: PLC0415
    from streamlearn.runtime.report import read_report  # noqa: PLC0415

    target = out or picture_path(report)
    draw(read_report(report), target)
    print(target)
    return DONE


@app.command
def learners(*, json: Flag = False) -> int:
    """List every learner with its parameters.

    Parameters
    ----------
    json
        Write the list as JSON to the standard output.
    """
    from rich.console import Console  # noqa: PLC0415 - commands import what they use

    from streamlearn.runtime.listing import describe_learners, print_learners  # noqa: PLC0415

    if json:
        _print_json(describe_learners())
    else:
        print_learners(Console())
    return DONE


def _run(job: Job, *, fresh: bool, as_json: bool, log: str = "text") -> tuple[int, dict[str, Any] | None]:
    """Run a job and print what came of it; return the exit code and the report."""
    from streamlearn.runtime.progress import Progress, open_display  # noqa: PLC0415 - commands import what they use
    from streamlearn.runtime.running import run_job  # noqa: PLC0415
    from streamlearn.runtime.signals import StopRequest  # noqa: PLC0415

    with StopRequest() as stop, Progress(open_display(as_json=as_json, log=log)) as progress:
        outcome = run_job(job, stop, progress, fresh=fresh)
        if not outcome.ended:
            again = "go on with the same command" if job.checkpoint is not None else "nothing was kept: no [checkpoint]"
            progress.display.say(f"stopped behind event {outcome.events:,}; {again}")
            return INTERRUPTED, None
    if as_json:
        files = [str(path) for path in outcome.files]
        _print_json({"kind": "done", "report": outcome.report, "files": files, "missing": outcome.missing})
    elif outcome.report is not None:
        _print_outcome(outcome.report, outcome.files, outcome.missing)
    return DONE, outcome.report


def _print_outcome(report: dict[str, Any], files: Sequence[Path], missing: str) -> None:
    from rich.console import Console  # noqa: PLC0415 - commands import what they use

    from streamlearn.runtime.chart import make_chart  # noqa: PLC0415
    from streamlearn.runtime.duels import told  # noqa: PLC0415
    from streamlearn.runtime.table import make_table  # noqa: PLC0415

    console = Console()
    if not console.is_terminal:
        console.width = max(console.width, WIDE)
    console.print(make_table(report))
    for line in told(report["comparison"]) if "comparison" in report else ():
        console.print(f"  {line}", highlight=False, soft_wrap=True)
    for kind, example in report["rejected_examples"].items():
        text = f"  bad: {report['rejected'][kind]:,} of kind {kind}; the first: {example}"
        console.print(text, style="yellow", markup=False, highlight=False, soft_wrap=True)
    if missing and (chart := make_chart(report)) is not None:
        console.print(chart, soft_wrap=True)
    for path in files:
        shown = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
        console.print(f"  {shown}", highlight=False, soft_wrap=True)
    if missing:
        console.print(f"  no picture: {missing}", style="yellow", markup=False, highlight=False, soft_wrap=True)


def _print_json(value: object) -> None:
    import msgspec  # noqa: PLC0415 - commands import what they use

    print(msgspec.json.encode(value, enc_hook=str).decode())


def _said(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None and error.strerror is not None:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    logging.basicConfig(format="%(levelname)s: %(message)s", level=logging.INFO, stream=sys.stderr)
    try:
        code = app(arguments, exit_on_error=False, print_error=True)
    except (CycloptsError, BadJob) as error:
        if isinstance(error, BadJob):
            print(f"error: {error}", file=sys.stderr)
        return BAD_USAGE
    except (StreamlearnError, OSError) as error:
        print(f"error: {_said(error)}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:  # the second Ctrl-C: at once, without a checkpoint
        return INTERRUPTED
    return code if isinstance(code, int) else DONE


if __name__ == "__main__":
    sys.exit(main())
