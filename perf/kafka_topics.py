"""Topics for measurements: a broker that is named or started here, and events that are written once and kept."""

from __future__ import annotations

import contextlib
import importlib.util
import signal
import sys
from pathlib import Path

import numpy as np
import polars as pl
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

WIDTH = 20
NAMES = [f"x{k}" for k in range(WIDTH)]
SEED = 11
REQUEST_S = 60.0
BLOCK = 50_000
SCRIPT = Path(__file__).parents[1] / ".ci" / "kafka" / "broker.py"


@contextlib.contextmanager
def broker(bootstrap: str | None, folder: Path):
    """Give the address of a broker: the one that is named, else one started below `folder` and stopped behind.

    From then on SIGTERM ends this process as Ctrl-C does, so that nothing is left running.
    """
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    if bootstrap is not None:
        yield bootstrap
        return
    spec = importlib.util.spec_from_file_location("streamlearn_perf_broker", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    cluster = module.Cluster.create(folder, 1)
    try:
        cluster.start()
        yield cluster.bootstrap
    finally:
        cluster.stop()


def make_topic(bootstrap: str, name: str, partitions: int) -> int:
    """Make a topic if it is not there; return how many events it holds."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    if name not in admin.list_topics(timeout=REQUEST_S).topics:
        admin.create_topics([NewTopic(name, partitions, 1)])[name].result(REQUEST_S)
        return 0
    return count(bootstrap, name, partitions)


def count(bootstrap: str, name: str, partitions: int) -> int:
    """Return how many offsets a topic has."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "count"})
    ends = [consumer.get_watermark_offsets(TopicPartition(name, k), timeout=REQUEST_S)[1] for k in range(partitions)]
    consumer.close()
    return sum(ends)


def events(rows: int):
    """Give JSON objects of 20 numbers with six decimals and a label that depends on them, about 330 bytes each."""
    rng = np.random.default_rng(SEED)
    weights = 0.3 * rng.normal(size=WIDTH)
    for start in range(0, rows, BLOCK):
        X = rng.normal(size=(min(BLOCK, rows - start), WIDTH)).round(6)
        y = rng.random(len(X)) < 1.0 / (1.0 + np.exp(0.5 - X @ weights))
        frame = pl.DataFrame(X, schema=NAMES).with_columns(pl.Series("label", y.astype(np.int8)))
        yield from frame.write_ndjson().encode().splitlines()


def fill(bootstrap: str, rows: int, partitions: int) -> str:
    """Return a topic with `rows` events; the k-th one is in partition k modulo `partitions`."""
    name = f"speed-{rows}-{partitions}"
    present = make_topic(bootstrap, name, partitions)
    if present == rows:
        return name
    if present:
        raise SystemExit(f"{name}: must hold {rows} events, got {present}; remove the topic")
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50, "queue.buffering.max.messages": 1_000_000})
    for k, event in enumerate(events(rows)):
        producer.produce(name, event, partition=k % partitions)
        if k % 1000 == 0:
            producer.poll(0)
            while len(producer) > 500_000:
                producer.poll(0.1)
    if producer.flush(REQUEST_S):
        raise SystemExit(f"{name}: must be written within {REQUEST_S:.0f} s")
    return name
