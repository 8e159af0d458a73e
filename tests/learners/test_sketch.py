"""Frequent Directions of the covariance: their bound, and AUCRO's weights from them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from streamlearn import AUCRO
from streamlearn.kernels import auc_sketch, sketch
from tests.contract import same


def stream(seed: int, n: int = 300, m: int = 20) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) @ rng.normal(size=(4, m)) + 0.3 * rng.normal(size=(n, m)) + 5.0
    return X, (X[:, 0] - X[:, 1] + rng.normal(size=n) > 0).astype(int)


@given(st.integers(0, 1000), st.integers(2, 9))
@settings(max_examples=20, deadline=None)
def test_what_the_sketch_loses_of_the_covariance_is_positive_and_within_the_bound(seed, size):
    X, y = stream(seed, n=120, m=9)
    model = AUCRO(covariance="sketch", sketch_size=size, clip=None).learn_many(X, y)
    unit = model._wide.R[:9, auc_sketch.METRIC]
    for label in (0, 1):
        S = np.cov(X[y == label].T, bias=True) * np.outer(unit, unit)
        lost = np.linalg.eigvalsh(S - model._wide.scatter(0, label)[:9, :9] * np.outer(unit, unit))
        rounding = 1e-9 * np.trace(S)
        assert lost.min() > -rounding
        assert lost.max() < np.trace(S) / size + rounding


def test_weights_solve_the_system_they_are_defined_by():
    rng = np.random.default_rng(0)
    B, rest, b = rng.normal(size=(7, 11)), rng.random(11) + 0.1, rng.normal(size=11)
    out = np.empty(11)
    sketch.solve(B, rest, b, np.empty((7, 7)), np.empty(7), out)
    np.testing.assert_allclose((B.T @ B + np.diag(rest)) @ out, b, atol=1e-10)


def test_rotations_find_the_eigenvalues():
    rng = np.random.default_rng(1)
    B = rng.normal(size=(12, 5))  # of rank 5
    K, Q = B @ B.T, np.empty((12, 12))
    sketch.diagonalise(K, Q)
    np.testing.assert_allclose(np.sort(np.diag(K)), np.linalg.eigvalsh(B @ B.T), atol=1e-10)
    np.testing.assert_allclose(Q.T @ np.diag(np.diag(K)) @ Q, B @ B.T, atol=1e-10)


@pytest.mark.parametrize("half_life", [None, 3.0])
def test_a_sketch_is_learned_alike_however_batches_are_cut(half_life):
    X, y = stream(2, n=150)
    whole = AUCRO(covariance="sketch", sketch_size=4, half_life=half_life).learn_many(X, y)
    one = AUCRO(covariance="sketch", sketch_size=4, half_life=half_life)
    for x, label in zip(X[:90], y[:90], strict=True):
        one.learn_one(x, label)
    again = AUCRO.from_state(one.state()).learn_many(X[90:], y[90:])
    assert same(whole.state(), again.state())


def test_a_few_directions_rank_nearly_like_the_whole_covariance_and_better_than_its_diagonal():
    X, y = stream(3, n=1500)
    full, few, none = (
        roc_auc_score(y, AUCRO(covariance=form, sketch_size=8).test_then_learn_many(X, y))
        for form in ("full", "sketch", "diagonal")
    )
    assert full - 0.01 < few
    assert none < few
