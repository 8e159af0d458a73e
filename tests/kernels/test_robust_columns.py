"""Columns are centred at their exact medians, and their logarithms are as near as the search for thresholds needs."""

import numpy as np
import pytest

from streamlearn.kernels.robust_columns import (
    LEAST_LOG,
    OCTAVE,
    centred_columns,
    centred_columns_parallel,
    columns_again,
    columns_again_parallel,
)
from tests.kernels.robust_values import KINDS, N_ROWS, batch

# Half a step by rounding to a whole number; the rest is what the search for thresholds allows for.
LOG_ERROR = 0.6


def laid(X, hints=None, first=0, n_columns=None, lay=centred_columns):
    """Lay columns down; return medians, columns, logarithms and scales."""
    n, p = X.shape
    m = p if n_columns is None else n_columns
    medians, out = np.full(p, np.nan), np.full((m, n), np.nan)
    logs, scales = np.full((p, n), 7, dtype=np.int16), np.full((2, p), np.nan)
    lay(X, first, np.zeros((2, p)) if hints is None else hints, medians, out, logs, scales)
    return medians, out, logs, scales


@pytest.mark.parametrize("kind", KINDS)
def test_logarithms_are_those_of_the_scaled_sizes(kind):
    _, out, logs, scales = laid(batch([kind, "normal"], 500))
    assert scales[0, 1] > 0.0
    for column in range(2):
        assert np.isin(np.frexp(scales[0, column])[0], [0.0, 0.5])  # none, or a power of two
        if scales[0, column] > 0.0:
            with np.errstate(divide="ignore"):
                exact = OCTAVE * np.log2(np.abs(out[column]) * scales[0, column])
            assert np.abs(logs[column] - exact.clip(LEAST_LOG)).max() < LOG_ERROR
            assert logs[column].max() <= scales[1, column]


def test_logarithms_are_right_all_over_their_range():
    rng = np.random.default_rng(4)
    sizes = np.concatenate([2.0 ** np.linspace(-36.0, 29.0, N_ROWS // 2), np.ones(N_ROWS), [0.0]])
    X = (rng.permutation(sizes) * rng.choice([-1.0, 1.0], len(sizes)))[:, None]
    _, out, logs, scales = laid(X)
    with np.errstate(divide="ignore"):
        exact = OCTAVE * np.log2(np.abs(out[0]) * scales[0, 0])
    assert np.abs(logs[0] - exact.clip(LEAST_LOG)).max() < LOG_ERROR
    assert (logs[0] == LEAST_LOG).any()


def test_a_column_with_a_size_beyond_all_logarithms_has_none():
    X = np.ones((300, 1)) * np.arange(300)[:, None]
    X[7] = 1e30
    assert laid(X)[3][0, 0] == 0.0


@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 129, 500])
def test_columns_are_centred_at_their_medians(n):
    X = batch([kind for kind in KINDS if kind != "huge"], n)
    p = X.shape[1]
    for hints in (np.zeros((2, p)), np.stack([np.full(p, 0.3), np.full(p, 0.01)])):
        for lay in (centred_columns, centred_columns_parallel):
            own = hints.copy()
            medians, out, logs, scales = laid(X, own, lay=lay)
            assert np.allclose(medians, np.median(X, axis=0), rtol=1e-15, atol=0)
            assert (out == X.T - medians[:, None]).all()
            for start in (hints.copy(), own):  # the latter are what the batch itself left
                some, part, some_logs, some_scales = laid(X, start, 2, 3, lay)
                assert (part == out[2:5]).all()
                assert (some[2:5] == medians[2:5]).all()
                assert (some_logs[2:5] == logs[2:5]).all()
                assert (some_scales[:, 2:5] == scales[:, 2:5]).all()


@pytest.mark.parametrize("again", [columns_again, columns_again_parallel])
def test_columns_that_are_laid_again_are_the_same(again):
    X = batch(KINDS, 130)
    X[3, 1] = 1e300
    medians, out, _, _ = laid(X)
    part = np.empty((3, 130))
    again(X, 1, medians, part)
    assert part.tobytes() == out[1:4].tobytes()


def test_values_too_large_to_multiply_are_clipped():
    medians, out, _, _ = laid(np.array([[1e308, -1e308], [1.0, 2.0], [3.0, 4.0]]))
    assert medians.tolist() == [3.0, 2.0]
    assert np.abs(out).max() <= 1e150 + 4.0
