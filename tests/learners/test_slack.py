"""The slack against linear programs of another form, its line search against brute force, and muffle."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from streamlearn import minimise_slack
from streamlearn.errors import BadParameter, BadShape, BadValue
from streamlearn.learners.muffled.combine import muffle, rectified_b
from streamlearn.learners.muffled.descent import exact_step, step_by_bisection
from streamlearn.learners.muffled.potentials import POTENTIALS
from streamlearn.learners.muffled.rectified import spreads
from streamlearn.learners.muffled.slack import certified_error
from tests.naive import muffled as naive

EXACT = 1e-9


def game(seed, p=6, n=80, asleep=0.0):
    """Votes and correlations that a real labelling allows."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    F = np.where(rng.random((p, n)) < rng.uniform(0.55, 0.8, (p, 1)), y, -y)
    F[rng.random((p, n)) < asleep] = 0.0
    F *= np.where(F @ y < 0, -1.0, 1.0)[:, None]
    return F, np.maximum(F @ y / n - 0.05, 0.0)


@pytest.mark.parametrize("name", POTENTIALS)
@pytest.mark.parametrize("m", [-2.7, -1.4, -1.0, -0.3, 0.0, 0.6, 1.0, 1.9, 2.5])
def test_potentials_are_those_of_their_losses(name, m):
    psi = POTENTIALS[name]
    value, g = naive.potential(name, m)
    at = np.array([m])
    steep = name in ("log", "exp")  # their losses are infinite at the end of the grid
    assert psi.value(at)[0] == pytest.approx(value, abs=0.05 if steep and abs(m) > 1 else 1e-3)
    if psi.kink == 0.0 and not (steep and abs(m) > 1):
        assert psi.prediction(at)[0] == pytest.approx(g, abs=2e-3)
    h = 1e-6
    if abs(abs(m) - (psi.kink or 1.0)) > h:
        slope = (psi.value(at + h)[0] - psi.value(at - h)[0]) / (2 * h)
        assert psi.slope(at)[0] == pytest.approx(slope, abs=1e-8)


@pytest.mark.parametrize("name", ["square", "log", "exp"])
def test_hallucinated_labels_of_proper_losses_are_their_predictions(name):
    m = np.linspace(-4, 4, 81)
    assert (POTENTIALS[name].slope(m) == POTENTIALS[name].prediction(m)).all()


def test_a_score_on_the_kink_counts_as_clipped():
    assert POTENTIALS["zero-one"].slope(np.array([1.0, -1.0, 0.999])).tolist() == [1.0, -1.0, 0.0]


@pytest.mark.parametrize("asleep", [0.0, 0.6])
@pytest.mark.parametrize("seed", range(6))
def test_the_value_of_the_game_is_half_the_slack(seed, asleep):
    F, b = game(seed, asleep=asleep)
    found = minimise_slack(F, b)
    assert found.feasible
    assert found.error_bound == pytest.approx(naive.game_value(F, b), abs=EXACT)
    assert found.slack == pytest.approx(naive.least_slack(F, b)[0], abs=EXACT)
    assert found.slack == pytest.approx(naive.slack(F, b, found.weights), abs=1e-12)
    assert found.error_bound <= (1 - b.max()) / 2 + EXACT  # unlabelled events do not hurt


def test_the_clipped_scores_attain_the_value_against_the_worst_labelling():
    F, b = game(11)
    found = minimise_slack(F, b)
    g = np.clip(F.T @ found.weights, -1, 1)
    from scipy.optimize import linprog

    worst = linprog(g, A_ub=-F / F.shape[1], b_ub=-b, bounds=(-1, 1))
    assert (1 - worst.fun / F.shape[1]) / 2 == pytest.approx(found.error_bound, abs=EXACT)


@pytest.mark.parametrize("name", POTENTIALS)
def test_gradients_reach_what_no_nearby_weights_undercut(name):
    F, b = game(3, p=5, n=60)
    found = minimise_slack(F, b, potential=name, solver="fista")
    assert (found.weights >= 0).all()
    assert found.slack == pytest.approx(naive.slack(F, b, found.weights, name), abs=1e-12)
    if name in ("zero-one", "hinge"):
        exact = minimise_slack(F, b, potential=name, solver="lp")
        assert exact.slack <= found.slack + EXACT
        assert found.slack == pytest.approx(exact.slack, abs=2e-3)  # the last rounding of the kink is .001 wide
    else:
        rng = np.random.default_rng(0)
        for size in (1e-3, 1e-1):
            for _ in range(100):
                other = np.maximum(found.weights + size * rng.normal(size=5), 0)
                assert naive.slack(F, b, other, name) >= found.slack - EXACT


