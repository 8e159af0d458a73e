"""Brokers die and come back: the job goes on, and every event is learned and written once.

STREAMLEARN_TEST_BROKER_KILLS sets how many brokers are killed.
"""

from __future__ import annotations

import os
import time

import numpy as np
import pytest

from tests.adapters.kafka_jobs import Job, make_events, places_of, produce, read_all

pytestmark = [pytest.mark.kafka, pytest.mark.crash]

KILLS = int(os.environ.get("STREAMLEARN_TEST_BROKER_KILLS", "3"))
WAVE = 600
PARTITIONS = 2
PATIENCE_S = 240.0
SEED = 5


def test_a_job_outlives_brokers_that_are_killed_in_turns(three_brokers, tmp_path):
    chance = np.random.default_rng(SEED)
    broker, cluster = three_brokers, three_brokers.cluster
    topic, predictions, dead = (broker.topic(partitions, 3) for partitions in (PARTITIONS, 1, 1))
    job = Job(tmp_path, broker.bootstrap, topic, f"job-{topic}", source="", checkpoint="every_s = 0.5\nkeep = 3")
    running = job.to_topics(predictions, dead).start()
    produced = 0
    for kill in range(KILLS):
        node = kill % len(cluster.nodes) + 1
        produce(broker, topic, make_events(WAVE, first=produced), PARTITIONS, acks="all")
        time.sleep(chance.random() * 1.0)  # anywhere between two checkpoints
        cluster.kill(node)  # its partitions go to other leaders
        produce(broker, topic, make_events(WAVE, first=produced + WAVE), PARTITIONS, acks="all")
        produced += 2 * WAVE
        cluster.start_node(node)
        cluster.wait_ready([node])
        wait_in_sync(broker, topic)
    places, deadline = {}, time.monotonic() + PATIENCE_S
    while len(places) < produced:
        assert running.process.poll() is None, job.errors()[-3000:]
        assert time.monotonic() < deadline, f"{len(places)} of {produced}"
        places = places_of([row for out in (predictions, dead) for row in read_all(broker.bootstrap, out)])

    assert running.stop() == 130
    assert len(places) == produced
    assert set(places.values()) == {1}
    assert job.saved_events() == produced


def wait_in_sync(broker, topic: str) -> None:
    """Wait until all replicas of the internal and the job's topics are in sync: the next kill must lose no quorum."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        topics = broker.admin.list_topics(timeout=30).topics.values()
        parts = [part for one in topics for part in one.partitions.values()]
        if all(len(part.isrs) == len(part.replicas) == 3 for part in parts):
            return
        assert time.monotonic() < deadline
        time.sleep(0.2)
