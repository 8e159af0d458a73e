"""Streams whose features drift: ranks, warm refits, state; and refits that a worker process makes."""

import os
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from streamlearn import HedgeMower, HedgeMower1, Marvin, load
from streamlearn.errors import BadParameter, BadSnapshot
from streamlearn.learners.muffled.members import forest
from streamlearn.learners.muffled.ranks import NAMES
from streamlearn.learners.muffled.sample import Sample, Warm
from tests.contract import same

SMALL = {"n_trees": 6, "refit_every": 8, "refit_share": 0.3, "unlabelled_members": "off"}


def stream(seed=0, n=700, m=4, labelled=0.15, drift=8.0):
    """A sensor whose zero point and gain move: what counts is where a value stands among its neighbours in time."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m))
    y = (X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=n) > 0).astype(int)
    time = np.arange(n)[:, None] / n
    seen = rng.random(n) < labelled
    return (
        X * (1 + 2 * time) + drift * time * [1, -1, 1, -1][:m],
        y,
        [int(v) if s else None for v, s in zip(y, seen, strict=True)],
        seen,
    )


@pytest.mark.parametrize(("cls", "params"), [(HedgeMower1, {}), (HedgeMower, {}), (Marvin, {"n_stages": 1})])
def test_streams_under_drift_are_learned_and_restored_bit_for_bit(cls, params, tmp_path):
    X, _, labels, _ = stream(1, 300)
    params = {**SMALL, **params, "drift": True, "labelled_buffer": 40}
    one, many = cls(**params), cls(**params)
    expected = []
    for x, label in zip(X, labels, strict=True):
        expected.append(one.score_one(x))
        one.learn_one(x, label)
    assert one.n_refits >= 3
    assert one.vote_names[-3:] == NAMES
    scores = [many.test_then_learn_many(X[a:b], labels[a:b]) for a, b in ((0, 7), (7, 110), (110, 300))]
    assert np.concatenate(scores).tolist() == expected
    assert same(one.state(), many.state())
    cls(**params).learn_many(X[:170], labels[:170]).save(tmp_path / "model")
    assert same(load(tmp_path / "model").learn_many(X[170:], labels[170:]).state(), one.state())
    assert one.votes_many(X) @ one.vote_weights == pytest.approx(one.score_many(X), abs=1e-12)
    assert 0 <= one.error_bound() <= 0.5
    assert str(one.partition_one(X[0])).count("rank") == 3


def test_ranks_keep_what_a_moving_sensor_loses():
    gains = []
    for seed in range(3):
        X, y, labels, seen = stream(seed, 1500, labelled=0.06, drift=40.0)
        auc = []
        for drift in (True, False):
            model = HedgeMower1(n_trees=20, drift=drift, seed=seed, unlabelled_members="off", refit_share=0.3)
            scores = model.test_then_learn_many(X, labels)
            later = ~seen & (np.arange(len(y)) > 500)
            auc.append(roc_auc_score(y[later], scores[later]))
        gains.append(auc[0] - auc[1])
    assert min(gains) > 0.01


def test_a_feature_that_comes_later_had_rank_0():
    X, _, labels, _ = stream(2, 400)
    late = X.copy()
    late[:250, 2] = 0.0
    a, b = HedgeMower1(**SMALL, drift=True), HedgeMower1(**SMALL, drift=True)
    dicts = [{"abcd"[j]: v for j, v in enumerate(row) if v != 0.0} for row in late.tolist()]
    for x, label in zip(dicts, labels, strict=True):
        a.learn_one(x, label)
    b.learn_many(dicts, labels)
    assert same(a.state(), b.state())
    assert a.feature_names == ("a", "b", "d", "c")


@pytest.mark.parametrize("batch", [1, 50])
def test_where_no_feature_has_ranks_worth_learning_the_members_on_values_read_values_alone(batch):
    rng = np.random.default_rng(7)
    X = (rng.random((200, 5)) < 0.4).astype(float)
    labels = [int(x[0] + x[1] > 0) if i % 4 == 0 else None for i, x in enumerate(X)]
    with_ranks, without = (HedgeMower1(**SMALL, drift=drift, reservoir="sliding") for drift in (True, False))
    for model in (with_ranks, without):
        model.fit(X, labels)
    assert with_ranks.vote_names == without.vote_names
    for at in range(0, 200, batch):
        rows = X[at : at + batch]
        assert with_ranks.score_many(rows).tolist() == without.score_many(rows).tolist()
    assert with_ranks.votes_many(X).tolist() == without.votes_many(X).tolist()


def test_a_warm_refit_keeps_four_fifths_of_the_trees_and_they_do_not_know_new_labels():
    X, y, _, _ = stream(3, 200)
    y = np.where(y, 1.0, -1.0)
    first = Sample(X[:60], y[:60], X[60:], 1)
    cold = forest(first, 20)
    used = np.vstack([cold.used, np.zeros((20, 20), dtype=bool)])[-70:]
    warm = Warm(first.affine, {"forest": cold.part}, {"forest": used})
    second = Sample(X[10:80], y[10:80], X[60:], 2, warm=warm)
    member = forest(second, 20)
    assert second.affine[:2].tolist() == first.affine[:2].tolist()
    keys = second.unlabelled_keys
    old, new = cold.part.leaves(keys), member.part.leaves(keys)
    kept = [member.part.values[new[:, t], 0].tolist() == cold.part.values[old[:, t + 4], 0].tolist() for t in range(16)]
    assert all(kept)
    assert not member.used[-20:, :16].any()
    assert member.used[:50, :16].tolist() == cold.used[10:, 4:].tolist()
    assert member.used[:, 16:].any(axis=0).all()


def test_a_feature_that_no_old_tree_knows_is_scaled_afresh():
    X, y, _, _ = stream(4, 200)
    first = Sample(np.hstack([X[:60], np.zeros((60, 1))]), np.where(y[:60], 1.0, -1.0), X[:0, :0].reshape(0, 5), 1)
    cold = forest(first, 5)
    more = np.hstack([X[:80], 1e9 + X[:80, :1] * 1e6])
    warm = Warm(first.affine, {"forest": cold.part}, {"forest": np.vstack([cold.used, np.zeros((20, 5), dtype=bool)])})
    second = Sample(more, np.where(y[:80], 1.0, -1.0), more[:0], 2, warm=warm)
    assert second.affine[0, 4] == pytest.approx(1e9, rel=0.01)


@pytest.mark.parametrize("bad", [{"drift": 1}, {"drift": True, "estimator": "paper"}, {"refit_lag": -1}])
def test_bad_parameters_of_drift_and_lag_are_refused(bad):
    with pytest.raises(BadParameter, match=r"HedgeMower1: (drift|refit_lag) must be"):
        HedgeMower1(**bad)


def test_altered_rows_of_trees_are_refused():
    X, _, labels, _ = stream(5, 300)
    state = HedgeMower1(**SMALL, drift=True).learn_many(X, labels).state()
    used = state["array/model/used/forest"]
    for changed in (used[:, :-1], used[:-1], used.astype(np.int8)):
        with pytest.raises(BadSnapshot):
            HedgeMower1.from_state({**state, "array/model/used/forest": changed})


# Refits with a lag


def lagging(**params):
    return HedgeMower1(**{**SMALL, "refit_lag": 60, "members": "forest, logistic", **params})


@pytest.mark.parametrize("drift", [False, True])
def test_a_lagging_refit_comes_into_use_at_its_event_however_batches_are_cut(drift, tmp_path):
    X, _, labels, _ = stream(6, 500)
    one, many = lagging(drift=drift), lagging(drift=drift)
    expected, changes, before = [], [], None
    for k, (x, label) in enumerate(zip(X, labels, strict=True)):
        expected.append(one.score_one(x))
        one.learn_one(x, label)
        if one.vote_weights.tolist() != before:
            changes.append(k)
            before = one.vote_weights.tolist()
    assert len(changes) >= 3
    assert min(np.diff(changes[1:])) >= 60
    assert many.test_then_learn_many(X, labels).tolist() == expected
    assert same(one.state(), many.state())
    for k in (changes[1] - 30, changes[1], changes[2] - 1):
        lagging(drift=drift).learn_many(X[:k], labels[:k]).save(tmp_path / "model")
        assert same(load(tmp_path / "model").learn_many(X[k:], labels[k:]).state(), one.state())


def test_a_refit_on_demand_replaces_the_one_that_waits():
    X, _, labels, _ = stream(7, 200)
    model = lagging(refit_lag=10_000).learn_many(X, labels)
    assert not model.is_fitted
    state = model.state()
    state["array/counters"][8] = 0
    with pytest.raises(BadSnapshot, match="waiting model"):
        HedgeMower1.from_state(state)
    assert model.refit().is_fitted
    assert same(HedgeMower1.from_state(model.state()).state(), model.state())


def test_a_model_that_waited_while_features_came_is_widened():
    X, _, labels, _ = stream(8, 200)
    a, b = lagging(refit_lag=50), lagging(refit_lag=50)
    rows = [{f"f{j}": v for j, v in enumerate(row) if j < 3 or i > 100} for i, row in enumerate(X.tolist())]
    a.learn_many(rows, labels)
    for x, label in zip(rows, labels, strict=True):
        b.learn_one(x, label)
    assert a.n_features == 4
    assert same(a.state(), b.state())


@pytest.fixture(scope="module")
def worker():
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor:
        yield executor


def test_a_worker_process_makes_the_same_model(worker):
    X, _, labels, _ = stream(9, 500)
    members = ["forest", "bayes"]
    here, there = (HedgeMower1(**{**SMALL, "refit_lag": 60, "members": members, "drift": True}) for _ in range(2))
    there.use_worker(worker)
    for a in range(0, 500, 100):
        scores = [m.test_then_learn_many(X[a : a + 100], labels[a : a + 100]).tolist() for m in (here, there)]
        assert scores[0] == scores[1]
        there.restore(there.state())
    assert same(here.state(), there.state())
    assert there._executor is worker
    assert there.clone(n_trees=2)._executor is worker


class Dying(Executor):
    """Takes the work and dies over it, or is dead already."""

    def __init__(self, when):
        self.when = when

    def submit(self, fn, /, *args, **kwargs):
        if self.when == "before":
            raise BrokenProcessPool
        future = Future()
        future.set_exception(BrokenProcessPool())
        return future


@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_where_the_worker_is_lost_the_refit_is_made_here(when):
    X, _, labels, _ = stream(10, 300)
    plain, lost = lagging(), lagging().use_worker(Dying(when))
    assert plain.test_then_learn_many(X, labels).tolist() == lost.test_then_learn_many(X, labels).tolist()
    assert same(plain.state(), lost.state())


def test_where_the_executor_was_shut_down_refits_are_made_here():
    X, _, labels, _ = stream(10, 300)
    with ThreadPoolExecutor(1) as executor:
        left = lagging().use_worker(executor).learn_many(X[:150], labels[:150])
    left.learn_many(X[150:], labels[150:])
    assert same(left.state(), lagging().learn_many(X, labels).state())


def test_a_worker_that_is_killed_over_a_refit_changes_nothing():
    X, _, labels, _ = stream(11, 300)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor:
        lost = lagging().use_worker(executor)
        executor.submit(os._exit, 1)
        lost.learn_many(X, labels)
    assert same(lost.state(), lagging().learn_many(X, labels).state())
