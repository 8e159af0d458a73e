"""Jobs in parts: the same models for any number of workers, exactly once, and right with bad parts."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from streamlearn import load
from streamlearn.errors import BadEvent, BadJob
from streamlearn.runtime.assemble import checkpoint_folder
from streamlearn.runtime.job import read_job
from streamlearn.runtime.part_task import MOST_BAD, PartTask, bad_from_text
from streamlearn.runtime.parts import plan_parts
from streamlearn.runtime.rounds import answer, estimate_of
from streamlearn.snapshot import below

JOB = """
[source]
kind = "ndjson"
path = "rows.ndjson"
[features]
label = "y"
[[learner]]
name = "aucro"
clip = 1e6
[[learner]]
name = "opauc"
[evaluate]
picture = false
[checkpoint]
[engine]
parts = 6
merge = "mean"
round = 2
"""


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 3))
    y = (X @ [1.0, -1.0, 0.5] + rng.normal(size=1200) > 0).astype(int)
    rows = [json.dumps({"a": a, "b": b, "c": c, "y": int(k)}) for (a, b, c), k in zip(X.tolist(), y, strict=True)]
    rows[700] = '{"a": null, "b": 1, "c": 2, "y": 0}'
    rows[50] = "nonsense"
    (tmp_path / "rows.ndjson").write_text("\n".join(rows) + "\n")
    (tmp_path / "job.toml").write_text(JOB)
    return tmp_path


def run(folder, *arguments, crash="", code=0):
    environment = {**os.environ, "STREAMLEARN_CRASH_AT": crash}
    command = [sys.executable, "-m", "streamlearn.runtime.cli", "run", str(folder / "job.toml"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


def outputs(folder):
    report = json.loads((folder / "out" / "job.report.json").read_text())
    del report["timing"]
    names = ("job.aucro.safetensors", "job.opauc.safetensors", "job.bad.ndjson")
    return {**{name: (folder / "out" / name).read_bytes() for name in names}, "report": report}


def test_models_are_equal_for_any_number_of_workers_and_whenever_the_driver_was_killed(folder):
    run(folder, "--workers", "2")
    expected = outputs(folder)
    assert expected["report"]["events"] == 1200
    assert expected["report"]["rejected"] == {"syntax": 1, "value": 1}
    assert sum(expected["report"]["parts"]["events"]) == 1200
    assert 0.8 < expected["report"]["learners"][0]["metrics"]["auc"] < 1.0
    run(folder, "--workers", "1", "--fresh", crash="after_flush:2", code=-9)
    assert "going on behind part 2 of 6" in run(folder, "--workers", "1", crash="after_save:1", code=-9)
    assert "going on behind part 4 of 6" in run(folder, "--workers", "1")
    assert outputs(folder) == expected


def test_the_merged_statistics_are_those_of_one_process(folder):
    run(folder, "--workers", "1")
    merged = load(folder / "out" / "job.aucro.safetensors")
    (folder / "job.toml").write_text(JOB[: JOB.index("[engine]")].replace("[checkpoint]", ""))
    run(folder, "--fresh")
    whole = load(folder / "out" / "job.aucro.safetensors")
    X = np.random.default_rng(1).normal(size=(50, 3))
    rows = [dict(zip("abc", row, strict=True)) for row in X.tolist()]
    scores = [whole.score_one(row) for row in rows]
    assert np.corrcoef([merged.score_one(row) for row in rows], scores)[0, 1] > 0.9999
    header = whole._moments.F[:3]
    assert merged._moments.F[:3].tolist() == header.tolist()
    assert merged._moments.covariance(0, 1) == pytest.approx(whole._moments.covariance(0, 1), rel=1e-9)


def test_the_driver_holds_one_model_of_those_that_are_added_up_and_all_of_the_others(folder):
    for merge, held in (("mean", []), ("trimmed", [0, 1, 2, 3])):
        run(folder, "--workers", "1", "--fresh", "--set", f"engine.merge={merge}", crash="after_save:3", code=-9)
        saved = checkpoint_folder(read_job(folder / "job.toml")).newest()
        parts = {k for k in range(6) if below(f"part/{k}/track/0/learner", saved.state)}
        assert sorted(parts) == held
        assert bool(below("added/0", saved.state)) == (merge == "mean")
        assert "going on behind part 4 of 6" in run(folder, "--workers", "1", "--set", f"engine.merge={merge}")


def test_a_part_that_hardly_fits_the_job_is_refused(folder):
    path = folder / "rows.ndjson"
    path.write_text('{"a": null, "y": 1}\n' * (MOST_BAD + 1))
    job = read_job(folder / "job.toml")
    (part,) = plan_parts(job.source, job.source_paths, 1)
    with pytest.raises(BadEvent, match="must have at most 10000 bad events"):
        answer(PartTask(job), part, b"")


def test_bad_events_come_home_with_their_bytes(folder):
    path = folder / "rows.ndjson"
    path.write_bytes(b'{"a": 1, "b": 2, "c": 3, "y": 1}\n\xff\xfe\n')
    job = read_job(folder / "job.toml")
    (part,) = plan_parts(job.source, job.source_paths, 1)
    (bad,) = bad_from_text(estimate_of(answer(PartTask(job), part, b""))["bad"])
    assert (bad.record, bad.raw) == (1, b"\xff\xfe")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("source.follow=true", "source.follow: must be absent"),
        ("evaluate.delay=3", "evaluate.delay: must be absent"),
        ("engine.kind=spark", "engine.workers: must be absent for kind 'spark'"),
        ("engine.master=local", "engine.master: must be absent for kind 'local'"),
        ("engine.merge=best", "engine.merge: must be one of"),
        ("sink.predictions=a.csv", "sink: must be absent"),
        ("source.kind=stdin", "source.kind: must be one of csv"),
    ],
)
def test_what_has_no_meaning_in_parts_is_refused(folder, change, message):
    sets = ["engine.workers=2", change]
    if change == "source.kind=stdin":
        text = JOB.replace('path = "rows.ndjson"', 'format = "csv"')
        (folder / "job.toml").write_text(text)
    with pytest.raises(BadJob, match=message):
        read_job(folder / "job.toml", sets)


def test_learners_that_cannot_be_merged_are_refused_before_anything_is_read(folder):
    told = run(folder, "--set", "learner.1.name=fsauc", code=2)
    assert "learner[1].name: merge: learner must be one of" in told
    assert not (folder / "out").exists()
