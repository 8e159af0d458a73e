"""The trimmed covariance is that of sorting, bit for bit the same for any start and any number of threads."""

import numba
import numpy as np
import pytest

from streamlearn.kernels import robust_covariance
from streamlearn.kernels.robust_columns import LEAST_LOG, OCTAVE
from streamlearn.kernels.robust_covariance import TILE, trimmed_covariance, trimmed_covariance_parallel
from streamlearn.kernels.robust_selection import trimmed_pairs, trimmed_pairs_parallel, trimmed_product
from tests.kernels.robust_values import KINDS, N_ROWS, batch

SERIAL, PARALLEL = (trimmed_covariance, trimmed_pairs), (trimmed_covariance_parallel, trimmed_pairs_parallel)


def fill(columns, logs, scales, places, tiles, n_trim, hints, out, kernels=SERIAL):
    """Fill the pairs of the tiles; return the share of them that were left for the second kernel."""
    left = np.zeros((len(tiles), 1 + TILE * TILE, 2), dtype=np.int64)
    kernels[0](columns, logs, scales, places, tiles, n_trim, hints, left, out)
    kernels[1](columns, places, left, n_trim, hints, out)
    return left[:, 0, 0].sum()


def covariance(columns, n_trim, hints=None, kernels=SERIAL, quick=True):
    p = len(columns)
    out = np.full((p, p), np.nan)
    tiles = np.array([(a, b) for a in range(0, p, TILE) for b in range(a, p, TILE)])
    logs, scales = logs_of(columns) if quick else (np.zeros(columns.shape, dtype=np.int16), np.zeros((2, p)))
    hints = np.zeros((2, p, p)) if hints is None else hints
    fill(columns, logs, scales, np.arange(p), tiles, n_trim, hints, out, kernels)
    return out


def logs_of(columns):
    usual = np.median(np.abs(columns), axis=1)
    scales = 2.0 ** -np.floor(np.log2(np.where((usual > 1e-100) & (usual < 1e100), usual, 1.0)))
    with np.errstate(divide="ignore"):
        exact = OCTAVE * np.log2(np.abs(columns) * scales[:, None])
    bounds = exact.max(axis=1)
    logs = np.round(exact.clip(LEAST_LOG, -LEAST_LOG - 1)).astype(np.int16)
    return logs, np.stack([np.where(bounds < 31 * OCTAVE, scales, 0.0), bounds])


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
            assert covariance(columns, n_trim, kernels=PARALLEL).tobytes() == cold.tobytes()
    finally:
        numba.set_num_threads(threads)


@pytest.mark.parametrize("share", [0.01, 0.2, 0.5])
def test_logarithms_do_not_touch_the_result(share):
    columns, n_trim = np.ascontiguousarray(batch(KINDS).T), int(share * N_ROWS)
    assert covariance(columns, n_trim).tobytes() == covariance(columns, n_trim, quick=False).tobytes()


@pytest.mark.parametrize("gap", [1e-9, 3e-8, 1e-7, 4e-7, 1e-6])
def test_products_closer_than_logarithms_and_single_precision_are_told_apart(gap):
    rng = np.random.default_rng(5)
    steps = rng.permutation(N_ROWS)
    a, b = 1.0 + gap * steps, np.where(rng.random(N_ROWS) < 0.5, 1.0, -1.0)
    columns, n_trim = np.stack([a, b]), N_ROWS // 3
    kept = np.sort(np.argsort(np.abs(a * b), kind="stable")[: N_ROWS - n_trim])
    assert covariance(columns, n_trim)[0, 1] == pytest.approx((a * b)[kept].mean(), abs=1e-13)
    assert covariance(columns, n_trim).tobytes() == covariance(columns, n_trim, quick=False).tobytes()


def test_a_part_of_the_columns_fills_its_own_entries():
    columns = np.ascontiguousarray(batch(KINDS[:6] * 2).T)
    whole, n_trim = covariance(columns, N_ROWS // 5), N_ROWS // 5
    for kernels in (SERIAL, PARALLEL):
        out = np.full((12, 12), np.nan)
        # Columns 8 to 11 lie in front of 3, 4 and nothing: their pairs with each other are asked for, and no others.
        buffer = np.concatenate([columns[8:12], columns[3:5], columns[:1]])
        places, hints = np.array([8, 9, 10, 11, 3, 4, -1]), np.zeros((2, 12, 12))
        fill(buffer, *logs_of(columns), places, np.array([[0, 4]]), n_trim, hints, out, kernels)
        filled = np.zeros((12, 12), dtype=bool)
        filled[8:12, 3:5] = filled[3:5, 8:12] = True
        assert (out[filled] == whole[filled]).all()
        assert np.isnan(out[~filled]).all()


def test_hardly_any_pair_of_usual_columns_is_left():
    rng = np.random.default_rng(7)
    hints, counts = np.zeros((2, 8, 8)), []
    for _ in range(3):
        columns = rng.normal(size=(8, 5000)) * rng.choice([1.0, 30.0], p=[0.8, 0.2], size=(8, 5000))
        tiles = np.array([(0, 0), (0, 4), (4, 4)])
        counts.append(fill(columns, *logs_of(columns), np.arange(8), tiles, 1000, hints, np.empty((8, 8))))
    assert counts == [0, 0, 0]


def test_logarithms_mean_the_same_in_both_files():
    assert (robust_covariance._OCTAVE, robust_covariance._LEAST) == (OCTAVE, LEAST_LOG)
