"""Giving partitions up and taking them over, without a broker: positions are never ahead of outputs nor behind."""

from __future__ import annotations

import json

import pytest
from confluent_kafka import Message
from streamlearn.adapters.kafka.chunks import stretches
from streamlearn.adapters.kafka.client import Contact
from streamlearn.adapters.kafka.partitions import Partition
from streamlearn.adapters.kafka.payloads import make_payload
from streamlearn.adapters.kafka.reading import Reading
from streamlearn.adapters.kafka.source import KafkaSource

from streamlearn.contracts import Position
from streamlearn.runtime.decode import Columns

NOWHERE = {"bootstrap.servers": "127.0.0.1:1", "log_level": 0}


def message(offset):
    value = json.dumps({"a": offset, "y": offset % 2}).encode()
    return Message(topic="t", partition=0, offset=offset, value=value)


@pytest.fixture
def source():
    columns = Columns(label="y", exclude=frozenset(), categorical=frozenset(), key=None, names=None)
    reading = Reading(("t",), "g", NOWHERE, in_group=True, commits=False)
    made = KafkaSource(reading, make_payload("json", columns, None, None, None), Contact(60.0))
    made._shelf.add(Partition("t", 0, "", 600))
    yield made
    made.close()


def came(source, begin, end):
    source._shelf.put(stretches([message(offset) for offset in range(begin, end)], one_topic=True))


def leave(source):
    """Do what the group's word to give the partition up does before it waits for a checkpoint."""
    held = list(source._shelf.partitions.values())
    for partition in held:
        partition.clear()
    source._members._leaving = held


def test_what_was_dropped_to_give_a_partition_up_is_left_to_the_next_owner(source):
    came(source, 600, 800)
    original = source._payload.pieces

    def interrupted(name, values):
        leave(source)  # the word comes while messages are decoded
        return original(name, values)

    source._payload.pieces = interrupted
    batch = source.poll(50, 0.0)

    assert len(batch) == 50
    assert [position.offset for position in batch.positions] == [650]


def test_a_checkpoint_does_not_free_a_partition_of_which_something_is_being_handed_out(source):
    came(source, 600, 650)
    original = source._payload.pieces
    urgent = []

    def interrupted(name, values):
        leave(source)
        urgent.append(source.urgent)
        source.commit([Position("t/0", offset=600)])  # of a checkpoint made at this moment
        return original(name, values)

    source._payload.pieces = interrupted
    batch = source.poll(50, 0.0)

    assert urgent == [False]
    assert source._members.waiting
    assert source.poll(50, 0.0).positions == ()
    assert source.urgent
    source.commit(batch.positions)
    assert not source._members.waiting


@pytest.mark.parametrize(("told", "waits"), [([], True), ([600], True), ([650], False)])
def test_a_first_batch_that_no_checkpoint_has_keeps_its_partition(source, told, waits):
    came(source, 600, 650)
    source.poll(50, 0.0)
    leave(source)
    assert source.poll(50, 0.0).positions == ()

    source.commit([Position("t/0", offset=offset) for offset in told])

    assert source._members.waiting == waits


def test_a_position_from_before_a_partition_came_back_is_not_committed(source):
    before, now = Position("t/0", offset=500), Position("t/0", offset=600)

    assert source.share([before])[0] == []
    assert [place.offset for place in source.share([now])[0]] == [600]
