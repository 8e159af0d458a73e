"""Robust estimates of many workers as one."""

import numpy as np
import pytest

from streamlearn import ORL, ORLPCA, GeometricMedian, ORLRegressor, geometric_median
from streamlearn.errors import BadParameter
from streamlearn.learners.merging import merge_learners
from streamlearn.learners.robust.merge_subspace import merge_subspaces
from tests.naive import merge as naive


def make_rows(n, p=5, seed=0, scale=1.0, offset=0.0):
    rng = np.random.default_rng(seed)
    theta = np.random.default_rng(99).normal(size=p)
    X = rng.normal(size=(n, p)) * scale + offset
    return X, X @ theta + 2.0 + rng.normal(size=n), theta


def regressors(k=20, n=600, bad=0, **params):
    out = []
    for part in range(k):
        X, y, _ = make_rows(n, seed=part)
        if part < bad:
            X, y = X * 5.0, -30.0 * y + 1000.0
        out.append(ORLRegressor(mode="batches", **{"batch_size": 200, **params}).learn_many(X, y))
    return out


def off(model):
    _, _, theta = make_rows(1)
    return np.linalg.norm(model.coef_ - theta) / np.linalg.norm(theta)


@pytest.mark.parametrize("window", [50, None])
def test_45_percent_of_poisoned_parts_move_the_median_by_less_than_the_clean_error_and_the_mean_by_far(window):
    clean = off(merge_learners(regressors(window=window)).model)
    poisoned = regressors(bad=9, window=window)
    assert off(merge_learners(poisoned, how="median").model) < 2.0 * clean
    assert off(merge_learners(poisoned, how="trimmed").model) < 2.0 * clean
    assert off(merge_learners(poisoned, how="mean").model) > 10.0 * clean


def test_the_merged_coefficients_are_the_geometric_median_in_the_usual_standardisation():
    parts = regressors(k=5, bad=1)
    merged = merge_learners(parts, how="median").model
    scales = np.median([part._body._scale for part in parts], axis=0)
    unit = np.median([part._body._unit[1] for part in parts])
    centre = np.median([part._body._centre for part in parts], axis=0)
    points = [np.append((p.intercept_ + p.coef_ @ centre) / unit, p.coef_ * scales / unit) for p in parts]
    points = [np.append(p[0] - np.median([part._body._unit[0] for part in parts]) / unit, p[1:]) for p in points]
    expected = geometric_median(points)
    assert merged.coef_ == pytest.approx(expected[1:] * unit / scales, rel=1e-6)
    best = naive.summed_distance(expected.tolist(), [p.tolist() for p in points], [1.0] * 5)
    assert best <= min(naive.summed_distance(p.tolist(), [q.tolist() for q in points], [1.0] * 5) for p in points)


def test_the_mean_of_coefficients_is_by_batches():
    few, many = regressors(k=1, n=200)[0], regressors(k=2, n=800)[1]
    merged = merge_learners([few, many], how="mean").model
    assert merged.coef_ == pytest.approx((few.coef_ + 4 * many.coef_) / 5, rel=1e-9)
    assert merged.intercept_ == pytest.approx((few.intercept_ + 4 * many.intercept_) / 5, rel=1e-9)


@pytest.mark.parametrize("window", [50, None])
def test_a_merged_regressor_goes_on_and_one_more_bad_batch_hardly_moves_it(window):
    merged = merge_learners(regressors(window=window)).model
    before = off(merged)
    X, y, _ = make_rows(200, seed=77)
    merged.learn_many(X, y)
    assert not merged.last_batch_[2]
    merged.learn_many(X * 3.0, -50.0 * y)
    assert merged.last_batch_[2]
    assert off(merged) < before + 0.05
    again = ORLRegressor.from_state(merged.state())
    assert again.learn_many(X, y).coef_.tobytes() == merged.learn_many(X, y).coef_.tobytes()


def test_rows_that_wait_for_a_batch_are_learned_behind_the_merge():
    parts = regressors(k=4, n=250)  # 50 of each wait, 200 together
    merged = merge_learners(parts).model
    assert merged._body.n_batches == 5
    assert len(merged._body._waiting) == 0
    short = [ORLRegressor(mode="batches", batch_size=200).learn_many(*make_rows(100, seed=s)[:2]) for s in range(4)]
    assert merge_learners(short).model._body.n_batches == 2


def test_estimates_come_behind_an_earlier_model_as_batches_do():
    parts = regressors(k=6)
    before = merge_learners(parts[:3]).model
    later = merge_learners(parts[3:], before=before).model
    assert later._body._held.arrays()["count"][0] == before._body._held.arrays()["count"][0] + 3
    assert off(later) < 0.1
    first = merge_learners(parts[:3], before=parts[0].clone()).model
    assert first.coef_ == pytest.approx(before.coef_, rel=1e-9)


