"""Kernels of the rejecting classifiers against their definitions."""

import inspect
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamlearn.kernels import fsauc, oam, reject
from tests.naive.reject import NaiveReject, force, implicit_force, loss

INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT", "0") == "1"
N = 60 if INTERPRETED else 200
TOLERANCE = 1e-9  # rounding of running against two-pass statistics, grown over N steps
SCALES = {"none": reject.NONE, "standard": reject.STANDARD, "range": reject.RANGE}
LOSSES = {"logistic": reject.LOGISTIC, "hinge": reject.HINGE}
SHARED = (
    "_first_bad_row",
    "_dot",
    "_observe",
    "_rescale",
    "_linear",
    "_sigmoid",
    "_standard_score",
    "_log_odds",
    "_calibrate",
)


def arena(loss_name, *, scale="standard", rate=1.0, l2=0.0, cap=8):
    F = np.zeros(reject.HEADER + reject.N_VECTORS * cap)
    F[reject.SCALING], F[reject.LOSS] = SCALES[scale], LOSSES[loss_name]
    F[reject.RATE], F[reject.L2] = rate, l2
    return F


def events(seed, n=N, m=5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m)) * [1.0, 30.0, 0.1, 1.0, 3.0][:m] + rng.normal(size=m) * 5
    X[:, 3] = X[:, 3] > X[:, 3].mean()
    signal = X[:, 0] + 10 * X[:, 2] + rng.normal(size=n)
    y = (signal > np.quantile(signal, 0.7)).astype(np.int8)
    return X, y


@pytest.mark.parametrize("scale", ["standard", "range", "none"])
@pytest.mark.parametrize(("kind", "a"), [("logistic", 1.0), ("hinge", 1.0), ("hinge", 4.0)])
@pytest.mark.parametrize("l2", [0.0, 0.1])
def test_learning_equals_the_naive_reference(kind, a, scale, l2):
    X, y = events(1)
    F = arena(kind, scale=scale, l2=l2)
    naive = NaiveReject(kind, X.shape[1], scale=scale, a=a, l2=l2)
    scores, chances = np.empty(N), np.empty(N)
    reject.test_then_learn(F, X, X, y, a, scores, chances)
    for i in range(N):
        assert scores[i] == pytest.approx(naive.score(X[i]), rel=TOLERANCE, abs=TOLERANCE)
        assert chances[i] == pytest.approx(naive.probability(X[i]), rel=TOLERANCE, abs=TOLERANCE)
        naive.learn(X[i], int(y[i]))


@settings(deadline=None, derandomize=True)
@given(st.floats(-60, 60), st.floats(-9, 9))
def test_the_logistic_force_is_the_pull_where_it_leads(m, log_r):
    r = 10.0**log_r
    c = reject.logistic_force(m, r)
    assert 0 <= c <= 1
    # where the margin ends up decides; the force there is a difference of large numbers for large r
    assert m + r * c == pytest.approx(m + r * implicit_force("logistic", m, r, 1.0), rel=1e-9, abs=1e-9)


