"""Decoding against the standard library, whatever route a record takes."""

from __future__ import annotations

import csv
import io
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamlearn.errors import BadParameter
from streamlearn.runtime.decode import Columns
from streamlearn.runtime.decode_csv import CsvDecoder
from streamlearn.runtime.decode_libsvm import LibsvmDecoder
from streamlearn.runtime.decode_ndjson import NdjsonDecoder
from tests.naive import decode as naive

LONGEST = 1 << 20
names = st.sampled_from(["a", "b", "c", "naïve", 'quo"te', "tab\t", "label", "city", "skip"])
numbers = st.one_of(st.integers(-(10**25), 10**25), st.floats(), st.booleans())
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6)
values = st.one_of(numbers, numbers, numbers, texts, st.none(), st.lists(st.integers(), max_size=2))
ROLES = Columns(label="label", categorical=frozenset({"city"}), exclude=frozenset({"skip"}))


def decode(decoder, raw, limit=1000):
    """Return (numbers, label, texts) for each record, None for a refused one, and the refusals."""
    out, refusals, pos, line = [], [], 0, 1
    while pos < len(raw):
        found = decoder.decode(raw, pos, len(raw), line, limit)
        events = [None] * len(found.places)
        labels = found.labels.tolist()
        for row, record in enumerate(found.accepted.tolist()):
            cells = dict(zip(found.names, found.values[row].tolist(), strict=True))
            events[record] = (cells, labels[row], {k: v[row] for k, v in found.text.items()})
        refusals += [(len(out) + record, kind, reason) for record, kind, reason in found.refusals]
        out += events
        pos, line = found.pos, found.line
    assert [place for place, _, _ in refusals] == [place for place, event in enumerate(out) if event is None]
    return out, refusals


def same(found, expected):
    """Compare events with absent features as 0; labels and numbers by value and type."""
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert (one is None) == (other is None), (one, other)
        if one is None:
            continue
        assert {k: v for k, v in one[0].items() if v != 0} == {k: v for k, v in other[0].items() if v != 0}
        assert one[1] == other[1]
        assert type(one[1]) is type(other[1])
        assert list(one[2:]) == list(other[2:])


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.lists(st.tuples(names, values), max_size=6, unique_by=lambda pair: pair[0]).map(dict), max_size=12),
    st.booleans(),
    st.integers(1, 5),
)
def test_json_objects_are_decoded_like_the_json_module(rows, ascii_only, limit):
    lines = [json.dumps(row, ensure_ascii=ascii_only, separators=[(", ", ": "), (",", ":")][limit % 2]) for row in rows]
    raw = "".join(line + "\n" for line in lines).encode()
    found, _ = decode(NdjsonDecoder("f", ROLES, LONGEST), raw, limit)
    expected = naive.json_events(lines, "label", ("city",), ("skip",))
    expected = [_finite_label(event) for event in expected]
    same(found, expected)


usual = st.from_regex(r"-?(0|[1-9][0-9]{0,9})(\.[0-9]{1,10})?([eE][+-]?[0-9]{1,2})?", fullmatch=True)
unusual = st.sampled_from(
    ["01", "-", "1.", ".5", "+1", "1..2", "", "00.5", "-01", "1 ", "true", '"x"', "9" * 40, "0x1"]
)
ends = st.sampled_from(["}", "}", "}", "}\r", "} ", "}}", ",}", ""])


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(usual, st.one_of(usual, usual, unusual), usual, ends), max_size=12),
    st.sampled_from([("", ""), (" ", " "), ("", "  ")]),
    st.integers(1, 6),
)
def test_numbers_behind_keys_in_their_usual_order_are_those_of_the_json_module_bit_for_bit(rows, spaces, limit):
    comma, colon = spaces
    lines = ['{"a":1,"label":0,"b":2}'] + [
        f'{{"a":{colon}{a},{comma}"label":{colon}{label},{comma}"b":{colon}{b}{end}' for a, b, label, end in rows
    ]
    found, _ = decode(NdjsonDecoder("x", ROLES, LONGEST), ("\n".join(lines) + "\n").encode(), limit)
    assert len(found) == len(lines)
    for line, event in zip(lines, found, strict=True):
        try:
            expected = json.loads(line)
        except json.JSONDecodeError:
            assert event is None, line
            continue
        if event is None:  # more than JSON asks for: finite numbers, and no text among them
            assert type(expected["b"]) is str or max(abs(float(x)) for x in expected.values()) > 1e300, line
            continue
        written = json.loads(line, parse_int=float)  # the sign of -0 counts
        assert [float(event[0].get(key, 0.0)).hex() for key in "ab"] == [float(written[key]).hex() for key in "ab"]
        assert event[1] == expected["label"]
        assert type(event[1]) is type(expected["label"])


