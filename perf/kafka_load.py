"""Write JSON events of 20 numbers to a topic at a fixed rate, until SIGTERM; then print how many.

python perf/kafka_load.py BOOTSTRAP TOPIC RATE [--partitions N]
"""

from __future__ import annotations

import argparse
import json
import signal
import time

import numpy as np
from confluent_kafka import Producer

WIDTH = 20
N_BODIES = 4096  # made once: making each event anew would take more of the machine than the job that is measured
ONE_IN_BAD = 997
BAD = b"{not json"
TICK_S = 0.02
SEED = 7


def bodies() -> list[bytes]:
    """Return events without the brace they begin with and without their id."""
    rng = np.random.default_rng(SEED)
    values = rng.normal(size=(N_BODIES, WIDTH)).round(6)
    labels = (values @ rng.normal(size=WIDTH) + rng.normal(size=N_BODIES) > 0).astype(int)
    rows = ({f"x{j}": x for j, x in enumerate(row)} for row in values.tolist())
    return [json.dumps({**row, "label": y}).encode()[1:] for row, y in zip(rows, labels.tolist(), strict=True)]


def queued(producer: Producer, topic: str, value: bytes, partition: int) -> bool:
    try:
        producer.produce(topic, value, partition=partition)
    except BufferError:
        return False
    return True


def load(bootstrap: str, topic: str, rate: float, partitions: int) -> int:
    """Write event k to partition k modulo `partitions`; return how many were acknowledged, which must be all."""
    stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stopped.append(number))
    settings = {"bootstrap.servers": bootstrap, "linger.ms": 10, "enable.idempotence": True}
    producer, made = Producer({**settings, "queue.buffering.max.messages": 2_000_000}), bodies()
    sent, began = 0, time.monotonic()
    while not stopped:
        due = int(rate * (time.monotonic() - began))
        for k in range(sent, due):
            value = BAD if k % ONE_IN_BAD == 0 else b'{"id": %d, %b' % (k, made[k % N_BODIES])
            while not queued(producer, topic, value, k % partitions):
                producer.poll(0.1)  # the client's queue is full: let it send
        sent = due
        producer.poll(TICK_S)
    assert producer.flush(120.0) == 0, "the broker must take every event"
    return sent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bootstrap")
    parser.add_argument("topic")
    parser.add_argument("rate", type=float)
    parser.add_argument("--partitions", type=int, default=1)
    options = parser.parse_args()
    print(load(options.bootstrap, options.topic, options.rate, options.partitions))


if __name__ == "__main__":
    main()
