"""Screening: exactly the events that a learner would refuse are kept from all learners, however the input is cut."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlearn.errors import BadLabel, BadValue, TooManyFeatures
from streamlearn.runtime.screen import screen
from tests.naive.logistic import NaiveLogistic

NAMES = ("a", "b", "c")


def one_by_one(learner: NaiveLogistic, values: np.ndarray, labels: np.ndarray) -> list[int]:
    """Return the rows that the learner takes when it is fed single events."""
    good = []
    for row in range(len(values)):
        try:
            learner.test_then_learn_columns(NAMES, values[row : row + 1], labels[row : row + 1])
        except (BadValue, BadLabel, TooManyFeatures):
            continue
        good.append(row)
    return good


CELLS = st.sampled_from([0.0, 1.0, -2.5, float("nan"), float("inf")])
EVENTS = st.lists(st.tuples(CELLS, CELLS, CELLS, st.sampled_from([0, 1, 2, None, 0, 1])), min_size=1, max_size=30)


def arrays(events):
    values = np.array([event[:3] for event in events], dtype=np.float64)
    labels = np.array([event[3] for event in events], dtype=object)
    return values, labels


@given(events=EVENTS, max_features=st.integers(1, 3))
def test_the_good_rows_are_those_that_learning_one_by_one_would_take(events, max_features):
    values, labels = arrays(events)

    found = screen([NaiveLogistic(max_features=max_features)], NAMES, values, labels)

    assert found.good.tolist() == one_by_one(NaiveLogistic(max_features=max_features), values, labels)
    assert sorted([*found.good.tolist(), *found.refused]) == list(range(len(events)))


@given(events=EVENTS, cut=st.integers(0, 30))
def test_the_outcome_does_not_depend_on_the_cut_into_batches(events, cut):
    values, labels = arrays(events)
    learner = NaiveLogistic(max_features=2)

    found = []
    for start, stop in ((0, min(cut, len(events))), (min(cut, len(events)), len(events))):
        part = screen([learner], NAMES, values[start:stop], labels[start:stop])
        learner.learn_many([], None) if not len(part.good) else learner.test_then_learn_columns(
            NAMES, values[start:stop][part.good], labels[start:stop][part.good]
        )
        found += [start + row for row in part.good.tolist()]

    assert found == screen([NaiveLogistic(max_features=2)], NAMES, values, labels).good.tolist()


def test_an_event_that_one_learner_refuses_is_learned_by_none():
    values = np.array([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0], [3.0, 0.0, 0.0]])
    labels = np.array([0, 1, 1])

    found = screen([NaiveLogistic(), NaiveLogistic(max_features=1)], NAMES, values, labels)

    assert found.good.tolist() == [0, 2]
    assert found.refused[1][0] == "features"


def test_screening_changes_no_learner():
    learner = NaiveLogistic()
    before = learner.state()

    screen([learner], NAMES, np.ones((4, 3)), np.array([0, 1, 5, 0]))

    after = learner.state()
    assert {k: np.asarray(v).tolist() for k, v in after.items()} == {
        k: np.asarray(v).tolist() for k, v in before.items()
    }


@pytest.mark.parametrize(
    ("cell", "label", "kind"),
    [(float("nan"), 1, "value"), (1.0, "yes", "label"), (1.0, 7, "label")],
)
def test_the_reason_is_what_the_learner_said_without_its_row_number(cell, label, kind):
    values = np.array([[1.0, 1.0, 1.0], [1.0, 1.0, 1.0], [cell, 1.0, 1.0]])
    labels = np.array([0, 1, label], dtype=object)

    found = screen([NaiveLogistic()], NAMES, values, labels)

    assert list(found.refused) == [2]
    assert found.refused[2][0] == kind
    assert found.refused[2][1].startswith("NaiveLogistic: ")
    assert "row" not in found.refused[2][1]


def test_refusals_leave_no_cycles_that_hold_arrays():
    labels = np.empty(64, object)
    labels[:] = [0, 1, *[2, 0] * 31]
    gc.collect()
    gc.disable()
    try:
        screen([NaiveLogistic()], ("a",), np.ones((64, 1)), labels)
        assert gc.collect() == 0
    finally:
        gc.enable()
