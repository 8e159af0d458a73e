"""What of Table 2 was measured already: one line of JSON for each set, learner and fold, so that a run can go on."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from table2_protocol import Cell, Plan, Result


class Finished:
    """A file of finished cells, appended to; lines of other plans stay in it and are not looked at.

    A line that was being written when the process was killed is cut off.

    Parameters
    ----------
    path : Path
    plan : Plan
        What the cells must have been measured by, its number of repeats apart.
    """

    def __init__(self, path: Path, plan: Plan) -> None:
        self.path = path
        self.plan = plan.key()
        self._results: dict[tuple[str, str, int], Result] = {}
        if path.exists():
            whole = path.read_bytes()
            lines = whole[: whole.rfind(b"\n") + 1]
            if len(lines) < len(whole):
                path.write_bytes(lines)
            for line in lines.splitlines():
                self._take(json.loads(line))

    def _take(self, record: dict[str, Any]) -> None:
        if record["plan"] == self.plan:
            cells = [Cell(**cell) for cell in record["cells"]]
            self._results[record["set"], record["learner"], record["fold"]] = Result(cells, record["parameters"])

    def get(self, name: str, learner: str, fold: int) -> Result | None:
        """Return what a learner did on a fold of a set, if that is known."""
        return self._results.get((name, learner, fold))

    def add(self, name: str, learner: str, fold: int, result: Result, seconds: float) -> None:
        """Keep a result, and write it down."""
        record = {
            "plan": self.plan,
            "set": name,
            "learner": learner,
            "fold": fold,
            "seconds": round(seconds, 3),
            "parameters": result.parameters,
            "cells": [asdict(cell) for cell in result.cells],
        }
        with self.path.open("a") as file:
            file.write(json.dumps(record) + "\n")
        self._results[name, learner, fold] = result