def test_features_are_matched_by_name():
    X, y, theta = make_rows(400)
    names = list("abcde")
    one = ORLRegressor(mode="batches", batch_size=200)
    other = one.clone()
    one.begin(names)
    other.begin(names[::-1])
    one.learn_many([dict(zip(names, row, strict=True)) for row in X[:200].tolist()], y[:200])
    other.learn_many([dict(zip(names, row, strict=True)) for row in X[200:].tolist()], y[200:])
    merged = merge_learners([one, other], how="mean").model
    found = dict(zip(merged.feature_names, merged.coef_, strict=True))
    assert [found[name] for name in names] == pytest.approx(theta, abs=0.3)


def test_events_have_no_merge():
    with pytest.raises(BadParameter, match="mode must be 'batches'"):
        merge_learners([ORLRegressor(), ORLRegressor()])


@pytest.mark.parametrize("base", ["lts", "ols", "rotr", "mean"])
def test_orl_merges_to_the_geometric_median_of_its_estimates(base):
    parts = [ORL(base, batch_size=100).learn_many(*make_rows(300, seed=s)[:2]) for s in range(5)]
    merged = merge_learners(parts, how="median").model
    expected = geometric_median([part.estimate_ for part in parts])
    assert merged.estimate_ == pytest.approx(expected, rel=1e-6, abs=1e-9)
    assert merged.n_batches_ == 15


def test_a_stream_of_rows_merges_to_the_geometric_median_of_medians():
    rng = np.random.default_rng(5)
    for params in ({"window": 20}, {"window": None}, {"window": None, "averaged": True}):
        parts = [GeometricMedian(**params).learn_many(rng.normal(size=(60, 3)) + 1e6) for _ in range(4)]
        merged = merge_learners(parts, how="median").model
        expected = geometric_median([part.median_ for part in parts], weights=[60] * 4)
        assert merged.median_ == pytest.approx(expected, rel=1e-12)


def subspaces(k, bad, p=12, d=2, seed=0):
    rng = np.random.default_rng(seed)
    truth, wrong = np.linalg.qr(rng.normal(size=(p, d)))[0], np.linalg.qr(rng.normal(size=(p, d)))[0]
    out = [
        np.linalg.qr((wrong if i < bad else truth) + 0.17 * rng.normal(size=(p, d)) / np.sqrt(p))[0].T for i in range(k)
    ]
    return np.array(out), truth @ truth.T


@pytest.mark.parametrize("p", [4, 12, 300])
def test_subspaces_merge_as_their_projectors_do(p):
    U, _ = subspaces(7, 2, p=p)
    counts = np.arange(1.0, 8.0)
    flat = np.array([(u.T @ u).ravel() for u in U])
    centre = geometric_median(flat, weights=counts).reshape(p, p)
    vectors = np.linalg.eigh(centre)[1]
    expected = vectors[:, -2:] @ vectors[:, -2:].T
    merged, found = merge_subspaces(U, counts, "median", 0.5)
    assert merged.T @ merged == pytest.approx(expected, abs=1e-6)
    assert merged @ merged.T == pytest.approx(np.eye(2), abs=1e-10)
    assert not found.trusted[:2].any()
    average = np.tensordot(counts / counts.sum(), flat, 1).reshape(p, p)
    vectors = np.linalg.eigh(average)[1][:, -2:]
    mean = merge_subspaces(U, counts, "mean", 0.5)[0]
    assert mean.T @ mean == pytest.approx(vectors @ vectors.T, abs=1e-9)


def test_45_percent_of_parts_in_a_wrong_subspace_are_outvoted_and_the_merged_pca_goes_on():
    def rows(seed, axis):
        X = np.random.default_rng(seed).normal(size=(400, 6)) * 0.3
        X[:, axis] *= 30.0
        return X + 5.0

    parts = [ORLPCA(n_components=1, batch_size=200).learn_many(rows(s, 3 if s < 4 else 0)) for s in range(9)]
    merged = merge_learners(parts).model
    assert abs(merged.components_[0, 0]) > 0.99
    assert merged.mean_[1:] == pytest.approx(np.full(5, 5.0), abs=0.2)
    good = rows(50, 0)
    assert merged.outliers_many(good).mean() < 0.05
    merged.learn_many(good)
    assert abs(merged.components_[0, 0]) > 0.99
    again = ORLPCA.from_state(merged.state())
    assert again.components_ == pytest.approx(merged.components_, abs=1e-12)
    later = merge_learners([ORLPCA(n_components=1, batch_size=200).learn_many(good)], before=merged).model
    assert later.n_batches_ == merged.n_batches_ + 1


def test_learners_of_other_kinds_are_refused():
    from streamlearn import FSAUC

    with pytest.raises(BadParameter, match="learner must be one of"):
        merge_learners([FSAUC(), FSAUC()])
