"""Files cut into parts."""

import csv
import gzip
import io

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamlearn.errors import SourceError
from streamlearn.runtime.decode import Columns
from streamlearn.runtime.parts import open_part, plan_fingerprint, plan_parts
from streamlearn.runtime.sections import SourceSection

COLUMNS = Columns(label="y", categorical=frozenset({"t"}))


def events(source, parts, columns=COLUMNS):
    out = []
    for part in parts:
        opened = open_part(source, columns, part)
        while (batch := opened.poll(1000, 1.0)) is not None:
            assert not batch.rejected
            texts = batch.text.get("t", [None] * len(batch))
            out += list(zip(batch.values.tolist(), list(texts), list(batch.labels), strict=True))
        opened.close()
    return out


texts = st.text(alphabet='ab",\n é', max_size=8)


@given(rows=st.lists(st.tuples(st.integers(-9, 9), texts), max_size=40), n_parts=st.integers(1, 9))
@settings(max_examples=40, deadline=None)
def test_the_parts_of_a_csv_file_hold_each_record_once_whatever_is_in_its_quotes(tmp_path_factory, rows, n_parts):
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    writer.writerows([["x", "t", "y"], *([x, t, k % 2] for k, (x, t) in enumerate(rows))])
    path.write_bytes(text.getvalue().encode())
    source = SourceSection(kind="csv")
    parts = plan_parts(source, [str(path)], n_parts)
    assert len(parts) <= n_parts
    assert [part.index for part in parts] == list(range(len(parts)))
    assert events(source, parts) == events(source, plan_parts(source, [str(path)], 1))
    assert sum(part.end - part.begin for part in parts) == path.stat().st_size


@pytest.mark.parametrize("n_parts", [1, 3, 7, 500])
def test_the_parts_of_an_ndjson_file_hold_each_line_once(tmp_path, n_parts):
    path = tmp_path / "a.ndjson"
    path.write_text("".join(f'{{"x": {k}, "y": {k % 2}}}\n' for k in range(200)))
    source, columns = SourceSection(kind="ndjson"), Columns(label="y")
    parts = plan_parts(source, [str(path)], n_parts)
    assert [x for (x,), _, _ in events(source, parts, columns)] == list(range(200))


def test_several_files_are_cut_to_parts_of_about_equal_size(tmp_path):
    for name, n in (("a", 10), ("b", 1000)):
        (tmp_path / f"{name}.ndjson").write_text("".join(f'{{"x": {k}, "y": 1}}\n' for k in range(n)))
    paths = [str(tmp_path / "a.ndjson"), str(tmp_path / "b.ndjson")]
    parts = plan_parts(SourceSection(kind="ndjson"), paths, 8)
    sizes = [part.end - part.begin for part in parts if part.partition == paths[1]]
    assert len(sizes) == 8
    assert max(sizes[:-1]) - min(sizes[:-1]) < 40


def test_rows_of_parquet_files_are_cut_by_number(tmp_path):
    path = tmp_path / "a.parquet"
    pl.DataFrame({"x": np.arange(1000.0), "y": np.arange(1000) % 2}).write_parquet(path, row_group_size=300)
    source, columns = SourceSection(kind="parquet"), Columns(label="y")
    parts = plan_parts(source, [str(path)], 4)
    assert [(part.begin, part.end) for part in parts] == [(0, 250), (250, 500), (500, 750), (750, 1000)]
    assert [x for (x,), _, _ in events(source, parts, columns)] == list(range(1000))


def test_a_compressed_file_is_one_part(tmp_path):
    path = tmp_path / "a.ndjson.gz"
    path.write_bytes(gzip.compress(b'{"x": 1, "y": 0}\n' * 50))
    source = SourceSection(kind="ndjson")
    parts = plan_parts(source, [str(path)], 4)
    assert len(parts) == 1
    assert len(events(source, parts, Columns(label="y"))) == 50


def test_the_fingerprint_changes_with_the_file_and_the_cut(tmp_path):
    path = tmp_path / "a.ndjson"
    source = SourceSection(kind="ndjson")
    path.write_bytes(b'{"x": 1, "y": 0}\n' * 50)
    first = plan_fingerprint(plan_parts(source, [str(path)], 4))
    assert plan_fingerprint(plan_parts(source, [str(path)], 4)) == first
    assert plan_fingerprint(plan_parts(source, [str(path)], 5)) != first
    path.write_bytes(b'{"x": 2, "y": 0}\n' * 50)
    assert plan_fingerprint(plan_parts(source, [str(path)], 4)) != first


def test_a_file_that_is_not_there_is_named(tmp_path):
    for kind in ("csv", "parquet"):
        with pytest.raises(SourceError, match="nowhere"):
            plan_parts(SourceSection(kind=kind), [str(tmp_path / "nowhere")], 2)
