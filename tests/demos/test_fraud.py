"""The demo of a live stream with late labels: what it replays, and that forecasts are matched with their labels."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
DEMOS = ROOT / "demos"
N_FLIGHTS = 2000
PATIENCE_S = 600.0  # so long only on a machine that hangs


def load(path: Path):
    spec = importlib.util.spec_from_file_location("fraud_run", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


run = load(DEMOS / "fraud" / "run.py")


def test_messages_come_in_the_order_of_their_times_and_labels_behind_their_events():
    found = run.messages(N_FLIGHTS)

    times = [time for time, *_ in found]
    assert times == sorted(times)
    began = {key: time for time, topic, key, _ in found if topic == "flights"}
    landed = [(key, time) for time, topic, key, _ in found if topic == "arrivals"]
    assert len(began) == N_FLIGHTS
    assert all(time > began[key] for key, time in landed)
    n_known = len({key for key, _ in landed})
    assert 0.98 * N_FLIGHTS < n_known < N_FLIGHTS  # some never report
    assert n_known < len(landed) < 1.01 * n_known  # some report twice


def test_an_event_does_not_tell_its_label():
    _, _, _, value = run.messages(1)[0]

    assert not {"arr_delay", "dep_delay", "alarm", "flight"} & set(json.loads(value))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(folder: Path, *arguments: str) -> subprocess.Popen:
    """Start the demo in a copy of its own, with broker and outputs below `folder`."""
    for path in ("demos/fraud", "demos/data", ".ci/kafka"):
        shutil.copytree(ROOT / path, folder / path)
    command = [sys.executable, str(folder / "demos" / "fraud" / "run.py"), "--port", str(free_port()), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(folder)})


def due_labels() -> Counter:
    """Count the labels whose time has come when the last flight was read, by key."""
    found = run.messages(N_FLIGHTS)
    last = max(when for when, topic, *_ in found if topic == "flights")
    return Counter(key for when, topic, key, _ in found if topic == "arrivals" and when <= last)


@pytest.mark.parametrize("arguments", [["--bootstrap", "mock"], pytest.param([], marks=pytest.mark.kafka)], ids=str)
def test_the_demo_forecasts_at_once_and_learns_when_labels_come(arguments, tmp_path):
    if not arguments and not all(shutil.which(tool) for tool in ("java", "mvn")):
        pytest.skip("needs Java 17 and Maven, to start a broker")
    demo = start(tmp_path, "--events", str(N_FLIGHTS), "--rate", "4000", *arguments)

    shown, _ = demo.communicate(timeout=PATIENCE_S)

    assert demo.returncode == 0, shown
    fates = json.loads(next(line for line in shown.splitlines() if line.startswith("labels:"))[8:].split(";")[0])
    assert fates["matched"] == len(due_labels())
    assert fates["duplicate"] == due_labels().total() - len(due_labels()) > 0
    predictions = (tmp_path / "demos" / "out" / "fraud.predictions.ndjson").read_text().splitlines()
    assert sorted(int(json.loads(line)["key"]) for line in predictions) == list(range(N_FLIGHTS))


@pytest.mark.kafka
def test_a_demo_that_is_told_to_end_leaves_no_process(tmp_path):
    if not all(shutil.which(tool) for tool in ("java", "mvn")):
        pytest.skip("needs Java 17 and Maven, to start a broker")
    demo = start(tmp_path, "--rate", "100")
    while (line := demo.stdout.readline()) and "messages at" not in line:
        pass
    (about,) = tmp_path.glob("fraud-kafka-*/cluster/cluster.json")
    (pid,) = json.loads(about.read_text())["pids"].values()
    assert b"kafka.Kafka" in Path(f"/proc/{pid}/cmdline").read_bytes()

    demo.terminate()

    assert demo.wait(PATIENCE_S) == 128 + signal.SIGTERM
    demo.stdout.close()
    assert not Path(f"/proc/{pid}").exists()
    assert not list(tmp_path.glob("fraud-kafka-*"))
