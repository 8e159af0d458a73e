"""Brokers for the tests of the Kafka adapter, started when the first test asks."""

import os
from pathlib import Path

import pytest

from tests.adapters import kafka_brokers


@pytest.fixture(scope="session")
def broker(tmp_path_factory):
    """A broker: the one that is named, else a real one, else the mock."""
    found = kafka_brokers.named()
    if found is None and kafka_brokers.can_start():
        found = kafka_brokers.start_real(tmp_path_factory.mktemp("kafka") / "one", 1)
    found = found or kafka_brokers.mock()
    yield found
    if found.cluster is not None:
        found.cluster.stop()


@pytest.fixture(scope="session")
def real_broker(broker):
    """A broker that knows transactions, retention and topic ids."""
    if not broker.real:
        pytest.skip(kafka_brokers.NEEDS_REAL)
    return broker


@pytest.fixture(scope="session")
def own_broker(broker, tmp_path_factory):
    """A broker that was started with listeners for SASL and TLS."""
    if broker.cluster is not None:
        yield broker
        return
    if not kafka_brokers.can_start():
        pytest.skip("needs Java 17 and Maven, to start a broker with SASL and TLS")
    started = kafka_brokers.start_real(tmp_path_factory.mktemp("kafka") / "own", 1)
    yield started
    started.cluster.stop()


@pytest.fixture(scope="session")
def three_brokers(tmp_path_factory):
    """Three nodes that may be killed."""
    folder = os.environ.get(kafka_brokers.CLUSTER)
    if folder:
        cluster = kafka_brokers.script().Cluster(Path(folder))
        yield kafka_brokers.TestBroker(cluster.bootstrap, real=True, cluster=cluster)
        return
    if not kafka_brokers.can_start():
        pytest.skip("needs Java 17 and Maven, to start three brokers that may be killed")
    started = kafka_brokers.start_real(tmp_path_factory.mktemp("kafka") / "three", 3)
    yield started
    started.cluster.stop()
