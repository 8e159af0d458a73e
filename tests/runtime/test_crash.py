"""Killed anywhere, restarted until done: every output is that of a run that never stopped, byte for byte.

Real processes, real SIGKILL. Kills come from inside, at named points of the loop, and from outside, at random moments.
"""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from streamlearn.runtime.crash import POINTS, VARIABLE

pytestmark = pytest.mark.crash

N_EVENTS = 4000
SEED = 20
COMMAND = [sys.executable, "-m", "streamlearn.runtime.cli"]
PATIENCE_S = 120.0

JOB = """
name = "crash"
[source]
kind = "csv"
path = "{source}"
batch_events = 40
[features]
label = "{label}"
exclude = ["note"]
categorical = ["colour"]
[labels]
key = "id"
{labels}
[[learner]]
name = "AdaptiveAUCRO"
reject_cost = 0.4
[[learner]]
name = "AUCRO"
[evaluate]
bands = {bands}
metrics = ["auc", "reject_auc:d=0.4", "logloss", "kappa_t"]
window = 500
delay = {delay}
{drift}
picture = false
[checkpoint]
every = 120
keep = 3
[sink]
predictions = "out/predictions.{sink}"
"""


DRIFT = """
drift = "adwin:delta=0.05"
on_drift = "shorten_memory"
drift_memory = 150
"""


LATE = """
time = "ts"
timeout = "700s"
capacity = 600
turn = 64
source = {{ kind = "csv", path = "{folder}/labels.csv" }}
"""


def csv_text(turned_from: int = N_EVENTS) -> str:
    """Return events of three numbers and a colour, some without label, some bad in every way the job knows.

    The meaning of the labels is turned round at one event.
    """
    rng = np.random.default_rng(SEED)
    values = rng.normal(size=(N_EVENTS, 3))
    colours = rng.choice(["red", "green", "blue", "grey"], size=N_EVENTS)
    positive = values[:, 0] + (colours == "red") + rng.normal(size=N_EVENTS) > 0.5
    positive[turned_from:] = ~positive[turned_from:]
    labels = positive.astype(int).astype(str)
    labels[rng.random(N_EVENTS) < 0.05] = ""
    lines = ["id,a,b,c,colour,note,label"]
    for k, (row, colour, label) in enumerate(zip(values.tolist(), colours, labels, strict=True)):
        a, b, c = (repr(value) for value in row)
        bad = {97: ("x", b, c), 98: (a, "", c), 201: (a, "nan", c)}.get(k % 211, (a, b, c))
        line = f"e{k},{','.join(bad)},{colour},free text,{'7' if k % 333 == 332 else label}"
        lines.append(line + ",one too many" if k % 500 == 499 else line)
    return "\n".join(lines) + "\n"


def parted(text: str, labels: Path) -> str:
    """Return events a second apart without labels; these come later, early, twice or never, in the order they come."""
    rng = np.random.default_rng(SEED)
    header, *lines = text.splitlines()
    events = [header.removesuffix(",label") + ",ts"]
    told = []
    for second, line in enumerate(lines):
        key, a, b, c, colour, note, label, *more = line.split(",")
        events.append(",".join([key, a, b, c, colour, note, str(second), *more]))
        n = rng.choice([0, 1, 1, 1, 1, 2])
        told += [(float(second - 20.0 + rng.exponential(300.0)), f"{key},{label}") for _ in range(n)]
    labels.write_text("id,y,ts\n" + "".join(f"{entry},{when!r}\n" for when, entry in sorted(told)))
    return "\n".join(events) + "\n"


