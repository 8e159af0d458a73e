"""The trimmed covariance is that of sorting, bit for bit the same for any start and any number of threads."""

import os

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamlearn.kernels.robust_covariance import (
    TILE,
    centred_columns,
    centred_columns_parallel,
    trimmed_covariance,
    trimmed_covariance_parallel,
    trimmed_product,
)
from tests.naive import robust as naive

INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT") == "1"
N_ROWS = 150 if INTERPRETED else 3000
# The sum runs over fixed lanes, the reference adds exactly: they differ by rounding, relative to the largest term.
ROUNDING = 1e-14


def values(kind: str, n: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return {
        "normal": lambda: rng.normal(size=n),
        "cauchy": lambda: rng.standard_cauchy(n),
        "integers": lambda: rng.integers(-3, 4, n).astype(float),
        "sparse": lambda: np.where(rng.random(n) < 0.9, 0.0, rng.normal(size=n)),
        "constant": lambda: np.full(n, 2.5),
        "tiny": lambda: rng.normal(size=n) * 1e-160,
        "huge": lambda: rng.normal(size=n) * 1e149,
        "sorted": lambda: np.sort(rng.normal(size=n)),
        "two_scales": lambda: rng.normal(size=n) * np.where(rng.random(n) < 0.5, 1e-9, 1e9),
    }[kind]()


KINDS = ("normal", "cauchy", "integers", "sparse", "constant", "tiny", "huge", "sorted", "two_scales")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("share", [0.0, 0.01, 0.2, 0.5, 0.95])
def test_product_is_that_of_a_stable_sort(kind, share):
    a, b = values(kind, N_ROWS, 1), values(kind, N_ROWS, 2)
    n_trim = int(share * N_ROWS)
    expected = naive.trimmed_inner_product(a, b, n_trim)
    kept = np.sort(np.abs(a * b))[: N_ROWS - n_trim]
    assert abs(trimmed_product(a, b, n_trim) - expected) <= ROUNDING * kept.max()


@settings(max_examples=10 if INTERPRETED else 300, deadline=None)
@given(st.lists(st.tuples(st.integers(-4, 4), st.integers(-4, 4)), min_size=1, max_size=70), st.data())
def test_ties_are_dropped_from_the_end(pairs, data):
    a, b = (np.array(side, dtype=float) for side in zip(*pairs, strict=True))
    n_trim = data.draw(st.integers(0, len(a) - 1))
    assert trimmed_product(a, b, n_trim) * (len(a) - n_trim) == pytest.approx(
        naive.trimmed_inner_product(a, b, n_trim) * (len(a) - n_trim), abs=1e-12
    )


def batch(kinds, n=N_ROWS):
    return np.column_stack([values(kind, n, seed) for seed, kind in enumerate(kinds)])


def covariance(columns, n_trim, hints=None, fill=trimmed_covariance, quick=True):
    p = len(columns)
    out = np.full((p, p), np.nan)
    tiles = np.array([(a, b) for a in range(0, p, TILE) for b in range(a, p, TILE)])
    sizes, scales = sizes_of(columns) if quick else (np.zeros(columns.shape, dtype=np.float32), np.zeros(p))
    fill(columns, sizes, scales, np.arange(p), tiles, n_trim, np.zeros((2, p, p)) if hints is None else hints, out)
    return out


def sizes_of(columns):
    usual = np.median(np.abs(columns), axis=1)
    scales = 2.0 ** -np.floor(np.log2(np.where((usual > 1e-100) & (usual < 1e100), usual, 1.0)))
    with np.errstate(over="ignore", under="ignore"):
        sizes = np.abs(columns * scales[:, None]).astype(np.float32)
    return np.minimum(sizes, np.float32(1e19)), np.where(sizes.max(axis=1) <= 1e18, scales, 0.0)


def test_matrix_is_that_of_its_pairs():
    columns = np.ascontiguousarray(batch(KINDS[:5] * 2).T)
    n_trim = N_ROWS // 5
    expected = [[trimmed_product(a, b, n_trim) for b in columns] for a in columns]
    assert covariance(columns, n_trim).tolist() == expected
    assert np.isfinite(covariance(np.ascontiguousarray(batch(KINDS).T), n_trim)).all()


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5])
def test_same_bits_for_any_hint_and_any_number_of_threads(share):
    columns = np.ascontiguousarray(batch(KINDS[:6] * 2).T)
    p, n_trim = len(columns), int(share * N_ROWS)
    cold = covariance(columns, n_trim)
    rng = np.random.default_rng(3)
    for hints in (
        np.stack([rng.exponential(size=(p, p)), np.full((p, p), 1e-3)]),
        np.stack([np.full((p, p), 1e9), np.full((p, p), 1e-12)]),
        np.stack([np.zeros((p, p)), np.full((p, p), 1e6)]),
    ):
        assert covariance(columns, n_trim, hints).tobytes() == cold.tobytes()
        assert covariance(columns, n_trim, hints).tobytes() == cold.tobytes()  # now the hints are its own
    threads = numba.get_num_threads()
    try:
        for n_threads in range(1, threads + 1):
            numba.set_num_threads(n_threads)
            assert covariance(columns, n_trim, fill=trimmed_covariance_parallel).tobytes() == cold.tobytes()
    finally:
        numba.set_num_threads(threads)


