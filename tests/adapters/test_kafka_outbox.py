"""What a job writes to topics: all of it in its order, or an error that is heard."""

from __future__ import annotations

import pytest
from streamlearn.adapters.kafka.client import Contact
from streamlearn.adapters.kafka.outbox import Outbox

from streamlearn.errors import SinkError
from tests.adapters.kafka_jobs import read_all

pytestmark = pytest.mark.kafka


@pytest.fixture
def open_outbox(real_broker):
    """Return what opens an outbox for one topic, all of which are closed at the end."""
    opened = []

    def opener(topic: str, **options) -> Outbox:
        outbox = Outbox(topic, {"bootstrap.servers": real_broker.bootstrap, **options}, 1.0, Contact(30.0))
        opened.append(outbox)
        outbox.write_to(topic)
        assert outbox.begin() is None
        return outbox

    yield opener
    for outbox in opened:
        outbox.close()


@pytest.mark.parametrize("with_headers", [False, True])
def test_more_messages_than_the_client_queues_are_written_once_and_in_order(real_broker, open_outbox, with_headers):
    topic = real_broker.topic()
    outbox = open_outbox(topic, **{"queue.buffering.max.messages": 7})
    values = [b"%d" % k for k in range(200)]

    outbox.send(topic, values, [[("n", value)] for value in values] if with_headers else None)
    outbox.commit(200, ())

    found = read_all(real_broker.bootstrap, topic)
    assert [message.value() for message in found] == values
    if with_headers:
        assert [message.headers() for message in found] == [[("n", value)] for value in values]


def test_a_message_that_the_broker_refuses_ends_the_job(real_broker, open_outbox):
    topic = real_broker.topic(max__message__bytes="300")
    outbox = open_outbox(topic)

    outbox.send(topic, [b"small", b"x" * 5000])

    with pytest.raises(SinkError, match=r"^sink\.kafka"):
        outbox.commit(2, ())
    assert read_all(real_broker.bootstrap, topic) == []