@pytest.mark.parametrize("late", ['{"quo\\"te": 2}', '{"a": 0.1234567890123456789012345, "b": 2}'])
def test_a_row_that_the_kernel_declines_may_bring_a_key_without_harm_to_the_rows_behind_it(late):
    raw = f'{{"a": 1}}\n{late}\n{{"a": 3}}\n{{"a": 4}}\n'.encode()
    found, _ = decode(NdjsonDecoder("f", ROLES, LONGEST), raw)
    assert [cells["a"] for cells, _, _ in found] == [1.0, json.loads(late).get("a", 0.0), 3.0, 4.0]


def _finite_label(event):
    if event is None or not isinstance(event[1], float) or math.isfinite(event[1]):
        return event
    return (event[0], None, event[2]) if math.isnan(event[1]) else None


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.sampled_from(
                ['{"a": 1}', '{"a":2,"b":true}', '{"b": "', '{"a": tru', '{"a": 1, "', '{"a": -', '{"a"', "{"]
            ),
            st.text('{}[]":,ab1e.-+ \\tn', max_size=14).filter(str.strip),
        ),
        max_size=8,
    )
)
def test_broken_json_is_refused_exactly_where_the_json_module_refuses_it(lines):
    raw = "".join(line + "\n" for line in lines).encode()
    found, _ = decode(NdjsonDecoder("f", Columns(), LONGEST), raw)
    expected = naive.json_events(lines, None)
    same(found, [event and (event[0], None, {}) for event in expected])


cell = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.integers(-(10**20), 10**20).map(str),
    st.sampled_from(["", " 1 ", "nan", "UP", 'a "b"', "x,y", "two\nlines", "é", "1e999", "+7", ".5", "5."]),
)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.lists(cell, min_size=3, max_size=5), max_size=12),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
    st.sampled_from(["\n", "\r\n"]),
    st.integers(1, 5),
)
def test_csv_records_are_decoded_like_the_csv_module(rows, quoting, line_end, limit):
    header = ["x", "label", "city", "y"]
    rows = [row for row in rows if row != [""]]
    out = io.StringIO(newline="")
    csv.writer(out, quoting=quoting, lineterminator=line_end).writerows([header, *rows])
    text = out.getvalue()
    body = text.split(line_end, 1)[1].encode()
    columns = Columns(label="label", categorical=frozenset({"city"}))
    found, _ = decode(CsvDecoder("f", header, columns, ",", LONGEST), body, limit)
    expected = naive.csv_events(text, "label", ("city",))
    same(found, [None if event and event[1] == "1e999" else event for event in expected])


entry = st.tuples(st.integers(0, 30), st.one_of(st.floats().map(repr), st.integers(-9, 9).map(str))).map(
    lambda pair: f"{pair[0]}:{pair[1]}"
)
svm_line = st.builds(
    lambda first, pairs, comment: " ".join([first, *pairs]) + comment,
    st.sampled_from(["+1", "-1", "0", "0.5", "1e2", "spam", "1,2"]),
    st.lists(st.one_of(entry, entry, entry, st.sampled_from(["1:", "a:1", "03:1", "5"])), max_size=5),
    st.sampled_from(["", "", " # note", " ", "\r"]),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(svm_line, max_size=12), st.integers(1, 5))
def test_libsvm_lines_are_decoded_like_a_split(lines, limit):
    raw = "".join(line + "\n" for line in lines).encode()
    found, _ = decode(LibsvmDecoder("f", Columns(), LONGEST), raw, limit)
    same([event and event[:2] for event in found], naive.libsvm_events(lines))


def refusal(decoder, line):
    out, refusals = decode(decoder, line + b"\n")
    assert out == [None]
    return refusals[0][1:]


@pytest.mark.parametrize(
    ("line", "kind", "part"),
    [
        (b'{"x": null}', "value", "'x' must be a finite number, got null"),
        (b'{"x": NaN}', "value", "got NaN"),
        (b'{"x": 1e999}', "value", "got 1e999"),
        (b'{"x": "red"}', "value", "declared in [features] categorical or exclude"),
        (b'{"x": [1]}', "value", "got an array; flatten or exclude it"),
        (b'{"x": {"y": 1}}', "value", "got an object; flatten or exclude it"),
        (b'{"x": 1, "x": 2}', "syntax", "'x' twice"),
        (b'{"x": 1', "syntax", "f, line 1, column 8"),
        (b"[1]", "syntax", "a JSON object, got an array"),
        (b'{"x": 1}{', "syntax", "Extra data"),
        (b'{"x": 01}', "syntax", "line 1, column"),
        (b"[" * 100_000, "syntax", "nested too deeply"),
        (b'{"x\xff": 1}', "encoding", "byte 4: must be UTF-8"),
        (b'{"x\x00": 1}', "encoding", "NUL"),
        (b'{"city": "\\ud800"}', "encoding", "lone surrogate"),
        (b'{"label": [1]}', "label", "number, boolean, text or null"),
        (b'{"city": [1]}', "value", "must be text"),
    ],
)
def test_a_json_refusal_says_where_and_why(line, kind, part):
    found_kind, reason = refusal(NdjsonDecoder("f", ROLES, LONGEST), line)
    assert found_kind == kind
    assert reason.startswith("f, line 1")
    assert part in reason


