"""Ranks of events among the unlabelled ones before them."""

import numpy as np
import pytest

from streamlearn.kernels import arrival as kernels
from tests.naive import muffled as naive


@pytest.mark.parametrize(("size", "least"), [(7, 1), (7, 4), (50, 3)])
@pytest.mark.parametrize("values", [3, 1000])
def test_ranks_are_mid_ranks_among_the_last_unlabelled_rows(size, least, values):
    rng = np.random.default_rng(size + values)
    X = rng.integers(0, values, (40, 3)).astype(float)
    codes = np.where(rng.random(40) < 0.3, 1, -1).astype(np.int8)
    window, count, ranks = np.zeros((size, 3)), np.zeros(1, dtype=np.int64), np.empty((40, 3))
    kernels.arrival_ranks(X, X, codes, window, count, least, False, ranks, ranks)
    assert ranks.tolist() == naive.arrival_ranks(X.tolist(), (codes < 0).tolist(), size, least)
    assert count[0] == (codes < 0).sum()
    now = np.empty((40, 3))
    kernels.ranks_now(X, window, int(count[0]), least, now)
    more = naive.arrival_ranks([*X.tolist(), X[5].tolist()], [*(codes < 0).tolist(), False], size, least)
    assert now[5].tolist() == more[-1]


def test_rows_to_test_are_ranked_among_the_rows_that_were_learned_before():
    rng = np.random.default_rng(3)
    T, L = rng.normal(size=(2, 30, 2))
    codes = np.full(30, -1, dtype=np.int8)
    window, count = np.zeros((9, 2)), np.zeros(1, dtype=np.int64)
    tested, learned = np.empty((30, 2)), np.empty((30, 2))
    kernels.arrival_ranks(T, L, codes, window, count, 2, True, tested, learned)
    for i in range(30):
        rows = [*L[:i].tolist(), T[i].tolist()]
        assert tested[i].tolist() == naive.arrival_ranks(rows, [True] * len(rows), 9, 2)[-1]


def test_numeric_features_are_those_of_many_values():
    X = np.column_stack([np.arange(30) % 2, np.arange(30) % 5, np.arange(30), np.full(30, 7)]).astype(float)
    found = np.empty(4, dtype=np.bool_)
    kernels.has_more_values(X, 4, found)
    assert found.tolist() == [False, True, True, False]
    kernels.has_more_values(X, 5, found)
    assert found.tolist() == [False, False, True, False]
