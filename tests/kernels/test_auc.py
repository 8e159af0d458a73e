"""Kernels of AUCRO against sums over all events and all pairs."""

import inspect
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamlearn.kernels import auc, auc_adaptive, auc_means, auc_score, auc_sgd, auc_sketch, auc_wide, sketch
from streamlearn.learners.auc.moments import Moments, triangle_size
from tests.naive import auc as naive

INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT") == "1"
N_EVENTS = 60 if INTERPRETED else 200
# Statistics are sums of a few hundred terms near 1; solving multiplies rounding by a condition number below 1e5.
CLOSE = 1e-9


def stream(seed: int, n: int = N_EVENTS, m: int = 5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.4).astype(np.int8)
    X = rng.normal(size=(n, m)) @ rng.normal(size=(m, m)) + 0.5 * y[:, None]
    X[:, m - 1] = X[:, m - 1] > 0  # a two-valued feature
    X[rng.random(n) < 0.05, 0] *= 20  # values that will be cut
    return X, y


def moments(
    m: int, *, half_life: float | None = None, clock: str = "time", clip: float = 3.0, **slots: float
) -> Moments:
    made = Moments(exact=True)
    made.widen(m)
    H = made.memory(0)
    made.F[auc.CLIP], H[auc.DECAY] = clip, 1.0 if half_life is None else 0.5 ** (1 / half_life)
    H[auc.CLASS_CLOCK], H[auc.EVERY], H[auc.REGULARIZATION] = clock == "class", 1.0, -1.0
    for slot, value in slots.items():
        H[getattr(auc, slot)] = value
    return made


def packed(A: np.ndarray) -> np.ndarray:
    """Return a symmetric matrix, width a multiple of 8, as block rows."""
    return np.concatenate([A[i : i + 8, i:].ravel() for i in range(0, len(A), 8)])


def unpacked(T: np.ndarray, cap: int) -> np.ndarray:
    out, k = np.zeros((cap, cap)), 0
    for i in range(0, cap, 8):
        n = cap - i
        out[i : i + 8, i:] = T[k : k + 8 * n].reshape(8, n)
        k += 8 * n
    return np.triu(out)


@pytest.mark.parametrize("cap", [8, 16, 40])
def test_elimination_and_its_solution_are_those_of_numpy(cap):
    rng = np.random.default_rng(cap)
    B = rng.normal(size=(2 * cap, cap))
    A, b = B.T @ B / cap + 0.1 * np.eye(cap), rng.normal(size=cap)
    R, x = packed(A), b.copy()
    assert len(R) == triangle_size(cap)
    auc._eliminate(R, x)
    U = unpacked(R, cap)
    inverse_pivots = np.diag(U).copy()
    np.fill_diagonal(U, 1 / inverse_pivots)
    np.testing.assert_allclose(U.T @ (U * inverse_pivots[:, None]), A, atol=CLOSE)
    np.testing.assert_allclose((U * inverse_pivots[:, None]).T @ x, b, atol=CLOSE)
    auc._back_substitute(R, x)
    np.testing.assert_allclose(A @ x, b, atol=CLOSE)


@pytest.mark.parametrize("half_life", [None, 30.0, 2.0])
@pytest.mark.parametrize("clock", ["time", "class"])
def test_moments_are_those_of_all_events_weighted_by_age(half_life, clock):
    X, y = stream(1)
    made, events = moments(5, half_life=half_life, clock=clock), naive.Events(half_life, clock)
    auc.learn(made.F, X, y)
    for x, label in zip(X, y, strict=True):
        events.add(x, label)
    for label in (0, 1):
        weight, mean, covariance = events.moments(label)
        assert made.memory(0)[auc.WEIGHT + label] == pytest.approx(weight, rel=CLOSE)
        np.testing.assert_allclose(made.own(0)[auc.CENTRE + label, :5] + X[0], mean, rtol=CLOSE, atol=CLOSE)
        np.testing.assert_allclose(made.covariance(0, label), covariance, rtol=CLOSE, atol=CLOSE)


def test_without_forgetting_the_covariance_is_numpys():
    X, y = stream(2)
    made = moments(5, clip=0.0)
    auc.learn(made.F, X, y)
    for label in (0, 1):
        np.testing.assert_allclose(
            made.covariance(0, label), np.cov(X[y == label].T, bias=True), rtol=CLOSE, atol=CLOSE
        )


