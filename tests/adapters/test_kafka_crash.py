"""Killed anywhere, again and again: the model and the outputs of a job on topics are those of a run that never stopped.

Real processes and real SIGKILL. STREAMLEARN_TEST_KILLS sets how many kills there are in all.
"""

from __future__ import annotations

import os
import signal
import time

import numpy as np
import pytest

from streamlearn.runtime.crash import POINTS
from tests.adapters.kafka_jobs import Job, make_events, places_of, produce, read_all

pytestmark = [pytest.mark.kafka, pytest.mark.crash]

SEED = 11
KILLS = int(os.environ.get("STREAMLEARN_TEST_KILLS", "12"))
N_EVENTS = 700 * max(KILLS, 12)
EVERY = 200 * max(1, KILLS // 25)
OFTEN = {"batch_events": EVERY // 4, "checkpoint": f"every = {EVERY}\nkeep = 3"}
PARTITIONS = 3


@pytest.fixture(scope="module")
def one_partition(broker):
    topic = broker.topic()
    produce(broker, topic, make_events(N_EVENTS))
    return topic


@pytest.fixture(scope="module")
def three_partitions(real_broker):
    topic = real_broker.topic(PARTITIONS)
    produce(real_broker, topic, make_events(N_EVENTS), PARTITIONS)
    return topic


def kill_often(job: Job, n_kills: int, chance: np.random.Generator) -> None:
    """Kill a job from inside and outside in turns, then let it come to its end."""
    step = N_EVENTS // (2 * n_kills)
    for kill in range(n_kills):
        if kill % 2:
            running = job.start(f"{POINTS[kill // 2 % len(POINTS)]}:{chance.integers(1, step // EVERY + 1)}")
        else:
            running = job.start()
            running.wait_for(max(0, job.saved_events()) + int(chance.integers(1, step)))
            time.sleep(chance.random() * 0.02)
            running.send(signal.SIGKILL)
        assert running.wait() == -signal.SIGKILL, job.errors()[-3000:]
    job.run()


def test_files_are_byte_for_byte_those_of_a_run_that_never_stopped(broker, one_partition, tmp_path):
    whole = Job(tmp_path / "whole", broker.bootstrap, one_partition, **OFTEN)
    killed = Job(tmp_path / "killed", broker.bootstrap, one_partition, **OFTEN)

    whole.run()
    kill_often(killed, KILLS // 3, np.random.default_rng([SEED, 1]))

    for name in ("predictions.ndjson", "job.bad.ndjson", "job.AUCRO.safetensors"):
        assert (killed.folder / "out" / name).read_bytes() == (whole.folder / "out" / name).read_bytes()
    assert killed.report() == whole.report()
    assert whole.report()["events"] == N_EVENTS


def topics_job(broker, folder, topic, source) -> tuple[Job, str, str]:
    predictions, dead = broker.topic(), broker.topic()
    name = f"job-{predictions}"  # the transactional id goes by the name
    job = Job(folder, broker.bootstrap, topic, name, source=source, **OFTEN)
    return job.to_topics(predictions, dead), predictions, dead


def committed(broker, *topics: str) -> list:
    return [message for topic in topics for message in read_all(broker.bootstrap, topic)]


def test_topics_hold_each_output_once_and_the_model_of_a_declared_order_is_the_same(
    real_broker, three_partitions, tmp_path
):
    source = 'until = "end"\norder = "round-robin"'
    whole, *_ = topics_job(real_broker, tmp_path / "whole", three_partitions, source)
    killed, *topics = topics_job(real_broker, tmp_path / "killed", three_partitions, source)

    whole.run()
    kill_often(killed, KILLS // 3, np.random.default_rng([SEED, 2]))

    places = places_of(committed(real_broker, *topics))
    assert set(places.values()) == {1}
    assert len(places) == N_EVENTS
    assert killed.model() == whole.model()
    assert {**killed.report(), "job": ""} == {**whole.report(), "job": ""}


def test_in_the_order_of_arrival_every_event_is_learned_and_written_once(real_broker, three_partitions, tmp_path):
    killed, *topics = topics_job(real_broker, tmp_path / "killed", three_partitions, 'until = "end"')

    kill_often(killed, KILLS - 2 * (KILLS // 3), np.random.default_rng([SEED, 3]))

    places = places_of(committed(real_broker, *topics))
    assert set(places.values()) == {1}
    assert len(places) == N_EVENTS == killed.report()["events"]


def test_what_was_saved_but_never_committed_is_learned_again_in_the_recorded_order(
    real_broker, three_partitions, tmp_path
):
    job, *topics = topics_job(real_broker, tmp_path, three_partitions, 'until = "end"')

    assert job.start("before_commit:3").wait() == -signal.SIGKILL
    lost = job.saved_events()
    folder = job.folder / "out" / f"{job.name}.checkpoints"
    before = (folder / f"ckpt-{lost:012d}.safetensors").read_bytes()
    assert job.start("before_commit:1").wait() == -signal.SIGKILL
    after = (folder / f"ckpt-{lost:012d}.safetensors").read_bytes()
    job.run()

    assert after == before
    assert set(places_of(committed(real_broker, *topics)).values()) == {1}
