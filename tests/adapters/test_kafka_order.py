"""The orders of several partitions, without a broker: nothing is lost, and the declared one is a function of counts."""

from __future__ import annotations

import pytest
from confluent_kafka import Message
from hypothesis import given, settings
from hypothesis import strategies as st
from streamlearn.adapters.kafka.chunks import stretches
from streamlearn.adapters.kafka.fetcher import Shelf
from streamlearn.adapters.kafka.order import ROUND, Arrival, Recorded, RoundRobin
from streamlearn.adapters.kafka.partitions import Partition


def shelf_of(order, n_partitions, offsets=(), records=()):
    shelf = Shelf(order, 1 << 20)
    for number in range(n_partitions):
        offset = offsets[number] if offsets else 0
        shelf.add(Partition("t", number, "", offset, records[number] if records else 0))
    return shelf


def take(shelf, limit):
    """Take once; return (partition, offset) of the messages and keep the counts as the source does."""
    taken = shelf.take(limit)
    if taken is None:
        return []
    partition, chunk = taken
    partition.record += len(chunk)
    partition.offset = int(chunk.offsets[-1]) + 1
    return [(partition.number, at) for at in chunk.offsets.tolist()]


def message(number, at, topic="t"):
    return Message(topic=topic, partition=number, offset=at, value=b"%d" % at)


def stretch(number, begin, end):
    return list(stretches([message(number, at) for at in range(begin, end)], one_topic=True))


ARRIVALS = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 2 * ROUND)), min_size=1, max_size=12)
LIMITS = st.lists(st.integers(1, 3 * ROUND), min_size=1, max_size=6)


def feed(order, arrivals, limits, ends):
    """Put and take in turns until nothing is left."""
    shelf, came, got = shelf_of(order, 3), [0, 0, 0], []
    for number, end in enumerate(ends):
        shelf.partitions[f"t/{number}"].stop = end
    for turn, (number, n) in enumerate(arrivals):
        shelf.put(stretch(number, came[number], came[number] + n))
        came[number] += n
        got += take(shelf, limits[turn % len(limits)])
    for number in range(3):
        shelf.partitions[f"t/{number}"].reached_end(came[number])
    while found := take(shelf, limits[0]):
        got += found
    return got


def totals(arrivals):
    return [sum(n for number, n in arrivals if number == one) for one in range(3)]


@settings(max_examples=30)
@given(ARRIVALS, LIMITS, LIMITS)
def test_round_robin_depends_neither_on_arrival_nor_on_the_cut_into_batches(arrivals, limits, others):
    ends = totals(arrivals)
    by_partition = sorted(arrivals)

    assert feed(RoundRobin(), arrivals, limits, ends) == feed(RoundRobin(), by_partition, others, ends)


@settings(max_examples=30)
@given(ARRIVALS, LIMITS)
def test_the_order_of_arrival_loses_nothing_and_keeps_each_partition_in_order(arrivals, limits):
    got = feed(Arrival(), arrivals, limits, totals(arrivals))

    for number, total in enumerate(totals(arrivals)):
        assert [at for one, at in got if one == number] == list(range(total))


def test_round_robin_waits_for_a_silent_partition_and_says_which():
    shelf = shelf_of(RoundRobin(), 2)
    shelf.put(stretch(0, 0, 2 * ROUND))

    assert len(take(shelf, 5 * ROUND)) == ROUND
    assert take(shelf, 5 * ROUND) == []
    assert shelf.wanted().number == 1


def test_a_partition_that_comes_later_joins_the_present_round():
    shelf = shelf_of(RoundRobin(), 2, records=(5 * ROUND, 5 * ROUND))
    late = Partition("t", 2, "", 0)
    RoundRobin.join(late, shelf.partitions.values())
    shelf.add(late)
    for number in range(3):
        shelf.put(stretch(number, 0, 2 * ROUND))

    assert [take(shelf, 9 * ROUND)[0][0] for _ in range(4)] == [0, 1, 2, 0]


def test_a_recorded_order_is_kept_over_gaps_and_followed_by_the_usual_one():
    shelf = shelf_of(Recorded([("t/1", 5), ("t/0", 3), ("t/1", 6)], Arrival()), 2)
    came = [message(1, at) for at in (0, 3, 8)]  # offsets 4 to 7 are no events
    shelf.put(stretches(came, one_topic=True))
    shelf.put(stretch(0, 0, 4))

    assert [take(shelf, 100) for _ in range(4)] == [
        [(1, 0), (1, 3)],
        [(0, 0), (0, 1), (0, 2)],
        [(1, 8)],
        [(0, 3)],
    ]


def test_a_message_that_comes_twice_is_handed_out_once():
    shelf = shelf_of(Arrival(), 1, offsets=(10,))
    shelf.put(stretch(0, 8, 12))
    shelf.put(stretch(0, 10, 14))

    assert take(shelf, 100) == [(0, at) for at in range(10, 14)]


def test_an_end_behind_marks_of_transactions_moves_an_empty_partition():
    partition = Partition("t", 0, "", 10)

    assert partition.reached_end(12)
    assert partition.position().offset == 12
    assert not partition.reached_end(12)


def test_a_partition_that_is_still_written_to_ends_where_it_ended_at_the_start():
    shelf = shelf_of(RoundRobin(), 1, offsets=(5,))
    partition = shelf.partitions["t/0"]
    partition.stop = 10
    shelf.put(stretch(0, 5, 8))
    assert not partition.done
    shelf.put(stretch(0, 8, 15))
    shelf.put(stretch(0, 15, 20))
    partition.reached_end(20)

    assert take(shelf, 100) == [(0, at) for at in range(5, 10)]
    assert partition.done
    assert (partition.position().offset, partition.fetched) == (10, 10)
    assert take(shelf, 100) == []


@pytest.mark.parametrize("topics", [("t",), ("t", "u")])
def test_messages_of_several_partitions_are_taken_apart_run_by_run(topics):
    places = [(topic, number, at) for topic in topics for number in (0, 1) for at in (4, 7)] * 2
    came = [message(number, at, topic) for topic, number, at in places]

    runs = list(stretches(came, one_topic=len(topics) == 1))

    assert [(topic, number) for topic, number, _ in runs] == [(topic, n) for topic in topics for n in (0, 1)] * 2
    assert [chunk.offsets.tolist() for _, _, chunk in runs] == [[4, 7]] * len(runs)
    assert [chunk.values for _, _, chunk in runs] == [[b"4", b"7"]] * len(runs)


@given(st.lists(st.one_of(st.none(), st.binary(max_size=5)), min_size=1, max_size=12), LIMITS)
def test_a_partition_knows_what_waits_however_it_is_taken(values, limits):
    partition = Partition("t", 0, "", 0)
    came = [Message(topic="t", partition=0, offset=3 * k, value=value) for k, value in enumerate(values)]
    for half in (came[: len(came) // 2], came[len(came) // 2 :]):
        for _, _, chunk in stretches(half, one_topic=True) if half else ():
            partition.put(chunk)
    taken, turn = [], 0
    while partition.n_messages:
        assert partition.n_bytes == sum(len(value or b"") for value in values[len(taken) :])
        assert partition.ahead == 3 * len(taken)
        taken += partition.take(1 + limits[turn % len(limits)] % 4).values
        turn += 1

    assert taken == values
    assert partition.take(5) is None
    assert partition.n_bytes == 0
