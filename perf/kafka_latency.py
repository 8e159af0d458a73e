"""Time from produce() to the prediction that a reader of the job's output file sees, at a steady rate.

One process sends events at a rate and notes when; the job runs with its defaults; a third one, this, reads the file of
predictions as it grows. The clock is the machine's, one for all of them.

    python perf/kafka_latency.py send BOOTSTRAP TOPIC RATE EVENTS NOTES     the sender, started by kafka_speed.py
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from confluent_kafka import Producer
from kafka_topics import events, make_topic

JOB = """
name = "latency"
out = "out"
[source]
kind = "kafka"
topics = ["{topic}"]
group = "{topic}-group"
[source.kafka]
"bootstrap.servers" = "{bootstrap}"
[features]
label = "label"
[[learner]]
name = "{learner}"
[evaluate]
metrics = ["auc"]
curve = false
picture = false
[checkpoint]
every_s = 1.0
[sink]
predictions = "out/predictions.ndjson"
"""
LOOK_S = 0.0005
"""Between two looks at the file: a part of what is measured."""
START_S = 60.0
SETTLE_SHARE = 0.1
"""Of the events, at the beginning, that are not counted: connections, and compiled code that is loaded."""


def send(bootstrap, topic, rate, n, notes):
    """Send `n` events at a rate, in steps of a millisecond; note the time before each produce() in seconds."""
    sent = np.lib.format.open_memmap(notes, mode="w+", dtype=np.float64, shape=(n,))
    lines = list(events(n))
    producer = Producer({"bootstrap.servers": bootstrap})
    began = time.perf_counter()
    for k, line in enumerate(lines):
        due = began + k / rate
        while time.perf_counter() < due:
            producer.poll(0.001)
        sent[k] = time.time()
        producer.produce(topic, line, partition=0)
    producer.flush(START_S)
    sent.flush()


def latencies(work, bootstrap, learner, rate, n):
    """Return seconds from produce() to the visible prediction of each event, the first ones left out."""
    topic = f"latency-{time.time_ns()}"
    make_topic(bootstrap, topic, 1)
    folder = work / topic
    folder.mkdir()
    (folder / "job.toml").write_text(JOB.format(topic=topic, bootstrap=bootstrap, learner=learner))
    command = [sys.executable, "-m", "streamlearn.runtime.cli", "run", "job.toml", "--json"]
    log = (folder / "log.txt").open("wb")
    job = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
    notes = folder / "sent.npy"
    sender = None
    try:
        # The job is ready when it has saved its first checkpoint and connected; it takes no event before.
        wait_for(folder / "out" / "latency.checkpoints", job)
        sender = subprocess.Popen([sys.executable, __file__, "send", bootstrap, topic, str(rate), str(n), str(notes)])
        seen = watch(folder / "out" / "predictions.ndjson", n, job)
    finally:
        job.terminate()
        job.wait()
        if sender is not None:
            sender.wait()
        log.close()
    return (seen - np.load(notes))[int(n * SETTLE_SHARE) :]


def wait_for(folder, job):
    """Wait for the first checkpoint."""
    deadline = time.monotonic() + START_S
    while not (folder.is_dir() and any(folder.glob("ckpt-*.safetensors"))):
        if job.poll() is not None or time.monotonic() > deadline:
            raise SystemExit(f"the job must start, got {(folder.parents[1] / 'log.txt').read_text()[-2000:]}")
        time.sleep(0.05)


def watch(path: Path, n: int, job) -> np.ndarray:
    """Return when the line of each event was there; one partition, so the k-th line is the k-th event."""
    seen, count = np.zeros(n), 0
    deadline = time.monotonic() + START_S
    while not path.exists():
        if job.poll() is not None or time.monotonic() > deadline:
            raise SystemExit("the job must write predictions, got none")
        time.sleep(LOOK_S)
    with path.open("rb") as file:
        quiet_s = time.monotonic() + START_S
        while count < n:
            data = file.read()
            if data:
                lines = data.count(b"\n")
                seen[count : count + lines] = time.time()
                count += lines
                quiet_s = time.monotonic() + START_S
            elif time.monotonic() > quiet_s or job.poll() is not None:
                raise SystemExit(f"the job must forecast all {n} events, got {count}")
            else:
                time.sleep(LOOK_S)
    return seen


if __name__ == "__main__":
    _, _, bootstrap, topic, rate, n, notes = sys.argv
    send(bootstrap, topic, float(rate), int(n), notes)
