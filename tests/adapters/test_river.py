"""River estimators as learners: the same numbers as River's own loop, and honest about what they cannot do."""

from __future__ import annotations

import itertools
from importlib.metadata import entry_points

import numpy as np
import pytest
from river import linear_model, preprocessing
from streamlearn.adapters.river import make_learner

from streamlearn.errors import BadLabel, BadParameter, BadValue, NotResumable

NAMES = ("a", "b")
PIPELINE = "preprocessing.StandardScaler|linear_model.LogisticRegression"


def stream(n_events: int = 300):
    rng = np.random.default_rng(7)
    values = rng.normal(size=(n_events, 2)) * [1.0, 30.0]
    labels = (values[:, 0] - values[:, 1] / 30 + rng.normal(size=n_events) > 0).astype(np.int64)
    return values, labels


def in_pieces(learner, values, labels, cuts):
    edges = [0, *cuts, len(values)]
    return [learner.test_then_learn_columns(NAMES, values[a:b], labels[a:b]) for a, b in itertools.pairwise(edges)]


def test_a_pipeline_forecasts_what_river_itself_forecasts():
    values, labels = stream()
    model = preprocessing.StandardScaler() | linear_model.LogisticRegression()
    expected = []
    for row, label in zip(values.tolist(), labels.tolist(), strict=True):
        x = dict(zip(NAMES, row, strict=True))
        expected.append(model.predict_proba_one(x).get(True, 0.5))
        model.learn_one(x, bool(label))

    parts = in_pieces(make_learner(PIPELINE, {}), values, labels, [1, 2, 100])

    assert np.concatenate([part.probabilities for part in parts]).tolist() == expected
    assert np.concatenate([part.codes for part in parts]).tolist() == labels.tolist()


def test_predictions_come_in_the_labels_of_the_stream():
    values, labels = stream()
    named = np.where(labels == 1, "yes", "no").astype(object)

    tested = make_learner(PIPELINE, {}).test_then_learn_columns(NAMES, values, named)

    assert set(tested.predictions[10:]) == {"yes", "no"}
    assert ((tested.predictions == "yes") == (tested.decisions == 1.0))[10:].all()


def test_a_forest_learns_labels_of_any_kind():
    values, labels = stream()
    named = np.where(labels == 1, "yes", "no").astype(object)

    tested = make_learner("tree.HoeffdingTreeClassifier", {"grace_period": 20}).test_then_learn_columns(
        NAMES, values, named
    )

    right = tested.predictions[100:] == named[100:]
    assert right.mean() > 0.6


def test_events_without_label_are_forecast_and_not_learned():
    values, labels = stream()
    gone = labels.astype(object)
    gone[200:] = None
    learner, other = make_learner(PIPELINE, {}), make_learner(PIPELINE, {})

    learner.test_then_learn_columns(NAMES, values[:200], labels[:200])
    tested = learner.test_then_learn_columns(NAMES, values[200:], gone[200:])
    other.test_then_learn_columns(NAMES, values[:200], labels[:200])

    first = other.test_then_learn_columns(NAMES, values[200:201], labels[200:201])
    assert tested.probabilities[0] == first.probabilities[0]
    assert (tested.codes == -1).all()


def test_a_regressor_predicts_numbers():
    values, _ = stream()
    targets = 3.0 * values[:, 0] + 1.0

    tested = make_learner("preprocessing.StandardScaler|linear_model.LinearRegression", {}).test_then_learn_columns(
        NAMES, values, targets
    )

    assert np.abs(tested.scores[200:] - targets[200:]).mean() < np.abs(targets).mean() / 2
    assert np.isnan(tested.probabilities).all()


@pytest.mark.parametrize(
    ("path", "params", "message"),
    [
        ("linear_model.NoSuchThing", {}, "must be an import path below river"),
        ("LogisticRegression", {}, "must be an import path below river"),
        ("metrics.ROCAUC", {}, "must name an estimator"),
        ("preprocessing.StandardScaler", {}, "must end in a classifier or a regressor"),
        ("linear_model.LogisticRegression", {"no_such": 1}, "no_such"),
    ],
)
def test_what_is_no_learner_is_refused(path, params, message):
    with pytest.raises(BadParameter, match=message):
        make_learner(path, params)


def test_checking_refuses_what_learning_would_refuse():
    learner = make_learner(PIPELINE, {})
    values, labels = stream()
    learner.test_then_learn_columns(NAMES, values, labels)

    with pytest.raises(BadValue, match="feature 'b' in row 1 must be finite, got nan"):
        learner.check(NAMES, np.array([[0.0, 0.0], [0.0, np.nan]]), np.array([0, 1]))
    with pytest.raises(BadLabel, match="third"):
        learner.check(NAMES, np.zeros((1, 2)), np.array([2]))


def test_there_is_no_state_that_could_be_kept():
    with pytest.raises(NotResumable, match=r"river:.* no state that can be kept; remove \[checkpoint\]"):
        make_learner(PIPELINE, {}).state()


def test_the_runtime_finds_the_adapter_by_its_entry_point():
    (entry,) = entry_points(group="streamlearn.learners", name="river")

    assert entry.load() is make_learner
