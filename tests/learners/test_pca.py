"""ORLPCA: the right subspace where part of the stream is wrong."""

import inspect
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

from streamlearn import ORLPCA, rc_pca
from streamlearn.errors import BadParameter, BadShape, BadValue
from streamlearn.learners.robust.subspace import SubspaceFitter
from tests.contract import same
from tests.contract_estimator import CHECKS
from tests.naive import robust as naive

DATA = Path(__file__).parents[2].parent / "shared" / "data"
FORMS = (
    {"batch_size": 30},
    {"batch_size": 25, "base": "rc", "trim": 0.3, "window": 2},
    {"batch_size": 40, "n_components": 7},
    {"batch_size": 10, "window": None, "half_life": 300.0},
    {"batch_size": 10, "window": None, "averaged": True},
)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
@pytest.mark.parametrize("params", FORMS, ids=str)
def test_contract(params, check, tmp_path):
    def make(**changes):
        return ORLPCA(**{**params, **changes})

    check(make, tmp_path / "m") if "path" in inspect.signature(check).parameters else check(make)


def subspace_error(components, truth):
    return np.linalg.norm(components.T @ components - truth @ truth.T) / np.sqrt(truth.shape[1])


def cloud(seed, n, p=20, d=3, bad=0.0, kind="uniform", noise=0.3):
    """Return rows and the true basis float64[p, d]."""
    rng = np.random.default_rng(seed)
    truth, wrong_way = np.linalg.qr(rng.normal(size=(p, d)))[0], np.linalg.qr(rng.normal(size=(p, d)))[0]
    X = rng.normal(size=(n, d)) @ truth.T + noise * rng.normal(size=(n, p))
    wrong = rng.random(n) < bad
    if kind == "uniform":
        X[wrong] = rng.uniform(-10, 10, size=(wrong.sum(), p))
    else:
        X[wrong] = 5 * rng.normal(size=(wrong.sum(), d)) @ wrong_way.T + noise * rng.normal(size=(wrong.sum(), p))
    return X, truth


@pytest.mark.parametrize(("kind", "bad"), [("uniform", 0.0), ("uniform", 0.2), ("uniform", 0.45), ("coherent", 0.25)])
def test_the_truth_is_found_through_bad_rows(kind, bad):
    X, truth = cloud(1, 2000, bad=bad, kind=kind)
    good = ORLPCA(n_components=3, batch_size=500).learn_many(X).components_
    clean = cloud(1, 2000)[0]
    plain = [np.linalg.svd(Z - Z.mean(axis=0), full_matrices=False)[2][:3] for Z in (X, clean)]
    # Within a small factor of plain components of clean rows, of which there are fewer here.
    assert subspace_error(good, truth) < 2.5 * subspace_error(plain[1], truth)
    assert np.allclose(good @ good.T, np.eye(3), atol=1e-12)
    if bad >= 0.25:
        assert subspace_error(plain[0], truth) > 0.8


def test_a_third_in_one_wrong_subspace_is_told_where_noise_is_as_large_as_signal():
    X, truth = cloud(20, 2000, p=100, d=5, bad=0.3, kind="coherent", noise=1.0)
    found = SubspaceFitter().lts(X, 5).components
    oracle = np.linalg.svd(cloud(20, 1400, p=100, d=5, noise=1.0)[0], full_matrices=False)[2][:5]
    # Judged by the distances in all 100 columns, the wrong subspace is the nearer: an error of 1.4.
    assert subspace_error(found, truth) < 0.65
    assert subspace_error(oracle, cloud(20, 1400, p=100, d=5, noise=1.0)[1]) > 0.4


def test_batches_bad_as_a_whole_are_outvoted():
    X, truth = cloud(2, 4000)
    bad, _ = cloud(3, 1600, kind="coherent", bad=1.0)
    mixed = np.concatenate([bad, X])[
        np.random.default_rng(4).permutation(14).repeat(400) * 400 + np.tile(range(400), 14)
    ]
    model = ORLPCA(n_components=3, batch_size=400).learn_many(mixed)
    assert subspace_error(model.components_, truth) < 0.2
    pooled = np.linalg.svd(mixed - mixed.mean(axis=0), full_matrices=False)[2][:3]
    assert subspace_error(pooled, truth) > 0.8


@pytest.mark.parametrize("params", [{}, {"averaged": True}], ids=str)
def test_the_recursion_is_that_of_the_naive_filter_on_projectors(params):
    X, truth = cloud(15, 12000, p=6, d=2)
    model = ORLPCA(n_components=2, batch_size=200, window=None, **params).learn_many(X)
    order = np.argsort(model.feature_names)
    found = model.components_[:, order]
    # The subspaces of the batches, one by one, each by a learner of its own.
    one_by_one = [
        ORLPCA(n_components=2, batch_size=200).learn_many(B).components_[:, order] for B in X.reshape(60, 200, 6)
    ]
    projectors = np.array([(c.T @ c).ravel() for c in one_by_one])
    if not params:
        centre, scale = naive.scaled_proximal_filter(projectors, 15)
        values, vectors = np.linalg.eigh(centre.reshape(6, 6))
        expected = vectors[:, np.argsort(values)[::-1][:2]].T
        # The scale is a running quantile there, and exact here.
        assert np.linalg.norm(found.T @ found - expected.T @ expected) < 0.05 * scale
    assert subspace_error(found, truth) < 0.05
    assert np.allclose(found @ found.T, np.eye(2), atol=1e-12)