@pytest.fixture(scope="module")
def sources(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("events")
    plain, packed = folder / "events.csv", folder / "events.csv.gz"
    plain.write_text(csv_text())
    packed.write_bytes(gzip.compress(csv_text().encode(), mtime=0))
    turned = folder / "turned.csv"
    turned.write_text(csv_text(turned_from=N_EVENTS // 3))
    unlabelled = folder / "unlabelled.csv"
    unlabelled.write_text(parted(csv_text(turned_from=N_EVENTS // 3), folder / "labels.csv"))
    return {"csv": plain, "csv.gz": packed, "turned.csv": turned, "unlabelled.csv": unlabelled}


FLAVOURS = {
    "plain": {"source": "csv", "sink": "ndjson", "delay": 0, "drift": "", "label": "label", "labels": ""},
    "packed and late": {
        "source": "csv.gz",
        "sink": "parquet",
        "delay": 25,
        "drift": "",
        "label": "label",
        "labels": "",
    },
    "labels by key": {
        "source": "unlabelled.csv",
        "sink": "ndjson",
        "delay": 0,
        "drift": DRIFT,
        "label": "y",
        "labels": LATE,
    },
    "turned round": {
        "source": "turned.csv",
        "sink": "csv",
        "bands": 3,
        "delay": 10,
        "drift": DRIFT,
        "label": "label",
        "labels": "",
    },
}


def write_job(folder: Path, flavour: str, sources: dict[str, Path]) -> Path:
    options = FLAVOURS[flavour]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "job.toml"
    source = sources[options["source"]]
    options = {"bands": 0, **options, "source": source, "labels": options["labels"].format(folder=source.parent)}
    path.write_text(JOB.format(**options))
    return path


def start(job: Path, crash_at: str = "", *options: str) -> subprocess.Popen[bytes]:
    environ = {**os.environ, VARIABLE: crash_at}
    command = [*COMMAND, "run", str(job), "--json", *options]
    return subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def finish(process: subprocess.Popen[bytes]) -> int:
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode in {0, 130, -signal.SIGKILL}, errors.decode()
    return process.returncode


def outputs(folder: Path) -> dict[str, bytes]:
    """Return every file that a run leaves, the report without its timing; checkpoints and picture are no outputs."""
    found = {}
    for path in sorted((folder / "out").rglob("*")):
        if path.is_file() and "checkpoints" not in str(path) and path.suffix != ".png":
            found[str(path.relative_to(folder))] = path.read_bytes()
    report = json.loads(found["out/crash.report.json"])
    del report["timing"]
    found["out/crash.report.json"] = json.dumps(report).encode()
    return found


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory, sources) -> Callable[[str], dict[str, bytes]]:
    made: dict[str, dict[str, bytes]] = {}

    def outputs_of(flavour: str) -> dict[str, bytes]:
        if flavour not in made:
            folder = tmp_path_factory.mktemp("whole")
            assert finish(start(write_job(folder, flavour, sources))) == 0
            made[flavour] = outputs(folder)
        return made[flavour]

    return outputs_of


def newest_checkpoint(folder: Path) -> int:
    """Return the event count of the newest checkpoint, -1 where there is none."""
    names = [path.name for path in (folder / "out" / "crash.checkpoints").glob("ckpt-*.safetensors")]
    return max((int(name[5:17]) for name in names), default=-1)


def wait_for_progress(process: subprocess.Popen[bytes], folder: Path, n_events: int) -> None:
    """Wait until the run has saved `n_events` more, or has ended."""
    # A run that starts afresh behind one that was through has its end before it for a moment.
    begun = newest_checkpoint(folder)
    aim, deadline = (begun if begun < N_EVENTS else 0) + n_events, time.monotonic() + PATIENCE_S
    while process.poll() is None and newest_checkpoint(folder) < aim and time.monotonic() < deadline:
        time.sleep(0.001)


KILLS_AT_A_POINT = 3
KILLS_FROM_OUTSIDE = 15


@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize("point", POINTS)
def test_killed_at_a_point_of_the_loop_again_and_again(point, flavour, sources, uninterrupted, tmp_path):
    chance = np.random.default_rng([SEED, POINTS.index(point), len(flavour)])
    job = write_job(tmp_path, flavour, sources)

    for _ in range(KILLS_AT_A_POINT):
        assert finish(start(job, f"{point}:{chance.integers(1, 10)}")) == -signal.SIGKILL
    assert finish(start(job)) == 0

    assert outputs(tmp_path) == uninterrupted(flavour)


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_killed_from_outside_at_random_moments(flavour, sources, uninterrupted, tmp_path):
    chance = np.random.default_rng([SEED, len(flavour)])
    job = write_job(tmp_path, flavour, sources)

    kills, fresh = 0, ()
    while kills < KILLS_FROM_OUTSIDE:
        process = start(job, "", *fresh)
        wait_for_progress(process, tmp_path, chance.integers(0, N_EVENTS // KILLS_FROM_OUTSIDE))
        time.sleep(chance.random() * 0.02)
        process.kill()
        ended = finish(process) == 0  # on a busy machine a run may be through before the kill
        kills, fresh = (kills, ("--fresh",)) if ended else (kills + 1, ())
    assert finish(start(job)) == 0

    assert outputs(tmp_path) == uninterrupted(flavour)


def test_the_turned_stream_makes_both_learners_start_anew(uninterrupted):
    report = json.loads(uninterrupted("turned round")["out/crash.report.json"])
    for learner in report["learners"]:
        assert learner["drift"]["answered"], learner["title"]
        assert report["comparison"]["bands_over_time"][learner["title"]]["events"]


def test_labels_by_key_meet_every_fate(uninterrupted):
    report = json.loads(uninterrupted("labels by key")["out/crash.report.json"])
    # No key comes twice here, and nothing that could be forecast is refused later on.
    others = {fate: count for fate, count in report["labels"].items() if fate not in ("repeated", "refused")}
    assert len(others) == 8
    assert all(others.values()), report["labels"]
    assert report["learners"][0]["drift"]["answered"]


def test_these_are_at_least_fifty_kills():
    assert len(POINTS) * len(FLAVOURS) * KILLS_AT_A_POINT + len(FLAVOURS) * KILLS_FROM_OUTSIDE >= 50


STOPS = (signal.SIGTERM, signal.SIGINT)


@pytest.mark.parametrize("number", STOPS)
def test_a_stop_signal_ends_cleanly_behind_a_checkpoint(number, sources, uninterrupted, tmp_path):
    job = write_job(tmp_path, "plain", sources)
    codes = []
    for _ in range(2):
        process = start(job)
        wait_for_progress(process, tmp_path, 500)
        process.send_signal(number)
        codes.append(finish(process))
        state = newest_checkpoint(tmp_path)
        lines = (tmp_path / "out" / "predictions.ndjson").read_bytes().count(b"\n")
        dead = (tmp_path / "out" / "crash.bad.ndjson").read_bytes().count(b"\n")
        assert lines + dead == state  # nothing was written that the checkpoint does not know
    assert codes == [130, 130]

    assert finish(start(job)) == 0
    assert outputs(tmp_path) == uninterrupted("plain")


FOLLOW = """
name = "crash"
[source]
kind = "csv"
path = "live.csv"
follow = true
batch_events = 40
[features]
label = "label"
exclude = ["note"]
categorical = ["colour"]
[labels]
key = "id"
[[learner]]
name = "AUCRO"
[evaluate]
picture = false
[checkpoint]
every_s = 0.05
[sink]
predictions = "out/predictions.ndjson"
"""


def wait_for_events(process: subprocess.Popen[bytes], folder: Path, n_events: int) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while newest_checkpoint(folder) < n_events:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_growing_file_is_followed_through_rotation_and_a_kill(tmp_path):
    header, *lines = csv_text().splitlines(keepends=True)
    live, job = tmp_path / "live.csv", tmp_path / "job.toml"
    job.write_text(FOLLOW)
    live.write_text(header + "".join(lines[:500]))

    process = start(job)
    wait_for_events(process, tmp_path, 500)
    with live.open("a") as file:
        file.write("".join(lines[500:700]) + lines[700][:7])  # the last line is half written
    wait_for_events(process, tmp_path, 700)
    process.kill()
    assert finish(process) == -signal.SIGKILL

    with live.open("a") as file:
        file.write(lines[700][7:] + "".join(lines[701:1000]))
    process = start(job)
    wait_for_events(process, tmp_path, 1000)
    live.rename(tmp_path / "live.csv.1")
    live.write_text(header + "".join(lines[1000:1300]))
    wait_for_events(process, tmp_path, 1300)
    process.send_signal(signal.SIGTERM)
    assert finish(process) == 130

    rows = [json.loads(row) for row in (tmp_path / "out" / "predictions.ndjson").read_bytes().splitlines()]
    bad = [json.loads(row) for row in (tmp_path / "out" / "crash.bad.ndjson").read_bytes().splitlines()]
    records = sorted([row["record"] for row in rows] + [row["record"] for row in bad])
    assert records == list(range(1300))
    assert all(row["key"] == f"e{row['record']}" for row in rows)
