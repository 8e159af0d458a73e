"""OAMseq and OAMgd: the reservoir in the state, parameters, worth."""

import numpy as np
import pytest
from sklearn.metrics import log_loss, roc_auc_score

from streamlearn.errors import BadParameter
from streamlearn.kernels import oam
from streamlearn.learners.auc.oam import OAMgd, OAMseq
from streamlearn.learners.registry import load

BOTH = pytest.mark.parametrize("make", [OAMseq, OAMgd])


def stream(seed, n=600, m=4, share=0.5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m)) * [1.0, 100.0, 0.01, 3.0] + [0.0, 1e4, 0.0, -2.0]
    signal = 2 * X[:, 0] + 100 * X[:, 2] + rng.normal(size=n)
    return X, (signal > np.quantile(signal, 1 - share)).astype(int)


def kept(model, label):
    """Return the events in the buffer of a class."""
    rows = model._vectors()[oam.N_VECTORS :].reshape(2, model.buffer_size, -1)
    return rows[label, :, : model.n_features]


@BOTH
def test_buffers_hold_events_of_their_class_as_they_came(make):
    X, y = stream(1)
    model = make(buffer_size=20).learn_many(X, y)
    for label in (0, 1):
        own = {tuple(x) for x in X[y == label]}
        rows = [tuple(x) for x in kept(model, label)]
        assert set(rows) <= own
        assert len(set(rows)) == 20


@BOTH
def test_the_seed_alone_decides_what_is_kept(make):
    X, y = stream(2)
    same = [make(buffer_size=10, seed=3).learn_many(X, y) for _ in range(2)]
    other = make(buffer_size=10, seed=4).learn_many(X, y)
    assert (kept(same[0], 1) == kept(same[1], 1)).all()
    assert (kept(same[0], 1) != kept(other, 1)).any()


@BOTH
def test_a_saved_learner_goes_on_with_the_same_draws(make, tmp_path):
    X, y = stream(3)
    straight = make(buffer_size=10, seed=9).learn_many(X, y)
    make(buffer_size=10, seed=9).learn_many(X[:300], y[:300]).save(tmp_path / "model")
    again = load(tmp_path / "model").learn_many(X[300:], y[300:])
    assert (kept(straight, 0) == kept(again, 0)).all()
    assert straight.score_many(X).tolist() == again.score_many(X).tolist()


@BOTH
def test_buffers_survive_a_growing_width(make):
    X, y = stream(4)
    model = make(buffer_size=5)
    for k, (x, label) in enumerate(zip(X[:200], y[:200], strict=True)):
        model.learn_one({"a": x[0], **{f"late{j}": x[3] for j in range(k // 10)}}, label)
    assert model.n_features == 20
    firsts = {round(v, 12) for v in X[:200, 0]}
    for label in (0, 1):
        assert {round(v, 12) for v in kept(model, label)[:, 0]} <= firsts


@BOTH
@pytest.mark.parametrize("share", [0.5, 0.05])
def test_ranks_well_untuned_on_raw_values(make, share):
    X, y = stream(5, n=3000, share=share)
    best = 2 * X[:, 0] + 100 * X[:, 2]
    tested = make().test_then_learn_columns((0, 1, 2, 3), X, y)
    late = slice(1000, None)
    assert roc_auc_score(y[late], tested.scores[late]) > roc_auc_score(y[late], best[late]) - 0.02
    prior = np.full(len(y), y.mean())
    assert log_loss(y[late], tested.probabilities[late]) < 0.7 * log_loss(y[late], prior[late])


@BOTH
def test_units_and_distance_from_zero_do_not_matter(make):
    X, y = stream(6)
    scores = make().test_then_learn_many(X, y)
    moved = make().test_then_learn_many(X * [1e-6, 1e3, 1.0, 7.0] + [0.0, 1e9, 0.0, 50.0], y)
    assert np.corrcoef(scores[50:], moved[50:])[0, 1] > 0.999


@BOTH
@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"C": 0}, r'C must be "auto" or in \(0, 1e\+10\], got 0'),
        ({"C": "big"}, 'C must be "auto" or'),
        ({"buffer_size": 0}, r"buffer_size must be a whole number in \[1, 100000\], got 0"),
        ({"buffer_size": 2.5}, "buffer_size must be a whole number"),
        ({"seed": -1}, "seed must be a whole number"),
        ({"seed": 2**32}, "seed must be a whole number"),
        ({"reject_cost": 0.7}, "reject_cost must be in"),
        ({"scale": None}, "scale must be one of"),
    ],
)
def test_wrong_parameters_are_named(make, params, message):
    with pytest.raises(BadParameter, match=f"{make.__name__}: {message}"):
        make(**params)
