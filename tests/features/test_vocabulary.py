"""Names to columns: bounded, in an order of their own, and exact about what is a number."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamlearn.errors import BadShape, BadSnapshot, BadValue
from streamlearn.features.vocabulary import Vocabulary, checked_names


def vocabulary(*names: str | int) -> Vocabulary:
    made = Vocabulary("Test", 100)
    made.grow(names)
    return made


@settings(max_examples=100, deadline=None)
@given(st.permutations(["a", "b", "c", "d", "e"]), st.sets(st.sampled_from("abcde")), st.sampled_from(["", "e", "de"]))
def test_a_row_has_each_value_in_its_column(order, present, dormant):
    v = vocabulary(*(name for name in "abcde" if name not in dormant))
    v.remember(dormant)
    x = {name: (0.0 if name in dormant else float(ord(name))) for name in order if name in present}
    row = v.row(x)
    assert row is not None
    assert row.tolist() == [[x.get(name, 0.0) for name in v.names]]


def test_an_event_with_an_unknown_name_has_no_row():
    assert vocabulary("a", "b").row({"a": 1.0, "c": 2.0}) is None
    assert vocabulary("a", "b").row({"c": 2.0}) is None


def test_a_dormant_name_with_a_value_has_no_row():
    v = vocabulary("a")
    v.remember(["z"])
    assert v.row({"a": 1.0, "z": 0}) is not None
    assert v.row({"a": 1.0, "z": 3.0}) is None
    v.grow(["z"])
    assert v.row({"a": 1.0, "z": 3.0}).tolist() == [[1.0, 3.0]]


def test_dormant_names_are_bounded():
    v = Vocabulary("Test", 10)
    for k in range(100):
        v.remember([f"n{k}"])
    assert len(v._dormant) == 10


@pytest.mark.parametrize("value", ["1", "x", None, [1.0], 1j, 10**400, b"1", np.array([1.0, 2.0])])
def test_what_is_no_number_has_no_row(value):
    assert vocabulary("a").row({"a": value}) is None
    assert vocabulary("a", "b").row({"a": value, "b": 1.0}) is None


@pytest.mark.parametrize("value", [True, np.bool_(True), 1, np.int8(1), np.float32(1.0), np.uint64(1)])
def test_every_real_number_is_one(value):
    assert vocabulary("a").row({"a": value}).tolist() == [[1.0]]


def test_arrays_are_taken_by_position_whatever_the_order_of_birth():
    v = vocabulary(2, 0, 1)
    assert v.row(np.array([10.0, 11.0, 12.0])).tolist() == [[12.0, 10.0, 11.0]]
    assert v.row(np.array([10.0, 11.0])) is None
    assert vocabulary("a", "b").row(np.array([1.0, 2.0])) is None


def test_new_names_are_sorted_numbers_first():
    assert vocabulary().unseen(["b", "a10", "a9"]) == ["a10", "a9", "b"]
    assert vocabulary().unseen([10, 9, 0]) == [0, 9, 10]


def test_names_and_positions_do_not_mix():
    with pytest.raises(BadShape, match="by name"):
        vocabulary("a").refuse_other_kind([0])
    with pytest.raises(BadShape, match="by position"):
        vocabulary(0).refuse_other_kind(["a"])


def test_aligned_rows_are_the_given_ones_where_they_fit():
    v = vocabulary("a", "b")
    X = np.arange(6.0).reshape(3, 2)
    assert v.align(("a", "b"), X) is X
    assert v.align(("b", "x", "a"), np.arange(3.0).reshape(1, 3)).tolist() == [[2.0, 0.0]]
    assert v.align(("b", "x"), np.arange(2.0).reshape(1, 2)).tolist() == [[0.0, 0.0]]
    turned = v.align(("b", "a"), np.arange(4.0).reshape(2, 2))
    assert turned.tolist() == [[1.0, 0.0], [3.0, 2.0]]
    assert turned.flags.c_contiguous


def test_names_survive_as_text():
    v = vocabulary("ä", "b\n", "c")
    again = Vocabulary("Test", 100)
    again.from_text(v.to_text())
    assert again.names == v.names
    for bad in ('["a", "a"]', "[1.5]", "{}", "[true]", "3"):
        with pytest.raises(BadSnapshot):
            again.from_text(bad)


def test_names_must_be_text_or_whole_numbers():
    assert checked_names("Test", ["a", np.int64(3), np.str_("b")]) == ("a", 3, "b")
    for bad in (1.5, True, None, ("a", "b"), b"a"):
        with pytest.raises(BadValue):
            checked_names("Test", [bad])
    with pytest.raises(BadShape, match="'a' twice"):
        checked_names("Test", ["a", "b", "a"])
