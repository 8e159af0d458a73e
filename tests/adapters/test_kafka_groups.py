"""Several instances of a job share the partitions of a group: every event is learned and written by exactly one."""

from __future__ import annotations

import shutil
import signal
import time

import pytest

from tests.adapters.kafka_jobs import Job, make_events, places_of, produce, read_all

pytestmark = [pytest.mark.kafka, pytest.mark.crash]

PARTITIONS = 4
WAVE = 800
SESSION_S = 6.0
PATIENCE_S = 240.0
CLASSIC = f'"session.timeout.ms" = {int(1000 * SESSION_S)}\n"heartbeat.interval.ms" = 500\n'
PROTOCOLS = {
    "eager": CLASSIC + '"partition.assignment.strategy" = "range"',
    "cooperative": CLASSIC + '"partition.assignment.strategy" = "cooperative-sticky"',
    "consumer": '"group.protocol" = "consumer"',
}


class Instances:
    """Instances of one job in one group, and what they have written together."""

    def __init__(self, broker, folder, protocol):
        self.broker, self.folder, self.protocol = broker, folder, protocol
        self.topic, self.predictions, self.dead = broker.topic(PARTITIONS), broker.topic(), broker.topic()
        self.produced = 0

    def job(self, name: str) -> Job:
        source = 'assignment = "group"'
        client, checkpoint = PROTOCOLS[self.protocol], "every_s = 0.5\nkeep = 3"
        full = f"{name}-{self.topic}"
        folder = self.folder / name
        made = Job(folder, self.broker.bootstrap, self.topic, full, source=source, client=client, checkpoint=checkpoint)
        return made.to_topics(self.predictions, self.dead)

    def produce(self) -> None:
        produce(self.broker, self.topic, make_events(WAVE, first=self.produced), PARTITIONS)
        self.produced += WAVE

    def places(self):
        return places_of(
            [row for topic in (self.predictions, self.dead) for row in read_all(self.broker.bootstrap, topic)]
        )

    def wait_for_all(self) -> None:
        """Wait until everything that was produced is written, once."""
        deadline = time.monotonic() + PATIENCE_S
        while len(found := self.places()) < self.produced:
            assert time.monotonic() < deadline, f"{len(found)} of {self.produced}"
            time.sleep(0.2)
        assert set(found.values()) == {1}
        assert len(found) == self.produced


@pytest.fixture(params=PROTOCOLS)
def instances(request, real_broker, tmp_path):
    return Instances(real_broker, tmp_path, request.param)


def test_partitions_move_between_instances_that_come_go_and_die(instances):
    first, second = instances.job("first"), instances.job("second")
    running = {"first": first.start(), "second": None}
    instances.produce()
    instances.wait_for_all()

    running["second"] = second.start()  # joins
    running["second"].wait_until_said(f"taking over {instances.topic}/")
    instances.produce()
    instances.wait_for_all()
    instances.produce()
    running["second"].kill()  # dies, perhaps in the middle
    instances.wait_for_all()
    running["second"] = second.start()  # comes back to its checkpoint
    instances.produce()
    assert running["first"].stop() == 130  # leaves in good order
    instances.produce()
    instances.wait_for_all()

    assert running["second"].stop() == 130, second.errors()


def test_an_instance_that_sleeps_longer_than_its_session_takes_nothing_back(instances):
    first, second = instances.job("first"), instances.job("second")
    sleeper, other = first.start(), second.start()
    sleeper.wait_until_said(f"taking over {instances.topic}/")
    other.wait_until_said(f"taking over {instances.topic}/")
    instances.produce()
    instances.wait_for_all()

    instances.produce()
    sleeper.send(signal.SIGSTOP)
    instances.produce()
    time.sleep(SESSION_S + 2.0)  # its partitions go to the other one
    sleeper.send(signal.SIGCONT)
    instances.produce()
    instances.wait_for_all()

    assert sleeper.stop() in {130, 1}
    assert other.stop() == 130, second.errors()
    assert set(instances.places().values()) == {1}


def test_an_instance_that_was_replaced_while_it_slept_is_shut_out(real_broker, tmp_path):
    topic, predictions, dead = real_broker.topic(), real_broker.topic(), real_broker.topic()
    name, checkpoint = f"job-{topic}", "every_s = 0.3\nkeep = 3"
    produce(real_broker, topic, make_events(WAVE))

    def job(folder):
        made = Job(tmp_path / folder, real_broker.bootstrap, topic, name, source="", checkpoint=checkpoint)
        return made.to_topics(predictions, dead)

    old, new = job("old"), job("new")
    sleeper = old.start()
    sleeper.wait_for(WAVE)
    sleeper.send(signal.SIGSTOP)
    shutil.copytree(old.folder, new.folder)  # as storage that another machine sees
    successor = new.start()
    produce(real_broker, topic, make_events(WAVE, first=WAVE))
    successor.wait_for(2 * WAVE)
    sleeper.send(signal.SIGCONT)

    assert sleeper.wait() == 1
    assert "must be done by one instance" in old.errors()
    assert successor.stop() == 130
    places = places_of([row for out in (predictions, dead) for row in read_all(real_broker.bootstrap, out)])
    assert len(places) == 2 * WAVE
    assert set(places.values()) == {1}
