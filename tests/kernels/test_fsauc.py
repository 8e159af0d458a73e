"""Kernels of fast stochastic AUC maximisation against their definitions."""

import os
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamlearn.kernels import fsauc
from tests.naive.fsauc import NaiveFSAUC, pair_loss, project_l1, saddle, stages

INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT", "0") == "1"
N = 100 if INTERPRETED else 360  # the second stage of an epoch begins at event 320
TOLERANCE = 1e-8  # rounding of running against two-pass statistics, grown over N steps
SCALES = {"none": fsauc.NONE, "standard": fsauc.STANDARD, "range": fsauc.RANGE}


def arena(*, rate=0.0, radius=10.0, scale="standard", cap=8):
    F = np.zeros(fsauc.HEADER + fsauc.N_VECTORS * cap)
    F[fsauc.SCALING], F[fsauc.RATE], F[fsauc.RADIUS] = SCALES[scale], rate, radius
    return F


def vectors(F):
    return F[fsauc.HEADER :].reshape(fsauc.N_VECTORS, 8)


def events(seed, n=N, m=5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m)) * [1.0, 4.0, 0.1, 1.0, 3.0][:m] + rng.normal(size=m)
    signal = X[:, 0] + 10 * X[:, 2] + rng.normal(size=n)
    y = (signal > np.quantile(signal, 0.7)).astype(np.int8)
    return X, y


@pytest.mark.parametrize("scale", ["standard", "range", "none"])
@pytest.mark.parametrize("rate", [None, 0.02])
@pytest.mark.parametrize("radius", [10.0, 0.2])
def test_learning_equals_the_naive_reference(rate, radius, scale):
    X, y = events(1)
    F = arena(rate=rate or 0.0, radius=radius, scale=scale)
    naive = NaiveFSAUC(X.shape[1], rate=rate, radius=radius, scale=scale)
    scores, chances = np.empty(N), np.empty(N)
    fsauc.test_then_learn(F, X, X, y, scores, chances)
    for i in range(N):
        assert scores[i] == pytest.approx(naive.score(X[i]), rel=TOLERANCE, abs=TOLERANCE)
        assert chances[i] == pytest.approx(naive.probability(X[i]), rel=TOLERANCE, abs=TOLERANCE)
        naive.learn(X[i], int(y[i]))
    assert F[fsauc.ALPHA] == pytest.approx(naive.alpha, rel=TOLERANCE, abs=TOLERANCE)
    assert F[fsauc.BALL] == pytest.approx(naive.ball)
    assert F[fsauc.DUAL_BALL] == pytest.approx(min(naive.dual, fsauc.LARGE))


def stepped(w, a, b, alpha, x, y, n_before, eta=1e-3):
    """Return the change of (w, a, b, alpha) by one event, over eta, and p."""
    F = arena(rate=eta, radius=1e6, scale="none")
    V = vectors(F)
    fsauc.learn(F, np.full((2, 8), 10.0), np.array([0, 1], dtype=np.int8))
    F[fsauc.SEEN : fsauc.SEEN + 2] = n_before
    V[fsauc.W], V[fsauc.W_START] = w, w
    F[fsauc.A], F[fsauc.B], F[fsauc.ALPHA] = a, b, alpha
    F[fsauc.A_START], F[fsauc.B_START], F[fsauc.ALPHA_START] = a, b, alpha
    fsauc.learn(F, x[None], np.array([y], dtype=np.int8))
    moved = [*(V[fsauc.W] - w), F[fsauc.A] - a, F[fsauc.B] - b, F[fsauc.ALPHA] - alpha]
    return np.array(moved) / eta, F[fsauc.SEEN + 1] / F[fsauc.SEEN : fsauc.SEEN + 2].sum()


