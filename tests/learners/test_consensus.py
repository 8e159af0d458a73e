"""Vectors from many workers held together."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from streamlearn.errors import BadParameter, BadShape
from streamlearn.learners.consensus import HOWS, consensus, weighted_median
from tests.naive import merge as naive

numbers = st.floats(-100, 100, allow_subnormal=False)
clouds = arrays(np.float64, st.tuples(st.integers(1, 9), st.integers(1, 4)), elements=numbers)


@given(points=clouds, data=st.data(), how=st.sampled_from(HOWS))
@settings(max_examples=60, deadline=None)
def test_the_centre_is_made_of_the_points_by_their_shares(points, data, how):
    counts = np.array(data.draw(st.lists(st.integers(1, 50), min_size=len(points), max_size=len(points))), float)
    found = consensus(points, counts, how)
    assert found.shares.sum() == pytest.approx(1.0)
    assert (found.shares >= 0).all()
    if how != "median":  # a median that is not unique is anywhere between two points
        assert found.centre == pytest.approx(found.shares @ points, abs=1e-9)
    assert counts[found.trusted].sum() >= 0.5 * counts.sum()


@given(points=clouds)
@settings(max_examples=40, deadline=None)
def test_no_point_nearby_has_a_smaller_summed_distance_than_the_median(points):
    counts = np.arange(1.0, len(points) + 1)
    centre = consensus(points, counts, "median").centre
    least = naive.summed_distance(centre.tolist(), points.tolist(), counts.tolist())
    rng = np.random.default_rng(0)
    for step in rng.normal(size=(20, points.shape[1])):
        other = naive.summed_distance((centre + step).tolist(), points.tolist(), counts.tolist())
        assert least <= other * (1 + 1e-8) + 1e-8


def test_the_trimmed_mean_is_that_of_the_points_that_belong_together():
    rng = np.random.default_rng(1)
    points, counts = rng.normal(size=(11, 3)), rng.integers(1, 9, 11).astype(float)
    points[:3] += 50.0
    found = consensus(points, counts, "trimmed", 0.5)
    kept = np.flatnonzero(found.trusted).tolist()
    assert min(kept) == 3
    assert found.centre == pytest.approx(naive.weighted_mean(points.tolist(), counts.tolist(), kept))


def test_the_trimmed_mean_leaves_out_no_more_than_it_may():
    rng = np.random.default_rng(2)
    points = rng.normal(size=(20, 3))
    points[:9] += 50.0
    assert not consensus(points, np.ones(20), "trimmed", 0.45).trusted[:9].any()
    assert np.count_nonzero(consensus(points, np.ones(20), "trimmed", 0.4).trusted) >= 12
    assert consensus(points, np.ones(20), "trimmed", 0.0).centre == pytest.approx(points.mean(axis=0))


def test_shares_in_the_median_are_its_weights():
    points, counts = np.random.default_rng(2).normal(size=(7, 3)), np.arange(1.0, 8.0)
    found = consensus(points, counts, "median")
    assert found.shares @ points == pytest.approx(found.centre, abs=1e-7)


@pytest.mark.parametrize("how", ["median", "trimmed"])
def test_bad_points_with_less_than_half_of_the_counts_move_nothing_far_and_are_not_trusted(how):
    rng = np.random.default_rng(3)
    points = rng.normal(size=(20, 5))
    points[:9] = 1e9
    found = consensus(points, np.ones(20), how)
    assert np.linalg.norm(found.centre) < 3.0
    assert not found.trusted[:9].any()
    assert np.linalg.norm(consensus(points, np.ones(20), "mean").centre) > 1e8


def test_points_of_no_coordinates_agree():
    found = consensus(np.zeros((3, 0)), np.ones(3), "median")
    assert found.trusted.all()
    assert found.shares == pytest.approx(np.full(3, 1 / 3))


def test_the_weighted_median_holds_more_than_half():
    assert weighted_median(np.array([3.0, 1.0, 2.0]), np.array([1.0, 1.0, 1.0])) == 2.0
    assert weighted_median(np.array([3.0, 1.0]), np.array([5.0, 1.0])) == 3.0


@pytest.mark.parametrize(("how", "trim"), [("mode", 0.5), ("mean", 0.6), ("mean", -0.1), ("mean", True)])
def test_other_ways_are_refused(how, trim):
    with pytest.raises(BadParameter, match="must be"):
        consensus(np.zeros((2, 1)), np.ones(2), how, trim)


def test_counts_must_be_one_a_point():
    with pytest.raises(BadShape, match="points and counts"):
        consensus(np.zeros((2, 1)), np.ones(3), "mean")
