"""Least trimmed squares against what it promises, and against exhaustive search."""

import itertools

import numpy as np
import pytest

from streamlearn.learners.robust.lts import LeastTrimmedSquaresFitter
from streamlearn.learners.robust.scaling import median_and_deviation, scaled_targets, start_scaling
from tests.naive import robust as naive


def fit(X, y, **kwargs):
    return LeastTrimmedSquaresFitter().fit(np.ascontiguousarray(X), y, **kwargs)


def problem(seed, n=400, p=5, bad=0.3, kind="flip"):
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=p + 1)
    X = rng.normal(size=(n, p))
    y = theta[0] + X @ theta[1:] + 0.1 * rng.normal(size=n)
    wrong = rng.random(n) < bad
    if kind == "flip":
        y[wrong] = -y[wrong] + 5
    elif kind == "leverage":
        X[wrong] *= 10
        y[wrong] = 0.0
    return X, y, wrong, theta


@pytest.mark.parametrize(("kind", "bad"), [("flip", 0.0), ("flip", 0.45), ("leverage", 0.1), ("leverage", 0.3)])
@pytest.mark.parametrize("seed", range(3))
def test_the_truth_is_found(seed, kind, bad):
    X, y, wrong, theta = problem(seed, bad=bad, kind=kind)
    found = fit(X, y)
    assert found.theta == pytest.approx(theta, abs=0.05)
    clear = np.abs(y - theta[0] - X @ theta[1:]) > 1.0
    assert not found.kept[wrong & clear].any()
    assert found.kept[~wrong].mean() > 0.9
    # The median over all rows is above that of the good ones; near the breakdown point by much.
    assert 0.08 < found.sigma < (0.25 if bad < 0.4 else 0.6)


@pytest.mark.parametrize("seed", range(4))
def test_objective_is_near_the_least_of_all_halves(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(12, 1)), rng.normal(size=12)
    y[:4] += 10
    rows = np.column_stack([np.ones(12), X])
    halves = [list(half) for half in itertools.combinations(range(12), 6)]
    fits = [np.linalg.lstsq(rows[half], y[half], rcond=None)[0] for half in halves]
    best = min(
        naive.least_trimmed_objective(rows[half], y[half], theta, 6) for half, theta in zip(halves, fits, strict=True)
    )
    found = fit(X, y, trim=0.5)
    # Concentration steps may end in a near minimum, and the slope carries a ridge of 0.1.
    assert naive.least_trimmed_objective(rows, y, found.theta, 6) <= 1.5 * best


def test_what_a_batch_does_not_tell_stays_as_it_was():
    rng = np.random.default_rng(5)
    X = np.column_stack([rng.normal(size=50), np.zeros(50), np.ones(50)])
    y = 2 * X[:, 0] + 1
    anchor = np.array([1.0, 2.0, 7.0, 0.0])
    found = fit(X, y, anchor=anchor)
    assert found.theta[[1, 2]] == pytest.approx([2.0, 7.0], abs=1e-3)
    assert found.theta[0] + found.theta[3] == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_fewer_rows_than_columns_are_no_error(n):
    rng = np.random.default_rng(n)
    found = fit(rng.normal(size=(n, 8)), rng.normal(size=n))
    assert np.isfinite(found.theta).all()
    assert np.isfinite(found.sigma)


def test_constant_targets_are_fitted_by_the_intercept():
    found = fit(np.random.default_rng(6).normal(size=(40, 3)), np.full(40, 5.0))
    assert found.theta == pytest.approx([5.0, 0.0, 0.0, 0.0], abs=1e-6)


def test_scaling_is_by_medians_and_never_divides_by_zero():
    X = np.column_stack([np.arange(9.0), np.full(9, 4.0), [0.0] * 6 + [3.0] * 3])
    centre, scale = start_scaling(X)
    assert centre.tolist() == [4.0, 4.0, 0.0]
    assert scale == pytest.approx([2 * 1.4826, 0.0, np.sqrt(3.0)])
    assert median_and_deviation(np.full(5, 2.0)) == (2.0, 1.0)
    assert np.isfinite(scaled_targets(np.array([1e150, -1e150, 0.0]), 0.0, 1e-160)).all()
