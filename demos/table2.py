"""Table 2 of the AUCRO paper on real data, ours beside the paper's.

    python demos/table2.py --quick              small sets, few folds, row caps: under three minutes
    python demos/table2.py                      the nine sets at hand, 5 x 5 folds; hours, see --repeats and --rows
    python demos/table2.py --quick --figures    also Figures 1 to 4
    python demos/table2.py --report             what is finished of it

Every learner is trained in one pass on the training folds, scaled to [-1, 1] by them, and measured on the fold held
out: AUC of the pairs it ranks, share of pairs it rejects, at costs d = .5 ... .42. What was cut (rows, grids, folds)
stands at the head of the output. Writes table2.txt and table2.json, and with ``--figures`` four pictures.

Each finished fold of a learner is a line of table2.jsonl in ``--out``, and is not run again by the same options: a run
that was stopped goes on, and learners and sets may be run one by one. Where folds are missing the line says so.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from table2_data import BUNDLED_SET, SETS, DataSet, available, read
from table2_finished import Finished
from table2_learners import CONTESTANTS, Tuning
from table2_protocol import Cell, Plan, run
from table2_report import Summary, agreement, block

OUT = Path(__file__).parent / "out"
QUICK_SETS = ("diabetes", "fourclass", "german_numer", "splice", "noaa_weather")
QUICK = Plan(
    n_repeats=1, n_large_repeats=1, max_rows=4000, tuning=Tuning(n_repeats=1, n_folds=3, max_rows=1500, stride=4)
)


def table(
    sets: Sequence[str], learners: Sequence[str], plan: Plan, out: Path, *, known_alone: bool = False
) -> list[Summary]:
    """Run what is not finished of the protocol set by set; print and write each set's block as it is ready."""
    out.mkdir(parents=True, exist_ok=True)
    finished = Finished(out / "table2.jsonl", plan)
    lines = [plan.text()]
    print(lines[0], flush=True)
    summaries, records = [], []
    for name in sets:
        data = read(name, max_rows=plan.max_rows, seed=plan.seed, split_seed=plan.split_seed)
        if not known_alone:
            run(data, learners, plan, finished)
        summary = _summary(data, learners, plan, finished)
        if not summary.cells:
            continue
        summaries.append(summary)
        records.append(asdict(summary))
        lines.append(block(summary))
        print(f"\n{lines[-1]}", flush=True)
        (out / "table2.json").write_text(json.dumps(records))
    lines.append(agreement(summaries))
    print(f"\n{lines[-1]}")
    (out / "table2.txt").write_text("\n\n".join(lines) + "\n")
    return summaries


def _summary(data: DataSet, learners: Sequence[str], plan: Plan, finished: Finished) -> Summary:
    n_repeats = plan.repeats(len(data.y))
    cells: list[Cell] = []
    parameters: list[dict[str, dict[str, float]]] = []
    for fold in range(n_repeats * plan.n_folds):
        found = {name: finished.get(data.name, name, fold) for name in learners}
        cells += [cell for result in found.values() if result for cell in result.cells]
        parameters.append({name: result.parameters for name, result in found.items() if result})
    reading = f"{data.X.shape[1]} features, {data.reading}"
    return Summary(data.name, reading, cells, parameters, n_repeats, plan.n_folds)


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line, run, write."""
    options = _options(arguments)
    sets = _sets(options)
    learners = options.learners or list(CONTESTANTS)
    table(sets, learners, _plan(options), options.out, known_alone=options.report)
    if options.figures:
        # Only pictures need the plotting library.
        from table2_figures import draw_all  # noqa: PLC0415

        for path in draw_all(
            sets, options.out, max_rows=min(options.rows or 20_000, 2000 if options.quick else 20_000)
        ):
            print(path)


def _sets(options: argparse.Namespace) -> list[str]:
    """Return the sets to run; say which ones are not here."""
    there = available()
    wanted = options.sets or (QUICK_SETS if options.quick else SETS)
    missing = [name for name in wanted if name not in there]
    if missing:
        print(f"no data here for {', '.join(missing)}; there are {', '.join(there)}")
    return [name for name in wanted if name in there] or [BUNDLED_SET]


def _plan(options: argparse.Namespace) -> Plan:
    plan = QUICK if options.quick else Plan()
    t = plan.tuning
    return Plan(
        n_repeats=options.repeats or plan.n_repeats,
        n_large_repeats=options.large_repeats or options.repeats or plan.n_large_repeats,
        max_rows=options.rows or plan.max_rows,
        tuning=Tuning(
            n_repeats=options.inner_repeats or t.n_repeats,
            n_folds=options.inner_folds or t.n_folds,
            max_rows=options.tuning_rows or t.max_rows,
            max_values=options.tuning_values or t.max_values,
            stride=options.stride or t.stride,
        ),
        seed=options.seed,
        split_seed=options.split_seed,
    )


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one repeat, few rows, small sets")
    parser.add_argument("--sets", nargs="+", help=f"of {', '.join(SETS)}, or the bundled noaa_weather")
    parser.add_argument("--learners", nargs="+", choices=list(CONTESTANTS))
    parser.add_argument("--report", action="store_true", help="run nothing, print what is finished")
    parser.add_argument("--figures", action="store_true", help="draw Figures 1 to 4 as well")
    parser.add_argument("--repeats", type=int, help="of the 5-fold cross-validation (5)")
    parser.add_argument("--large-repeats", type=int, help="the same for sets of over 20,000 rows")
    parser.add_argument("--rows", type=int, help="most rows of a set (70,000)")
    parser.add_argument("--inner-repeats", type=int, help="of the inner cross-validation (2)")
    parser.add_argument("--inner-folds", type=int, help="5")
    parser.add_argument("--tuning-rows", type=int, help="most training rows that take part in tuning (15,000)")
    parser.add_argument("--tuning-values", type=int, help="most values of features in tuning (4,500,000)")
    parser.add_argument("--stride", type=int, help="try every so many-th value of the paper's grids (2; 1 = all)")
    parser.add_argument("--seed", type=int, default=0, help="of rows and folds")
    parser.add_argument("--split-seed", type=int, help="draw the groups of multi-class sets at random with this seed")
    parser.add_argument("--out", type=Path, default=OUT)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
