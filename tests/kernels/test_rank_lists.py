import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlearn.kernels.rank_lists import (
    collapse,
    count_inside,
    count_pairs,
    count_pairs_beyond,
    merge,
    round_down,
    round_up,
)

N_CALLS = 60 if os.environ.get("NUMBA_DISABLE_JIT") == "1" else 400

scores = st.one_of(st.integers(-4, 4).map(float), st.floats(-1e300, 1e300))
events = st.lists(st.tuples(st.integers(0, 1), scores), max_size=30)
spread = st.one_of(st.integers(-40, 40).map(float), st.floats(-1e300, 1e300))
many = st.lists(st.tuples(st.integers(0, 1), spread), max_size=60)  # more distinct scores than a stride or two


def as_list(pairs, dtype=np.int64):
    ordered = sorted(pairs, key=lambda pair: pair[1])
    keys, mass = np.empty(len(pairs)), np.empty((2, len(pairs)), dtype)
    codes = np.array([y for y, _ in ordered], np.int8)
    values = np.array([s for _, s in ordered], np.float64)
    size = collapse(keys, mass, values, codes, np.ones(len(pairs), dtype))
    return keys[:size].copy(), mass[:, :size].copy()


def as_dict(keys, mass):
    return {key: tuple(column) for key, column in zip(keys.tolist(), mass.T.tolist(), strict=True)}


def counted(pairs):
    found = {}
    for y, s in pairs:
        negatives, positives = found.get(s, (0, 0))
        found[s] = (negatives + (y == 0), positives + (y == 1))
    return found


@given(events)
def test_a_list_has_each_score_once_in_order_with_its_counts(pairs):
    keys, mass = as_list(pairs)
    assert as_dict(keys, mass) == counted(pairs)
    assert (np.diff(keys) > 0).all()


def sums(mass):
    return np.concatenate([np.zeros((2, 1), mass.dtype), np.cumsum(mass, axis=1)], axis=1)


def merged(old, new):
    keys, mass = np.empty(len(old[0]) + len(new[0])), np.empty((2, len(old[0]) + len(new[0])), old[1].dtype)
    pairs = np.empty(4, old[1].dtype)
    size = merge(pairs, keys, mass, old[0], *old[1], new[0], *new[1])
    return keys[:size].copy(), mass[:, :size].copy(), pairs.tolist()


def pairs_by_loop(old, new, tau):
    expected = [0, 0, 0, 0]
    for y, s in new:
        for z, t in old:
            if y != z:
                difference = s - t if y == 1 else t - s
                expected[0 if y == 1 else 2] += difference > tau
                expected[1 if y == 1 else 3] += difference < -tau
    return expected


@given(many, many)
def test_merging_two_lists_gives_the_list_of_all_events_and_their_pairs(old, new):
    keys, mass, pairs = merged(as_list(old), as_list(new))
    assert as_dict(keys, mass) == counted(old + new)
    assert pairs == pairs_by_loop(old, new, 0.0)
    assert (np.diff(keys) > 0).all()


@given(many, many)
def test_pairs_of_old_and_new_events_are_counted_as_by_a_loop(old, new):
    (keys, mass), (new_keys, new_mass) = as_list(old), as_list(new)
    out = np.empty(4, np.int64)
    count_pairs(out, keys, sums(mass), new_keys, *new_mass)
    assert out.tolist() == pairs_by_loop(old, new, 0.0)


@given(many, many, st.sampled_from([0.0, 1.0, 2.5]))
def test_pairs_further_apart_than_tau_are_counted_as_by_a_loop(old, new, tau):
    (keys, mass), (new_keys, new_mass) = as_list(old), as_list(new)
    out = np.empty(4, np.int64)
    count_pairs_beyond(out, keys, sums(mass), new_keys, *new_mass, tau)
    assert out.tolist() == pairs_by_loop(old, new, tau)


@given(many)
def test_pairs_within_a_list_are_counted_as_by_a_loop(pairs):
    mass = as_list(pairs)[1]
    out = np.empty(2, np.int64)
    count_inside(out, sums(mass)[0], mass[1])
    differences = [s - t for y, s in pairs for z, t in pairs if y == 1 and z == 0]
    assert out.tolist() == [sum(d > 0 for d in differences), sum(d < 0 for d in differences)]


def test_equal_infinities_count_neither_way():
    (keys, mass), out = as_list([(0, -np.inf), (1, 0.0), (0, np.inf)]), np.empty(4, np.int64)
    (new_keys, new_mass) = as_list([(1, -np.inf), (1, np.inf)])
    count_pairs(out, keys, sums(mass), new_keys, *new_mass)
    assert out.tolist() == [1, 1, 0, 0]
    with np.errstate(invalid="ignore"):  # uncompiled, numpy warns of the difference of two infinities
        count_pairs_beyond(out, keys, sums(mass), new_keys, *new_mass, 0.5)
    assert out.tolist() == [1, 1, 0, 0]


@pytest.mark.parametrize("rounding", [round_down, round_up])
@given(events, st.floats(0.5, 20.0))
def test_rounding_keeps_the_events_and_moves_them_one_way_only(rounding, pairs, limit):
    keys, mass = as_list(pairs)
    old_keys, old_mass = keys.copy(), mass.copy()
    size = rounding(keys, mass, len(keys), limit)
    assert mass[:, :size].sum(axis=1).tolist() == old_mass.sum(axis=1).tolist()
    assert set(keys[:size].tolist()) <= set(old_keys.tolist())
    for key in old_keys:
        before, after = old_mass[:, old_keys <= key].sum(axis=1), mass[:, :size][:, keys[:size] <= key].sum(axis=1)
        assert (after >= before).all() if rounding is round_down else (after <= before).all()


@pytest.mark.parametrize("rounding", [round_down, round_up])
@given(events)
def test_rounding_without_limit_leaves_few_keys_and_one_for_equal_masses(rounding, pairs):
    distinct = {s: (1, s) for _, s in pairs}
    keys, mass = as_list(list(distinct.values()))
    assert rounding(keys, mass, len(keys), 1e9) == min(1, len(distinct))


@pytest.mark.parametrize("rounding", [round_down, round_up])
def test_rounding_again_and_again_does_not_push_heavy_keys_along(rounding):
    # Light new keys arrive between heavy ones before every call: the median of the old events must stay near 1/2.
    rng = np.random.default_rng(3)
    keys, mass = as_list([])
    total = 0
    for _ in range(N_CALLS):
        new = as_list([(int(rng.integers(0, 2)), float(s)) for s in rng.random(50)])
        keys, mass, _ = merged((keys, mass), new)
        total += 50
        size = rounding(keys, mass, len(keys), total / 50)
        keys, mass = keys[:size].copy(), mass[:, :size].copy()
    below = np.cumsum(mass.sum(axis=0)) / total
    median = keys[int(np.searchsorted(below, 0.5))]
    # Groups of 1/50 of the events; twice that, and sampling noise of 1/sqrt(4 n).
    assert abs(median - 0.5) < 2 / 50 + 3 / np.sqrt(4 * total)
