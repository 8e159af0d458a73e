"""FSAUC: it goes where the pair loss is least, at any time, whatever the units."""

import numpy as np
import pytest
from sklearn.metrics import log_loss, roc_auc_score

from streamlearn.errors import BadParameter
from streamlearn.kernels import fsauc
from streamlearn.learners.auc.fsauc import FSAUC
from tests.naive.fsauc import pair_loss

CORRELATED = np.array([[1.0, 0.6, 0.0], [0.0, 0.8, 0.0], [0.3, 0.0, 1.0]])


def stream(seed, n=4000, share=0.4):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, 3)) @ CORRELATED
    signal = Z @ [1.0, -0.5, 0.3] + 0.7 * rng.normal(size=n)
    return Z * [1.0, 100.0, 0.01] + [0.0, 1e4, 5.0], (signal > np.quantile(signal, 1 - share)).astype(int)


def minimiser(X, y):
    """Return the weights of least pair loss, in closed form: ``(G+ + G- + delta delta')^-1 delta``."""
    A, B = X[y == 1], X[y == 0]
    delta = A.mean(axis=0) - B.mean(axis=0)
    G = np.cov(A.T, bias=True) + np.cov(B.T, bias=True)
    return np.linalg.solve(G + np.outer(delta, delta), delta)


def test_weights_approach_the_minimiser_of_the_pair_loss():
    X, y = stream(1, n=40_000)
    w = minimiser(X, y)
    model, likeness = FSAUC(), []
    for part in np.split(np.arange(len(X)), 40):
        model.learn_many(X[part], y[part])
        likeness.append(np.corrcoef(X @ w, model.score_many(X))[0, 1])
    # Single values swing: right after a stage began its average holds few points.
    assert np.mean(likeness[20:]) > np.mean(likeness[:5])
    assert np.mean(likeness[20:]) > 0.998
    assert min(likeness) > 0.97
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    some = slice(0, 300)
    ours = model._vectors()[fsauc.W_MEAN, :3]
    losses = [
        pair_loss(v.tolist(), Z[some][y[some] == 1].tolist(), Z[some][y[some] == 0].tolist())
        for v in (ours, w * X.std(axis=0), np.zeros(3))
    ]
    least, none = losses[1], losses[2]
    assert losses[0] - least < 0.01 * (none - least)


def test_the_dual_variable_is_the_gap_of_the_class_scores():
    X, y = stream(2)
    model = FSAUC().learn_many(X, y)
    scores = model.score_many(X)
    gap = scores[y == 0].mean() - scores[y == 1].mean()
    F = model._arena
    assert F[fsauc.ALPHA_START] == pytest.approx(gap, rel=0.1)
    assert F[fsauc.A_MEAN] == pytest.approx(scores[y == 1].mean(), abs=0.1 * abs(gap))
    assert F[fsauc.B_MEAN] == pytest.approx(scores[y == 0].mean(), abs=0.1 * abs(gap))


@pytest.mark.parametrize("share", [0.4, 0.03])
def test_ranks_well_untuned_on_raw_values_at_any_time(share):
    X, y = stream(3, share=share)
    tested = FSAUC().test_then_learn_columns((0, 1, 2), X, y)
    best = X @ minimiser(X, y)
    for part in (slice(200, 1000), slice(1000, 2000), slice(2000, 4000)):
        assert roc_auc_score(y[part], tested.scores[part]) > roc_auc_score(y[part], best[part]) - 0.02
    late = slice(1000, None)
    prior = np.full(len(y), y.mean())
    assert log_loss(y[late], tested.probabilities[late]) < 0.8 * log_loss(y[late], prior[late])


def test_a_small_radius_binds():
    X, y = stream(4, n=1500)
    sizes = [np.abs(FSAUC(radius=r).learn_many(X, y)._vectors()[fsauc.W_MEAN]).sum() for r in (0.1, 10.0)]
    assert 0 < sizes[0] <= 0.1 < sizes[1] < 10.0


def test_units_and_distance_from_zero_do_not_matter():
    X, y = stream(5, n=1000)
    scores = FSAUC().test_then_learn_many(X, y)
    moved = FSAUC().test_then_learn_many(X * [1e-6, 1e3, 7.0] + [0.0, 1e9, 50.0], y)
    assert moved == pytest.approx(scores, rel=1e-3, abs=1e-3)


def test_nothing_moves_before_both_classes_were_seen():
    X, y = stream(6)
    model = FSAUC().learn_many(X[y == 1], np.ones(int(y.sum()), dtype=int))
    assert (model.score_many(X) == 0).all()
    assert model._arena[fsauc.STEPS] == 0


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"learning_rate": 0.0}, r'learning_rate must be "auto" or in \(0, 1e\+10\], got 0.0'),
        ({"learning_rate": "fast"}, 'learning_rate must be "auto" or'),
        ({"radius": 0}, r"radius must be in \(0, 1e\+10\], got 0"),
        ({"radius": float("inf")}, "radius must be in"),
        ({"reject_cost": -0.1}, "reject_cost must be in"),
        ({"scale": "unit"}, "scale must be one of"),
    ],
)
def test_wrong_parameters_are_named(params, message):
    with pytest.raises(BadParameter, match=f"FSAUC: {message}"):
        FSAUC(**params)
