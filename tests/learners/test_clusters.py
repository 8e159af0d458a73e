"""The member learned on clusters: memberships, honesty, gain where clusters are classes, streamed, saved and grown."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from streamlearn import HedgeMower1, Marvin, load
from streamlearn.errors import BadParameter, BadSnapshot
from streamlearn.learners.muffled.clusters import NAME, SIZES, centres_of, fit_clusters
from streamlearn.learners.muffled.layers import Extra
from streamlearn.learners.muffled.rectified import ON_UNLABELLED, anchor_of
from streamlearn.learners.muffled.sample import Sample
from streamlearn.learners.muffled.unlabelled import NAMES
from tests.contract import same
from tests.naive import muffled as naive

PARAMS = {"n_trees": 5, "members": "forest, logistic", "refit_every": 20, "unlabelled_members": "on", "clusters": True}


def clouds(seed=0, n=700, m=6):
    """Two classes of four clouds each."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(8, m)) * 4
    which = rng.integers(0, 8, n)
    return centres[which] + rng.normal(size=(n, m)), np.where(which < 4, 1.0, -1.0)


def sample(seed=0, n=40, N=400):
    X, y = clouds(seed, n + N + 200)
    return Sample(X[:n], y[:n], X[n : n + N], 3), X[n + N :], y[n + N :]


def test_memberships_are_those_of_the_slow_reference():
    s, test, _ = sample()
    found, _ = fit_clusters(s)
    Q = found.embedding.scores(test[:10]) * found.embedding.whitening
    expected = [naive.memberships(q, found.centres.tolist(), found.sets.tolist()) for q in Q.tolist()]
    got = found.memberships(test[:10])
    assert got == pytest.approx(np.array(expected), abs=1e-12)
    assert got.sum(axis=1) == pytest.approx(3.0)
    assert found.sets[:, 0].tolist() == list(SIZES)
    assert found.votes(test[3:4])[0, 0] == found.votes(test)[3, 0]
    far = found.memberships(np.full((1, 6), 1e9))
    assert np.isfinite(far).all()
    assert far.sum() == pytest.approx(3.0)


def test_each_centre_is_the_mean_of_the_rows_nearest_to_it():
    rng = np.random.default_rng(1)
    Q = np.concatenate([rng.normal(size=(30, 2)) + 20 * np.array([k, k % 2]) for k in range(4)])
    found = centres_of(Q, 4, rng)
    expected = [Q[30 * k : 30 * k + 30].mean(axis=0).tolist() for k in range(4)]
    assert sorted(found.tolist()) == pytest.approx(np.array(sorted(expected)))
    assert len(centres_of(Q[:3], 10, rng)) == 3


def test_it_ranks_fresh_rows_and_does_not_know_the_own_label():
    s, test, y_test = sample(3)
    layer, held_out = fit_clusters(s)
    assert roc_auc_score(y_test, layer.votes(test)[:, 0]) > 0.95
    assert roc_auc_score(s.y, held_out[:, 0]) > 0.7
    rng = np.random.default_rng(4)
    X = rng.normal(size=(800, 4))
    noise = Sample(X[:300], np.where(rng.random(300) < 0.5, 1.0, -1.0), X[300:], 1)
    _, held_out = fit_clusters(noise)
    correlation = (held_out[:, 0] * noise.y).mean() / np.sqrt(np.square(held_out).mean())
    assert abs(correlation) < 4 / np.sqrt(300)


def test_duplicated_and_constant_rows_stay_finite():
    rng = np.random.default_rng(5)
    U = np.repeat(rng.normal(size=(5, 3)), 100, axis=0)
    y = np.where(np.arange(40) % 2, 1.0, -1.0)
    layer, held_out = fit_clusters(Sample(U[:200:5], y, U, 1))
    assert np.isfinite(layer.votes(U[:3])).all()
    assert np.isfinite(held_out).all()
    assert fit_clusters(Sample(np.ones((40, 3)), y, np.ones((400, 3)), 1)) is None


@pytest.mark.parametrize("cls", [HedgeMower1, Marvin])
def test_streams_are_learned_and_restored_bit_for_bit(cls, tmp_path):
    X, y = clouds(6, 300)
    labels = [y[i] if i % 10 == 0 else None for i in range(300)]
    one, expected = cls(**PARAMS), []
    for x, label in zip(X, labels, strict=True):
        expected.append(one.score_one(x))
        one.learn_one(x, label)
    assert one.vote_names[-5:] == (*NAMES, NAME)
    many = cls(**PARAMS)
    scores = np.concatenate([many.test_then_learn_many(X[a:b], labels[a:b]) for a, b in ((0, 123), (123, 300))])
    assert scores.tolist() == expected
    assert same(one.state(), many.state())
    many.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.score_many(X).tolist() == one.score_many(X).tolist()
    wide = np.hstack([X, np.zeros((300, 2))])
    assert again.learn_many(wide[:1], [None]).score_many(wide).tolist() == one.score_many(X).tolist()


def test_it_is_off_by_default_and_shares_the_anchor_of_its_group():
    X, y = clouds(7, 400)
    labels = [y[i] if i < 40 else None for i in range(400)]
    plain, more = (HedgeMower1(**{**PARAMS, "clusters": on}).fit(X, labels) for on in (False, True))
    assert NAME not in plain.vote_names
    assert NAME not in HedgeMower1().vote_names
    assert not HedgeMower1().clusters
    extras = [Extra(layer, np.empty((0, 0)), np.empty((0, 0))) for layer in more._model.layers]
    shares = anchor_of(2, extras, conservative=False)
    assert shares[2:].tolist() == [ON_UNLABELLED / 5] * 5
    assert shares.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("bad", [{"clusters": 1}, {"clusters": True, "unlabelled_members": "off"}])
def test_wrong_parameters_are_refused(bad):
    with pytest.raises(BadParameter, match="HedgeMower1: clusters must be"):
        HedgeMower1(**bad)
    with pytest.raises(BadParameter, match="clusters must be False"):
        HedgeMower1(clusters=True, estimator="paper")


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("centres", lambda a: a[:-1]),
        ("sets", lambda a: -a),
        ("line", lambda a: a[1:]),
        ("centres", lambda a: a.astype(np.float32)),
        ("sd", lambda a: a[:-1]),
    ],
)
def test_altered_clusters_are_refused(name, change):
    X, y = clouds(8, 300)
    state = HedgeMower1(**PARAMS).fit(X, [y[i] if i < 40 else None for i in range(300)]).state()
    state[f"array/model/1/{name}"] = change(state[f"array/model/1/{name}"])
    with pytest.raises(BadSnapshot):
        HedgeMower1.from_state(state)
