"""Members learned on unlabelled rows: what they gain, that they are honest, streamed, saved and grown."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score

from streamlearn import HedgeMower1, Marvin, load
from streamlearn.errors import BadParameter, BadSnapshot
from streamlearn.learners.muffled.embedding import Embedding
from streamlearn.learners.muffled.sample import Sample
from streamlearn.learners.muffled.unlabelled import NAMES, fit_embedded
from tests.contract import same


def clusters(seed=0, n=700, m=6):
    """Two classes of four clouds each: unlabelled rows show the clouds."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(8, m)) * 4
    which = rng.integers(0, 8, n)
    return centres[which] + rng.normal(size=(n, m)), np.where(which < 4, 1.0, -1.0)


def sample(seed=0, n=40, N=400):
    X, y = clusters(seed, n + N + 200)
    return Sample(X[:n], y[:n], X[n : n + N], 3), X[n + N :], y[n + N :]


def test_principal_axes_are_those_of_the_covariance():
    s, test, _ = sample()
    e = Embedding.of(s)
    z = np.clip(((s.unlabelled - s.affine[0]) / s.affine[1] - s.affine[2]) / s.affine[3], -8, 8)
    eigenvalues = np.linalg.eigvalsh(np.cov(z.T, bias=True))[::-1]
    assert np.square(e.sd) == pytest.approx(eigenvalues[: len(e.sd)])
    scores = e.scores(s.unlabelled)
    assert scores.mean(axis=0) == pytest.approx(0.0, abs=1e-9)
    assert np.cov(scores.T, bias=True) == pytest.approx(np.diag(np.square(e.sd)), abs=1e-9)
    assert e.scores(test[:1])[0].tolist() == e.scores(test)[0].tolist()


def test_wide_rows_have_nearly_the_same_leading_axes():
    rng = np.random.default_rng(1)
    U = rng.normal(size=(120, 3)) @ rng.normal(size=(3, 500)) * 5 + rng.normal(size=(120, 500))
    s = Sample(U[:10], np.where(np.arange(10) % 2, 1.0, -1.0), U, 1)
    e = Embedding.of(s)
    z = np.clip(((U - s.affine[0]) / s.affine[1] - s.affine[2]) / s.affine[3], -8, 8)
    exact = np.linalg.svd(z - z.mean(axis=0), compute_uv=False) / np.sqrt(120)
    assert e.sd[:3] == pytest.approx(exact[:3], rel=1e-6)
    assert not e.text


def test_sparse_wide_rows_are_text():
    rng = np.random.default_rng(2)
    U = (rng.random((60, 300)) < 0.03).astype(float)
    e = Embedding.of(Sample(U[:10], np.where(np.arange(10) % 2, 1.0, -1.0), U, 1))
    assert e.text
    assert np.isfinite(e.scores(np.vstack([U, np.zeros((1, 300))]))).all()


def test_each_member_ranks_fresh_rows_and_does_not_know_the_own_label():
    s, test, y_test = sample(3)
    extra, held_out = fit_embedded(s)
    votes = extra.votes(test)
    assert (np.abs(votes) <= 1).all()
    assert (np.abs(held_out) <= 1).all()
    for k, name in enumerate(NAMES):
        assert roc_auc_score(y_test, votes[:, k]) > 0.85, name
        assert roc_auc_score(s.y, held_out[:, k]) > 0.7, name


def test_labels_of_noise_are_not_recognised_again():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(800, 4))
    s = Sample(X[:300], np.where(rng.random(300) < 0.5, 1.0, -1.0), X[300:], 1)
    _, held_out = fit_embedded(s)
    correlation = (held_out * s.y[:, None]).mean(axis=0) / np.sqrt(np.square(held_out).mean(axis=0))
    assert (np.abs(correlation) < 4 / np.sqrt(300)).all()


def test_duplicated_and_constant_rows_stay_finite():
    rng = np.random.default_rng(5)
    U = np.repeat(rng.normal(size=(5, 3)), 100, axis=0)
    y = np.where(np.arange(40) % 2, 1.0, -1.0)
    extra, held_out = fit_embedded(Sample(U[:200:5], y, U, 1))
    assert np.isfinite(extra.votes(U[:3])).all()
    assert np.isfinite(held_out).all()
    assert fit_embedded(Sample(np.ones((40, 3)), y, np.ones((400, 3)), 1)) is None


def test_images_of_digits_are_ranked_better_with_the_unlabelled_ones():
    X, digit = load_digits(return_X_y=True)
    y = (digit >= 5).astype(int)
    gains = []
    for seed in range(3):
        rows = np.random.default_rng(seed).permutation(len(y))
        labels = [int(v) for v in y[rows[:40]]] + [None] * 1000
        auc = [
            roc_auc_score(
                y[rows[1040:]],
                HedgeMower1(seed=seed, unlabelled_members=how).fit(X[rows[:1040]], labels).score_many(X[rows[1040:]]),
            )
            for how in ("auto", "off")
        ]
        gains.append(auc[0] - auc[1])
    assert min(gains) > 0.01


