"""Past one machine, measured and planned: time, overhead of a round, bytes moved, what the driver holds, a cost model.

python perf/spark_scale.py [--rows N] [--features P] [--files F] [--data FOLDER] [--engine spark|local] [--quick]

Rows are written as Parquet in pieces below a temporary folder, then learned by AUCRO (all statistics, merged exactly):
by one process, by two worker processes, and by a Spark cluster of two executors of one core. Seconds are of the clock
and, in brackets, of the processors of this process and all that it started: on a busy machine the second says more.
Then: empty rounds; the bytes of a packed estimate by width and rows; a merge of 1,000 estimates, with its memory; and
what these numbers mean for 1,000 partitions of 10,000,000,000 rows together.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from spark_machines import open_engine, processor_seconds

from streamlearn import AUCRO, ORLPCA, ORLRegressor, geometric_median
from streamlearn.learners.learner import Learner
from streamlearn.learners.merging import merge_learners
from streamlearn.learners.registry import from_state
from streamlearn.runtime.executor import LocalExecutor
from streamlearn.runtime.rounds import Executor, Part, packed_estimate, packed_model

AT_ONCE = 16_384
N_ESTIMATES, N_ROWS, N_CORES = 1000, 10**10, 1000


@dataclass(frozen=True)
class File:
    """AUCRO on one Parquet file; the estimate is its state."""

    def estimate(self, part: Part, model: object) -> dict:
        return learned([part.partition]).state()


@dataclass(frozen=True)
class Nothing:
    """A round that costs what rounds cost."""

    def estimate(self, part: Part, model: object) -> dict:
        return {"part": part.index}


def learned(paths: list[str]) -> AUCRO:
    model = AUCRO(clip=None)
    for path in paths:
        for batch in pq.ParquetFile(path).iter_batches(AT_ONCE):
            table = pa.Table.from_batches([batch])
            model.learn_many(table.drop_columns(["y"]), table.column("y").to_numpy())
    return model


def write(folder: Path, n_files: int, n_rows: int, p: int) -> list[str]:
    """Write rows in pieces; return the paths."""
    paths = []
    truth = np.random.default_rng(0).normal(size=p)
    for k in range(n_files):
        rng = np.random.default_rng([1, k])
        X = rng.normal(size=(n_rows // n_files, p))
        y = X @ truth + 3.0 * rng.normal(size=len(X)) > 1.0
        columns = {f"x{j:03d}": X[:, j] for j in range(p)} | {"y": y.astype(np.int64)}
        paths.append(str(folder / f"{k:03d}.parquet"))
        pq.write_table(pa.table(columns), paths[-1], row_group_size=1 << 17, use_dictionary=False)
    return paths


def timed(work: Callable[[], Learner]) -> tuple[Learner, float, float]:
    began, used = time.perf_counter(), processor_seconds()
    found = work()
    return found, time.perf_counter() - began, processor_seconds() - used


def whole(paths: list[str], rows: int, p: int, engines: dict[str, Executor]) -> float:
    """Learn all rows in three ways; return the microseconds of one process for a row."""
    learned(paths[:1])  # compiled, and the file's pages read: the others find both done
    alone, clock, processor = timed(lambda: learned(paths))
    per_row = processor / rows * 1e6
    alone = merge_learners([alone], how="mean").model  # its weights are solved where it ended
    print(f"{rows:,} rows x {p} in {len(paths)} Parquet files, AUCRO")
    line = "{:34s} {:8.1f} s ({:6.1f} s of processors), {:5.2f} x one process; weights off by {:.0e}"
    print(line.format("one process", clock, processor, 1.0, 0.0), flush=True)
    parts = [Part(k, path) for k, path in enumerate(paths)]
    for name, executor in engines.items():
        executor.run_round(Nothing(), parts[:2])  # started, imported

        def work(executor: Executor = executor) -> Learner:
            models = [from_state(state) for state in executor.run_round(File(), parts)]
            return merge_learners(models, how="mean").model

        model, took, used = timed(work)
        off = distance(model, alone)
        print(line.format(f"{name}, a file a part", took, used, took / clock, off), flush=True)
    if "spark" in engines:
        frames(paths, engines["spark"], alone, clock, line)
    return per_row


def frames(paths: list[str], executor: Executor, alone: Learner, clock: float, line: str) -> None:
    from streamlearn.adapters.spark import fit  # noqa: PLC0415 - an extra

    session = executor._session
    data = session.read.parquet(str(Path(paths[0]).parent))
    n = data.rdd.getNumPartitions()
    model, took, used = timed(lambda: fit(AUCRO(clip=None), data, label="y", merge="mean").model)
    off = distance(model, alone)
    print(line.format(f"spark, data frame of {n} partitions", took, used, took / clock, off), flush=True)


def distance(model: Learner, other: Learner) -> float:
    """Relative distance of the scores of some events."""
    X = np.random.default_rng(5).normal(size=(200, model.n_features))
    events = [dict(zip(sorted(model.feature_names), x, strict=True)) for x in X.tolist()]
    a, b = (np.array([one.score_one(event) for event in events]) for one in (model, other))
    return float(np.abs(a - b).max() / np.abs(b).max())


def overhead(engines: dict[str, Executor], repeats: int) -> dict[str, float]:
    """Seconds of an empty round of 2 and of 10 parts; return those of one more part."""
    print("\nan empty round, seconds of the clock: median (least to greatest)")
    found = {}
    for name, executor in engines.items():
        medians = []
        for n in (2, 10):
            parts = [Part(k, "") for k in range(n)]
            took = []
            for _ in range(repeats):
                began = time.perf_counter()
                executor.run_round(Nothing(), parts)
                took.append(time.perf_counter() - began)
            medians.append(float(np.median(took)))
            print(f"{name:10s} {n:3d} parts: {medians[-1]:.3f} ({min(took):.3f} to {max(took):.3f})", flush=True)
        found[name] = max((medians[1] - medians[0]) / 8, 0.0)
    return found


def moved(widths: list[int]) -> None:
    """Bytes of a packed estimate, and of the model that goes out with a round."""
    makers: dict[str, Callable[[], Learner]] = {
        "AUCRO": AUCRO,
        "ORLRegressor": lambda: ORLRegressor(mode="batches", batch_size=200),
        "ORLPCA": lambda: ORLPCA(n_components=2, batch_size=200),
    }
    print("\nbytes of one part's estimate (and of the blank model sent out), by width; then with ten times the rows")
    for name, make in makers.items():
        texts = []
        for p in widths:
            sizes = [len(packed_estimate(trained(make(), n, p).state())) for n in (10_000, 100_000)]
            blank = make()
            blank.begin([f"x{k:03d}" for k in range(p)])
            out = len(packed_model(blank.state()))
            texts.append(f"p={p}: {sizes[0]:,} ({out:,}); {sizes[1]:,}")
        print(f"{name:14s} {' | '.join(texts)}", flush=True)


def trained(model: Learner, rows: int, p: int, seed: int = 0) -> Learner:
    rng = np.random.default_rng(seed)
    for a in range(0, rows, 10_000):
        X = rng.normal(size=(min(rows - a, 10_000), p))
        y = X[:, 0] + rng.normal(size=len(X))
        if isinstance(model, ORLPCA):
            model.learn_many(X)
        else:
            model.learn_many(X, y > 0 if isinstance(model, AUCRO) else y)
    return model


def merges(n: int, widths: list[int]) -> dict[int, tuple[float, int]]:
    """Merge n estimates; return seconds and bytes of AUCRO's by width."""
    print(f"\nthe driver, with {n:,} estimates: seconds of the processor, bytes held, peak of the merge above these")
    found = {}
    for p in widths:
        for dim in (p, p * p):
            points = np.random.default_rng(2).normal(size=(n, dim))
            seconds, peak = spent(lambda points=points: geometric_median(points))
            print(
                f"geometric median of dimension {dim:7,}: {seconds:7.2f} s, {points.nbytes:13,}, {peak:13,}", flush=True
            )
        some = [trained(AUCRO(), 4 * p, p, seed) for seed in range(20)]
        states = [one.state() for one in some]
        tracemalloc.start()
        models = [from_state(states[k % len(states)]) for k in range(n)]
        held = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        for how in ("mean", "median"):
            seconds, peak = spent(lambda models=models, how=how: merge_learners(models, how=how))
            print(f"AUCRO, p={p}, {how}: {seconds:7.2f} s, {held:13,}, {peak:13,}", flush=True)
        found[p] = seconds, held + peak
    return found


