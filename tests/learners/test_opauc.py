"""OPAUC is AUCRO by gradient at a cost of one half."""

import numpy as np
import pytest

from streamlearn import AUCRO, OPAUC
from tests.naive import auc as naive


def stream(n: int = 200) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, (X[:, 0] + rng.normal(size=n) > 0).astype(int)


@pytest.mark.parametrize("scale", ["standard", "range", "none"])
@pytest.mark.parametrize("half_life", [None, 30.0])
def test_state_is_that_of_aucro_by_gradient(scale, half_life):
    X, y = stream()
    ours = OPAUC(scale=scale, half_life=half_life).learn_many(X, y)
    aucro = AUCRO(solver="sgd", scale=scale, half_life=half_life).learn_many(X, y)
    for a, b in zip(ours._arrays().values(), aucro._arrays().values(), strict=True):
        assert a.tobytes() == b.tobytes()


def test_it_never_abstains():
    X, y = stream()
    assert None not in OPAUC().learn_many(X, y).predict_many(X).tolist()


def test_published_algorithm_is_a_choice_of_parameters():
    X, y = stream(40)
    model = OPAUC(scale="none", clip=None, learning_rate=0.02, regularization=0.01).learn_many(X, y)
    w = naive.sgd(X, y, 0.02, 0.01)
    score = model.score_many(X)
    # the same ranking: scores are an increasing linear function of w . x
    np.testing.assert_allclose(np.corrcoef(score, X @ w)[0, 1], 1.0, atol=1e-9)


@pytest.mark.parametrize("scale", ["standard", "range"])
def test_the_automatic_step_learns_in_any_units(scale):
    X, y = stream(400)
    plain = OPAUC(scale=scale).learn_many(X, y).score_many(X)
    large = OPAUC(scale=scale).learn_many(X * 2.0**40, y).score_many(X * 2.0**40)
    np.testing.assert_allclose(large, plain, rtol=1e-9)
    assert plain[y == 1].mean() > plain[y == 0].mean() + 0.5
