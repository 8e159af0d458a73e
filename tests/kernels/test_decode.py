"""The text kernels against the standard library."""

from __future__ import annotations

import csv
import io
import os
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamlearn.kernels.decode import DECLINED, INTEGER, MORE, NO_LABEL, REAL, TAKEN, TEXT_LABEL, cells
from streamlearn.kernels.decode_csv import csv_record_end, csv_rows
from streamlearn.kernels.decode_libsvm import libsvm_rows
from tests.naive import decode as naive

COMPILED = os.environ.get("NUMBA_DISABLE_JIT", "0") == "0"
EXAMPLES = 300 if COMPILED else 40
PADDING = b"\0" * 8


@pytest.fixture(autouse=True)
def wrapping_words():
    """Words wrap on purpose; uncompiled, numpy would warn of it."""
    with np.errstate(over="ignore"):
        yield


def parse(texts):
    """Return (values, status) of number cells, one a row."""
    raw = [text.encode() for text in texts]
    ends = np.cumsum([len(text) + 1 for text in raw]) - 1
    spans = np.stack([ends - [len(text) for text in raw], ends], axis=1)[:, np.newaxis].copy()
    values, status = np.full((len(raw), 1), np.nan), np.zeros(len(raw), dtype=np.int8)
    buf = np.frombuffer(b"\n".join(raw) + b"\n" + PADDING, dtype=np.uint8)
    cells(buf, spans, -1, values, np.empty(len(raw)), np.empty(len(raw), dtype=np.int8), status)
    return values[:, 0], status


def bits(value):
    return struct.pack("<d", value)


digits = st.text("0123456789", min_size=1, max_size=21)
signs = st.sampled_from(["", "-", "+"])
exponents = st.builds(
    lambda e, sign, power: f"{e}{sign}{power}",
    st.sampled_from("eE"),
    signs,
    st.one_of(st.integers(0, 30), st.integers(0, 400)),
)
decimals = st.builds(
    lambda sign, whole, point, exponent: sign + whole + point + exponent,
    signs,
    digits,
    st.one_of(st.just(""), st.just("."), digits.map(lambda d: "." + d)),
    st.one_of(st.just(""), exponents),
)
doubles = st.floats(allow_nan=False, allow_infinity=False).map(repr)


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(st.one_of(decimals, doubles), min_size=1, max_size=20))
def test_a_number_equals_float_bit_for_bit_or_is_declined(texts):
    values, status = parse(texts)
    for text, value, taken in zip(texts, values.tolist(), (status == TAKEN).tolist(), strict=True):
        assert not taken or bits(value) == bits(float(text)), text


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(st.floats(min_value=1e-280, max_value=1e280), min_size=1, max_size=20))
def test_shortest_and_17_digit_doubles_are_taken(values):
    for texts in ([repr(v) for v in values], [f"{v:.16e}" for v in values]):
        found, status = parse(texts)
        assert (status == TAKEN).all()
        assert found.tolist() == values


def test_ties_and_neighbours_of_ties_round_like_float():
    seed = 20
    rng = np.random.default_rng(seed)
    texts = ["9007199254740993", "9007199254740995", "1e23", "8.5e22", "0.1e-5", "123456789012345678e-18", "5e-324"]
    for mantissa in rng.integers(2**52, 2**53, 200 if COMPILED else 20).tolist():
        half = 2 * mantissa + 1  # halfway between two doubles, exactly
        texts += [
            f"{half}e0",
            f"{half}",
            f"{half - 1}",
            f"{half}.0",
            f"{half * 5}e-1",
            f"{half * 25}e-2",
            f"{half}1e-1",
        ]
    values, status = parse(texts)
    assert [bits(v) for v, s in zip(values.tolist(), status, strict=True) if s == TAKEN] == [
        bits(float(t)) for t, s in zip(texts, status, strict=True) if s == TAKEN
    ]
    assert (status == TAKEN).mean() > 0.9


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(st.text("0123456789+-.eE_ nai", max_size=8), min_size=1, max_size=20))
def test_what_is_no_number_is_never_taken(texts):
    _, status = parse(texts)
    for text, taken in zip(texts, (status == TAKEN).tolist(), strict=True):
        assert not taken or naive.number(text) is not None, text