@pytest.mark.parametrize("solver", ["lp", "fista"])
def test_sparse_and_dense_votes_give_the_same(solver):
    F, b = game(5, asleep=0.7)
    dense, sparse = (minimise_slack(form, b, solver=solver) for form in (F, csr_array(F)))
    assert sparse.slack == pytest.approx(dense.slack, abs=1e-6)


def test_more_members_than_the_gram_matrix_allows_for():
    F, b = game(6, p=90, n=60)
    found = minimise_slack(F, b, potential="square", solver="fista")
    assert (minimise_slack(F, b, potential="square").weights == found.weights).all()
    h = 1e-4
    for i in range(90):
        up = found.weights.copy()
        up[i] += h
        assert naive.slack(F, b, up, "square") >= found.slack - EXACT


@pytest.mark.parametrize("potential", ["zero-one", "square"])
def test_impossible_correlations_are_reported_and_scaled_back(potential):
    F = np.array([[1.0, 1.0, 1.0, 1.0], [-1.0, -1.0, -1.0, -1.0]])
    b = np.array([0.5, 0.3])
    assert naive.game_value(F, b) is None
    with pytest.warns(RuntimeWarning, match="no labelling allows b"):
        found = minimise_slack(F, b, potential=potential)
    assert not found.feasible
    assert found.shrink < 1e-6  # no positive part of b is possible here
    assert found.slack >= 0
    F, b = game(7)
    with pytest.warns(RuntimeWarning, match="multiplied"):
        found = minimise_slack(F, np.full(6, 0.95), potential=potential)
    assert 0 < found.shrink < 1
    assert naive.game_value(F, np.full(6, 0.95 * found.shrink)) is not None
    assert naive.game_value(F, np.full(6, 0.95 * found.shrink * 1.02)) is None
    assert found.slack >= 0


def test_correlations_of_zero_prove_nothing():
    F, _ = game(8)
    found = minimise_slack(F, np.zeros(6))
    assert found.weights.tolist() == [0.0] * 6
    assert found.error_bound == 0.5
    assert certified_error(F, np.zeros(6)) == 0.5
    assert certified_error(F, np.full(6, 0.99)) == 0.5


@pytest.mark.parametrize(
    ("F", "b", "options", "error"),
    [
        ([[1.0]], [0.1, 0.2], {}, BadShape),
        ([1.0], [0.1], {}, BadShape),
        ([[np.nan]], [0.1], {}, BadValue),
        ([[1.0]], [0.1], {"potential": "nonsense"}, BadParameter),
        ([[1.0]], [0.1], {"solver": "nonsense"}, BadParameter),
        ([[1.0]], [0.1], {"potential": "square", "solver": "lp"}, BadParameter),
    ],
)
def test_what_does_not_fit_is_refused(F, b, options, error):
    with pytest.raises(error, match=r"minimise_slack: .* must be"):
        minimise_slack(F, b, **options)


@given(st.integers(0, 10**6), st.sampled_from([1.0, 2.0]), st.booleans())
@settings(max_examples=200)
def test_the_exact_step_is_never_worse_than_golden_section(seed, kink, from_kink):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    m = rng.choice([-kink, kink], n) if from_kink else rng.normal(size=n) * 2
    u = rng.normal(size=n) * (rng.random(n) < 0.8)
    drop = float(rng.uniform(0, 1.2) * np.abs(u).mean())

    def f(a):
        return -a * drop + float(np.maximum(kink, np.abs(m + a * u)).mean())

    a = exact_step(m, u, drop, kink=kink)
    if math.isinf(a):
        assert f(1e6) < f(1e3) < f(0)
    else:
        assert f(a) <= f(naive.golden_section(f, 0.0, 20.0)) + 1e-12
        assert exact_step(m, u, drop, longest=a / 2, kink=kink) == a / 2


def test_bisection_finds_where_a_slope_turns():
    assert step_by_bisection(lambda a: a - 0.3, 1.0) == pytest.approx(0.3, abs=1e-12)
    assert step_by_bisection(lambda a: a + 0.3, 1.0) == 0.0
    assert step_by_bisection(lambda a: a - 3.0, 1.0) == 1.0


def pool(seed, n=80, N=300, p=4):
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=n + N)
    y = np.where(truth + rng.normal(size=n + N) > 0, 1.0, -1.0)
    votes = np.tanh(truth[:, None] * rng.uniform(0.1, 1.5, p) + rng.normal(size=(n + N, p)) * rng.uniform(0.2, 1.5, p))
    return votes[:n], y[:n], votes[n:]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("tau", [0.0, 30.0])
