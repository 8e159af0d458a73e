"""Members: their votes, and that no vote of a labelled row knows the row's label."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from streamlearn.errors import BadParameter
from streamlearn.kernels import forest as kernels
from streamlearn.learners.muffled.logistic import fit_logistic
from streamlearn.learners.muffled.members import MEMBERS, checked_members, scaled_forest
from streamlearn.learners.muffled.model import Model
from streamlearn.learners.muffled.rectified import assemble, fit_pool
from streamlearn.learners.muffled.sample import N_FOLDS, Sample, derived_seed, folds_of, ordered
from streamlearn.learners.muffled.trees import Trees


def sample(seed=0, n=120, N=150, m=5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + N, m)) * [1.0, 10.0, 1e-3, 1.0, 1e6][:m] + [0.0, 5.0, 1.0, 0.0, 1e9][:m]
    y = np.where(rng.normal(size=n) + X[:n, 0] + (X[:n, 1] - 5) / 10 > 0.3, 1.0, -1.0)
    return Sample(X[:n], y, X[n:], 7)


def votes(s, member, X):
    trees, linear = ([member], []) if isinstance(member.part, Trees) else ([], [member])
    model = assemble(s, trees, linear, np.zeros(len(member.names)))
    return model.score(np.ascontiguousarray(X), np.empty(len(X)))


ALL = {**MEMBERS, "scaled": scaled_forest}


@pytest.mark.parametrize("name", ALL)
def test_votes_are_in_range_and_beat_chance_without_the_own_label(name):
    s = sample()
    member = ALL[name](s, 30)
    assert member.held_out.shape == (len(s.y), len(member.names))
    assert (np.abs(member.held_out) <= 1).all()
    assert (np.abs(votes(s, member, s.unlabelled)) <= 1).all()
    assert ((member.held_out * s.y[:, None]).mean(axis=0) > 0.1).all()


@pytest.mark.parametrize("name", ALL)
def test_labels_of_noise_are_not_recognised_again(name):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 3))
    s = Sample(X, np.where(rng.random(400) < 0.5, 1.0, -1.0), X[:10], 3)
    held_out = ALL[name](s, 40).held_out
    correlation = (held_out * s.y[:, None]).mean(axis=0) / np.sqrt(np.square(held_out).mean(axis=0))
    # Four standard errors of a mean of 400 products of variance 1.
    assert (np.abs(correlation) < 4 / 20).all()


@pytest.mark.parametrize("name", ALL)
def test_the_same_seed_gives_the_same_member_and_other_classes_the_opposite_one(name):
    s = sample(2)
    turned = Sample(s.labelled, -s.y, s.unlabelled, s.seed)
    a, b, c = ALL[name](s, 10), ALL[name](s, 10), ALL[name](turned, 10)
    assert a.held_out.tolist() == b.held_out.tolist()
    assert votes(s, c, s.unlabelled) == pytest.approx(-votes(s, a, s.unlabelled), abs=1e-6)


def test_folds_spread_each_class_evenly():
    y = np.where(np.arange(47) < 13, 1.0, -1.0)
    folds = folds_of(y, 5)
    for label in (1.0, -1.0):
        counts = np.bincount(folds[y == label], minlength=N_FOLDS)
        assert counts.max() - counts.min() <= 1


@pytest.mark.parametrize(("n", "m"), [(200, 5), (60, 4), (40, 90), (400, 300)])
@pytest.mark.parametrize("C", [0.3, 1.0, 3.0])
def test_logistic_regression_is_that_of_scikit_learn(n, m, C):
    rng = np.random.default_rng(n + m)
    z = rng.normal(size=(n, m))
    y = np.where(z[:, 0] + rng.normal(size=n) > 0.5, 1.0, -1.0)
    bias, w = fit_logistic(z, y, C)
    reference = LogisticRegression(C=C, tol=1e-10, max_iter=5000).fit(z, y)
    # L-BFGS, which both use for wide rows, stops at a gradient of about 1e-5.
    assert z @ w + bias == pytest.approx(reference.decision_function(z), abs=1e-6 if m < 256 and n > m else 5e-3)


def test_separable_and_duplicated_rows_keep_the_logistic_member_finite():
    z = np.repeat([[1.0, 1.0], [-1.0, -1.0]], 20, axis=0)
    bias, w = fit_logistic(z, np.repeat([1.0, -1.0], 20), 1e6)
    assert np.isfinite([bias, *w]).all()
    assert w[0] == pytest.approx(w[1])


def test_naive_bayes_is_that_of_scikit_learn():
    s = sample(3)
    member = MEMBERS["bayes"](s, 1)
    z_test = (s.unlabelled_values.astype(float) - s.affine[2]) / s.affine[3]
    expected = 2 * GaussianNB().fit(s.standardised, s.y).predict_proba(np.clip(z_test, -8, 8))[:, 1] - 1
    assert votes(s, member, s.unlabelled)[:, 0] == pytest.approx(expected, abs=1e-6)


def test_scaling_keeps_the_digits_of_features_far_from_zero():
    s = sample(4)
    far = s.labelled_values[:, 4]  # mean 1e9, sd 1e6: float32 alone would leave a few values
    assert len(set(far.tolist())) == len(far)
    assert np.corrcoef(far, s.labelled[:, 4])[0, 1] == pytest.approx(1.0, abs=1e-9)


def test_extreme_features_scale_to_finite_numbers():
    rng = np.random.default_rng(5)
    X = np.column_stack([rng.normal(size=60) * 1e300, rng.normal(size=60) * 1e-300, np.full(60, 7.0)])
    X[3, 0], X[4, 0] = 1.7e308, -1.7e308
    s = Sample(X, np.where(np.arange(60) % 2, 1.0, -1.0), X, 1)
    assert np.isfinite(s.affine).all()
    assert (s.affine[[kernels.SPREAD, kernels.SD_OF]] > 0).all()
    assert np.isfinite(s.standardised).all()


def test_columns_of_votes_are_those_of_the_members_in_order():
    s = sample(6)
    pool = fit_pool(s, [MEMBERS["logistic"], scaled_forest, MEMBERS["bayes"], MEMBERS["boosted"]], 10, 30.0, "square")
    model = pool.model(s)
    assert model.names[0] == "forest"
    assert model.names[-3:] == ("boosted", "logistic", "bayes")
    out = np.empty(len(s.unlabelled))
    assert model.score(s.unlabelled, out) == pytest.approx(pool.F)
    assert out == pytest.approx(pool.F @ pool.weights, abs=1e-12)
    forest = next(m for m in pool.trees if m.names[0] == "forest")
    assert isinstance(forest.part, Trees)
    assert pool.F[:, :4] == pytest.approx(forest.part.votes(ordered(s.unlabelled_values)))


def test_more_features_later_count_for_nothing():
    s = sample(7)
    model = fit_pool(s, list(MEMBERS.values()), 5, 30.0, "square").model(s)
    wide = model.widened(8)
    rows = np.hstack([s.unlabelled, np.random.default_rng(0).normal(size=(len(s.unlabelled), 3))])
    a, b = np.empty(len(rows)), np.empty(len(rows))
    model.score(s.unlabelled, a)
    wide.score(rows, b)
    assert a.tolist() == b.tolist()


def test_many_rows_are_scored_in_blocks_like_few():
    s = sample(8)
    model = fit_pool(s, list(MEMBERS.values()), 3, 30.0, "square").model(s)
    rows = np.tile(s.unlabelled, (30, 1))
    out, few = np.empty(len(rows)), np.empty(len(s.unlabelled))
    model.score(rows, out)
    model.score(s.unlabelled, few)
    assert out.tolist() == np.tile(few, 30).tolist()


def test_a_model_without_members_scores_nothing():
    out = np.ones(3)
    Model.of(np.ones((4, 2)), []).score(np.zeros((3, 2)), out)
    assert out.tolist() == [0.0] * 3


def test_seeds_of_different_uses_differ():
    assert len({derived_seed(3, k) for k in range(1000)} | {derived_seed(4, k) for k in range(1000)}) == 2000


@pytest.mark.parametrize("bad", ["nonsense", "forest, forest", "", 3, [], ["forest", "forest"], ["nonsense"]])
def test_unknown_members_are_refused(bad):
    with pytest.raises(BadParameter, match="HedgeMower1: members must be"):
        checked_members("HedgeMower1", bad)
    assert checked_members("HedgeMower1", " forest ,logistic") == ("forest", "logistic")
