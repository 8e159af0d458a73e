"""Finished cells of long measurements: each is written when it is done, and not done again after an interruption."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

OUT = Path(__file__).parent / "out"


class Cells:
    """Cells of one measurement, one a line of ``<name>.jsonl`` in ``perf/out`` or another folder.

    Of two with the same key the last one counts.

    Several processes may fill the same file with cells of their own. A line that was being written when its process was
    killed is cut off.
    """

    def __init__(self, name: str, folder: Path | None = None) -> None:
        folder = folder or OUT
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"{name}.jsonl"
        self._found: dict[tuple, dict] = {}
        if self.path.exists():
            text = self.path.read_bytes()
            whole = text.rfind(b"\n") + 1
            if whole < len(text):
                os.truncate(self.path, whole)
            for line in text[:whole].decode().splitlines():
                cell = json.loads(line)
                self._found[tuple(cell["key"])] = cell["value"]

    def get(self, key: Sequence, make: Callable[[], dict]) -> dict:
        """Return the cell, made now where it is not there yet."""
        key = tuple(key)
        if key not in self._found:
            self._found[key] = make()
            with self.path.open("a") as file:
                file.write(json.dumps({"key": key, "value": self._found[key]}) + "\n")
        return self._found[key]

    def find(self, key: Sequence) -> dict | None:
        """Return the cell, None where it is not there yet."""
        return self._found.get(tuple(key))

    def whole(self, keys: Iterable[Sequence], methods: Sequence[str]) -> list[dict[str, dict]]:
        """Return by method the cells of each trial of which every method is there; their keys end in the method."""
        trials = ({method: self.find((*key, method)) for method in methods} for key in keys)
        return [trial for trial in trials if all(trial.values())]

    def forget(self, matches: Callable[[tuple], bool]) -> None:
        """Drop cells, for instance those of a method that has changed since."""
        kept = {key: value for key, value in self._found.items() if not matches(key)}
        if len(kept) == len(self._found):
            return
        self._found = kept
        lines = [json.dumps({"key": key, "value": value}) for key, value in kept.items()]
        self.path.write_text("".join(line + "\n" for line in lines))
