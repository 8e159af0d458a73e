"""Wide AUCRO merged from parts: variances are those of all rows, sketches stay within their bound."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from streamlearn import AUCRO
from streamlearn.kernels import auc_means, auc_wide
from streamlearn.learners.auc.merge import merge_aucro
from streamlearn.learners.registry import from_state


def make_rows(n, m=8, seed=0, density=0.4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m)) * (rng.random((n, m)) < density) * np.arange(1, m + 1)
    y = X @ np.linspace(1.0, -0.5, m) + rng.normal(size=n) > 0
    return X, y


def model(**changes):
    return AUCRO(**{"clip": None, "covariance": "diagonal", **changes})


def parts_of(X, y, cuts, **changes):
    pieces = np.split(np.arange(len(y)), cuts)
    return [model(**changes).learn_many(X[piece], y[piece]) for piece in pieces if len(piece)]


@given(cuts=st.lists(st.integers(0, 150), max_size=5).map(sorted))
@settings(max_examples=15, deadline=None)
def test_counts_means_and_variances_are_those_of_all_rows_for_any_cut(cuts):
    X, y = make_rows(150)

    merged, _ = merge_aucro(parts_of(X, y, cuts), "mean", 0.5)
    records, X = merged._wide, X[:, list(merged.feature_names)]  # wide models number columns as they come
    for k in (0, 1):
        rows, at = X[y == bool(k)], k * auc_wide.CLASS_SIZE
        assert records.memory(0)[auc_wide.WEIGHT + k] == len(rows)
        assert records.own(0)[:8, at + auc_wide.OWN_MEAN] == pytest.approx(rows.mean(axis=0), rel=1e-10, abs=1e-12)
        assert records.own(0)[:8, at + auc_wide.OWN_VARIANCE] == pytest.approx(rows.var(axis=0), rel=1e-9, abs=1e-12)
    assert records.R[:8, auc_wide.TIMES] == pytest.approx((X != 0.0).sum(axis=0))
    assert records.R[:8, auc_wide.PEAK] == pytest.approx(np.abs(X).max(axis=0))


def test_the_merged_model_is_that_of_one_process_and_goes_on_like_it():
    X, y = make_rows(400)
    merged, _ = merge_aucro(parts_of(X[:300], y[:300], [100, 180]), "mean", 0.5)
    whole, _ = merge_aucro([model().learn_many(X[:300], y[:300])], "mean", 0.5)  # solved where it ended

    assert merged.score_many(X) / merged._wide.memory(0)[auc_wide.LLR] == pytest.approx(
        whole.score_many(X) / whole._wide.memory(0)[auc_wide.LLR], rel=1e-9, abs=1e-12
    )
    for one in (merged, whole):
        one.learn_many(X[300:], y[300:])
    weights = [one._wide.own(0)[:8, auc_wide.W] for one in (merged, whole)]
    assert weights[0] == pytest.approx(weights[1], rel=1e-8)


def test_features_that_one_part_never_saw_were_zeros_there():
    X, y = make_rows(200)
    X[:100, 5:] = 0.0
    names = [f"x{k}" for k in range(8)]
    events = [{n: v for n, v in zip(names, x, strict=True) if v != 0.0} for x in X.tolist()]
    parts = [model().learn_many(events[a : a + 100], y[a : a + 100]) for a in (0, 100)]

    merged, _ = merge_aucro(parts, "mean", 0.5)
    whole, _ = merge_aucro([model().learn_many(events, y)], "mean", 0.5)
    ours, theirs = (dict(zip(m.feature_names, m._wide.own(0)[:8, auc_wide.W], strict=True)) for m in (merged, whole))
    assert ours == pytest.approx({name: theirs[name] for name in ours}, rel=1e-9)


def test_auto_is_merged_where_some_parts_became_wide_and_others_did_not():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(120, 505)) * (rng.random((120, 505)) < 0.1)
    y = X[:, 0] + X[:, 1] + 0.2 * rng.normal(size=120) > 0
    names = [f"x{k:03d}" for k in range(505)]
    narrow = AUCRO(clip=None).learn_many([dict(zip(names[:20], x[:20], strict=True)) for x in X[:60].tolist()], y[:60])
    wide = AUCRO(clip=None).learn_many([dict(zip(names, x, strict=True)) for x in X[60:].tolist()], y[60:])
    assert not narrow.takes_entries
    assert wide.takes_entries

    merged, _ = merge_aucro([narrow, wide], "mean", 0.5)
    X[:60, 20:] = 0.0
    place = [names.index(name) for name in merged.feature_names]
    found = merged._wide.centres(0)[1]
    assert merged._wide.form == "means"
    assert found == pytest.approx(X[y].mean(axis=0)[place], rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("n_parts", [2, 5])
def test_merged_sketches_stay_within_the_bound_of_one(n_parts):
    k, m = 12, 30
    rng = np.random.default_rng(4)
    X = rng.normal(size=(600, 4)) @ rng.normal(size=(4, m)) + 0.3 * rng.normal(size=(600, m)) + 5.0
    y = rng.random(600) < 0.4
    parts = [
        AUCRO(clip=None, covariance="sketch", sketch_size=k).learn_many(X[i::n_parts], y[i::n_parts])
        for i in range(n_parts)
    ]

    records = merge_aucro(parts, "mean", 0.5)[0]._wide
    scale = X.std(axis=0)
    for label in (0, 1):
        Z = X[y == bool(label)] / scale
        truth = np.cov(Z.T, bias=True) * len(Z)
        found = records.scatter(0, label)[:m, :m] / np.outer(scale, scale) * len(Z)
        lost = np.linalg.eigvalsh(truth - found)
        # Nothing is made up; what is lost is at most the parts' share and the merge's, each |S|_F^2 / k.
        assert lost.min() > -1e-6 * lost.max()
        assert lost.max() < 2.0 * np.trace(truth) / k
    assert records.own(0)[:m, auc_wide.OWN_VARIANCE] == pytest.approx(X[~y].var(axis=0), rel=1e-9)


@pytest.mark.parametrize("form", ["diagonal", "sketch"])
def test_a_merged_model_ranks_as_one_process_and_is_saved(form):
    X, y = make_rows(1500, m=20)
    changes = {"covariance": form, "sketch_size": 8}
    merged, _ = merge_aucro(parts_of(X[:900], y[:900], [300, 600], **changes), "mean", 0.5)
    whole = model(**changes).learn_many(X[:900], y[:900])

    ours, theirs = (roc_auc_score(y[900:], one.score_many(X[900:])) for one in (merged, whole))
    assert ours > theirs - 0.01
    back = from_state(merged.state())
    assert np.array_equal(back.score_many(X), merged.score_many(X))
    for one in (back, merged):
        one.learn_many(X[900:], y[900:])
    assert np.array_equal(back.score_many(X), merged.score_many(X))
    assert np.corrcoef(merged.predict_proba_many(X[900:])[:, 1], y[900:])[0, 1] > 0.5


@pytest.mark.parametrize("form", ["diagonal", "means", "sketch"])
def test_turned_parts_are_outvoted(form):
    X, y = make_rows(1400, m=20)
    turned = np.where(np.arange(1400) < 600, ~y, y)
    parts = parts_of(X, turned, list(range(200, 1400, 200)), covariance=form, sketch_size=8)

    for how in ("median", "trimmed"):
        merged, found = merge_aucro(parts, how, 0.5)
        assert found.trusted.tolist() == [False] * 3 + [True] * 4
        assert np.corrcoef(merged.score_many(X), y)[0, 1] > 0.5


def test_earlier_rows_fade_by_the_later_ones():
    X, y = make_rows(300)
    before = model(half_life=50).learn_many(X[:200], y[:200])
    (part,) = parts_of(X[200:], y[200:], [], half_life=50)

    merged, _ = merge_aucro([part], "mean", 0.5, before)
    whole = model(half_life=50).learn_many(X, y)
    for slot in (auc_wide.WEIGHT, auc_wide.WEIGHT + 1):
        assert merged._wide.memory(0)[slot] == pytest.approx(whole._wide.memory(0)[slot], rel=0.02)


def test_steps_of_parts_are_averaged_by_what_each_saw_and_rank_as_one_process():
    X, y = make_rows(3000, m=20)
    merged, _ = merge_aucro(parts_of(X[:2000], y[:2000], [900, 1400], covariance="means"), "mean", 0.5)
    whole = model(covariance="means").learn_many(X[:2000], y[:2000])

    ours, theirs = (roc_auc_score(y[2000:], one.score_many(X[2000:])) for one in (merged, whole))
    assert ours > theirs - 0.005
    place = [whole.feature_names.index(name) for name in merged.feature_names]
    assert merged._wide.centres(0) == pytest.approx(whole._wide.centres(0)[:, place], rel=1e-9, abs=1e-12)
    assert merged._wide.memory(0)[auc_means.WEIGHT] == (~y[:2000]).sum()
    back = from_state(merged.state())
    for one in (back, merged):
        one.learn_many(X[2000:], y[2000:])
    assert np.array_equal(back.score_many(X), merged.score_many(X))


def test_a_feature_that_one_part_alone_saw_has_the_weight_it_has_there():
    X, y = make_rows(600)
    X[:300, 5:] = 0.0
    parts = parts_of(X, y, [300], covariance="means")

    merged, _ = merge_aucro(parts, "mean", 0.5)
    there = parts[1].clone().learn_many(X[300:], y[300:])
    auc_means.sweep(there._wide.F, there._wide.R)
    ours, theirs = (dict(zip(m.feature_names, m._wide.own(0)[:8, auc_means.W], strict=True)) for m in (merged, there))
    assert {j: ours[j] for j in (5, 6, 7)} == pytest.approx({j: theirs[j] for j in (5, 6, 7)}, rel=1e-9)
    assert 0.0 < ours[0] < 1.5 * theirs[0]


def test_one_model_merged_alone_ranks_as_before():
    X, y = make_rows(500)
    (part,) = parts_of(X, y, [], covariance="means")

    merged, _ = merge_aucro([part], "mean", 0.5)
    assert merged.score_many(X) == pytest.approx(part.score_many(X), rel=1e-7, abs=1e-9)
