"""The published figures of distributed robust learning, on the engine: error by share of outliers, faults, poison.

python perf/spark_figures.py [figures|faults|poison ...] [--engine spark|local] [--machines K] [--features P]
    [--rows N] [--shares ...] [--repeats R] [--out FOLDER] [--quick]

Figure 1 (c) (d) and Table 1 of Feng, Xu and Mannor (2017), at 20 machines of 20 p rows each and p = 20, a fifth of both
published numbers, so that ten repeats end in minutes: a cluster of two Spark executors runs a round for each share.
DRL: geometric median of the machines' robust estimates; averaging: their mean ("division-averaging" there);
centralised: one task has all rows. Faults: 49 % of the machines are cut off after one step of their iteration; a tenth
of the answers arrive with the signs of 30 % of their entries turned. Poison: 45 % of the parts are somebody else's.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from robust_show import OUT, picture, table
from spark_machines import open_engine
from spark_tasks import Machine, Regression, truth_of

from streamlearn import geometric_median
from streamlearn.learners.merging import merge_learners
from streamlearn.learners.registry import from_state
from streamlearn.learners.robust.merge_subspace import merge_subspaces
from streamlearn.runtime.executor import LocalExecutor
from streamlearn.runtime.rounds import Executor, Part

SHARES = [0.0, 0.1, 0.2, 0.3, 0.4, 0.45, 0.5, 0.6]
LATE, TURNED, BAD = 0.49, 0.1, 0.4
N_PARTS, POISONED = 20, 9
Errors = dict[str, list[float]]


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("which", nargs="*", default=["figures", "faults", "poison"])
    parser.add_argument("--engine", choices=["spark", "local"], default="spark")
    parser.add_argument("--machines", type=int, default=20)
    parser.add_argument("--features", type=int, default=20)
    parser.add_argument("--rows", type=int, help="of a machine; 20 times the features")
    parser.add_argument("--shares", type=float, nargs="+", default=SHARES)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--quick", action="store_true")
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.machines, chosen.features, chosen.shares, chosen.repeats = 11, 8, [0.0, 0.4], 2
    chosen.rows = chosen.rows or 20 * chosen.features
    chosen.out.mkdir(exist_ok=True)
    return chosen


def answers(executor: Executor, task: Machine, chosen: argparse.Namespace, *, centralised: bool) -> list[dict]:
    """One round with the machines of all repeats."""
    machines = [*([-1] if centralised else []), *range(task.n_machines)]
    places = [(repeat, machine) for machine in machines for repeat in range(chosen.repeats)]
    parts = [Part(k, str(machine), repeat, chosen.rows) for k, (repeat, machine) in enumerate(places)]
    return executor.run_round(task, parts)


def error(task: Machine, repeat: int, value: np.ndarray) -> float:
    truth = truth_of(repeat, task.p, subspace=task.subspace)
    if task.subspace:
        return float(np.linalg.norm(value.T @ value - truth @ truth.T) / np.sqrt(truth.shape[1]))
    return float(np.linalg.norm(value - truth) / np.linalg.norm(truth))


def merged(points: np.ndarray, how: str) -> np.ndarray:
    if points.ndim == 3:
        return merge_subspaces(points, np.ones(len(points)), how, 0.5)[0]
    return geometric_median(points) if how == "median" else points.mean(axis=0)


def errors_of(task: Machine, found: list[dict], repeats: int) -> Errors:
    """Errors of the repeats by form."""
    errors: Errors = {}
    for repeat in range(repeats):
        mine = sorted((one for one in found if one["repeat"] == repeat), key=lambda one: one["machine"])
        central = [one for one in mine if one["machine"] < 0]
        for base in ("rc", "lts", "plain") if task.subspace else ("lts", "plain"):
            points = np.array([one[base] for one in mine if one["machine"] >= 0])
            forms = {f"DRL, {base}": "median", f"averaging, {base}": "mean"}
            for name, how in forms.items():
                errors.setdefault(name, []).append(error(task, repeat, merged(points, how)))
            for one in central:
                errors.setdefault(f"centralised {base}", []).append(error(task, repeat, one[base]))
    return errors


def figures(executor: Executor, chosen: argparse.Namespace) -> None:
    """Figure 1 (c) PCA and (d) regression; and the same outliers held by 45 % of the machines."""
    for letter, subspace in (("c", True), ("d", False)):
        for concentrated in (False, True):
            lines: Errors = {}
            spreads: Errors = {}
            for share in chosen.shares:
                task = Machine(subspace, share, chosen.features, chosen.machines, concentrated)
                found = answers(executor, task, chosen, centralised=True)
                for name, values in errors_of(task, found, chosen.repeats).items():
                    lines.setdefault(name, []).append(float(np.mean(values)))
                    spreads.setdefault(name, []).append(float(np.std(values)))
            where = "in 45 % of the machines" if concentrated else "in all machines"
            what = "PCA" if subspace else "regression"
            title = f"({letter}) {what}, p={chosen.features}, {chosen.machines} machines of {chosen.rows} rows"
            title = f"{title}, outliers {where}, {chosen.repeats} repeats"
            both = [row for name in lines for row in ((name, lines[name]), ("  standard deviation", spreads[name]))]
            table(f"{title}: mean error by share", [f"{share:.2f}" for share in chosen.shares], both)
            name = f"spark_{'pca' if subspace else 'regression'}{'_concentrated' if concentrated else ''}.png"
            picture(chosen.out / name, title, chosen.shares, list(lines.items()), "share of outliers")


def faults(executor: Executor, chosen: argparse.Namespace) -> None:
    """Table 1: latency and errors of communication at 40 % outliers."""
    late, turned = int(LATE * chosen.machines), max(int(TURNED * chosen.machines), 1)
    for subspace in (True, False):
        lines: list[tuple[str, list[float]]] = []
        for fault, extra in (
            ("no fault", {}),
            ("latency", {"late": late}),
            ("communication", {"turned": turned}),
        ):
            task = Machine(subspace, BAD, chosen.features, chosen.machines, **extra)
            found = errors_of(task, answers(executor, task, chosen, centralised=False), chosen.repeats)
            for name, values in found.items():
                lines.append((f"{fault}: {name}", [np.mean(values), np.std(values), min(values), max(values)]))
        setting = f"p={chosen.features}, {chosen.machines} machines, {BAD:.0%} outliers, {chosen.repeats} repeats"
        title = f"Table 1, {'PCA' if subspace else 'regression'}, {setting}: error"
        table(title, ["mean", "std", "least", "greatest"], lines)


def poison(executor: Executor, chosen: argparse.Namespace) -> None:
    """Merged regressions with 45 % of the parts poisoned; errors as multiples of the clean one by the mean."""
    p, rows = chosen.features, 40 * chosen.features
    parts = [Part(k, "rows", repeat, rows) for repeat in range(chosen.repeats) for k in range(N_PARTS)]
    numbered = [Part(k, one.partition, one.begin, one.end) for k, one in enumerate(parts)]
    lines: list[tuple[str, list[float]]] = []
    for kind in ("turned", "far", "near"):
        both = {}
        for name, n_poisoned in (("clean", 0), ("poisoned", POISONED)):
            task = Repeated(Regression(p, n_poisoned, kind, batch=10 * p))
            both[name] = [from_state(one) for one in executor.run_round(task, numbered)]
        for how in ("mean", "median", "trimmed"):
            off = {name: [] for name in both}
            for repeat in range(chosen.repeats):
                mine = slice(repeat * N_PARTS, (repeat + 1) * N_PARTS)
                truth = truth_of(repeat, p, subspace=False)
                for name, models in both.items():
                    found = merge_learners(models[mine], how=how).model.coef_
                    off[name].append(float(np.linalg.norm(found - truth) / np.linalg.norm(truth)))
            ratio = np.divide(off["poisoned"], off["clean"])
            values = [np.mean(off["clean"]), np.mean(off["poisoned"]), np.median(ratio), ratio.min(), ratio.max()]
            lines.append((f"{kind}: {how}", values))
    title = f"ORLRegressor, p={p}, {N_PARTS} parts of {rows} rows, {POISONED} poisoned, {chosen.repeats} repeats"
    table(title, ["clean", "poisoned", "ratio", "least", "greatest"], lines)


class Repeated:
    """Numbers the parts within their repeat: what a part is depends on its place there."""

    def __init__(self, task: Regression) -> None:
        self.task = task

    def estimate(self, part: Part, model: object) -> dict:
        return self.task.estimate(Part(part.index % N_PARTS, part.partition, part.begin, part.end), model)


def main() -> None:
    chosen = options()
    runs: dict[str, Callable[[Executor, argparse.Namespace], None]] = {
        "figures": figures,
        "faults": faults,
        "poison": poison,
    }
    # A machine's estimate takes milliseconds here: a Spark task takes many.
    executor = LocalExecutor(2) if chosen.engine == "local" else open_engine(slices=8)
    try:
        for which in chosen.which:
            began = time.perf_counter()
            runs[which](executor, chosen)
            print(f"{which} on {chosen.engine}: {time.perf_counter() - began:.0f} s of the clock\n", flush=True)
    finally:
        executor.close()


if __name__ == "__main__":
    main()
