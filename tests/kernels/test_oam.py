"""Kernels of online AUC maximisation against their definitions."""

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from streamlearn.kernels import oam
from tests.naive.oam import NaiveOAM, pairwise_loss, philox

INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT", "0") == "1"
N = 50 if INTERPRETED else 150
TOLERANCE = 1e-9  # rounding of running against two-pass statistics, grown over N steps
SCALES = {"none": oam.NONE, "standard": oam.STANDARD, "range": oam.RANGE}


def arena(*, sequential=True, C=0.0, size=20, scale="standard", seed=0, cap=8):
    F = np.zeros(oam.HEADER + (oam.N_VECTORS + 2 * size) * cap)
    F[oam.SCALING], F[oam.SIZE], F[oam.SEED] = SCALES[scale], size, seed
    F[oam.C], F[oam.SEQUENTIAL] = C, sequential
    return F


def vectors(F, cap=8):
    return F[oam.HEADER : oam.HEADER + oam.N_VECTORS * cap].reshape(oam.N_VECTORS, cap)


def buffers(F, size, cap=8):
    return F[oam.HEADER + oam.N_VECTORS * cap :].reshape(2, size, cap)


def events(seed, n=N, m=5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m)) * [1.0, 30.0, 0.1, 1.0, 3.0][:m] + rng.normal(size=m) * 5
    signal = X[:, 0] + 10 * X[:, 2] + rng.normal(size=n)
    y = (signal > np.quantile(signal, 0.7)).astype(np.int8)
    return X, y


@pytest.mark.parametrize("scale", ["standard", "range", "none"])
@pytest.mark.parametrize("C", [None, 0.05])
@pytest.mark.parametrize("sequential", [True, False])
def test_learning_equals_the_naive_reference(sequential, C, scale):
    X, y = events(1)
    F = arena(sequential=sequential, C=C or 0.0, size=8, scale=scale, seed=5)
    naive = NaiveOAM(X.shape[1], sequential=sequential, C=C, size=8, scale=scale, seed=5)
    scores, chances = np.empty(N), np.empty(N)
    oam.test_then_learn(F, X, X, y, scores, chances)
    for i in range(N):
        assert scores[i] == pytest.approx(naive.score(X[i]), rel=TOLERANCE, abs=TOLERANCE)
        assert chances[i] == pytest.approx(naive.probability(X[i]), rel=TOLERANCE, abs=TOLERANCE)
        naive.learn(X[i], int(y[i]))
    assert naive.draws == F[oam.DRAWS] > 0
    for label in (0, 1):
        kept = naive.buffers[label]
        assert buffers(F, 8)[label, : len(kept), : X.shape[1]].tolist() == kept


@settings(deadline=None, derandomize=True)
@given(st.integers(0, 2**53), st.integers(0, 2**32 - 1))
def test_the_generator_is_philox(counter, seed):
    assert int(oam.philox(counter, seed)) == philox(counter, seed)


def test_the_generator_gives_the_published_answers():
    # Known answers that Salmon et al. publish with Random123: counter words, key -> output words.
    published = [
        ((0x00000000, 0x00000000), 0x00000000, (0xFF1DAE59, 0x6CD10DF2)),
        ((0x243F6A88, 0x85A308D3), 0x13198A2E, (0xDD7CE038, 0xF62A4C12)),
    ]
    for (low, high), key, (first, second) in published:
        assert philox(high << 32 | low, key) == second << 32 | first
        if high < 2**21:  # the count of draws is kept exactly below 2^53
            assert int(oam.philox(high << 32 | low, key)) == second << 32 | first


def test_a_buffer_is_a_uniform_sample_of_its_class():
    size, n, repeats = 5, 40, 60 if INTERPRETED else 2000
    counts = np.zeros(n)
    X, y = np.arange(1.0, n + 1).reshape(-1, 1), np.ones(n, dtype=np.int8)
    for seed in range(repeats):
        F = arena(size=size, seed=seed, scale="none")
        oam.learn(F, X, y)
        kept = buffers(F, size)[1, :, 0].astype(int) - 1
        assert len(set(kept)) == size
        counts[kept] += 1
    assert counts.sum() == size * repeats
    # kept events of one run exclude each other: the statistic is smaller by this factor than for independent draws
    assert chisquare(counts).statistic / (1 - size / n) < 39 + 5 * np.sqrt(2 * 39)
    assert chisquare(counts).pvalue > 1e-3