def spent(work: Callable[[], object]) -> tuple[float, int]:
    began = time.process_time()
    work()
    seconds = time.process_time() - began
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return seconds, peak


def plan(per_row: float, per_part: float, merge: tuple[float, int], n: int, p: int) -> None:
    """What the measurements mean for many rows: a row's time on each core, a part's on the driver, one merge."""
    rows, parts, merging = N_ROWS * per_row / 1e6 / N_CORES, n * per_part, merge[0]
    print(f"\ncost model: {N_ROWS:,} rows x {p}, {n:,} partitions, {N_CORES:,} cores of this kind, one round")
    print(f"rows   {per_row:.2f} us x {N_ROWS:.0e} / {N_CORES} cores = {rows:9.0f} s")
    print(f"parts  {per_part:.3f} s x {n} on the driver     = {parts:9.0f} s")
    print(f"merge  of {n} estimates                = {merging:9.1f} s, {merge[1] / 2**20:,.0f} MiB at the driver")
    print(f"total                                   = {rows + parts + merging:9.0f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--features", type=int, default=50)
    parser.add_argument("--files", type=int, default=20)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--engine", choices=["spark", "local"], default="spark")
    parser.add_argument("--quick", action="store_true")
    chosen = parser.parse_args()
    n, widths, repeats = N_ESTIMATES, [chosen.features, 2 * chosen.features], 7
    if chosen.quick:
        chosen.rows, chosen.features, chosen.files, n, widths, repeats = 20_000, 5, 4, 20, [5, 10], 2
    p = chosen.features
    engines: dict[str, Executor] = {"local": LocalExecutor(2)}
    if chosen.engine == "spark":
        engines["spark"] = open_engine()
    try:
        with tempfile.TemporaryDirectory(dir=chosen.data) as folder:
            paths = write(Path(folder), chosen.files, chosen.rows, p)
            per_row = whole(paths, chosen.rows, p, engines)
        per_part = overhead(engines, repeats)[chosen.engine]
    finally:
        for executor in engines.values():
            executor.close()
    moved(widths)
    plan(per_row, per_part, merges(n, widths)[p], n, p)


if __name__ == "__main__":
    main()