@pytest.mark.parametrize("y", [0, 1])
def test_a_step_descends_and_ascends_the_saddle_form(y):
    rng = np.random.default_rng(2)
    for _ in range(20):
        point, x = rng.normal(size=11), rng.normal(size=8)
        moved, p = stepped(point[:8], *point[8:], x, y, rng.integers(1, 20, size=2))
        h = 1e-6

        def at(v, x=x, p=p):
            return saddle(v[:8].tolist(), *v[8:].tolist(), x.tolist(), y, p)

        slopes = np.array([(at(point + h * e) - at(point - h * e)) / (2 * h) for e in np.eye(11)])
        assert moved == pytest.approx([*-slopes[:10], slopes[10]], rel=1e-6, abs=1e-7)


def saddle_sample(seed):
    rng = np.random.default_rng(seed)
    positives, negatives = rng.normal(size=(14, 3)) + 0.5, rng.normal(size=(6, 3))
    return rng.normal(size=3), positives, negatives, 14 / 20


def test_the_saddle_value_is_the_pair_loss():
    for seed in range(10):
        w, positives, negatives, p = saddle_sample(seed)
        a, b = w @ positives.mean(axis=0), w @ negatives.mean(axis=0)

        def mean(a, b, alpha, w=w, positives=positives, negatives=negatives, p=p):
            rows = [(x, 1) for x in positives.tolist()] + [(x, 0) for x in negatives.tolist()]
            return sum(saddle(w.tolist(), a, b, alpha, x, y, p) for x, y in rows) / 20

        best = mean(a, b, b - a)
        expected = p * (1 - p) * pair_loss(w.tolist(), positives.tolist(), negatives.tolist())
        assert best + p * (1 - p) == pytest.approx(expected, rel=1e-12)
        for h in (-1e-3, 1e-3):  # least in a and b, greatest in alpha
            assert mean(a + h, b, b - a) > best
            assert mean(a, b + h, b - a) > best
            assert mean(a, b, b - a + h) < best


def test_at_the_saddle_the_steps_of_a_b_and_alpha_cancel():
    w, positives, negatives, p = saddle_sample(1)
    a, b = w @ positives.mean(axis=0), w @ negatives.mean(axis=0)
    eta, total, slope = 1e-3, np.zeros(3), np.zeros(3)
    for rows, y in ((positives, 1), (negatives, 0)):
        for x in rows:
            n_before = np.array([6, 14]) * 10**6  # so that p stays where it is
            wide, row = np.zeros(8), np.zeros(8)
            wide[:3], row[:3] = w, x
            moved, _ = stepped(wide, a, b, b - a, row, y, n_before, eta)
            total += moved[8:]
            slope += moved[:3]
    assert total == pytest.approx(np.zeros(3), abs=1e-4)
    h = 1e-6
    pair_slope = [
        (pair_loss(w + h * e, positives.tolist(), negatives.tolist()) - pair_loss(w - h * e, positives, negatives))
        / (2 * h)
        for e in np.eye(3)
    ]
    assert -slope / 20 == pytest.approx(p * (1 - p) * np.array(pair_slope), rel=1e-4, abs=1e-5)


@settings(deadline=None, derandomize=True)
@given(st.lists(st.floats(-100, 100), min_size=1, max_size=30), st.floats(1e-3, 200))
def test_the_l1_projection_is_that_by_sorting(values, radius):
    w = np.array(values)
    fsauc.project_l1(w, radius)
    assert w == pytest.approx(project_l1(values, radius), rel=1e-9, abs=1e-9 * max(1.0, np.abs(values).max()))
    assert np.abs(w).sum() <= radius * (1 + 1e-12)


@settings(deadline=None, derandomize=True)
@given(st.lists(st.floats(-1e200, 1e200), min_size=1, max_size=30), st.floats(1e-3, 200))
def test_the_l1_projection_ends_in_the_ball_from_however_far(values, radius):
    w = np.array(values)
    fsauc.project_l1(w, radius)
    assert np.abs(w).sum() <= radius * (1 + 1e-12)


def test_the_l1_projection_ends_where_an_entry_lies_on_the_edge_to_the_last_digit():
    rng = np.random.default_rng(0)  # one in a few hundred of these rounds so that the edge moves to and fro
    for _ in range(5000):
        w = 20.0 + rng.uniform(0.0, 1.0) - np.append(0.0, rng.uniform(0.0, 5.0, size=2))
        gaps = w.max() - w
        on_edge = w.max() - (10.0 + gaps.sum()) / len(w)
        w = np.append(w, on_edge)
        expected = np.append(w[:-1] - on_edge, 0.0)

        fsauc.project_l1(w, 10.0)

        assert w == pytest.approx(expected, abs=1e-12)


