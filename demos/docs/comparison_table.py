"""The table of the comparison page, from what `compare.py` measured."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

OURS = "streamlearn AdaptiveAUCRO"


def write(measured: Path, target: Path) -> None:
    """Write the table as Markdown: AUC, time an event, and the spread of the ratio to ours over the turns."""
    document = json.loads(measured.read_text())
    parts = [_stream(name, stream) for name, stream in document["streams"].items()]
    machine, versions = document["machine"], ", ".join(f"{k} {v}" for k, v in document["versions"].items())
    loads = sorted(stream["load"] for stream in document["streams"].values())
    footer = (
        f"Measured with {versions} on Python {machine['python']}, {machine['cores']} cores, load {loads[0]:.0f} to "
        f"{loads[-1]:.0f} at the start."
    )
    target.write_text("\n\n".join([*parts, footer]) + "\n")


def _stream(name: str, stream: dict[str, Any]) -> str:
    learners = stream["learners"]
    lines = [
        f"**{name}**, first {stream['n_events']:,} events",
        "",
        "| learner | AUC | µs an event | times ours (lowest to highest turn) |",
        "|---|---|---|---|",
    ]
    best = max(f"{learner['auc']:.4f}" for learner in learners.values())
    for label, learner in learners.items():
        seconds = statistics.median(learner["seconds"]) / stream["n_events"] * 1e6
        pairs = zip(learner["seconds"], learners[OURS]["seconds"], strict=False)  # some have one turn
        ratios = sorted(theirs / ours for theirs, ours in pairs)
        auc = f"{learner['auc']:.4f}"
        auc = f"**{auc}**" if auc == best else auc
        spread = "1" if label == OURS else f"{statistics.median(ratios):.1f} ({ratios[0]:.1f} to {ratios[-1]:.1f})"
        shown = label.replace("|", r"\|")
        lines.append(f"| {shown} | {auc} | {seconds:.1f} | {spread} |")
    return "\n".join(lines)
