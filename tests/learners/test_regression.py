"""ORLRegressor: right where part of the stream is wrong."""

import inspect

import numpy as np
import pytest

from streamlearn import ORLRegressor
from streamlearn.errors import BadParameter
from tests.contract import same
from tests.contract_regressor import CHECKS

BATCHES = {"mode": "batches", "batch_size": 50}
FORMS = (
    {},
    {"half_life": 40.0},
    BATCHES,
    {**BATCHES, "base": "rotr", "window": None},
    {**BATCHES, "trim": 0.25, "window": 3},
    {**BATCHES, "window": None, "averaged": True},
)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
@pytest.mark.parametrize("params", FORMS, ids=str)
def test_contract(params, check, tmp_path):
    def make(**changes):
        return ORLRegressor(**{**params, **changes})

    check(make, tmp_path / "m") if "path" in inspect.signature(check).parameters else check(make)


def problem(seed, n, p, bad=0.0, kind="uniform"):
    """Return rows, targets, which are bad, and the truth."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=p)
    X = rng.normal(size=(n, p))
    y = X @ theta + 2.0 + rng.normal(size=n)
    wrong = rng.random(n) < bad
    if kind == "uniform":
        X[wrong] = rng.uniform(-10, 10, size=(wrong.sum(), p))
        y[wrong] = -X[wrong] @ theta + rng.normal(size=wrong.sum())
    elif kind == "flip":
        y[wrong] *= -1
    elif kind == "shift":
        y[wrong] += 1000.0
    return X, y, wrong, theta


def error(model, theta):
    return np.linalg.norm(model.coef_ - theta) / np.linalg.norm(theta)


@pytest.mark.parametrize("kind", ["uniform", "flip", "shift"])
@pytest.mark.parametrize(
    ("params", "bad"),
    [
        *(({}, bad) for bad in (0.0, 0.1, 0.25)),
        *(({"mode": "batches", "batch_size": 200}, bad) for bad in (0.0, 0.2, 0.4)),
    ],
    ids=str,
)
def test_the_truth_is_found_through_bad_rows(params, bad, kind):
    X, y, _, theta = problem(1, 6000, 10, bad, kind)
    plain = np.linalg.lstsq(np.column_stack([np.ones(len(X)), X]), y, rcond=None)[0][1:]
    # Least squares on the good rows alone.
    oracle = np.sqrt(10 / (len(X) * (1 - bad))) / np.linalg.norm(theta)
    model = ORLRegressor(**params).learn_many(X, y)
    assert error(model, theta) < 5 * oracle
    assert model.intercept_ == pytest.approx(2.0, abs=0.5)
    # Good rows have scale 1; near the breakdown point the median of all residuals is above theirs.
    assert 0.7 < model.scale_ < (1.6 if bad < 0.3 else 4.0)
    if bad and kind != "shift":
        assert np.linalg.norm(plain - theta) / np.linalg.norm(theta) > 0.15


def test_batches_bad_as_a_whole_are_outvoted_wherever_they_come():
    X, y, _, theta = problem(2, 8000, 10)
    rng = np.random.default_rng(3)
    for which in (np.arange(16), rng.permutation(40)[:16]):
        z = y.copy()
        for k in which:
            z[k * 200 : k * 200 + 200] *= -1.0
        model = ORLRegressor(mode="batches", batch_size=200).learn_many(X, z)
        assert error(model, theta) < 0.1


def test_a_bad_batch_is_told():
    X, y, _, theta = problem(4, 4000, 5)
    model = ORLRegressor(mode="batches", batch_size=200).learn_many(X, y)
    distance, weight, suspicious = model.last_batch_
    assert not suspicious
    model.learn_many(X[:200], -50.0 * y[:200])
    assert model.last_batch_[0] > 10 * distance
    assert model.last_batch_[1] < weight
    assert model.last_batch_[2]
    assert error(model, theta) < 0.05
    with pytest.raises(BadParameter, match="mode must be 'batches'"):
        _ = ORLRegressor().last_batch_


def test_a_poisoned_start_is_forgotten():
    X, y, _, theta = problem(5, 16000, 6)
    y[:6000] = -y[:6000]
    model = ORLRegressor().learn_many(X, y)
    assert error(model, theta) < 0.1
    body = model._body
    for k in range(2):
        # Without a restart those that never forget are still off by more than a quarter here.
        found = body._theta[k, 1:7] / body._scale
        assert np.linalg.norm(found - theta) / np.linalg.norm(theta) < 0.05


@pytest.mark.parametrize("seed", [14, 15])
def test_a_start_with_too_many_bad_rows_is_looked_at_again(seed):
    X, y, _, theta = problem(seed, 2000, 20)
    rng = np.random.default_rng(15)
    n_start = 2 * 21 + 50
    bad = rng.random(2000) < 0.35
    bad[:n_start] = rng.random(n_start) < 0.55
    y[bad] = 60.0 - 3.0 * X[bad] @ theta  # all on one plane
    model = ORLRegressor().learn_many(X[: 4 * n_start - 1], y[: 4 * n_start - 1])
    # The plane of the bad rows, or between the two.
    assert error(model, theta) > 2.0
    model.learn_one(X[4 * n_start - 1], y[4 * n_start - 1])
    assert error(model, theta) < 0.15
    assert len(model._body._waiting) == 0
    assert error(model.learn_many(X[4 * n_start :], y[4 * n_start :]), theta) < 0.05


def test_a_second_look_is_the_same_for_any_batches_and_through_unknown_targets():
    X, y, _, _ = problem(17, 400, 3)
    y[::3] = np.nan
    y[1::3] += np.where(np.arange(len(y[1::3])) < 30, 1000.0, 0.0)
    whole = ORLRegressor().learn_many(X, y)
    cut = ORLRegressor()
    for start in range(0, 400, 7):
        cut.learn_many(X[start : start + 7], y[start : start + 7])
    assert same(cut.state(), whole.state())
    halfway = ORLRegressor().learn_many(X[:200], y[:200])
    assert same(ORLRegressor.from_state(halfway.state()).learn_many(X[200:], y[200:]).state(), whole.state())


@pytest.mark.parametrize("share", [0.3, 0.4, 0.45])
def test_heavy_tails_do_not_hide_bad_rows_on_one_side(share):
    rng = np.random.default_rng(16)
    n, p = 6000, 10
    theta, X = rng.normal(size=p), rng.normal(size=(n, p))
    good = X @ theta + rng.standard_t(2, size=n)
    y = np.where(rng.random(n) < share, good + 40.0, good)
    model = ORLRegressor()
    off = np.abs(model.test_then_learn_many(X, y) - good)
    # Of the good targets' spread about the plane; a constant shift by 40 share would be more than ten times that.
    assert np.median(off[-1000:]) < 2.5


@pytest.mark.parametrize("tail", ["heavy", "skew"])
def test_bad_rows_on_one_side_do_not_feed_the_scale(tail):
    rng = np.random.default_rng(18)
    n, p = 5000, 10
    theta, X = rng.normal(size=p), rng.normal(size=(n, p))
    off = rng.standard_t(2, size=n) if tail == "heavy" else 1.5 * rng.exponential(size=n) ** 1.5
    good = X @ theta + off
    y = np.where(rng.random(n) < 0.4, good + 18.0, good)  # near: four to five of the good targets' deviations
    model = ORLRegressor()
    found = np.abs(model.test_then_learn_many(X, y) - good)[1000:].mean()
    clean = np.abs(ORLRegressor().test_then_learn_many(X, good) - good)[1000:].mean()
    # By the scale of all residuals twice as much and more.
    assert found < 1.1 * clean


def test_rows_that_fit_exactly_do_not_end_learning():
    rng = np.random.default_rng(19)
    exact = rng.random(6000) < 0.3
    X = np.column_stack([exact, np.where(exact, 0.0, rng.normal(size=6000))])
    y = np.where(exact, 1.0, 3.0 * X[:, 1] + rng.normal(size=6000))
    model = ORLRegressor()
    off = np.abs(model.test_then_learn_many(X, y) - y)[3000:]
    assert off[exact[3000:]].mean() < 0.01
    # The mean size of the others' noise is 0.80; their slope is still learned.
    assert off[~exact[3000:]].mean() < 0.85
    assert dict(zip(model.feature_names, model.coef_, strict=True))[1] == pytest.approx(3.0, abs=0.1)


def test_a_jump_of_the_truth_is_followed():
    X, y, _, theta = problem(6, 3000, 4)
    moved = X @ -theta + np.random.default_rng(7).normal(size=len(X))
    model = ORLRegressor().learn_many(X, y)
    predicted = model.test_then_learn_many(X[:1000], moved[:1000])
    off = np.abs(predicted - moved[:1000])
    assert off[:20].mean() > 3.0
    assert off[200:].mean() < 1.2
    assert error(ORLRegressor(half_life=100.0).learn_many(X, y).learn_many(X[:1000], moved[:1000]), -theta) < 0.2


def test_a_jump_is_followed_by_batches_with_a_half_life():
    X, y, _, theta = problem(12, 8000, 4)
    y[4000:] = X[4000:] @ -theta + np.random.default_rng(13).normal(size=4000)
    found = {
        half_life: ORLRegressor(mode="batches", batch_size=50, window=None, half_life=half_life).learn_many(X, y)
        for half_life in (500.0, None)
    }
    assert error(found[500.0], -theta) < 0.3
    assert error(found[None], -theta) > 0.8


def test_one_gross_cell_does_not_reach_the_predictions():
    X, y, _, _ = problem(8, 3000, 4)
    model = ORLRegressor().learn_many(X, y)
    before = model.predict_many(X)
    wild = X[0].copy()
    wild[2] = 1e12
    assert y.min() - 5 < model.predict_one(wild) < y.max() + 5
    model.learn_one(wild, 0.0)
    assert np.abs(model.predict_many(X) - before).mean() < 1.0


def test_a_wild_scale_of_a_constant_start_is_passed():
    rng = np.random.default_rng(9)
    X = rng.normal(size=(4000, 2))
    y = np.where(np.arange(4000) < 300, 5.0, 5.0 + 100.0 * X[:, 0] + rng.normal(size=4000))
    model = ORLRegressor().learn_many(X, y)
    assert np.abs(model.predict_many(X[-100:]) - y[-100:]).mean() < 2.0


def test_units_do_not_matter():
    X, y, _, _ = problem(10, 2000, 4, 0.1)
    base = ORLRegressor().learn_many(X, y).predict_many(X)
    units = np.array([1e-6, 1e6, 3.0, 0.01])
    moved = ORLRegressor().learn_many(X * units + 5 * units, y * 1e4 + 7.0).predict_many(X * units + 5 * units)
    assert np.allclose((moved - 7.0) / 1e4, base, atol=1e-2)


def test_outliers_are_told():
    X, y, wrong, _ = problem(11, 3000, 4, 0.1, "shift")
    told = ORLRegressor().learn_many(X, y).outliers_many(X, y)
    assert told[wrong].all()
    assert told[~wrong].mean() < 0.005


@pytest.mark.parametrize(
    ("params", "rule"),
    [
        ({"mode": "both"}, "mode must be one of"),
        ({"base": "ols"}, "base must be one of"),
        ({"batch_size": 1}, "batch_size must be a whole number >= 2"),
        ({"trim": 1.0}, "trim must be a number in"),
        ({"half_life": 0}, "half_life must be a number > 0"),
        ({"window": 0}, "window must be"),
        ({"averaged": True}, "window must be None with averaged"),
        ({"mode": "batches", "half_life": 9.0}, "window must be None with averaged, c_a or half_life"),
    ],
)
def test_bad_parameters_are_named(params, rule):
    with pytest.raises(BadParameter, match="ORLRegressor: " + rule):
        ORLRegressor(**params)
