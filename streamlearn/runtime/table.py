"""The table at the end of a run: learners down, metrics across, the best of each metric in bold."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from streamlearn.runtime.report import Report, best, number

if TYPE_CHECKING:
    from rich.table import Table


def make_table(report: Report) -> Table:
    """Return the table of a report, for a rich console."""
    from rich.table import Table  # noqa: PLC0415 - only the commands that print one pay for it

    learners = report["learners"]
    names = list(learners[0]["metrics"])
    best_of = {name: best(name, [number(learner["metrics"][name]) for learner in learners]) for name in names}
    seconds = report["timing"]["learners"]
    table = Table(title=_title(report), title_justify="left", title_style="bold", header_style="bold")
    table.add_column("learner", overflow="fold")
    for name in (*names, "events/s"):
        table.add_column(_heading(name), justify="right", no_wrap=True)
    for learner in learners:
        cells = [_cell(learner, name, best_of[name], alone=len(learners) == 1) for name in names]
        rate = seconds.get(learner["title"], 0.0)
        measured = min(learner["events"], report["timing"]["events"])  # not what an earlier process did
        table.add_row(learner["title"], *cells, f"{measured / rate:,.0f}" if rate > 0 else "-")
    return table


def _heading(name: str) -> str:
    """Return a metric's name on two short lines: ``auc_window_1000`` as "auc" over "window 1000"."""
    what, window, length = name.partition("_window_")
    if window:
        return f"{what.replace('_', ' ')}\nwindow {length}"
    what, _, parameter = name.rpartition("_")
    return f"{what.replace('_', ' ')}\n{parameter}" if what and parameter[0].isdigit() else name.replace("_", " ")


def _title(report: Report) -> str:
    rejected = sum(report["rejected"].values())
    bad = f", {rejected:,} bad" if rejected else ""
    return f"{report['job']}: {report['events']:,} events{bad}"


def _cell(learner: Report, name: str, best_value: float, *, alone: bool) -> str:
    value = number(learner["metrics"][name])
    if math.isnan(value):
        return "-"
    text = f"{value:.4f}"
    if name in learner["intervals"]:
        low, high = learner["intervals"][name]
        text += f" ±{(high - low) / 2.0:.0e}"
    return f"[bold green]{text}[/]" if value == best_value and not alone else text