@pytest.mark.parametrize("share", [0.01, 0.2, 0.5])
def test_sizes_in_single_precision_do_not_touch_the_result(share):
    columns, n_trim = np.ascontiguousarray(batch(KINDS).T), int(share * N_ROWS)
    assert covariance(columns, n_trim).tobytes() == covariance(columns, n_trim, quick=False).tobytes()


@pytest.mark.parametrize("gap", [1e-9, 3e-8, 1e-7, 4e-7, 1e-6])
def test_products_closer_than_single_precision_are_told_apart(gap):
    rng = np.random.default_rng(5)
    steps = rng.permutation(N_ROWS)
    a, b = 1.0 + gap * steps, np.where(rng.random(N_ROWS) < 0.5, 1.0, -1.0)
    columns, n_trim = np.stack([a, b]), N_ROWS // 3
    kept = np.sort(np.argsort(np.abs(a * b), kind="stable")[: N_ROWS - n_trim])
    assert covariance(columns, n_trim)[0, 1] == pytest.approx((a * b)[kept].mean(), abs=1e-13)
    assert covariance(columns, n_trim).tobytes() == covariance(columns, n_trim, quick=False).tobytes()


@pytest.mark.parametrize("kind", KINDS)
def test_sizes_are_written_where_single_precision_can_hold_them(kind):
    X = batch([kind, "normal"], 500)
    out, sizes, scales = np.empty((2, 500)), np.empty((2, 500), dtype=np.float32), np.empty(2)
    centred_columns(X, 0, np.zeros((2, 2)), np.empty(2), out, sizes, scales)
    assert scales[1] > 0.0
    held = np.abs(out * scales[:, None])
    for column in range(2):
        assert np.isin(np.frexp(scales[column])[0], [0.0, 0.5])  # none, or a power of two
        if scales[column] > 0.0:
            assert (sizes[column] == held[column].astype(np.float32)).all()


def test_a_column_with_a_size_beyond_single_precision_is_named():
    X = np.ones((300, 1)) * np.arange(300)[:, None]
    X[7] = 1e30
    out, sizes, scales = np.empty((1, 300)), np.empty((1, 300), dtype=np.float32), np.empty(1)
    centred_columns(X, 0, np.zeros((2, 1)), np.empty(1), out, sizes, scales)
    assert scales[0] == 0.0


@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 129, 500])
def test_columns_are_centred_at_their_medians(n):
    X = batch([kind for kind in KINDS if kind != "huge"], n)
    p = X.shape[1]
    for hints in (np.zeros((2, p)), np.stack([np.full(p, 0.3), np.full(p, 0.01)])):
        for fill in (centred_columns, centred_columns_parallel):
            medians, out = np.empty(p), np.empty((p, n))
            sizes, scales = np.empty((p, n), dtype=np.float32), np.empty(p)
            fill(X, 0, hints.copy(), medians, out, sizes, scales)
            assert np.allclose(medians, np.median(X, axis=0), rtol=1e-15, atol=0)
            assert (out == X.T - medians[:, None]).all()
            part, some = np.empty((3, n)), np.empty(p)
            some_sizes, some_scales = np.empty((3, n), dtype=np.float32), np.empty(3)
            fill(X, 2, hints.copy(), some, part, some_sizes, some_scales)
            assert (part == out[2:5]).all()
            assert (some_sizes == sizes[2:5]).all()
            assert (some_scales == scales[2:5]).all()
            assert (some[2:5] == medians[2:5]).all()


def test_a_part_of_the_columns_fills_its_own_entries():
    columns = np.ascontiguousarray(batch(KINDS[:6] * 2).T)
    whole, n_trim = covariance(columns, N_ROWS // 5), N_ROWS // 5
    for fill in (trimmed_covariance, trimmed_covariance_parallel):
        out = np.full((12, 12), np.nan)
        # Columns 8 to 11 lie in front of 3, 4 and nothing: their pairs with each other are asked for, and no others.
        buffer = np.concatenate([columns[8:12], columns[3:5], columns[:1]])
        places, hints = np.array([8, 9, 10, 11, 3, 4, -1]), np.zeros((2, 12, 12))
        fill(buffer, *sizes_of(buffer), places, np.array([[0, 4]]), n_trim, hints, out)
        filled = np.zeros((12, 12), dtype=bool)
        filled[8:12, 3:5] = filled[3:5, 8:12] = True
        assert (out[filled] == whole[filled]).all()
        assert np.isnan(out[~filled]).all()


def test_values_too_large_to_multiply_are_clipped():
    X = np.array([[1e308, -1e308], [1.0, 2.0], [3.0, 4.0]])
    medians, out = np.empty(2), np.empty((2, 3))
    sizes, scales = np.empty((2, 3), dtype=np.float32), np.empty(2)
    centred_columns(X, 0, np.zeros((2, 2)), medians, out, sizes, scales)
    assert medians.tolist() == [3.0, 2.0]
    assert np.isfinite(covariance(out, 1)).all()
