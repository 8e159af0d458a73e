"""The source on a broker: every event once, wherever it is taken up, and never past what is not there."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from confluent_kafka import Consumer, TopicPartition
from streamlearn.adapters.kafka.client import Contact, watermarks
from streamlearn.adapters.kafka.fetcher import MOST_MESSAGES
from streamlearn.adapters.kafka.payloads import make_payload
from streamlearn.adapters.kafka.reading import Reading
from streamlearn.adapters.kafka.source import KafkaSource

from streamlearn.contracts import Position
from streamlearn.errors import SourceError
from streamlearn.runtime.brokers import Rewind
from streamlearn.runtime.decode import Columns
from tests.adapters.kafka_jobs import make_events, produce

pytestmark = pytest.mark.kafka
COLUMNS = Columns(label="label", key="id")
PATIENCE_S = 60.0


@pytest.fixture
def open_source(broker):
    """Return what opens sources, all of which are closed at the end."""
    opened = []

    def opener(*topics, where=broker, positions=(), runs=None, **changes):
        options = {"bootstrap.servers": where.bootstrap, "topic.metadata.refresh.interval.ms": 300}
        reading = Reading(topics, f"{topics[0]}-group", {**options, **changes.pop("options", {})}, until_end=True)
        source = KafkaSource(
            replace(reading, **changes), make_payload("json", COLUMNS, None, None, None), Contact(30.0)
        )
        opened.append(source)
        if runs is not None:
            source.replay(runs)
        source.seek(positions)
        return source

    yield opener
    for source in opened:
        source.close()


def drain(source, n_events: int | None = None, max_events: int = 1000):
    """Return (partition, offset) of the events in their order, and the last positions."""
    places, positions, deadline = [], {}, time.monotonic() + PATIENCE_S
    while n_events is None or len(places) < n_events:
        assert time.monotonic() < deadline
        batch = source.poll(max_events, 0.2)
        if batch is None:
            break
        bad = [(event.record, event.partition) for event in batch.rejected]
        good = [(record, batch.partition) for record in batch.records.tolist()]
        places += [(name, record) for record, name in sorted(good + bad)]
        positions |= {position.partition: position for position in batch.positions}
    return places, tuple(positions.values())


def test_every_message_comes_once_and_a_restart_goes_on_behind_the_last(broker, open_source):
    topic = broker.topic()
    produce(broker, topic, make_events(1000))

    first, positions = drain(open_source(topic), 400, max_events=100)
    second, at_end = drain(open_source(topic, positions=positions))

    assert first + second == [(f"{topic}/0", offset) for offset in range(1000)]
    assert {position.partition: position.offset for position in at_end}[f"{topic}/0"] == 1000


@pytest.mark.parametrize("order", ["arrival", "round-robin"])
def test_several_partitions_come_whole_and_each_in_its_order(broker, open_source, order):
    topic = broker.topic(4)
    produce(broker, topic, make_events(3000), 4)

    places, _ = drain(open_source(topic, round_robin=order == "round-robin"))

    assert len(places) == 3000
    for number in range(4):
        assert [record for name, record in places if name == f"{topic}/{number}"] == list(range(750))


def test_the_round_robin_order_is_the_same_however_it_is_interrupted(real_broker, open_source):
    topic = real_broker.topic(3)
    produce(real_broker, topic, make_events(7000), 3)

    whole, _ = drain(open_source(topic, round_robin=True))
    pieces, positions = [], ()
    for n_events, size in ((700, 70), (1300, 999), (1, 1), (None, 333)):
        found, moved = drain(open_source(topic, round_robin=True, positions=positions), n_events, size)
        pieces += found
        known = {position.partition: position for position in positions}
        positions = tuple((known | {position.partition: position for position in moved}).values())

    assert pieces == whole
    assert whole[:1000] == [(f"{topic}/0", offset) for offset in range(1000)]


def test_a_recorded_order_is_followed(real_broker, open_source):
    topic = real_broker.topic(2)
    produce(real_broker, topic, make_events(400), 2)
    runs = [(f"{topic}/1", 30), (f"{topic}/0", 7), (f"{topic}/1", 31), (f"{topic}/0", 200)]

    places, _ = drain(open_source(topic, runs=runs))

    expected = [(f"{topic}/1", k) for k in range(30)] + [(f"{topic}/0", k) for k in range(7)] + [(f"{topic}/1", 30)]
    assert places[:231] == expected + [(f"{topic}/0", k) for k in range(7, 200)]
    assert len(places) == 400


def test_aborted_messages_are_no_events(real_broker, open_source):
    topic = real_broker.topic()
    producer = real_broker.producer(**{"transactional.id": topic})
    producer.init_transactions(PATIENCE_S)
    for k, event in enumerate(make_events(300, bad=False)):
        if k % 50 == 0:
            producer.begin_transaction()
        producer.produce(topic, event, partition=0)
        if k % 50 == 49:
            producer.flush(PATIENCE_S)  # else the client drops what it aborts before it is sent
            (producer.abort_transaction if k % 100 == 99 else producer.commit_transaction)(PATIENCE_S)

    places, positions = drain(open_source(topic))

    _, high = watermarks(open_source(topic).consumer, topic, 0)
    assert len(places) == 150
    assert high == 306
    assert positions[0].offset == high
    assert positions[0].record == 150


def test_a_compacted_topic_has_gaps_and_no_event_twice(real_broker, open_source):
    topic = real_broker.topic(
        cleanup__policy="compact",
        segment__ms="100",
        min__cleanable__dirty__ratio="0.01",
        max__compaction__lag__ms="100",
    )
    producer = real_broker.producer()
    for round_ in range(3):
        for k in range(100):
            producer.produce(topic, make_events(1, bad=False, first=100 * round_ + k)[0], key=str(k), partition=0)
        producer.flush(PATIENCE_S)
    deadline = time.monotonic() + PATIENCE_S
    places = []
    while not 100 <= len(places) < 300:
        assert time.monotonic() < deadline
        producer.produce(topic, make_events(1, bad=False)[0], key="last", partition=0)  # rolls the segment
        producer.flush(PATIENCE_S)
        places, _ = drain(open_source(topic))

    records = [record for _, record in places]
    assert records == sorted(set(records))
    assert set(range(200, 300)) <= set(records)


def test_events_that_are_gone_stop_the_job_with_a_message(real_broker, open_source):
    topic = real_broker.topic()
    produce(real_broker, topic, make_events(100))
    real_broker.admin.delete_records([TopicPartition(topic, 0, 60)])[TopicPartition(topic, 0)].result(PATIENCE_S)
    behind = Position(f"{topic}/0", 20, 20)

    with pytest.raises(SourceError, match="must still have the next event, at offset 20, got offsets 60 to 100"):
        open_source(topic, positions=[behind])


def test_a_declared_jump_goes_on_behind_what_is_gone_and_is_counted(real_broker, open_source):
    topic = real_broker.topic()
    produce(real_broker, topic, make_events(100))
    real_broker.admin.delete_records([TopicPartition(topic, 0, 60)])[TopicPartition(topic, 0)].result(PATIENCE_S)

    source = open_source(topic, positions=[Position(f"{topic}/0", 20, 20)], out_of_range="earliest")
    places, positions = drain(source)
    again = open_source(topic, positions=positions)

    assert [record for _, record in places] == list(range(60, 100))
    assert source.jumps() == {f"{topic}/0": (1, 40)}
    assert again.jumps() == source.jumps()


def test_a_position_behind_the_end_stops_the_job(real_broker, open_source):
    topic = real_broker.topic()
    produce(real_broker, topic, make_events(100))

    with pytest.raises(SourceError, match="at offset 150, got offsets 0 to 100"):
        open_source(topic, positions=[Position(f"{topic}/0", 150, 150)])


def test_events_that_go_while_the_job_runs_are_jumped_over_by_the_declared_policy(real_broker, open_source):
    topic = real_broker.topic()
    small = {"batch.num.messages": 20}  # a batch comes whole
    produce(real_broker, topic, make_events(4000, bad=False), **small)
    slow = {"queued.max.messages.kbytes": 1, "fetch.message.max.bytes": 2000}
    options = {**slow, "fetch.queue.backoff.ms": 10}
    source = open_source(topic, options=options, buffer_bytes=2000, out_of_range="earliest")

    first, _ = drain(source, 10, max_events=10)
    real_broker.admin.delete_records([TopicPartition(topic, 0, 3500)])[TopicPartition(topic, 0)].result(PATIENCE_S)
    rest, _ = drain(source)

    records = [record for _, record in first + rest]
    assert records == sorted(set(records))
    assert records[-500:] == list(range(3500, 4000))
    assert source.jumps()[f"{topic}/0"][0] == 1
    assert len(records) + source.jumps()[f"{topic}/0"][1] == 4000


def test_a_topic_that_was_made_anew_is_not_the_one_of_the_checkpoint(real_broker, open_source):
    topic = real_broker.topic()
    produce(real_broker, topic, make_events(50))
    _, positions = drain(open_source(topic))
    real_broker.delete(topic)
    remake(real_broker, topic)
    produce(real_broker, topic, make_events(80))

    with pytest.raises(SourceError, match="must be the topic that the checkpoint has read"):
        open_source(topic, positions=positions)


def remake(broker, topic):
    """Make a topic of a name that was just deleted."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            broker.make(topic)
        except Exception:
            assert time.monotonic() < deadline
            time.sleep(0.2)
        else:
            return


