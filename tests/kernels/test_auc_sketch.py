"""Kernels of Frequent Directions, and of AUCRO on them, against singular values and sums over all events."""

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamlearn import AUCRO
from streamlearn.kernels import auc_sketch, sketch
from tests.naive import wide as naive

INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT") == "1"
N_EVENTS = 40 if INTERPRETED else 100
ROUNDING = 1e-9  # of |A|_F^2: the shrinking squares singular values


def kernel_sketch(A: np.ndarray, k: int) -> np.ndarray:
    """Return the buffer after all rows of A, float64[2 k, m], shrunk by the kernel whenever it was full."""
    n = 2 * k
    B, filled = np.zeros((n, A.shape[1])), 0
    for row in A:
        B[filled] = row
        filled += 1
        if filled == n:
            sketch.shrink(B, np.zeros((n, n)), np.zeros((n, n)), k)
            filled = k - 1
    return B


def rows(seed: int, n: int, m: int, rank: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, rank)) @ rng.normal(size=(rank, m)) * rng.choice([1.0, 1.0, 30.0], size=(n, 1))


@given(st.integers(0, 10_000), st.integers(1, 60), st.integers(1, 12), st.integers(1, 6), st.integers(2, 7))
@settings(max_examples=8 if INTERPRETED else 60, deadline=None)
def test_what_a_sketch_loses_is_positive_and_at_most_the_squared_norm_over_k(seed, n, m, rank, k):
    A = rows(seed, n, m, rank)
    B, square = kernel_sketch(A, k), (A**2).sum()
    lost = np.linalg.eigvalsh(A.T @ A - B.T @ B)
    assert lost.min() >= -ROUNDING * square
    assert lost.max() <= square / k + ROUNDING * square


@given(st.integers(0, 10_000), st.integers(1, 60), st.integers(1, 12), st.integers(1, 6), st.integers(2, 7))
@settings(max_examples=8 if INTERPRETED else 60, deadline=None)
def test_a_sketch_is_that_of_singular_values(seed, n, m, rank, k):
    A = rows(seed, n, m, rank)
    expected = naive.Directions(k, m)
    for row in A:
        expected.add(row)
    B = kernel_sketch(A, k)
    np.testing.assert_allclose(B.T @ B, expected.gram(), atol=ROUNDING * (A**2).sum())


def test_of_fewer_directions_than_it_keeps_a_sketch_loses_nothing():
    A = rows(1, 80, 10, rank=3)
    B = kernel_sketch(A, 5)
    np.testing.assert_allclose(B.T @ B, A.T @ A, atol=ROUNDING * (A**2).sum())


def test_a_buffer_that_was_shrunk_has_less_rows_than_directions_and_the_others_are_zero():
    B = rows(2, 8, 10, rank=6)
    sketch.shrink(B, np.zeros((8, 8)), np.zeros((8, 8)), 4)
    assert (B[3:] == 0).all()
    assert (B[:3] != 0).any(axis=1).all()
    cross = B[:3] @ B[:3].T
    np.testing.assert_allclose(cross, np.diag(np.diag(cross)), atol=ROUNDING * np.trace(cross))


def test_a_buffer_of_zeros_or_of_one_row_again_and_again_shrinks_without_harm():
    zeros, same = np.zeros((4, 3)), np.ones((4, 3))
    for B in (zeros, same):
        sketch.shrink(B, np.zeros((4, 4)), np.zeros((4, 4)), 2)
    assert (zeros == 0).all()
    np.testing.assert_allclose(same.T @ same, np.full((3, 3), 4.0), rtol=1e-12)  # of rank one: nothing to lose


@pytest.mark.parametrize("n", [1, 2, 5, 13])
def test_rotations_diagonalise_any_symmetric_matrix(n):
    A = np.random.default_rng(n).normal(size=(n, n))
    A = A + A.T
    K, Q = A.copy(), np.empty((n, n))
    sketch.diagonalise(K, Q)
    np.testing.assert_allclose(np.sort(np.diag(K)), np.linalg.eigvalsh(A), atol=1e-12 * n)
    np.testing.assert_allclose(Q @ Q.T, np.eye(n), atol=1e-12 * n)


def test_features_that_are_off_get_no_weight_and_leave_the_others_alone():
    rng = np.random.default_rng(3)
    B, rest, b = rng.normal(size=(5, 7)), rng.random(7) + 0.1, rng.normal(size=7)
    rest[2] = np.inf
    out, on = np.empty(7), np.arange(7) != 2
    sketch.solve(B, rest, b, np.empty((5, 5)), np.empty(5), out)
    assert out[2] == 0
    A = B[:, on].T @ B[:, on] + np.diag(rest[on])
    np.testing.assert_allclose(out[on], np.linalg.solve(A, b[on]), rtol=1e-9)


@pytest.mark.parametrize("k", [2, 4, 8])
@pytest.mark.parametrize("share", [1.0, 0.4])
def test_scores_by_a_sketch_are_those_of_its_definition(k, share):
    rng = np.random.default_rng(k)
    n, m = N_EVENTS, 6
    X = rng.normal(size=(n, 3)) @ rng.normal(size=(3, m)) + 0.5 * rng.normal(size=(n, m)) + 1.0
    X[rng.random((n, m)) > share] = 0.0
    X[:, m - 1] = X[:, m - 1] > 1.0
    y = (X[:, 0] - X[:, 1] + rng.normal(size=n) > 0).astype(int)
    model = AUCRO(covariance="sketch", sketch_size=k, margin="paper", solve_every=1)
    reference = naive.Sketched(k, m, naive.Events())
    for t, (x, label) in enumerate(zip(X, y, strict=True)):
        if t:
            assert model.score_one(x) == pytest.approx(reference.score(x), rel=1e-6, abs=1e-7)
        model.learn_one(x, label)
        reference.learn(x, int(label))
    assert model._wide.memory(0)[auc_sketch.FILLED] < 2 * k
