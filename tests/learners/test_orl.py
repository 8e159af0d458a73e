"""ORL: any estimator of a vector, right while most batches are."""

import inspect

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from streamlearn import ORL, load
from streamlearn.errors import BadLabel, BadParameter, BadShape, BadSnapshot, BadValue, BaseFailed
from tests.contract import same
from tests.contract_regressor import CHECKS
from tests.naive import robust as naive

FORMS = (
    {"batch_size": 40},
    {"batch_size": 30, "base": "rotr", "window": None, "half_life": 500.0},
    {"batch_size": 25, "base": "ols"},
)
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
    with pytest.raises(BadSnapshot, match=r"the saved base .*LinearRegression.* must be given again"):
        ORL.from_state(state)


def test_a_file_with_a_foreign_base_is_read_with_one_like_it(tmp_path):
    X, y, _, _ = problem(5)
    model = ORL(LinearRegression(), batch_size=100).learn_many(X[:1250], y[:1250])
    model.save(tmp_path / "model")
    like = ORL(LinearRegression(), batch_size=100)
    again = load(tmp_path / "model", like=like)
    assert like.n_batches_ == 0
    assert same(again.learn_many(X[1250:], y[1250:]).state(), model.learn_many(X[1250:], y[1250:]).state())
    with pytest.raises(BadSnapshot, match=r"model: ORL: the saved base .* must be given again, as in load\(path, l"):
        load(tmp_path / "model")


def test_a_vector_of_nothing_is_refused():
    with pytest.raises(BadValue, match="base must give finite numbers"):
        ORL(lambda X, y: [], batch_size=10).learn_many(np.ones((10, 2)), np.ones(10))


class LeastSquaresThatFails(LinearRegression):
    def fit(self, X, y):
        if X[:, 0].max() > 50.0:
            raise RuntimeError("no convergence")
        return super().fit(X, y)


@pytest.mark.parametrize("how", ["one", "many", "test_then_learn", "mappings"])
def test_a_base_that_fails_loses_and_half_learns_nothing(how):
    X, y, _, _ = problem(7, n=500)
    model = ORL(LeastSquaresThatFails(), batch_size=100).learn_many(X[:299], y[:299])
    before, bad = model.state(), X[299:500].copy()
    # Two batches end in the call below; the second one fails, and new names came in with it.
    bad[0 if how == "one" else 150, 0] = 99.0
    call = {
        "one": lambda: model.learn_one(bad[0], y[299]),
        "many": lambda: model.learn_many(bad, y[299:]),
        "test_then_learn": lambda: model.test_then_learn_many(bad, y[299:]),
        "mappings": lambda: model.learn_many([{**dict(enumerate(x)), 77: 1.0} for x in bad], y[299:]),
    }[how]
    with pytest.raises(
        BaseFailed, match=r"ORL: base must fit every batch, got RuntimeError\('no convergence'\) in batch"
    ):
        call()
    assert same(model.state(), before)
    # The rows that waited are learned with the next good ones, as if nothing had happened.
    never = ORL(LeastSquaresThatFails(), batch_size=100).learn_many(X, y)
    assert same(model.learn_many(X[299:], y[299:]).state(), never.state())


def test_an_estimator_that_fails_leaves_no_class_behind():
    X, y, _, _ = problem(8, n=100)
    model = ORL(LogisticRegression(C=-1.0), batch_size=50)
    before = model.state()
    with pytest.raises(BaseFailed, match="InvalidParameterError") as caught:
        model.learn_many(X, np.where(y > 0, 3.0, 2.0))
    assert "'C' parameter" in str(caught.value.__cause__)
    assert same(model.state(), before)


def test_a_wrong_row_of_a_call_leaves_its_batches_unlearned():
    X, y, _, _ = problem(9, n=300)
    model = ORL("ols", batch_size=100).learn_many(X[:50], y[:50])
    before = model.state()
    with pytest.raises(BadLabel):
        model.learn_many(X[50:], [*y[50:-1], "text"])
    assert same(model.state(), before)


@pytest.mark.parametrize(
    ("params", "bound"),
    [({"window": 8}, 0.1), ({"window": None, "half_life": 1000.0}, 0.6), ({"window": None, "averaged": True}, np.inf)],
    ids=str,
)
def test_a_jump_is_followed_by_the_window_and_by_a_half_life(params, bound):
    X, y, _, theta = problem(10, n=8000, bad_batches=0.0)
    after = slice(4000, None)
    y[after] = X[after] @ -theta + 1.0
    model = ORL("ols", batch_size=100, **params).learn_many(X, y)
    off = np.linalg.norm(model.estimate_[1:] + theta) / np.linalg.norm(theta)
    assert off < bound
    plain = ORL("ols", batch_size=100, window=None).learn_many(X, y)
    assert np.linalg.norm(plain.estimate_[1:] + theta) / np.linalg.norm(theta) > max(2 * off, 0.9) or bound == np.inf


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
    with pytest.raises(BadParameter, match="ORL: window must be None with averaged, c_a or half_life"):
        ORL(half_life=100.0)