def test_a_topic_that_is_made_anew_under_the_job_stops_it(real_broker, open_source):
    topic = real_broker.topic()
    produce(real_broker, topic, make_events(50))
    source = open_source(topic, until_end=False)
    drain(source, 50)
    real_broker.delete(topic)
    remake(real_broker, topic)
    produce(real_broker, topic, make_events(80))

    with pytest.raises(SourceError, match=r"deleted and made anew|which it does not have"):
        drain(source, 81)


def test_partitions_that_are_added_are_read_from_their_beginning(real_broker, open_source):
    topic = real_broker.topic(1)
    produce(real_broker, topic, make_events(50))
    source = open_source(topic, until_end=False)
    first, _ = drain(source, 50)
    real_broker.widen(topic, 3)
    produce(real_broker, topic, make_events(90), 3)

    rest, _ = drain(source, 90)

    assert sorted({name for name, _ in rest}) == [f"{topic}/{number}" for number in range(3)]
    assert len(set(first + rest)) == 140


def test_a_topic_that_is_not_there_is_named(real_broker, open_source):
    with pytest.raises(SourceError, match=r"source\.topics: must be topics of the cluster, got 'no-such-topic'"):
        open_source("no-such-topic")


@pytest.mark.parametrize("start", ["latest", "time"])
def test_a_new_job_may_begin_later(real_broker, open_source, start):
    topic = real_broker.topic()
    produce(real_broker, topic, make_events(30, bad=False))
    time.sleep(0.05)  # timestamps are milliseconds
    now = time.time()
    moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1000):03d}+00:00"
    time.sleep(0.05)
    if start == "time":
        produce(real_broker, topic, make_events(20, bad=False))
    source = open_source(topic, start=moment if start == "time" else "latest", until_end=False)
    if start == "latest":
        produce(real_broker, topic, make_events(20, bad=False))

    places, _ = drain(source, 20)

    assert [record for _, record in places] == list(range(30, 50))