@pytest.mark.parametrize(
    ("line", "kind", "part"),
    [
        (b"1,2", "columns", "must have 3 columns as the header, got 2"),
        (b"1,2,3,4", "columns", "got 4"),
        (b",UP,1", "value", "column 'x' must be a finite number, got nothing"),
        (b"red,UP,1", "value", "column 'x' must be a finite number, got 'red'; text must be declared"),
        (b"nan,UP,1", "value", "got 'nan'"),
        (b"1e999,UP,1", "value", "got '1e999'"),
        (b"1_0,UP,1", "value", "got '1_0'"),
        (b"1,UP\xff,1", "encoding", "byte 5"),
        (b"1,U\0P,1", "encoding", "column 4: must be text, got a NUL byte"),
        (b"1,U\rP,1", "syntax", "one CSV record"),
        (b"1,1e999,1", "label", "must be finite"),
        (b'1,"' + b"x" * 200_000 + b'",1', "syntax", "field limit"),
    ],
)
def test_a_csv_refusal_says_where_and_why(line, kind, part):
    found_kind, reason = refusal(CsvDecoder("f", ["x", "label", "y"], Columns(label="label"), ",", LONGEST), line)
    assert found_kind == kind
    assert reason.startswith("f, line 1")
    assert part in reason


@pytest.mark.parametrize(
    ("line", "kind", "part"),
    [
        (b"1 qid:3 1:1", "columns", "no qid"),
        (b"1 1:1 1:2", "columns", "1 twice"),
        (b"1 a:1", "syntax", "index:value"),
        (b"1 01:1", "syntax", "index:value"),
        (b"1 1:nan", "value", "feature 1 must be a finite number"),
        (b"1,2 1:1", "label", "one value"),
        (b"1 1:0x10", "value", "feature 1 must be a finite number, got '0x10'\n"),
        (b"# note", "syntax", "only a comment"),
    ],
)
def test_a_libsvm_refusal_says_where_and_why(line, kind, part):
    found_kind, reason = refusal(LibsvmDecoder("f", Columns(), LONGEST), line)
    assert found_kind == kind
    assert part in f"{reason}\n"


def test_libsvm_text_refuses_what_it_cannot_have():
    for columns in (Columns(categorical=frozenset({"1"})), Columns(key="1"), Columns(label="y")):
        with pytest.raises(BadParameter, match="must be absent"):
            LibsvmDecoder("f", columns, LONGEST)
    found, _ = decode(LibsvmDecoder("f", Columns(exclude=frozenset({"7"})), LONGEST), b"1 3:1 7:2\n3:5\n")
    assert found == [({3: 1.0}, 1, {}), ({3: 5.0}, None, {})]


def test_labels_of_one_kind_come_as_a_numeric_array_and_mixed_ones_as_objects():
    def labels(raw):
        return NdjsonDecoder("f", Columns(label="y"), LONGEST).decode(raw, 0, len(raw), 1, 99).labels

    assert labels(b'{"y": 1}\n{"y": 0}\n').dtype == np.int64
    assert labels(b'{"y": 1.0}\n{"y": 0.5}\n').dtype == np.float64
    assert labels(b'{"y": true}\n{"y": false}\n').dtype == np.bool_
    mixed = labels(b'{"y": true}\n{"y": 1}\n{"y": 1.0}\n{"y": "1"}\n{"y": null}\n{"x": 1}\n{"y": 9007199254740993}\n')
    expected = [True, 1, 1.0, "1", None, None, 9007199254740993]
    assert [(type(v), v) for v in mixed] == [(type(v), v) for v in expected]


def test_names_are_those_of_the_batch_in_order_of_appearance_whatever_came_before():
    decoder = NdjsonDecoder("f", Columns(), LONGEST)
    decoder.decode(b'{"a": 1, "b": 2}\n', 0, 17, 1, 9)
    raw = b'{"b": 1}\n{"z": "text"}\n{"c": 3, "b": 1}\n'
    assert decoder.decode(raw, 0, len(raw), 1, 9).names == ("b", "c")


def test_a_thousand_new_keys_stay_within_the_cells_of_a_batch():
    raw = b"".join(b'{"k%d": 1, "k%d": 2}\n' % (k, k + 1) for k in range(1000))
    found, _ = decode(NdjsonDecoder("f", Columns(), LONGEST), raw)
    assert [{k: v for k, v in event[0].items() if v} for event in found] == [
        {f"k{k}": 1.0, f"k{k + 1}": 2.0} for k in range(1000)
    ]


def test_a_column_has_one_role_only():
    with pytest.raises(BadParameter, match="one role"):
        Columns(label="a", exclude=frozenset({"a"}))
    with pytest.raises(BadParameter, match="names must be different"):
        Columns(names=("a", "a"))
