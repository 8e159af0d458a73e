"""What learners there are, and what is in a checkpoint or a saved model, for people."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from streamlearn import snapshot
from streamlearn.contracts import Snapshot
from streamlearn.errors import BadSnapshot
from streamlearn.learners.registry import MODULES, learner_class
from streamlearn.runtime.checkpoint import KIND, Checkpoint, CheckpointFolder

MODEL = "model"
COMMON = {
    "max_features": "Most features; an event that would bring more is refused",
    "positive": "The positive label; None: True, 1 or the greater of the two",
    "seed": "Seed of the learner's own random numbers",
}
"""Parameters that many learners have; their docstrings do not repeat what they mean."""

_SENTENCE_END = re.compile(r"\. (?=[A-Z])")


def describe_learners() -> list[dict[str, Any]]:
    """Return every learner with its first line of documentation and its parameters with their defaults."""
    described = [_describe(name) for name in sorted(MODULES)]
    known: dict[str, str] = {}
    for parameter, what in _all_lines(described):
        if what:
            known.setdefault(parameter, what)
    for learner in described:  # docstrings of relatives refer to each other
        for name, parameter in learner["parameters"].items():
            parameter["what"] = COMMON.get(name) or parameter["what"] or known.get(name, "")
    return described


def _all_lines(described: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    for learner in described:
        for name, parameter in learner["parameters"].items():
            yield name, parameter["what"]


def _describe(name: str) -> dict[str, Any]:
    cls = learner_class(name)
    parameters = inspect.signature(cls).parameters.values()
    doc = inspect.getdoc(cls) or ""
    return {
        "name": name,
        "what": doc.split("\n", maxsplit=1)[0],
        "parameters": {
            p.name: {"default": p.default, "type": str(p.annotation), "what": parameter_line(doc, p.name)}
            for p in parameters
        },
    }


def parameter_line(doc: str, name: str) -> str:
    """Return the first sentence about a parameter in a numpydoc docstring, else its kind, or nothing."""
    lines = doc.splitlines()
    for number, line in enumerate(lines):
        head, colon, kind = line.partition(" : ")
        if colon and not line.startswith(" ") and name in [part.strip() for part in head.split(",")]:
            body = []
            for following in lines[number + 1 :]:
                if not following.startswith("    "):
                    break
                body.append(following.strip())
            return _SENTENCE_END.split(" ".join(body) or kind, maxsplit=1)[0].rstrip(".").replace("``", "")
    return ""


def print_learners(console: Console) -> None:
    """Print a table a learner."""
    for learner in describe_learners():
        table = Table(
            title=f"{learner['name']}: {learner['what']}", title_justify="left", title_style="bold", expand=False
        )
        table.add_column("parameter", style="cyan", no_wrap=True)
        table.add_column("default")
        table.add_column("meaning")
        for name, parameter in learner["parameters"].items():
            table.add_row(name, repr(parameter["default"]), parameter["what"])
        console.print(table)


def newest_in(path: Path) -> Path:
    """Return the newest checkpoint of a folder, or the file itself."""
    if not path.is_dir():
        return path
    files = CheckpointFolder(path, keep=1).files()
    if not files:
        raise BadSnapshot(f"{path}: must be a file or a folder of checkpoints, got a folder without any")
    return files[-1]


def describe_file(path: Path) -> dict[str, Any]:
    """Return what is in a checkpoint or a saved model.

    Raises
    ------
    BadSnapshot
        The file is neither, or damaged.
    """
    try:
        document, arrays = snapshot.read(path, MODEL)
    except BadSnapshot as error:
        if f"got {KIND!r}" not in str(error):
            raise
        return _describe_checkpoint(path)
    return {"kind": MODEL, **_describe_learner(snapshot.join(document, arrays))}


def _describe_checkpoint(path: Path) -> dict[str, Any]:
    checkpoint = Checkpoint.read(path)
    state = checkpoint.state
    tracks = sorted({name.split("/")[1] for name in state if name.startswith("track/")}, key=int)
    return {
        "kind": KIND,
        "events": checkpoint.events,
        "bad": json.loads(state["dead_letters/counts"]),
        "outputs": {name.split("/")[0]: value for name, value in state.items() if name.endswith("/bytes")},
        "positions": [
            {"partition": place.partition, "record": place.record, "offset": place.offset}
            for place in checkpoint.positions
        ],
        "learners": [_describe_learner(snapshot.below(f"track/{index}/learner", state)) for index in tracks],
        "job": checkpoint.job,
    }


def _describe_learner(state: Snapshot) -> dict[str, Any]:
    arrays = {name: value for name, value in state.items() if isinstance(value, np.ndarray)}
    return {
        "class": state.get("class"),
        "parameters": json.loads(state.get("parameters", "{}")),
        "features": json.loads(state.get("features", "[]")),
        "labels": [label and label[1] for label in json.loads(state.get("labels") or "[]")],
        "arrays": {name: f"{array.dtype}{list(array.shape)}" for name, array in arrays.items()},
        "bytes": sum(array.nbytes for array in arrays.values()),
    }


def print_file(described: dict[str, Any], console: Console) -> None:
    """Print what `describe_file` found."""
    if described["kind"] == MODEL:
        console.print(_learner_table(described))
        return
    table = _pairs("checkpoint")
    table.add_row("events", f"{described['events']:,}")
    for kind, count in described["bad"].items():
        table.add_row(f"bad: {kind}", f"{count:,}")
    for name, length in described["outputs"].items():
        table.add_row(f"{name} bytes", f"{length:,}")
    for place in described["positions"]:
        table.add_row("next event", f"{place['partition']}: record {place['record']:,}, offset {place['offset']:,}")
    for key, value in described["job"].items():
        if value not in {"None", "()"}:
            table.add_row(key, value)
    console.print(table)
    for learner in described["learners"]:
        console.print(_learner_table(learner))


def _learner_table(learner: dict[str, Any]) -> Table:
    table = _pairs(str(learner["class"]))
    for name, value in learner["parameters"].items():
        table.add_row(name, repr(value))
    table.add_row("labels", ", ".join(map(repr, learner["labels"])))
    table.add_row(f"features ({len(learner['features'])})", ", ".join(map(str, learner["features"])))
    table.add_row("arrays", ", ".join(f"{name} {kind}" for name, kind in learner["arrays"].items()))
    table.add_row("size", f"{learner['bytes']:,} bytes")
    return table


def _pairs(title: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", show_header=False)
    table.add_column(style="cyan", no_wrap=True)
    table.add_column()
    return table
