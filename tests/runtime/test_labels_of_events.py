"""Where labels come late, one that an event brings along is not read: as a feature it would give itself away."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from streamlearn.runtime.cli import main

JOB = """
[source]
kind = "{kind}"
path = "events.{kind}"
[features]
label = "y"
[labels]
key = "id"
turn = 20
[labels.source]
kind = "ndjson"
path = "labels.ndjson"
[[learner]]
name = "AUCRO"
[evaluate]
picture = false
[sink]
predictions = "out/predictions.ndjson"
"""


def write(path, table: pl.DataFrame) -> None:
    {"csv": table.write_csv, "ndjson": table.write_ndjson, "parquet": table.write_parquet}[path.suffix[1:]](path)


@pytest.mark.parametrize("kind", ["csv", "ndjson", "parquet"])
def test_forecasts_are_those_of_events_without_the_label(kind, tmp_path):
    rng = np.random.default_rng(5)
    y = rng.random(200) < 0.5
    events = pl.DataFrame({"id": np.arange(200), "a": rng.normal(size=200) + y, "y": y.astype(int)})
    events.select("id", "y").write_ndjson(tmp_path / "labels.ndjson")
    (tmp_path / "job.toml").write_text(JOB.format(kind=kind))
    outputs = []
    for table in (events, events.drop("y")):
        write(tmp_path / f"events.{kind}", table)
        assert main(["run", str(tmp_path / "job.toml"), "--fresh"]) == 0
        outputs.append((tmp_path / "out" / "predictions.ndjson").read_bytes())
    assert outputs[0] == outputs[1]
    assert json.loads((tmp_path / "out" / "job.report.json").read_text())["labels"]["matched"] == 200
