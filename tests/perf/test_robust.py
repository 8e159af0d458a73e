"""The benchmarks of the robust learners run, and their short forms already show what the long ones are for."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

PERF = Path(__file__).parents[2] / "perf"
DATA = PERF.parents[1] / "shared" / "data"
needs_data = pytest.mark.skipif(not DATA.exists(), reason="the data sets are not shipped with the package")


def numbers(text, name):
    """Return the numbers of the last line that begins with a name."""
    line = [line for line in text.splitlines() if line.startswith(name + " ")][-1]
    return [float(v) for v in re.findall(r"(?<![\w.])\d+\.\d+", line[len(name) :])]


def test_regression_figures(run, tmp_path):
    text = run("robust_figures.py", "regression", "--out", str(tmp_path))
    good, bad = numbers(text, "ORL, window"), numbers(text, "average of least squares")
    assert good[-1] < 0.3 * bad[-1]
    assert {path.name for path in tmp_path.glob("*.png")} >= {"robust_regression_uniform.png"}


def test_pca_figures(run, tmp_path):
    text = run("robust_figures.py", "pca", "--out", str(tmp_path))
    assert "coherent, concentrated" in text
    uniform = text[: text.index("coherent")]
    assert numbers(uniform, "ORL, lts, window")[-1] < 0.5 * numbers(uniform, "centralised plain")[-1]
    assert len(list(tmp_path.glob("robust_pca_*.png"))) == 3


def test_breakdown_figure_stays_below_the_bound(run, tmp_path):
    text = run("robust_figures.py", "breakdown", "--out", str(tmp_path))
    shares = [float(v) for v in text.splitlines()[1].split()]
    moved, bound = numbers(text, "window of all"), numbers(text, "bound of Lemma 1")
    assert shares[9] == 0.45
    assert all(m <= b for m, b in zip(moved, bound, strict=False))
    assert len(bound) == 10
    assert moved[-1] > 1000.0  # beyond one half nothing holds
    assert (tmp_path / "robust_breakdown.png").stat().st_size > 10_000


def test_drift_figure(run, tmp_path):
    text = run("robust_figures.py", "drift", "--out", str(tmp_path))
    assert numbers(text, "window of 50")[-1] < 0.5
    assert numbers(text, "recursion")[-1] > 1.0


def test_faults(run, tmp_path):
    text = run("robust_faults.py", "--out", str(tmp_path))
    assert numbers(text, "latency: geometric median")[0] < numbers(text, "latency: average")[0]
    name = "communication, times 1000: "
    assert numbers(text, name + "geometric median")[0] < 0.1 < numbers(text, name + "average")[0]


def test_kernel(run):
    text = run("robust_kernel.py")
    assert numbers(text, "subspace error")[0] < 0.3
    assert numbers(text, "memory")[0] <= 2.0 or sys.platform != "linux"


def test_constants(run):
    text = run("robust_constants.py")
    for word in ("half", "double"):
        mean, worst = numbers(text, f"failed           {word}")
        assert 0.0 < mean <= worst < 10.0


@needs_data
def test_real_streams(run):
    pytest.importorskip("vowpalwabbit", reason="one of the peers is not installed")
    text = run("robust_real.py", "--tuned")
    assert len(numbers(text, "  ORLRegressor")) == 4
    assert "tuned in hindsight" in text
    assert "clean MAE of ours over the best peer's" in text
    assert len(numbers(run("robust_real.py", "--inject"), "  one-sided")) >= 3


@needs_data
def test_subspaces(run):
    text = run("robust_subspaces.py")
    assert re.findall(r"octane  lts d=\d: .* exactly the six: (\w+)", text) == ["True"] * 4
