"""Files to a prequential AUC, whole processes: ours beside Vowpal Wabbit's own program and the bare reader."""

from __future__ import annotations

import importlib.util
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
from engine_row import SEED, Row, ratios, turns
from sklearn.metrics import roc_auc_score

WIDTH = 20
NAMES = [f"x{k}" for k in range(WIDTH)]
JOB = """
out = "out"
[source]
kind = "{kind}"
path = "{path}"
[features]
label = "label"
[[learner]]
name = "aucro"
[evaluate]
metrics = ["auc"]
curve = false
picture = false
"""
BARE = Path(__file__).parent / "bare_reader.py"


# Files: the same rows, six decimals, in each format


def write_files(settings, kinds):
    rng = np.random.default_rng(SEED)
    X = rng.normal(size=(settings.rows, WIDTH)).round(6)
    y = rng.random(settings.rows) < 1.0 / (1.0 + np.exp(0.5 - X @ (0.3 * rng.normal(size=WIDTH))))
    frame = pl.DataFrame(X, schema=NAMES).with_columns(pl.Series("label", y.astype(np.int8)))
    if "csv" in kinds:
        frame.write_csv(settings.work / "rows.csv")
    if "ndjson" in kinds:
        frame.write_ndjson(settings.work / "rows.ndjson")
    if "vw" in kinds:
        cells = [pl.format(f"{name}:{{}}", pl.col(name)) for name in NAMES]
        label = pl.when(pl.col("label") == 1).then(pl.lit("1 |")).otherwise(pl.lit("-1 |"))
        lines = frame.select(pl.concat_str([label, *cells], separator=" ").alias("line"))
        lines.write_csv(settings.work / "rows.vw", include_header=False, quote_style="never")
    return y


# Processes


class Command:
    """A program that is run again and again; the last run's output is kept."""

    def __init__(self, *words):
        self.words = [sys.executable, *map(str, words)]
        self.out = ""
        self.cpu_s = []

    def __call__(self, turn):
        before = os.times()
        began = time.perf_counter()
        # Words of this file alone.
        done = subprocess.run(self.words, check=True, capture_output=True, text=True, env=os.environ)
        seconds = time.perf_counter() - began
        after = os.times()
        self.out = done.stdout
        self.cpu_s.append(after.children_user + after.children_system - before.children_user - before.children_system)
        return seconds


def our_run(settings, kind):
    job = settings.work / f"{kind}.toml"
    job.write_text(JOB.format(kind=kind, path=settings.work / f"rows.{kind}"))
    return Command("-m", "streamlearn.runtime.cli", "run", job, "--fresh", "--json")


def report_of(command):
    """Return the report that a run printed last."""
    return json.loads(command.out.splitlines()[-1])["report"]


def vw_run(settings, *more):
    words = ("--loss_function", "logistic", "--quiet", "-d", settings.work / "rows.vw", *more)
    return Command("-m", "vowpalwabbit", *words)


def row(case, peer, mine, theirs, target, runs, **areas):
    cpu = {name: statistics.median(run.cpu_s[1:]) for name, run in runs.items()}
    texts = (f"{statistics.median(seconds):.2f} s" for seconds in (mine, theirs))
    ours, other = cpu.values()
    note = f"processor {ours:.2f} s / {other:.2f} s, {other / ours:.2f} x"
    return Row(case, peer, *texts, ratios(mine, theirs), target, note=note, extra={"processor_s": cpu}, **areas)


# Cases


def csv(settings):
    """The run, beside the program that gives the same forecasts, the same without giving them, and the bare reader."""
    with_vw = importlib.util.find_spec("vowpalwabbit") is not None
    y = write_files(settings, ["csv", "vw"] if with_vw else ["csv"])
    ours, bare = our_run(settings, "csv"), Command(BARE, "csv", settings.work / "rows.csv")
    peers = {"bare reader": bare}
    forecasts = settings.work / "forecasts.txt"
    if with_vw:
        peers |= {"VW with forecasts (-p)": vw_run(settings, "-p", forecasts), "VW, loss only": vw_run(settings)}
    for run in (ours, *peers.values()):
        run(-1)  # compiles, and brings the file into memory
    mine, theirs = turns(settings.repeats, ours, peers)
    auc = report_of(ours)["learners"][0]["metrics"]["auc"]
    case = f"CSV {settings.rows:,} x {WIDTH} to AUC, process"
    if with_vw:
        other = roc_auc_score(y, np.loadtxt(forecasts))
        for name in ("VW with forecasts (-p)", "VW, loss only"):
            run = {"ours": ours, name: peers[name]}
            yield row(case, name, mine, theirs[name], 1.5, run, auc=auc, peer_auc=other)
    yield row(case, "bare reader", mine, theirs["bare reader"], 0.5, {"ours": ours, "bare": bare}, auc=auc)
    yield without_start(case, settings, ours, bare)


def ndjson(settings):
    write_files(settings, ["ndjson"])
    ours, bare = our_run(settings, "ndjson"), Command(BARE, "ndjson", settings.work / "rows.ndjson")
    for run in (ours, bare):
        run(-1)
    mine, theirs = turns(settings.repeats, ours, {"bare": bare})
    auc = report_of(ours)["learners"][0]["metrics"]["auc"]
    case = f"NDJSON {settings.rows:,} x {WIDTH} to AUC, process"
    yield row(case, "bare reader", mine, theirs["bare"], 0.5, {"ours": ours, "bare": bare}, auc=auc)
    yield without_start(case, settings, ours, bare)


def without_start(case, settings, ours, bare):
    """The same rates by each process's own clock, from the first poll on: what long runs come to."""
    mine, theirs = [], []
    for turn in range(settings.repeats):
        ours(turn)
        bare(turn)
        mine.append(report_of(ours)["timing"]["seconds"])
        theirs.append(json.loads(bare.out)["seconds"])
    texts = (f"{statistics.median(seconds):.2f} s" for seconds in (mine, theirs))
    return Row(case.replace("process", "loop"), "bare reader, same clock", *texts, ratios(mine, theirs), 0.5)


CASES = {"csv": csv, "ndjson": ndjson}