def test_a_recursion_with_half_life_follows_a_turn():
    before, _ = cloud(7, 4000)
    after, truth = cloud(8, 4000)
    X = np.concatenate([before, after])
    errors = {}
    for half_life in (500.0, None):
        model = ORLPCA(n_components=3, batch_size=100, window=None, half_life=half_life).learn_many(X)
        errors[half_life] = subspace_error(model.components_, truth)
    assert errors[500.0] < 0.2
    assert errors[None] > 0.8


@pytest.mark.parametrize("params", [{}, {"window": None}], ids=str)
def test_a_batch_of_another_subspace_is_suspicious(params):
    X, _ = cloud(16, 8000)
    other, _ = cloud(17, 200)
    model = ORLPCA(n_components=3, batch_size=200, **params)
    assert model.last_batch_ == (0.0, 0.0, False)
    distance, weight, suspicious = model.learn_many(X).last_batch_
    assert not suspicious
    assert 0.0 < weight < 0.2
    assert model.learn_many(other).last_batch_[2]
    assert model.last_batch_[0] > 5 * distance
    assert model.last_batch_[1] < weight


def test_the_published_form_is_that_of_the_naive_reference():
    X, _ = cloud(5, 200, p=6, d=2, bad=0.1)
    centred = X - np.median(X, axis=0)
    values, vectors = np.linalg.eigh(naive.trimmed_covariance(centred, 40))
    expected = vectors[:, np.argsort(values)[::-1][:2]].T
    actual = rc_pca(X, 2, 0.2)
    assert np.allclose(actual.T @ actual, expected.T @ expected, atol=1e-10)
    one_batch = ORLPCA(n_components=2, batch_size=200, base="rc", trim=0.2).learn_many(X).components_
    order = np.argsort(ORLPCA(n_components=2, batch_size=200).learn_many(X).feature_names)
    assert np.allclose(one_batch[:, order].T @ one_batch[:, order], actual.T @ actual, atol=1e-10)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_scale_and_shift_do_not_matter(scale):
    X, _ = cloud(6, 600, bad=0.2)
    base = ORLPCA(n_components=3, batch_size=300).learn_many(X)
    moved = ORLPCA(n_components=3, batch_size=300).learn_many((X + 3.0) * scale)
    assert np.allclose(base.components_.T @ base.components_, moved.components_.T @ moved.components_, atol=1e-7)
    assert np.allclose(moved.mean_ / scale - 3.0, base.mean_, atol=1e-7)


def test_components_are_ordered_by_variance():
    rng = np.random.default_rng(12)
    X = rng.normal(size=(2000, 5)) * [1.0, 9.0, 0.1, 3.0, 0.1]
    X[::10] = 100.0
    model = ORLPCA(n_components=3, batch_size=200).learn_many(X)
    assert np.abs(model.components_[:, [1, 3, 0]]) == pytest.approx(np.eye(3), abs=0.05)


def test_the_window_follows_a_turn():
    before, _ = cloud(7, 2000)
    after, truth = cloud(8, 1200)
    model = ORLPCA(n_components=3, batch_size=200, window=6).learn_many(before).learn_many(after)
    assert subspace_error(model.components_, truth) < 0.15


def test_fewer_rows_than_columns():
    X, truth = cloud(9, 30, p=200, d=2, noise=0.02)
    X[:6] += 5.0
    model = ORLPCA(n_components=2, batch_size=30).learn_many(X)
    assert subspace_error(model.components_, truth) < 0.3
    assert model.outliers_many(X)[:6].all()


def test_projections_come_in_the_kind_that_went_in():
    X, _ = cloud(10, 300, p=4, d=2)
    frame = pd.DataFrame(X, columns=list("dabc"), index=[f"r{i}" for i in range(300)])
    model = ORLPCA(batch_size=100).learn_many(frame)
    many = model.transform_many(frame)
    assert list(many.columns) == ["component_0", "component_1"]
    assert many.index.equals(frame.index)
    one = model.transform_one(frame.iloc[7].to_dict())
    assert one == {"component_0": many.iloc[7, 0], "component_1": many.iloc[7, 1]}
    order = [frame.columns.get_loc(name) for name in model.feature_names]
    assert np.allclose(many, (X[:, order] - model.mean_) @ model.components_.T, atol=1e-12)
    assert isinstance(model.transform_many(pl.DataFrame(frame)), pl.DataFrame)
    by_position = ORLPCA(batch_size=100).learn_many(X)
    assert by_position.transform_one(X[3]).tolist() == by_position.transform_many(X)[3].tolist()
    rebuilt = by_position.transform_many(X) @ by_position.components_ + by_position.mean_
    columns = list(by_position.feature_names)
    expected = np.linalg.norm(X[:, columns] - rebuilt, axis=1)
    assert np.allclose(by_position.clone().learn_many(X).test_then_learn_many(X[:50]), expected[:50])


