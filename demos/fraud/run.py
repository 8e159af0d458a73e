"""A live stream of rare events with late labels: a broker, a replayer, a job, and its page; one command.

    python demos/fraud/run.py [--rate 3000] [--events N] [--bootstrap HOST:PORT] [--port 8731]

Replays a year of flights out of New York City, in the order of their scheduled departures, to the topic ``flights``;
3.5 % of them arrive more than two hours late. Which ones comes hours later on the topic ``arrivals``, one in 200 never,
one in 500 twice. The job ``job.toml`` forecasts each flight at once and learns it when its label comes.

The broker is the one that is named, else Apache Kafka started here (Java 17 and Maven), else the mock cluster inside
the client's library. Ctrl-C or SIGTERM stops it, and nothing is left running; with a broker of your own the next run
goes on where this one stopped.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import importlib.util
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

HERE = Path(__file__).parent
FLIGHTS = HERE.parent / "data" / "flights_nyc13.csv.gz"
BROKER_SCRIPT = HERE.parents[1] / ".ci" / "kafka" / "broker.py"
JOB = HERE / "job.toml"
PORT = 8731
MOCK = "mock"
TOPICS = ("flights", "arrivals")
LATE_MIN, SHORTEST_MIN = 120, 30
ONE_IN_LOST, ONE_IN_TWICE = 200, 500
Message = tuple[float, str, bytes, bytes]  # time, topic, key, value
View = dict[str, Any]  # of the page, as JSON


def messages(n_events: int | None) -> list[Message]:
    """Return flights and arrivals in the order of their times."""
    chance = random.Random(7)  # noqa: S311  which labels get lost is no secret
    found: list[Message] = []
    with gzip.open(FLIGHTS, "rt") as file:
        for number, row in enumerate(csv.DictReader(file)):
            if number == n_events:
                break
            found += _messages_of(number, row, chance)
    return sorted(found, key=lambda message: message[0])


def _messages_of(number: int, row: dict[str, str], chance: random.Random) -> Iterator[Message]:
    departure, arrival = (_minutes(row[f"sched_{which}_time"]) for which in ("dep", "arr"))
    begins = datetime(2013, int(row["month"]), int(row["day"]), tzinfo=UTC).timestamp() + 60.0 * departure
    lasts = max((arrival - departure) % 1440, SHORTEST_MIN)
    event = {
        "id": number,
        "time": begins,
        "month": int(row["month"]),
        "weekday": datetime.fromtimestamp(begins, UTC).weekday(),
        "departure": departure,
        "arrival": arrival,
        "distance": float(row["distance"]),
        **{name: row[name] for name in ("carrier", "origin", "dest")},
    }
    key = str(number).encode()
    yield begins, "flights", key, json.dumps(event).encode()
    if chance.randrange(ONE_IN_LOST) == 0:
        return
    lands = begins + 60.0 * max(lasts + float(row["arr_delay"]), 1.0)
    label = {"id": number, "time": lands, "alarm": int(float(row["arr_delay"]) > LATE_MIN)}
    for _ in range(2 if chance.randrange(ONE_IN_TWICE) == 0 else 1):
        yield lands, "arrivals", key, json.dumps(label).encode()


def _minutes(clock: str) -> int:
    """Return minutes since midnight of a time like 1545."""
    hours, minutes = divmod(int(clock), 100)
    return 60 * hours + minutes


@contextmanager
def broker(bootstrap: str | None) -> Iterator[str]:
    """Give the address of a broker with both topics."""
    with ExitStack() as stack:
        own = None if bootstrap == MOCK else bootstrap or _own_broker(stack)
        address = own or _mock(stack)
        admin = AdminClient({"bootstrap.servers": address})
        if own is None:
            for name in TOPICS:  # the mock makes a topic when somebody asks for it, and not otherwise
                admin.list_topics(name, timeout=30)
        elif missing := [name for name in TOPICS if name not in admin.list_topics(timeout=30).topics]:
            for made in admin.create_topics([NewTopic(name, 1) for name in missing]).values():
                made.result(30)
        yield address


def _own_broker(stack: ExitStack) -> str | None:
    if not BROKER_SCRIPT.is_file() or not all(shutil.which(tool) for tool in ("java", "mvn")):
        return None
    spec = importlib.util.spec_from_file_location("kafka_broker", BROKER_SCRIPT)
    assert spec is not None  # noqa: S101  the file is there
    assert spec.loader is not None  # noqa: S101
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    print("starting Apache Kafka ...", flush=True)
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fraud-kafka-")))
    cluster = module.Cluster.create(folder / "cluster", 1)
    stack.callback(cluster.stop)
    cluster.start()
    return str(cluster.bootstrap)


def _mock(stack: ExitStack) -> str:
    print("the client's mock cluster stands in for a broker", flush=True)
    keeper = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": ""})
    stack.callback(keeper.flush)
    nodes = keeper.list_topics(timeout=10).brokers.values()
    return ",".join(f"{node.host}:{node.port}" for node in nodes)


class Running:
    """The job's process, and what its page tells."""

    def __init__(self, process: subprocess.Popen[bytes], page: str) -> None:
        self.process, self.page = process, page

    def seen(self) -> View:
        """Return what the page is told; nothing while the job starts."""
        try:
            with urllib.request.urlopen(f"{self.page}data.json", timeout=5) as answer:  # noqa: S310  our own page
                view: View | None = json.load(answer)["view"]
        except OSError:
            return {}
        return view or {}

    def wait_until(self, done: Callable[[View], bool]) -> View:
        """Wait until what is seen is as it should be, however long that takes; nothing where the job ended before."""
        while self.process.poll() is None:
            view = self.seen()
            if view and done(view):
                return view
            time.sleep(0.2)
        return {}


