"""Sinks and dead letters: what is written, that batches do not show, and that a cut back leaves no trace."""

from __future__ import annotations

import base64
import csv
import itertools
import json
import os

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlearn.contracts import PredictionRows, Rejected
from streamlearn.errors import BadEvent, SinkError
from streamlearn.runtime.dead_letters import DeadLetters
from streamlearn.runtime.parquet_sink import ParquetParts
from streamlearn.runtime.sinks import WHO, open_sink

N_ROWS = 97
PART_ROWS = 16
KINDS = ["ndjson", "csv", "parquet"]


def rows_between(start: int, stop: int, keys: bool = False) -> PredictionRows:
    records = np.arange(start, stop)
    scores = np.sin(records.astype(np.float64)) / 3
    probabilities = np.where(records % 11 == 0, np.nan, 1 / (1 + np.exp(-scores)))
    labels = np.array([None if record % 7 == 0 else int(record % 2) for record in records], dtype=object)
    predictions = np.array([None if record % 5 == 0 else int(record % 3 == 0) for record in records], dtype=object)
    names = np.array([f"event {record}" for record in records], dtype=object) if keys else None
    return PredictionRows("in.csv", records, names, labels, scores, probabilities, predictions)


def sink_at(path, kind, keys=False, partitions=False):
    if kind == "parquet":
        return ParquetParts(WHO, path, ["record", "label", "score", "probability", "prediction"], part_rows=PART_ROWS)
    return open_sink(path, kind, with_keys=keys, with_partitions=partitions)


def content(path):
    if path.is_dir():
        return {part.name: part.read_bytes() for part in sorted(path.iterdir())}
    return path.read_bytes()


def written_in_one_go(folder, kind):
    folder.mkdir()
    sink = sink_at(folder / "p", kind)
    sink.create()
    sink.write(rows_between(0, N_ROWS))
    sink.close()
    return content(folder / "p")


def test_ndjson_rows_read_back_as_they_were(tmp_path):
    sink = sink_at(tmp_path / "p", "ndjson", keys=True, partitions=True)
    sink.create()
    rows = rows_between(0, N_ROWS, keys=True)
    sink.write(rows)
    sink.close()

    found = [json.loads(line) for line in (tmp_path / "p").read_text().splitlines()]

    assert list(found[0]) == ["partition", "record", "key", "label", "score", "probability", "prediction"]
    assert [row["score"] for row in found] == rows.scores.tolist()
    assert [row["label"] for row in found] == rows.labels.tolist()
    assert [row["prediction"] for row in found] == rows.predictions.tolist()
    assert [row["key"] for row in found] == rows.keys.tolist()
    assert found[11]["probability"] is None


def test_csv_rows_read_back_as_they_were_with_empty_cells_for_nothing(tmp_path):
    sink = sink_at(tmp_path / "p", "csv")
    sink.create()
    rows = rows_between(0, N_ROWS)
    sink.write(rows)
    sink.close()

    with (tmp_path / "p").open(newline="") as file:
        found = list(csv.DictReader(file))

    assert list(found[0]) == ["record", "label", "score", "probability", "prediction"]
    assert [float(row["score"]) for row in found] == rows.scores.tolist()
    assert (found[0]["label"], found[0]["prediction"], found[11]["probability"]) == ("", "", "")


