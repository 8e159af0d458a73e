"""The demo of a live stream with late labels: what it replays, and that forecasts are matched with their labels."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

DEMOS = Path(__file__).parent.parent.parent / "demos"
N_FLIGHTS = 2000
WHOLE = "STREAMLEARN_TEST_FRAUD"


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


@pytest.mark.skipif(not os.environ.get(WHOLE), reason=f"takes a minute or more on a cold machine: set {WHOLE}=1")
def test_the_demo_forecasts_at_once_and_learns_when_labels_come(tmp_path):
    for path in ("fraud", "data"):
        shutil.copytree(DEMOS / path, tmp_path / path)
    job = tmp_path / "fraud" / "job.toml"
    job.write_text(job.read_text().replace("port = 8731", "port = 8732"))
    script = tmp_path / "fraud" / "run.py"
    script.write_text(script.read_text().replace("127.0.0.1:8731", "127.0.0.1:8732"))
    command = [sys.executable, str(script), "--bootstrap", "mock", "--events", str(N_FLIGHTS), "--rate", "4000"]

    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=True)

    fates = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("labels:"))[8:].split(";")[0])
    assert fates["matched"] > 0.8 * N_FLIGHTS
    assert fates["duplicate"] > 0
    predictions = (tmp_path / "out" / "fraud.predictions.ndjson").read_text().splitlines()
    assert sorted(int(json.loads(line)["key"]) for line in predictions) == list(range(N_FLIGHTS))
