"""The published simulations: errors by batch and by share of outliers, distributed faults, breakdown and drift.

python perf/robust_figures.py regression|pca|faults|breakdown|drift [--batches T] [--shares 0.2 0.4] [--features P]

Each prints a table and writes robust_<name>.png to the present folder. Setting of Feng, Xu and Mannor (2017): standard
normal x, noise of variance 1, outliers uniform on [-10, 10] with the sign of the response turned; errors relative.
"Concentrated" puts the same number of outliers into as few batches as hold them. Isotropic outliers hardly separate the
methods in PCA, so coherent ones (all in one wrong subspace) stand beside them.
"""

from __future__ import annotations

import argparse

import numpy as np

from streamlearn import GeometricMedian, geometric_median
from streamlearn.learners.robust.lts import LeastTrimmedSquaresFitter
from streamlearn.learners.robust.projectors import ProjectorWindow
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


def table(title: str, columns: list[str], lines: list[tuple[str, list[float]]]) -> None:
    print(title)
    print(" " * 26, *(f"{name:>12s}" for name in columns))
    for name, values in lines:
        print(f"{name:26s}", *(f"{value:12.4f}" for value in values), flush=True)


def picture(name: str, title: str, x: list[float], lines: list[tuple[str, list[float]]], label: str) -> None:
    import matplotlib as mpl  # noqa: PLC0415 - an extra

    mpl.use("Agg")
    import matplotlib.pyplot as plt  # noqa: PLC0415

    figure, axes = plt.subplots(figsize=(7, 4.5))
    for which, values in lines:
        axes.plot(x, values, marker="o", markersize=3, label=which)
    axes.set(xlabel=label, ylabel="relative error", title=title, yscale="log")
    axes.legend()
    figure.tight_layout()
    figure.savefig(f"robust_{name}.png", dpi=120)


def regression(options: argparse.Namespace) -> None:
    p, size, n_batches = options.features, 20 * options.features, options.batches
    for concentrated in (False, True):
        lines: dict[str, list[float]] = {}
        for share in options.shares:
            rng = np.random.default_rng(1)
            theta = rng.normal(size=p)
            fitter = LeastTrimmedSquaresFitter()
            robust, plain = [], []
            for wrong in bad_rows(rng, n_batches, size, share, concentrated):
                X = rng.normal(size=(size, p))
                X[wrong] = rng.uniform(-10, 10, size=(wrong.sum(), p))
                y = np.where(wrong, -1.0, 1.0) * (X @ theta) + rng.normal(size=size)
                robust.append(fitter.fit(X, y).theta[1:])
                plain.append(np.linalg.lstsq(X, y, rcond=None)[0])
            found = {
                "ORL, window": GeometricMedian().learn_many(np.array(robust)).median_,
                "ORL, recursion": GeometricMedian(window=None).learn_many(np.array(robust)).median_,
                "average of robust": np.mean(robust, axis=0),
                "distributed (all at once)": geometric_median(robust),
                "median of least squares": geometric_median(plain),
                "average of least squares": np.mean(plain, axis=0),
            }
            for name, value in found.items():
                lines.setdefault(name, []).append(float(np.linalg.norm(value - theta) / np.linalg.norm(theta)))
            by_batch(np.array(robust), np.array(plain), theta, share, concentrated)
        kind = "concentrated" if concentrated else "uniform"
        title = f"regression, p={p}, b={size}, T={n_batches}, {kind}"
        table(title, [f"{share:.2f}" for share in options.shares], list(lines.items()))
        picture(f"regression_{kind}", title, options.shares, list(lines.items()), "share of outliers")


def by_batch(robust: np.ndarray, plain: np.ndarray, theta: np.ndarray, share: float, concentrated: bool) -> None:
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
    kind = "concentrated" if concentrated else "uniform"
    title = f"regression by batch, share {share:.2f} {kind}"
    table(title, [str(k) for k in at], list(lines.items()))
    picture(f"by_batch_{kind}_{share:.2f}", title, at, list(lines.items()), "batches")


def projector_error(components: np.ndarray, truth: np.ndarray) -> float:
    return float(np.linalg.norm(components.T @ components - truth @ truth.T) / np.sqrt(truth.shape[1]))


def held(subspaces: list[np.ndarray], window: int) -> np.ndarray:
    ring = ProjectorWindow(window, len(subspaces[0]))
    ring.widen(subspaces[0].shape[1])
    for components in subspaces:
        ring.push(components, np.ones(len(components)))
    return ring.components()


def averaged(subspaces: list[np.ndarray]) -> np.ndarray:
    return top_eigenvectors(sum(c.T @ c for c in subspaces) / len(subspaces), len(subspaces[0]))