def test_the_number_of_stages_is_the_published_one():
    for k in range(6, 40):
        assert fsauc.n_stages(float(k)) == stages(2**k)
    assert fsauc.n_stages(6.0) == 1
    assert fsauc.n_stages(20.0) > 1


def test_epochs_double_and_their_stages_shrink_step_and_ball():
    n = 900 if INTERPRETED else 3000
    X, y = events(3, n)
    F = arena()
    seen = []
    for x, label in zip(X, y, strict=True):
        fsauc.learn(F, x[None], np.array([label], dtype=np.int8))
        if F[fsauc.STEPS] == 1:
            seen.append(
                [int(F[k]) for k in (fsauc.EPOCH, fsauc.STAGES_LEFT, fsauc.STAGE_LENGTH)]
                + [F[fsauc.BALL], F[fsauc.FACTOR]]
            )
    epochs = [row[0] for row in seen]
    assert epochs == sorted(epochs)
    assert set(epochs) == set(range(6, max(epochs) + 1))
    for k in set(epochs) - {max(epochs)}:
        of_epoch = [row for row in seen if row[0] == k]
        assert [row[1] for row in of_epoch] == list(range(stages(2**k), 0, -1))
        assert {row[2] for row in of_epoch} == {2**k // stages(2**k)}
        assert of_epoch[0][4] == 1
        for before, after in pairwise(of_epoch):
            assert after[3] == before[3] / 2
            assert after[4] in (before[4], before[4] / 2) or before[4] / 2 < after[4] < before[4]


def test_weights_never_leave_their_ball():
    X, y = events(5)
    F = arena(radius=0.3, rate=1.0)
    for x, label in zip(X, y, strict=True):
        fsauc.learn(F, x[None], np.array([label], dtype=np.int8))
        side = 0.3 * np.sqrt(F[fsauc.MAX_NORM2])
        for vector in (fsauc.W, fsauc.W_MEAN):
            assert np.abs(vectors(F)[vector]).sum() <= 0.3 * (1 + 1e-9)
        assert abs(F[fsauc.A]) <= side * (1 + 1e-9)
        assert abs(F[fsauc.B]) <= side * (1 + 1e-9)
        assert abs(F[fsauc.ALPHA]) <= 2 * side * (1 + 1e-9)


def test_a_row_that_is_not_finite_is_named_and_nothing_changes():
    X, y = events(4)
    F = arena()
    fsauc.learn(F, X, y)
    before = F.copy()
    for value in (np.nan, np.inf, -np.inf):
        bad = X.copy()
        bad[17, 2] = value
        assert fsauc.learn(F, bad, y) == 17
        assert fsauc.score(F, bad, np.empty(N)) == 17
        assert fsauc.probability(F, bad, np.empty(N)) == 17
        assert fsauc.test_then_learn(F, bad, bad, y, np.empty(N), np.empty(N)) == 17
    assert before.tobytes() == F.tobytes()


@pytest.mark.parametrize("scale", ["standard", "range", "none"])
@pytest.mark.parametrize("rate", [0.0, 1e10])
def test_the_largest_values_leave_everything_finite(rate, scale):
    rng = np.random.default_rng(7)
    X = rng.uniform(-1.7, 1.7, size=(N, 6)) * [1e308, 1e150, 1e-308, 1e-160, 1e100, 5e-324]
    y = rng.integers(0, 2, N).astype(np.int8)
    F = arena(rate=rate, radius=1e10 if rate else 10.0, scale=scale)
    scores, chances = np.empty(N), np.empty(N)
    fsauc.test_then_learn(F, X, X, y, scores, chances)
    assert np.isfinite(scores).all()
    assert np.isfinite(F).all()
    assert ((chances >= 0) & (chances <= 1)).all()
