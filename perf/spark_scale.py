"""Past one machine, measured and planned: time, overhead of a round, bytes moved, what the driver holds, a cost model.

python perf/spark_scale.py [--rows N] [--features P] [--files F] [--data FOLDER] [--engine spark|local] [--out FOLDER]
    [--only STEP ...] [--fresh] [--quick]

Rows are written as Parquet in pieces below a temporary folder, then learned by AUCRO (all statistics, merged exactly):
by one process, by two worker processes, and by a Spark cluster of two executors of one core. Seconds are of the clock
and, in brackets, of the processors of this process and all that it started: on a busy machine the second says more.
Then: empty rounds; the bytes of a packed estimate by width and rows; a merge of 1,000 estimates, with its memory; and
what these numbers mean for 1,000 partitions of 10,000,000,000 rows together.

Each step (STEPS below) is written to the folder when it is done, so that a run that was stopped goes on behind it; the
rows are removed when all that read them are done.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from cells import Cells
from robust_show import OUT
from spark_machines import Engines, processor_seconds
from spark_tasks import File, Nothing, learned

from streamlearn import AUCRO, ORLPCA, ORLRegressor
from streamlearn.learners.consensus import consensus
from streamlearn.learners.learner import Learner
from streamlearn.learners.merging import merge_learners
from streamlearn.learners.registry import from_state
from streamlearn.runtime.rounds import Executor, Part, packed_estimate, packed_model

N_ESTIMATES, N_ROWS, N_CORES = 1000, 10**10, 1000
WAYS = {
    "one": "one process",
    "pool": "two processes, a file a part",
    "spark": "Spark, a file a part",
    "frame": "Spark, a data frame",
}
STEPS = ["one", "pool", "spark", "rounds", "merges", "frame", "bytes"]
LEARNERS: dict[str, Callable[[], Learner]] = {
    "AUCRO": AUCRO,
    "ORLRegressor": lambda: ORLRegressor(mode="batches", batch_size=200),
    "ORLPCA": lambda: ORLPCA(n_components=2, batch_size=200),
}


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


def measured(work: Callable[[], tuple[Learner, Sequence[int]]], chosen: argparse.Namespace) -> dict:
    """Run one way of learning all rows; return its seconds, scores of some events, and the bytes of each estimate."""
    began, used = time.perf_counter(), processor_seconds()
    model, sizes = work()
    seconds, used = time.perf_counter() - began, processor_seconds() - used
    return {"seconds": seconds, "processors": used, "scores": scores(model, chosen.features), "bytes": list(sizes)}


def scores(model: Learner, p: int) -> list[float]:
    X = np.random.default_rng(5).normal(size=(200, p))
    return [model.score_one({f"x{j:03d}": value for j, value in enumerate(x)}) for x in X.tolist()]


def one(chosen: argparse.Namespace) -> dict:
    paths = files(chosen)
    learned(paths[:1])  # compiled, and the file's pages read

    def work() -> tuple[Learner, list[int]]:
        # Merged with nothing: its weights are those of where it ended, as those of a merged one.
        return merge_learners([learned(paths)], how="mean").model, []

    return measured(work, chosen)


def in_parts(executor: Executor, chosen: argparse.Namespace) -> dict:
    parts = [Part(k, path) for k, path in enumerate(files(chosen))]
    executor.run_round(File(), parts[:2])  # started, imported, compiled

    def work() -> tuple[Learner, list[int]]:
        states = executor.run_round(File(), parts)
        model = merge_learners([from_state(state) for state in states], how="mean").model
        return model, [len(packed_estimate(state)) for state in states]

    return measured(work, chosen)


def frame(executor: Executor, chosen: argparse.Namespace) -> dict:
    from streamlearn.adapters.spark import fit  # noqa: PLC0415 - an extra

    files(chosen)
    data = executor._session.read.parquet(str(chosen.data))
    n = data.rdd.getNumPartitions()

    def work() -> tuple[Learner, list[int]]:
        return fit(AUCRO(clip=None), data, label="y", merge="mean").model, []

    return {**measured(work, chosen), "partitions": n}


def whole(cells: dict[str, dict], chosen: argparse.Namespace) -> None:
    print(f"{chosen.rows:,} rows x {chosen.features} in {chosen.files} Parquet files, AUCRO; ratios are of processors")
    alone = cells["one"]
    for step, name in WAYS.items():
        if step in cells:
            cell = cells[step]
            off = np.abs(np.subtract(cell["scores"], alone["scores"])).max() / np.abs(alone["scores"]).max()
            ratio = cell["processors"] / alone["processors"]
            title = f"{name} of {cell['partitions']} partitions" if "partitions" in cell else name
            text = f"{title:36s} {cell['seconds']:7.1f} s ({cell['processors']:6.1f} s of processors, {ratio:.2f} x)"
            print(f"{text}; scores off by {off:.0e}")
    sizes = next(cells[step]["bytes"] for step in ("spark", "pool") if step in cells)
    print(f"a round moved {sum(sizes):,} bytes home in {len(sizes)} estimates of {min(sizes):,} to {max(sizes):,}\n")


def overhead(executor: Executor, repeats: int) -> dict:
    """Seconds of an empty round of 2, 10 and 50 parts."""
    found = {}
    for n in (2, 10, 50):
        parts = [Part(k, "") for k in range(n)]
        took = []
        for _ in range(repeats):
            began = time.perf_counter()
            executor.run_round(Nothing(), parts)
            took.append(time.perf_counter() - began)
        found[str(n)] = took
    return found


def per_part(rounds: dict[str, list[float]]) -> float:
    return max((float(np.median(rounds["50"])) - float(np.median(rounds["10"]))) / 40, 0.0)


def moved(chosen: argparse.Namespace) -> dict:
    """Bytes of a packed estimate with rows and ten times the rows, and of the model that goes out with a round."""
    found = {}
    for name, make in LEARNERS.items():
        for p in (chosen.features, 2 * chosen.features):
            blank = make()
            blank.begin([f"x{k:03d}" for k in range(p)])
            sizes = [len(packed_estimate(trained(make(), n, p).state())) for n in chosen.lengths]
            found[f"{name}, p={p}"] = [len(packed_model(blank.state())), *sizes]
    return found


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


def merges(chosen: argparse.Namespace) -> dict:
    """Merge many estimates: seconds of the processor, bytes held, peak of the merge above these."""
    n, found = chosen.estimates, {}
    for p in (chosen.features, 2 * chosen.features):
        for dim in (p, p * p):
            points = np.random.default_rng(2).normal(size=(n, dim))
            for how in ("median", "trimmed"):
                seconds, peak = spent(lambda points=points, how=how: consensus(points, np.ones(len(points)), how))
                found[f"vectors of {dim:,}, {how}"] = [seconds, points.nbytes, peak]
        some = [trained(AUCRO(), 4 * p, p, seed).state() for seed in range(20)]
        tracemalloc.start()
        models = [from_state(some[k % len(some)]) for k in range(n)]
        held = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        for how in ("mean", "trimmed", "median"):
            seconds, peak = spent(lambda models=models, how=how: merge_learners(models, how=how))
            found[f"AUCRO, p={p}, {how}"] = [seconds, held, peak]
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


def plan(cells: dict[str, dict], chosen: argparse.Namespace) -> None:
    """What the measurements mean for many rows: a row's time on each core, a part's on the driver, one merge."""
    p, n = chosen.features, chosen.estimates
    per_row = cells["one"]["processors"] / chosen.rows * 1e6
    part = per_part(cells["rounds"])
    seconds, held, peak = cells["merges"][f"AUCRO, p={p}, trimmed"]
    home = n * cells["bytes"][f"AUCRO, p={p}"][1]
    rows, parts = N_ROWS * per_row / 1e6 / N_CORES, n * part
    print(f"cost model: {N_ROWS:,} rows x {p}, {n:,} partitions, {N_CORES:,} cores of this kind, one round")
    print(f"rows   {per_row:.2f} us of the processor x {N_ROWS:.0e} / {N_CORES} cores  = {rows:9.0f} s")
    print(f"parts  {part:.4f} s x {n} on the driver ({chosen.engine}, as busy as now) = {parts:9.0f} s")
    print(f"merge  of {n} estimates: {home / 2**20:,.0f} MiB in, {(held + peak) / 2**20:,.0f} held = {seconds:9.1f} s")
    print(f"total                                                  = {rows + parts + seconds:9.0f} s", flush=True)


def files(chosen: argparse.Namespace) -> list[str]:
    """Return the paths of the rows; write what is not there."""
    done = chosen.data / "done"
    if not done.exists():
        chosen.data.mkdir(parents=True, exist_ok=True)
        write(chosen.data, chosen.files, chosen.rows, chosen.features)
        done.touch()
    return sorted(map(str, chosen.data.glob("*.parquet")))


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--features", type=int, default=50)
    parser.add_argument("--files", type=int, default=20)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--engine", choices=["spark", "local"], default="spark")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--only", nargs="*", choices=STEPS, default=STEPS)
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--quick", action="store_true")
    chosen = parser.parse_args()
    chosen.estimates, chosen.repeats, chosen.lengths = N_ESTIMATES, 5, (10_000, 100_000)
    if chosen.quick:
        chosen.rows, chosen.features, chosen.files, chosen.estimates, chosen.repeats = 20_000, 5, 4, 20, 2
        chosen.lengths = (1_000, 10_000)
    chosen.data = (chosen.data or Path(tempfile.gettempdir())) / f"streamlearn_scale_{chosen.rows}x{chosen.features}"
    return chosen


def steps(chosen: argparse.Namespace, engines: Engines) -> dict[str, Callable[[], dict]]:
    made: dict[str, Callable[[], dict]] = {
        "one": lambda: one(chosen),
        "pool": lambda: in_parts(engines["local"], chosen),
        "spark": lambda: in_parts(engines["spark"], chosen),
        "frame": lambda: frame(engines["spark"], chosen),
        "rounds": lambda: overhead(engines[chosen.engine], chosen.repeats),
        "bytes": lambda: moved(chosen),
        "merges": lambda: merges(chosen),
    }
    without = ("spark", "frame") if chosen.engine == "local" else ()
    return {name: made[name] for name in chosen.only if name not in without}


def show(found: dict[str, dict], chosen: argparse.Namespace) -> None:
    if "one" in found and ("pool" in found or "spark" in found):
        whole(found, chosen)
    if "rounds" in found:
        print(f"an empty round on {chosen.engine}, seconds of the clock: median (least to greatest)")
        for n, took in found["rounds"].items():
            print(f"{n:>3s} parts: {np.median(took):.3f} ({min(took):.3f} to {max(took):.3f})")
        print()
    if "bytes" in found:
        lengths = " and of ".join(f"{n:,}" for n in chosen.lengths)
        print(f"bytes of the blank model sent out, and of one part's estimate of {lengths} rows")
        for name, sizes in found["bytes"].items():
            print(f"{name:22s}", *(f"{size:12,}" for size in sizes))
        print()
    if "merges" in found:
        print(
            f"the driver, {chosen.estimates:,} estimates: seconds of the processor, bytes held, peak of the merge above"
        )
        for name, (seconds, held, peak) in found["merges"].items():
            print(f"{name:28s} {seconds:8.2f} {held:14,} {peak:14,}")
        print()
    if {"one", "rounds", "bytes", "merges"} <= found.keys():
        plan(found, chosen)


def main() -> None:
    chosen = options()
    cells = Cells("spark_scale", chosen.out)
    key = (chosen.engine, chosen.rows, chosen.features, chosen.files)
    if chosen.fresh:
        cells.forget(lambda one: one[:-1] == key and one[-1] in chosen.only)
    engines, found = Engines(), {}
    try:
        for name, work in steps(chosen, engines).items():
            found[name] = cells.get((*key, name), work)
            print(f"{name} is done", flush=True)
    finally:
        engines.close()
    if all(cells.find((*key, name)) for name in steps(chosen, engines) if name in WAYS):
        shutil.rmtree(chosen.data, ignore_errors=True)
    show(found, chosen)


if __name__ == "__main__":
    main()
