"""Kernels of wide events, variances and class means alone, against sums over all events."""

import os
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamlearn.kernels import auc_means, auc_wide
from tests.naive import wide as naive

INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT") == "1"
N_EVENTS = 40 if INTERPRETED else 100
CLOSE = 1e-9  # sums of a hundred terms, brought up to date in another order than they are summed anew
KERNELS = {"diagonal": auc_wide, "means": auc_means}
FORMS = sorted(KERNELS)
NOTHING, NO_CHANCES = np.empty((0, 1)), np.empty(0)
FORECAST = -2


def stream(seed: int, n: int = N_EVENTS, m: int = 6, share: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    """Return rows with that share of nonzeros, but for a full first one, and labels, the first two being 0 and 1."""
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n, m)) + 0.3) * np.resize([1.0, 10.0, 0.1, 1.0, 3.0], m)
    X[(rng.random((n, m)) > share) & (np.arange(n) > 0)[:, None]] = 0.0
    X[:, m - 1] = X[:, m - 1] != 0.0
    y = (X[:, 0] + rng.normal(size=n) > 0.3).astype(np.int8)
    y[:2] = 0, 1
    return X, y


def state(
    kernels: ModuleType, m: int, half_lives: tuple[float | None, ...] = (None,), clock: str = "time", every: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """Return empty headers and records for m features."""
    F = np.zeros(kernels.HEADER + len(half_lives) * kernels.MEMORY_HEADER)
    R = np.zeros((m, kernels.N_COMMON + len(half_lives) * kernels.N_OWN))
    F[kernels.CLIP], F[kernels.SCALING], F[kernels.N_MEMORIES], F[kernels.RAW] = 3.0, 1.0, len(half_lives), 1.0
    for e, half_life in enumerate(half_lives):
        H = F[kernels.HEADER :].reshape(len(half_lives), -1)[e]
        H[kernels.SCALE : kernels.SCALE + 2] = H[kernels.SHRINK] = H[kernels.FADE] = 1.0
        H[kernels.DECAY] = 1.0 if half_life is None else 0.5 ** (1 / half_life)
        H[kernels.CLASS_CLOCK], H[kernels.EVERY], H[kernels.COLUMN] = clock == "class", every, e
        H[kernels.REGULARIZATION] = 1e-4 if kernels is auc_means else -1.0
    return F, R


def entries(X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rows, columns = np.nonzero(X)
    pointers = np.searchsorted(rows, np.arange(len(X) + 1)).astype(np.int64)
    return pointers, columns.astype(np.int64), X[rows, columns]


def forecasts(kernels, F, R, X, codes, *, chances=False):
    """Return what each row is forecast before it is learned."""
    scores, likely = np.zeros((len(X), int(F[kernels.N_MEMORIES]))), np.zeros(len(X) if chances else 0)
    kernels.run(F, R, *entries(X), np.asarray(codes, dtype=np.int8), scores, likely)
    return (scores, likely) if chances else scores


def expected(form: str, X: np.ndarray, y: np.ndarray, half_life: float | None, clock: str) -> list[float]:
    events, out = naive.Events(half_life, clock), []
    steps = naive.Steps(X.shape[1], events)
    for x, label in zip(X, y, strict=True):
        seen = len(events.raw) > 0
        out.append((steps.score(x) if form == "means" else naive.diagonal(events, x)) if seen else 0.0)
        if form == "means":
            steps.learn(x, int(label))
        else:
            events.add(x, int(label), out[-1] if events.both() else None)
    return out


@pytest.mark.parametrize("clock", ["time", "class"])
@pytest.mark.parametrize("form", FORMS)
def test_several_memories_in_one_state_each_score_as_their_definition_says(form, clock):
    X, y = stream(1)
    half_lives = (None, 30.0, 7.0)
    F, R = state(KERNELS[form], X.shape[1], half_lives, clock)
    scores = forecasts(KERNELS[form], F, R, X, y)
    for e, half_life in enumerate(half_lives):
        np.testing.assert_allclose(scores[:, e], expected(form, X, y, half_life, clock), rtol=CLOSE, atol=CLOSE)


@given(st.integers(0, 10_000), st.integers(1, 7), st.floats(0.05, 1.0), st.booleans())
@settings(max_examples=10, deadline=None)
def test_any_stream_is_scored_as_the_definitions_say(seed, m, share, forgets):
    X, y = stream(seed, n=30, m=m, share=share)
    half_life = 9.0 if forgets else None
    for form, kernels in KERNELS.items():
        F, R = state(kernels, m, (half_life,))
        scores = forecasts(kernels, F, R, X, y)[:, 0]
        np.testing.assert_allclose(scores, expected(form, X, y, half_life, "time"), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("form", FORMS)
def test_chances_are_those_of_the_ratio_and_the_odds_of_the_classes(form):
    X, y = stream(2)
    kernels = KERNELS[form]
    F, R = state(kernels, X.shape[1])
    F[kernels.RAW] = 0.0
    ratios, chances = forecasts(kernels, F, R, X, y, chances=True)
    n1 = np.concatenate([[0], np.cumsum(y)[:-1]])
    odds = np.log(n1 + 0.5) - np.log(np.arange(len(y)) - n1 + 0.5)
    np.testing.assert_allclose(chances, 1 / (1 + np.exp(-ratios[:, 0] - odds)), rtol=1e-12)


@pytest.mark.parametrize("form", FORMS)
def test_forecasts_change_nothing_and_unlabelled_events_only_the_width(form):
    X, y = stream(3)
    kernels = KERNELS[form]
    F, R = state(kernels, X.shape[1] + 1)
    forecasts(kernels, F, R, X, y)
    before = F.copy(), R.copy()
    one = forecasts(kernels, F, R, X, np.full(len(X), FORECAST))
    assert (before[0] == F).all()
    assert (before[1] == R).all()
    wider = np.zeros((1, X.shape[1] + 1))
    wider[0, -1] = 1.0
    kernels.run(F, R, *entries(wider), np.array([-1], dtype=np.int8), NOTHING, NO_CHANCES)
    assert F[kernels.WIDTH] == X.shape[1] + 1
    assert (before[1] == R).all()
    assert (forecasts(kernels, F, R, X, np.full(len(X), FORECAST)) == one).all()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("every", [0.0, 1.0, 13.0])
def test_any_cut_into_calls_leaves_the_same_bits(form, every):
    X, y = stream(4, m=9, share=0.3)
    kernels = KERNELS[form]
    whole, parts = (state(kernels, 9, (None, 5.0), every=every) for _ in range(2))
    scores = forecasts(kernels, *whole, X, y)
    cut = np.concatenate([forecasts(kernels, *parts, X[a : a + 7], y[a : a + 7]) for a in range(0, len(X), 7)])
    assert (scores == cut).all()
    assert all((a == b).all() for a, b in zip(whole, parts, strict=True))


@pytest.mark.parametrize("form", FORMS)
def test_a_feature_that_stays_away_for_long_is_known_as_if_its_zeros_had_been_summed(form):
    X, y = stream(5, n=60, m=4, share=1.0)
    X[5:50, 0] = 0.0
    F, R = state(KERNELS[form], 4, (20.0,), every=1e6)
    scores = forecasts(KERNELS[form], F, R, X, y)[:, 0]
    if form == "means":  # weights of a feature that is away move with the steps of others
        np.testing.assert_allclose(scores, expected(form, X, y, 20.0, "time"), rtol=CLOSE, atol=CLOSE)
    events = naive.Events(20.0)
    for x, label in zip(X, y, strict=True):
        events.add(x, int(label))
    mean = np.array(events.raw).mean(axis=0)
    np.testing.assert_allclose(R[:, auc_wide.MEAN] * R[:, auc_wide.AT] / len(X), mean, rtol=CLOSE)
    if form == "diagonal":
        for label in (0, 1):
            at = auc_wide.N_COMMON + label * auc_wide.CLASS_SIZE
            H = F[auc_wide.HEADER :]
            share = R[:, at + auc_wide.OWN_WEIGHT] * H[auc_wide.SCALE + label] / H[auc_wide.WEIGHT + label]
            _, means, _ = events.moments(label)
            np.testing.assert_allclose(share * R[:, at + auc_wide.OWN_MEAN], means, rtol=CLOSE)


def test_steps_of_a_feature_fall_with_the_root_of_what_was_seen_of_it():
    X, y = stream(6, n=N_EVENTS, m=3, share=0.4)
    F, R = state(auc_means, 3)
    auc_means.run(F, R, *entries(X), y, NOTHING, NO_CHANCES)
    own = R[:, auc_means.N_COMMON :]
    whole, left = R[:, auc_means.METRIC], own[:, auc_means.TRUST]
    assert (own[:, auc_means.CURVATURE] > 0).all()
    assert (left < whole).all()
    assert (
        left > whole / np.sqrt(1 + whole * own[:, auc_means.CURVATURE]) - 1e-15
    ).all()  # as of before the last event


def test_a_step_that_is_given_stays_as_it_is():
    X, y = stream(7)
    F, R = state(auc_means, X.shape[1])
    F[auc_means.HEADER + auc_means.RATE] = 1e-3
    auc_means.run(F, R, *entries(X), y, NOTHING, NO_CHANCES)
    own = R[:, auc_means.N_COMMON :]
    assert (own[:, auc_means.CURVATURE] == 0).all()
    assert (own[:, auc_means.TRUST] == R[:, auc_means.METRIC]).all()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("size", [1e150, 1e-150])
def test_the_largest_and_the_smallest_values_leave_finite_numbers(form, size):
    X, y = stream(8)
    kernels = KERNELS[form]
    F, R = state(kernels, X.shape[1], (3.0,))
    scores = forecasts(kernels, F, R, X * size, y)
    assert np.isfinite(scores).all()
    assert np.isfinite(F).all()
    assert np.isfinite(R).all()
