"""The published simulations: errors by batch and by share of outliers, breakdown and drift.

python perf/robust_figures.py regression|pca|breakdown|drift [--batches T] [--shares 0.2 0.4] [--features P] [--quick]

Each prints tables and writes pictures to perf/out/. "Distributed" is one machine a batch, all at once. Setting of Feng,
Xu and Mannor (2017): standard normal x, noise of variance 1, outliers uniform on [-10, 10] with the sign of the
response turned; errors relative. "Concentrated" puts the same number of outliers into as few batches as hold them, 45 %
of all at least. Isotropic outliers hardly separate the methods in PCA, so coherent ones (all in one wrong subspace)
stand beside them.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from robust_show import options, picture, spent, table

from streamlearn import GeometricMedian, geometric_median
from streamlearn.learners.robust.filters import ProximalFilter
from streamlearn.learners.robust.lts import LeastTrimmedSquaresFitter
from streamlearn.learners.robust.projectors import ProjectorRecursion, ProjectorWindow
from streamlearn.learners.robust.subspace import SubspaceFitter, top_eigenvectors


def bad_rows(rng: np.random.Generator, n_batches: int, size: int, share: float, concentrated: bool) -> list[np.ndarray]:
    """Which rows of each batch are bad."""
    if not concentrated:
        return [rng.random(size) < share for _ in range(n_batches)]
    counts = np.zeros(n_batches, dtype=int)
    chosen = rng.permutation(n_batches)[: min(max(int(np.ceil(share * n_batches)), int(0.45 * n_batches)), n_batches)]
    if share > 0:
        counts[chosen] = min(round(share * n_batches * size / len(chosen)), size)
    return [np.arange(size) < c for c in counts]


def regression_batches(rng: np.random.Generator, theta: np.ndarray, size: int, wrong: list[np.ndarray]):
    """Rows and targets of each batch."""
    p = len(theta)
    for bad in wrong:
        X = rng.normal(size=(size, p))
        X[bad] = rng.uniform(-10, 10, size=(bad.sum(), p))
        yield X, np.where(bad, -1.0, 1.0) * (X @ theta) + rng.normal(size=size)


def regression(chosen: argparse.Namespace) -> None:
    p, size, n_batches, start = chosen.features, 20 * chosen.features, chosen.batches, time.process_time()
    for concentrated in (False, True):
        kind = "concentrated" if concentrated else "uniform"
        lines: dict[str, list[float]] = {}
        for share in chosen.shares:
            rng = np.random.default_rng(1)
            theta = rng.normal(size=p)
            fitter = LeastTrimmedSquaresFitter()
            wrong = bad_rows(rng, n_batches, size, share, concentrated)
            data = list(regression_batches(rng, theta, size, wrong))
            robust = np.array([fitter.fit(X, y).theta[1:] for X, y in data])
            plain = np.array([np.linalg.lstsq(X, y, rcond=None)[0] for X, y in data])
            X, y = np.concatenate([X for X, _ in data]), np.concatenate([y for _, y in data])
            found = {
                "ORL, window": GeometricMedian().learn_many(robust).median_,
                "ORL, recursion": GeometricMedian(window=None).learn_many(robust).median_,
                "average of robust": robust.mean(axis=0),
                "distributed, all robust": geometric_median(robust),
                "median of least squares": geometric_median(plain),
                "average of least squares": plain.mean(axis=0),
                "centralised robust": LeastTrimmedSquaresFitter().fit(X, y).theta[1:],
                "centralised least squares": np.linalg.lstsq(X, y, rcond=None)[0],
            }
            for name, value in found.items():
                lines.setdefault(name, []).append(float(np.linalg.norm(value - theta) / np.linalg.norm(theta)))
            if share in (0.2, 0.4):
                by_batch(chosen, robust, plain, theta, f"{kind}_{share:.2f}")
        title = f"regression, p={p}, b={size}, T={n_batches}, {kind}: relative error by share of outliers"
        table(title, [f"{share:.2f}" for share in chosen.shares], list(lines.items()))
        picture(chosen.out / f"robust_regression_{kind}.png", title, chosen.shares, list(lines.items()), "share bad")
    spent(start)


def by_batch(chosen: argparse.Namespace, robust: np.ndarray, plain: np.ndarray, theta: np.ndarray, kind: str) -> None:
    """Errors as the batches come in."""
    at = sorted({max(len(robust) * k // 10, 1) for k in range(1, 11)})
    forms = {"ORL, window": GeometricMedian(), "ORL, recursion": GeometricMedian(window=None)}
    lines: dict[str, list[float]] = {}
    done = 0
    for stop in at:
        values = {name: model.learn_many(robust[done:stop]).median_ for name, model in forms.items()}
        values["average of robust"] = robust[:stop].mean(axis=0)
        values["average of least squares"] = plain[:stop].mean(axis=0)
        for name, value in values.items():
            lines.setdefault(name, []).append(float(np.linalg.norm(value - theta) / np.linalg.norm(theta)))
        done = stop
    title = f"regression by batch, {kind.replace('_', ', share ')}"
    table(title, [str(k) for k in at], list(lines.items()))
    picture(chosen.out / f"robust_by_batch_{kind}.png", title, at, list(lines.items()), "batches")


def projector_error(components: np.ndarray, truth: np.ndarray) -> float:
    return float(np.linalg.norm(components.T @ components - truth @ truth.T) / np.sqrt(truth.shape[1]))


def held(subspaces: list[np.ndarray], window: int | None) -> np.ndarray:
    """The geometric median of subspaces: of the last ones, or by the recursion over all."""
    d, p = subspaces[0].shape
    ring = (
        ProjectorRecursion(d, ProximalFilter(15, None, None, False)) if window is None else ProjectorWindow(window, d)
    )
    ring.widen(p)
    for components in subspaces:
        ring.push(np.ascontiguousarray(components), np.ones(d))
    return ring.components()


def averaged(subspaces: list[np.ndarray]) -> np.ndarray:
    return top_eigenvectors(sum(c.T @ c for c in subspaces) / len(subspaces), len(subspaces[0]))


def pca_batches(rng: np.random.Generator, truth: np.ndarray, other: np.ndarray, wrong: list[np.ndarray], kind: str):
    """Rows of each batch: signal and noise of variance 1."""
    p, d = truth.shape
    for bad in wrong:
        X = rng.normal(size=(len(bad), d)) @ truth.T + rng.normal(size=(len(bad), p))
        if kind == "uniform":
            X[bad] = rng.uniform(-10, 10, size=(bad.sum(), p))
        else:
            X[bad] = 5 * rng.normal(size=(bad.sum(), d)) @ other.T + rng.normal(size=(bad.sum(), p))
        yield X


def pca(chosen: argparse.Namespace) -> None:
    p, d, size, n_batches, start = chosen.features, 5, 20 * chosen.features, chosen.batches, time.process_time()
    for kind in ("uniform", "coherent", "coherent, concentrated"):
        lines: dict[str, list[float]] = {}
        for share in chosen.shares:
            rng = np.random.default_rng(2)
            truth, other = (np.linalg.qr(rng.normal(size=(p, d)))[0] for _ in range(2))
            fitter = SubspaceFitter()
            wrong = bad_rows(rng, n_batches, size, share, "concentrated" in kind)
            data = list(pca_batches(rng, truth, other, wrong, kind))
            lts = [fitter.lts(X, d).components for X in data]
            rc = [fitter.rc(X, d, 0.5).components for X in data]
            plain = [top_eigenvectors(X.T @ X, d) for X in data]
            X = np.concatenate(data)
            results = {
                "ORL, lts, window": held(lts, 50),
                "ORL, rc (trim .5), window": held(rc, 50),
                "ORL, rc (trim .5), recursion": held(rc, None),
                "average of lts": averaged(lts),
                "average of rc": averaged(rc),
                "average of plain": averaged(plain),
                "distributed, all rc": held(rc, n_batches),
                "centralised rc": SubspaceFitter().rc(X, d, 0.5).components,
                "centralised plain": top_eigenvectors(X.T @ X, d),
            }
            for name, components in results.items():
                lines.setdefault(name, []).append(projector_error(components, truth))
        title = f"PCA, p={p}, d={d}, b={size}, T={n_batches}, {kind}: error of projectors by share of outliers"
        table(title, [f"{share:.2f}" for share in chosen.shares], list(lines.items()))
        name = "robust_pca_" + kind.replace(", ", "_") + ".png"
        picture(chosen.out / name, title, chosen.shares, list(lines.items()), "share bad")
    spent(start)


def breakdown(chosen: argparse.Namespace) -> None:
    """Share of bad estimates, far away and at one place, and how far each form moves."""
    rng = np.random.default_rng(3)
    shares, dim, n = np.arange(0.0, 0.61, 0.05), 20, 200
    good = rng.normal(size=(n, dim))
    lines: dict[str, list[float]] = {}
    for share in shares:
        X = np.where(rng.permutation(n)[:, None] < round(share * n), 1e4, good)
        forms = {
            "window of 50": GeometricMedian(),
            "window of all": GeometricMedian(window=n),
            "recursion": GeometricMedian(window=None),
            "recursion, averaged": GeometricMedian(window=None, averaged=True),
        }
        for name, model in forms.items():
            lines.setdefault(name, []).append(float(np.linalg.norm(model.learn_many(X).median_) / np.sqrt(dim)))
        lines.setdefault("mean", []).append(float(np.linalg.norm(X.mean(axis=0)) / np.sqrt(dim)))
        # Lemma 1 of the paper, about the good ones' median and their largest distance from it.
        centre = geometric_median(good)
        radius = np.linalg.norm(good - centre, axis=1).max()
        bound = (1 - share) / np.sqrt(1 - 2 * share) * radius if share < 0.499 else np.nan
        lines.setdefault("bound of Lemma 1", []).append(float(bound / np.sqrt(dim)))
    title = f"breakdown, {n} estimates of dimension {dim}, bad ones at 1e4"
    table(title, [f"{share:.2f}" for share in shares], list(lines.items()))
    picture(chosen.out / "robust_breakdown.png", title, list(shares), list(lines.items()), "share of bad estimates")


def drift(chosen: argparse.Namespace) -> None:
    """A truth that jumps half-way, with a fifth of the estimates bad."""
    rng = np.random.default_rng(4)
    n, dim = 400, 20
    truth = np.where(np.arange(n)[:, None] < n // 2, 0.0, 4.0) * np.ones(dim)
    X = truth + rng.normal(size=(n, dim))
    X[rng.random(n) < 0.2] = -100.0
    lines: dict[str, list[float]] = {}
    for name, params in (
        ("window of 50", {}),
        ("recursion, half-life 25", {"window": None, "half_life": 25.0}),
        ("recursion", {"window": None}),
    ):
        model = GeometricMedian(**params)
        for k in range(n):
            model.learn_one(X[k])
            if k % 25 == 24:
                off = np.linalg.norm(model.median_ - truth[k]) / np.sqrt(dim)
                lines.setdefault(name, []).append(float(off))
    at = list(range(25, n + 1, 25))
    table("a jump after 200 of 400 estimates, 20 % bad", [str(k) for k in at], list(lines.items()))
    picture(
        chosen.out / "robust_drift.png",
        "a jump after 200 of 400 estimates, 20 % bad",
        at,
        list(lines.items()),
        "estimates",
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    runs = {"regression": regression, "pca": pca, "breakdown": breakdown, "drift": drift}
    parser.add_argument("which", choices=list(runs))
    chosen = options(parser)
    runs[chosen.which](chosen)


if __name__ == "__main__":
    main()