def test_parquet_parts_read_back_as_they_were(tmp_path):
    sink = sink_at(tmp_path / "p", "parquet")
    sink.create()
    rows = rows_between(0, N_ROWS)
    sink.write(rows)
    sink.close()

    found = pl.read_parquet(tmp_path / "p" / "part-*.parquet")

    assert found.columns == ["record", "label", "score", "probability", "prediction"]
    assert found["score"].to_list() == rows.scores.tolist()
    assert found["label"].to_list() == rows.labels.tolist()
    assert found["probability"].null_count() == int(np.isnan(rows.probabilities).sum())
    assert len(list((tmp_path / "p").iterdir())) == -(-N_ROWS // PART_ROWS)


def test_numpy_labels_and_text_labels_are_written_as_plain_values(tmp_path):
    labels = np.array([np.int64(1), "yes", True, np.float64(0.5)], dtype=object)
    sink = sink_at(tmp_path / "p", "ndjson")
    sink.create()
    four = np.zeros(4)
    sink.write(PredictionRows("", np.arange(4), None, labels, four, four, labels))
    sink.close()

    found = [json.loads(line)["label"] for line in (tmp_path / "p").read_text().splitlines()]

    assert found == [1, "yes", True, 0.5]


@pytest.mark.parametrize("kind", KINDS)
@given(cuts=st.sets(st.integers(1, N_ROWS - 1), max_size=6), stop=st.integers(0, N_ROWS), wreck=st.integers(0, 40))
def test_neither_batches_nor_a_cut_back_show_in_the_output(kind, cuts, stop, wreck, tmp_path_factory):
    folder = tmp_path_factory.mktemp(kind)
    first = sink_at(folder / "p", kind)
    first.create()
    edges = [0, *sorted(cut for cut in cuts if cut < stop), stop]
    for start, end in itertools.pairwise(edges):
        first.write(rows_between(start, end))
    first.flush()
    saved = first.state()
    first.write(rows_between(stop, min(N_ROWS, stop + wreck)))
    first.close()

    second = sink_at(folder / "p", kind)
    second.restore(saved)
    second.write(rows_between(stop, N_ROWS))
    second.close()

    assert content(folder / "p") == written_in_one_go(folder / "whole", kind)


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_job_refuses_to_write_over_existing_output(kind, tmp_path):
    written_in_one_go(tmp_path / "old", kind)

    with pytest.raises(SinkError, match=r"^sink\.predictions: .* --fresh"):
        sink_at(tmp_path / "old" / "p", kind).require_absent()


@pytest.mark.parametrize("kind", KINDS)
def test_output_that_somebody_removed_is_refused_on_resume(kind, tmp_path):
    sink = sink_at(tmp_path / "p", kind)
    sink.create()
    sink.write(rows_between(0, N_ROWS))
    sink.flush()
    saved = sink.state()
    sink.close()
    victim = tmp_path / "p" / "part-000001.parquet" if kind == "parquet" else tmp_path / "p"
    victim.unlink()

    with pytest.raises(SinkError, match=r"^sink\.predictions: .* must"):
        sink_at(tmp_path / "p", kind).restore(saved)


def test_a_file_that_somebody_cut_is_refused_on_resume(tmp_path):
    sink = sink_at(tmp_path / "p", "ndjson")
    sink.create()
    sink.write(rows_between(0, N_ROWS))
    saved = sink.state()
    sink.close()
    os.truncate(tmp_path / "p", saved["bytes"] - 1)

    with pytest.raises(SinkError, match="must have at least the"):
        sink_at(tmp_path / "p", "ndjson").restore(saved)


def test_labels_of_two_types_cannot_go_into_parquet(tmp_path):
    sink = sink_at(tmp_path / "p", "parquet")
    sink.create()
    labels = np.array(["a"] + [1] * 15, dtype=object)
    numbers = np.zeros(16)

    with pytest.raises(SinkError, match="labels must be of one type"):
        sink.write(PredictionRows("", np.arange(16), None, labels, numbers, numbers, labels))


def rejected(record: int, kind: str = "value", raw: bytes = b"1,x\n") -> Rejected:
    return Rejected("in.csv", 10 * record, record, kind, "column b: must be a number, got 'x'", raw)


@given(raw=st.binary(max_size=50))
def test_a_dead_letter_gives_back_every_byte(raw, tmp_path_factory):
    path = tmp_path_factory.mktemp("dead") / "bad.ndjson"
    letters = DeadLetters(path, policy="dead-letter")
    letters.create()
    letters.take([rejected(3, raw=raw)])
    letters.close()

    row = json.loads(path.read_text())

    found = base64.b64decode(row["raw_base64"]) if "raw_base64" in row else row["raw"].encode()
    assert found == raw
    assert (row["partition"], row["offset"], row["record"], row["kind"]) == ("in.csv", 30, 3, "value")


def test_bad_events_are_counted_by_kind_and_the_counts_survive_a_restart(tmp_path):
    letters = DeadLetters(tmp_path / "bad", policy="dead-letter")
    letters.create()
    letters.take([rejected(1), rejected(2, "syntax"), rejected(5)])
    saved = letters.state()
    letters.take([rejected(6)])
    letters.close()

    again = DeadLetters(tmp_path / "bad", policy="dead-letter")
    again.restore(saved)
    again.close()

    assert again.counts == {"value": 2, "syntax": 1}
    assert [json.loads(line)["record"] for line in (tmp_path / "bad").read_text().splitlines()] == [1, 2, 5]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"policy": "stop"}, r"bad_events\.policy is 'stop': in\.csv, event 1: value: column b"),
        ({"policy": "dead-letter", "stop_kinds": frozenset({"value"})}, r"features\.on_bad_value is 'stop'"),
        ({"policy": "dead-letter", "max_count": 0}, r"bad_events\.max_count: must be at most 0"),
    ],
)
def test_the_policy_can_be_to_stop(options, message, tmp_path):
    letters = DeadLetters(tmp_path / "bad", **options)
    letters.create()

    with pytest.raises(BadEvent, match=message):
        letters.take([rejected(1)])
    letters.close()


@pytest.mark.parametrize("kind", ["ndjson", "csv"])
def test_predictions_can_be_read_before_they_are_durable(tmp_path, kind):
    path = tmp_path / f"out.{kind}"
    sink = sink_at(path, kind)
    sink.create()

    sink.write(rows_between(0, 3))

    assert path.read_bytes().count(b"\n") == 3 + (kind == "csv")
    sink.close()
