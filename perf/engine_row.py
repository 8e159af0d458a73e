"""What the cases of perf/engine.py share: settings, a row of the table, turns."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from pathlib import Path

SEED = 0


@dataclass(frozen=True)
class Settings:
    work: Path
    data: Path
    repeats: int = 7
    rows: int = 1_000_000
    block: int = 2000
    """Events of one turn in memory."""
    memory_files: int = 10
    """How often the file is read in the case of memory."""


@dataclass
class Row:
    """One line of the table; `figures` are those of the turns, of which the target names the least or the most."""

    case: str
    peer: str
    ours_text: str
    peer_text: str
    figures: list[float]
    target: float
    at_most: bool = False
    unit: str = "x"
    auc: float | None = None
    peer_auc: float | None = None
    note: str = ""
    extra: dict = field(default_factory=dict)

    @property
    def median(self) -> float:
        return statistics.median(self.figures)

    @property
    def reached(self) -> bool:
        return self.median <= self.target if self.at_most else self.median >= self.target

    def __str__(self) -> str:
        areas = "" if self.auc is None else f"  AUC {self.auc:.4f}"
        areas += "" if self.peer_auc is None else f" / {self.peer_auc:.4f}"
        sign = "<=" if self.at_most else ">="
        spread = f"({min(self.figures):.3g} to {max(self.figures):.3g})"
        head = f"{self.case:44s} {self.ours_text:>14s}  {self.peer:28s} {self.peer_text:>14s}"
        verdict = "yes" if self.reached else "NO"
        return (
            f"{head}  {self.median:6.3g} {self.unit:3s} {spread:18s} {sign} {self.target:<5g} {verdict:3s}{areas}"
            + (f"  [{self.note}]" if self.note else "")
        )


def turns(repeats: int, ours, peers: dict) -> tuple[list[float], dict[str, list[float]]]:
    """Run ours and each peer in turns: functions from the number of the turn to seconds."""
    mine, theirs = [], {name: [] for name in peers}
    for turn in range(repeats):
        mine.append(ours(turn))
        for name, run in peers.items():
            theirs[name].append(run(turn))
    return mine, theirs


def ratios(mine: list[float], theirs: list[float]) -> list[float]:
    return [b / a for a, b in zip(mine, theirs, strict=True)]
