"""Batches grow and shrink with the time they take, within bounds."""

from __future__ import annotations

import pytest

from streamlearn.runtime.pace import FIRST_BATCH, QUICK_S, SLOW_S, Pace


def test_quick_batches_grow_to_the_most_that_was_asked_for():
    pace = Pace(5 * FIRST_BATCH)
    taken = []
    for _ in range(4):
        taken.append(pace.events)
        pace.took(QUICK_S / 2)
    assert taken == [FIRST_BATCH, 2 * FIRST_BATCH, 4 * FIRST_BATCH, 5 * FIRST_BATCH]


def test_slow_batches_shrink_to_the_first_size():
    pace = Pace(4 * FIRST_BATCH)
    for _ in range(2):
        pace.took(0.0)
    taken = []
    for _ in range(4):
        taken.append(pace.events)
        pace.took(SLOW_S * 2)
    assert taken == [4 * FIRST_BATCH, 2 * FIRST_BATCH, FIRST_BATCH, FIRST_BATCH]


@pytest.mark.parametrize("seconds", [QUICK_S, SLOW_S])
def test_in_between_the_size_stays(seconds):
    pace = Pace(4 * FIRST_BATCH)
    pace.took(0.0)
    pace.took(seconds)
    assert pace.events == 2 * FIRST_BATCH


@pytest.mark.parametrize("seconds", [0.0, 10.0])
def test_a_small_batch_that_was_asked_for_stays_small(seconds):
    pace = Pace(40)
    pace.took(seconds)
    assert pace.events == 40
