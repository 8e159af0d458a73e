"""Categories become columns in the order of the events, whatever the cut into batches."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamlearn.errors import BadParameter, BadShape, BadSnapshot
from streamlearn.features.categories import OTHER, Vectoriser

CITIES = st.lists(st.sampled_from(["Rome", "Oslo", "Bonn", "Nice", "", "a=b", None]), max_size=30)


def as_events(vectoriser, words):
    column = np.empty(len(words), dtype=object)
    column[:] = words
    names, values = vectoriser.encode(("n",), np.ones((len(words), 1)), {"city": column})
    return [{name: v for name, v in zip(names, row, strict=True) if v} for row in values]


@settings(max_examples=80, deadline=None)
@given(CITIES, st.integers(0, 30), st.sampled_from(["onehot", "hash"]), st.integers(1, 5))
def test_the_cut_into_batches_does_not_matter(words, cut, encoding, cap):
    whole = as_events(Vectoriser(encoding=encoding, max_categories=cap), words)
    parts = Vectoriser(encoding=encoding, max_categories=cap)
    first = as_events(parts, words[:cut])
    again = Vectoriser()
    again.restore(parts.state())
    assert first + as_events(again, words[cut:]) == whole


def test_each_category_has_its_own_column_up_to_the_cap():
    events = as_events(Vectoriser(max_categories=2), ["Rome", "Oslo", "Bonn", "Rome", None, "Nice"])
    names = [sorted(set(event) - {"n"}) for event in events]
    assert names == [["city=Rome"], ["city=Oslo"], [f"city={OTHER}"], ["city=Rome"], [], [f"city={OTHER}"]]


def test_hashed_columns_are_bounded_and_stable():
    vectoriser = Vectoriser(encoding="hash", n_buckets=8)
    events = as_events(vectoriser, [f"word{k}" for k in range(1000)])
    assert {name for event in events for name in event} == {"n", *(f"city#{k}" for k in range(8))}
    assert as_events(Vectoriser(encoding="hash", n_buckets=8), ["Rome"]) == [{"n": 1.0, "city#5": 1.0}]


def test_a_batch_without_text_passes_untouched():
    values = np.ones((2, 1))
    assert Vectoriser().encode(("n",), values, {})[1] is values


def test_an_encoded_column_may_not_take_the_name_of_another():
    column = np.array(["x"], dtype=object)
    with pytest.raises(BadShape, match="'city=x' twice"):
        Vectoriser().encode(("city=x",), np.ones((1, 1)), {"city": column})


@pytest.mark.parametrize("bad", [{"encoding": "other"}, {"max_categories": 0}, {"n_buckets": True}, {"n_buckets": 1.5}])
def test_parameters_are_checked(bad):
    with pytest.raises(BadParameter):
        Vectoriser(**bad)


def test_a_wrong_state_is_refused():
    state = Vectoriser().state()
    for key, value in (("found", "[1]"), ("found", "x"), ("encoding", "x"), ("n_buckets", None)):
        with pytest.raises(BadSnapshot):
            Vectoriser().restore({**state, key: value})
