"""One way through a topic, in a process of its own: prints one JSON object with its own clock's seconds.

    python perf/kafka_routes.py ROUTE BOOTSTRAP TOPIC PARTITIONS EVENTS

raw      confluent-kafka's consume(), and nothing is done with the messages
values   the same, and the bytes of every message are taken out
orjson   the same, each parsed by orjson, and nothing learned: the least that a pipeline by hand can take
decode   our source: the same, decoded into arrays
river    what one writes by hand: confluent-kafka, orjson, River's scaler, logistic regression and AUC, and a checkpoint
         of model, metric and offsets every second
"""

from __future__ import annotations

import json
import os
import pickle
import resource
import shutil
import sys
import tempfile
import time
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

# A process loads what its own route needs.
if sys.argv[1:2] in (["river"], ["orjson"]):
    import orjson
if sys.argv[1:2] == ["river"]:
    from river import linear_model, metrics, preprocessing
if sys.argv[1:2] == ["decode"]:
    from streamlearn.adapters.kafka.client import Contact
    from streamlearn.adapters.kafka.payloads import make_payload
    from streamlearn.adapters.kafka.reading import Reading
    from streamlearn.adapters.kafka.source import KafkaSource

    from streamlearn.runtime.decode import Columns

TAKE = 1000
"""Messages a call: fewer are slower, and so are more."""
CHECKPOINT_S = 1.0


def subscribed(bootstrap, topic, partitions):
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": f"{topic}-perf", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, k, 0) for k in range(partitions)])
    return consumer


def messages(consumer, events):
    """Give lists of messages until so many have come."""
    seen = 0
    while seen < events:
        came = consumer.consume(min(TAKE, events - seen), 0.1)
        bad = [message.error() for message in came if message.error() is not None]
        assert not bad, bad
        seen += len(came)
        yield came


def raw(bootstrap, topic, partitions, events):
    yield
    consumer = subscribed(bootstrap, topic, partitions)
    seen = 0
    while seen < events:
        seen += len(consumer.consume(min(TAKE, events - seen), 0.1))
    yield {}


def values(bootstrap, topic, partitions, events):
    yield
    consumer = subscribed(bootstrap, topic, partitions)
    size = sum(len(message.value()) for came in messages(consumer, events) for message in came)
    yield {"bytes": size}


def parsed(bootstrap, topic, partitions, events):
    yield
    consumer = subscribed(bootstrap, topic, partitions)
    came = messages(consumer, events)
    positive = sum(orjson.loads(message.value())["label"] for some in came for message in some)
    yield {"positive": positive}


def open_ours(bootstrap, topic):
    """Return our source, its compiled code loaded."""
    payload = make_payload("json", Columns(label="label"), None, None, None)
    list(payload.pieces("warm", [b'{"x0":1.5,"label":1}'] * 9))
    reading = Reading((topic,), f"{topic}-perf", {"bootstrap.servers": bootstrap}, commits=False)
    return KafkaSource(reading, payload, Contact(60.0))


def decode(bootstrap, topic, partitions, events):
    source = open_ours(bootstrap, topic)
    yield
    source.seek(())
    seen, total = 0, 0.0
    while seen < events:
        batch = source.poll(8192, 0.1)
        seen += len(batch)
        total += float(batch.values.sum())
    source.close()
    yield {"sum": total}


def river(bootstrap, topic, partitions, events):
    model = preprocessing.StandardScaler() | linear_model.LogisticRegression()
    auc = metrics.ROCAUC()
    offsets = {}
    saved = Path(tempfile.mkdtemp()) / "river.pickle"
    yield
    consumer = subscribed(bootstrap, topic, partitions)
    due_s = time.monotonic() + CHECKPOINT_S
    for came in messages(consumer, events):
        for message in came:
            x = orjson.loads(message.value())
            y = bool(x.pop("label"))
            auc.update(y, model.predict_proba_one(x))
            model.learn_one(x, y)
            offsets[message.partition()] = message.offset() + 1
        if time.monotonic() >= due_s:
            save(saved, (model, auc, offsets))
            due_s = time.monotonic() + CHECKPOINT_S
    shutil.rmtree(saved.parent)
    yield {"auc": auc.get()}


def save(path, state):
    """Write a checkpoint that survives a crash at any point: a temporary name, synced, renamed."""
    temporary = path.with_suffix(".tmp")
    with temporary.open("wb") as file:
        pickle.dump(state, file)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


ROUTES = {"raw": raw, "values": values, "orjson": parsed, "decode": decode, "river": river}


def main():
    route, bootstrap, topic, partitions, events = sys.argv[1:6]
    going = ROUTES[route](bootstrap, topic, int(partitions), int(events))
    next(going)  # all that comes before the first call of the client
    began, cpu = time.perf_counter(), time.process_time()
    found = next(going)
    seconds, cpu_s = time.perf_counter() - began, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"events": int(events), "seconds": seconds, "cpu_s": cpu_s, "peak_mib": peak, **found}))


if __name__ == "__main__":
    main()
