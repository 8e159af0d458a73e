"""Refits of a job's learners in a process of their own: asked for by a key, the same results, nothing left behind."""

import multiprocessing

import numpy as np
import polars as pl
import pytest

from streamlearn.errors import BadJob
from streamlearn.runtime.assemble import assemble, meaning
from streamlearn.runtime.cli import main
from streamlearn.runtime.job import read_job
from streamlearn.runtime.refit_workers import RefitWorkers

N_EVENTS, LAG = 600, 40

JOB = """
[source]
kind = "csv"
path = "events.csv"
[features]
label = "rain"
[[learner]]
name = "HedgeMower1"
members = "forest, logistic"
n_trees = 8
refit_every = 20
refit_lag = {lag}
refit_worker = {worker}
[evaluate]
curve = false
picture = false
delay = {delay}
[checkpoint]
every = 250
[sink]
predictions = "out/predictions.csv"
"""


def job_in(folder, worker="true", lag=LAG, delay=0):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(N_EVENTS, 2))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    folder.mkdir(exist_ok=True)
    pl.DataFrame({"wind": X[:, 0], "sun": X[:, 1], "rain": y}).write_csv(folder / "events.csv")
    path = folder / "shower.toml"
    path.write_text(JOB.format(worker=worker, lag=lag, delay=delay))
    return path


@pytest.mark.parametrize("delay", [0, 35])
def test_predictions_and_model_are_the_same_with_and_without(tmp_path, capsys, delay):
    found = []
    for worker in ("true", "false"):
        assert main(["run", str(job_in(tmp_path / worker, worker, delay=delay))]) == 0
        out = tmp_path / worker / "out"
        found.append([(out / name).read_bytes() for name in ("predictions.csv", "shower.HedgeMower1.safetensors")])
    assert found[0] == found[1]
    assert len(set(found[0][0].splitlines())) > N_EVENTS / 2
    assert multiprocessing.active_children() == []


def test_the_worker_gets_the_refits_and_is_taken_back_in_the_end(tmp_path):
    job = read_job(job_in(tmp_path))
    tracks = assemble(job).tracks
    rows = np.random.default_rng(0).normal(size=(40, 2))
    with RefitWorkers(job) as workers:
        workers.serve(tracks)
        learner = tracks[0].learner
        learner.learn_many(rows, (rows[:, 0] > 0).astype(int))
        assert learner._waiting._future is not None
        assert multiprocessing.active_children() != []
    assert multiprocessing.active_children() == []
    assert learner._executor is None
    learner.learn_many(rows, (rows[:, 0] > 0).astype(int))
    assert learner.is_fitted


def test_a_checkpoint_goes_on_with_or_without_a_worker(tmp_path):
    assert meaning(read_job(job_in(tmp_path, "true"))) == meaning(read_job(job_in(tmp_path, "false")))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("= true", '= "yes"', r"learner\[0\].refit_worker: must be true or false, got 'yes'"),
        (f"refit_lag = {LAG}", "refit_lag = 0", r"learner\[0\].refit_worker: must be false unless refit_lag"),
        ("HedgeMower1", "AUCRO", r"learner\[0\].refit_worker: must be false, as AUCRO is never refitted"),
    ],
)
def test_a_worker_without_work_is_refused(tmp_path, old, new, message):
    path = job_in(tmp_path)
    text = path.read_text().replace(old, new)
    if new == "AUCRO":
        text = "\n".join(
            line for line in text.splitlines() if not line.startswith(("members", "n_trees", "refit_e", "refit_l"))
        )
    path.write_text(text)
    with pytest.raises(BadJob, match=message):
        assemble(read_job(path))
