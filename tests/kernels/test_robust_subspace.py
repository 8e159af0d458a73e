"""Kernels of subspaces against NumPy."""

import numpy as np
import pytest

from streamlearn.kernels.robust_subspace import distances_to_subspace, project_rows, projector_distance


def basis(seed, d, p):
    return np.ascontiguousarray(np.linalg.qr(np.random.default_rng(seed).normal(size=(p, d)))[0].T)


def test_scores_and_distances_are_those_of_matrices():
    X, mean, C = np.random.default_rng(0).normal(size=(20, 6)), np.arange(6.0), basis(1, 2, 6)
    scores, off = np.empty((20, 2)), np.empty(20)
    project_rows(X, mean, C, scores)
    distances_to_subspace(X, mean, C, scores, off)
    assert np.allclose(scores, (X - mean) @ C.T, atol=1e-13)
    assert np.allclose(off, np.linalg.norm((X - mean) @ (np.eye(6) - C.T @ C), axis=1), atol=1e-13)


def test_a_row_in_the_subspace_has_no_distance_and_a_huge_one_a_finite_one():
    C = np.eye(2, 3)
    X = np.array([[3.0, 4.0, 0.0], [0.0, 0.0, 1e200]])
    scores, off = np.empty((2, 2)), np.empty(2)
    project_rows(X, np.zeros(3), C, scores)
    distances_to_subspace(X, np.zeros(3), C, scores, off)
    assert off.tolist() == [0.0, 1e150]


@pytest.mark.parametrize("d", [1, 3])
def test_projector_distance_needs_no_projectors(d):
    a, b = basis(2, d, 7), basis(3, d, 7)
    assert projector_distance(a, b) == pytest.approx(np.linalg.norm(a.T @ a - b.T @ b) ** 2, rel=1e-12)
    assert projector_distance(a, a) == pytest.approx(0.0, abs=1e-14)
    assert projector_distance(a, np.zeros_like(a)) == pytest.approx(d, rel=1e-12)
