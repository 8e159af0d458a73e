"""The traps of values, columns and files for every learner, those of labels for the semi-supervised ones, of targets
for the regressors; each with the right answer in one line."""

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from streamlearn import GeometricMedian, ORLRegressor, load
from streamlearn.errors import BadLabel, BadShape, BadSnapshot, BadValue, NewerSnapshot, TooManyFeatures
from streamlearn.evaluation import DETECTORS, METRICS, McNemar, make_detector, make_metric
from streamlearn.learners.base import BinaryScorer
from streamlearn.learners.registry import MODULES, learner_class
from streamlearn.snapshot import CHANGED
from tests.contract import same

_MUFFLED = {"n_trees": 5, "refit_share": 0.9, "unlabelled_buffer": 40}
SMALL = {
    **dict.fromkeys(("HedgeMower1", "HedgeMower"), _MUFFLED),
    **{name: {**_MUFFLED, "n_stages": 2} for name in ("Marvin", "MarvinC", "MarvinD")},
    "ORL": {"batch_size": 20},
    "ORLPCA": {"batch_size": 20},
}
EVERY = list(MODULES)
SEMI_SUPERVISED = [name for name in EVERY if getattr(learner_class(name), "learns_unlabelled", False)]
UNSUPERVISED = ("GeometricMedian", "ORLPCA")
every = pytest.mark.parametrize("name", EVERY)
semi = pytest.mark.parametrize("name", SEMI_SUPERVISED)


def make(name, **changes):
    return learner_class(name)(**{**SMALL.get(name, {}), **changes})


