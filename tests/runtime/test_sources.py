"""File sources: every record once, wherever the reading is cut and wherever it starts again."""

from __future__ import annotations

import gzip
import json
import os
import threading
import tracemalloc

import numpy as np
import polars as pl
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streamlearn.errors import BadParameter, SourceError
from streamlearn.runtime.sources import Columns, open_source
from tests.runtime.drain import Drained, drain

LABEL = Columns(label="label")
CSV = (
    b'\xef\xbb\xbfx,label,y\r\n1,0,2\r\n\r\n3,1,4\n5,0\n"6",1,"7"\nred,1,8\n"9\n9",1,2\n1,"0",0.5\n\xff,1,1\n'
    + b"8,0," + b"1" * 300 + b"\n2.5,1,-1e3"
)  # fmt: skip
NDJSON = (
    b'{"x": 1, "label": 0}\n\n{"label": 1, "x": 2, "y": 0.5}\n{"x": null}\n{"y": 1}\n{"x": 1,\n{"x": 3, "label": "a"}\n'
    + b'{"x": "' + b"z" * 300 + b'"}\n \r\n{"x": 1, "x": 2}\n{"x": 17.25, "label": null}'
)  # fmt: skip
LIBSVM = b"+1 1:1 3:0.5\n-1 2:2 # note\n\n1 qid:1 1:1\n0\n1 9:1 8:1\n" + b"1 1:" + b"2" * 300 + b"\n-1 4:1e2\n"
INPUTS = {"csv": (CSV, LABEL), "ndjson": (NDJSON, LABEL), "libsvm": (LIBSVM, Columns())}
SMALL = {"block_bytes": 16, "max_record_bytes": 200}


def compressed(raw, ending):
    if ending == ".gz":
        return gzip.compress(raw[:40]) + gzip.compress(raw[40:])
    if ending == ".zst":
        frame = zstandard.ZstdCompressor()
        return frame.compress(raw[:40]) + frame.compress(raw[40:])
    return raw


@pytest.fixture(params=list(INPUTS))
def kind(request):
    return request.param


@pytest.fixture(params=["", ".gz", ".zst"])
def path(request, kind, tmp_path):
    path = tmp_path / f"data.{kind}{request.param}"
    path.write_bytes(compressed(INPUTS[kind][0], request.param))
    return path


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(1, 4), min_size=1, max_size=30), st.lists(st.booleans(), max_size=30), st.integers(1, 64))
def test_any_cut_and_any_restart_give_what_one_pass_gives(kind, path, sizes, stops, block_bytes):
    columns = INPUTS[kind][1]
    whole = drain(open_source(kind, path, columns, max_record_bytes=200))
    options = {"block_bytes": block_bytes, "max_record_bytes": 200}
    source, found = open_source(kind, path, columns, **options), Drained()
    for size, stop in zip(sizes, stops + [False] * len(sizes), strict=False):
        batch = source.poll(size, 0.0)
        if batch is None:
            break
        assert len(batch) + len(batch.rejected) <= size
        found.take(batch)
        if stop:
            source.close()
            source = open_source(kind, path, columns, **options)
            source.seek(list(found.positions.values()))
    drain(source, into=found)
    assert found.in_order() == whole.in_order()
    assert [p.offset for p in found.positions.values()] == [len(INPUTS[kind][0])]