def test_a_slow_job_holds_bounded_memory_and_loses_nothing(broker, open_source):
    topic = broker.topic()
    events = make_events(30_000, bad=False)
    produce(broker, topic, events)
    size = sum(map(len, events))
    source = open_source(topic, buffer_bytes=size // 20)

    loads, deadline = [], time.monotonic() + PATIENCE_S
    while not source._fetcher._paused:  # the job is busy with something else for seconds
        assert time.monotonic() < deadline
        time.sleep(0.05)
        loads.append(source._shelf.load())
    places, _ = drain(source)

    assert max(loads) < 1.0 + 1000 / len(events) * 20 + 1000 / MOST_MESSAGES
    assert [record for _, record in places] == list(range(30_000))
    assert not source._fetcher._paused or source._shelf.load() > 0.5


def test_lag_is_told_and_comes_to_nothing(broker, open_source):
    topic = broker.topic()
    produce(broker, topic, make_events(500))
    source = open_source(topic)
    deadline = time.monotonic() + PATIENCE_S

    drain(source, 100, max_events=100)
    behind = source.lag()[f"{topic}/0"]
    drain(source)

    assert behind == 400
    assert set(source.lag().values()) == {0}
    assert time.monotonic() < deadline


def test_a_member_that_did_not_poll_for_too_long_goes_back_to_its_checkpoint(real_broker, open_source, monkeypatch):
    topic = real_broker.topic()
    produce(real_broker, topic, make_events(100))
    options = {"max.poll.interval.ms": 3000, "session.timeout.ms": 3000}
    source = open_source(topic, in_group=True, until_end=False, options=options)
    drain(source, 100)
    monkeypatch.setattr(source._fetcher, "_make_room", lambda: (monkeypatch.undo(), time.sleep(6.0)))

    with pytest.raises(Rewind, match="went to another member"):
        drain(source, 1)


SECURE = {
    "scram": {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-512"},
    "plain": {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"},
    "tls": {"security.protocol": "SSL"},
}


@pytest.mark.parametrize("kind", SECURE)
def test_secure_listeners_are_read_with_secrets_of_the_environment(own_broker, open_source, monkeypatch, kind):
    topic = own_broker.topic()
    produce(own_broker, topic, make_events(20))
    about = own_broker.cluster.about
    monkeypatch.setenv("BROKER_PASSWORD", about["password"])
    options = {**SECURE[kind], "bootstrap.servers": f"127.0.0.1:{about['tls' if kind == 'tls' else 'sasl']}"}
    if kind == "tls":
        options["ssl.ca.location"] = str(own_broker.cluster.folder / "ca.pem")
    else:
        options |= {"sasl.username": about["user"], "sasl.password": "${BROKER_PASSWORD}"}

    source = open_source(topic, options=options)
    places, _ = drain(source)

    assert len(places) == 20
    assert about["password"] not in repr(source._reading)


def test_the_group_hears_how_far_a_checkpoint_has_come(broker, open_source):
    topic = broker.topic()
    produce(broker, topic, make_events(20))
    source = open_source(topic)
    _, positions = drain(source)

    source.commit(positions)
    source.close()

    group = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": f"{topic}-group"})
    (found,) = group.committed([TopicPartition(topic, 0)], PATIENCE_S)
    group.close()
    assert found.offset == 20
