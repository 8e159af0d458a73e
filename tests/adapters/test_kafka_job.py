"""Whole jobs on topics, from the command line."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from streamlearn.adapters.kafka.client import Contact
from streamlearn.adapters.kafka.outbox import Outbox

from streamlearn.errors import SinkError
from tests.adapters.kafka_brokers import script
from tests.adapters.kafka_jobs import PATIENCE_S, Job, make_events, produce, read_all

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


def test_an_outbox_that_was_shut_out_says_so_also_while_it_takes_messages(real_broker):
    topic = real_broker.topic()

    def opened():
        made = Outbox(f"outbox-{topic}", {"bootstrap.servers": real_broker.bootstrap}, 1.0, Contact(30.0))
        made.write_to(topic)
        made.begin()
        return made

    first, deadline = opened(), time.monotonic() + PATIENCE_S
    first.send(topic, [b"x"])
    first.flush()
    second = opened()

    def send_on():
        while time.monotonic() < deadline:
            first.send(topic, [b"x"] * 5000)

    with pytest.raises(SinkError, match="must be done by one instance of the job"):
        send_on()
    first.close()
    second.close()
