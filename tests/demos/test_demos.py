"""The demos: they run as they stand, and show what they say."""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import re
import shutil
from pathlib import Path

import pytest

from streamlearn import load
from streamlearn.runtime.cli import main
from streamlearn.runtime.job import read_job

DEMOS = Path(__file__).parent.parent.parent / "demos"
JOBS = sorted(DEMOS.glob("*.toml"))
N_DAYS = 18_159

REFERENCE_AUC = 0.853
"""Of the adaptive mixture on the weather; that of River's logistic regression is 0.822."""
TOLERANCE = 0.002


@pytest.fixture(scope="module")
def weather(tmp_path_factory) -> Path:
    """Run the weather demo on a copy and return its outputs."""
    folder = tmp_path_factory.mktemp("demos")
    (folder / "data").mkdir()
    shutil.copy(DEMOS / "weather.toml", folder)
    shutil.copy(DEMOS / "data" / "noaa_weather.csv.gz", folder / "data")
    assert main(["run", str(folder / "weather.toml")]) == 0
    return folder / "out"


@pytest.mark.parametrize("path", JOBS, ids=lambda path: path.stem)
def test_every_job_is_well_formed_and_its_data_is_there(path):
    job = read_job(path)

    assert all(Path(source).is_file() for source in job.source_paths)


def test_the_bundled_data_is_what_its_origin_says():
    sums = re.findall(r"^([0-9a-f]{64})  (\S+)$", (DEMOS / "data" / "ORIGIN.md").read_text(), re.MULTILINE)

    assert {name for _, name in sums} == {path.name for path in (DEMOS / "data").glob("*.gz")}
    for expected, name in sums:
        assert hashlib.sha256((DEMOS / "data" / name).read_bytes()).hexdigest() == expected


def test_the_weather_is_ranked_as_well_as_it_should_be(weather):
    report = json.loads((weather / "weather.report.json").read_text())

    adaptive = report["learners"][0]
    assert adaptive["labelled"] == N_DAYS
    assert adaptive["metrics"]["auc"] > REFERENCE_AUC - TOLERANCE
    assert adaptive["metrics"]["auc"] > report["learners"][1]["metrics"]["auc"]


def test_it_abstains_where_it_would_be_guessing(weather):
    rows = [json.loads(line) for line in (weather / "weather.predictions.ndjson").read_text().splitlines()]
    bold = [(row["probability"] >= 0.5) == (row["label"] == 1) for row in rows if row["prediction"] is None]
    named = [row["prediction"] == row["label"] for row in rows if row["prediction"] is not None]

    assert len(rows) == N_DAYS
    assert 0.1 < len(bold) / len(rows) < 0.5
    assert sum(named) / len(named) > sum(bold) / len(bold) + 0.15


def test_the_saved_model_forecasts_another_day(weather):
    model = load(weather / "weather.AdaptiveAUCRO.safetensors")

    probability = model.predict_proba_one(dict.fromkeys(model.feature_names, 10.0))

    assert set(probability) == {0, 1}
    assert sum(probability.values()) == pytest.approx(1.0)


def test_the_picture_is_drawn(weather):
    assert (weather / "weather.png").stat().st_size > 50_000


def test_flights_run_with_text_columns_and_late_labels(tmp_path):
    job = read_job(DEMOS / "flights.toml")
    part = tmp_path / "flights.csv"
    _first_rows(Path(job.source_paths[0]), part, 3000)

    options = [f"source.path={part}", f"out={tmp_path}", f"sink.predictions={tmp_path / 'flights.parquet'}"]
    assert main(["run", str(DEMOS / "flights.toml"), *(text for option in options for text in ("--set", option))]) == 0

    (learner,) = json.loads((tmp_path / "flights.report.json").read_text())["learners"]
    assert learner["labelled"] == 3000
    assert learner["metrics"]["auc"] > 0.55
    assert "carrier=UA" in load(tmp_path / "flights.AdaptiveAUCRO.safetensors").feature_names


def _first_rows(source: Path, target: Path, n_rows: int) -> None:
    with gzip.open(source, "rt", newline="") as packed, target.open("w", newline="") as out:
        writer = csv.writer(out)
        for number, row in enumerate(csv.reader(packed)):
            if number > n_rows:
                break
            writer.writerow(row)
