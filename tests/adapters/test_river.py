"""The learners as River estimators: none forgotten, River's own checks, and the bare learner's numbers bit for bit."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from river import base, checks
from streamlearn.adapters import river as adapted
from streamlearn.adapters.river_base import Adapted

from streamlearn.errors import BadParameter, BadValue
from streamlearn.learners.registry import MODULES, learner_class, load, make_learner
from tests.adapters.river_streams import (
    CLASSIFIERS,
    REGRESSORS,
    SMALL,
    TRANSFORMERS,
    events,
    make,
    targets,
)
from tests.contract import same

EVERY = sorted(MODULES)


def learn(model, n=200):
    if isinstance(model, base.Classifier):
        for x, y in events(n):
            model.learn_one(x, y)
    elif isinstance(model, base.Regressor):
        for x, y in targets(n):
            model.learn_one(x, y)
    else:
        for x, _ in events(n):
            model.learn_one(x)
    return model


def answers(model, n=30):
    ask = model.transform_one if isinstance(model, base.Transformer) else model.predict_one
    return [ask(x) for x, _ in events(n, seed=1)]


def test_every_learner_has_its_estimator_under_its_own_name():
    found = {
        name: cls
        for name, cls in vars(adapted).items()
        if isinstance(cls, type) and issubclass(cls, Adapted) and cls.__module__ == adapted.__name__
    }

    assert set(found) == set(MODULES)
    assert set(found) <= set(adapted.__all__)
    for name, cls in found.items():
        assert cls.__name__ == name
        assert type(cls().learner) is learner_class(name)
        assert "Parameters\n" in cls.__doc__
        assert ">>>" not in cls.__doc__


def test_the_base_class_is_the_one_of_the_kind():
    for name in CLASSIFIERS:
        assert isinstance(make(name), base.MiniBatchClassifier)
    for name in REGRESSORS:
        assert isinstance(make(name), base.MiniBatchRegressor)
    for name in TRANSFORMERS:
        assert isinstance(make(name), base.MiniBatchTransformer)


@pytest.mark.parametrize("name", EVERY)
def test_rivers_own_checks_pass_and_none_is_left_out(name):
    model = make(name)

    assert model._unit_test_skips() == set()
    checks.check_estimator(model)


@pytest.mark.parametrize("name", EVERY)
def test_the_state_is_that_of_the_bare_learner(name):
    bare = make_learner(name, SMALL.get(name, {}))

    assert same(learn(make(name)).learner.state(), learn_bare(bare).state())


def learn_bare(learner):
    for x, y in targets(200) if learner.name in REGRESSORS else events(200):
        learner.learn_one(x, y)
    return learner


@pytest.mark.parametrize("name", EVERY)
def test_parameters_have_the_learners_names_order_and_defaults(name):
    cls = getattr(adapted, name)

    assert cls()._get_params() == learner_class(name)().params()
    with pytest.raises(TypeError, match="nonsense"):
        cls(nonsense=1)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("name", EVERY)
def test_a_frame_is_learned_as_its_rows_are(name, kind):
    stream = targets(200) if name in REGRESSORS else events(200)
    X, y = kind([x for x, _ in stream]), [label for _, label in stream]
    model = make(name)
    for part in (slice(0, 50), slice(50, 51), slice(51, 200)):
        rows = X[part]
        if name in TRANSFORMERS:
            model.learn_many(rows)
        else:
            model.learn_many(rows, pd.Series(y[part], index=rows.index) if kind is pd.DataFrame else pl.Series(y[part]))

    assert same(model.learner.state(), learn(make(name)).learner.state())


@pytest.mark.parametrize("name", EVERY)
def test_what_comes_of_a_frame_has_its_index_and_its_kind(name):
    model = learn(make(name))
    rows = [x for x, _ in events(5, seed=1)]
    frame = pd.DataFrame(rows, index=[7, 3, 5, 11, 2])
    verbs = {
        "predict_many": model.predict_one if name not in TRANSFORMERS else None,
        "predict_proba_many": model.predict_proba_one if name in CLASSIFIERS else None,
        "score_many": model.score_one if name in CLASSIFIERS else None,
        "transform_many": model.transform_one if name in TRANSFORMERS else None,
    }
    for verb, one in ((verb, one) for verb, one in verbs.items() if one is not None):
        many = getattr(model, verb)(frame)
        assert many.index.tolist() == frame.index.tolist()
        listed = many.to_dict("records") if isinstance(many, pd.DataFrame) else many.tolist()
        assert listed == [one(x) for x in rows]
        in_polars = getattr(model, verb)(pl.DataFrame(rows))
        assert isinstance(in_polars, pl.DataFrame if isinstance(many, pd.DataFrame) else pl.Series)
        assert in_polars.to_numpy().tolist() == many.to_numpy().tolist()


def pickled(model):
    return pickle.loads(pickle.dumps(model))  # noqa: S301 - made here


@pytest.mark.parametrize("again", [copy.deepcopy, pickled])
@pytest.mark.parametrize("name", EVERY)
def test_a_copy_goes_on_as_the_original(name, again):
    model = learn(make(name))

    copied = again(model)

    assert answers(copied) == answers(model)
    assert same(learn(copied).learner.state(), learn(model).learner.state())


@pytest.mark.parametrize("name", EVERY)
def test_a_clone_is_untrained_and_takes_other_parameters(name):
    model = learn(make(name))

    assert same(model.clone().learner.state(), make(name).learner.state())
    assert model.clone({"max_features": 77}).max_features == 77
    assert model.max_features != 77
    assert str(model) == name
    assert "max_features" in repr(model)


NEW = {"reject_cost": 0.3, "learning_rate": 0.011, "regularization": 0.7, "l2": 0.3, "C": 0.01}
NEW |= {"refit_every": 1000, "refit_share": 0.2}
MUTABLE = [(name, key) for name in EVERY for key in sorted(make(name)._mutable_attributes)]
NEEDS = {("AUCRO", "learning_rate"): {"solver": "sgd"}}
"""Without which the parameter means nothing."""


@pytest.mark.parametrize(("name", "key"), MUTABLE)
def test_what_is_mutated_counts_from_then_on_and_nothing_learned_is_lost(name, key):
    params = NEEDS.get((name, key), {})
    model, other = learn(make(name, **params), 90), learn(make(name, **params), 90)
    rows = [x for x, _ in events(200, seed=5)]

    model.mutate({key: NEW[key]})

    assert getattr(model, key) == NEW[key]
    assert [model.score_one(x) for x in rows] == [other.score_one(x) for x in rows]
    if key == "reject_cost":
        assert [model.predict_one(x) for x in rows] != [other.predict_one(x) for x in rows]
    else:
        learn(model), learn(other)
        assert [model.score_one(x) for x in rows] != [other.score_one(x) for x in rows]


def test_what_cannot_be_mutated_is_refused_and_so_is_a_wrong_value():
    model = learn(make("AUCRO"))
    before = model.learner.state()

    with pytest.raises(ValueError, match="'scale' is not a mutable attribute of AUCRO"):
        model.mutate({"scale": "none"})
    with pytest.raises(AttributeError, match="scale cannot be changed in mid-stream"):
        model.scale = "none"
    with pytest.raises(BadParameter, match="reject_cost must be"):
        model.mutate({"reject_cost": 0.9})
    assert same(before, model.learner.state())


@pytest.mark.parametrize("name", [name for name in CLASSIFIERS if name != "OPAUC"])
def test_an_abstention_is_none_one_by_one_and_in_frames(name):
    model = learn(make(name, reject_cost=0.25), 400)
    rows = [x for x, _ in events(200, seed=2)]

    one = [model.predict_one(x) for x in rows]

    assert set(one) == {None, True, False}
    assert model.predict_many(pd.DataFrame(rows)).tolist() == one
    assert model.predict_many(pl.DataFrame(rows)).to_list() == one


@pytest.mark.parametrize("labels", [("no", "yes"), (0, 1), (-1.0, 1.0), (np.False_, np.True_)])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_labels_come_back_as_they_were(name, labels):
    model = make(name)
    for x, y in events(120):
        model.learn_one(x, labels[y])
    x, _ = events(1, seed=3)[0]

    assert list(model.predict_proba_one(x)) == list(labels)
    assert type(model.predict_one(x)) is type(labels[0])


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_before_both_labels_were_seen_the_other_bool_is_known(name):
    x, frame = {"f0": 1.0}, pd.DataFrame({"f0": [1.0, -1.0]}, index=[4, 2])
    model = make(name)
    assert model.predict_proba_one(x) == {False: 0.5, True: 0.5}
    assert model.predict_proba_many(frame).to_dict("index") == {4: {False: 0.5, True: 0.5}, 2: {False: 0.5, True: 0.5}}

    model.learn_one(x, True)
    early = model.predict_proba_one(x)
    assert list(early) == [False, True]
    assert early[True] > 0.5
    assert model.predict_proba_many(frame).loc[4].to_dict() == early

    turned = make(name, positive=False)
    turned.learn_one(x, True)
    assert turned.predict_proba_one(x) == pytest.approx({True: 1 - 0.25, False: 0.25}, abs=0.2)
    worded = make(name)
    worded.learn_one(x, "yes")
    assert worded.predict_proba_one(x) == {"yes": 1.0}


@pytest.mark.parametrize("name", [name for name in CLASSIFIERS if name in SMALL])
def test_a_semi_supervised_learner_learns_from_events_without_label(name):
    model, without = make(name, refit_every=1), make(name, refit_every=1)
    for k, (x, y) in enumerate(events(300)):
        model.learn_one(x, y if k % 3 == 0 else None)
        if k % 3 == 0:
            without.learn_one(x, y)

    assert not same(model.learner.state(), without.learner.state())


@pytest.mark.parametrize("name", sorted(set(CLASSIFIERS) - set(SMALL)) + REGRESSORS)
def test_a_supervised_learner_is_left_alone_by_events_without_label(name):
    model = learn(make(name))
    before = model.learner.state()

    for x, _ in events(5, seed=4):
        model.learn_one(x, None)
    model.learn_many(pd.DataFrame([x for x, _ in events(5, seed=4)]))

    assert same(before, model.learner.state())


def test_transformers_tell_the_distance_or_the_projection():
    median, pca = learn(make("GeometricMedian")), learn(make("ORLPCA", n_components=2, batch_size=50))
    x = dict(events(1)[0][0])
    far = dict.fromkeys(x, 1000000.0)

    assert list(median.transform_one(x)) == ["distance"]
    assert median.score_one(far) > 1e5 > median.score_one(x) == median.transform_one(x)["distance"]
    assert list(pca.transform_one(x)) == ["component_0", "component_1"]
    assert pca.score_one(far) > pca.score_one(x)


@pytest.mark.parametrize("name", EVERY)
def test_a_saved_learner_comes_back_as_an_estimator(name, tmp_path):
    model = learn(make(name))
    model.learner.save(tmp_path / "model.safetensors")

    again = type(model).from_learner(load(tmp_path / "model.safetensors"))

    assert answers(again) == answers(model)
    other = "AUCRO" if name != "AUCRO" else "OPAUC"
    with pytest.raises(BadParameter, match=f"learner must be a streamlearn.{name}"):
        type(model).from_learner(make(other).learner)


def test_what_is_no_finite_number_is_refused_with_its_name():
    model = learn(make("AUCRO"))

    with pytest.raises(BadValue, match="feature 'f1' must be a finite number, got nan"):
        model.learn_one({"f0": 1.0, "f1": float("nan")}, True)
