"""Members that the user brings: their votes, that they are honest, streamed, saved, and what is refused."""

import json

import numpy as np
import pytest
from river import compose, linear_model, preprocessing, tree
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from streamlearn import AUCRO, HedgeMower, HedgeMower1, Marvin, load
from streamlearn.errors import BadParameter, BadShape, BadSnapshot, BaseFailed
from streamlearn.learners.muffled.own import own_member
from tests.contract import same


def data(seed=0, n=400, m=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m)) * [1.0, 20.0, 0.1, 1.0][:m] + [0.0, 50.0, 0.0, 0.0][:m]
    return X, (X[:, 0] + (X[:, 1] - 50) / 20 + 0.5 * rng.normal(size=n) > 0).astype(int)


SCIKIT = [
    DecisionTreeClassifier(random_state=0),
    RandomForestClassifier(7, random_state=0),
    ExtraTreesClassifier(7, random_state=0, bootstrap=True),
    GradientBoostingClassifier(n_estimators=9, random_state=0),
    GradientBoostingClassifier(n_estimators=9, init="zero", random_state=0),
    LogisticRegression(max_iter=500),
    GaussianNB(),
    make_pipeline(StandardScaler(), LogisticRegression()),
    make_pipeline(StandardScaler(), GaussianNB()),
]


@pytest.mark.parametrize("model", SCIKIT, ids=lambda m: type(m).__name__)
def test_a_fitted_classifier_votes_as_it_would_itself(model):
    X, y = data()
    model.fit(X[:200], y[:200])
    member = own_member("who", model, None)
    expected = 2 * model.predict_proba(X)[:, 1] - 1
    found = member.votes(X)
    if "Forest" in type(model).__name__ or "Tree" in type(model).__name__:
        assert found.tolist() == expected.tolist()
    else:
        assert found == pytest.approx(expected, abs=1e-12)
    assert own_member("who", model, 0).votes(X).tolist() == (-found).tolist()


def river_models():
    return [
        linear_model.LogisticRegression(),
        preprocessing.StandardScaler() | linear_model.LogisticRegression(),
        tree.HoeffdingTreeClassifier(grace_period=20, delta=0.1, leaf_prediction="mc"),
    ]


@pytest.mark.parametrize("which", range(3))
def test_a_trained_river_model_votes_as_it_would_itself(which):
    X, y = data(1)
    model = river_models()[which]
    rows = X.astype(np.float32).astype(float)  # trees see float32
    for x, label in zip(rows[:300].tolist(), y[:300].tolist(), strict=True):
        model.learn_one(dict(enumerate(x)), bool(label))
    member = own_member("who", model, None)
    expected = [2 * model.predict_proba_one(dict(enumerate(x))).get(True, 0.0) - 1 for x in rows.tolist()]
    assert member.votes(rows[:, list(member.voter.names)]) == pytest.approx(expected, abs=1e-12)
    assert len(set(expected)) > 2


OWN = {
    "fitted": lambda: [RandomForestClassifier(5, random_state=1).fit(*data(7)), "forest"],
    "unfitted": lambda: ["logistic", RandomForestClassifier(5), RandomForestClassifier(5, min_samples_leaf=3)],
    "river": lambda: [*river_models(), "bayes"],
    "ours": lambda: [AUCRO(), AUCRO().learn_many(data(8)[0], data(8)[1]), "forest"],
    "alone": lambda: [make_pipeline(StandardScaler(), LogisticRegression())],
}


@pytest.mark.parametrize("kind", OWN)
@pytest.mark.parametrize("cls", [HedgeMower1, Marvin])
def test_streams_with_own_members_are_learned_saved_and_restored_bit_for_bit(cls, kind, tmp_path):
    X, y = data(2, 300)
    labels = [int(y[i]) if i % 4 == 0 else None for i in range(300)]
    members = OWN[kind]()
    params = {
        "members": members,
        "n_trees": 5,
        "refit_every": 30,
        "refit_share": 0.5,
        **({"n_stages": 1} if cls is Marvin else {}),
    }
    one, many = cls(**params), cls(**params)
    expected = []
    for x, label in zip(X, labels, strict=True):
        expected.append(one.score_one(x))
        one.learn_one(x, label)
    assert one.n_refits >= 2
    assert many.test_then_learn_many(X, labels).tolist() == expected
    assert same(one.state(), many.state())
    cls(**params).learn_many(X[:130], labels[:130]).save(tmp_path / "model")
    loaded = load(tmp_path / "model").learn_many(X[130:], labels[130:])
    assert same(loaded.state(), one.state())
    again = loaded.clone().learn_many(X, labels)  # a clone of what was loaded knows the members still
    assert again.score_many(X).tolist() == one.score_many(X).tolist()
    assert members is one.members


def test_members_of_ones_own_carry_the_score():
    X, y = data(3, 500)
    fitted = GradientBoostingClassifier(random_state=0).fit(X[:200], y[:200])
    model = HedgeMower(members=["bayes", fitted], n_trees=5).fit(X[200:], [int(v) for v in y[200:260]] + [None] * 240)
    assert model.vote_names[:2] == ("bayes", "GradientBoostingClassifier")
    votes = model.votes_many(X)
    assert votes[:, 1] == pytest.approx(2 * fitted.predict_proba(X)[:, 1] - 1, abs=1e-12)
    assert votes @ model.vote_weights == pytest.approx(model.score_many(X), abs=1e-12)
    assert (model.vote_weights > 0).all()
    assert "GradientBoostingClassifier" in str(model.partition_one(X[0]))