@pytest.mark.parametrize("label", [0, 1])
def test_the_sequential_step_is_passive_aggressive(label):
    """``w += tau d`` minimises ``|w' - w|^2 / 2 + cap hinge(w'.d)``: no nearby point is better."""
    rng = np.random.default_rng(2)
    for trial in range(20):
        C = 10.0 ** rng.uniform(-3, 1)
        F = arena(C=C, size=4, scale="none")
        V = vectors(F)
        other, x, w = rng.normal(size=(3, 8))
        oam.learn(F, other[None], np.array([1 - label], dtype=np.int8))
        V[oam.W] = w
        oam.learn(F, x[None], np.array([label], dtype=np.int8))
        sign = 2 * label - 1

        def objective(v, w=w, x=x, other=other, sign=sign, C=C):
            return 0.5 * np.sum((v - w) ** 2) + 0.5 * C * pairwise_loss(v.tolist(), [(x - other).tolist()], sign)

        found = V[oam.W].copy()
        best = objective(found)
        for size in (1e-1, 1e-3, 1e-5):
            for step in rng.normal(size=(20, 8)):
                assert best <= objective(found + size * step) + 1e-12, trial
        assert best <= objective(w)


@pytest.mark.parametrize("label", [0, 1])
def test_the_gradient_step_is_that_of_finite_differences(label):
    rng = np.random.default_rng(3)
    C, n_others = 0.01, 4
    for _ in range(10):
        F = arena(sequential=False, C=C, size=n_others, scale="none")
        V = vectors(F)
        others, x, w = rng.normal(size=(n_others, 8)), rng.normal(size=8), rng.normal(size=8)
        oam.learn(F, others, np.full(n_others, 1 - label, dtype=np.int8))
        V[oam.W] = w
        oam.learn(F, x[None], np.array([label], dtype=np.int8))

        def at(v, x=x, others=others):
            return pairwise_loss(v.tolist(), (x - others).tolist(), 2 * label - 1)

        h = 1e-6
        slopes = np.array([(at(w + h * e) - at(w - h * e)) / (2 * h) for e in np.eye(8)])
        assert V[oam.W] - w == pytest.approx(-0.5 * C * slopes, rel=1e-6, abs=1e-10)


def test_a_pair_of_equal_events_moves_nothing():
    x = np.array([[1.0, -2.0]])
    for sequential in (True, False):
        for C in (0.0, 1.0):
            F = arena(sequential=sequential, C=C, size=4, scale="none")
            for label in (0, 1, 0, 1):
                oam.learn(F, x, np.array([label], dtype=np.int8))
            assert (vectors(F)[oam.W] == 0).all()
            assert np.isfinite(F).all()


def test_a_row_that_is_not_finite_is_named_and_nothing_changes():
    X, y = events(4)
    F = arena()
    oam.learn(F, X, y)
    before = F.copy()
    for value in (np.nan, np.inf, -np.inf):
        bad = X.copy()
        bad[17, 2] = value
        assert oam.learn(F, bad, y) == 17
        assert oam.score(F, bad, np.empty(N)) == 17
        assert oam.probability(F, bad, np.empty(N)) == 17
        assert oam.test_then_learn(F, bad, bad, y, np.empty(N), np.empty(N)) == 17
    assert before.tobytes() == F.tobytes()


@pytest.mark.parametrize("scale", ["standard", "range", "none"])
@pytest.mark.parametrize("C", [0.0, 1e10])
@pytest.mark.parametrize("sequential", [True, False])
def test_the_largest_values_leave_everything_finite(sequential, C, scale):
    rng = np.random.default_rng(7)
    X = rng.uniform(-1.7, 1.7, size=(N, 6)) * [1e308, 1e150, 1e-308, 1e-160, 1e100, 5e-324]
    y = rng.integers(0, 2, N).astype(np.int8)
    F = arena(sequential=sequential, C=C, scale=scale)
    scores, chances = np.empty(N), np.empty(N)
    oam.test_then_learn(F, X, X, y, scores, chances)
    assert np.isfinite(scores).all()
    assert np.isfinite(F).all()
    assert ((chances >= 0) & (chances <= 1)).all()
