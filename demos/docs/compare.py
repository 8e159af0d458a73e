"""The measured table of the comparison page: forecast then learn, one event at a time, ours and others in turns.

    python demos/docs/compare.py [--rows 10000] [--turns 3] [--data FOLDER] [--streams NAME ...] [--capymoa PYTHON]

Every learner gets the same events as dicts, with its defaults, and its own kind of scaling where it needs one. The
clock is the processor's; turns alternate, and the table shows the median and the spread of the ratio to ours in the
same turn. The bundled weather is always measured, and a made-up stream of nothing but interactions; electricity and
phishing where FOLDER holds them. River is a dependency; Vowpal Wabbit is left out where it is not installed. CapyMOA
takes part where PYTHON is an interpreter that has it, in processes of its own: see compare_capymoa.py. Its forest of
100 trees takes minutes, and runs once, on electricity.

Writes demos/docs/comparison.json; with --streams the others stay there as they were measured before.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import os
import platform
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from river import forest, linear_model, preprocessing, tree
from sklearn.datasets import load_svmlight_file
from sklearn.metrics import roc_auc_score

from streamlearn import AUCRO, AdaptiveAUCRO

HERE = Path(__file__).parent
WEATHER = HERE.parent / "data" / "noaa_weather.csv.gz"
SHARED = HERE.parent.parent.parent / "shared" / "data"

Event = tuple[dict[str, float], bool]
Run = Callable[[list[Event]], list[float]]
Timed = Callable[[list[Event]], tuple[list[float], float]]


def ours(make: Callable[[], Any]) -> Run:
    """Return the run of a learner of streamlearn."""

    def run(events: list[Event]) -> list[float]:
        model = make()
        scores = []
        for x, y in events:
            scores.append(model.score_one(x))
            model.learn_one(x, y)
        return scores

    return run


def river(make: Callable[[], Any]) -> Run:
    """Return the run of a River classifier, its default on raw values."""

    def run(events: list[Event]) -> list[float]:
        model = make()
        scores = []
        for x, y in events:
            scores.append(model.predict_proba_one(x).get(True, 0.5))
            model.learn_one(x, y)
        return scores

    return run


def vowpal(events: list[Event]) -> list[float]:
    """Run Vowpal Wabbit's logistic loss, a dict to forecast and a dict to learn, as the others."""
    from vowpalwabbit import Workspace  # noqa: PLC0415 - optional

    model = Workspace("--quiet --loss_function logistic")
    scores = []
    for x, y in events:
        example = model.example({"f": x})
        scores.append(model.predict(example))
        model.finish_example(example)
        example = model.example({"f": x})
        example.set_label_string("1" if y else "-1")
        model.learn(example)
        model.finish_example(example)
    model.finish()
    return scores


def timed(run: Run) -> Timed:
    """Return a run that tells the processor's seconds as well."""

    def measured(events: list[Event]) -> tuple[list[float], float]:
        began = time.process_time()
        scores = run(events)
        return scores, time.process_time() - began

    return measured


def capymoa(python: Path, name: str) -> Timed:
    """Return the run of a classifier of CapyMOA in another interpreter, which tells its own seconds."""

    def run(events: list[Event]) -> tuple[list[float], float]:
        with tempfile.TemporaryDirectory() as folder:
            source, target = Path(folder) / "events.npz", Path(folder) / "forecasts.npz"
            np.savez(source, X=[list(x.values()) for x, _ in events], y=[label for _, label in events])
            script = HERE / "compare_capymoa.py"
            subprocess.run([str(python), str(script), name, str(source), str(target)], check=True)  # noqa: S603
            with np.load(target) as found:
                VERSIONS["capymoa"] = str(found["version"])
                return found["scores"].tolist(), float(found["seconds"])

    return run


VERSIONS: dict[str, str] = {}
CAPYMOA = {"CapyMOA NaiveBayes": "NaiveBayes", "CapyMOA HoeffdingTree": "HoeffdingTree"}
FOREST, FOREST_STREAM = "AdaptiveRandomForestClassifier", "electricity"
RUNS: dict[str, Run] = {
    "streamlearn AdaptiveAUCRO": ours(AdaptiveAUCRO),
    "streamlearn AUCRO": ours(AUCRO),
    "River StandardScaler | LogisticRegression": river(
        lambda: preprocessing.StandardScaler() | linear_model.LogisticRegression()
    ),
    "River HoeffdingTreeClassifier": river(tree.HoeffdingTreeClassifier),
    "River ARFClassifier": river(lambda: forest.ARFClassifier(seed=1)),
    "Vowpal Wabbit, logistic": vowpal,
}