def test_features_of_a_fitted_member_are_found_by_name_whatever_their_order():
    import pandas as pd

    X, y = data(4)
    frame = pd.DataFrame(X, columns=["d", "a", "c", "b"])
    fitted = RandomForestClassifier(5, random_state=0).fit(frame[:200], y[:200])
    model = HedgeMower1(members=[fitted]).fit(frame[["b", "c", "d", "a"]][200:], y[200:])
    votes = model.votes_many(frame)[:, 0]
    assert votes.tolist() == (2 * fitted.predict_proba(frame)[:, 1] - 1).tolist()
    with pytest.raises(BadShape, match="by name"):
        HedgeMower1(members=[fitted]).learn_one(X[0], 1)


def test_a_second_class_that_is_not_the_positive_one_is_turned():
    X, y = data(5)
    names = np.where(y == 1, "bad", "good")
    fitted = RandomForestClassifier(20, random_state=0).fit(X[:200], names[:200])
    model = HedgeMower1(members=[fitted], positive="bad").fit(X[200:], names[200:].tolist())
    assert (model.vote_weights > 0).all()
    assert model.votes_many(X)[:, 0].tolist() == (-(2 * fitted.predict_proba(X)[:, 1] - 1)).tolist()


def test_what_a_caller_teaches_a_member_later_does_not_change_the_model():
    X, y = data(6)
    learner = AUCRO().learn_many(X[:100], y[:100])
    model = HedgeMower1(members=[learner]).fit(X[100:], y[100:])
    before = model.score_many(X).tolist()
    learner.learn_many(X[100:], 1 - y[100:])
    assert model.score_many(X).tolist() == before


REFUSED = [
    (KNeighborsClassifier(), "RandomForestClassifier"),
    (HistGradientBoostingClassifier(), "GradientBoostingClassifier"),
    (RandomForestClassifier, "got "),
    (3, "got "),
    (GradientBoostingClassifier(loss="exponential"), "log_loss"),
    (RandomForestClassifier(class_weight={0: 1, 1: 2}), "class_weight must be a number"),
    (make_pipeline(StandardScaler(), DecisionTreeClassifier()), "StandardScaler, then LogisticRegression"),
    (tree.HoeffdingTreeClassifier(), "leaf_prediction must be 'mc'"),
    (compose.Pipeline(preprocessing.MinMaxScaler(), linear_model.LogisticRegression()), "StandardScaler, then"),
    (HedgeMower1(), "labels alone"),
]


@pytest.mark.parametrize(("given", "reason"), REFUSED, ids=lambda v: v if isinstance(v, str) else type(v).__name__)
def test_what_has_no_form_in_numbers_is_refused_and_told_what_can_be_given(given, reason):
    with pytest.raises(BadParameter, match=f"Marvin: members must .*{reason}"):
        Marvin(members=[given])


def test_three_classes_and_the_papers_form_are_refused():
    X, y = data()
    three = RandomForestClassifier(3).fit(X, y + (X[:, 2] > 0))
    with pytest.raises(BadParameter, match="two classes"):
        HedgeMower1(members=[three])
    with pytest.raises(BadParameter, match="estimator 'rectified'"):
        HedgeMower1(members=[GaussianNB()], estimator="paper")


def test_a_saved_recipe_can_name_nothing_but_the_listed_classes():
    state = HedgeMower1(members=[GaussianNB()]).state()
    parameters = json.loads(state["parameters"])
    assert "GaussianNB" in parameters["members"]
    for bad in ("KNeighborsClassifier", "os.system"):
        changed = {**parameters, "members": parameters["members"].replace('["GaussianNB"', f'["{bad}"')}
        with pytest.raises(BadSnapshot, match="cannot be used"):
            HedgeMower1.from_state({**state, "parameters": json.dumps(changed)})


def test_altered_arrays_of_a_member_are_refused():
    X, y = data()
    state = HedgeMower1(members=[RandomForestClassifier(3).fit(X, y)]).state()
    nodes = state["array/member/0/nodes"]
    for changed in (nodes[:, :3], nodes + 1000, nodes.astype(np.float64)):
        with pytest.raises(BadSnapshot, match="do not fit together"):
            HedgeMower1.from_state({**state, "array/member/0/nodes": changed})


def test_rows_beyond_float32_are_learned_by_members_that_would_refuse_them():
    X, y = data(9, 60)
    X[5, 0], X[6, 0] = 1e300, -1e300
    model = HedgeMower1(members=[RandomForestClassifier(3), GaussianNB()], refit_every=10).learn_many(X, y)
    assert np.isfinite(model.score_many(X)).all()


def test_members_without_any_feature_vote_nothing():
    model = HedgeMower1(members=[GaussianNB(), AUCRO()], refit_every=2).learn_many([{}] * 8, [0, 1] * 4)
    assert model.score_many([{}, {}]).tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    "model", [LogisticRegression(C=-1), LogisticRegression(l1_ratio=1.0), RandomForestClassifier(0)]
)
def test_what_its_library_would_refuse_at_the_first_refit_is_refused_at_once(model):
    with pytest.raises(BadParameter, match=r"members must be such as can be trained, .* failed on 40 rows: "):
        HedgeMower1(members=[model])


def test_a_member_that_fails_on_the_rows_of_a_refit_is_named():
    X, y = data(10, 40)
    stops_early = GradientBoostingClassifier(n_iter_no_change=3)  # puts a tenth of its rows aside, of both classes
    model = HedgeMower1(members=[stops_early], unlabelled_members="off", refit_every=4)
    with pytest.raises(BaseFailed, match="GradientBoostingClassifier failed on"):
        model.learn_many(X, y)
