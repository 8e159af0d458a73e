"""The robust bank against plain Python, event by event."""

import os

import numpy as np
import pytest

from streamlearn.kernels.robust_bank import (
    ABOVE,
    BELOW,
    HIGH,
    LOW,
    N_NUMBERS,
    ROWS,
    STRIDE,
    S,
    absorb,
    bank_rows,
    believed_quantile,
    first_scales,
    scaled_row,
)
from tests.naive import robust as naive

INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT") == "1"
HALF_LIVES = [None, None, 100.0, 20.0]


def fresh(p, n_experts=4):
    stride = -(-p // STRIDE) * STRIDE
    return {
        "centre": np.zeros(p - 1),
        "scale": np.ones(p - 1),
        "numbers": np.zeros(N_NUMBERS),
        "losses": np.zeros(n_experts),
        "lags": np.zeros(n_experts),
        "ages": np.zeros(n_experts),
        "grams": np.zeros((n_experts, p, stride)),
        "targets": np.zeros((n_experts, p)),
        "theta": np.zeros((n_experts, stride)),
        "scratch": np.zeros((4, stride)),
    }


def rates():
    return np.array([0.0 if h is None else 1 - 0.5 ** (1 / h) for h in HALF_LIVES])


@pytest.mark.parametrize("p", [1, 3, 9, 33])
def test_bank_is_that_of_the_naive_reference(p):
    rng = np.random.default_rng(p)
    n = 40 if INTERPRETED or p > 10 else 400
    Z = rng.normal(size=(n, p - 1))
    Z[::7] *= 10
    y = Z @ rng.normal(size=p - 1) + rng.normal(size=n) + 3
    y[::5] += 100
    arrays = fresh(p)
    arrays["numbers"][[S, BELOW, ABOVE, LOW, HIGH]] = 1.0, 1.0, 1.0, -5.0, 10.0
    state = {
        "s": 1.0,
        "below": 1.0,
        "above": 1.0,
        "low": -5.0,
        "high": 10.0,
        "n": 0,
        "losses": [0.0] * 4,
        "ages": [0.0] * 4,
        "A": [[[0.0] * p for _ in range(p)] for _ in range(4)],
        "b": [[0.0] * p for _ in range(4)],
        "theta": [[0.0] * p for _ in range(4)],
    }
    out = np.empty(n)
    bank_rows(Z, y, out, 2, rates(), *arrays.values())
    expected = [
        naive.bank_step([1.0, *z], target, state, HALF_LIVES) for z, target in zip(Z.tolist(), y.tolist(), strict=True)
    ]
    # Sums in another order, over a recursion of this length.
    assert np.allclose(out, expected, rtol=1e-7, atol=1e-7)
    assert np.allclose(arrays["theta"][:, :p], state["theta"], rtol=1e-6, atol=1e-6)
    assert arrays["numbers"][ROWS] == n
    assert (arrays["theta"][:, p:] == 0).all()


def test_rows_without_a_target_change_nothing():
    p = 4
    arrays = fresh(p)
    arrays["numbers"][[S, BELOW, ABOVE, LOW, HIGH]] = 1.0, 1.0, 1.0, -5.0, 10.0
    X = np.random.default_rng(0).normal(size=(30, p - 1))
    out = np.empty(30)
    bank_rows(X, X[:, 0] + 1, out, 2, rates(), *arrays.values())
    before = {name: array.copy() for name, array in arrays.items() if name != "scratch"}
    bank_rows(X, np.full(30, np.nan), out, 2, rates(), *arrays.values())
    assert all((before[name] == arrays[name]).all() for name in before)
    assert np.isfinite(out).all()


def test_the_scale_is_that_of_the_narrower_side_within_reason():
    numbers = np.zeros(N_NUMBERS)
    numbers[[S, BELOW, ABOVE]] = 2.0, 1.0, 30.0
    assert believed_quantile(numbers) == 1.0
    numbers[[BELOW, ABOVE]] = 1e-12, 3.0
    assert believed_quantile(numbers) == 0.5


def test_sweeps_solve_the_equations():
    rng = np.random.default_rng(1)
    p, stride = 5, 8
    gram, target, theta, anchor = np.zeros((p, stride)), np.zeros(p), np.zeros(stride), np.zeros(stride)
    anchor[:p] = rng.normal(size=p)
    product = np.zeros(stride)
    for _ in range(30):
        z = np.zeros(stride)
        z[:p] = rng.normal(size=p)
        absorb(1.0, 0.99, rng.normal(), z, gram, target, theta, anchor, 5.0, 5.0, 300, product)
    exact = np.linalg.solve(gram[:, :p] + 5 * np.eye(p), target + 5 * anchor[:p])
    assert np.allclose(theta[:p], exact, atol=1e-12)


def test_constant_columns_count_nothing_until_they_move():
    centre, scale, z = np.array([2.0, 0.0]), np.array([0.0, 0.0]), np.zeros(8)
    assert scaled_row(np.array([9.0, 0.0]), centre, scale, z) == 0.0
    first_scales(np.array([9.0, 0.0]), centre, scale)
    assert scale.tolist() == [7.0, 0.0]
    assert scaled_row(np.array([-12.0, 5.0]), centre, scale, z) == 2.0
    assert z[:3].tolist() == [1.0, -2.0, 0.0]
    assert scaled_row(np.array([1e300, 5.0]), centre, scale, z) == 1e6