@pytest.mark.parametrize(
    "text", ["", "-", ".", "e5", "1e", "1e+", "1_0", "nan", "inf", "0x10", "1 ", "--1", "1.2.3", "1,5"]
)
def test_other_spellings_are_declined(text):
    assert parse([text])[1].tolist() == [DECLINED]


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.text('a",\n\r', max_size=30))
def test_a_record_ends_where_the_csv_module_ends_it(text):
    text = text.replace("\r", "")  # a lone carriage return ends a record for the csv module alone
    whole = text + "\n"
    end, newlines = csv_record_end(np.frombuffer(whole.encode(), dtype=np.uint8), 0, len(whole), ord(","))
    lines = io.StringIO(whole, newline="")
    next(csv.reader(lines))
    ended = end >= 0
    if ended:
        assert end + 1 == lines.tell()
        assert newlines == whole[: end + 1].count("\n")
    else:
        assert lines.read() == ""


def csv_status(text, n_columns):
    raw = text.encode()
    buf = np.frombuffer(raw + PADDING, dtype=np.uint8)
    spans = np.empty((9, n_columns, 2), dtype=np.int64)
    places, status = np.empty((9, 3), dtype=np.int64), np.empty(9, dtype=np.int8)
    targets = np.arange(n_columns)
    n, pos, line, why = csv_rows(buf, 0, len(raw), 1, 1000, ord(","), True, targets, spans, places, status)
    found = [
        [raw[a:b].decode() for a, b in row] for row, s in zip(spans[:n].tolist(), status[:n], strict=True) if s == TAKEN
    ]
    return found, status[:n].tolist(), (pos, line, why), [raw[a:b] for a, b, _ in places[:n].tolist()]


def test_plain_and_simply_quoted_csv_rows_are_taken_and_the_rest_declined():
    text = '1,"a,b",\r\n\n2,c"d,3\n"x\ny",1,2\n1,2\n7,8,9\n'
    found, status, end, raws = csv_status(text, 3)
    assert found == [["1", "a,b", ""], ["7", "8", "9"]]
    assert status == [TAKEN, DECLINED, DECLINED, DECLINED, TAKEN]
    assert raws == [b'1,"a,b",', b'2,c"d,3', b'"x\ny",1,2', b"1,2", b"7,8,9"]
    assert end == (len(text), 1 + text.count("\n"), MORE)


def test_a_label_cell_is_integer_real_text_or_absent():
    raw = b"+1\n0.5\nUP\n\n"
    spans = np.array([[[0, 2]], [[3, 6]], [[7, 9]], [[10, 10]]])
    kinds, status = np.empty(4, dtype=np.int8), np.zeros(4, dtype=np.int8)
    cells(np.frombuffer(raw + PADDING, dtype=np.uint8), spans, 0, np.empty((4, 0)), np.empty(4), kinds, status)
    assert kinds.tolist() == [INTEGER, REAL, TEXT_LABEL, NO_LABEL]


def test_libsvm_rows_are_cut_and_stop_where_the_room_ends():
    raw = b"+1 3:1 7:0.5\n\n-1\n0 2:1 1:1\n1 5:1 6:1 7:1\n"
    labels, pointers = np.empty((9, 2), dtype=np.int64), np.empty(10, dtype=np.int64)
    indexes, spans = np.empty(4, dtype=np.int64), np.empty((4, 2), dtype=np.int64)
    places, status = np.empty((9, 3), dtype=np.int64), np.empty(9, dtype=np.int8)
    buf = np.frombuffer(raw + PADDING, dtype=np.uint8)
    n, pos, line, _ = libsvm_rows(buf, 0, len(raw), 1, 1000, labels, pointers, indexes, spans, places, status)
    assert (n, raw[pos:], line) == (3, b"1 5:1 6:1 7:1\n", 5)
    assert status[:3].tolist() == [TAKEN, TAKEN, DECLINED]
    assert pointers[:4].tolist() == [0, 2, 2, 2]
    assert indexes[:2].tolist() == [3, 7]
