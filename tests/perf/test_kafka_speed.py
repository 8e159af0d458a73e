"""The measurements of Kafka, small and short: every way through a topic is timed, and takes every event."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from tests.perf.conftest import PERF

pytestmark = pytest.mark.kafka
PATIENCE_S = 600.0
N_EVENTS = 20_000


def run_script(name: str, *arguments: str) -> str:
    command = [sys.executable, str(PERF / name), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_way_through_one_and_four_partitions_is_timed_and_latency_too(real_broker):
    text = run_script("kafka_speed.py", "--quick", "--bootstrap", real_broker.bootstrap)

    found = json.loads((PERF / "out" / "kafka_speed_quick.json").read_text())
    jobs = {"job, AUCRO", "job, AdaptiveAUCRO", "job+sink, AUCRO", "job+topic, AUCRO"}
    assert set(found["rates"]) == {"1", "4"}
    for (turn,) in found["rates"].values():
        assert set(turn) == {"raw", "values", "orjson", "decode", "river"} | jobs
        assert {turn[name]["events"] for name in ("raw", "values", "orjson", "decode", *jobs)} == {N_EVENTS}
        # Of several partitions each job learns the events in an order of its own.
        assert turn["job+topic, AUCRO"]["auc"] == pytest.approx(turn["job, AUCRO"]["auc"], abs=0.01)
        assert turn["job, AUCRO"]["auc"] > 0.7
    assert len(re.findall(r"^job\+topic, AUCRO +\S", text, re.MULTILINE)) == 2
    assert found["latency"]["AUCRO"]["p50"] > 0.0


def test_the_stages_of_a_job_add_up_to_what_the_process_takes(real_broker):
    text = run_script("kafka_stages.py", real_broker.bootstrap, "--events", str(N_EVENTS))

    spent = {name.strip(): float(us) for name, us in re.findall(r"^(\s*\S.*?) +(\d+\.\d{3})$", text, re.MULTILINE)}
    threads = ("client's threads", "fetching thread", "reading ahead", "the loop")
    assert sum(spent[name] for name in threads) == pytest.approx(spent["all"], abs=0.005)
    assert spent["AUC counted"] > 0.0
