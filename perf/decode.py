"""Rates of the file sources against the readers people would use instead, in one run on one core.

    python perf/decode.py [--rows 100000] [--repeats 7]

Every route ends in a float64 matrix and an array of labels, compared with ours bit for bit. Time is the processor time
of the process, and routes are interleaved, so that a busy machine spoils little; a line shows the median, the spread
(lowest to highest) and by how much our median is faster.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import io
import json
import os
import statistics
import tempfile
import time
from pathlib import Path

os.environ["POLARS_MAX_THREADS"] = "1"

import msgspec
import numpy as np
import polars as pl
from sklearn.datasets import load_svmlight_file

from streamlearn.runtime.sources import Columns, open_source

N_FEATURES = 20
NAMES = [f"x{k}" for k in range(N_FEATURES)]
BATCH = 4096
SEED = 7


def ours(kind, path):
    columns = Columns(label=None if kind == "libsvm" else "label")
    source = open_source(kind, path, columns)
    values, labels = [], []
    while (batch := source.poll(BATCH, 0.0)) is not None:
        values.append(batch.values)
        labels.append(batch.labels)
    source.close()
    return np.concatenate([v for v in values if len(v)]), np.concatenate([y for y in labels if len(y)])


def csv_module(path):
    with path.open(newline="") as file:
        rows = csv.reader(file)
        next(rows)
        table = np.array([list(map(float, row)) for row in rows])
    return table[:, :-1], table[:, -1]


def frame_arrays(frame):
    return frame.select(NAMES).to_numpy(), frame["label"].to_numpy()


def polars_csv(path):
    return frame_arrays(pl.read_csv(path, schema=SCHEMA))


def polars_ndjson(path):
    return frame_arrays(pl.read_ndjson(path, schema=SCHEMA))


def dicts(loads):
    def read(path):
        with path.open("rb") as file:
            rows = [loads(line) for line in file]
        count = len(rows) * N_FEATURES
        flat = np.fromiter((row[name] for row in rows for name in NAMES), dtype=np.float64, count=count)
        return flat.reshape(-1, N_FEATURES), np.array([row["label"] for row in rows])

    return read


def msgspec_struct(path):
    event = msgspec.defstruct("event", [*((name, float) for name in NAMES), ("label", int)])
    with path.open("rb") as file:
        rows = msgspec.json.Decoder(event).decode_lines(file.read())
    table = np.array([msgspec.structs.astuple(row) for row in rows], dtype=np.float64)
    return table[:, :-1], table[:, -1]


def libsvm_sklearn(path):
    values, labels = load_svmlight_file(str(path), n_features=N_FEATURES)
    return values.toarray(), labels


SCHEMA = {**dict.fromkeys(NAMES, pl.Float64), "label": pl.Int64}
PEERS = {
    "csv": {"polars.read_csv": polars_csv, "csv module": csv_module},
    "ndjson": {
        "polars.read_ndjson": polars_ndjson,
        "msgspec Struct": msgspec_struct,
        "msgspec dicts": dicts(msgspec.json.Decoder().decode),
        "json module": dicts(json.loads),
    },
    "libsvm": {"sklearn loader": libsvm_sklearn},
}
if importlib.util.find_spec("orjson"):
    import orjson

    PEERS["ndjson"]["orjson dicts"] = dicts(orjson.loads)


def write(kind, path, texts, labels):
    out = io.StringIO()
    if kind == "csv":
        out.write(",".join([*NAMES, "label"]) + "\n")
        out.writelines(",".join(row) + f",{y}\n" for row, y in zip(texts, labels, strict=True))
    elif kind == "ndjson":
        for row, y in zip(texts, labels, strict=True):
            cells = ", ".join(f'"{name}": {value}' for name, value in zip(NAMES, row, strict=True))
            out.write(f'{{{cells}, "label": {y}}}\n')
    else:
        for row, y in zip(texts, labels, strict=True):
            out.write(f"{y} " + " ".join(f"{k}:{value}" for k, value in enumerate(row, start=1)) + "\n")
    path.write_text(out.getvalue())


def measure(kind, path, n_rows, repeats):
    routes = {"streamlearn": lambda path: ours(kind, path), **PEERS[kind]}
    expected = routes["streamlearn"](path)
    times = {name: [] for name in routes}
    for _ in range(repeats):
        for name, route in routes.items():
            begin = time.process_time()
            values, labels = route(path)
            times[name].append(time.process_time() - begin)
            exact = (values == expected[0]).all() and (labels == expected[1]).all()
            if not exact:
                # The peers' loss, not ours: the tests hold us to float().
                print(f"    {name}: not bit-equal")
    own = statistics.median(times["streamlearn"])
    for name, taken in times.items():
        middle = statistics.median(taken)
        low, high = n_rows / max(taken) / 1e6, n_rows / min(taken) / 1e6
        rate, ratio = n_rows / middle / 1e6, middle / own
        print(f"    {name:20} {rate:6.2f} M rows/s  ({low:.2f} to {high:.2f})   ours is {ratio:5.2f} x")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=7)
    arguments = parser.parse_args()
    rng = np.random.default_rng(SEED)
    values, labels = rng.standard_normal((arguments.rows, N_FEATURES)), rng.integers(0, 2, arguments.rows)
    print(f"{arguments.rows} rows x {N_FEATURES} features, seed {SEED}, {arguments.repeats} repeats")
    with tempfile.TemporaryDirectory() as folder:
        for digits in (6, 15, 17):
            texts = [[f"{value:.{digits}g}" for value in row] for row in values.tolist()]
            for kind in PEERS:
                path = Path(folder) / f"rows.{kind}"
                write(kind, path, texts, labels)
                print(f"  {kind}, {digits} significant digits, {path.stat().st_size / arguments.rows:.0f} bytes a row")
                measure(kind, path, arguments.rows, arguments.repeats)


if __name__ == "__main__":
    main()
