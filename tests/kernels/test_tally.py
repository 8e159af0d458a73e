import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from streamlearn.kernels.tally import add_faded, add_sums, log_losses, log_odds

columns = st.lists(st.floats(-1e300, 1e300), max_size=50)


@given(columns)
def test_compensated_sums_are_near_exact_relative_to_the_sizes_summed(values):
    sums = np.zeros((2, 1))
    add_sums(sums, np.array(values).reshape(-1, 1))
    size = math.fsum(abs(v) for v in values)
    # Neumaier's bound: eps |sum| + n^2 eps^2 sum |v|.
    assert abs(float(sums[0, 0] + sums[1, 0]) - math.fsum(values)) <= 2e-16 * abs(math.fsum(values)) + 1e-28 * size


def test_a_sum_past_the_largest_double_is_infinite_and_not_nan():
    sums = np.zeros((2, 1))
    with np.errstate(over="ignore"):  # interpreted, numpy warns
        add_sums(sums, np.array([[1.7e308], [1.7e308], [1.0]]))
    assert sums[0, 0] + sums[1, 0] == np.inf


@given(columns, st.integers(0, 50), st.floats(0.01, 0.99))
def test_faded_sums_do_not_depend_on_the_split(values, cut, fading):
    rows = np.array(values).reshape(-1, 1)
    one, two = np.zeros(1), np.zeros(1)
    add_faded(one, rows, fading)
    add_faded(two, rows[:cut], fading)
    add_faded(two, rows[cut:], fading)
    assert one.tolist() == two.tolist()


def test_log_losses_are_bounded_where_a_certain_forecast_is_wrong():
    out = np.empty(4)
    log_losses(out, np.array([1, 0, 1, 0], np.int8), np.array([0.0, 1.0, 0.25, 0.25]), 1e-15)
    # 1 - 1e-15 is rounded to a multiple of 1.1e-16: up to 6 % of what it is away from 1.
    np.testing.assert_allclose(out[:2], [-math.log(1e-15)] * 2, atol=0.06)
    np.testing.assert_allclose(out[2:], [-math.log(0.25), -math.log(0.75)], rtol=1e-15)


def test_log_odds_are_infinite_at_certainty_and_nan_at_nan():
    out = np.empty(5)
    log_odds(out, np.array([0.0, 1.0, 0.5, 0.75, np.nan]))
    np.testing.assert_allclose(out, [-np.inf, np.inf, 0.0, math.log(3.0), np.nan], rtol=1e-15)
