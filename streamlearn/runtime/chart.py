"""The metric over time as a chart of braille dots, for a terminal without the library that draws pictures."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from streamlearn.runtime.report import Report, number, shown_metric

if TYPE_CHECKING:
    from rich.text import Text

_WIDTH, _HEIGHT = 64, 10  # in characters, of 2 x 4 dots each
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
_BLANK = 0x2800
_STYLES = ("bold blue", "red", "green", "magenta", "yellow", "cyan")


def make_chart(report: Report) -> Text | None:
    """Return the chart, for a rich console; None where there is nothing to draw."""
    from rich.text import Text  # noqa: PLC0415 - only the commands that print one pay for it

    name = shown_metric(report)
    curves = [_points(learner, name) for learner in report["learners"]]
    values = [value for curve in curves for _, value in curve]
    if len(values) < 2:
        return None
    low, high = min(values), max(values)
    last = max(events for curve in curves for events, _ in curve)
    cells: list[list[tuple[int, str]]] = [[(0, "")] * _WIDTH for _ in range(_HEIGHT)]
    for index in reversed(range(len(curves))):  # the first learner on top
        style = _STYLES[index % len(_STYLES)]
        for column, row in _dots(curves[index], last, low, high):
            bits, _ = cells[row // 4][column // 2]
            cells[row // 4][column // 2] = (bits | _DOTS[row % 4][column % 2], style)
    text = Text()
    for number_of_line, line in enumerate(cells):
        scale = {0: f"{high:10.4g} ", _HEIGHT - 1: f"{low:10.4g} "}.get(number_of_line, " " * 11)
        text.append(scale, style="dim")
        for bits, style in line:
            text.append(chr(_BLANK + bits), style=style)
        text.append("\n")
    text.append(f"{'':10} {0:<{_WIDTH // 2}}{f'{last:,} events':>{_WIDTH - _WIDTH // 2}}\n", style="dim")
    text.append(f"{'':10} {name}: ", style="dim")
    for index, learner in enumerate(report["learners"]):
        text.append(f"{learner['title']}  ", style=_STYLES[index % len(_STYLES)])
    return text


def _points(learner: Report, name: str) -> list[tuple[int, float]]:
    trajectory = learner["trajectory"]
    pairs = zip(trajectory["events"], map(number, trajectory["metrics"][name]), strict=True)
    return [(events, value) for events, value in pairs if math.isfinite(value)]


def _dots(curve: list[tuple[int, float]], last: int, low: float, high: float) -> Iterator[tuple[int, int]]:
    """Give (column, row) of the dots of a curve, row 0 on top; a steep piece is filled from column to column."""
    n_columns, n_rows = 2 * _WIDTH, 4 * _HEIGHT
    row_before: int | None = None
    for column in range(n_columns):
        value = _value_at(curve, last * (column + 1) / n_columns)
        if value is None:
            continue
        share = (value - low) / (high - low) if high > low else 0.5
        row = round((1.0 - share) * (n_rows - 1))
        start = row if row_before is None else row_before + (row > row_before) - (row < row_before)
        yield from ((column, between) for between in range(min(start, row), max(start, row) + 1))
        row_before = row


def _value_at(curve: list[tuple[int, float]], events: float) -> float | None:
    """Return the curve's value at an event count, None outside it."""
    for (left, before), (right, after) in pairwise(curve):
        if left <= events <= right:
            return before + (after - before) * (events - left) / (right - left)
    return None
