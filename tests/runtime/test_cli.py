"""The command line: what each command prints, writes and exits with."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import roc_auc_score

import streamlearn
from streamlearn.evaluation import prequential
from streamlearn.learners.registry import MODULES, make_learner
from streamlearn.runtime.cli import main

N_EVENTS = 600
SEED = 5
PNG = b"\x89PNG\r\n\x1a\n"
LEARNER, SHADOW = "AUCRO", "LogisticReject"

JOB = f"""
[source]
kind = "csv"
path = "events.csv"
[features]
label = "rain"
[[learner]]
name = "{LEARNER}"
reject_cost = 0.3
[[learner]]
name = "{SHADOW}"
title = "in its shadow"
[evaluate]
metrics = ["auc", "logloss", "reject_rate:d=0.3"]
window = 100
[checkpoint]
every = 250
[sink]
predictions = "out/predictions.csv"
"""


def frame() -> pl.DataFrame:
    rng = np.random.default_rng(SEED)
    X = rng.normal(size=(N_EVENTS, 2))
    y = (X[:, 0] - X[:, 1] + rng.normal(size=N_EVENTS) > 0).astype(int)
    return pl.DataFrame({"wind": X[:, 0], "sun": X[:, 1], "rain": y})


@pytest.fixture
def job(tmp_path) -> Path:
    frame().write_csv(tmp_path / "events.csv")
    with (tmp_path / "events.csv").open("a") as file:
        file.write("much,0.5,1\n")
    path = tmp_path / "shower.toml"
    path.write_text(JOB)
    return path


def test_run_prints_a_table_and_leaves_predictions_models_report_and_picture(job, capsys):
    assert main(["run", str(job)]) == 0

    printed = capsys.readouterr().out
    assert "shower: 601 events, 1 bad" in printed
    assert "1 of kind value; the first: " in printed
    assert LEARNER in printed
    assert "in its shadow" in printed
    out = job.parent / "out"
    assert {path.name for path in out.iterdir()} == {
        "predictions.csv",
        "shower.bad.ndjson",
        "shower.checkpoints",
        "shower.png",
        "shower.report.json",
        f"shower.{LEARNER}.safetensors",
        "shower.in-its-shadow.safetensors",
    }
    assert len((out / "predictions.csv").read_text().splitlines()) == 1 + N_EVENTS
    assert (out / "shower.png").read_bytes().startswith(PNG)
    assert streamlearn.load(out / f"shower.{LEARNER}.safetensors").feature_names == ("sun", "wind")


def test_the_report_has_what_prequential_evaluation_measures(job):
    main(["run", str(job)])
    report = json.loads((job.parent / "out" / "shower.report.json").read_text())

    data = frame()
    expected = prequential(
        (data.select("wind", "sun"), data["rain"]), make_learner(LEARNER, {}), ["auc", "auc:window=100", "logloss"]
    )

    found = report["learners"][0]["metrics"]
    assert {name: found[name] for name in expected.values} == dict(expected.values)


def test_a_finished_job_that_is_run_again_says_so_and_fresh_starts_anew(job, capsys):
    main(["run", str(job)])
    first = (job.parent / "out" / "predictions.csv").read_bytes()
    capsys.readouterr()

    assert main(["run", str(job)]) == 0
    assert "nothing new to read" in capsys.readouterr().err
    assert main(["run", str(job), "--fresh"]) == 0

    assert "going on" not in capsys.readouterr().err
    assert (job.parent / "out" / "predictions.csv").read_bytes() == first


def test_a_key_can_be_changed_from_outside(job, monkeypatch):
    monkeypatch.setenv("STREAMLEARN_EVALUATE__PICTURE", "false")

    assert main(["run", str(job), "--set", "name=other", "--set", "out=elsewhere"]) == 0

    names = {path.name for path in (job.parent / "elsewhere").iterdir()}
    assert "other.report.json" in names
    assert "other.png" not in names


def test_json_lines_are_for_machines(job, capsys):
    assert main(["run", str(job), "--json"]) == 0

    last = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert last["kind"] == "done"
    assert last["report"]["rejected"] == {"value": 1}
    assert all(Path(name).exists() for name in last["files"])


BAD_JOBS = {
    "evaluate.metrics=['auk']": "evaluate.metrics[0]: metric: the name must be one of",
    "evaluate.metrics=['auc', 'auc']": "evaluate.metrics: must differ",
    "learner.0.reject_cost=0.9": "learner[0]: AUCRO: reject_cost must be in (0, 0.5], got 0.9",
    "learner.0.no_such=1": "learner[0]: AUCRO: parameters must be of",
    "learner.0.name=NoSuch": "learner[0]: learner must be one of",
    "learner.0.name=GeometricMedian": "learner[0]",
    "learner.0.name=spark:x": "learner[0]: learner must be of ['river'] before the colon, got 'spark'",
    "source.delimiter='é'": "source.delimiter must be one ASCII character",
}


@pytest.mark.parametrize(("override", "message"), BAD_JOBS.items(), ids=BAD_JOBS)
def test_a_bad_job_exits_with_2_and_the_path_of_the_key(override, message, job, capsys):
    code = main(["run", str(job), "--set", override])

    errors = capsys.readouterr().err
    if (
        override == "features.label=sun"
    ):  # a continuous column has a third label in its third event, which is no bad job
        assert code == 0
        return
    assert code == 2
    assert errors.startswith(f"error: {message}")
    assert not (job.parent / "out").exists()


@pytest.mark.parametrize(
    "arguments", [["run"], ["no-such-command"], ["run", "a", "b"], ["evaluate", "x.csv"], ["plot"]]
)
def test_bad_usage_exits_with_2(arguments, capsys):
    assert main(arguments) == 2
    assert capsys.readouterr().err


def test_a_job_that_fails_exits_with_1_and_one_line(job, capsys):
    (job.parent / "events.csv").unlink()

    assert main(["run", str(job)]) == 1
    assert capsys.readouterr().err.startswith("error: ")


def test_a_missing_label_column_is_a_failure_that_names_it(job, capsys):
    assert main(["run", str(job), "--set", "features.label=snow"]) == 1
    assert "snow" in capsys.readouterr().err


def test_a_scaling_that_no_learner_takes_is_refused(job, capsys):
    river = "river:linear_model.LogisticRegression"
    code = main(
        [
            "run",
            str(job),
            "--set",
            f"learner.0.name={river}",
            "--set",
            f"learner.1.name={river}",
            "--set",
            "features.scale=standard",
            "--set",
            "learner.0.title=a",
        ]
    )

    assert code == 2
    assert capsys.readouterr().err.startswith("error: learner[0]")


def test_a_river_learner_in_a_job_with_checkpoints_is_refused_with_the_reason(job, capsys):
    code = main(["run", str(job), "--set", "learner.1.name=river:linear_model.LogisticRegression"])

    assert code == 1
    assert "set checkpoint.allow_pickle = true" in capsys.readouterr().err


def test_evaluate_compares_learners_with_river_estimators(job, tmp_path, capsys):
    events = tmp_path / "events.csv"
    pipeline = "river:preprocessing.StandardScaler|linear_model.LogisticRegression"
    arguments = [
        "--label",
        "rain",
        "--learner",
        "aucro",
        "--learner",
        pipeline,
        "--out",
        str(tmp_path / "here"),
    ]

    assert main(["evaluate", str(events), *arguments]) == 0

    printed = capsys.readouterr().out
    assert "StandardScaler | LogisticRegression" in printed
    report = json.loads((tmp_path / "here" / "events.report.json").read_text())
    assert [learner["metrics"]["auc"] > 0.75 for learner in report["learners"]] == [True, True]
    assert (tmp_path / "here" / "events.png").read_bytes().startswith(PNG)


def test_evaluate_takes_parameters_metrics_and_late_labels(job, tmp_path):
    arguments = ["--label", "rain", "--learner", "AUCRO:reject_cost=0.3,half_life=100", "--delay", "20"]
    out = ["--out", str(tmp_path / "here")]

    assert main(["evaluate", str(tmp_path / "events.csv"), *arguments, "--metric", "auc", "--window", "50", *out]) == 0

    (learner,) = json.loads((tmp_path / "here" / "events.report.json").read_text())["learners"]
    assert (learner["params"]["reject_cost"], learner["params"]["half_life"]) == (0.3, 100)
    assert list(learner["metrics"]) == ["auc", "auc_window_50"]
    events, rain = frame().select("wind", "sun").rows(named=True), frame()["rain"].to_list()
    model, scores = make_learner("AUCRO", {"half_life": 100}), []
    for t, event in enumerate(events):
        scores.append(model.score_one(event))
        if t >= 20:
            model.learn_one(events[t - 20], rain[t - 20])
    assert learner["metrics"]["auc"] == pytest.approx(roc_auc_score(rain, scores), abs=1e-12)


def test_inspect_shows_a_checkpoint_a_folder_of_them_and_a_model(job, capsys):
    main(["run", str(job)])
    out = job.parent / "out"
    capsys.readouterr()

    assert main(["inspect", str(out / "shower.checkpoints")]) == 0
    shown = capsys.readouterr().out
    assert "events" in shown
    assert "601" in shown
    assert LEARNER in shown
    assert main(["inspect", str(out / f"shower.{LEARNER}.safetensors"), "--json"]) == 0
    model = json.loads(capsys.readouterr().out)
    assert (model["class"], model["features"], model["labels"]) == (LEARNER, ["sun", "wind"], [0, 1])


def test_inspect_of_something_else_exits_with_1(job, capsys):
    assert main(["inspect", str(job)]) == 1
    assert str(job) in capsys.readouterr().err


def test_plot_draws_a_report_again(job, tmp_path, capsys):
    main(["run", str(job)])

    assert main(["plot", str(tmp_path / "out" / "shower.report.json"), "--out", str(tmp_path / "again.png")]) == 0

    assert (tmp_path / "again.png").read_bytes() == (tmp_path / "out" / "shower.png").read_bytes()
    assert main(["plot", str(tmp_path / "events.csv")]) == 1
    assert "must be a report" in capsys.readouterr().err


def test_without_matplotlib_a_run_says_how_to_get_it_and_plot_fails_with_the_same(job, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)

    assert main(["run", str(job)]) == 0
    printed = capsys.readouterr().out
    assert "pip install 'streamlearn[plot]'" in printed
    assert any("\u2801" <= sign <= "\u28ff" for sign in printed)  # the chart in its place, in braille dots
    assert main(["plot", str(job.parent / "out" / "shower.report.json")]) == 1
    assert "pip install 'streamlearn[plot]'" in capsys.readouterr().err


def test_learners_lists_every_learner_with_its_parameters(capsys):
    assert main(["learners", "--json"]) == 0

    listed = {learner["name"]: learner for learner in json.loads(capsys.readouterr().out)}
    assert set(listed) == set(MODULES)
    for learner in listed.values():
        assert learner["what"]
        assert all(parameter["what"] for parameter in learner["parameters"].values()), learner
    assert main(["learners"]) == 0
    assert LEARNER in capsys.readouterr().out


def test_help_answers_without_importing_what_only_commands_need():
    code = (
        "import sys; from streamlearn.runtime.cli import main; main(['--help'])\n"
        "print([name for name in ('numpy', 'numba', 'polars', 'river', 'matplotlib') if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "Compare learners on one file" in ran.stdout
    assert ran.stdout.splitlines()[-1] == "[]"


def test_evaluate_tells_bands_and_whether_learners_differ(job, tmp_path, capsys):
    arguments = ["--label", "rain", "--learner", "AUCRO", "--learner", "OPAUC", "--fading", "0.99", "--bands", "8"]
    assert main(["evaluate", str(tmp_path / "events.csv"), *arguments, "--out", str(tmp_path / "found")]) == 0
    assert "OPAUC against AUCRO: p = " in capsys.readouterr().out
    (path,) = (tmp_path / "found").glob("*.report.json")
    report = json.loads(path.read_text())
    assert "auc_fading_0.99" in report["learners"][0]["metrics"]
    for learner in report["learners"]:
        for name, (low, high) in report["comparison"]["bands"][learner["title"]].items():
            assert low < high
            assert low - (high - low) < learner["metrics"][name] < high + (high - low)
    (row,) = report["comparison"]["against_first"]
    assert row["only_first_right"] + row["only_this_right"] <= row["events"]
