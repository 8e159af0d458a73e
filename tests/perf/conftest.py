"""How the tests of benchmarks run them."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

from tests.adapters.conftest import broker, real_broker  # noqa: F401 - fixtures

PERF = Path(__file__).parents[2] / "perf"


@pytest.fixture
def run(monkeypatch, capsys):
    """Run a benchmark in this process, where kernels are compiled already, and return what it printed."""

    def start(script, *arguments):
        monkeypatch.syspath_prepend(PERF)
        monkeypatch.setattr(sys, "argv", [script, *arguments, "--quick"])
        runpy.run_path(str(PERF / script), run_name="__main__")
        return capsys.readouterr().out

    return start
