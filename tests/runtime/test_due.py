"""Labels of several partitions by time: in one order, whatever comes first, and no partition holds up another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from streamlearn.contracts import Batch, Position
from streamlearn.runtime.label_rules import Patience
from streamlearn.runtime.records import empty_batch
from streamlearn.runtime.turns import Turns
from tests.runtime.late_runs import PATIENCES, TURN, Listed, Run, World, world


class Spread(Listed):
    """Labels in three partitions; whose turn it is when nobody asks for one depends on the seed of the run."""

    ends = True

    def __init__(self, records: list[tuple], seed: int, most: int) -> None:
        parts = {f"p{n}": records[n::3] for n in range(3)}
        self.sources = {name: Listed(name, part, most) for name, part in parts.items()}
        self.chance, self.asked = np.random.default_rng(seed), "p0"

    def seek(self, positions: Sequence[Position]) -> None:
        for source in self.sources.values():
            source.seek(positions)

    def at_end(self) -> dict[str, bool]:
        return {name: source.at >= len(source.records) for name, source in self.sources.items()}

    def only(self, partition: str) -> None:
        self.asked = partition

    def poll(self, max_events: int, timeout_s: float) -> Batch | None:
        if all(self.at_end().values()):
            return None
        late = self.chance.random() < 0.3  # it has not come yet
        return empty_batch(()) if late else self.sources[self.asked].poll(max_events, 0.0) or empty_batch(())


def spread(world: World, patience: Patience, seed: int, most: int, path=None) -> Run:
    run = Run(world, patience, path, most)
    run.turns = Turns(
        Listed("events", world.events, most), Spread(world.labels, seed, most), turn=TURN, time=patience.time
    )
    return run


@pytest.mark.parametrize("patience", [PATIENCES[3], Patience(capacity=10**6, time="t")], ids=str)
@pytest.mark.parametrize("seed", range(6))
def test_labels_of_several_partitions_are_learned_in_an_order_that_neither_arrival_nor_restarts_change(
    seed, patience, tmp_path
):
    whole = spread(world(1), patience, 0, 1000).begin()
    while whole.step(1000):
        pass
    path, saved = tmp_path / "waiting.sqlite", None
    run = spread(world(1), patience, seed + 1, 3 + seed, path).begin()
    for number in range(10**6):
        if not run.step(2 + seed):
            break
        if number % 11 == seed:
            saved = run.checkpoint()
        if number == 40:
            run.table.close()
            run = spread(world(1), patience, seed + 50, 4, path).resume(saved)
    assert run.result() == whole.result()


def test_a_label_that_is_not_due_holds_up_its_own_partition_alone():
    # every third label is of the first partition, which begins with one that is never due
    labels = [("k0", (1e9,), 1), ("k1", (1.0,), 1), ("k2", (2.0,), 1), ("k3", (3.0,), 1)]
    labels += [(f"k{i}", (float(i),), i % 2) for i in range(4, 12)]
    events = [(f"k{i}", (float(i), 0.1, 0.2), None) for i in range(30)]
    run = spread(World(events, labels), Patience(capacity=100, time="t"), 1, 100).begin()
    while run.late.counts.matched < 8:
        assert run.step(10)
    waiting = {entry.key for entry in next(run.table.oldest(1e9, 0))}
    assert {f"k{i}" for i in (0, 3, 6, 9)} <= waiting
    assert not {"k1", "k2", "k4", "k5", "k7", "k8", "k10", "k11"} & waiting


def test_a_batch_of_labels_is_not_larger_than_what_was_asked_for():
    labels = [(f"k{i}", (2.0 if i < 5 else 20.0,), i % 2) for i in range(40)]
    events = [(f"k{i}", (float(i), 0.1, 0.2), None) for i in range(40)]
    turns = Turns(Listed("e", events), Listed("l", labels), turn=TURN, time="t")
    turns.seek(())
    sizes = []
    while (batch := turns.poll(7, 0.0)) is not None:
        sizes.append(len(batch))
    assert max(sizes) == 7
    assert sum(sizes) == 80
