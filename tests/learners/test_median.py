"""The geometric median, of points and of streams."""

import inspect

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from streamlearn import GeometricMedian, geometric_median
from streamlearn.errors import BadParameter, BadShape, BadValue
from tests.contract_estimator import CHECKS
from tests.naive import robust as naive

# A relative gap of 1e-10 in the sum of distances; the naive reference stops at about the same.
GAP = 1e-9

FORMS = ({}, {"window": 7}, {"window": None}, {"window": None, "averaged": True}, {"window": None, "half_life": 20.0})


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
@pytest.mark.parametrize("params", FORMS, ids=str)
def test_contract(params, check, tmp_path):
    def make(**changes):
        return GeometricMedian(**{**params, **changes})

    check(make, tmp_path / "m") if "path" in inspect.signature(check).parameters else check(make)


def in_given_order(model, n_features):
    """The median with columns as in the array, those that were always 0 included."""
    out = np.zeros(n_features)
    out[list(model.feature_names)] = model.median_
    return out


def cloud(seed, n=40, m=4, bad=0.3, far=100.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m))
    X[: int(bad * n)] += far
    return rng.permutation(X)


@pytest.mark.parametrize("seed", range(5))
def test_sum_of_distances_is_that_of_the_naive_reference(seed):
    P = cloud(seed)
    expected = naive.total_distance(P, naive.geometric_median(P, 600))
    assert naive.total_distance(P, geometric_median(P)) <= expected * (1 + GAP)
    assert naive.total_distance(P, GeometricMedian(window=40).learn_many(P).median_) <= expected * (1 + GAP)


@settings(max_examples=60, deadline=None)
@given(arrays(np.float64, st.tuples(st.integers(1, 9), st.integers(1, 3)), elements=st.integers(-3, 3).map(float)))
def test_no_nearby_point_is_better_whatever_the_ties(P):
    y = geometric_median(P)
    best = naive.total_distance(P, y)
    rng = np.random.default_rng(0)
    for step in (1e-3, 0.1, 1.0):
        for z in [*(y + step * rng.normal(size=(20, P.shape[1]))), *P]:
            assert best <= naive.total_distance(P, z) + GAP * (1 + best)
    windowed = in_given_order(GeometricMedian(window=len(P)).learn_many(P), P.shape[1])
    # The median of a window comes from squared distances alone: digits are lost where points nearly coincide.
    assert naive.total_distance(P, windowed) <= best + 1e-6 * (1 + best)


def test_a_point_that_is_the_median_is_returned_exactly():
    P = np.array([[0.0, 0.0], [1.0, 0.0], [-1.0, 0.1], [0.0, 1.0], [0.1, -1.0]])
    assert geometric_median(P).tolist() == [0.0, 0.0]
    assert geometric_median([[5.0, -2.0]]).tolist() == [5.0, -2.0]


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("params", FORMS, ids=str)
def test_moves_with_shift_rotation_and_scale(scale, params):
    P = cloud(3, n=60)
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(4, 4)))[0]
    shift = np.array([3.0, -100.0, 7.0, 0.5])
    moved = (P @ turn + shift) * scale
    base = geometric_median(P) @ turn + shift
    assert np.allclose(geometric_median(moved) / scale, base, rtol=0, atol=1e-8)
    straight = GeometricMedian(**params).learn_many(P).median_ @ turn + shift
    # The recursion's running median of distances may break a near tie the other way after a rotation.
    assert np.allclose(GeometricMedian(**params).learn_many(moved).median_ / scale, straight, rtol=0, atol=1e-6)


@pytest.mark.parametrize("bad", [0.2, 0.45])
def test_far_rows_move_the_window_by_no_more_than_the_bound(bad):
    # Lemma 1: with a share g of bad rows the median of all is within (1 - g) / sqrt(1 - 2 g) of the good ones' radius.
    n_bad = int(bad * 40)
    P = cloud(11, bad=0.0)
    P[:n_bad] = 1e6
    good = P[n_bad:]
    centre = geometric_median(good)
    radius = np.linalg.norm(good - centre, axis=1).max()
    moved = np.linalg.norm(GeometricMedian(window=40).learn_many(P).median_ - centre)
    g = n_bad / 40
    assert moved <= (1 - g) / np.sqrt(1 - 2 * g) * radius
    assert np.linalg.norm(P.mean(axis=0) - centre) > 1e5