def test_muffle_is_the_slow_reference(seed, tau):
    H, y, F = pool(seed)
    found = muffle(H, y, F, tau=tau)
    assert found.weights == pytest.approx(naive.muffle(H, y, F, tau), abs=1e-4)
    assert found.slack <= found.slack_of_anchor + EXACT


def test_muffle_of_one_member_regresses_on_its_votes():
    H, y, F = pool(1, p=1)
    assert muffle(H, y, F).weights == pytest.approx([(H[:, 0] @ y) / (H[:, 0] @ H[:, 0])])


def test_strong_ridges_hold_the_anchor():
    H, y, F = pool(2)
    shares = np.array([0.5, 0.5, 0.0, 0.0])
    weights = muffle(H, y, F, tau=1e9, anchor=shares).weights
    assert weights[2:] == pytest.approx(0.0, abs=1e-6)
    assert weights[:2].min() > 0


def test_members_that_only_err_give_back_the_anchor():
    H, y, F = pool(3)
    weights = muffle(-H, y, -F, tau=0.0).weights
    assert weights.any()
    assert (weights >= 0).all()


def test_a_member_that_never_votes_does_no_harm():
    H, y, F = pool(4)
    H[:, 1] = F[:, 1] = 0.0
    assert np.isfinite(muffle(H, y, F).weights).all()


def test_the_rectified_b_is_unbiased_and_less_noisy():
    rng = np.random.default_rng(5)
    plain, rectified = [], []
    for _ in range(400):
        t = rng.normal(size=560)
        y = np.where(rng.random(560) < 1 / (1 + np.exp(-3 * t)), 1.0, -1.0)
        h = np.tanh(t)[:, None]
        g = np.clip(1.2 * h[:, 0], -1, 1)
        plain.append((h[:60, 0] * y[:60]).mean())
        rectified.append(rectified_b(h[:60], y[:60], h[60:], g[:60], g[60:])[0])
    error = np.std(plain) / math.sqrt(400)
    assert np.mean(rectified) == pytest.approx(np.mean(plain), abs=4 * error)
    assert np.std(rectified) < 0.8 * np.std(plain)


def test_muffle_refuses_what_does_not_fit():
    H, y, F = pool(6)
    with pytest.raises(BadShape, match="muffle"):
        muffle(H, y[:-1], F)
    with pytest.raises(BadParameter, match="potential"):
        muffle(H, y, F, potential="nonsense")


@pytest.mark.parametrize("potential", POTENTIALS)
def test_a_member_of_noise_weighs_less_than_under_an_equal_vote_with_every_potential(potential):
    H, y, F = pool(7, n=800)
    rng = np.random.default_rng(99)
    H = np.column_stack([H, rng.normal(size=len(H)).clip(-1, 1)])
    F = np.column_stack([F, rng.normal(size=len(F)).clip(-1, 1)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shares = [muffle(H, y, F, tau=tau, potential=potential).weights * F.std(axis=0) for tau in (10.0, 1e9)]
    assert shares[0][-1] / shares[0].sum() < 0.7 * shares[1][-1] / shares[1].sum()


def test_shares_of_the_anchor_are_of_the_sizes_given():
    rng = np.random.default_rng(5)
    y = np.where(rng.random(60) < 0.1, 1.0, -1.0)
    # A rare class: one vote is nearly the same for every event, one ranks as much of both classes.
    signal = rng.normal(size=(500, 2))
    F = np.clip(np.column_stack([-0.9 + 0.05 * signal[:, 0], 0.3 * signal[:, 1]]), -1.0, 1.0)
    H = np.column_stack([-0.9 + 0.05 * y, 0.1 * y])
    anchor = np.array([0.8, 0.2])
    by_spread = muffle(H, y, F, tau=1e9, anchor=anchor, sizes=spreads(F)).weights * F.std(axis=0)
    assert by_spread / by_spread.sum() == pytest.approx(anchor, abs=1e-6)
    by_squares = muffle(H, y, F, tau=1e9, anchor=anchor).weights * F.std(axis=0)
    assert by_squares[1] > by_squares[0]  # what ranks is then the vote of the smaller share
    squares = np.sqrt(np.square(F).mean(axis=0))
    given = muffle(H, y, F, anchor=anchor, sizes=squares)
    assert given.weights.tolist() == muffle(H, y, F, anchor=anchor).weights.tolist()


def test_a_vote_that_never_changes_has_no_spread_and_one_that_hardly_does_a_small_one():
    line = np.linspace(-1.0, 1.0, 1000)
    F = np.column_stack([np.full(1000, 0.1), np.full(1000, 1.0 / 3.0), line, 0.5 + 1e-4 * line])
    assert spreads(F) == pytest.approx([0.0, 0.0, F[:, 2].std(), 0.005])
