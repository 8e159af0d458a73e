"""What a long run costs beside learning: a checkpoint a second, and memory."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from engine_files import WIDTH, write_files
from engine_learners import made_up
from engine_row import Row

from streamlearn import AUCRO
from streamlearn.contracts import Position
from streamlearn.evaluation.auc import AUC
from streamlearn.runtime.checkpoint import Checkpoint, CheckpointFolder
from streamlearn.runtime.tracks import Track
from streamlearn.snapshot import nest

CHECKPOINTS = 60
MOST_SHARE = 0.01
MEMORY_MIB = 350.0
GROWTH = 1.05
SAMPLE_S = 0.05
JOB = """
out = "out"
[source]
kind = "csv"
path = "part-*.csv"
[features]
label = "label"
[[learner]]
name = "aucro"
[evaluate]
metrics = ["auc", "logloss"]
window = 1000
picture = false
[checkpoint]
every_s = 1.0
"""


def states():
    """Give (title, what returns the state) of a model alone, and with its metric, after 100,000 events."""
    X, y = made_up(50, 100_000)
    track = Track("aucro", AUCRO(), [AUC()])
    names = tuple(f"x{j}" for j in range(50))
    for i in range(0, len(X), 1000):
        track.measure(track.test_then_learn(names, X[i : i + 1000], y[i : i + 1000]))
    yield "model of 50 features", track.learner.state
    yield "the same and its exact AUC of 100,000", track.state


def checkpoint(settings):
    """Taking the state, packing, writing, both fsyncs, the rename, and removing the one before."""
    for number, (title, state) in enumerate(states()):
        folder = CheckpointFolder(settings.work / f"checkpoints-{number}", keep=2)
        took, cpu = [], []
        for k in range(CHECKPOINTS if settings.rows > 100_000 else 5):
            began, began_cpu = time.perf_counter(), time.process_time()
            saved = Checkpoint(k, {}, (Position("rows.csv", offset=k),), nest("track/0", state()))
            size = folder.save(saved).stat().st_size
            took.append(time.perf_counter() - began)
            cpu.append(time.process_time() - began_cpu)
        p95 = float(np.percentile(took, 95))
        yield Row(
            f"checkpoint, {title}", "one second", f"{statistics.median(took) * 1e3:.2f} ms", "1000 ms",
            took, MOST_SHARE, at_most=True, unit="s",
            note=f"{size / 1024:.0f} KiB, p95 {p95 * 1e3:.2f} ms, processor {statistics.median(cpu) * 1e3:.2f} ms",
        )  # fmt: skip


# Memory


def resident_mib(pid):
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0.0  # the process has ended


def offset_of(pid, path):
    """Return how far the process has read into the open file, or None where it has not opened it."""
    for link in Path(f"/proc/{pid}/fd").iterdir():
        try:
            if link.readlink() == path:
                return int(Path(f"/proc/{pid}/fdinfo/{link.name}").read_text().split()[1])
        except OSError:
            continue  # closed in between
    return None


def memory(settings):
    """One run over many files: names of their own, the same content, since 10 M rows are 1.9 GB."""
    write_files(settings, ["csv"])
    whole = settings.work / "rows.csv"
    n_events = settings.rows * settings.memory_files
    for k in range(settings.memory_files):
        (settings.work / f"part-{k:02d}.csv").hardlink_to(whole)
    job = settings.work / "memory.toml"
    job.write_text(JOB)
    command = [sys.executable, "-m", "streamlearn.runtime.cli", "run", str(job), "--fresh", "--json"]
    samples = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        began = time.perf_counter()
        while process.poll() is None:
            samples.append((events_read(process.pid, settings, whole), resident_mib(process.pid)))
            time.sleep(SAMPLE_S)
        seconds = time.perf_counter() - began
        last = process.stdout.read().splitlines()[-1]
    report = json.loads(last)["report"]
    assert report["events"] == n_events, report["events"]
    early = [mib for events, mib in samples if 0 < events <= settings.rows]
    late = [mib for events, mib in samples if events > settings.rows]
    title = f"memory of {n_events:,} events x {WIDTH}"
    auc = report["learners"][0]["metrics"]["auc"]
    peak, first = max(early + late), max(early)
    rate = f"{n_events / seconds / 1e6:.2f} M/s"
    note = f"{len(samples)} samples, checkpoints every second"
    yield Row(
        title, "limit", f"{peak:.0f} MiB", f"{MEMORY_MIB:.0f} MiB", [peak], MEMORY_MIB, True, "MiB", auc, note=note
    )
    growth = [max(late) / first]
    yield Row(title, f"most in the first {settings.rows:,}", f"{max(late):.0f} MiB", f"{first:.0f} MiB", growth, GROWTH,
              at_most=True, auc=auc, note=rate)  # fmt: skip


def events_read(pid, settings, whole):
    """Return about how many events have been read, by the open part and the place in it."""
    for k in range(settings.memory_files):
        offset = offset_of(pid, settings.work / f"part-{k:02d}.csv")
        if offset is not None:
            return int(settings.rows * (k + offset / whole.stat().st_size))
    return 0


CASES = {"checkpoint": checkpoint, "memory": memory}
