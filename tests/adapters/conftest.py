"""Brokers for the tests of the Kafka adapter, started when the first test asks."""

import pytest

from tests.adapters import kafka_brokers, kafka_jobs


@pytest.fixture(autouse=True)
def _no_process_is_left():
    """End what a failed test left running."""
    yield
    for process in kafka_jobs.RUNNING:
        if process.poll() is None:
            process.kill()
            process.wait()
    kafka_jobs.RUNNING.clear()


@pytest.fixture(scope="session")
def broker(tmp_path_factory):
    """A broker: the one that is named, else a real one, else the mock."""
    found = kafka_brokers.named()
    if found is None and kafka_brokers.can_start():
        found = kafka_brokers.start_real(tmp_path_factory.mktemp("kafka") / "one", 1)
    found = found or kafka_brokers.mock()
    yield found
    found.close()


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
    own = kafka_brokers.start_real(tmp_path_factory.mktemp("kafka") / "own", 1)
    yield own
    own.close()


@pytest.fixture(scope="session")
def three_brokers(tmp_path_factory):
    """Three nodes that may be killed."""
    found = kafka_brokers.started(kafka_brokers.THREE)
    if found is None:
        if not kafka_brokers.can_start():
            pytest.skip("needs Java 17 and Maven, to start three brokers that may be killed")
        found = kafka_brokers.start_real(tmp_path_factory.mktemp("kafka") / "three", 3)
    yield found
    found.close()
