"""Kernels of the geometric median against plain Python."""

import math
import os

import numpy as np
import pytest

from streamlearn.kernels.robust_median import combine, running_median, squared_distance, weiszfeld, window_push
from tests.naive import robust as naive

INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT") == "1"
N_VALUES = 500 if INTERPRETED else 5000


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 40])
def test_squared_distance_at_every_remainder_of_the_lanes(n):
    rng = np.random.default_rng(n)
    a, b = rng.normal(size=n), rng.normal(size=n)
    assert squared_distance(a, b) == pytest.approx(math.dist(a, b) ** 2, rel=1e-14)
    assert squared_distance(a, b) == squared_distance(b, a)


def test_squared_distance_never_overflows():
    assert squared_distance(np.full(3, 1e150), np.full(3, -1e150)) == 1e300


def ring(P, window):
    points, squares, count = np.zeros((window, P.shape[1])), np.zeros((window, window)), np.zeros(1, dtype=np.int64)
    window_push(P, points, squares, count)
    return points, squares, count


def test_the_ring_holds_the_last_rows_and_all_their_distances():
    P = np.random.default_rng(0).normal(size=(11, 3))
    points, squares, count = ring(P, 4)
    assert count[0] == 11
    assert sorted(points.tolist()) == sorted(P[7:].tolist())
    assert np.allclose(squares, [[math.dist(a, b) ** 2 for b in points] for a in points])


@pytest.mark.parametrize("dim", [511, 512, 575, 640])
def test_long_rows_have_the_same_distances(dim):
    P = np.random.default_rng(dim).normal(size=(5, dim))
    points, squares, _ = ring(P, 3)
    assert np.allclose(squares, [[math.dist(a, b) ** 2 for b in points] for a in points], rtol=1e-13, atol=0)
    assert ring(P * 1e150, 3)[1].max() == 1e300


@pytest.mark.parametrize("cut", [1, 3, 4, 9])
def test_rows_that_leave_the_ring_again_are_as_if_taken_one_by_one(cut):
    P = np.random.default_rng(3).normal(size=(23, 2))
    points, squares, count = np.zeros((4, 2)), np.zeros((4, 4)), np.zeros(1, dtype=np.int64)
    for start in range(0, 23, cut):
        window_push(P[start : start + cut], points, squares, count)
    for mine, whole in zip((points, squares, count), ring(P, 4), strict=True):
        assert mine.tobytes() == whole.tobytes()


@pytest.mark.parametrize("n", range(1, 10))
def test_points_are_combined_at_every_remainder_of_four(n):
    rng = np.random.default_rng(n)
    points, w, y = rng.normal(size=(n, 5)), rng.random(n), np.empty(5)
    w /= w.sum()
    combine(points, n, w, y)
    assert np.allclose(y, w @ points, rtol=0, atol=1e-14)


@pytest.mark.parametrize("offset", [0.0, 1e7])
def test_weights_are_a_convex_combination_with_a_proven_gap(offset):
    P = np.random.default_rng(1).normal(size=(12, 3)) + offset
    P[:3] += 1e4
    points, squares, _ = ring(P, 12)
    w, distances, y = np.empty(12), np.empty(12), np.empty(3)
    gap = weiszfeld(squares, 12, 1e-10, w, distances, np.empty((2, 12)))
    combine(points, 12, w, y)
    assert 0 <= gap <= 1e-10
    assert (w >= 0).all()
    assert w.sum() == pytest.approx(1.0, abs=1e-12)
    assert np.allclose(distances, [math.dist(p, y) for p in points], rtol=1e-6)
    best = naive.total_distance(P - offset, naive.geometric_median(P - offset, 600))
    assert naive.total_distance(P, y) <= best * (1 + 1e-8)


def test_coincident_points_are_their_own_median():
    P = np.array([[1.0, 2.0]] * 5 + [[9.0, 9.0]] * 4)
    points, squares, _ = ring(P, 9)
    w, y = np.empty(9), np.empty(2)
    assert weiszfeld(squares, 9, 1e-12, w, np.empty(9), np.empty((2, 9))) == 0.0
    combine(points, 9, w, y)
    assert y.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_the_running_median_is_near_the_median(scale):
    values = np.random.default_rng(2).exponential(size=N_VALUES)
    heights, places = np.zeros(5), np.zeros(6)
    for k, x in enumerate(values):
        running_median(x * scale, heights, places)
        if k < 5:
            assert heights[: k + 1].tolist() == sorted((values[: k + 1] * scale).tolist())
    # Ten standard errors of the median of so many exponential values, whose density there is 1/2.
    assert abs(heights[2] / scale - math.log(2)) < 10 / math.sqrt(N_VALUES)
    assert places[5] == N_VALUES