def test_covariance_survives_a_mean_of_a_billion():
    X, y = stream(3)
    made = moments(5, clip=0.0)
    auc.learn(made.F, X + 1e9, y)
    # adding 1e9 rounds each value to 1.2e-7
    np.testing.assert_allclose(made.covariance(0, 1), np.cov(X[y == 1].T, bias=True), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("half_life", [None, 30.0])
@pytest.mark.parametrize("clock", ["time", "class"])
def test_forecasts_are_those_of_the_closed_form_over_all_events(half_life, clock):
    X, y = stream(4)
    made, events = moments(5, half_life=half_life, clock=clock), naive.Events(half_life, clock)
    ratios, chances = np.empty((len(X), 1)), np.empty(len(X))
    made.F[auc.RAW] = 1.0
    auc.test_then_learn(made.F, X, X, y, ratios, chances)
    scores = ratios[:, 0]
    events.add(X[0], y[0])
    for t in range(1, len(X)):
        if t % 7 == 0 or t < 20:
            score, _, chance = naive.exact(events, X[t])
            assert scores[t] == pytest.approx(score, rel=1e-6, abs=1e-8)
            assert chances[t] == pytest.approx(chance, rel=1e-6, abs=1e-8)
        events.add(X[t], y[t])


def test_weights_minimise_the_loss_summed_over_all_pairs():
    X, y = stream(5)
    positive, negative = X[y == 1][:20], X[y == 0][:20]
    made = moments(5, clip=0.0, REGULARIZATION=0.0)
    # with as many of each class the pull to the pooled covariance cancels, and the loss has no other term
    auc.learn(made.F, np.vstack([positive, negative]), np.repeat(np.array([1, 0], np.int8), 20))
    w = made.own(0)[auc.W, :5].copy()
    at_w = naive.slope(lambda v: naive.pair_loss(v, positive, negative, 0.5), w)
    at_0 = naive.slope(lambda v: naive.pair_loss(v, positive, negative, 0.5), 0 * w)
    assert np.abs(at_w).max() < 1e-6 * np.abs(at_0).max()


@given(st.lists(st.floats(-1e300, 1e300), min_size=12, max_size=60), st.integers(0, 2**32 - 1))
@settings(max_examples=20 if INTERPRETED else 100)
def test_no_finite_input_makes_a_number_that_is_not_finite(values, seed):
    rng = np.random.default_rng(seed)
    X = rng.permutation(np.resize(values, (24, 3)).ravel()).reshape(24, 3)
    y = rng.integers(0, 2, 24).astype(np.int8)
    scores, chances = np.empty((24, 1)), np.empty(24)
    for kernels in (auc, auc_sgd):
        for scaling in (0.0, 1.0, 2.0):
            made = Moments(exact=kernels is auc)
            made.widen(3)
            made.F[auc.CLIP], made.F[auc.SCALING] = 3.0, scaling
            made.memory(0)[[auc.DECAY, auc.RATE, auc.REGULARIZATION]] = 0.9, 0.5, 1e-4
            assert kernels.test_then_learn(made.F, X, X, y, scores, chances) == -1
            assert np.isfinite(made.F).all()
            assert np.isfinite(scores).all()
            assert ((chances >= 0) & (chances <= 1)).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kernels", [auc, auc_sgd])
def test_a_row_that_is_not_finite_changes_nothing(bad, kernels):
    X, y = stream(6, n=10)
    X[4, 2] = bad
    made = moments(5)
    before = made.F.copy()
    assert kernels.learn(made.F, X, y) == 4
    assert kernels.test_then_learn(made.F, X, X, y, np.empty((10, 1)), np.empty(10)) == 4
    assert made.F.tobytes() == before.tobytes()
    assert auc_score.margins(made.F, X, np.empty((10, 1))) == 4
    assert auc_score.probabilities(made.F, X, np.empty(10)) == 4
    assert np.isnan(auc_score.probability(made.F, X[4:5]))


@pytest.mark.parametrize("scale", [1e-3, 1.0])
def test_sgd_steps_are_those_of_the_summed_pair_losses(scale):
    X, y = stream(7, n=40)
    X = X * scale
    made = Moments(exact=False)
    made.widen(5)
    made.memory(0)[[auc.DECAY, auc.RATE, auc.REGULARIZATION]] = 1.0, 0.01, 1e-3
    auc_sgd.learn(made.F, X, y)
    expected = naive.sgd(X, y, 0.01, 1e-3)
    # differences of losses near 1 by steps of 1e-5
    np.testing.assert_allclose(made.own(0)[auc.W, :5], expected, rtol=1e-5, atol=1e-7)


def test_sgd_keeps_the_covariance_too():
    X, y = stream(11)
    made = Moments(exact=False)
    made.widen(5)
    made.memory(0)[[auc.DECAY, auc.RATE, auc.REGULARIZATION]] = 1.0, 0.01, 1e-3
    auc_sgd.learn(made.F, X, y)
    for label in (0, 1):
        np.testing.assert_allclose(
            made.covariance(0, label), np.cov(X[y == label].T, bias=True), rtol=CLOSE, atol=CLOSE
        )


@pytest.mark.parametrize("cost", [0.42, 0.3, 0.2])
def test_weights_for_another_cost_are_alpha_times_those_for_a_half(cost):
    X, y = stream(8, n=30)
    alpha = 1 + (1 - 2 * cost) * np.log(cost / (1 - cost))
    half, other = naive.sgd(X, y, 0.01, 1e-3, 0.5), naive.sgd(X, y, 0.01, 1e-3, cost)
    np.testing.assert_allclose(other, alpha * half, rtol=1e-5, atol=1e-7)


def test_mixture_is_that_of_numpy():
    rng = np.random.default_rng(9)
    n = N_EVENTS
    ratios = rng.normal(size=(n, 5)) * [1, 3, 10, 30, 2]
    y = (rng.random(n) < 1 / (1 + np.exp(-ratios[:, 1]))).astype(np.int8)
    M = np.zeros(auc_adaptive.MIXER_SIZE)
    auc_adaptive.reset_mixer(M)
    scores, chances = np.empty(n), np.empty(n)
    memo = np.hstack([ratios, np.empty((n, auc_adaptive.N_FORECASTERS))])
    auc_adaptive.mix_then_learn(M, memo, y, scores, chances)
    mixture = naive.Mixture(5)
    for t in range(n):
        score, chance = mixture.forecast(ratios[t])
        assert scores[t] == pytest.approx(score, rel=1e-6, abs=1e-7)
        assert chances[t] == pytest.approx(chance, rel=1e-7)
        mixture.learn(ratios[t], y[t])


def test_the_mixer_learns_the_same_whichever_kernel_it_learns_by():
    rng = np.random.default_rng(10)
    memo = rng.normal(size=(N_EVENTS, auc_adaptive.MEMO_WIDTH))
    y = rng.integers(-1, 2, N_EVENTS).astype(np.int8)
    scores, chances = np.empty(N_EVENTS), np.empty(N_EVENTS)
    states = []
    for how in ("learn", "mix_then_learn", "mix_then_learn_late"):
        M, said = np.zeros(auc_adaptive.MIXER_SIZE), memo.copy()
        auc_adaptive.reset_mixer(M)
        if how == "learn":
            auc_adaptive.learn(M, said, y)
        elif how == "mix_then_learn":
            auc_adaptive.mix_then_learn(M, said, y, scores, chances)
        else:
            auc_adaptive.mix_then_learn_late(M, said, said, y, scores, chances)
        states.append(M[: auc_adaptive.STATE_SIZE].tolist())
    assert states[0] == states[1] == states[2]


@pytest.mark.parametrize(
    ("first", "second", "own", "least"),
    [
        (auc, auc_sgd, {"_learn_row", "_rank_one"}, 4),
        (auc, auc_score, {"_learn_row", "_rank_one"}, 4),
        (auc_wide, auc_means, {"_learn_row", "_score", "run", "sweep", "W", "N_OWN"}, 8),
        (auc_wide, auc_sketch, {"_learn_row", "_rescale", "run"}, 11),
        (auc_wide, sketch, {"sweep"}, 2),
    ],
)
def test_functions_and_constants_of_one_name_are_the_same_in_every_file(first, second, own, least):
    def sources(module):
        found = {name: getattr(f, "py_func", f) for name, f in vars(module).items()}
        return {
            name: inspect.getsource(f)
            for name, f in found.items()
            if inspect.isfunction(f) and f.__module__ == module.__name__
        }

    ours, theirs = sources(first), sources(second)
    shared = (set(ours) & set(theirs)) - own
    assert len(shared) >= least
    for name in shared:
        assert ours[name] == theirs[name]
    constants = {k: v for k, v in vars(second).items() if k.isupper() and k not in own}
    assert all(v == getattr(first, k) for k, v in constants.items() if hasattr(first, k))
