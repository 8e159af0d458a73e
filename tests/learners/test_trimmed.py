"""Trimmed inner products and what is built of them."""

import numpy as np
import pytest

from streamlearn import rotr, trimmed_inner_product
from streamlearn.errors import BadParameter, BadShape, BadValue
from streamlearn.learners.robust.trimmed import WORTH_THREADS, TrimmedCovariance, n_trimmed
from tests.naive import robust as naive


@pytest.mark.parametrize("n_trim", [0, 1, 40, 199])
def test_product_is_that_of_the_naive_reference(n_trim):
    a, b = np.random.default_rng(0).standard_cauchy((2, 200))
    assert trimmed_inner_product(a, b, n_trim) == pytest.approx(naive.trimmed_inner_product(a, b, n_trim), rel=1e-12)


def test_regression_is_that_of_the_naive_reference_and_right_when_the_outliers_are_trimmed():
    rng = np.random.default_rng(1)
    X, theta = rng.normal(size=(4000, 3)), np.array([2.0, -1.0, 0.5])
    y = X @ theta
    y[:400] = 1e7
    assert rotr(X, y, 0.1) == pytest.approx(naive.rotr(X, y, 0.1), rel=1e-10)
    assert rotr(X, y, 0.1) == pytest.approx(theta, abs=0.15)
    assert np.abs(X.T @ y / 4000).max() > 1e3
    # More than the outliers trimmed: shrunk, but on the right side.
    assert (rotr(X, y, 0.5) * theta > 0).all()
    assert np.linalg.norm(rotr(X, y, 0.5)) < 0.6 * np.linalg.norm(theta)


def test_covariance_of_batches_is_that_of_each_alone():
    rng = np.random.default_rng(2)
    kept = TrimmedCovariance()
    for shape in ((300, 4), (300, 4), (50, 4), (50, 9), (40, 1), (40, 13), (40, 25), (40, 30)):
        X = rng.standard_cauchy(shape)
        found = kept.of(X, 0.2)
        assert found.tobytes() == TrimmedCovariance().of(X, 0.2).tobytes()
        centred = X - np.median(X, axis=0)
        assert found == pytest.approx(naive.trimmed_covariance(centred, n_trimmed(0.2, len(X))), rel=1e-9)


def test_no_columns_have_an_empty_covariance():
    assert TrimmedCovariance().of(np.empty((5, 0)), 0.2).shape == (0, 0)


def test_threads_do_not_change_the_covariance(monkeypatch):
    X = np.random.default_rng(3).normal(size=(400, 12))
    one = TrimmedCovariance().of(X, 0.3)
    assert X.size * 12 < WORTH_THREADS
    monkeypatch.setattr("streamlearn.learners.robust.trimmed.WORTH_THREADS", 0)
    assert TrimmedCovariance().of(X, 0.3).tobytes() == one.tobytes()


def test_bad_input_is_refused():
    with pytest.raises(BadShape, match="one length"):
        trimmed_inner_product([1.0], [1.0, 2.0], 0)
    with pytest.raises(BadShape, match="1 dimensions"):
        trimmed_inner_product([[1.0]], [1.0], 0)
    with pytest.raises(BadValue, match="b must be finite"):
        trimmed_inner_product([1.0], [np.nan], 0)
    for n_trim in (-1, 1, 0.5, True):
        with pytest.raises(BadParameter, match="n_trim must be a whole number in"):
            trimmed_inner_product([1.0], [1.0], n_trim)
    with pytest.raises(BadShape):
        rotr([[1.0]], [1.0, 2.0], 0.1)
    with pytest.raises(BadParameter, match="trim must be"):
        rotr([[1.0]], [1.0], 1.0)
