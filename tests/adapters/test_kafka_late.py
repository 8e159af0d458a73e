"""Labels from a topic of their own: each used once, whatever is killed, and in an order that every run repeats."""

from __future__ import annotations

import json
import signal
from collections import Counter

import numpy as np
import pytest

from streamlearn.runtime.crash import POINTS
from tests.adapters.kafka_jobs import Job, produce, read_all

pytestmark = [pytest.mark.kafka, pytest.mark.crash]

SEED = 13
N_EVENTS = 3000
EVERY = 300
LATE_S, EARLY_S = 200.0, 20.0
LABELS = """
key = "id"
turn = 64
{time}
[labels.source]
kind = "kafka"
topics = ["{topic}"]
group = "{topic}-group"
{until}
[labels.source.kafka]
"bootstrap.servers" = "{bootstrap}"
"""
# Longer than the test: a round of 1000 events of one partition lets the time jump for the others.
TIMED, UNTIMED = 'time = "t"\ntimeout = "1d"', 'timeout = "100000 events"'
TO_END = 'until = "end"\norder = "round-robin"'


def make_world() -> tuple[list[bytes], list[bytes]]:
    """Return events, one a second, and labels in the order of their times: one in 20 never, one in 30 twice."""
    rng = np.random.default_rng(SEED)
    values = rng.normal(size=(N_EVENTS, 2)).round(6)
    answers = (values @ [1.0, -0.5] + rng.normal(size=N_EVENTS) > 0).astype(int).tolist()
    events = [json.dumps({"id": f"e{k}", "t": k, "a": a, "b": b}).encode() for k, (a, b) in enumerate(values.tolist())]
    labels = []
    for k, answer in enumerate(answers):
        times = k + rng.exponential(LATE_S, 0 if k % 20 == 7 else 2 if k % 30 == 11 else 1) - EARLY_S
        labels += [(round(t, 3), f"e{k}", answer) for t in times.tolist()]
    return events, [json.dumps({"t": t, "id": key, "label": y}).encode() for t, key, y in sorted(labels)]


N_LABELLED = sum(k % 20 != 7 for k in range(N_EVENTS))
N_TWICE = sum(k % 20 != 7 and k % 30 == 11 for k in range(N_EVENTS))


class World:
    """Topics with events and labels, and jobs that write their predictions to topics of their own."""

    def __init__(self, broker, folder, partitions: int):
        self.broker, self.folder = broker, folder
        self.events, self.labels = broker.topic(partitions), broker.topic(partitions)
        events, labels = make_world()
        produce(broker, self.events, events, partitions)
        produce(broker, self.labels, labels, partitions)

    def job(self, name: str, time: str, until: str = TO_END) -> tuple[Job, str]:
        predictions = self.broker.topic()
        places = {"time": time, "topic": self.labels, "until": until, "bootstrap": self.broker.bootstrap}
        made = Job(self.folder / name, self.broker.bootstrap, self.events, f"job-{predictions}", source=until)
        made.checkpoint, made.labels = f"every = {EVERY}\nkeep = 3", LABELS.format(**places)
        return made.to_topics(predictions, self.broker.topic()), predictions

    def keys(self, predictions: str) -> Counter:
        return Counter(json.loads(row.value())["key"] for row in read_all(self.broker.bootstrap, predictions))


@pytest.fixture(params=[1, 3], ids=["one partition", "three partitions"])
def world(request, real_broker, tmp_path):
    return World(real_broker, tmp_path, request.param)


def kill_at_every_point(job: Job, chance: np.random.Generator) -> None:
    for point in POINTS:
        running = job.start(f"{point}:{chance.integers(2, 4)}")
        assert running.wait() == -signal.SIGKILL, job.errors()[-3000:]


ONCE = Counter(f"e{k}" for k in range(N_EVENTS))


@pytest.mark.parametrize("time", [TIMED, UNTIMED], ids=["by time", "in turns"])
def test_a_job_that_was_killed_writes_each_prediction_once_and_learns_what_one_that_was_not_learns(world, time):
    whole, _ = world.job("whole", time)
    killed, predictions = world.job("killed", time)

    whole.run()
    kill_at_every_point(killed, np.random.default_rng(SEED))
    killed.run()

    assert world.keys(predictions) == ONCE
    assert killed.model() == whole.model()
    assert {**killed.report(), "job": ""} == {**whole.report(), "job": ""}
    fates = killed.report()["labels"]
    assert (fates["matched"], fates["duplicate"]) == (N_LABELLED, N_TWICE)


def test_a_live_job_that_was_killed_uses_each_label_once(world):
    job, predictions = world.job("live", 'time = "t"', until="")

    kill_at_every_point(job, np.random.default_rng(SEED))
    job.source = 'until = "end"'
    job.labels = job.labels.replace("[labels.source.kafka]", 'until = "end"\n[labels.source.kafka]')
    job.run()

    assert world.keys(predictions) == ONCE
    fates = job.report()["labels"]
    assert fates["matched"] == N_LABELLED
    assert fates["duplicate"] == N_TWICE
    assert job.report()["events"] == N_EVENTS


@pytest.mark.parametrize("time", ['time = "t"', ""], ids=["by time", "in turns"])
def test_predictions_in_a_file_are_made_again_where_dead_letters_in_a_topic_were_not_committed(world, time):
    job, _ = world.job("live", time, until="")
    job.sink = 'predictions = "out/predictions.ndjson"'
    path = job.folder / "out" / "predictions.ndjson"

    assert job.start("before_commit:3").wait() == -signal.SIGKILL, job.errors()[-3000:]
    lost, predictions = job.saved_events(), path.read_bytes()
    assert job.start("before_commit:1").wait() == -signal.SIGKILL, job.errors()[-3000:]

    assert job.saved_events() == lost
    assert path.read_bytes() == predictions
    assert len(predictions.splitlines()) > EVERY


def test_bad_labels_are_dead_letters_that_say_where_they_came_from(real_broker, tmp_path):
    world = World(real_broker, tmp_path, 1)
    produce(real_broker, world.labels, [b"{not json"])
    job, _ = world.job("job", TIMED)
    dead = job.bad_events.split('"')[1]

    job.run()

    (letter,) = read_all(real_broker.bootstrap, dead)
    headers = {name: value.decode() for name, value in letter.headers()}
    assert letter.value() == b"{not json"
    assert (headers["topic"], headers["partition"], headers["kind"]) == (world.labels, "0", "syntax")
