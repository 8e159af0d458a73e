"""Jobs on topics: their events, their processes, and what they leave."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from confluent_kafka import Consumer, KafkaError, TopicPartition

from streamlearn.runtime.crash import VARIABLE

COMMAND = [sys.executable, "-m", "streamlearn.runtime.cli"]
PATIENCE_S = 300.0
SEED = 7
RUNNING: list[subprocess.Popen] = []
"""What was started, for the clean-up behind a test that failed."""

JOB = """
name = "{name}"
[source]
kind = "kafka"
topics = ["{topic}"]
group = "{topic}-group"
batch_events = {batch_events}
{source}
[source.kafka]
"bootstrap.servers" = "{bootstrap}"
"topic.metadata.refresh.interval.ms" = 1000
{client}
[features]
label = "label"
[labels]
{labels}
[[learner]]
name = "AUCRO"
[[learner]]
name = "AdaptiveAUCRO"
[evaluate]
metrics = ["auc", "logloss"]
window = 300
picture = false
[checkpoint]
{checkpoint}
[sink]
{sink}
[bad_events]
{bad_events}
"""


@dataclass
class Job:
    """A job's folder and what fills its file."""

    folder: Path
    bootstrap: str
    topic: str
    name: str = "job"
    batch_events: int = 50
    source: str = 'until = "end"'
    client: str = ""
    checkpoint: str = "every = 200\nkeep = 3"
    sink: str = 'predictions = "out/predictions.ndjson"'
    bad_events: str = ""
    labels: str = 'key = "id"'
    environ: dict[str, str] = field(default_factory=dict)

    def write(self) -> Path:
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / "job.toml"
        names = ("name", "bootstrap", "topic", "batch_events", "source", "client", "checkpoint", "sink", "bad_events")
        names += ("labels",)
        path.write_text(JOB.format(**{key: getattr(self, key) for key in names}))
        return path

    def to_topics(self, predictions: str, dead: str) -> Job:
        self.sink, self.bad_events = f'predictions = "{predictions}"\nformat = "kafka"', f'topic = "{dead}"'
        return self

    def run_file(self, name: str) -> None:
        """Run another job file of the folder."""
        done = subprocess.run(
            [*COMMAND, "run", name], cwd=self.folder, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
        assert done.returncode == 0, done.stderr

    def start(self, crash_at: str = "", *options: str) -> Running:
        environ = {**os.environ, **self.environ, VARIABLE: crash_at}
        command = [*COMMAND, "run", str(self.write()), "--json", *options]
        errors = (self.folder / "stderr.txt").open("ab")
        # Not in the folder of the sources, which would be imported in place of the installed package.
        process = subprocess.Popen(command, env=environ, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=errors)
        errors.close()
        RUNNING.append(process)
        return Running(self, process)

    def run(self, *options: str) -> None:
        assert self.start("", *options).wait() == 0, self.errors()

    def errors(self) -> str:
        return (self.folder / "stderr.txt").read_text()

    def model(self) -> bytes:
        return (self.folder / "out" / f"{self.name}.AUCRO.safetensors").read_bytes()

    def report(self) -> dict:
        report = json.loads((self.folder / "out" / f"{self.name}.report.json").read_text())
        del report["timing"]
        return report

    def saved_events(self) -> int:
        """Return the events of the newest checkpoint, -1 where there is none."""
        folder = self.folder / "out" / f"{self.name}.checkpoints"
        return max((int(path.name[5:17]) for path in folder.glob("ckpt-*.safetensors")), default=-1)


@dataclass
class Running:
    """A process of a job, ended by its id."""

    job: Job
    process: subprocess.Popen

    def wait(self, timeout_s: float = PATIENCE_S) -> int:
        try:
            return self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"the job hangs: {self.job.errors()[-3000:]}") from None

    def send(self, number: int) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        self.send(signal.SIGTERM)
        return self.wait()

    def wait_until_said(self, text: str) -> None:
        """Wait until the job has logged a text."""
        deadline = time.monotonic() + PATIENCE_S
        while text not in self.job.errors():
            assert self.process.poll() is None, self.job.errors()[-3000:]
            assert time.monotonic() < deadline, self.job.errors()[-3000:]
            time.sleep(0.05)

    def wait_for(self, events: int) -> bool:
        """Wait until the job has saved so many events; False where it ended before."""
        deadline = time.monotonic() + PATIENCE_S
        while self.job.saved_events() < events:
            if self.process.poll() is not None:
                return False
            assert time.monotonic() < deadline, self.job.errors()[-3000:]
            time.sleep(0.005)
        return True


def make_events(n: int, *, bad: bool = True, first: int = 0) -> list[bytes | None]:
    """Return JSON events of three numbers, some of them bad in every way that a topic knows."""
    rng = np.random.default_rng([SEED, first])
    values = rng.normal(size=(n, 3)).round(7)
    labels = (values @ [1.0, -1.0, 0.5] + rng.normal(size=n) > 0).astype(int)
    made: list[bytes | None] = []
    for k, (row, label) in enumerate(zip(values.tolist(), labels.tolist(), strict=True), start=first):
        event = {"id": f"e{k}", "a": row[0], "b": row[1], "c": row[2], "label": label}
        text = json.dumps(event).encode()
        kinds = {31: b"{not json", 57: None, 83: text.replace(b'"label"', b'"d": "text", "label"'), 99: b"[\n]"}
        made.append(kinds.get(k % 101, text) if bad else text)
    return made


def produce(broker, topic: str, events: list[bytes | None], partitions: int = 1, **options) -> None:
    """Write the events, the k-th one into partition k modulo `partitions`."""
    producer = broker.producer(**options)
    for k, event in enumerate(events):
        producer.produce(topic, event, partition=k % partitions)
        producer.poll(0)
    assert producer.flush(PATIENCE_S) == 0


def read_all(bootstrap: str, topic: str, partitions: int = 1, committed: bool = True) -> list:
    """Return the messages of a topic as a consumer with read_committed sees them."""
    level = "read_committed" if committed else "read_uncommitted"
    settings = {"bootstrap.servers": bootstrap, "group.id": "reader", "enable.auto.commit": False}
    consumer = Consumer({**settings, "isolation.level": level, "enable.partition.eof": True, "log_level": 2})
    consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
    found, ends, deadline = [], set(), time.monotonic() + PATIENCE_S
    while len(ends) < partitions:
        assert time.monotonic() < deadline
        for message in consumer.consume(1000, 0.2):
            error = message.error()
            if error is None:
                found.append(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                ends.add(message.partition())
    consumer.close()
    return found


def places_of(messages: list) -> Counter:
    """Count the events (partition, record) of which there are predictions, and of the dead letters."""
    places: Counter = Counter()
    for message in messages:
        headers = dict(message.headers() or ())
        if "offset" in headers:
            name = f"{headers['topic'].decode()}/{headers['partition'].decode()}"
            places[name, int(headers["offset"])] += 1
        else:
            row = json.loads(message.value())
            places[row["partition"], row["record"]] += 1
    return places
