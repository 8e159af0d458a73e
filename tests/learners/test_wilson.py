"""Wilson's lower bound against its definition and published vectors."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from streamlearn import wilson_lower_bound
from streamlearn.errors import BadParameter
from tests.naive import muffled as naive

# The closed form and the definition round differently; both are exact to a few units in the last place of 1.
ROUNDING = 5e-15


@given(st.floats(-1, 1), st.integers(0, 10**7), st.floats(1e-9, 0.999))
def test_the_closed_form_is_the_definition(c, n, failure_prob):
    assert wilson_lower_bound(c, n, failure_prob) == pytest.approx(naive.wilson(c, n, failure_prob), abs=ROUNDING)


@pytest.mark.parametrize(("c", "n", "expected"), [(1.0, 10, 0.202292), (0.8, 50, 0.480538)])
def test_known_values(c, n, expected):
    assert wilson_lower_bound(c, n, 0.01) == pytest.approx(expected, abs=5e-7)


@given(st.floats(0, 1), st.integers(1, 10**6), st.sampled_from([0.05, 0.01, 0.001]))
def test_it_is_positive_exactly_above_z_over_root_n(c, n, failure_prob):
    limit = norm.ppf(1 - failure_prob / 2) / math.sqrt(n)
    if abs(c - limit) > 1e-9:
        assert (wilson_lower_bound(c, n, failure_prob) > 0) == (c > limit)


@given(st.floats(0, 1), st.integers(1, 10**5))
def test_it_never_exceeds_the_correlation_and_grows_with_the_labels(c, n):
    few, many = wilson_lower_bound(c, [n, 2 * n])
    assert 0 <= few <= many <= c + ROUNDING


def test_it_fails_as_seldom_as_it_promises():
    rng = np.random.default_rng(0)
    true, n, failure_prob, trials = 0.3, 60, 0.1, 20_000
    measured = 2 * rng.binomial(n, (1 + true) / 2, trials) / n - 1
    failures = (wilson_lower_bound(measured, n, failure_prob) > true).mean()
    # Half of failure_prob, within four standard errors and the lattice of 60 labels.
    assert failures == pytest.approx(failure_prob / 2, abs=0.02)


def test_no_labels_prove_nothing_and_arrays_broadcast():
    assert wilson_lower_bound([1.0, 0.5], 0).tolist() == [0.0, 0.0]
    assert wilson_lower_bound(0.9, [[10], [1000]]).shape == (2, 1)


@pytest.mark.parametrize("bad", [(1.1, 5, 0.01), (float("nan"), 5, 0.01), (0.5, -1, 0.01), (0.5, 5, 0.0), (0.5, 5, 1)])
def test_impossible_arguments_are_refused(bad):
    with pytest.raises(BadParameter, match=r"wilson_lower_bound: .* must be"):
        wilson_lower_bound(*bad)
