"""ORL-PCA at the published size: 1,000,000 rows of 100 features in 100 batches, a fifth of them bad.

python perf/robust_kernel.py [n_batches]

Beside it the same algorithm with NumPy's selection per pair of columns, in the same run. Rows are made outside the
measured time.
"""

from __future__ import annotations

import resource
import sys
import time

import numba
import numpy as np

from streamlearn import ORLPCA
from streamlearn.learners.robust.blas import one_blas_thread

P, D, N_ROWS, BAD = 100, 5, 10_000, 0.2


def batches(n_batches: int):
    rng = np.random.default_rng(0)
    truth = np.linalg.qr(rng.normal(size=(P, D)))[0]
    yield truth
    for _ in range(n_batches):
        X = rng.normal(size=(N_ROWS, D)) @ truth.T + rng.normal(size=(N_ROWS, P))
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


def main() -> None:
    n_batches = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    stream = batches(n_batches)
    truth = next(stream)
    warm = ORLPCA(n_components=D, batch_size=N_ROWS, base="rc", trim=BAD)
    warm.learn_many(np.random.default_rng(1).normal(size=(N_ROWS, P))).components_  # noqa: B018 - compiles
    model = warm.clone()
    wall = cpu = numpy_wall = 0.0
    total, n_numpy = np.zeros((P, P)), 0
    for k, X in enumerate(stream):
        t, c = time.perf_counter(), time.process_time()
        model.learn_many(X)
        wall, cpu = wall + time.perf_counter() - t, cpu + time.process_time() - c
        if k < max(n_batches // 20, 2):  # the same time for every batch: a few are enough
            t = time.perf_counter()
            with one_blas_thread():
                total += numpy_projector(X, round(BAD * N_ROWS))
            numpy_wall, n_numpy = numpy_wall + time.perf_counter() - t, n_numpy + 1
    t = time.perf_counter()
    components = model.components_
    wall += time.perf_counter() - t
    scaled = numpy_wall / n_numpy * n_batches
    pairs = P * (P + 1) // 2 * n_batches
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{n_batches} batches of {N_ROWS} x {P}, {numba.get_num_threads()} threads")
    print(
        f"ORLPCA(base='rc')  wall {wall:7.2f} s  cpu {cpu:7.2f} s  {cpu / pairs * 1e6:5.1f} us/pair (cpu, all included)"
    )
    print(f"NumPy argpartition wall {scaled:7.2f} s  (from {n_numpy} batches)   ratio {scaled / wall:.1f}x")
    print(f"subspace error {error(components.T @ components, truth):.4f}   peak memory of the process {peak:.0f} MB")


if __name__ == "__main__":
    main()