@pytest.mark.parametrize("cls", [HedgeMower1, Marvin])
def test_streams_are_learned_and_restored_bit_for_bit(cls, tmp_path):
    X, y = clusters(6, 420)
    labels = [y[i] if i % 10 == 0 else None for i in range(420)]
    params = {"n_trees": 5, "members": "forest, logistic", "refit_every": 20, "unlabelled_members": "on"}
    one = cls(**params)
    expected = []
    for x, label in zip(X, labels, strict=True):
        expected.append(one.score_one(x))
        one.learn_one(x, label)
    assert one.vote_names[-4:] == NAMES
    many = cls(**params)
    scores = np.concatenate([many.test_then_learn_many(X[a:b], labels[a:b]) for a, b in ((0, 123), (123, 420))])
    assert scores.tolist() == expected
    assert same(one.state(), many.state())
    first = cls(**params).learn_many(X[:200], labels[:200])
    first.save(tmp_path / "model")
    assert same(load(tmp_path / "model").learn_many(X[200:], labels[200:]).state(), one.state())
    assert one.votes_many(X) @ one.vote_weights == pytest.approx(one.score_many(X), abs=1e-12)


def test_new_features_later_count_for_nothing():
    X, y = clusters(7, 420)
    labels = [y[i] if i < 40 else None for i in range(420)]
    model = HedgeMower1(n_trees=5).fit([dict(enumerate(x.tolist())) for x in X], labels)
    before = model.score_many([dict(enumerate(x.tolist())) for x in X])
    model.learn_one({**dict(enumerate(X[0].tolist())), 99: 5.0})
    assert model.score_many([dict(enumerate(x.tolist())) for x in X]).tolist() == before.tolist()
    assert model.n_features == 7


def test_they_come_in_by_the_numbers_of_rows_alone():
    X, y = clusters(8, 1300)
    for n_labels, n_unlabelled, there in ((40, 299, False), (40, 300, True), (500, 400, True), (501, 400, False)):
        labels = list(y[:n_labels]) + [None] * n_unlabelled
        model = HedgeMower1(n_trees=3, members="forest").fit(X[: len(labels)], labels)
        assert (model.vote_names[-1] == "neighbours") == there
    off = HedgeMower1(n_trees=3, members="forest", unlabelled_members="off").fit(X[:440], list(y[:40]) + [None] * 400)
    assert off.vote_names == ("forest",)


def test_conservative_pools_hold_them_back():
    s = sample(9)[0]
    X, labels = np.vstack([s.labelled, s.unlabelled]), list(s.y) + [None] * len(s.unlabelled)
    plain, held = (
        HedgeMower1(n_trees=10, tau=1e6, conservative=conservative).fit(X, labels) for conservative in (False, True)
    )
    assert plain.vote_weights[-4:].min() > 0.01
    assert held.vote_weights[-4:].max() < 0.01


def test_saved_members_that_do_not_fit_are_refused():
    s = sample(10)[0]
    X, labels = np.vstack([s.labelled, s.unlabelled]), list(s.y) + [None] * len(s.unlabelled)
    state = HedgeMower1(n_trees=3).fit(X, labels).state()
    layer = [f"0/{name}" for name in ("axes", "offset", "sd", "landmarks", "alpha", "points", "values", "numbers")]
    for name in (*layer, "more_weights", "all_evidence"):
        key = f"array/model/{name}"
        for broken in (state[key][1:], state[key].astype(np.float32)):
            with pytest.raises(BadSnapshot, match="HedgeMower1"):
                HedgeMower1.from_state({**state, key: broken})
    with pytest.raises(BadSnapshot, match="text"):
        HedgeMower1.from_state({k: v for k, v in state.items() if k != "array/model/0/text"})


def test_events_to_label_first_come_from_different_clouds():
    X, _ = clusters(11, 600)
    rng = np.random.default_rng(0)
    model = HedgeMower1().learn_many(X)
    before = model.state()
    found = model.suggest_labels(8)
    assert same(model.state(), before)
    assert len(found) == 8
    rows = np.array([[x[j] for j in range(6)] for x in found])
    assert all((row == X).all(axis=1).any() for row in rows)

    def cover(chosen):
        return np.sqrt(((X[:, None] - chosen) ** 2).sum(axis=2).min(axis=1)).mean()

    random = [cover(X[rng.permutation(600)[:8]]) for _ in range(50)]
    assert cover(rows) < min(random)  # every event has a suggested one nearer than random ones are


def test_few_or_equal_events_may_be_suggested_as_well():
    assert HedgeMower1().suggest_labels(3) == []
    model = HedgeMower1().learn_one({"a": 1.0})
    assert model.suggest_labels(3) == [{"a": 1.0}]
    model.learn_many([{"a": 1.0}] * 30)
    assert len(model.suggest_labels(3)) == 1
    with pytest.raises(BadParameter, match="k must be"):
        model.suggest_labels(0)


@pytest.mark.parametrize("params", [{"unlabelled_members": "sometimes"}, {"conservative": 1}])
def test_wrong_parameters_are_refused(params):
    with pytest.raises(BadParameter, match=f"HedgeMower1: {next(iter(params))} must be"):
        HedgeMower1(**params)
