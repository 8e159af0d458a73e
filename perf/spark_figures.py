"""The published figures of distributed robust learning, on the engine: error by share of outliers, faults, poison.

python perf/spark_figures.py [figures|faults|poison ...] [--engine spark|local] [--machines K] [--features P]
    [--rows N] [--shares ...] [--repeats R] [--out FOLDER] [--fresh] [--quick]

Figure 1 (c) (d) and Table 1 of Feng, Xu and Mannor (2017), at 20 machines of 20 p rows each and p = 20, a fifth of both
published numbers, so that ten repeats end in minutes on a cluster of two Spark executors. A round has the machines of
all conditions of one repeat, since Spark needs tenths of a second for a task and a machine here a hundredth. What a
repeat found is written to the folder, so that a run that was stopped goes on behind it; --fresh begins anew.
DRL: geometric median of the machines' robust estimates; averaging: their mean ("division-averaging" there); trimmed:
what merges do unless told otherwise; centralised: one task has all rows. Faults: 49 % of the machines are cut off after
one step of their iteration; a tenth of the answers arrive with the signs of 30 % of their entries turned. Poison: 45 %
of the parts are somebody else's.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from cells import Cells
from robust_show import OUT, picture, table
from spark_machines import Engines, processor_seconds
from spark_tasks import Machine, Regression, Several, truth_of

from streamlearn import geometric_median
from streamlearn.learners.consensus import consensus
from streamlearn.learners.merging import merge_learners
from streamlearn.learners.registry import from_state
from streamlearn.learners.robust.merge_subspace import merge_subspaces
from streamlearn.runtime.rounds import Executor, Part
from streamlearn.snapshot import below

SHARES = [0.0, 0.1, 0.2, 0.3, 0.4, 0.45, 0.5, 0.6]
LATE, TURNED, BAD = 0.49, 0.1, 0.4
N_PARTS, POISONED = 20, 9
SLICES = 8
FORMS = {"DRL": "median", "averaging": "mean", "trimmed": "trimmed"}
Errors = dict[str, float]
Round = Callable[[Several, list[Part]], list[dict]]


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
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--quick", action="store_true")
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.machines, chosen.features, chosen.shares, chosen.repeats = 11, 8, [0.0, 0.4], 2
    chosen.rows = chosen.rows or 20 * chosen.features
    return chosen


def estimates(executor: Executor, tasks: Sequence, repeat: int, machines: Sequence[int], rows: int) -> list[list[dict]]:
    """One round with all machines of all conditions; return the answers of each, by machine."""
    places = [f"{condition}/{machine}" for machine in machines for condition in range(len(tasks))]
    parts = [Part(k, place, repeat, rows) for k, place in enumerate(places)]
    found: list[list[dict]] = [[] for _ in tasks]
    for one in executor.run_round(Several(tuple(tasks)), parts):
        found[one["condition"]].append(below("answer", one))
    return found


def error(task: Machine, repeat: int, value: np.ndarray) -> float:
    truth = truth_of(repeat, task.p, subspace=task.subspace)
    if task.subspace:
        return float(np.linalg.norm(value.T @ value - truth @ truth.T) / np.sqrt(truth.shape[1]))
    return float(np.linalg.norm(value - truth) / np.linalg.norm(truth))


def merged(points: np.ndarray, how: str) -> np.ndarray:
    if points.ndim == 3:
        return merge_subspaces(points, np.ones(len(points)), how, 0.5)[0]
    return geometric_median(points) if how == "median" else consensus(points, np.ones(len(points)), how).centre


def errors_of(task: Machine, repeat: int, found: list[dict], *, centralised: bool) -> Errors:
    """Errors of one repeat by form; the centralised machine comes last."""
    machines = found[:-1] if centralised else found
    errors: Errors = {}
    for base in ("rc", "lts", "plain") if task.subspace else ("lts", "plain"):
        points = np.array([one[base] for one in machines])
        for name, how in FORMS.items():
            errors[f"{name}, {base}"] = error(task, repeat, merged(points, how))
        if centralised:
            errors[f"centralised {base}"] = error(task, repeat, found[-1][base])
    return errors


class Repeats:
    """Repeats of one measurement, each kept when it is done."""

    def __init__(self, which: str, chosen: argparse.Namespace) -> None:
        self.cells = Cells("spark_figures", chosen.out)
        size = [chosen.features, chosen.machines, chosen.rows, *chosen.shares]
        self.key, self.n = (which, chosen.engine, *size), chosen.repeats
        if chosen.fresh:
            self.cells.forget(lambda key: key[:-1] == self.key)

    def run(self, one: Callable[[int], list[Errors]]) -> list[list[Errors]]:
        """Return the errors by repeat and condition; say what a round took."""
        before, found = 0, []
        for repeat in range(self.n):
            before += self.cells.find((*self.key, repeat)) is not None
            found.append(self.cells.get((*self.key, repeat), lambda repeat=repeat: timed(one, repeat)))
        which, engine = self.key[:2]
        print(f"{which} on {engine}: {self.n} rounds, {before} done before; seconds of one, median (least, greatest):")
        for what, name in (("seconds", "of the clock"), ("processors", "of the processors")):
            took = [cell[what] for cell in found if what in cell]
            if took:
                print(f"  {name} {np.median(took):.1f} ({min(took):.1f}, {max(took):.1f})")
        print(flush=True)
        return [cell["errors"] for cell in found]


def timed(one: Callable[[int], list[Errors]], repeat: int) -> dict:
    began, used = time.perf_counter(), processor_seconds()
    errors = one(repeat)
    seconds, used = time.perf_counter() - began, processor_seconds() - used
    print(f"repeat {repeat}: {seconds:.1f} s of the clock, {used:.1f} s of processors", flush=True)
    return {"errors": errors, "seconds": seconds, "processors": used}


def machines_of(engines: Engines, name: str, tasks: list[Machine], chosen: argparse.Namespace, *, central: bool):
    """Return lists of errors by condition and form."""
    everyone = [*range(chosen.machines), *([-1] if central else [])]

    def one(repeat: int) -> list[Errors]:
        found = estimates(engines[chosen.engine], tasks, repeat, everyone, chosen.rows)
        return [errors_of(task, repeat, mine, centralised=central) for task, mine in zip(tasks, found, strict=True)]

    by_condition = zip(*Repeats(name, chosen).run(one), strict=True)
    return [{form: [errors[form] for errors in repeats] for form in repeats[0]} for repeats in by_condition]


def figures(engines: Engines, chosen: argparse.Namespace) -> None:
    """Figure 1 (c) PCA and (d) regression; and the same outliers held by 45 % of the machines."""
    panels = [(letter, subspace, held) for letter, subspace in (("c", True), ("d", False)) for held in (False, True)]
    tasks = [
        Machine(subspace, share, chosen.features, chosen.machines, held)
        for _, subspace, held in panels
        for share in chosen.shares
    ]
    found = machines_of(engines, "figures", tasks, chosen, central=True)
    for at, (letter, subspace, held) in enumerate(panels):
        mine = found[at * len(chosen.shares) : (at + 1) * len(chosen.shares)]
        where = "in 45 % of the machines" if held else "in all machines"
        what = "PCA" if subspace else "regression"
        title = f"({letter}) {what}, p={chosen.features}, {chosen.machines} machines of {chosen.rows} rows"
        title = f"{title}, outliers {where}, {chosen.repeats} repeats"
        means = [(form, [float(np.mean(one[form])) for one in mine]) for form in mine[0]]
        spreads = [("  standard deviation", [float(np.std(one[form])) for one in mine]) for form in mine[0]]
        both = [row for pair in zip(means, spreads, strict=True) for row in pair]
        table(f"{title}: mean error by share", [f"{share:.2f}" for share in chosen.shares], both)
        name = f"spark_{'pca' if subspace else 'regression'}{'_concentrated' if held else ''}.png"
        picture(chosen.out / name, title, chosen.shares, means, "share of outliers")


def faults(engines: Engines, chosen: argparse.Namespace) -> None:
    """Table 1: latency and errors of communication at 40 % outliers."""
    late, turned = int(LATE * chosen.machines), max(int(TURNED * chosen.machines), 1)
    kinds = {"no fault": {}, "latency": {"late": late}, "communication": {"turned": turned}}
    conditions = [(subspace, fault) for subspace in (True, False) for fault in kinds]
    tasks = [Machine(sub, BAD, chosen.features, chosen.machines, **kinds[fault]) for sub, fault in conditions]
    found = machines_of(engines, "faults", tasks, chosen, central=False)
    setting = f"p={chosen.features}, {chosen.machines} machines, {BAD:.0%} outliers, {chosen.repeats} repeats"
    for subspace in (True, False):
        lines = [
            (f"{fault}: {form}", [np.mean(values), np.std(values), min(values), max(values)])
            for (sub, fault), mine in zip(conditions, found, strict=True)
            if sub == subspace
            for form, values in mine.items()
        ]
        title = f"Table 1, {'PCA' if subspace else 'regression'}, {setting}: error"
        table(title, ["mean", "std", "least", "greatest"], lines)


def poison(engines: Engines, chosen: argparse.Namespace) -> None:
    """Merged regressions with 45 % of the parts poisoned; errors as multiples of those of the clean mean."""
    p, rows = chosen.features, 40 * chosen.features
    kinds = {"clean": 0, "turned": POISONED, "far": POISONED, "near": POISONED}
    tasks = [Regression(p, n, kind, batch=10 * p) for kind, n in kinds.items()]

    def one(repeat: int) -> list[Errors]:
        truth = truth_of(repeat, p, subspace=False)
        errors = []
        for found in estimates(engines[chosen.engine], tasks, repeat, range(N_PARTS), rows):
            models = [from_state(one) for one in found]
            coefficients = {how: merge_learners(models, how=how).model.coef_ for how in FORMS.values()}
            coefficients["a part"] = models[-1].coef_
            errors.append(
                {how: float(np.linalg.norm(w - truth) / np.linalg.norm(truth)) for how, w in coefficients.items()}
            )
        return errors

    done = Repeats("poison", chosen).run(one)
    clean = np.array([errors[0]["mean"] for errors in done])
    lines: list[tuple[str, list[float]]] = []
    for at, kind in enumerate(kinds):
        for how in [*(["a part"] if kind == "clean" else []), *FORMS.values()]:
            off = np.array([errors[at][how] for errors in done])
            own = np.array([errors[0][how] for errors in done])
            ratio = off / clean
            lines.append(
                (f"{kind}: {how}", [off.mean(), np.median(off / own), np.median(ratio), ratio.min(), ratio.max()])
            )
    title = (
        f"ORLRegressor, p={p}, {N_PARTS} parts of {rows} rows, {POISONED} poisoned, {chosen.repeats} repeats: error,"
    )
    print(
        f"{title}\nas a multiple of the same merge's clean one (median), of the clean mean's (median, least, greatest)"
    )
    table("", ["error", "own", "of mean", "least", "greatest"], lines)


def main() -> None:
    chosen = options()
    runs = {"figures": figures, "faults": faults, "poison": poison}
    engines = Engines(slices=SLICES)
    try:
        for which in chosen.which:
            runs[which](engines, chosen)
    finally:
        engines.close()


if __name__ == "__main__":
    main()