@pytest.mark.parametrize(("params", "bound"), [({"window": None}, 0.02), ({"window": None, "averaged": True}, 0.05)])
def test_the_recursion_comes_near_the_exact_median_of_all_rows(params, bound):
    X = cloud(5, n=4000, m=20, bad=0.2, far=1e4)
    exact = geometric_median(X)
    spread = np.median(np.linalg.norm(X - exact, axis=1))
    assert np.linalg.norm(GeometricMedian(**params).learn_many(X).median_ - exact) < bound * spread
    assert np.linalg.norm(X.mean(axis=0) - exact) > 1000 * spread


def test_the_published_step_is_that_of_the_naive_recursion():
    X = cloud(6, n=80)
    expected = naive.proximal_filter(X[15:], naive.geometric_median(X[:15]), 15, c_a=0.7)
    actual = GeometricMedian(window=None, c_a=0.7).learn_many(X).median_
    assert np.allclose(actual, expected, atol=1e-7)


def test_the_window_forgets_and_the_recursion_with_half_life_follows():
    rng = np.random.default_rng(7)
    X = np.concatenate([rng.normal(size=(300, 3)), rng.normal(size=(400, 3)) + 4.0])
    far = {
        name: np.linalg.norm(GeometricMedian(**params).learn_many(X).median_ - 4.0)
        for name, params in (
            ("window", {}),
            ("half_life", {"window": None, "half_life": 30.0}),
            ("all", {"window": None}),
        )
    }
    assert far["window"] < 0.6
    assert far["half_life"] < 1.0
    assert far["all"] > 1.5


def test_weight_and_distance_of_a_far_row():
    X = cloud(8, bad=0.0)
    for params in ({}, {"window": None}):
        model = GeometricMedian(**params).learn_many(X)
        near = model.weight_
        model.learn_one(np.full(4, 1e5))
        assert model.distance_ == pytest.approx(2e5, rel=1e-3)
        assert 0 < model.weight_ < near / 100


@pytest.mark.parametrize(
    ("params", "rule"),
    [
        ({"window": 0}, "window must be a whole number >= 1, got 0"),
        ({"window": 5, "averaged": True}, "window must be None with averaged"),
        ({"window": None, "c_a": -1.0}, "c_a must be a number > 0"),
        ({"window": None, "half_life": float("inf")}, "half_life must be a number > 0"),
        ({"window": None, "n_start": 0}, "n_start must be"),
        ({"averaged": 1}, "averaged must be True or False"),
    ],
)
def test_bad_parameters_are_named(params, rule):
    with pytest.raises(BadParameter, match="GeometricMedian: " + rule):
        GeometricMedian(**params)


def test_bad_points_are_refused():
    with pytest.raises(BadShape, match="n_points"):
        geometric_median(np.zeros((0, 3)))
    with pytest.raises(BadShape):
        geometric_median([1.0, 2.0])
    with pytest.raises(BadValue):
        geometric_median([[np.nan, 1.0]])
    with pytest.raises(BadParameter, match="tolerance"):
        geometric_median([[0.0]], tolerance=0.0)


def test_weights_count_points_as_often_as_they_say():
    points = np.random.default_rng(12).normal(size=(9, 3))
    counts = np.array([1, 3, 2, 1, 4, 1, 0, 2, 5])
    repeated = geometric_median(np.repeat(points, counts, axis=0))
    assert geometric_median(points, weights=counts) == pytest.approx(repeated, abs=1e-8)
    assert geometric_median(points, weights=np.full(9, 7.5)) == pytest.approx(geometric_median(points), abs=1e-8)


@pytest.mark.parametrize("weights", [[1.0], [1.0, -1.0], [0.0, 0.0], [1.0, np.nan]])
def test_weights_that_cannot_count_are_refused(weights):
    with pytest.raises(ValueError, match="weights must be"):
        geometric_median([[0.0], [1.0]], weights=weights)
