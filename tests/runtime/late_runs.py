"""Events and labels in every order, and jobs on them without files or processes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from streamlearn.contracts import Batch, Position
from streamlearn.evaluation.registry import make_metric
from streamlearn.features.categories import Vectoriser
from streamlearn.runtime.label_rules import Patience
from streamlearn.runtime.labels import LateLabels
from streamlearn.runtime.tracks import Track
from streamlearn.runtime.turns import Turns
from streamlearn.runtime.waiting import WaitingTable
from tests.naive.logistic import NaiveLogistic

N_EVENTS = 90
TURN = 8


class Listed:
    """A source of records in a list; a poll gives what is asked for, or less."""

    def __init__(self, name: str, records: list[tuple], most: int = 10**6) -> None:
        self.name, self.records, self.most, self.at = name, records, most, 0

    def seek(self, positions: Sequence[Position]) -> None:
        self.at = next((p.record for p in positions if p.partition == self.name), 0)

    def poll(self, max_events: int, timeout_s: float) -> Batch | None:
        if self.at >= len(self.records):
            return None
        rows = self.records[self.at : self.at + min(max_events, self.most)]
        begin, self.at = self.at, self.at + len(rows)
        keys, labels = np.empty(len(rows), object), np.empty(len(rows), object)
        keys[:] = [row[0] for row in rows]
        labels[:] = [row[2] for row in rows]
        return Batch(
            names=("t", "a", "b")[: len(rows[0][1])],
            values=np.array([row[1] for row in rows], np.float64),
            labels=labels,
            records=np.arange(begin, self.at),
            positions=(Position(self.name, offset=self.at, record=self.at),),
            keys=keys,
            partition=self.name,
            origin=lambda row: (begin + row, repr(rows[row]).encode()),
        )

    def close(self) -> None:
        pass


@dataclass(frozen=True)
class World:
    events: list[tuple]
    labels: list[tuple]


def world(seed: int) -> World:
    """Return events and labels: some early, some twice, some never, some keys repeated, some unknown."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(N_EVENTS, 2))
    times = np.cumsum(rng.exponential(size=N_EVENTS))
    keys = [f"k{i}" for i in range(N_EVENTS)]
    for i in rng.integers(1, N_EVENTS, 4):
        keys[i] = keys[rng.integers(0, i)]
    events = [(key, (t, *row), None) for key, t, row in zip(keys, times.tolist(), values.tolist(), strict=True)]
    labels = []
    for key, (t, a, b), _ in events:
        n = rng.choice([0, 1, 1, 1, 2])
        labels += [(key, (t + rng.exponential(15.0) - 3.0,), int(a + 0.5 * b > 0)) for _ in range(n)]
    labels += [(f"nobody{i}", (float(rng.random() * 80),), 1) for i in range(4)]
    return World(events, sorted(labels, key=lambda label: label[1]))


PATIENCES = [
    Patience(capacity=10**6),
    Patience(capacity=25),
    Patience(capacity=10**6, timeout_events=20),
    Patience(capacity=10**6, timeout_s=12.0, time="t"),
    Patience(capacity=20, timeout_s=30.0, time="t"),
    Patience(capacity=10**6, timeout_events=15, time="t"),
]


class Run:
    """One process: sources, table and learners; `restart` is another process that goes on from a checkpoint."""

    def __init__(self, world: World, patience: Patience, path=None, most: int = 10**6, remember: int = 10**6) -> None:
        events, labels = Listed("events", world.events, most), Listed("labels", world.labels, most)
        self.turns = Turns(events, labels, turn=TURN, time=patience.time)
        self.table = WaitingTable(path, keep=2, remember=remember)
        tracks = [
            Track(f"naive {rate}", NaiveLogistic(rate=rate), [make_metric("logloss"), make_metric("auc")])
            for rate in (0.1, 0.5)
        ]
        self.late = LateLabels(tracks, Vectoriser(), self.table, patience)
        self.forecasts: list[float] = []
        self.positions: dict[str, Position] = {}

    def begin(self) -> Run:
        self.table.create()
        self.turns.seek(())
        return self

    def step(self, most: int) -> bool:
        batch = self.turns.poll(most, 0.0)
        if batch is None:
            return False
        if batch.positions or len(batch):
            rows, rejected = self.late.take(batch, 0)
            assert rejected == []
            self.forecasts += [] if rows is None else rows.probabilities.tolist()
            self.positions |= {position.partition: position for position in batch.positions}
        return True

    def checkpoint(self):
        self.table.flush()
        tracks = [track.state() for track in self.late.tracks]
        return tracks, self.late.state(), dict(self.positions), list(self.forecasts)

    def resume(self, saved) -> Run:
        tracks, late, self.positions, forecasts = saved
        self.positions, self.forecasts = dict(self.positions), list(forecasts)
        for track, state in zip(self.late.tracks, tracks, strict=True):
            track.restore(state)
        self.late.restore(late)
        self.turns.seek(tuple(self.positions.values()))
        return self

    def result(self):
        counts = self.late.counts
        metrics = [metric.get() for track in self.late.tracks for metric in track.metrics]
        weights = [track.learner.state()["array/w"].tolist() for track in self.late.tracks]
        return self.forecasts, counts, self.late.waiting, metrics, weights


def whole_run(world: World, patience: Patience):
    run = Run(world, patience).begin()
    while run.step(1000):
        pass
    return run
