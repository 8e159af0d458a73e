"""Options are passed through, secrets come from the environment, and no message shows a value."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from streamlearn.adapters.kafka.options import check_options, connection, flat, resolved

from streamlearn.errors import BadJob
from streamlearn.runtime.job import check_job

JOB = """
[source]
kind = "kafka"
topics = ["clicks"]
group = "g"
[source.kafka]
bootstrap.servers = "127.0.0.1:1"
sasl.password = "${BROKER_PASSWORD}"
[features]
label = "y"
[[learner]]
name = "AUCRO"
"""


def test_dots_without_quotes_mean_the_same_as_dots_in_quotes():
    tables = tomllib.loads('sasl.username = "a"\n"sasl.password" = "${P}"\nclient.id = "c"')

    assert flat(tables) == {"sasl.username": "a", "sasl.password": "${P}", "client.id": "c"}


def test_a_secret_is_looked_up_only_when_a_client_is_made(monkeypatch):
    monkeypatch.setenv("BROKER_PASSWORD", "s3cret")
    options = check_options("source.kafka", {"sasl.password": "${BROKER_PASSWORD}", "client.id": "a"})

    assert "s3cret" not in repr(options)
    assert resolved(options) == {"sasl.password": "s3cret", "client.id": "a"}


def test_a_variable_may_be_a_part_of_a_value(monkeypatch):
    monkeypatch.setenv("PLACE", "/keys")
    assert resolved(check_options("source.kafka", {"ssl.ca.location": "${PLACE}/ca.pem"})) == {
        "ssl.ca.location": "/keys/ca.pem"
    }


@pytest.mark.parametrize(
    ("path", "table", "message"),
    [
        ("source.kafka", {"sasl.password": "s3cret"}, "source.kafka.sasl.password: must be '${NAME}'"),
        ("source.kafka", {"ssl": {"key": {"password": "s3cret"}}}, "source.kafka.ssl.key.password: must be '${NAME}'"),
        (
            "source.registry",
            {"basic.auth.user.info": "s3cret"},
            "source.registry.basic.auth.user.info: must be '${NAME}'",
        ),
        ("source.kafka", {"group.id": "g"}, "source.kafka.group.id: must be absent, as it is set by source.group"),
        ("source.kafka", {"auto.offset.reset": "latest"}, "source.kafka.auto.offset.reset: must be absent"),
        ("source.kafka", {"enable.auto.commit": True}, "source.kafka.enable.auto.commit: must be absent"),
        ("sink.kafka", {"enable.idempotence": False}, "sink.kafka.enable.idempotence: must be absent"),
        ("source.kafka", {"client.id": ["s3cret"]}, "source.kafka.client.id: must be a text, number or boolean"),
        ("source.kafka", {"client.id": "${NOT_SET_ANYWHERE}"}, "source.kafka.client.id: must name a set variable"),
    ],
)
def test_a_wrong_option_is_refused_by_its_path_and_without_its_value(path, table, message):
    with pytest.raises(BadJob) as caught:
        check_options(path, table)

    assert str(caught.value).startswith(message)
    assert "s3cret" not in str(caught.value)


def test_only_what_connects_is_handed_to_the_other_clients():
    options = {"bootstrap.servers": "b", "fetch.min.bytes": 1, "ssl.ca.location": "c", "group.protocol": "consumer"}

    assert connection(options) == {"bootstrap.servers": "b", "ssl.ca.location": "c"}


def test_a_job_keeps_the_names_of_its_secrets_only(monkeypatch):
    monkeypatch.setenv("BROKER_PASSWORD", "s3cret")
    job = check_job(tomllib.loads(JOB), folder=Path("/jobs"), name="job")

    assert "s3cret" not in repr(job)
    assert "${BROKER_PASSWORD}" in repr(job)


REFUSED = {
    JOB.replace('group = "g"', ""): "source.group: must be given",
    JOB.replace('"clicks"', ""): "source.topics: must be given",
    JOB.replace('"clicks"', '"a", "a"'): "source.topics: must name each topic once",
    JOB.replace("group =", 'payload = "csv"\ngroup ='): "source.names: must name the columns",
    JOB.replace("group =", 'payload = "avro"\ngroup ='): "source.registry: must be given for payload 'avro'",
    JOB.replace("group =", 'names = ["y"]\ngroup ='): "source.names: must be absent for payload 'json'",
    JOB.replace("group =", 'start = "yesterday"\ngroup ='): "source.start: must be earliest, latest or a date",
    JOB.replace("group =", 'assignment = "group"\ngroup ='): "source.assignment: must be 'all' unless sink.format",
    JOB.replace("group =", 'path = "p"\ngroup ='): "source.path: must be absent for kind 'kafka'",
    JOB.replace("group =", "follow = true\ngroup ="): "source.follow: must be false for kind 'kafka'",
    JOB + "[sink]\npredictions = 'p.csv'\nkafka.acks = 1": "sink.kafka: must be absent unless",
    JOB + "[checkpoint]\nkeep = 1\n[bad_events]\ntopic = 'dead'": "checkpoint.keep: must be int >= 2",
}


@pytest.mark.parametrize(("text", "message"), REFUSED.items(), ids=REFUSED.values())
def test_a_wrong_key_of_a_job_on_topics_is_refused_by_its_path(text, message):
    with pytest.raises(BadJob) as caught:
        check_job(tomllib.loads(text), folder=Path("/jobs"), name="job")

    assert str(caught.value).startswith(message)
