"""Which label is positive, in whichever order they come."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamlearn.errors import BadLabel, BadParameter, BadSnapshot
from streamlearn.learners.labels import LabelPair


@pytest.mark.parametrize(
    ("labels", "negative", "positive"),
    [
        ([0, 1], 0, 1),
        ([1, 0], 0, 1),
        ([True, False], False, True),
        ([-1, 1], -1, 1),
        ([2, 1], 2, 1),
        ([1, 2], 2, 1),
        ([3, 2], 2, 3),
        ([0, -1], -1, 0),
        (["b", "a"], "a", "b"),
        (["a", "b"], "a", "b"),
        ([0.5, 0.25], 0.25, 0.5),
    ],
)
def test_true_or_one_or_the_greater_is_positive(labels, negative, positive):
    pair = LabelPair("Test")
    for y in labels:
        pair.take(y)
    assert (pair.negative, pair.positive) == (negative, positive)


def test_the_named_one_is_positive():
    for order in (["a", "b"], ["b", "a"]):
        pair = LabelPair("Test", "a")
        assert [pair.take(y) for y in order] == [(int(y == "a"), False) for y in order]
        with pytest.raises(BadLabel, match="third"):
            pair.take("c")
    pair = LabelPair("Test", "a")
    pair.take("b")
    with pytest.raises(BadLabel, match="third"):
        pair.take("c")


def test_an_exchange_is_told_once():
    pair = LabelPair("Test")
    assert [pair.take(y) for y in ("b", "b", "a", "b")] == [(0, False), (0, False), (0, True), (1, False)]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from([5, 3, None]), max_size=12), st.integers(0, 12), st.sampled_from([object, float]))
def test_many_is_one_by_one(labels, cut, dtype):
    pair, cut_pair = LabelPair("Test"), LabelPair("Test")
    expected = [pair.take(y) for y in labels]
    array = np.array(labels, dtype=dtype)
    got, swaps = [], []
    for start, part in ((0, array[:cut]), (cut, array[cut:])):
        codes, swap_at = cut_pair.take_many(part)
        got += codes.tolist()
        swaps += [] if swap_at is None else [start + swap_at]
    assert got == [code for code, _ in expected]
    assert swaps == [i for i, (_, swap) in enumerate(expected) if swap]
    assert (pair.negative, pair.positive) == (cut_pair.negative, cut_pair.positive)


def test_missing_labels_are_no_labels():
    pair = LabelPair("Test")
    for y in (None, float("nan"), np.float32("nan"), pd.NA, pd.NaT):
        assert pair.take(y) == (-1, False)


@pytest.mark.parametrize("bad", [[1], (1,), b"a", 1j, object(), np.array([1]), np.datetime64("2020-01-01")])
def test_other_kinds_are_refused(bad):
    with pytest.raises(BadLabel):
        LabelPair("Test").take(bad)
    with pytest.raises(BadParameter):
        LabelPair("Test", bad)


def test_a_third_label_is_shown_as_a_plain_value():
    with pytest.raises(BadLabel, match=r"Test: labels must be 0 or 1, got a third: 2$"):
        LabelPair("Test").take_many(np.array([0, 1, 2]))


def test_text_and_numbers_do_not_mix():
    pair = LabelPair("Test")
    pair.take(0)
    with pytest.raises(BadLabel, match="both text or both numbers"):
        pair.take("1")


@pytest.mark.parametrize(
    "labels",
    [(0, 1), ("a", "b"), (False, True), (np.int8(3), np.int8(7)), (np.float32(0.5), np.float32(1)), (0.1, 1e300)],
)
def test_labels_and_their_types_survive_as_text(labels):
    pair, again = LabelPair("Test"), LabelPair("Test")
    for y in labels:
        pair.take(y)
    again.from_text(pair.to_text())
    assert [(type(a), a) for a in (again.negative, again.positive)] == [
        (type(a), a) for a in (pair.negative, pair.positive)
    ]


@pytest.mark.parametrize(
    "text", ["", "[]", "[1, 2]", '[["int", 1.5], null]', '[["object", 1], null]', '[["bool", 2], null]']
)
def test_a_wrong_text_is_refused(text):
    with pytest.raises(BadSnapshot):
        LabelPair("Test").from_text(text)
