"""The sketches that hold a reject rate, against exact quantiles and their own guarantee."""

import os
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamlearn.kernels import holding
from tests.naive.holding import NaiveHold

N = 300 if os.environ.get("NUMBA_DISABLE_JIT", "0") == "1" else 3000
BIN = np.expm1(holding.LOG_RATIO)
"""A quantile read from the sketch is within one bin, this share of its size."""


def state(rate):
    R = np.zeros(holding.SIZE)
    holding.start(R, rate)
    return R


def forecasts(seed, n=N, spread=2.0):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=n) * spread
    p = 1.0 / (1.0 + np.exp(-scores))
    codes = (rng.random(n) < p).astype(np.int8)
    return codes, p, scores


def observe(R, rate, codes, p, scores):
    costs, bars = np.empty(len(codes)), np.empty(len(codes))
    holding.observe(R, rate, codes, p, scores, costs, bars)
    return costs, bars


def abstained(p, costs):
    return (np.maximum(p, 1.0 - p) < 1.0 - costs) & (costs < 0.5)


@pytest.mark.parametrize("rate", [0.1, 0.2, 0.4])
def test_the_bar_is_the_exact_quantile_to_within_a_bin(rate):
    codes, p, scores = forecasts(1)
    first = max(np.argmax(codes == 0), np.argmax(codes == 1)) + 1  # nothing is taken before both classes were seen
    naive = NaiveHold(rate)
    for probability in p[first:]:
        naive.take(probability)

    R = state(rate)
    observe(R, rate, codes, p, scores)

    cost = holding.event_cost(R)
    near = np.quantile(np.abs(scores), [max(rate - 0.05, 0.0), rate + 0.05])
    assert near[0] < np.log((1.0 - cost) / cost) < near[1]
    # The levels have moved apart by the few events that fell between the two bars.
    naive.level = R[holding.LEVEL]
    assert np.log((1.0 - cost) / cost) == pytest.approx(naive.bar(), rel=2 * BIN, abs=holding.SMALLEST)


@settings(max_examples=20)
@given(st.integers(0, 99), st.floats(0.05, 0.95), st.lists(st.integers(1, 40), max_size=5))
def test_many_are_taken_as_one_by_one(seed, rate, cuts):
    codes, p, scores = forecasts(seed, 120)
    codes[::7] = -1
    whole, parts = state(rate), state(rate)

    costs, bars = observe(whole, rate, codes, p, scores)

    edges = [0, *np.minimum(np.cumsum(cuts), 120).astype(int), 120]
    found = [observe(parts, rate, codes[a:b], p[a:b], scores[a:b]) for a, b in pairwise(edges)]
    assert np.array_equal(whole, parts)
    assert np.array_equal(costs, np.concatenate([c for c, _ in found]))
    assert np.array_equal(bars, np.concatenate([b for _, b in found]))


@pytest.mark.parametrize("rate", [0.1, 0.4, 1.0])
def test_the_rate_holds_on_a_stream_that_turns_over_and_over(rate):
    p = np.concatenate([forecasts(k, N // 6, spread)[1] for k, spread in enumerate([0.1, 9.0] * 3)])
    codes = np.arange(len(p)).astype(np.int8) % 2
    R = state(rate)

    costs, _ = observe(R, rate, codes, p, np.log(p / (1.0 - p)))

    # Of T events the share is off by no more than the way the level can go, and a step of it, over GAIN T.
    assert abs(abstained(p, costs).mean() - rate) <= (1.0 + holding.GAIN) / (holding.GAIN * len(p))


def test_the_rate_holds_where_half_of_all_forecasts_are_equal():
    codes, p, scores = forecasts(4)
    p[::2], scores[::2] = 0.6, np.log(1.5)
    R = state(0.3)

    costs, _ = observe(R, 0.3, codes, p, scores)

    assert abstained(p, costs)[N // 6 :].mean() == pytest.approx(0.3, abs=0.02 if N > 1000 else 0.08)


def test_sure_forecasts_and_unlabelled_events_are_harmless():
    codes = np.array([0, 1, 0, 1, -1, 1], dtype=np.int8)
    p = np.array([0.0, 1.0, 0.0, 1.0, 0.5, 1.0])
    R = state(0.5)

    costs, bars = observe(R, 0.5, codes, p, np.array([-1e300, 1e300, -1e300, 1e300, 0.0, 1e150]))

    assert np.isfinite(R).all()
    assert np.isfinite(bars).all()
    assert ((costs > 0.0) & (costs <= 0.5)).all()


def test_masses_are_scaled_back_before_they_overflow():
    codes, p, scores = forecasts(5, 200)
    near, fresh = state(0.2), state(0.2)
    near[holding.UNIT] = holding.LARGE / 1.01

    costs = observe(near, 0.2, codes, p, scores)[0]

    assert near[holding.UNIT] < 2.0
    assert costs == pytest.approx(observe(fresh, 0.2, codes, p, scores)[0], rel=1e-9)


def test_exchanging_the_classes_after_one_is_as_if_known_from_the_start():
    codes, p, scores = forecasts(6, 100)
    codes[:10] = 1
    codes[10] = 0
    swapped, straight = state(0.2), state(0.2)
    observe(swapped, 0.2, codes[:10], p[:10], scores[:10])

    holding.swap_classes(swapped)
    observe(swapped, 0.2, 1 - codes[10:], 1.0 - p[10:], 0.0 - scores[10:])

    observe(straight, 0.2, (1 - codes).astype(np.int8), 1.0 - p, 0.0 - scores)
    assert np.array_equal(swapped, straight)
