"""Whole jobs on topics, from the command line."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from streamlearn.adapters.kafka.client import Contact
from streamlearn.adapters.kafka.outbox import Outbox

from streamlearn.errors import SinkError
from streamlearn.runtime.brokers import Rewind
from tests.adapters.kafka_brokers import script
from tests.adapters.kafka_jobs import PATIENCE_S, Job, make_events, places_of, produce, read_all

pytestmark = pytest.mark.kafka

N_EVENTS = 500


@pytest.fixture
def topic(broker):
    name = broker.topic()
    produce(broker, name, make_events(N_EVENTS))
    return name


def test_a_topic_and_a_file_with_the_same_lines_give_the_same_model_and_report(broker, tmp_path):
    topic = broker.topic()
    events = make_events(N_EVENTS, bad=False)
    produce(broker, topic, events)
    of_topic = Job(tmp_path / "topic", broker.bootstrap, topic)
    of_file = Job(tmp_path / "file", broker.bootstrap, topic)
    of_topic.run()
    path = of_file.write()
    (of_file.folder / "events.ndjson").write_bytes(b"\n".join(events) + b"\n")
    before, _, after = path.read_text().partition("[source]")
    rest = after[after.index("[features]") :]
    (of_file.folder / "file.toml").write_text(f'{before}[source]\nkind = "ndjson"\npath = "events.ndjson"\n{rest}')

    of_file.run_file("file.toml")

    assert of_topic.model() == of_file.model()
    assert of_topic.report() == of_file.report()
    rows = [json.loads(line) for line in (of_topic.folder / "out/predictions.ndjson").read_text().splitlines()]
    assert [row["record"] for row in rows] == list(range(N_EVENTS))
    assert {row["partition"] for row in rows} == {f"{topic}/0"}


def test_dead_letters_keep_their_bytes_and_say_where_they_came_from(real_broker, topic, tmp_path):
    predictions, dead = real_broker.topic(), real_broker.topic()
    job = Job(tmp_path, real_broker.bootstrap, topic, f"job-{topic}").to_topics(predictions, dead)

    job.run()

    events = make_events(N_EVENTS)
    letters = read_all(real_broker.bootstrap, dead)
    assert len(letters) == sum(job.report()["rejected"].values()) > 0
    for letter in letters:
        headers = {name: value.decode() for name, value in letter.headers()}
        assert (headers["topic"], headers["partition"]) == (topic, "0")
        assert (letter.value() or b"") == (events[int(headers["offset"])] or b"")
        assert headers["kind"] in {"syntax", "value", "tombstone"}
        assert headers["reason"]


def test_two_processes_do_not_work_on_one_folder(real_broker, topic, tmp_path):
    first = Job(tmp_path, real_broker.bootstrap, topic, source="")
    running = first.start()
    running.wait_for(N_EVENTS)

    assert first.start().wait() == 1
    assert "must be used by one process at a time" in first.errors()
    assert running.stop() == 130


def test_a_broker_that_never_answers_ends_the_job_with_exit_code_1(tmp_path):
    (port,) = script().free_ports(1)
    job = Job(tmp_path, f"127.0.0.1:{port}", "any", source="give_up_s = 1")

    assert job.start().wait() == 1
    assert "must hear of a broker within 1 s" in job.errors()


def test_a_lost_folder_of_checkpoints_is_not_taken_for_a_new_job(real_broker, topic, tmp_path):
    job = Job(tmp_path, real_broker.bootstrap, topic, f"job-{topic}")
    job.to_topics(real_broker.topic(), real_broker.topic()).run()
    folder = job.folder / "out" / f"{job.name}.checkpoints"
    for path in folder.iterdir():
        path.unlink()

    assert job.start().wait() == 1
    assert "must hold the checkpoint whose outputs were committed" in job.errors()
    job.run("--fresh")


def test_no_secret_is_written_anywhere(own_broker, tmp_path):
    topic, about = own_broker.topic(), own_broker.cluster.about
    produce(own_broker, topic, make_events(100))
    client = (
        '"security.protocol" = "SASL_PLAINTEXT"\n"sasl.mechanism" = "SCRAM-SHA-512"\n'
        f'"sasl.username" = "{about["user"]}"\n"sasl.password" = "${{BROKER_PASSWORD}}"\ndebug = "security,conf"'
    )
    environ = {"BROKER_PASSWORD": about["password"]}
    job = Job(tmp_path, f"127.0.0.1:{about['sasl']}", topic, client=client, environ=environ)

    job.run()
    wrong = Job(tmp_path / "wrong", job.bootstrap, topic, source="give_up_s = 1", client=client)
    wrong.environ = {"BROKER_PASSWORD": f"not-{about['password']}"}
    assert wrong.start().wait() == 1

    for path in [path for path in Path(tmp_path).rglob("*") if path.is_file()]:
        assert about["password"].encode() not in path.read_bytes(), path


@pytest.fixture
def open_outbox(real_broker):
    topic, opened = real_broker.topic(), []

    def open_one(**options):
        made = Outbox(f"outbox-{topic}", {"bootstrap.servers": real_broker.bootstrap, **options}, 1.0, Contact(30.0))
        made.write_to(topic)
        opened.append(made)
        return made, made.begin()

    yield topic, open_one
    for made in opened:
        made.close()


def send_until_refused(outbox, topic):
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        outbox.send(topic, [b"x"] * 100)
        outbox.flush()


def test_an_outbox_that_was_shut_out_says_so_also_while_it_takes_messages(open_outbox):
    topic, open_one = open_outbox
    first, _ = open_one()
    first.send(topic, [b"x"])
    first.flush()
    open_one()

    with pytest.raises(SinkError, match="must be done by one instance of the job"):
        send_until_refused(first, topic)


def test_a_transaction_that_took_too_long_is_begun_again_from_the_last_checkpoint(open_outbox):
    topic, open_one = open_outbox
    first, _ = open_one(**{"transaction.timeout.ms": 2000})
    first.commit(7, [])

    with pytest.raises(Rewind, match="longer than its 2 s"):
        send_until_refused(first, topic)

    assert open_one()[1] == 7


def test_a_transaction_that_took_too_long_while_another_instance_went_on_is_not_begun_again(open_outbox):
    topic, open_one = open_outbox
    first, _ = open_one(**{"transaction.timeout.ms": 2000})
    first.send(topic, [b"x"])
    first.flush()
    opened_s = time.monotonic()
    second, _ = open_one()
    second.commit(9, [])
    while time.monotonic() < opened_s + 2.5:  # the first one is stopped meanwhile
        second.send(topic, [b"y"])
        second.flush()

    with pytest.raises(SinkError, match="must be done by one instance of the job"):
        send_until_refused(first, topic)


def test_a_job_whose_transaction_took_too_long_writes_each_event_once(real_broker, tmp_path):
    topic, predictions, dead = real_broker.topic(), real_broker.topic(), real_broker.topic()
    job = Job(tmp_path / "job", real_broker.bootstrap, topic, f"job-{topic}", source="", checkpoint="every_s = 3600")
    job.to_topics(predictions, dead).sink += '\n[sink.kafka]\n"transaction.timeout.ms" = 2000'
    produce(real_broker, topic, make_events(200))
    running = job.start()

    def has_written(n):
        assert running.process.poll() is None, job.errors()
        return len(read_all(real_broker.bootstrap, predictions, committed=False)) >= n

    wait_until(lambda: has_written(180))
    wait_until(lambda: is_settled(real_broker.bootstrap, predictions))  # the broker has ended the transaction
    assert read_all(real_broker.bootstrap, predictions) == []

    produce(real_broker, topic, make_events(200, first=200))
    wait_until(lambda: has_written(540))  # those of the first wave once more, and of the second one
    assert running.stop() == 130, job.errors()
    job.run("--set", "source.until=end")

    places = places_of([row for out in (predictions, dead) for row in read_all(real_broker.bootstrap, out)])
    assert len(places) == 400
    assert set(places.values()) == {1}


def wait_until(holds):
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def is_settled(bootstrap, topic):
    """Return whether no transaction is open: nothing is there that only other readers see."""
    ends = set()
    for level in ("read_committed", "read_uncommitted"):
        settings = {"bootstrap.servers": bootstrap, "group.id": "reader", "isolation.level": level}
        consumer = Consumer(settings)
        ends.add(consumer.get_watermark_offsets(TopicPartition(topic, 0), PATIENCE_S))
        consumer.close()
    return len(ends) == 1
