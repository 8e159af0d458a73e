"""The points that belong together, against all sets tried, and against those who would have them."""

import numpy as np
import pytest

from streamlearn.learners.consensus import consensus
from streamlearn.learners.majority import _tightest, majority
from tests.naive import merge as naive

ROUNDING = 1e-9
N, BAD = 20, 9  # 45 %
SEEDS = range(60)


def test_the_half_is_the_best_of_all_sets_nearly_always_and_never_much_worse():
    hits = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        points, counts = rng.normal(size=(9, 2)), np.ones(9)
        least, best = naive.tightest(points.tolist(), counts.tolist(), 0.5)
        half = set(np.flatnonzero(_tightest(points, counts, 0.5)).tolist())
        reached = naive.summed_squares(points.tolist(), counts.tolist(), half)
        assert reached <= 1.25 * least + ROUNDING
        hits += half == best
    assert hits >= 27


@pytest.mark.parametrize("seed", range(10))
def test_the_rest_joins_where_it_does_not_stand_apart(seed):
    rng = np.random.default_rng(seed)
    points, counts = rng.standard_t(2, size=(12, 3)), rng.integers(0, 5, 12).astype(float)
    half = set(np.flatnonzero(_tightest(points, counts, 0.6)).tolist())
    found = set(np.flatnonzero(majority(points, counts, 0.6)).tolist())
    assert found == naive.belonging(points.tolist(), counts.tolist(), half)
    assert counts[list(half)].sum() >= 0.6 * counts.sum()


def sound(seed, p):
    return np.random.default_rng([seed, p]).normal(size=(N, p))


def trimmed(points):
    return consensus(points, np.ones(N), "trimmed").centre


def mean(points):
    return points.mean(axis=0)


def root_mean_square(merge, p, points_of):
    return float(np.sqrt(np.mean([np.square(merge(points_of(seed, p))).sum() for seed in SEEDS])))


@pytest.mark.parametrize("p", [4, 8, 50, 300])
def test_hardly_anything_is_lost_where_all_points_are_sound(p):
    assert root_mean_square(trimmed, p, sound) < 1.15 * root_mean_square(mean, p, sound)


def together(distance, p, rng, shape):
    """Points as wide as the sound ones around another place, so many of a sound point's errors away."""
    direction = rng.normal(size=p)
    return rng.normal(size=shape) + distance * np.sqrt(p) * direction / np.linalg.norm(direction)


KINDS = {
    "far": lambda p, rng: together(1000.0, p, rng, (BAD, p)),
    "turned": lambda p, rng: together(10.0, p, rng, (BAD, p)),
    "near": lambda p, rng: together(5.0, p, rng, (BAD, p)),
    "copies": lambda p, rng: np.tile(together(6.0, p, rng, (1, p)), (BAD, 1)),
    "wide": lambda p, rng: 10.0 * rng.normal(size=(BAD, p)),
}


@pytest.mark.parametrize("p", [4, 8, 50])
@pytest.mark.parametrize("kind", KINDS)
def test_nearly_half_of_the_points_move_the_trimmed_mean_by_less_than_its_clean_error(kind, p):
    def poisoned(seed, p):
        points, rng = sound(seed, p), np.random.default_rng([seed, p, 1])
        points[rng.permutation(N)[:BAD]] = KINDS[kind](p, rng)
        return points

    clean = root_mean_square(mean, p, sound)
    assert root_mean_square(trimmed, p, poisoned) < 2.0 * clean
    assert root_mean_square(mean, p, poisoned) > 2.0 * clean


def test_points_that_coincide_belong_together():
    points = np.array([[1.0, 2.0]] * 5 + [[1.5, 2.0]] * 3)
    assert consensus(points, np.ones(8), "trimmed").trusted.tolist() == [True] * 5 + [False] * 3
    assert consensus(points[:5], np.ones(5), "trimmed").trusted.all()


@pytest.mark.parametrize("size", [1e300, 1e-300])
def test_the_unit_is_of_no_account(size):
    points = sound(0, 3)
    points[:4] += 50.0
    assert consensus(points * size, np.ones(N), "trimmed").trusted.tolist() == [False] * 4 + [True] * 16


def test_the_order_of_the_points_is_of_no_account():
    points = sound(1, 5)
    points[:9] += 30.0
    order = np.random.default_rng(0).permutation(N)
    assert (consensus(points[order], np.ones(N), "trimmed").trusted == (order >= 9)).all()


def test_two_points_are_both_kept():
    assert consensus(np.array([[0.0], [100.0]]), np.ones(2), "trimmed").centre == pytest.approx([50.0])