def pca(options: argparse.Namespace) -> None:
    p, d, size, n_batches = options.features, 5, 20 * options.features, options.batches
    for kind in ("uniform", "coherent", "coherent, concentrated"):
        lines: dict[str, list[float]] = {}
        for share in options.shares:
            rng = np.random.default_rng(2)
            truth, other = (np.linalg.qr(rng.normal(size=(p, d)))[0] for _ in range(2))
            fitter, total = SubspaceFitter(), np.zeros((p, p))
            found: dict[str, list[np.ndarray]] = {"lts": [], "rc": [], "plain": []}
            for wrong in bad_rows(rng, n_batches, size, share, "concentrated" in kind):
                X = rng.normal(size=(size, d)) @ truth.T + rng.normal(size=(size, p))
                if kind == "uniform":
                    X[wrong] = rng.uniform(-10, 10, size=(wrong.sum(), p))
                else:
                    far = 5 * rng.normal(size=(wrong.sum(), d)) @ other.T
                    X[wrong] = far + rng.normal(size=(wrong.sum(), p))
                total += X.T @ X
                found["lts"].append(fitter.lts(X, d).components)
                found["rc"].append(fitter.rc(X, d, 0.5).components)
                found["plain"].append(top_eigenvectors(X.T @ X, d))
            results = {
                "ORL, lts": held(found["lts"], 50),
                "ORL, rc (trim .5)": held(found["rc"], 50),
                "average of lts": averaged(found["lts"]),
                "average of rc": averaged(found["rc"]),
                "average of plain": averaged(found["plain"]),
                "plain, all rows": top_eigenvectors(total, d),
            }
            for name, components in results.items():
                lines.setdefault(name, []).append(projector_error(components, truth))
        title = f"PCA, p={p}, d={d}, b={size}, T={n_batches}, {kind}"
        table(title, [f"{share:.2f}" for share in options.shares], list(lines.items()))
        picture("pca_" + kind.replace(", ", "_"), title, options.shares, list(lines.items()), "share of outliers")


def faults(options: argparse.Namespace) -> None:
    """Machines that did not finish, and answers that arrive spoiled; ten repeats."""
    p, d, size, n_batches, share = options.features, 5, 20 * options.features, options.batches, 0.4
    errors: dict[str, list[float]] = {}
    for repeat in range(10):
        rng = np.random.default_rng(repeat)
        truth, fitter = np.linalg.qr(rng.normal(size=(p, d)))[0], SubspaceFitter()
        found = []
        for _ in range(n_batches):
            X = rng.normal(size=(size, d)) @ truth.T + rng.normal(size=(size, p))
            wrong = rng.random(size) < share
            X[wrong] = rng.uniform(-10, 10, size=(wrong.sum(), p))
            found.append(fitter.rc(X, d, share).components)
        late = [np.linalg.qr(rng.normal(size=(p, d)))[0].T for _ in range(int(0.49 * n_batches))]
        turned = [np.where(rng.random(c.shape) < 0.3, -c, c) for c in found[: n_batches // 10]]
        turned = [np.ascontiguousarray(np.linalg.qr(c.T)[0].T) for c in turned]
        for name, answers in (
            ("no fault", found),
            ("latency", [np.ascontiguousarray(c) for c in late] + found[len(late) :]),
            ("communication", turned + found[len(turned) :]),
        ):
            errors.setdefault(f"{name}: geometric median", []).append(projector_error(held(answers, n_batches), truth))
            errors.setdefault(f"{name}: average", []).append(projector_error(averaged(answers), truth))
    title = f"distributed PCA, p={p}, {n_batches} machines of {size} rows, {share:.0%} outliers, 10 repeats"
    table(title, ["mean", "std"], [(name, [np.mean(v), np.std(v)]) for name, v in errors.items()])
    picture("faults", title, list(range(10)), list(errors.items()), "repeat")


def breakdown(options: argparse.Namespace) -> None:
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
    picture("breakdown", title, list(shares), list(lines.items()), "share of bad estimates")


def drift(options: argparse.Namespace) -> None:
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
    picture("drift", "a jump after 200 of 400 estimates, 20 % bad", at, list(lines.items()), "estimates")


def main() -> None:
    parser = argparse.ArgumentParser()
    runs = {"regression": regression, "pca": pca, "faults": faults, "breakdown": breakdown, "drift": drift}
    parser.add_argument("which", choices=list(runs))
    parser.add_argument("--batches", type=int, default=100)
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--shares", type=float, nargs="+", default=[0.0, 0.1, 0.2, 0.3, 0.4, 0.45, 0.5, 0.6])
    options = parser.parse_args()
    runs[options.which](options)


if __name__ == "__main__":
    main()