def test_numbers_lines_and_raw_bytes_of_every_csv_record_are_exact(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(CSV)
    found = drain(open_source("csv", path, LABEL, **SMALL))
    assert [sorted(k for _, k in table) for table in (found.events, found.rejected)] == [
        [0, 1, 3, 6, 9],
        [2, 4, 5, 7, 8],
    ]
    for _, record in found.events:
        offset, raw = found.events[str(path), record][4]
        assert CSV[offset : offset + len(raw)] == raw
    rejected = {key[1]: bad for key, bad in found.rejected.items()}
    assert [(rejected[k].kind, rejected[k].reason.split(":")[0]) for k in sorted(rejected)] == [
        ("columns", f"{path}, line 5"),
        ("value", f"{path}, line 7"),
        ("value", f"{path}, line 8"),
        ("encoding", f"{path}, line 11, byte 1"),
        ("too_long", f"{path}, line 12"),
    ]
    for bad in rejected.values():
        assert CSV[bad.offset : bad.offset + len(bad.raw)] == bad.raw
    assert len(rejected[8].raw) == SMALL["max_record_bytes"]


@pytest.mark.parametrize(
    ("text", "n_events"),
    [
        ("", 0),
        ("x,label\n", 0),
        ("x,label", 0),
        ("\n\nx,label\n\n1,2\n\n", 1),
        ("x,label\r\n1,2\r\n", 1),
        ("x,label\n1,2", 1),
    ],
)
def test_empty_blank_and_unfinished_csv_files_are_read(tmp_path, text, n_events):
    path = tmp_path / "a.csv"
    path.write_text(text, newline="")
    found = drain(open_source("csv", path, LABEL))
    assert (len(found.events), len(found.rejected)) == (n_events, 0)
    assert found.positions[str(path)].offset == len(text)


@pytest.mark.parametrize(
    ("text", "columns", "message"),
    [
        ("x,y,x\n", Columns(), r"line 1: column names must be different, got 'x' as columns 1 and 3"),
        ("x,y\n", LABEL, r"label must name a column of the file, got 'label'; it has x, y"),
        ("x,y\n", Columns(exclude=frozenset({"z"})), r"exclude must name a column"),
        ("1,2.5\n", Columns(), r"line 1: must be a header, got only numbers"),
        ('x,"y\n', Columns(), r"must have a header, got an open quote"),
        ("\xff\xfex", Columns(), r"byte order mark of UTF-16"),
        ("x,\xff\n", Columns(), r"must be UTF-8"),
        ("x" * 300 + "\n", Columns(), r"a header of at most 200 bytes"),
    ],
)
def test_an_unusable_header_stops_at_once_and_says_where(tmp_path, text, columns, message):
    path = tmp_path / "a.csv"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(SourceError, match=message) as caught:
        drain(open_source("csv", path, columns, **SMALL))
    assert str(caught.value).startswith(str(path))


def test_a_file_without_a_header_takes_the_given_names_and_other_delimiters(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("1;2;UP\n3;4;DOWN\n")
    columns = Columns(label="label", names=("a", "b", "label"))
    found = drain(open_source("csv", path, columns, delimiter=";"))
    assert [event[:2] for event in found.in_order()] == [({"a": 1.0, "b": 2.0}, "UP"), ({"a": 3.0, "b": 4.0}, "DOWN")]
    renamed = drain(open_source("csv", path, columns, delimiter=";", header=True))
    assert [event[1] for event in renamed.in_order()] == ["DOWN"]


def test_text_keys_and_exclusions_are_handed_over_as_declared(tmp_path):
    columns = Columns(label="y", key="id", categorical=frozenset({"c"}), exclude=frozenset({"e"}))
    (tmp_path / "a.csv").write_text("id,c,e,x,y\nk1,é,junk,1,UP\nk2,,,2,\n")
    (tmp_path / "a.ndjson").write_text(
        '{"id": "k1", "c": "é", "e": [1], "x": 1, "y": "UP"}\n{"id": "k2", "e": null, "x": 2}\n'
        '{"id": 7, "c": 2.50, "x": 3}\n'
    )
    of_csv = drain(open_source("csv", tmp_path / "a.csv", columns)).in_order()
    of_json = drain(open_source("ndjson", tmp_path / "a.ndjson", columns)).in_order()
    expected = [({"x": 1.0}, "UP", {"c": "é"}, "k1"), ({"x": 2.0}, None, {"c": None}, "k2")]
    assert [event[:4] for event in of_csv] == expected
    assert [event[:4] for event in of_json] == [*expected, ({"x": 3.0}, None, {"c": "2.50"}, 7)]


def test_a_quote_that_is_never_closed_costs_one_line_only(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('x,label\n1,0\n"2,0\n3,0\n' + "4,1\n" * 100)
    found = drain(open_source("csv", path, LABEL, **SMALL))
    assert [(bad.kind, bad.raw) for bad in found.rejected.values()] == [("syntax", b'"2,0')]
    assert len(found.events) == 102


def test_a_giant_line_is_refused_in_bounded_memory(tmp_path):
    path = tmp_path / "a.ndjson"
    giant = b'{"x": "' + b"a" * 20_000_000 + b'"}'
    path.write_bytes(b'{"x": 1}\n' + giant + b'\n{"x": 2}\n')
    options = {"block_bytes": 4096, "max_record_bytes": 1000}
    drain(open_source("ndjson", path, **options))  # compiles first
    tracemalloc.start()
    found = drain(open_source("ndjson", path, **options))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < len(giant) / 20
    assert [event[0] for event in found.events.values()] == [{"x": 1.0}, {"x": 2.0}]
    (bad,) = found.rejected.values()
    assert (bad.kind, bad.raw) == ("too_long", giant[:1000])
    assert f"got {len(giant)}" in bad.reason


def test_several_files_are_read_in_sorted_order_and_resumed_in_the_right_one(tmp_path):
    for name, rows in (("b", "3,0\n4,0\n"), ("a", "1,0\n2,0\n"), ("c", ""), ("d", "5,0\n")):
        (tmp_path / f"{name}.csv").write_text("x,label\n" + rows)
    whole = drain(open_source("csv", tmp_path / "*.csv", LABEL))
    assert [event[0]["x"] for event in whole.in_order()] == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert list(whole.positions) == [str(tmp_path / f"{name}.csv") for name in "abcd"]
    source, found = open_source("csv", str(tmp_path / "*.csv"), LABEL), Drained()
    while (batch := source.poll(1, 0.0)) is not None:
        found.take(batch)
        if not found.sizes[-1]:
            continue
        source.close()
        source = open_source("csv", [tmp_path / f"{name}.csv" for name in "dcba"], LABEL)
        source.seek(list(found.positions.values()))
    assert found.in_order() == whole.in_order()
    (tmp_path / "aa.csv").write_text("x,label\n")
    with pytest.raises(SourceError, match="must sort after"):
        open_source("csv", tmp_path / "*.csv", LABEL).seek(list(found.positions.values()))
    (tmp_path / "aa.csv").unlink()
    (tmp_path / "d.csv").unlink()
    with pytest.raises(SourceError, match="must be there"):
        open_source("csv", tmp_path / "*.csv", LABEL).seek(list(found.positions.values()))


def test_another_file_a_shorter_one_and_a_continued_line_are_refused(kind, path):
    raw, columns = INPUTS[kind]
    source = open_source(kind, path, columns)
    positions = source.poll(2, 0.0).positions
    source.close()
    end = drain(open_source(kind, path, columns)).positions.values()
    ending = path.suffix if path.suffix in {".gz", ".zst"} else ""
    path.write_bytes(compressed(raw.replace(b"1", b"2", 1), ending))
    with pytest.raises(SourceError, match="got other first"):
        open_source(kind, path, columns).seek(positions)
    path.write_bytes(compressed(raw[:12], ending))
    with pytest.raises(SourceError, match="got 12 bytes instead of at least"):
        open_source(kind, path, columns).seek(positions)
    path.write_bytes(compressed(raw + b"9\n", ending))
    if not raw.endswith(b"\n"):
        with pytest.raises(SourceError, match="the rest of a line"):
            open_source(kind, path, columns).seek(list(end))
    path.write_bytes(compressed(raw, ending)[:-9] if ending else raw)
    if ending:
        with pytest.raises(SourceError, match="whole, readable"):
            drain(open_source(kind, path, columns))


def test_a_file_that_has_grown_goes_on_where_it_ended(kind, tmp_path):
    raw, columns = INPUTS[kind]
    path = tmp_path / "data"
    first = raw[: raw.index(b"\n", 60) + 1]
    path.write_bytes(first)
    found = drain(open_source(kind, path, columns, **SMALL))
    path.write_bytes(raw)
    source = open_source(kind, path, columns, **SMALL)
    source.seek(list(found.positions.values()))
    drain(source, into=found)
    assert found.in_order() == drain(open_source(kind, path, columns, **SMALL)).in_order()


def test_standard_input_is_read_as_it_comes_and_skipped_to_the_position(kind):
    raw, columns = INPUTS[kind]

    def piped(source_of, positions=(), into=None, polls=None):
        reading, writing = os.pipe()
        writer = threading.Thread(target=lambda: (os.write(writing, raw), os.close(writing)))
        writer.start()
        source, found = source_of(reading), into or Drained()
        source.seek(list(positions))
        while (polls is None or len(found.sizes) < polls) and (batch := source.poll(2, 5.0)) is not None:
            found.take(batch)
        source.close()
        writer.join()
        os.close(reading)
        return found

    def opened(descriptor):
        return open_source("stdin", None, columns, format=kind, descriptor=descriptor, **SMALL)

    whole = piped(opened)
    part = piped(opened, polls=2)
    found = piped(opened, part.positions.values(), into=part)
    assert found.in_order() == whole.in_order()
    assert len(whole.in_order()) > 5


def test_standard_input_without_anything_gives_an_empty_batch_in_time():
    reading, writing = os.pipe()
    source = open_source("csv", "-", LABEL, descriptor=reading)
    assert len(source.poll(5, 0.0)) == 0
    os.write(writing, b"x,label\n1,")
    assert len(source.poll(5, 0.0)) == 0
    os.write(writing, b"0\n")
    assert source.poll(5, 0.0).labels.tolist() == [0]
    os.close(writing)
    drain(source)
    os.close(reading)


def parquet_frame():
    rng = np.random.default_rng(4)
    n = 25
    frame = pl.DataFrame(
        {
            "x": rng.standard_normal(n),
            "n": rng.integers(-(2**60), 2**60, n),
            "b": rng.random(n) < 0.5,
            "c": [None if k % 5 == 0 else f"é{k % 3}" for k in range(n)],
            "label": [None if k % 7 == 0 else k % 2 for k in range(n)],
            "id": [f"k{k}" for k in range(n)],
        }
    )
    return frame.with_columns(x=pl.when(pl.col("n") % 4 == 0).then(None).otherwise("x"))


PARQUET = Columns(label="label", key="id", categorical=frozenset({"c"}))


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(1, 9), min_size=1, max_size=12))
def test_parquet_rows_come_whole_from_any_row_on(tmp_path, sizes):
    path, frame = tmp_path / "a.parquet", parquet_frame()
    frame.write_parquet(path, row_group_size=4)
    source, found = open_source("parquet", path, PARQUET), Drained()
    for size in sizes:
        batch = source.poll(size, 0.0)
        if batch is None:
            break
        found.take(batch)
        source.close()
        source = open_source("parquet", path, PARQUET)
        source.seek(list(found.positions.values()))
    drain(source, into=found)
    for record, row in enumerate(frame.iter_rows(named=True)):
        key = (str(path), record)
        if row["x"] is None:
            assert "column 'x' must be a finite number, got None" in found.rejected[key].reason
            assert json.loads(found.rejected[key].raw) == row
        else:
            numbers = {k: v for k, v in (("x", row["x"]), ("n", float(row["n"])), ("b", float(row["b"]))) if v}
            assert found.events[key][:4] == (numbers, row["label"], {"c": row["c"]}, row["id"])
    assert len(found.in_order()) == len(frame)


def test_parquet_text_that_is_not_declared_and_another_file_are_refused(tmp_path):
    path = tmp_path / "a.parquet"
    parquet_frame().write_parquet(path)
    found = drain(open_source("parquet", path, LABEL))
    assert not found.events
    assert all("declared in [features]" in bad.reason for bad in found.rejected.values() if "'x'" not in bad.reason)
    parquet_frame().head(9).write_parquet(path)
    with pytest.raises(SourceError, match="must be the file of the checkpoint"):
        open_source("parquet", path, LABEL).seek(list(found.positions.values()))
    path.write_bytes(b"no parquet at all")
    with pytest.raises(SourceError, match="readable Parquet file"):
        open_source("parquet", path, LABEL).poll(1, 0.0)


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("xml", {}, "kind must be csv"),
        ("stdin", {}, "format must be csv"),
        ("csv", {"format": "ndjson"}, "format must be absent"),
        ("ndjson", {"delimiter": ","}, "delimiter must be absent"),
        ("ndjson", {"header": True}, "header must be absent"),
        ("csv", {"delimiter": "ab"}, "one ASCII character"),
        ("csv", {"header": False}, "names must be given"),
        ("csv", {"block_bytes": 0}, "block_bytes must be"),
        ("parquet", {"follow": True}, "follow must be false"),
    ],
)
def test_an_option_that_does_not_fit_is_refused(tmp_path, kind, options, message):
    path = tmp_path / "a"
    path.write_bytes(b"")
    with pytest.raises(BadParameter, match=message):
        open_source(kind, path, Columns(), **options)


def test_a_missing_file_is_told_at_once(tmp_path):
    with pytest.raises(SourceError, match="must be a file"):
        open_source("csv", tmp_path / "none.csv")
    with pytest.raises(SourceError, match="must match a file"):
        open_source("csv", tmp_path / "*.csv")
    with pytest.raises(BadParameter, match="each file once"):
        open_source("csv", ["a", "a"])
