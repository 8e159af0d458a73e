"""ORL-PCA at the published size: 1,000,000 rows of 100 features in 100 batches, a fifth of them bad.

python perf/robust_kernel.py [--batches T] [--quick]

Beside it the same algorithm with NumPy's selection per pair of columns, in alternating turns of the same run and scaled
to all batches. Rows are made outside the measured time. The kernel alone runs on one thread, in its seconds of
processor time: where others work on the machine, and a core's turns are shared, only these and the ratio mean much.
Memory is the resident peak of the first two batches, over what there was before there was a model and a batch.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import numba
import numpy as np

from streamlearn import ORLPCA
from streamlearn.learners.robust.blas import one_blas_thread
from streamlearn.learners.robust.trimmed import TrimmedCovariance

P, D, N_ROWS, BAD = 100, 5, 10_000, 0.2
NUMPY_EVERY, KERNEL_EVERY = 20, 5


def batches(n_batches: int):
    rng = np.random.default_rng(0)
    truth = np.linalg.qr(rng.normal(size=(P, D)))[0]
    yield truth
    for _ in range(n_batches):
        with one_blas_thread():  # a second one would spin for tens of milliseconds, beside what is measured next
            X = rng.normal(size=(N_ROWS, D)) @ truth.T
        X += rng.normal(size=(N_ROWS, P))
        wrong = rng.random(N_ROWS) < BAD
        X[wrong] = rng.uniform(-10, 10, size=(wrong.sum(), P))
        yield X


def numpy_projector(X: np.ndarray, n_trim: int) -> np.ndarray:
    columns = np.ascontiguousarray((X - np.median(X, axis=0)).T)
    sigma = np.empty((P, P))
    keep = N_ROWS - n_trim
    for i in range(P):
        for j in range(i, P):
            q = columns[i] * columns[j]
            sigma[i, j] = sigma[j, i] = q[np.argpartition(np.abs(q), keep)[:keep]].mean()
    U = np.linalg.eigh(sigma)[1][:, -D:]
    return U @ U.T


def error(projector: np.ndarray, truth: np.ndarray) -> float:
    return float(np.linalg.norm(projector - truth @ truth.T) / np.sqrt(D))


def resident(field: str) -> int:
    """Bytes of this process by the kernel's own account; Linux alone gives it."""
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith(field)).split()[1]) * 1024


def memory() -> None:
    """Print the peak of one call, the batch included, in sizes of a batch."""
    rng = np.random.default_rng(2)
    model = ORLPCA(n_components=D, batch_size=N_ROWS, base="rc", trim=BAD)
    model.clone().learn_many(rng.normal(size=(N_ROWS, P)))  # compiles
    before = resident("VmRSS")
    X = rng.normal(size=(N_ROWS, P))
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    model.learn_many(X)
    rng.standard_normal(out=X)
    model.learn_many(X)
    print(f"{(resident('VmHWM') - before) / X.nbytes:.2f}")


def memory_elsewhere() -> float:
    """Return that of a fresh process which gives freed arrays back at once: else they count as well."""
    if sys.platform != "linux":
        return np.nan
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "200000"}
    command = [sys.executable, __file__, "--memory"]
    return float(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)


def kernel_seconds(covariance: TrimmedCovariance, X: np.ndarray) -> float:
    """Seconds of one thread for the covariance of a batch."""
    threads = numba.get_num_threads()
    numba.set_num_threads(1)
    start = time.thread_time()
    covariance.of(X, BAD)
    spent = time.thread_time() - start
    numba.set_num_threads(threads)
    return spent


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--batches", type=int, default=100)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--memory", action="store_true", help="the memory of one batch, and nothing else")
    chosen = parser.parse_args()
    if chosen.memory:
        memory()
        return
    n_batches = 3 if chosen.quick else chosen.batches
    stream = batches(n_batches)
    truth = next(stream)
    warm = ORLPCA(n_components=D, batch_size=N_ROWS, base="rc", trim=BAD)
    warm.learn_many(np.random.default_rng(1).normal(size=(N_ROWS, P))).components_  # noqa: B018 - compiles
    held = memory_elsewhere()
    model = warm.clone()
    each, wall, cpu = [], 0.0, 0.0
    numpy_wall, numpy_cpu, n_numpy = 0.0, 0.0, 0
    covariance, alone = TrimmedCovariance(), []
    for k, X in enumerate(stream):
        t, c = time.perf_counter(), time.process_time()
        model.learn_many(X)
        each.append(time.perf_counter() - t)
        wall, cpu = wall + each[-1], cpu + time.process_time() - c
        if k < 3 or k % KERNEL_EVERY == 0:
            alone.append(kernel_seconds(covariance, X))
        if k % NUMPY_EVERY == 0:  # the same work for every batch: a few are enough
            t, c = time.perf_counter(), time.process_time()
            with one_blas_thread():
                numpy_projector(X, round(BAD * N_ROWS))
            numpy_wall, n_numpy = numpy_wall + time.perf_counter() - t, n_numpy + 1
            numpy_cpu += time.process_time() - c
    t = time.perf_counter()
    components = model.components_
    wall += time.perf_counter() - t
    scaled = numpy_wall / n_numpy * n_batches
    pairs = P * (P + 1) // 2 * n_batches
    quick, usual = np.quantile(each, [0.1, 0.5]) * 1e3
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    print(f"{n_batches} batches of {N_ROWS} x {P}, {numba.get_num_threads()} threads, load {os.getloadavg()[0]:.1f}")
    print(
        f"ORLPCA(base='rc')   wall {wall:7.2f} s   cpu {cpu:7.2f} s   {cpu / pairs * 1e6:.1f} us of cpu a pair in all"
    )
    print(
        f"a batch             median {usual:.1f} ms, tenth {quick:.1f} ms: {quick * n_batches / 1e3:.2f} s undisturbed"
    )
    one = np.array(alone[1:]) / (P * (P + 1) // 2) * 1e6
    print(f"kernel, one thread  {np.median(one):.2f} us of cpu a pair (least {one.min():.2f}, most {one.max():.2f})")
    scaled_cpu = numpy_cpu / n_numpy * n_batches
    print(
        f"NumPy argpartition  wall {scaled:7.2f} s   cpu {scaled_cpu:7.2f} s   from {n_numpy} batches   "
        f"ratio of wall {scaled / wall:.1f}, of cpu {scaled_cpu / cpu:.1f}"
    )
    print(f"memory              {held:.2f} batches, the one handed in included; the process {peak:.0f} MB")
    print(f"subspace error      {error(components.T @ components, truth):.4f}")


if __name__ == "__main__":
    main()
