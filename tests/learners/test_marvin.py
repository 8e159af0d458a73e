"""Marvin: stages of least slack, total correction, the published loop."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from streamlearn import Marvin, MarvinC, MarvinD
from streamlearn.errors import BadParameter
from streamlearn.learners.muffled.members import MEMBERS
from streamlearn.learners.muffled.potentials import POTENTIALS
from streamlearn.learners.muffled.rectified import fit_pool
from streamlearn.learners.muffled.sample import Sample
from streamlearn.learners.muffled.stages import corrected, fit_stages
from tests.contract import same

PSI = POTENTIALS["square"]


def stream(seed=0, n=1500, m=6):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m))
    y = ((X[:, :4] ** 2).sum(axis=1) + 0.5 * rng.normal(size=n) > 3.4).astype(int)
    return X, y


def sample(n=150, N=500, seed=0):
    X, y = stream(seed)
    return Sample(X[:n], 2.0 * y[:n] - 1, X[n : n + N], 5)


@pytest.mark.parametrize("cls", [Marvin, MarvinC, MarvinD])
@pytest.mark.parametrize(
    "params", [{"n_stages": 2, "members": "forest, logistic"}, {"estimator": "paper", "n_rounds": 5}]
)
def test_batches_with_unlabelled_rows_equal_single_events_bit_for_bit(cls, params):
    X, y = stream(1, n=300)
    labels = [int(v) if k % 4 == 0 else None for k, v in enumerate(y)]
    params = {"n_trees": 6, "refit_share": 0.5, "unlabelled_buffer": 120, **params}
    one = cls(**params)
    expected = []
    for x, label in zip(X, labels, strict=True):
        expected.append(one.score_one(x))
        one.learn_one(x, label)
    many = cls(**params)
    scores = [many.test_then_learn_many(X[a:b], labels[a:b]).tolist() for a, b in ((0, 90), (90, 91), (91, 300))]
    assert [score for part in scores for score in part] == expected
    assert same(one.state(), many.state())
    again = cls.from_state(cls(**params).learn_many(X[:77], labels[:77]).state()).learn_many(X[77:], labels[77:])
    assert same(one.state(), again.state())


@pytest.mark.parametrize("trust", [1.0, 0.9, 0.5])
def test_each_stage_lowers_the_slack_on_rows_it_was_not_grown_on(trust):
    s = sample()
    pool = fit_pool(s, [MEMBERS["logistic"]], 1, 30.0, "square")
    stages = fit_stages(s, pool, 6, trust, PSI, scales=False)
    assert stages
    labelled, unlabelled = pool.held_out_scores, pool.F @ pool.weights
    for stage in stages:
        assert 0.002 <= stage.weights[0] <= 1.0
        labelled = labelled + stage.held_out @ stage.weights
        unlabelled = unlabelled + stage.on_unlabelled @ stage.weights
    before, after = (roc_auc_score(s.y > 0, v) for v in (pool.held_out_scores, labelled))
    assert after > before + 0.05  # the rings of this problem are beyond a logistic regression
    assert stage.trees.votes(s.unlabelled_keys) == pytest.approx(stage.on_unlabelled)


def test_stages_that_learn_noise_are_rejected():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(700, 4))
    s = Sample(X[:200], np.where(rng.random(200) < 0.5, 1.0, -1.0), X[200:], 1)
    pool = fit_pool(s, [MEMBERS["forest"]], 20, 30.0, "square")
    stages = fit_stages(s, pool, 6, 0.9, PSI, scales=False)
    assert sum(float(stage.weights[0]) for stage in stages) < 0.6


@pytest.mark.parametrize("scales", [False, True])
def test_correction_stays_near_and_lowers_the_slack(scales):
    s = sample(seed=4)
    pool = fit_pool(s, [MEMBERS["logistic"], MEMBERS["forest"]], 20, 30.0, "square")
    stages = fit_stages(s, pool, 3, 0.9, PSI, scales=scales)
    factor, weights = corrected(s, pool, stages, 30.0, PSI)
    held, held_weights = corrected(s, pool, stages, 1e9, PSI)
    assert held == pytest.approx(1.0, abs=1e-3)
    assert np.concatenate(held_weights) == pytest.approx(np.concatenate([t.weights for t in stages]), abs=1e-3)
    assert factor > 0
    assert all((w >= 0).all() for w in weights)
    assert all(len(w) == (4 if scales else 1) for w in weights)


def test_few_unlabelled_rows_are_helped_out_by_the_labelled_ones():
    X, y = stream(5)
    for n_unlabelled in (0, 1, 30):
        labels = [int(v) for v in y[:120]] + [None] * n_unlabelled
        for cls in (Marvin, MarvinD):
            model = cls(n_trees=20, n_stages=2).fit(X[: 120 + n_unlabelled], labels)
            assert roc_auc_score(y[500:], model.score_many(X[500:])) > 0.7


@pytest.mark.parametrize("n_unlabelled", [0, 600])
def test_the_published_form_ranks_better_than_chance_and_specialists_help_it(n_unlabelled):
    X, y = stream(6)
    labels = [int(v) for v in y[:400]] + [None] * n_unlabelled
    found = {
        cls: roc_auc_score(y[1000:], cls(estimator="paper").fit(X[: len(labels)], labels).score_many(X[1000:]))
        for cls in (Marvin, MarvinD)
    }
    assert min(found.values()) > 0.55
    assert found[MarvinD] > found[Marvin] - 0.02


def test_stages_are_votes_of_their_own():
    X, y = stream(7)
    labels = [int(v) for v in y[:150]] + [None] * 500
    model = MarvinD(n_trees=10, n_stages=1, members="logistic", unlabelled_members="off").fit(X[:650], labels)
    assert model.vote_names == ("stage 1", "stage 1, scale 1", "stage 1, scale 2", "stage 1, scale 3", "logistic")
    assert model.votes_many(X) @ model.vote_weights == pytest.approx(model.score_many(X), abs=1e-12)
    assert model.error_bound() <= 0.5


@pytest.mark.parametrize("params", [{"n_stages": 0}, {"n_rounds": 0.5}, {"trust": 1.5}, {"trust": True}])
def test_wrong_parameters_are_refused(params):
    with pytest.raises(BadParameter, match=f"Marvin: {next(iter(params))} must be"):
        Marvin(**params)