@settings(deadline=None, derandomize=True)
@given(st.floats(-20, 3), st.floats(-6, 6), st.floats(1, 100))
def test_the_hinge_force_minimises_the_implicit_objective(m, log_r, a):
    r = 10.0**log_r
    c = reject.hinge_force(m, r, a)

    def objective(c):
        return loss("hinge", m + r * c, a) + r * c * c / 2

    best = objective(c)
    slack = 1e-12 * (1 + abs(best))
    for other in (0.0, 1.0, a, 0.99 * c, 1.01 * c, c + 1e-3, max(c - 1e-3, 0.0)):
        assert best <= objective(other) + slack
    assert c == pytest.approx(implicit_force("hinge", m, r, a), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(("kind", "a"), [("logistic", 1.0), ("hinge", 3.0)])
@pytest.mark.parametrize("label", [0, 1])
def test_squared_gradients_are_those_of_finite_differences(kind, a, label):
    rng = np.random.default_rng(2)
    for _ in range(20):
        x, w, b = rng.normal(size=8), 0.3 * rng.normal(size=8), 0.1 * rng.normal()
        F = arena(kind, scale="none")
        V = F[reject.HEADER :].reshape(reject.N_VECTORS, 8)
        V[reject.W], F[reject.INTERCEPT] = w, b
        reject.learn(F, x[None], np.array([label], dtype=np.int8), a)

        def at(w, x=x, b=b):
            return loss(kind, (2 * label - 1) * (w @ x + b), a)

        h = 1e-6
        slopes = [(at(w + h * e) - at(w - h * e)) / (2 * h) for e in np.eye(8)]
        assert np.sqrt(V[reject.SQUARES]) == pytest.approx(np.abs(slopes), rel=1e-6, abs=1e-8)
        assert np.sqrt(F[reject.INTERCEPT_SQUARES]) == pytest.approx(force(kind, (2 * label - 1) * (w @ x + b), a))


@pytest.mark.parametrize(("eta", "expected"), [(0.1, -1.0), (0.5, 0.0), (0.9, 1.0)])
def test_the_bent_hinge_leads_to_minus_one_zero_and_one(eta, expected):
    d = 0.3
    n = 2000 if INTERPRETED else 20_000
    rng = np.random.default_rng(3)
    F = arena("hinge")
    X, y = np.ones((n, 1)), (rng.random(n) < eta).astype(np.int8)
    scores = np.empty(n)
    reject.test_then_learn(F, X, X, y, (1 - d) / d, scores, np.empty(n))
    assert scores[n // 2 :].mean() == pytest.approx(expected, abs=0.1)


def test_a_row_that_is_not_finite_is_named_and_nothing_changes():
    X, y = events(4)
    F = arena("hinge")
    reject.learn(F, X, y, 1.0)
    before = F.copy()
    for value in (np.nan, np.inf, -np.inf):
        bad = X.copy()
        bad[17, 2] = value
        assert reject.learn(F, bad, y, 1.0) == 17
        assert reject.score(F, bad, np.empty(N)) == 17
        assert reject.probability(F, bad, np.empty(N)) == 17
        assert reject.test_then_learn(F, bad, bad, y, 1.0, np.empty(N), np.empty(N)) == 17
    assert before.tobytes() == F.tobytes()


def test_rows_without_a_label_teach_nothing():
    X, y = events(5)
    F = arena("logistic")
    reject.learn(F, X, y, 1.0)
    before = F.copy()
    reject.learn(F, X, np.full(N, -1, dtype=np.int8), 1.0)
    assert before.tobytes() == F.tobytes()


def test_scaling_is_sound_far_from_zero():
    rng = np.random.default_rng(6)
    noise = rng.normal(size=N)
    X = np.column_stack([1e9 + noise, np.full(N, 0.1), np.where(np.arange(N) == 0, 5e19, noise), noise * 1e-150])
    F = arena("logistic")
    reject.learn(F, X, (noise > 0).astype(np.int8), 1.0)
    V = F[reject.HEADER :].reshape(reject.N_VECTORS, 8)
    assert np.isfinite(F).all()
    assert V[reject.SCALE, 0] == pytest.approx(1 / (X[:, 0] - 1e9).std(), rel=1e-6)
    assert V[reject.CENTRE, 0] - 1e9 == pytest.approx((X[:, 0] - 1e9).mean(), abs=1e-5)
    assert V[reject.SCALE, 1] == 0
    assert V[reject.SCALE, 3] == pytest.approx(1 / X[:, 3].std(), rel=1e-9)


@pytest.mark.parametrize("scale", ["standard", "range", "none"])
@pytest.mark.parametrize("kind", ["logistic", "hinge"])
def test_the_largest_values_leave_everything_finite(kind, scale):
    rng = np.random.default_rng(7)
    X = rng.uniform(-1.7, 1.7, size=(N, 6)) * [1e308, 1e150, 1e-308, 1e-160, 1e100, 5e-324]
    y = rng.integers(0, 2, N).astype(np.int8)
    F = arena(kind, scale=scale)
    scores, chances = np.empty(N), np.empty(N)
    reject.test_then_learn(F, X, X, y, 1e12, scores, chances)
    assert np.isfinite(scores).all()
    assert np.isfinite(F).all()
    assert ((chances >= 0) & (chances <= 1)).all()


def test_the_shared_kernels_are_the_same_in_every_file():
    for name in SHARED:
        texts = {
            inspect.getsource(getattr(module, name) if INTERPRETED else getattr(module, name).py_func)
            for module in (fsauc, oam, reject)
        }
        assert len(texts) == 1, name
    shared_slots = ("COUNT", "SCALING", "LIMIT", "SEEN", "SLOPE", "SCORED", "CENTRE", "SCALE", "HIGH", "Z", "HUGE")
    for slot in shared_slots:
        assert getattr(reject, slot) == getattr(oam, slot) == getattr(fsauc, slot)
