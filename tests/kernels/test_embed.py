"""Kernels of the members learned on unlabelled rows against plain Python."""

import math

import numpy as np
import pytest

from streamlearn.kernels import embed as kernels
from tests.naive import muffled as naive


def test_scores_are_projections_of_standardised_clipped_rows():
    rng = np.random.default_rng(0)
    X, axes, offset = rng.normal(size=(20, 5)) * 3, rng.normal(size=(5, 3)), rng.normal(size=3)
    X[0, 0] = 1e9
    affine = np.vstack([rng.normal(size=5), rng.uniform(0.5, 2, 5), rng.normal(size=5), rng.uniform(0.5, 2, 5)])
    out = np.empty((20, 3))
    kernels.embed(X, affine, False, axes, offset, out)
    z = np.clip(((X - affine[0]) / affine[1] - affine[2]) / affine[3], -8, 8)
    assert out == pytest.approx(z @ axes - offset, abs=1e-12)
    one = np.empty((1, 3))
    kernels.embed(X[7:8], affine, False, axes, offset, one)
    assert one[0].tolist() == out[7].tolist()


def test_text_has_length_three_and_absent_words_stay_absent():
    X = np.array([[0.0, 3.0, 4.0], [0.0, 0.0, 0.0], [1e200, 0.0, 1e200]])
    out = np.empty((3, 3))
    kernels.embed(X, np.ones((4, 3)), True, np.eye(3), np.zeros(3), out)
    assert out.tolist() == pytest.approx(
        np.array([[0.0, 1.8, 2.4], [0.0, 0.0, 0.0], [3 / math.sqrt(2), 0.0, 3 / math.sqrt(2)]])
    )


@pytest.mark.parametrize("n", [9, 15, 16, 30, 33, 100])
@pytest.mark.parametrize("own", [False, True])
def test_neighbours_are_the_nearest_with_ties_by_index(own, n):
    rng = np.random.default_rng(1)
    P = rng.integers(0, 3, size=(n, 6)).astype(float)
    Q = P if own else rng.integers(0, 3, size=(9, 6)).astype(float)
    near, squares = np.empty((len(Q), 8), dtype=np.int64), np.empty((len(Q), 8))
    kernels.nearest(Q, np.ascontiguousarray(P.T), own, np.empty(len(P)), np.empty(len(P)), near, squares)
    for i, q in enumerate(Q.tolist()):
        expected = naive.nearest(q, P.tolist(), skip=i if own else None)
        assert near[i].tolist() == expected[0]
        assert squares[i].tolist() == expected[1]


def test_votes_of_landmarks_and_neighbours():
    rng = np.random.default_rng(2)
    Q, P, alpha, values = rng.normal(size=(6, 2)), rng.normal(size=(12, 2)), rng.normal(size=12), rng.normal(size=12)
    near, squares = np.empty((6, 8), dtype=np.int64), np.empty((6, 8))
    kernels.nearest(Q, np.ascontiguousarray(P.T), False, np.empty(len(P)), np.empty(len(P)), near, squares)
    out = np.zeros((6, 3))
    kernels.landmark_votes(Q, np.ascontiguousarray(P.T), alpha, 0.3, 0.7, np.empty(12), np.empty(12), 0, out)
    kernels.neighbour_votes(near, squares, values, 0.7, 2, out)
    for i in range(6):
        d = [math.dist(Q[i], p) ** 2 for p in P]
        t = 0.3 + sum(a * math.exp(-0.7 * v) for a, v in zip(alpha, d, strict=True))
        assert out[i, 0] == pytest.approx(math.tanh(t / 2), abs=1e-12)
        w = [math.exp(-0.7 * d[j]) for j in near[i]]
        mean = sum(a * values[j] for a, j in zip(w, near[i], strict=True)) / sum(w)
        assert out[i, 2] == pytest.approx(max(-1, min(1, mean)), abs=1e-12)
    assert out[:, 1].tolist() == [0.0] * 6


def test_landmarks_fall_off_as_the_exponential_does():
    d = np.concatenate([[0.0], np.logspace(-12, 3.2, 400), [1e300, np.inf]])
    x = d.copy()
    kernels._fall_off(0.4, x, np.empty(len(x)))
    assert x == pytest.approx(np.exp(-0.4 * d), rel=3e-13, abs=1e-300)  # the argument's own rounding, times 700
    assert x[0] == 1.0
    assert x[1:300] == pytest.approx(np.exp(-0.4 * d[1:300]), rel=1e-15)


def test_a_row_far_from_all_points_still_asks_its_nearest():
    P = np.arange(10.0)[:, None]
    near, squares = np.empty((1, 8), dtype=np.int64), np.empty((1, 8))
    kernels.nearest(
        np.array([[1e6]]), np.ascontiguousarray(P.T), False, np.empty(len(P)), np.empty(len(P)), near, squares
    )
    out = np.empty((1, 1))
    kernels.neighbour_votes(near, squares, np.where(np.arange(10) == 9, 0.5, 0.0), 1.0, 0, out)
    assert out[0, 0] == pytest.approx(0.5)


def test_spreading_is_that_of_the_full_matrix():
    rng = np.random.default_rng(3)
    P = rng.normal(size=(25, 2))
    near, squares = np.empty((25, 8), dtype=np.int64), np.empty((25, 8))
    kernels.nearest(P, np.ascontiguousarray(P.T), True, np.empty(len(P)), np.empty(len(P)), near, squares)
    weights = np.exp(-squares)
    degree = weights.sum(axis=1) + np.bincount(near.ravel(), weights.ravel(), minlength=25)
    edges = weights / np.sqrt(degree[:, None] * degree[near])
    sources = rng.normal(size=25)
    x = np.empty(25)
    kernels.spread(near, edges, sources, 0.9, 30, x, np.empty(25))
    assert x == pytest.approx(naive.spread(near, weights, sources, 0.9, 30), abs=1e-10)


def test_memberships_are_shares_of_each_set_however_far_the_row():
    rng = np.random.default_rng(4)
    Q, C = np.vstack([rng.normal(size=(5, 2)), [[1e8, 0.0]]]), rng.normal(size=(7, 2))
    sets, out = np.array([[3.0, 0.7], [4.0, 2.0]]), np.empty((6, 7))
    kernels.memberships(Q, np.ascontiguousarray(C.T), sets, out)
    expected = [naive.memberships(q, C.tolist(), sets.tolist()) for q in Q.tolist()]
    assert out == pytest.approx(np.array(expected), abs=1e-9)
    assert out[:, :3].sum(axis=1) == pytest.approx(1.0)


def test_logistic_votes_are_squashed_sums():
    rng = np.random.default_rng(5)
    Z, line, out = rng.normal(size=(4, 3)), rng.normal(size=4), np.empty((4, 1))
    kernels.logistic_votes(Z, line, out)
    assert out[:, 0] == pytest.approx(np.tanh((line[0] + Z @ line[1:]) / 2), abs=1e-12)
