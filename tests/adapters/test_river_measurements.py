"""The measurements of the River estimators run as they stand on what is bundled."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from streamlearn.learners.registry import MODULES

SCRIPT = Path(__file__).parent.parent.parent / "perf" / "adapters.py"
PATIENCE_S = 300.0


@pytest.mark.slow
def test_the_quick_measurement_covers_every_learner_and_both_libraries(tmp_path):
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--quick", "--out", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "adapters.json").read_text())
    assert {row["learner"] for row in found["overhead"]} == set(MODULES)
    areas = {row["learner"]: row["auc"] for row in found["first"]}
    assert min(areas.values()) > 0.6
    assert {"AdaptiveAUCRO", "River LogisticRegression", "River HoeffdingTree"} <= set(areas)
    for title, auc in areas.items():
        assert f"{title:28s} {auc:.4f}" in done.stdout
