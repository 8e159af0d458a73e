"""Another learner takes over at a checkpoint, and a run that is killed sends out what one that never stopped does."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys

import pytest

from streamlearn.errors import BadJob
from streamlearn.runtime.cli import main
from streamlearn.runtime.crash import VARIABLE
from streamlearn.runtime.job import read_job
from streamlearn.runtime.lead import REQUEST, Lead, request_lead

N_EVENTS = 600
JOB = """
[source]
kind = "csv"
path = "events.csv"
batch_events = 50
[features]
label = "y"
[[learner]]
name = "AUCRO"
title = "champion"
[[learner]]
name = "FSAUC"
title = "challenger"
[evaluate]
picture = false
[checkpoint]
every = 200
keep = 100
[sink]
predictions = "out/predictions.ndjson"
"""


@pytest.fixture
def folder(tmp_path):
    rows = [f"{(7 * i) % 11},{(5 * i) % 13},{int((7 * i) % 11 + (3 * i) % 5 > 7)}" for i in range(N_EVENTS)]
    (tmp_path / "events.csv").write_text("a,b,y\n" + "\n".join(rows) + "\n")
    (tmp_path / "job.toml").write_text(JOB)
    return tmp_path


def scores(folder) -> list[float]:
    lines = (folder / "out" / "predictions.ndjson").read_text().splitlines()
    return [json.loads(line)["score"] for line in lines]


def checkpoints(folder):
    return read_job(folder / "job.toml").checkpoint_dir


def test_the_other_learners_predictions_go_out_from_the_checkpoint_on(folder, tmp_path_factory, capsys):
    job = str(folder / "job.toml")
    assert main(["run", job]) == 0
    of_champion = scores(folder)
    swapped = JOB.replace("AUCRO", "other").replace("FSAUC", "AUCRO").replace("other", "FSAUC")
    (folder / "job.toml").write_text(swapped)
    assert main(["run", job, "--fresh"]) == 0
    of_challenger = scores(folder)
    (folder / "job.toml").write_text(JOB)

    assert main(["promote", job, "challenger"]) == 0
    assert "from the next checkpoint on" in capsys.readouterr().out
    assert main(["run", job, "--fresh"]) == 0

    assert scores(folder) == of_champion[:200] + of_challenger[200:]
    assert not (checkpoints(folder) / REQUEST).exists()


def start(folder, *options: str, crash_at: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "streamlearn.runtime.cli", "run", str(folder / "job.toml"), *options]
    environ = {**os.environ, VARIABLE: crash_at}
    return subprocess.run(command, env=environ, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.crash
@pytest.mark.parametrize("crash_at", ["after_flush:1", "after_save:2", "before_commit:1"])
def test_a_run_killed_at_the_change_sends_out_the_same(folder, crash_at):
    job = str(folder / "job.toml")
    assert main(["promote", job, "challenger"]) == 0
    assert main(["run", job]) == 0
    whole = (folder / "out" / "predictions.ndjson").read_bytes()
    assert main(["promote", job, "challenger"]) == 0

    # The first save is that of the start, the second that of the change.
    assert start(folder, "--fresh", crash_at=crash_at).returncode == -signal.SIGKILL
    assert start(folder).returncode == 0

    assert (folder / "out" / "predictions.ndjson").read_bytes() == whole


def test_a_learner_that_is_not_in_the_job_is_refused(folder, capsys):
    assert main(["promote", str(folder / "job.toml"), "nobody"]) == 2
    assert "promote: must name one of ['champion', 'challenger'], got 'nobody'" in capsys.readouterr().err


def test_a_request_that_names_nobody_changes_nothing(tmp_path, caplog):
    lead = Lead(["one", "two"], tmp_path)
    request_lead(tmp_path, "three")

    with caplog.at_level(logging.WARNING):
        lead.follow_request()
    lead.followed()

    assert lead.index == 0
    assert "got 'three': nothing changes" in caplog.text
    assert not (tmp_path / REQUEST).exists()


def test_a_request_that_comes_while_another_is_followed_is_kept(tmp_path):
    lead = Lead(["one", "two"], tmp_path)
    request_lead(tmp_path, "two")
    lead.follow_request()
    request_lead(tmp_path, "one")
    lead.followed()

    assert lead.index == 1
    lead.follow_request()
    assert lead.index == 0


def test_the_lead_is_kept_by_title_and_absent_in_older_checkpoints():
    lead = Lead(["one", "two"])
    lead.restore({"title": "two"})
    assert (lead.index, lead.state()["title"]) == (1, "two")
    lead.restore({})
    assert lead.index == 0
    with pytest.raises(BadJob, match="learner: one must have the title 'three', as its predictions go out"):
        lead.restore({"title": "three"})


def test_titles_that_change_between_two_runs_are_refused_since_others_would_go_out(folder, capsys):
    assert main(["run", str(folder / "job.toml")]) == 0
    exchanged = ("--set", "learner.0.title=challenger", "--set", "learner.1.title=champion")
    assert main(["run", str(folder / "job.toml"), *exchanged]) == 2
    expected = "error: learner[0].title: must be as in the checkpoint ('champion'), got 'challenger'"
    assert expected in capsys.readouterr().err


def test_log_and_progress_can_be_json(folder):
    assert main(["promote", str(folder / "job.toml"), "challenger"]) == 0

    lines = [json.loads(line) for line in start(folder, "--log", "json").stderr.splitlines()]

    (log,) = (line for line in lines if line["kind"] == "log")
    assert log["text"] == "predictions of challenger go out from here on"
    assert (log["level"], log["logger"]) == ("INFO", "streamlearn.runtime.lead")
    assert {line["kind"] for line in lines} <= {"log", "message", "progress"}
