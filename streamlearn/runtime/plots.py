"""Pictures of a report: a metric over time, the reject curve, the histogram of the scores."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from streamlearn.errors import BadParameter, MissingExtra
from streamlearn.runtime.report import Report, number, shown_metric

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's colours, told apart by colour-blind readers; the first learner gets the strongest.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
_NEGATIVE, _POSITIVE = "#56b4e9", "#d55e00"
_DPI = 144

MOST_LINES, TICK = 25, 0.06
"""More drifts of a learner than this are ticks of this height: as lines they would hide the curves."""
LARGEST_SPREAD = 100.0
"""Errors that differ by more than this are drawn on a logarithmic scale."""
MOST_REJECTED = 0.98
"""The curve is drawn up to here: what is left behind it are a few pairs, whose AUC is noise."""


def draw(report: Report, path: Path) -> None:
    """Draw the report and write it, as PNG or whatever else the path ends in.

    Raises
    ------
    MissingExtra
        matplotlib is not installed.
    BadParameter
        The path ends in nothing that can be drawn.
    """
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise MissingExtra("the picture", "matplotlib", "plot") from error
    _check_ending(path, set(Figure().canvas.get_supported_filetypes()))
    below = _panels_below(report)
    rows: Any = [["time"] * max(1, len(below))] + ([below] if below else [])
    figure = Figure(figsize=(11, 7.2 if below else 4.2), dpi=_DPI, layout="constrained")
    axes = figure.subplot_mosaic(rows, height_ratios=[1.15, 1.0][: len(rows)])
    _over_time(axes["time"], report)
    if "bands" in below:
        _bands(axes["bands"], report)
    if "curve" in below:
        _reject_curve(axes["curve"], report)
    if "histogram" in below:
        _histogram(axes["histogram"], report["learners"][0])
    for panel in axes.values():
        _plain(panel)
    figure.suptitle(_title(report), x=0.01, ha="left", fontsize=13, fontweight="bold")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Software": None})


def _check_ending(path: Path, kinds: set[str]) -> None:
    kind = path.suffix.lower().removeprefix(".")
    if kind and kind not in kinds:  # without an ending it becomes PNG
        raise BadParameter(f"the picture: must end in one of {', '.join(sorted(kinds))}, got {path.name!r}")


def _panels_below(report: Report) -> list[str]:
    """Return the panels that there is something to show in: a regressor has neither."""
    has_curve = any(learner["reject_curve"] and learner["reject_curve"]["auc"] for learner in report["learners"])
    histogram = report["learners"][0]["histogram"]
    has_histogram = any(histogram["negative"]) or any(histogram["positive"])
    has_bands = (name := _banded_metric(report)) is not None and name != shown_metric(report)
    return [
        *(["bands"] if has_bands else []),
        *(["curve"] if has_curve else []),
        *(["histogram"] if has_histogram else []),
    ]


def _title(report: Report) -> str:
    rejected = sum(report["rejected"].values())
    bad = f", {rejected:,} bad" if rejected else ""
    return f"{report['job']}: {report['events']:,} events{bad}"


def _plain(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(visible=True, color="#e5e5e5", linewidth=0.8)
    axes.set_axisbelow(True)


def _in_words(name: str) -> str:
    """Return ``auc_window_1000`` as "AUC of the last 1,000 labelled events"."""
    what, _, length = name.partition("_window_")
    words = what.replace("auc", "AUC").replace("_", " ")
    return f"{words} of the last {int(length):,} labelled events" if length.isdecimal() else words


def _over_time(axes: Axes, report: Report) -> None:
    name = shown_metric(report)
    curves = []
    for colour, learner in zip(_COLOURS, report["learners"], strict=False):
        values = [number(value) for value in learner["trajectory"]["metrics"][name]]
        curves.append(values)
        final = number(learner["metrics"][name])
        label = f"{learner['title']} ({final:.4g} at the end)"
        axes.plot(learner["trajectory"]["events"], values, color=colour, linewidth=1.5, label=label)
        _fill_band(axes, report, learner["title"], name, colour)
        _drifts(axes, learner, colour)
    if _spread(curves) > LARGEST_SPREAD:
        axes.set_yscale("log")
    axes.set_title(f"{_in_words(name)} over time", loc="left")
    axes.set_xlabel("events")
    axes.margins(x=0.01)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.legend(frameon=False, loc="best", fontsize=9)


def _banded_metric(report: Report) -> str | None:
    """Return the first metric that has bands over time; a report of an older release has none."""
    moved = report.get("comparison", {}).get("bands_over_time", {})
    first = moved.get(report["learners"][0]["title"], {"bands": {}})
    return next(iter(first["bands"]), None) if first.get("events") else None


def _fill_band(axes: Axes, report: Report, title: str, name: str, colour: str) -> None:
    moved = report.get("comparison", {}).get("bands_over_time", {}).get(title)
    if moved is None or name not in moved["bands"]:
        return
    low, high = ([number(value) for value in moved["bands"][name][side]] for side in ("low", "high"))
    axes.fill_between(moved["events"], low, high, color=colour, alpha=0.18, linewidth=0.0)


def _bands(axes: Axes, report: Report) -> None:
    """Draw a metric over all events so far, with what of it is chance."""
    name = _banded_metric(report)
    assert name is not None  # noqa: S101  the caller looked
    for colour, learner in zip(_COLOURS, report["learners"], strict=False):
        trajectory = learner["trajectory"]
        values = [number(value) for value in trajectory["metrics"][name]]
        axes.plot(trajectory["events"], values, color=colour, linewidth=1.5, label=learner["title"])
        _fill_band(axes, report, learner["title"], name, colour)
    axes.set_title(f"{_in_words(name)} of all events, 95 % bands", loc="left")
    axes.set_xlabel("events")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.legend(frameon=False, loc="best", fontsize=9)


def _drifts(axes: Axes, learner: Report, colour: str) -> None:
    """Mark where drift was detected; a report of an older release says nothing of it."""
    drift = learner.get("drift") or {"detected": ()}
    if not drift["detected"]:
        return
    label = f"drift ({drift['detector']}) of {learner['title']}"
    top = 1.0 if len(drift["detected"]) <= MOST_LINES else TICK
    across = axes.get_xaxis_transform()  # heights are shares of the panel
    dashes = (0, (2, 2))
    axes.vlines(
        drift["detected"], 0.0, top, transform=across, color=colour, lw=0.8, linestyle=dashes, alpha=0.7, label=label
    )


def _spread(curves: list[Any]) -> float:
    """Return the ratio of the largest to the smallest value; 1 where not all are positive."""
    values = np.concatenate([np.asarray(curve, dtype=np.float64) for curve in curves])
    values = values[np.isfinite(values)]
    return float(values.max() / values.min()) if len(values) and values.min() > 0.0 else 1.0


def _reject_curve(axes: Axes, report: Report) -> None:
    for colour, learner in zip(_COLOURS, report["learners"], strict=False):
        curve = learner["reject_curve"] or {"reject_rate": (), "auc": ()}
        shown = [pair for pair in zip(curve["reject_rate"], curve["auc"], strict=True) if pair[0] <= MOST_REJECTED]
        axes.plot(*zip(*shown, strict=True) if shown else ((), ()), color=colour, linewidth=1.5, label=learner["title"])
    axes.set_title("AUC of the pairs that are kept", loc="left")
    axes.set_xlabel("share of pairs rejected")
    axes.set_xlim(0.0, 1.0)
    axes.legend(frameon=False, loc="lower right", fontsize=9)


def _histogram(axes: Axes, learner: Report) -> None:
    histogram = learner["histogram"]
    edges = np.array(histogram["edges"])
    for name, colour in (("negative", _NEGATIVE), ("positive", _POSITIVE)):
        counts = np.array(histogram[name])
        axes.stairs(counts, edges, fill=True, alpha=0.55, color=colour, label=f"{name} ({counts.sum():,})")
    axes.set_title(f"P(positive) of {learner['title']}", loc="left")
    axes.set_xlabel("probability before the label was known")
    axes.set_ylabel("events")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_xlim(0.0, 1.0)
    axes.legend(frameon=False, fontsize=9)
