"""The script that lets a job run for hours, for a minute."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.adapters.kafka_jobs import PATIENCE_S

pytestmark = [pytest.mark.kafka, pytest.mark.crash]
SCRIPT = Path(__file__).parents[2] / "perf" / "kafka_soak.py"


def test_a_short_soak_loses_nothing_and_learns_what_an_undisturbed_run_learns(real_broker):
    command = [sys.executable, str(SCRIPT), "--quick", "--bootstrap", real_broker.bootstrap]

    done = subprocess.run(command, capture_output=True, text=True, timeout=2 * PATIENCE_S, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 never, 0 more than once" in done.stdout
    assert "bit-identical" in done.stdout
    assert " 0 kills" not in done.stdout
