"""River estimators as learners: the same numbers as River's own loop, and honest about what they cannot do."""

from __future__ import annotations

import itertools
import pickle
from dataclasses import dataclass
from importlib.metadata import entry_points

import numpy as np
import pytest
from river import linear_model, preprocessing
from streamlearn.adapters.river_job import make_learner

from streamlearn.errors import BadLabel, BadParameter, BadSnapshot, BadValue, NotResumable
from streamlearn.runtime.assemble import assemble
from streamlearn.runtime.checkpoint import Checkpoint
from streamlearn.runtime.cli import main
from streamlearn.runtime.job import read_job
from streamlearn.runtime.loop import Loop

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


def test_without_leave_to_pickle_there_is_no_state_and_the_reason_is_said():
    learner = make_learner(PIPELINE, {})
    saved = make_learner(PIPELINE, {}, allow_pickle=True).state()

    for verb, call in (("kept", learner.state), ("read", lambda: learner.restore(saved))):
        with pytest.raises(NotResumable, match=rf"{verb} as a pickle alone.*runs any code.*allow_pickle = true"):
            call()


class Trap:
    """What an attacker would put into a checkpoint."""

    def __reduce__(self):
        return pytest.fail, ("the pickle was loaded",)


def test_without_leave_nothing_of_a_pickle_is_loaded():
    state = make_learner(PIPELINE, {}, allow_pickle=True).state()
    state["pickle"] = np.frombuffer(pickle.dumps(Trap()), dtype=np.uint8)

    with pytest.raises(NotResumable):
        make_learner(PIPELINE, {}).restore(state)
    with pytest.raises(pytest.fail.Exception):  # the trap is one
        make_learner(PIPELINE, {}, allow_pickle=True).restore(state)


@pytest.mark.parametrize(
    ("path", "params"),
    [
        (PIPELINE, {}),
        ("tree.HoeffdingAdaptiveTreeClassifier", {"grace_period": 20, "seed": 3}),
        ("preprocessing.StandardScaler|linear_model.LinearRegression", {}),
    ],
)
def test_with_leave_a_restored_learner_equals_one_that_never_stopped(path, params):
    values, labels = stream()
    named = labels if "Linear" in path else np.where(labels == 1, "yes", "no").astype(object)
    straight, first, again = (make_learner(path, params, allow_pickle=True) for _ in range(3))

    first.test_then_learn_columns(NAMES, values[:150], named[:150])
    again.restore(first.state())

    expected = straight.test_then_learn_columns(NAMES, values, named)
    actual = again.test_then_learn_columns(NAMES, values[150:], named[150:])
    assert actual.scores.tolist() == expected.scores[150:].tolist()
    assert actual.predictions.tolist() == expected.predictions[150:].tolist()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"river": "0.1"}, "must be of River .* got '0.1'"),
        ({"pickle": np.frombuffer(pickle.dumps([1]), dtype=np.uint8)}, "must hold a Pipeline, got list"),
        ({"pickle": np.frombuffer(b"\x80\x04 no pickle", dtype=np.uint8)}, "cannot be unpickled"),
        ({"pickle": np.empty(0, dtype=np.uint8)}, "cannot be unpickled"),
        ({"labels": "[1"}, "labels of the saved state cannot be read"),
    ],
)
def test_a_state_that_means_something_else_is_refused_and_changes_nothing(change, message):
    values, labels = stream()
    learner = make_learner(PIPELINE, {}, allow_pickle=True)
    learner.test_then_learn_columns(NAMES, values, labels)
    before = learner.state()

    with pytest.raises(BadSnapshot, match=message):
        learner.restore({**before, **change})

    after = learner.state()
    assert after["pickle"].tobytes() == before["pickle"].tobytes()
    assert after["labels"] == before["labels"]


def test_the_runtime_finds_the_adapter_by_its_entry_point():
    (entry,) = entry_points(group="streamlearn.learners", name="river")

    assert entry.load() is make_learner


JOB = """
[source]
kind = "csv"
path = "events.csv"
batch_events = 50
[features]
label = "label"
[[learner]]
name = "river:preprocessing.StandardScaler|linear_model.LogisticRegression"
[[learner]]
name = "AUCRO"
[evaluate]
picture = false
[checkpoint]
every = 100
allow_pickle = {allow}
[sink]
predictions = "out/predictions.csv"
"""


@dataclass
class StopAfter:
    """Somebody who looks on for some batches and then asks to stop."""

    n_batches: int
    asked: bool = False

    def polled(self, loop: Loop) -> None:
        pass

    def saved(self, loop: Loop, seconds: float) -> None:
        pass

    def resumed(self, events: int) -> None:
        pass

    def moved(self, loop: Loop) -> None:
        self.n_batches -= 1
        self.asked = self.n_batches <= 0


@pytest.fixture
def job(tmp_path):
    values, labels = stream()
    lines = [f"{a!r},{b!r},{label}" for (a, b), label in zip(values.tolist(), labels.tolist(), strict=True)]
    (tmp_path / "events.csv").write_text("\n".join(["a,b,label", *lines]) + "\n")
    path = tmp_path / "shower.toml"
    path.write_text(JOB.format(allow="true"))
    return path


def test_a_job_with_leave_goes_on_where_it_stopped_byte_for_byte(job):
    out = job.parent / "out" / "predictions.csv"
    never = StopAfter(1000)
    assert Loop(assemble(read_job(job)), never, never).run()
    expected = out.read_bytes()

    for n_batches in (3, 4):
        some, rest = StopAfter(n_batches), StopAfter(1000)
        assert not Loop(assemble(read_job(job)), some, some).run(fresh=True)
        assert len(out.read_bytes()) < len(expected)
        assert Loop(assemble(read_job(job)), rest, rest).run()
        assert out.read_bytes() == expected


def test_a_checkpoint_is_not_unpickled_by_a_job_without_leave_nor_by_looking_into_it(job, capsys):
    assert main(["run", str(job)]) == 0
    (newest, *_) = sorted((job.parent / "out" / "shower.checkpoints").iterdir(), reverse=True)
    saved = Checkpoint.read(newest)
    saved.state["track/0/learner/pickle"] = np.frombuffer(pickle.dumps(Trap()), dtype=np.uint8).copy()
    newest.write_bytes(saved.pack())
    capsys.readouterr()

    assert main(["inspect", str(newest)]) == 0
    assert "river:preprocessing" in capsys.readouterr().out
    job.write_text(JOB.format(allow="false"))
    assert main(["run", str(job)]) == 1
    assert "allow_pickle = true" in capsys.readouterr().err
