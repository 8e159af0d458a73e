"""Labels by key, early, late, twice and never, beside the obvious way; through any batches and restarts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from streamlearn.errors import SinkError, SourceError
from streamlearn.runtime.due import LABELS
from streamlearn.runtime.label_rules import Patience
from streamlearn.runtime.records import empty_batch
from streamlearn.runtime.turns import PLACE, Turns
from tests.naive.late import NaiveLateLabels
from tests.naive.logistic import NaiveLogistic
from tests.runtime.late_runs import PATIENCES, TURN, Listed, Run, World, whole_run, world


def naive_run(world: World, patience: Patience) -> NaiveLateLabels:
    timed, in_events = patience.time is not None, patience.timeout_s is None
    naive = NaiveLateLabels(
        NaiveLogistic(),
        timeout=patience.timeout_events if in_events else patience.timeout_s,
        capacity=patience.capacity,
        timed=timed,
        in_events=in_events,
    )
    events, labels = list(world.events), list(world.labels)
    while events or labels:
        turn, events = events[:TURN], events[TURN:]
        for key, (t, a, b), _ in turn:
            x = {"a": a, "b": b} if timed else {"t": t, "a": a, "b": b}
            naive.event(key, x, t if timed else None)
        if turn:
            naive.end_turn()
        # a file is known to have ended when the turn behind its last record asks for more
        over = not events and len(turn) < TURN
        due = [label for label in labels if label[1][0] <= naive.time or over] if timed else labels[:TURN]
        labels = labels[len(due) :]
        for key, _, y in due:
            naive.label(key, y)
    return naive


@pytest.mark.parametrize("patience", PATIENCES, ids=str)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_every_event_and_label_goes_the_obvious_way(seed, patience):
    run, naive = whole_run(world(seed), patience), naive_run(world(seed), patience)
    counts = {name: getattr(run.late.counts, name) for name in naive.counts}
    assert counts == naive.counts
    # before both labels were seen the one-event verbs answer {label: 1.0}
    known = next(i for i, p in enumerate(run.forecasts) if p != 0.5)
    assert run.forecasts[known + TURN :] == naive.forecasts[known + TURN :]
    losses = [-np.log(p if y == 1 else 1.0 - p) for p, y in naive.measured if 0.0 < p < 1.0]
    assert run.late.tracks[0].labelled == naive.counts["matched"]
    if len(losses) == len(naive.measured):
        assert run.late.tracks[0].metrics[0].get() == pytest.approx(np.mean(losses), rel=1e-12)
    names = [str(name) for name in run.late.tracks[0].learner.feature_names]
    theirs = [str(name) for name in naive.learner.feature_names]
    weights = dict(zip(names, run.late.tracks[0].learner.state()["array/w"].tolist(), strict=True))
    assert weights == dict(zip(theirs, naive.learner.state()["array/w"].tolist(), strict=True))


@pytest.mark.parametrize("timeout", [{"timeout_s": 2.5}, {"timeout_events": 3}], ids=str)
def test_a_label_that_comes_in_time_is_learned_however_much_time_a_turn_takes(timeout):
    """One event a second, each label two seconds behind it: the turn is longer than the timeout."""
    events = [(f"k{i}", (float(i), 0.1 * i, 1.0), None) for i in range(6 * TURN)]
    labels = [(key, (t + 2.0,), int(t) % 2) for key, (t, _, _), _ in events]
    run = whole_run(World(events, labels), Patience(capacity=10**6, time="t", **timeout))
    assert run.late.counts.matched == len(events)
    assert run.late.counts.expired == run.late.counts.late == 0


def test_these_worlds_have_every_fate():
    met = [naive_run(world(seed), patience).counts for seed in (1, 2, 3) for patience in PATIENCES]
    for fate in met[0]:
        assert any(counts[fate] for counts in met), fate


@pytest.mark.parametrize("patience", PATIENCES, ids=str)
@settings(max_examples=8, phases=(Phase.explicit, Phase.generate))  # shrinking would write to the disk for minutes
@given(
    sizes=st.lists(st.integers(1, 13), min_size=1, max_size=6),
    most=st.integers(1, 20),
    saves=st.sets(st.integers(0, 40), max_size=4),
    stop=st.integers(0, 40),
)
def test_neither_batches_nor_restarts_show(patience, sizes, most, saves, stop, tmp_path_factory):
    expected = whole_run(world(1), patience).result()
    path = tmp_path_factory.mktemp("waiting") / "waiting.sqlite"
    run = Run(world(1), patience, path, most).begin()
    saved = [run.checkpoint()]
    for number in range(10**6):
        if not run.step(sizes[number % len(sizes)]):
            break
        if number in saves:
            saved.append(run.checkpoint())
        if number == stop:
            # The process dies; the newest checkpoint may turn out damaged, then the one before counts.
            run.table.close()
            if len(saved) > 1 and stop % 2:
                saved.pop()
            run = Run(world(1), patience, path, most).resume(saved[-1])
    assert run.result() == expected


def test_what_is_forgotten_does_not_depend_on_checkpoints(tmp_path):
    whole = Run(world(1), PATIENCES[1], remember=15).begin()
    while whole.step(1000):
        pass
    saving = Run(world(1), PATIENCES[1], tmp_path / "waiting.sqlite", remember=15).begin()
    while saving.step(7):
        saving.checkpoint()
    assert saving.result() == whole.result()
    assert whole.late.counts != whole_run(world(1), PATIENCES[1]).late.counts
    assert saving.table.n_entries() < whole.table.n_entries()


def test_the_table_survives_what_happened_behind_a_checkpoint_that_was_not_saved(tmp_path):
    patience, path = PATIENCES[1], tmp_path / "waiting.sqlite"
    run = Run(world(2), patience, path).begin()
    for _ in range(6):
        run.step(5)
    saved = run.checkpoint()
    for _ in range(10):
        run.step(5)
    run.table.flush()  # killed between the flush and the checkpoint
    run.table.close()
    again = Run(world(2), patience, path).resume(saved)
    while again.step(5):
        pass
    assert again.result() == whole_run(world(2), patience).result()


def test_a_job_that_was_idle_can_still_go_back_behind_its_newest_checkpoint(tmp_path):
    path = tmp_path / "waiting.sqlite"
    run = Run(world(1), PATIENCES[1], path).begin()
    for _ in range(4):
        run.step(20)
    saved = run.checkpoint()
    for _ in range(3):
        run.step(20)
    for _ in range(5):
        run.checkpoint()  # one file, written again and again
    run.table.close()

    again = Run(world(1), PATIENCES[1], path).resume(saved)
    while again.step(20):
        pass
    assert again.result() == whole_run(world(1), PATIENCES[1]).result()


def test_a_table_that_is_gone_or_behind_is_refused(tmp_path):
    path = tmp_path / "waiting.sqlite"
    run = Run(world(1), PATIENCES[0], path).begin()
    run.step(5)
    early = path.read_bytes()
    run.checkpoint()
    run.step(5)
    saved = run.checkpoint()
    run.table.close()
    path.write_bytes(early)
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    with pytest.raises(SinkError, match=r"must know .* operations"):
        Run(world(1), PATIENCES[0], path).resume(saved)
    path.unlink()
    with pytest.raises(SinkError, match="must be there"):
        Run(world(1), PATIENCES[0], path).resume(saved)


def test_records_without_key_or_label_are_bad_events():
    records = [("a", (1.0, 0.5, 0.5), None), ("", (2.0, 0.5, 0.5), None), ("a\0b", (3.0, 0.5, 0.5), None)]
    labels = [("a", (3.0,), None), (None, (3.0,), 1)]
    run = Run(World(records, labels), PATIENCES[0]).begin()
    rejected = []
    while (batch := run.turns.poll(100, 0.0)) is not None:
        rejected += run.late.take(batch, 0)[1]
    assert [(bad.partition, bad.record, bad.kind) for bad in rejected] == [
        ("events", 1, "key"),
        ("events", 2, "key"),
        (LABELS + "labels", 0, "label"),
        (LABELS + "labels", 1, "key"),
    ]
    assert run.late.waiting == 1


@pytest.mark.parametrize("early", [False, True])
def test_a_third_label_is_a_bad_event_whenever_it_comes(early):
    events = [(f"k{i}", (float(i), 0.1 * i, 1.0), None) for i in range(30)]
    labels = [(f"k{i}", (float(i),), i % 2) for i in range(8)]
    bad = (f"k{25 if early else 3}", (9.0,), 7)
    labels = [*labels[:3], *labels[4:], bad]
    run = Run(World(events, labels), PATIENCES[0]).begin()
    rejected = []
    while (batch := run.turns.poll(100, 0.0)) is not None:
        rejected += run.late.take(batch, 0)[1]
    assert [bad.kind for bad in rejected] == ["label"]
    assert b"7" in rejected[0].raw
    assert run.late.counts.matched == 7


def test_an_input_without_the_time_column_is_refused():
    turns = Turns(Listed("e", [("a", (1.0,), None)]), Listed("l", []), turn=4, time="when")
    turns.seek(())
    with pytest.raises(SourceError, match=r"^labels.time: e must have a numeric column 'when'"):
        turns.poll(10, 0.0)


class Nameless(Listed):
    """A source whose records from some number on have no time."""

    def poll(self, max_events, timeout_s):
        batch = super().poll(1, timeout_s)
        without = batch is not None and batch.records[0] >= 5
        return replace(batch, names=batch.names[1:], values=batch.values[:, 1:].copy()) if without else batch


def test_records_without_a_time_count_as_old_and_do_not_end_a_job_that_knows_others():
    run = Run(world(1), PATIENCES[3])
    run.turns = Turns(
        Nameless("events", world(1).events[:20]), Nameless("labels", world(1).labels[:9]), turn=4, time="t"
    )
    run.begin()
    while run.step(100):
        pass
    assert run.positions["events"].record == 20
    assert run.late.counts.records == 9


def test_a_silent_input_gives_its_turn_up_and_the_place_is_in_every_position():
    class Silent(Listed):
        def poll(self, max_events, timeout_s):
            return empty_batch(())

    turns = Turns(Silent("events", []), Listed("labels", world(1).labels), turn=4)
    turns.seek(())
    batch = turns.poll(100, 0.0)
    assert batch.are_labels
    assert len(batch) == 4
    assert batch.partition == LABELS + "labels"
    assert [position.partition for position in batch.positions] == [LABELS + "labels", PLACE]