def replay(address: str, rate: float, found: list[Message], job: subprocess.Popen[bytes]) -> bool:
    """Send the messages at `rate` a second; return whether all were sent before the job ended."""
    producer = Producer({"bootstrap.servers": address, "linger.ms": 5})
    began = time.monotonic()
    for sent, (_, topic, key, value) in enumerate(found):
        while True:
            try:
                # One partition, also where the mock made four: the flights stay in the order of their times.
                producer.produce(topic, value, key, partition=0)
                break
            except BufferError:
                producer.poll(0.1)
        if sent % 100 == 0:
            producer.poll(0)
            ahead = sent / rate - (time.monotonic() - began)
            if ahead > 0:
                time.sleep(ahead)
            if job.poll() is not None:
                return False
    producer.flush()
    return True


def all_taken(found: list[Message], before: View) -> Callable[[View], bool]:
    """Return what tells that every flight was forecast, and that every label was used whose time has come.

    Labels from behind the time of the last flight stay where they are: their time has not come.
    """
    last = max(when for when, topic, *_ in found if topic == "flights")
    n_due = sum(topic == "arrivals" and when <= last for when, topic, *_ in found)
    n_due += _settled(before)

    def done(view: View) -> bool:
        flights = {name: n for name, n in view["lag"].items() if not name.startswith("labels:")}
        return not any(flights.values()) and _settled(view) >= n_due

    return done


def _settled(view: View) -> int:
    """Return how many labels were used, or found to be of no use."""
    return sum(view["labels"][fate] for fate in ("matched", "early", "late", "duplicate"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Start everything, replay, and show how it went."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=float, default=3000.0, help="messages a second (3000)")
    parser.add_argument("--events", type=int, help="flights to replay (all 327,346)")
    parser.add_argument("--bootstrap", help=f"address of a broker that is there already, or {MOCK!r}")
    parser.add_argument("--port", type=int, default=PORT, help=f"of the page ({PORT})")
    parser.add_argument("--fresh", action="store_true", help="forget an earlier run")
    parser.add_argument("--stay", action="store_true", help="leave job and page running at the end")
    options = parser.parse_args(arguments)
    # As an exception it closes what is open on its way: the job, and a broker that was started here.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    found = messages(options.events)
    with broker(options.bootstrap) as address:
        # -P: the installed package, not the sources that the demo may be started beside, which lack the adapters
        command = [sys.executable, "-P", "-m", "streamlearn.runtime.cli", "run", str(JOB)]
        command += ["--set", f"monitor.port={options.port}"]
        # The topics of a broker that is started here are new: so is the job.
        command += ["--fresh"] if options.fresh or options.bootstrap in {None, MOCK} else []
        with subprocess.Popen(command, env={**os.environ, "FRAUD_BROKERS": address}) as job:  # noqa: S603  ourselves
            try:
                return _watch(address, options, found, Running(job, f"http://127.0.0.1:{options.port}/"))
            except KeyboardInterrupt:
                return job.wait()  # the terminal has told it, too
            finally:
                if job.poll() is None:
                    job.send_signal(signal.SIGTERM)


def _watch(address: str, options: argparse.Namespace, found: list[Message], job: Running) -> int:
    before = job.wait_until(bool)  # it may compile its kernels first
    if not before:
        return job.process.wait()
    print(f"{len(found):,} messages at {options.rate:,.0f} a second; look at {job.page}", flush=True)
    sent = replay(address, options.rate, found, job.process)
    view = job.wait_until(all_taken(found, before)) if sent else {}
    if not view:
        return job.process.wait()
    for learner in view["learners"]:
        print(f"{learner['title']}: {json.dumps(learner['metrics'])}")
    print(f"labels: {json.dumps(view['labels'])}; waiting: {view['waiting']}")
    if options.stay:
        return job.process.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
