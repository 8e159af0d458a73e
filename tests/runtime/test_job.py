"""The job file: what it accepts, and that every refusal begins with the path of the wrong key."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from streamlearn.errors import BadJob
from streamlearn.runtime.job import check_job, read_job

SMALLEST = """
[source]
kind = "csv"
path = "events.csv"
[features]
label = "y"
[[learner]]
name = "AUCRO"
"""


def job_of(text: str):
    return check_job(tomllib.loads(text), folder=Path("/jobs"), name="job")


def test_the_smallest_job_needs_a_source_a_label_and_a_learner():
    job = job_of(SMALLEST)

    assert (job.name, job.source.kind, job.features.label, job.learners[0].name) == ("job", "csv", "y", "AUCRO")


def test_paths_are_relative_to_the_job_file_and_outputs_go_below_out():
    job = job_of(SMALLEST + "[checkpoint]\n")

    assert job.source_paths == ["/jobs/events.csv"]
    assert job.report_path == Path("/jobs/out/job.report.json")
    assert job.dead_letter_path == Path("/jobs/out/job.bad.ndjson")
    assert job.checkpoint_dir == Path("/jobs/out/job.checkpoints")


def test_a_job_without_a_checkpoint_section_has_no_checkpoints():
    assert job_of(SMALLEST).checkpoint_dir is None


def test_absolute_paths_stay_as_they_are():
    job = job_of(SMALLEST + "[sink]\npredictions = '/elsewhere/p.csv'\n")

    assert job.resolve(job.sink.predictions) == Path("/elsewhere/p.csv")
    assert job.sink_format == "csv"


def test_everything_beside_name_and_title_is_a_parameter_of_the_learner():
    job = job_of(SMALLEST + 'title = "long"\nhalf_life = 1000\n')

    assert job.learners[0].title == "long"
    assert job.learners[0].params == {"half_life": 1000}


LATE = "[labels]\nkey = 'id'\nsource = { kind = 'csv', path = 'l.csv' }\n"

REFUSED = {
    "[source]\nkind = 'csv'\n[[learner]]\nname='AUCRO'": "source.path: must be given",
    SMALLEST.replace('[features]\nlabel = "y"', ""): "features.label: must be given",
    SMALLEST.replace("'csv'", "'cvs'").replace('"csv"', '"cvs"'): "source.kind: must be one of 'csv', 'ndjson'",
    SMALLEST.replace('"csv"', '"kafka"'): "source.path: must be absent for kind 'kafka'",
    SMALLEST.replace("path =", "topics = ['t']\npath ="): "source.topics: must be absent unless kind is 'kafka'",
    SMALLEST.replace('"csv"', '"stdin"'): "source.path: must be absent",
    SMALLEST.replace('"csv"', '"libsvm"'): "features.label: must be absent",
    SMALLEST.replace("path =", "follow = true\nformat = 'csv'\npath ="): "source.format: must be absent",
    SMALLEST.replace("path =", "delimiter = ';;'\npath ="): "source.delimiter: must be",
    SMALLEST.replace("path =", "header = false\npath ="): "source.names: must name the columns",
    SMALLEST.replace("path =", "folow = true\npath ="): "source.folow: unknown key, did you mean 'follow'?",
    SMALLEST.replace("path =", "batch_events = 0\npath ="): "source.batch_events: must be int >= 1, got 0",
    SMALLEST.replace(
        "label =", "exclude = ['y']\nlabel ="
    ): "features.exclude: must not name a column of features.label",
    SMALLEST.replace(
        "label =", "on_bad_value = 'zero'\nlabel ="
    ): "features.on_bad_value: must be one of 'reject', 'stop'",
    SMALLEST.replace('name = "AUCRO"', ""): "learner[0].name: must be a text, got None",
    SMALLEST + "[[learner]]\nname = 'AUCRO'": "learner[1].title: must differ",
    SMALLEST + "[evaluate]\ndelay = -1": "evaluate.delay: must be int >= 0, got -1",
    SMALLEST + "[evaluate]\nmetrics = 'auc'": "evaluate.metrics: must be array, got 'auc'",
    SMALLEST + "[evaluate]\nmetrics = ['auc', 3]": "evaluate.metrics[1]: must be str, got 3",
    SMALLEST + "[evaluate]\nmetrics = []": "evaluate.metrics: must be array of length >= 1, got []",
    SMALLEST + "[checkpoint]\nevery = 'often'": "checkpoint.every: must be int",
    SMALLEST + "[checkpoint]\nevery_s = 0": "checkpoint.every_s: must be",
    SMALLEST + "[checkpoint]\nkeep = 0": "checkpoint.keep: must be int >= 1, got 0",
    SMALLEST + "[sink]\npredictions = 'p.txt'": "sink.predictions: must end in",
    SMALLEST + "[sink]\nformat = 'csv'": "sink.predictions: must be given",
    SMALLEST
    + "[sink]\npredictions = 'topic'\nformat = 'kafka'": "checkpoint: must be given where outputs go to a topic",
    SMALLEST + "[bad_events]\ntopic = 't'\npath = 'p'": "bad_events.topic: must be absent beside bad_events.path",
    SMALLEST + "[labels]\nsource = 'labels.csv'": "labels.source: must be object",
    SMALLEST + "[labels]\narrive = 'late'": "labels.source: must be given where labels arrive late",
    SMALLEST + "[labels]\ntimeout = '3d'": "labels.timeout: must be absent unless labels.source is given",
    SMALLEST + LATE.replace("key = 'id'", ""): "labels.key: must name the key column",
    SMALLEST + LATE.replace("'csv'", "'libsvm'"): "labels.source.kind: must have key columns",
    SMALLEST + LATE.replace(", path = 'l.csv'", ""): "labels.source.path: must be given for kind 'csv'",
    SMALLEST + LATE + "timeout = '3d'": "labels.timeout: must be in events unless labels.time names a column",
    SMALLEST + LATE + "timeout = 'soon'": "labels.timeout: must be a number and s, m, h, d or events",
    SMALLEST + LATE + "time = 'y'": "labels.time: must not name a column of features.label",
    SMALLEST + LATE + "[evaluate]\ndelay = 3": "evaluate.delay: must be 0 where labels come by key",
    SMALLEST + "[evaluate]\non_drift = 'reset'": "evaluate.on_drift: must be absent unless evaluate.drift is given",
    SMALLEST + "[evaluate]\nfading = 1.5": "evaluate.fading: must be",
    SMALLEST + "[monitor]\nport = 80000": "monitor.port: ",
    SMALLEST
    + "[bad_events]\npolicy = 'ignore'": "bad_events.policy: must be one of 'dead-letter', 'stop', got 'ignore'",
    SMALLEST + "[surce]\nkind = 'csv'": "surce: unknown key, did you mean 'source'?",
    "[[learner]]\nname = 'AUCRO'": "source: must be given",
    "learner = []\n" + SMALLEST.replace('[[learner]]\nname = "AUCRO"', ""): "learner: must be one or more",
}


@pytest.mark.parametrize(("text", "message"), REFUSED.items(), ids=REFUSED.values())
def test_a_wrong_key_is_refused_by_its_path(text, message):
    with pytest.raises(BadJob) as caught:
        job_of(text)

    assert str(caught.value).startswith(message)


@pytest.fixture
def job_path(tmp_path):
    path = tmp_path / "weather.toml"
    path.write_text(SMALLEST + "[checkpoint]\nevery = 10\n")
    return path


def test_the_job_is_called_like_its_file(job_path):
    assert read_job(job_path).name == "weather"


def test_the_command_line_wins_over_the_environment_and_the_environment_over_the_file(job_path):
    environ = {"STREAMLEARN_CHECKPOINT__EVERY": "20", "STREAMLEARN_CHECKPOINT__KEEP": "3", "STREAMLEARN_OTHER": "x"}

    job = read_job(job_path, ["checkpoint.every=30"], environ)

    assert (job.checkpoint.every, job.checkpoint.keep) == (30, 3)


def test_an_override_reaches_into_the_list_of_learners(job_path):
    assert read_job(job_path, ["learner.0.half_life=50"]).learners[0].params == {"half_life": 50}


def test_an_override_may_name_a_section_that_the_file_does_not_have(job_path):
    assert read_job(job_path, ["sink.predictions=out/p.ndjson"]).sink.predictions == "out/p.ndjson"


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("checkpoint.every", "--set: must be section.key=value"),
        ("=3", "--set: must be section.key=value"),
        ("checkpoint.evry=3", "checkpoint.evry: unknown key, did you mean 'every'?"),
        ("learner.7.half_life=3", "learner.7: must be a number from 0 to 0"),
        ("source.kind.deeper=3", "source.kind.deeper: source.kind must be a table"),
    ],
)
def test_a_wrong_override_is_refused_by_its_path(job_path, override, message):
    with pytest.raises(BadJob) as caught:
        read_job(job_path, [override])

    assert str(caught.value).startswith(message)


def test_a_value_with_a_line_break_cannot_smuggle_in_other_keys(job_path):
    job = read_job(job_path, ["source.path=1\nkind = 'ndjson'"])

    assert (job.source.kind, job.source.path) == ("csv", "1\nkind = 'ndjson'")


def test_a_file_that_is_not_toml_is_refused_by_its_name(tmp_path):
    path = tmp_path / "broken.toml"
    path.write_text("[source\n")

    with pytest.raises(BadJob, match=r"broken\.toml: must be TOML"):
        read_job(path)


def test_a_file_that_is_not_there_is_refused_by_its_name(tmp_path):
    with pytest.raises(BadJob, match=r"absent\.toml: must be a readable TOML file"):
        read_job(tmp_path / "absent.toml")
