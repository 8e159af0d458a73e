"""HedgeMower on streams with few labels: refits, reservoirs, state, what it gains and certifies."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score

from streamlearn import HedgeMower, HedgeMower1, load
from streamlearn.errors import BadParameter, BadSnapshot
from tests.contract import same

SMALL = {"n_trees": 8, "refit_share": 0.5}


def stream(seed=0, n=400, m=5, labelled=0.25):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m))
    X[rng.random((n, m)) < 0.2] = 0.0
    y = (X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=n) > 0).astype(int)
    seen = rng.random(n) < labelled
    return X, y, [int(v) if s else None for v, s in zip(y, seen, strict=True)]


FORMS = [
    (HedgeMower1, {}),
    (HedgeMower1, {"reservoir": "biased", "unlabelled_buffer": 50, "labelled_buffer": 30}),
    (HedgeMower1, {"reservoir": "sliding", "unlabelled_buffer": 20, "potential": "zero-one"}),
    (HedgeMower, {"members": "forest, bayes"}),
    (HedgeMower1, {"estimator": "paper", "n_trees": 5}),
    (HedgeMower, {"estimator": "paper", "n_trees": 5}),
]


def test_rows_that_are_all_alike_are_learned_without_a_warning():
    X, _, labels = stream(2, 60, labelled=0.5)
    model = HedgeMower1(**SMALL, unlabelled_members="on").learn_many(np.ones((60, 5)), labels)
    assert np.isfinite(model.learn_many(X, labels).score_many(X)).all()


@pytest.mark.parametrize(("cls", "params"), FORMS)
def test_batches_with_unlabelled_rows_equal_single_events_bit_for_bit(cls, params, tmp_path):
    X, _, labels = stream(1)
    params = {**SMALL, **params}
    one = cls(**params)
    expected = []
    for x, label in zip(X, labels, strict=True):
        expected.append(one.score_one(x))
        one.learn_one(x, label)
    assert one.n_refits > 2
    many, tested = cls(**params), cls(**params)
    for part in np.split(np.arange(len(X)), [1, 7, 8, 150, 333]):
        many.learn_many(X[part], [labels[i] for i in part])
    masked = np.ma.masked_array([label or 0 for label in labels], [label is None for label in labels])
    scores = tested.test_then_learn_many(X, masked)
    assert scores.tolist() == expected
    assert same(one.state(), many.state())
    assert same(one.state(), tested.state())
    for k in (0, 3, 120):
        first = cls(**params).learn_many(X[:k], labels[:k])
        first.save(tmp_path / "model")
        assert same(load(tmp_path / "model").learn_many(X[k:], labels[k:]).state(), one.state())


def test_unlabelled_events_fill_the_reservoir_and_change_the_next_model_alone():
    X, _, labels = stream(2)
    a, b = (HedgeMower1(**SMALL).learn_many(X[:200], labels[:200]) for _ in range(2))
    b.learn_many(X[200:300])
    assert not same(a.state(), b.state())
    assert a.score_many(X).tolist() == b.score_many(X).tolist()
    assert a.refit().score_many(X).tolist() != b.refit().score_many(X).tolist()


def test_before_two_labels_of_either_class_every_event_gets_the_prior():
    X, _, _ = stream(3)
    model = HedgeMower1(**SMALL, refit_every=1)
    model.learn_many(X[:20], [1] * 15 + [None] * 5)
    assert not model.is_fitted
    assert model.score_one(X[0]) == 15 / 16
    model.learn_one(X[20], 0)
    assert model.score_many(X[:3]).tolist() == [14 / 17] * 3
    model.learn_one(X[21], 0)
    assert model.is_fitted
    assert len(set(model.score_many(X).tolist())) > 100


def test_refits_come_after_enough_new_labels():
    X, y, _ = stream(4, n=130)
    model = HedgeMower1(n_trees=3, members="forest", refit_every=10, refit_share=0.25)
    refits = []
    for k, (x, label) in enumerate(zip(X, y, strict=True)):
        before = model.n_refits
        model.learn_one(x, int(label))
        if model.n_refits > before:
            refits.append(k + 1)
    expected, last = [], 0
    for k in range(1, 131):
        if k - last >= max(10, 0.25 * k):
            expected.append(k)
            last = k
    assert refits == expected


def test_one_call_learns_a_batch_with_one_refit():
    X, y, labels = stream(5)
    model = HedgeMower1(**SMALL).fit(X, labels)
    assert model.n_refits == 1
    assert roc_auc_score(y, model.score_many(X)) > 0.8
    assert HedgeMower1(**SMALL).fit(X[:5]).n_refits == 0
    model.learn_many(X, labels)
    assert model.n_refits > 1  # the schedule is back


def test_the_pool_ranks_better_than_a_random_forest_of_the_same_labels():
    gains = []
    for seed in range(3):
        X, y, _ = stream(10 + seed, n=2600, m=8)
        labels = [int(v) for v in y[:100]] + [None] * 1000
        score = HedgeMower1(seed=seed).fit(X[:1100], labels).score_many(X[1100:])
        forest = RandomForestClassifier(100, random_state=seed).fit(X[:100], y[:100])
        gains.append(roc_auc_score(y[1100:], score) - roc_auc_score(y[1100:], forest.predict_proba(X[1100:])[:, 1]))
    assert np.mean(gains) > 0


@pytest.mark.parametrize(("cls", "params"), [(HedgeMower1, {}), (HedgeMower1, {"estimator": "paper", "n_trees": 30})])
def test_the_certificate_holds_and_shrinks_with_the_labels(cls, params):
    X, y, _ = stream(20, n=3000)
    bounds = []
    for n in (60, 900):
        labels = [int(v) for v in y[:n]] + [None] * 1000
        model = cls(**params).fit(X[: n + 1000], labels)
        g = np.clip(model.score_many(X[2000:]), -1, 1)
        error = np.mean((1 - g * (2 * y[2000:] - 1)) / 2)
        bounds.append(model.error_bound())
        if params == {}:
            assert error <= bounds[-1]
    assert bounds[1] <= bounds[0] <= 0.5
    assert cls(**params).error_bound() == 0.5


def test_votes_times_weights_are_the_score():
    X, _, labels = stream(6)
    model = HedgeMower(**SMALL).fit(X, labels)
    assert model.vote_names[:4] == ("forest", "forest, 3 labels", "forest, 10 labels", "forest, 30 labels")
    assert model.votes_many(X) @ model.vote_weights == pytest.approx(model.score_many(X), abs=1e-12)
    assert HedgeMower().votes_many(X).shape == (len(X), 0)
    assert HedgeMower().vote_weights.shape == (0,)


def test_probabilities_are_those_of_the_clipped_score():
    X, _, labels = stream(7)
    model = HedgeMower1(**SMALL).fit(X, labels)
    expected = (1 + np.clip(model.score_many(X), -1, 1)) / 2
    assert model.predict_proba_many(X)[:, 1].tolist() == expected.tolist()


def test_saved_models_that_lead_kernels_astray_are_refused():
    X, _, labels = stream(8)
    state = HedgeMower1(**SMALL).fit(X, labels).state()
    assert same(HedgeMower1.from_state(state).state(), state)
    for name, change in (
        ("nodes", lambda a: np.where(a == a[:, :1], 10**6, a)),
        ("nodes", lambda a: a[:-1]),
        ("roots", lambda a: a[::-1].copy()),
        ("values", lambda a: a[1:]),
        ("groups", lambda a: a + 1),
        ("linear", lambda a: a[:, 1:]),
        ("weights", lambda a: a[1:]),
        ("evidence", lambda a: a[1:]),
        ("affine", lambda a: a[:3]),
        ("offsets", lambda a: a.astype(np.float32)),
    ):
        key = f"array/model/{name}"
        with pytest.raises(BadSnapshot, match="HedgeMower1"):
            HedgeMower1.from_state({**state, key: change(state[key])})
    for name, value in (("counters", state["array/counters"] - 1), ("codes", 1 - state["array/codes"])):
        with pytest.raises(BadSnapshot, match="HedgeMower1"):
            HedgeMower1.from_state({**state, f"array/{name}": value})
    with pytest.raises(BadSnapshot, match="HedgeMower1"):
        HedgeMower1.from_state({k: v for k, v in state.items() if k != "array/model/nodes"})
    with pytest.raises(BadSnapshot, match="HedgeMower1"):
        HedgeMower1.from_state({**state, "number/model": {"votes": [1], "layers": []}})


def test_sliding_buffers_follow_a_change_of_the_labels():
    rng = np.random.default_rng(9)
    X = rng.normal(size=(900, 3))
    y = np.where(np.arange(900) < 600, X[:, 0] > 0, X[:, 0] < 0).astype(int)
    model = HedgeMower1(n_trees=10, labelled_buffer=100, reservoir="sliding", unlabelled_buffer=100)
    model.learn_many(X, y)
    assert roc_auc_score(y[600:], model.score_many(X[600:])) > 0.9


def test_labels_that_run_out_of_one_class_keep_the_last_model():
    X, y, _ = stream(11)
    model = HedgeMower1(**SMALL, labelled_buffer=30).learn_many(X[:100], y[:100])
    n_refits = model.n_refits
    model.learn_many(X[100:200], [1] * 100)
    assert model.is_fitted
    assert model.n_refits <= n_refits + 3
    assert np.isfinite(model.score_many(X)).all()


@pytest.mark.parametrize(
    "params",
    [
        {"estimator": "nonsense"},
        {"reservoir": "nonsense"},
        {"potential": "nonsense"},
        {"members": "nonsense"},
        {"n_trees": 0},
        {"labelled_buffer": 3},
        {"refit_every": 1.5},
        {"refit_share": 1.0},
        {"tau": -1.0},
        {"failure_prob": 1.0},
        {"seed": -1},
        {"reject_cost": 0.6},
        {"max_features": 0},
    ],
)
def test_wrong_parameters_are_refused(params):
    with pytest.raises(BadParameter, match=f"HedgeMower: {next(iter(params))} must be"):
        HedgeMower(**params)


def test_learning_imports_neither_sklearn_nor_scipy():
    code = (
        "import numpy as np, sys, streamlearn\n"
        "X = np.random.default_rng(0).normal(size=(60, 3))\n"
        "streamlearn.HedgeMower(n_trees=3).fit(X, X[:, 0] > 0).score_one(X[0])\n"
        "print(' '.join(sys.modules))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"sklearn", "scipy.optimize", "scipy.sparse", "river", "polars", "pandas"} & set(loaded)