def events(n=200, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, (X[:, 0] - X[:, 1] + 0.5 * rng.normal(size=n) > 0.0).astype(int)


def learn(model, X, y):
    return model.learn_many(X) if model.name in UNSUPERVISED else model.learn_many(X, y)


def learn_one(model, x, y):
    return model.learn_one(x) if model.name in UNSUPERVISED else model.learn_one(x, y)


def answers(model, X):
    """Return all numbers that a learner gives about rows."""
    verbs = ("score_many", "predict_many", "transform_many", "error_many")
    found = [getattr(model, verb)(X) for verb in verbs if hasattr(model, verb)]
    return np.concatenate([np.asarray(part, float).reshape(len(X), -1) for part in found if None not in part], axis=1)


def finite_after(name, X, y):
    return np.isfinite(answers(learn(make(name), X, y), X)).all()


# -- values


@every
def test_one_nan_among_clean_rows_is_refused_by_row_and_leaves_every_learner_alone(name):
    X, y = events()
    model = learn(make(name), X, y)
    before, bad = model.state(), X.copy()
    bad[77, 1] = math.nan
    with pytest.raises(BadValue, match="row 77"):
        learn(model, bad, y)
    assert same(before, model.state())


@every
def test_a_constant_feature_left_once_leaves_finite_answers(name):
    X, y = events()
    X[:, 2], X[150, 2] = 5.0, 5.5
    assert finite_after(name, X, y)


@every
def test_a_first_value_of_5e19_leaves_finite_answers(name):
    X, y = events()
    X[0, 0] = 5e19
    assert finite_after(name, X, y)


@every
def test_nanosecond_timestamps_leave_finite_answers(name):
    X, y = events()
    X[:, 2] = 1.7e18 + 1e9 * np.arange(len(X))
    assert finite_after(name, X, y)


@every
def test_an_integer_past_the_largest_double_is_refused_by_name(name):
    with pytest.raises(BadValue, match="'a'"):
        learn_one(make(name), {"a": 10**400}, 1)


@semi
def test_forests_rank_values_of_mean_1e9_as_well_as_centred_ones(name):
    X, y = events(300)
    assert roc_auc_score(y[150:], make(name).learn_many(X[:150] + 1e9, y[:150]).score_many(X[150:] + 1e9)) > 0.8


def test_the_median_of_values_of_mean_1e9_is_that_of_the_centred_ones_moved():
    X, _ = events()
    # 1e9 has 1.2e-7 between two doubles.
    assert GeometricMedian().learn_many(X + 1e9).median_ - 1e9 == pytest.approx(
        GeometricMedian().learn_many(X).median_, abs=1e-4
    )


def test_the_median_of_a_stream_that_begins_with_5e19_is_near_the_other_rows():
    X, _ = events(400)
    X[0, 0] = 5e19
    assert np.abs(GeometricMedian(n_start=15).learn_many(X).median_).max() < 1.0


def test_components_of_values_of_mean_1e9_are_those_of_the_centred_ones():
    X, _ = events(400)
    X *= [5.0, 3.0, 0.1]
    far, near = (np.asarray(make("ORLPCA").learn_many(part).components_) for part in (X + 1e9, X))
    assert np.linalg.norm(far.T @ far - near.T @ near) < 1e-3


def test_a_regression_on_values_of_mean_1e9_predicts_nearly_as_on_centred_ones():
    X, _ = events(400)
    y = X @ [1.0, -2.0, 0.5]
    model = ORLRegressor().learn_many(X[:300] + 1e9, y[:300])
    assert np.abs(np.asarray(model.predict_many(X[300:] + 1e9)) - y[300:]).max() < 0.01


# -- labels and targets


@semi
@pytest.mark.parametrize("pair", [(False, True), (np.False_, np.True_), (np.int64(0), np.int64(1)), ("no", "yes")])
def test_any_two_labels_give_a_semi_supervised_learner_the_same_scores(name, pair):
    X, y = events(60)
    model, plain = make(name), make(name).learn_many(X, y)
    for x, label in zip(X, y, strict=True):
        model.learn_one(x, pair[label])
    assert model.score_many(X).tolist() == plain.score_many(X).tolist()
    assert {type(p) for p in (model.predict_one(x) for x in X) if p is not None} <= {type(pair[0])}


@semi
def test_true_and_1_are_one_label_for_a_semi_supervised_learner(name):
    X, y = events(40)
    mixed = [bool(label) if i % 2 else label for i, label in enumerate(y.tolist())]
    assert make(name).learn_many(X, mixed).score_many(X).tolist() == make(name).learn_many(X, y).score_many(X).tolist()


@semi
def test_a_third_label_is_refused_by_a_semi_supervised_learner_and_leaves_it_alone(name):
    X, y = events(60)
    model = make(name).learn_many(X, y)
    before = model.state()
    with pytest.raises(BadLabel, match="third"):
        model.learn_one(X[0], "third")
    assert same(before, model.state())


@semi
def test_no_label_is_an_event_to_learn_from_but_no_class(name):
    X, y = events(60)
    model = make(name).learn_many(X, y)
    before, pair = model.state(), model.label_pair()
    model.learn_one(X[0], None)
    assert not same(before, model.state())
    assert model.label_pair() == pair


@semi
def test_a_class_that_appears_late_is_learned_by_a_semi_supervised_learner(name):
    X, y = events(300)
    order = np.argsort(y[:150], kind="stable")
    X[:150], y[:150] = X[:150][order], y[:150][order]
    assert roc_auc_score(y[150:], make(name).learn_many(X[:150], y[:150]).score_many(X[150:])) > 0.7


@semi
def test_a_stream_of_one_class_leaves_finite_scores_and_names_no_other(name):
    X, _ = events(60)
    model = make(name).learn_many(X, np.ones(60, int))
    assert np.isfinite(model.score_many(X)).all()
    assert set(model.predict_many(X)) <= {1, None}


def test_no_target_teaches_a_regressor_nothing_and_nan_is_none():
    X, _ = events()
    model = ORLRegressor().learn_many(X, X[:, 0])
    before = model.state()
    model.learn_one(X[0], None).learn_one(X[1], math.nan)
    assert same(before, model.state())


@pytest.mark.parametrize("target", ["1.5", 10**400, math.inf, [1.0]])
def test_a_target_that_is_no_finite_number_is_refused_and_leaves_the_regressor_alone(target):
    X, _ = events()
    model = ORLRegressor().learn_many(X, X[:, 0])
    before = model.state()
    with pytest.raises((BadLabel, BadValue), match="ORLRegressor"):
        model.learn_one(X[0], target)
    assert same(before, model.state())


# -- batches and columns


@every
def test_empty_and_one_row_batches_are_like_any_for_every_learner(name):
    X, y = events(30)
    model = learn(make(name), X[:0], y[:0])
    for i in range(30):
        learn(model, X[i : i + 1], y[i : i + 1])
    assert same(model.state(), learn(make(name), X, y).state())


@pytest.mark.parametrize("name", [name for name in EVERY if name not in UNSUPERVISED])
def test_a_batch_of_mismatched_length_is_refused_whole_by_every_learner(name):
    X, y = events(60)
    model = learn(make(name), X, y)
    before = model.state()
    with pytest.raises(BadShape):
        model.learn_many(X, y[:-1])
    assert same(before, model.state())


@every
def test_the_order_of_columns_is_irrelevant_to_every_learner(name):
    X, y = events(80)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    assert same(learn(make(name), frame[["c", "a", "b"]], y).state(), learn(make(name), frame, y).state())


@every
def test_a_missing_column_is_0_and_an_emerging_one_was_0_before(name):
    X, y = events(80)
    X[:40, 2] = 0.0
    full, growing = learn(make(name), X, y), learn(make(name), X[:40, :2], y[:40])
    for x, label in zip(X[40:].tolist(), y[40:].tolist(), strict=True):
        learn_one(growing, dict(enumerate(x)), label)
    assert same(growing.state(), full.state())


@every
def test_twenty_thousand_one_off_names_end_at_max_features_of_every_learner(name):
    model = make(name, max_features=10)
    refused = 0
    for i in range(20_000):
        try:
            learn_one(model, {f"once{i}": 1.0}, i % 2)
        except TooManyFeatures:
            refused += 1
    assert (model.n_features, refused) == (10, 19_990)


# -- state and files


@every
@pytest.mark.parametrize("stop", [0, 1, 77])
def test_every_learner_saved_in_mid_stream_and_loaded_equals_one_that_never_stopped(name, stop, tmp_path):
    X, y = events(150)
    whole = learn(make(name), X, y)
    learn(make(name), X[:stop], y[:stop]).save(tmp_path / "model")
    assert same(learn(load(tmp_path / "model"), X[stop:], y[stop:]).state(), whole.state())


@every
def test_a_file_of_a_newer_format_is_refused_and_one_of_an_older_is_read_unless_states_changed(
    name, tmp_path, monkeypatch
):
    X, y = events(60)
    model = learn(make(name), X, y)
    for version in (0, 99):
        monkeypatch.setattr("streamlearn.snapshot.FORMAT", version)
        model.save(tmp_path / f"format{version}")
    monkeypatch.undo()
    if name in CHANGED:
        with pytest.raises(BadSnapshot, match=f"a state of {name} must be of format {CHANGED[name]} or later, got 0"):
            load(tmp_path / "format0")
    else:
        assert same(load(tmp_path / "format0").state(), model.state())
    with pytest.raises(NewerSnapshot, match="use a newer streamlearn"):
        load(tmp_path / "format99")


NEEDED = {"reject_auc": "d=0.3", "reject_rate": "d=0.3", "reject_risk": "d=0.3", "risk": "d=0.3"}


def forms():
    """Return every metric over all events, and windowed and fading where it can be."""
    for short in METRICS:
        needed = [NEEDED[short]] if short in NEEDED else []
        made = make_metric(f"{short}:{','.join(needed)}")
        for memory in ("", "window=40", "fading=0.97", "exact_events=64"):
            if not memory or memory.partition("=")[0] in made.params():
                yield f"{short}:{','.join([*needed, *filter(None, [memory])])}"


@pytest.mark.parametrize("spec", list(forms()))
def test_every_metric_restored_in_mid_stream_equals_one_that_never_stopped(spec):
    rng = np.random.default_rng(3)
    y, p = rng.integers(0, 2, 300), rng.random(300)
    forecasts = np.round(p) if make_metric(spec).takes == "prediction" else p
    whole, first, second = (make_metric(spec) for _ in range(3))
    whole.update_many(y, forecasts)
    first.update_many(y[:137], forecasts[:137])
    second.restore(first.state())
    second.update_many(y[137:], forecasts[137:])
    assert same(second.state(), whole.state())
    assert second.get() == whole.get() or math.isnan(whole.get())


@pytest.mark.parametrize("name", DETECTORS)
def test_every_detector_restored_in_mid_stream_equals_one_that_never_stopped(name):
    losses = np.repeat([0.0, 1.0, 0.0], 150)
    whole, first, second = (make_detector(name) for _ in range(3))
    whole.update_many(losses)
    first.update_many(losses[:160])
    second.restore(first.state())
    second.update_many(losses[160:])
    assert same(second.state(), whole.state())


def test_a_test_of_two_learners_restored_in_mid_stream_equals_one_that_never_stopped():
    rng = np.random.default_rng(4)
    a, b = rng.random(200) < 0.7, rng.random(200) < 0.6
    whole, first, second = (McNemar(fading=0.99) for _ in range(3))
    whole.update_many(a, b)
    first.update_many(a[:77], b[:77])
    second.restore(first.state())
    second.update_many(a[77:], b[77:])
    assert second.p_value == whole.p_value


def test_every_learner_takes_part():
    binary = [name for name in EVERY if issubclass(learner_class(name), BinaryScorer)]
    assert set(SEMI_SUPERVISED) == {"HedgeMower1", "HedgeMower", "Marvin", "MarvinC", "MarvinD"} < set(binary)