def streams(folder: Path, rows: int) -> Iterator[tuple[str, list[Event]]]:
    """Yield the name and the first events of each stream that is there."""
    for name, path in (("weather", WEATHER), ("electricity", folder / "electricity.csv.gz")):
        if path.exists():
            with gzip.open(path, "rt") as file:
                header, *lines = [row for row, _ in zip(csv.reader(file), range(rows + 1), strict=False)]
            yield name, [(dict(zip(header, map(float, row[:-1]), strict=False)), float(row[-1]) > 0) for row in lines]
    yield "interactions (made up)", interactions(rows)
    phishing = folder / "phishing.libsvm.gz"
    if phishing.exists():
        with gzip.open(phishing) as file:
            X, y = load_svmlight_file(file)
        names = [f"f{j}" for j in range(X.shape[1])]
        dense = X[:rows].toarray().tolist()
        yield "phishing", [(dict(zip(names, x, strict=True)), label > 0) for x, label in zip(dense, y, strict=False)]


def interactions(rows: int) -> list[Event]:
    """Return events whose label is the sign of a product, one in ten of them wrong: no linear score ranks them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 5))
    y = (X[:, 0] * X[:, 1] > 0) ^ (rng.random(rows) < 0.1)
    names = [f"f{j}" for j in range(5)]
    return [(dict(zip(names, x, strict=True)), bool(label)) for x, label in zip(X.tolist(), y, strict=True)]


def installed(python: Path | None = None) -> dict[str, Timed]:
    """Return the runs whose libraries are there."""
    runs = {name: timed(run) for name, run in RUNS.items() if run is not vowpal or vowpal_there()}
    return runs | ({title: capymoa(python, name) for title, name in CAPYMOA.items()} if python else {})


def measure(
    events: list[Event], turns: int, runs: dict[str, Timed], once: dict[str, Timed]
) -> dict[str, dict[str, Any]]:
    """Return AUC and seconds of each learner in each turn, and of some in the first turn only."""
    y = np.array([label for _, label in events])
    for name in runs.keys() & RUNS.keys():
        runs[name](events[:200])  # compilation, caches
    found: dict[str, dict[str, Any]] = {name: {"seconds": []} for name in runs | once}
    for turn in range(turns):
        for name, run in (runs | once if turn == 0 else runs).items():
            scores, seconds = run(events)
            found[name]["seconds"].append(seconds)
            found[name]["auc"] = float(roc_auc_score(y, scores))
    return found


def main() -> None:
    """Measure all streams and write the table's numbers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--data", type=Path, default=SHARED)
    parser.add_argument("--streams", nargs="+", default=None)
    parser.add_argument("--capymoa", type=Path, default=None)
    parser.add_argument("--out", type=Path, default=HERE / "comparison.json")
    args = parser.parse_args()
    kept = json.loads(args.out.read_text()) if args.streams else {"streams": {}, "versions": {}}
    measured = kept["streams"]
    for name, events in streams(args.data, args.rows):
        if args.streams and name not in args.streams:
            continue
        load = os.getloadavg()[0]
        forest = {"CapyMOA ARF (once)": capymoa(args.capymoa, FOREST)} if args.capymoa and name == FOREST_STREAM else {}
        learners = measure(events, args.turns, installed(args.capymoa), forest)
        measured[name] = {"n_events": len(events), "load": load, "learners": learners}
        print(name, {k: (round(v["auc"], 4), min(v["seconds"])) for k, v in learners.items()}, flush=True)
    packages = [name for name in ("streamlearn", "river", "vowpalwabbit") if name != "vowpalwabbit" or vowpal_there()]
    machine = {"cores": os.cpu_count(), "python": platform.python_version()}
    versions = kept["versions"] | {name: version(name) for name in packages} | VERSIONS
    document = {"machine": machine, "versions": versions, "streams": measured}
    args.out.write_text(json.dumps(document, indent=1) + "\n")


def vowpal_there() -> bool:
    """Tell whether Vowpal Wabbit takes part."""
    try:
        version("vowpalwabbit")
    except ModuleNotFoundError:
        return False
    return True


if __name__ == "__main__":
    main()
