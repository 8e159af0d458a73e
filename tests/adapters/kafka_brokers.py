"""Brokers to test against: one that is named, else Apache Kafka started here, else librdkafka's mock cluster."""

from __future__ import annotations

import importlib.util
import os
import shutil
import uuid
from pathlib import Path
from types import ModuleType

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic, ResourceType

BOOTSTRAP = "STREAMLEARN_TEST_BOOTSTRAP"
"""``host:port``, or ``mock``."""
ONE, THREE = "STREAMLEARN_TEST_ONE_NODE", "STREAMLEARN_TEST_THREE_NODES"
"""Folders of clusters that were started by .ci/kafka/broker.py; the nodes of the latter may be killed."""
SCRIPT = Path(__file__).parents[2] / ".ci" / "kafka" / "broker.py"
NEEDS_REAL = f"needs a real broker: Java 17 and Maven, or {BOOTSTRAP}=host:port"
REQUEST_S = 30.0


def script() -> ModuleType:
    """Return .ci/kafka/broker.py as a module."""
    spec = importlib.util.spec_from_file_location("streamlearn_test_broker", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def can_start() -> bool:
    return SCRIPT.is_file() and all(shutil.which(tool) for tool in ("java", "mvn"))


class TestBroker:
    """Where the brokers are, and what tests do to them."""

    __test__ = False

    def __init__(self, bootstrap: str, *, real: bool, cluster=None, ours: bool = False, keep=None):
        self.bootstrap, self.real, self.cluster, self._keep = bootstrap, real, cluster, keep
        self._ours = ours
        self.admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})

    def close(self) -> None:
        """Stop what was started here."""
        if self._ours:
            self.cluster.stop()

    def topic(self, partitions: int = 1, replicas: int = -1, **config: str) -> str:
        """Make a topic and return its name; the mock gives four partitions to a topic that is named."""
        name = f"t-{uuid.uuid4().hex[:10]}"
        if self.real:
            self.make(name, partitions, replicas, **config)
        else:
            self.admin.list_topics(name, timeout=REQUEST_S)
        return name

    def make(self, name: str, partitions: int = 1, replicas: int = -1, **config: str) -> None:
        """Make a topic of this name; dots in the names of its options are written as two underscores."""
        options = {key.replace("__", "."): value for key, value in config.items()}
        made = self.admin.create_topics([NewTopic(name, partitions, replicas, config=options)])
        made[name].result(REQUEST_S)

    def delete(self, name: str) -> None:
        self.admin.delete_topics([name])[name].result(REQUEST_S)

    def widen(self, name: str, partitions: int) -> None:
        self.admin.create_partitions([NewPartitions(name, partitions)])[name].result(REQUEST_S)

    def configure(self, name: str, **config: str) -> None:
        options = {key.replace("__", "."): value for key, value in config.items()}
        resource = ConfigResource(ResourceType.TOPIC, name, set_config=options)
        self.admin.alter_configs([resource])[resource].result(REQUEST_S)

    def producer(self, **options) -> Producer:
        return Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 5, "log_level": 2, **options})


def start_real(folder: Path, nodes: int) -> TestBroker:
    module = script()
    cluster = module.Cluster.create(folder, nodes)
    cluster.start()
    return TestBroker(cluster.bootstrap, real=True, cluster=cluster, ours=True)


def started(variable: str) -> TestBroker | None:
    """Return the cluster below the folder that a variable names."""
    folder = os.environ.get(variable)
    if not folder:
        return None
    cluster = script().Cluster(Path(folder))
    return TestBroker(cluster.bootstrap, real=True, cluster=cluster)


def named() -> TestBroker | None:
    """Return the broker that the environment names."""
    bootstrap = os.environ.get(BOOTSTRAP)
    if bootstrap == "mock":
        return mock()
    return TestBroker(bootstrap, real=True) if bootstrap else started(ONE)


def mock() -> TestBroker:
    keeper = Producer({"bootstrap.servers": "mock", "test.mock.num.brokers": 3, "log_level": 0})
    found = keeper.list_topics(timeout=REQUEST_S).brokers.values()
    address = ",".join(f"{broker.host}:{broker.port}" for broker in found)
    return TestBroker(address, real=False, keep=keeper)
