"""What the fetching thread pauses and resumes, with a client that only remembers it, as the real one does."""

from __future__ import annotations

import pytest
from confluent_kafka import Message
from streamlearn.adapters.kafka import fetcher
from streamlearn.adapters.kafka.chunks import stretches
from streamlearn.adapters.kafka.fetcher import Fetcher, Shelf
from streamlearn.adapters.kafka.order import Arrival
from streamlearn.adapters.kafka.partitions import Partition


class Client:
    """A consumer without messages: what it has paused stays so when the partition is given up and comes back."""

    def __init__(self) -> None:
        self.paused: set[int] = set()

    def pause(self, places) -> None:
        self.paused |= {place.partition for place in places}

    def resume(self, places) -> None:
        self.paused -= {place.partition for place in places}

    def poll(self, timeout_s: float) -> None:
        return None


@pytest.fixture
def fetching(monkeypatch):
    """Return a client, a full shelf of two partitions, and what lets the thread go round once."""
    monkeypatch.setattr(fetcher, "PATIENCE_S", 0.0)
    client, shelf = Client(), Shelf(Arrival(), most_bytes=100)
    for number in range(2):
        shelf.add(Partition("t", number, "", 0))
    thread = Fetcher(client, shelf, lambda *_: None, lambda: None, 1e9, lambda: None, one_topic=True)
    fill(shelf, 0)
    thread._fetch()
    assert client.paused == {0, 1}
    return client, shelf, thread._fetch


def fill(shelf: Shelf, number: int) -> None:
    shelf.put(stretches([Message(topic="t", partition=number, offset=0, value=b"x" * 200)], one_topic=True))


@pytest.mark.parametrize("at_once", [True, False])
def test_a_partition_that_was_given_up_while_it_was_paused_is_read_when_it_comes_back(fetching, at_once):
    client, shelf, go_round = fetching
    shelf.drop(["t/0"])
    if not at_once:
        go_round()
    shelf.add(Partition("t", 0, "", 0))
    go_round()
    go_round()

    assert client.paused == set()


def test_a_partition_that_comes_back_is_paused_again_while_there_is_no_room(fetching):
    client, shelf, go_round = fetching
    shelf.drop(["t/1"])
    client.paused.clear()  # another client might forget
    shelf.add(Partition("t", 1, "", 0))
    go_round()

    assert client.paused >= {1}
