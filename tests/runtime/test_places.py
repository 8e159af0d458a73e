"""The files of a job: an output is never one of its inputs, nor another of its outputs."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamlearn.errors import BadJob
from streamlearn.runtime.job import check_job


def job_of(folder: Path, path: object = "events.csv", kind: str = "csv", **sections: object):
    tables = {"source": {"kind": kind, "path": path}, "features": {"label": "y"}, "learner": [{"name": "AUCRO"}]}
    return check_job(tables | sections, folder=folder, name="job")


@pytest.mark.parametrize(
    ("key", "section"),
    [
        ("sink.predictions", {"sink": {"predictions": "events.csv"}}),
        ("bad_events.path", {"bad_events": {"path": "./events.csv"}}),
        ("evaluate.report", {"evaluate": {"report": "out/../events.csv"}}),
        ("checkpoint.dir", {"checkpoint": {"dir": "events.csv"}}),
    ],
)
def test_no_output_may_be_the_input(key, section, tmp_path):
    with pytest.raises(BadJob, match=rf"^{key}: must not be an input of source"):
        job_of(tmp_path, **section)


def test_an_output_may_not_be_among_the_files_of_a_pattern_even_before_it_is_there(tmp_path):
    with pytest.raises(BadJob, match=r"^sink\.predictions: must not be an input of source"):
        job_of(tmp_path, "*.csv", sink={"predictions": "scores.csv"})

    assert job_of(tmp_path, "*.csv", sink={"predictions": "out/scores.csv"}).sink is not None


def test_an_input_is_known_behind_a_link(tmp_path):
    (tmp_path / "data.csv").write_text("a,y\n")
    (tmp_path / "events.csv").symlink_to("data.csv")

    with pytest.raises(BadJob, match=r"^sink\.predictions: must not be an input"):
        job_of(tmp_path, sink={"predictions": "data.csv"})


def test_parts_of_parquet_are_not_written_beside_parts_that_are_read(tmp_path):
    with pytest.raises(BadJob, match=r"^sink\.predictions: must not be an input"):
        job_of(tmp_path, "days/*.parquet", "parquet", sink={"predictions": "days", "format": "parquet"})


def test_two_outputs_may_not_share_a_file(tmp_path):
    with pytest.raises(BadJob, match=r"^bad_events\.path: must differ from the path of sink\.predictions"):
        job_of(tmp_path, sink={"predictions": "p.ndjson"}, bad_events={"path": "p.ndjson"})


@pytest.mark.parametrize("name", ["../../job", "a/b", "a\\b"])
def test_the_name_of_a_job_cannot_lead_out_of_its_folder(name, tmp_path):
    with pytest.raises(BadJob, match=r"^name: must be a part of file names"):
        job_of(tmp_path, name=name)
