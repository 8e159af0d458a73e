"""ORL: any estimator of a vector, right while most batches are."""

import inspect

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from streamlearn import ORL
from streamlearn.errors import BadParameter, BadShape, BadSnapshot, BadValue
from tests.contract import same
from tests.contract_regressor import CHECKS
from tests.naive import robust as naive

FORMS = ({"batch_size": 40}, {"batch_size": 30, "base": "rotr", "window": None}, {"batch_size": 25, "base": "ols"})
# Plain least squares of columns of 1e150 and 1e-150 overflows: only the robust bases promise more.
NOT_FOR_OLS = ("check_never_nan",)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
@pytest.mark.parametrize("params", FORMS, ids=str)
def test_contract(params, check, tmp_path):
    if params.get("base") in ("ols", "rotr") and check.__name__ in NOT_FOR_OLS:
        pytest.skip("plain and unscaled bases overflow there, and are refused")

    def make(**changes):
        return ORL(**{**params, **changes})

    check(make, tmp_path / "m") if "path" in inspect.signature(check).parameters else check(make)


def problem(seed, n=3000, p=4, bad_batches=0.3, batch=100):
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=p)
    X = rng.normal(size=(n, p))
    y = X @ theta + 1.0 + 0.3 * rng.normal(size=n)
    bad = np.repeat(rng.random(n // batch) < bad_batches, batch)
    return X, y, bad, theta


@pytest.mark.parametrize("base", ["lts", "ols", LinearRegression()], ids=str)
def test_bad_batches_are_outvoted(base):
    X, y, bad, theta = problem(1)
    y[bad] = -20.0 * y[bad] + 300.0
    model = ORL(base, batch_size=100).learn_many(X, y)
    assert np.allclose(model.estimate_, [1.0, *theta], atol=0.05)
    assert np.allclose(model.predict_many(X[:5]), 1.0 + X[:5] @ theta, atol=0.2)
    assert np.abs(np.linalg.lstsq(X, y, rcond=None)[0] - theta).max() > 1.0
    assert model.n_batches_ == 30


def test_a_function_of_a_batch_is_filtered_by_the_geometric_median():
    X, _, bad, _ = problem(2, n=1000, bad_batches=0.2)
    X[bad] += 1e4
    model = ORL(lambda X, y: np.append(X.mean(axis=0), X.std()), batch_size=100).learn_many(X, X[:, 0])
    estimates = np.array([[*B.mean(axis=0), B.std()] for B in X.reshape(10, 100, -1)])
    expected = naive.geometric_median(estimates, 900)
    assert naive.total_distance(estimates, model.estimate_) <= naive.total_distance(estimates, expected) * (1 + 1e-8)
    named = ORL("mean", batch_size=100).learn_many(X, X[:, 0])
    assert np.abs(named.estimate_).max() < 1.0
    with pytest.raises(BadParameter, match="intercept and a coefficient a feature"):
        named.predict_one(X[0])


def test_a_classifier_predicts_its_classes():
    X, y, bad, _ = problem(3)
    labels = (y > 1.0).astype(float)
    clean = labels.copy()
    labels[bad] = 1.0 - labels[bad]
    labels[:100] = 1.0  # a batch of one class cannot be fitted
    model = ORL(LogisticRegression(), batch_size=100).learn_many(X, labels)
    assert model.n_skipped_ == 1
    assert set(model.predict_many(X).tolist()) == {0.0, 1.0}
    assert (model.predict_many(X) == clean).mean() > 0.9


def test_a_bad_batch_is_told():
    X, y, _, _ = problem(4, bad_batches=0.0)
    model = ORL("ols", batch_size=100).learn_many(X, y)
    near, weight = model.distance_, model.weight_
    assert not model.suspicious_
    model.learn_many(X[:100], 50.0 * y[:100])
    assert model.suspicious_
    assert model.distance_ > 20 * near
    assert model.weight_ < weight


def test_a_foreign_base_comes_back_by_restore_alone():
    X, y, _, _ = problem(5)
    model = ORL(LinearRegression(), batch_size=100).learn_many(X[:1250], y[:1250])
    state = model.state()
    other = ORL(LinearRegression(), batch_size=100)
    other.restore(state)
    assert same(other.learn_many(X[1250:], y[1250:]).state(), model.learn_many(X[1250:], y[1250:]).state())
    with pytest.raises(BadSnapshot, match="saved parameters must be"):
        ORL(LinearRegression(), batch_size=99).restore(state)
    with pytest.raises(BadSnapshot, match="base must be one of"):
        ORL.from_state(state)


def test_bad_bases_are_refused():
    for bad in ("nonsense", 5, LinearRegression):
        with pytest.raises(BadParameter, match="ORL: base must be one of"):
            ORL(bad)
    X, y, _, _ = problem(6)
    with pytest.raises(BadValue, match="finite"):
        ORL(lambda X, y: [np.nan], batch_size=10).learn_many(X, y)
    with pytest.raises(BadShape, match="base must give"):
        ORL(lambda X, y: np.zeros(int(X[0, 0] > 0) + 1), batch_size=10).learn_many(X, y)
    with pytest.raises(BadParameter, match="batch_size"):
        ORL(batch_size=0)