def test_transforming_changes_nothing_and_outliers_are_told():
    X, _ = cloud(11, 1000, bad=0.1)
    model = ORLPCA(n_components=3, batch_size=250).learn_many(X)
    before = model.state()
    told = model.outliers_many(X)
    along, off = model.distances_many(X)
    assert same(before, model.state())
    wild = np.abs(X).max(axis=1) > 5
    assert told[wild].all()
    assert told[~wild].mean() < 0.03
    assert off[wild].min() > off[~wild].max()
    assert 1.0 < np.median(along[~wild]) < 2.0  # three standard normal scores
    with pytest.raises(BadParameter, match="batch_size rows must be learned"):
        ORLPCA().distances_many(X)


@pytest.mark.skipif(not (DATA / "octane_nir.csv.gz").exists(), reason="the spectra are not shipped with the package")
@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_the_six_octane_samples_with_alcohol_are_the_six_flagged(d):
    frame = pd.read_csv(DATA / "octane_nir.csv.gz")
    X = frame.drop(columns=["label", "octane_number"])
    model = ORLPCA(n_components=d, batch_size=len(X)).learn_many(X)
    assert (model.outliers_many(X) == (frame["label"] == 1)).all()


@pytest.mark.parametrize(
    "params", [{"missing": "pairwise", "base": "rc", "trim": 0.1}, {"missing": "complete"}], ids=str
)
def test_missing_cells_by_policy(params, tmp_path):
    X, truth = cloud(13, 3000, p=8, d=2, bad=0.03)
    holes = X.copy()
    holes[np.random.default_rng(14).random(X.shape) < 0.1] = np.nan
    make = {"n_components": 2, "batch_size": 300, **params}
    model = ORLPCA(**make).learn_many(holes)
    assert subspace_error(model.components_, truth) < 0.25
    off = model.clone().learn_many(holes).test_then_learn_many(holes)
    assert np.isfinite(off).all()
    one = ORLPCA(**make)
    for row in holes[:700]:
        one.learn_one(dict(enumerate(row)))
    for form in (
        holes[:700],
        pd.DataFrame(holes[:700], columns=range(8)),
        [dict(enumerate(row)) for row in holes[:700]],
    ):
        many = ORLPCA(**make).learn_many(form)
        assert {k: str(v) for k, v in many.state().items()} == {k: str(v) for k, v in one.state().items()}
    one.save(tmp_path / "m")
    again = ORLPCA.from_state(one.state()).learn_many(holes[700:])
    assert again.components_.tolist() == one.learn_many(holes[700:]).components_.tolist()
    # A row without two of its cells is projected nearly as with them.
    whole = X[np.abs(X).max(axis=1) < 4][0]
    part = whole.copy()
    part[[1, 5]] = np.nan
    assert np.allclose(model.transform_one(part), model.transform_one(whole), atol=0.6)
    with pytest.raises(BadValue, match="inf"):
        model.learn_one(np.where(np.arange(8) == 3, np.inf, whole))
    with pytest.raises(BadValue, match="nan"):
        ORLPCA().learn_many(holes)


@pytest.mark.parametrize(
    ("params", "rule"),
    [
        ({"n_components": 0}, "n_components must be a whole number >= 1"),
        ({"base": "pca"}, "base must be one of"),
        ({"trim": -0.1}, "trim must be a number in"),
        ({"batch_size": 1}, "batch_size must be a whole number >= 2"),
        ({"missing": "zero"}, "missing must be one of"),
        ({"missing": "pairwise"}, "base must be 'rc' with missing"),
        ({"window": 0}, "window must be a whole number >= 1"),
        ({"averaged": True}, "window must be None with averaged"),
        ({"half_life": -1.0}, "half_life must be a number > 0"),
    ],
)
def test_bad_parameters_are_named(params, rule):
    with pytest.raises(BadParameter, match="ORLPCA: " + rule):
        ORLPCA(**params)


def test_bad_arrays_are_refused():
    with pytest.raises(BadShape):
        rc_pca(np.zeros((0, 3)), 1, 0.1)
    with pytest.raises(BadValue):
        rc_pca([[np.nan, 1.0]], 1, 0.1)
    with pytest.raises(BadParameter, match="n_components must be at most 2"):
        rc_pca([[0.0, 1.0]], 3, 0.1)
