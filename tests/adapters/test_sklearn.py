"""The learners inside scikit-learn: the same models, in its pipelines, with its labels, in its frames."""

from __future__ import annotations

import doctest
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from streamlearn.adapters import sklearn as adapters
from streamlearn.adapters.sklearn import AUCRO, ORL, ORLPCA, GeometricMedian, HingeReject, ORLRegressor
from streamlearn.adapters.sklearn_base import DECIDED_BY_CLASSES
from streamlearn.adapters.sklearn_classifier import OnlineClassifier

from streamlearn import load
from streamlearn.errors import BadParameter, BadShape, BadValue
from streamlearn.learners.registry import MODULES, learner_class

N_ROWS, N_FEATURES = 400, 4
RNG = np.random.default_rng(11)
X = RNG.normal(size=(N_ROWS, N_FEATURES))
Y = (X[:, 0] - X[:, 1] + RNG.normal(size=N_ROWS) > 0.5).astype(int)
TARGET = X @ [1.0, -2.0, 0.5, 0.0] + 3.0

SMALL = {"HedgeMower1", "HedgeMower", "Marvin", "MarvinC", "MarvinD"}


def make(name: str, **params):
    few = {"n_trees": 5} if name in SMALL else {"batch_size": 50} if name in ("ORL", "ORLPCA") else {}
    return getattr(adapters, name)(**few, **params)


def assert_equal_states(one: dict, other: dict):
    assert one.keys() == other.keys()
    for key, value in one.items():
        np.testing.assert_array_equal(value, other[key], err_msg=key)


def test_every_learner_has_its_estimator_and_there_is_no_other():
    assert set(adapters.__all__) == set(MODULES)
    for name in MODULES:
        assert getattr(adapters, name).learner_type is learner_class(name)


@pytest.mark.parametrize("name", MODULES)
def test_parameters_are_those_of_the_learner(name):
    learner = learner_class(name)()
    params = getattr(adapters, name)().get_params(deep=False)

    assert params == {key: value for key, value in learner.params().items() if key not in DECIDED_BY_CLASSES}
    for parameter in params:
        assert parameter in getattr(adapters, name).__doc__


@pytest.mark.parametrize("name", [n for n in MODULES if n not in SMALL])
def test_it_is_the_model_of_the_learner_bit_for_bit(name):
    estimator = make(name)
    y = Y if isinstance(estimator, OnlineClassifier) else TARGET
    given = {"positive": 1} if isinstance(estimator, OnlineClassifier) else {}
    learner = learner_class(name)(**estimator.get_params(deep=False), **given).learn_many(X, y)

    whole = clone(estimator).fit(X, y).learner_.state()
    pieces = clone(estimator).partial_fit(X[:150], y[:150])
    pieces = pieces.partial_fit(X[150:151], y[150:151]).partial_fit(X[151:], y[151:]).learner_.state()

    assert_equal_states(whole, learner.state())
    assert_equal_states(pieces, learner.state())


@pytest.mark.parametrize("name", [n for n in MODULES if issubclass(getattr(adapters, n), OnlineClassifier)])
def test_classifiers_rank_by_the_scores_of_the_learner_and_decide_by_their_sign(name):
    estimator = make(name).fit(X, Y)
    decisions = estimator.decision_function(X)

    assert is_classifier(estimator)
    assert roc_auc_score(Y, decisions) == roc_auc_score(Y, estimator.learner_.score_many(X))
    assert ((decisions > 0) == (estimator.predict(X) == 1)).all()
    assert estimator.score(X, Y) > 0.65


def test_cross_validation_and_grid_search_see_the_auc():
    pipeline = make_pipeline(StandardScaler(), AUCRO())
    scores = cross_val_score(pipeline, X, Y, scoring="roc_auc")
    search = GridSearchCV(AUCRO(), {"clip": [None, 3.0], "solver": ["exact", "sgd"]}, scoring="roc_auc", cv=3).fit(X, Y)

    assert len(scores) == 5
    assert scores.mean() > 0.8
    assert set(search.best_params_) == {"clip", "solver"}
    assert search.best_score_ > 0.8


def test_it_can_be_calibrated_and_followed_by_its_projections():
    calibrated = CalibratedClassifierCV(AUCRO(), cv=3).fit(X, Y)
    projected = make_pipeline(ORLPCA(n_components=2, batch_size=50), AUCRO()).fit(X, Y)

    assert np.allclose(calibrated.predict_proba(X).sum(axis=1), 1.0)
    assert projected.predict(X).shape == (N_ROWS,)
    assert projected[:-1].get_feature_names_out().tolist() == ["orlpca0", "orlpca1"]


def test_one_against_the_rest_makes_many_classes_of_two():
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    assert OneVsRestClassifier(AUCRO()).fit(X, y).score(X, y) > 0.6


def test_the_example_of_the_module_runs():
    assert doctest.testmod(adapters) == (0, 5)


# Abstention


@pytest.mark.parametrize("name", ["AUCRO", "AdaptiveAUCRO", "LogisticReject", "HingeReject", "FSAUC"])
def test_predict_names_a_class_where_predict_reject_abstains(name):
    estimator = make(name, reject_cost=0.25).fit(X, Y)
    never = make(name).fit(X, Y)

    plain, rejecting = estimator.predict(X), estimator.predict_reject(X)
    abstains = np.array([label is None for label in rejecting])

    assert plain.dtype == Y.dtype
    assert 0.05 < abstains.mean() < 0.95
    assert (plain[~abstains] == rejecting[~abstains]).all()
    assert (rejecting == estimator.learner_.predict_many(X)).all()
    assert ((estimator.decision_function(X) > 0) == plain).all()
    assert (never.predict_reject(X, reject_label=-1) == never.predict(X)).all()


def test_the_label_of_abstention_keeps_the_dtype_where_it_can():
    estimator = AUCRO(reject_cost=0.2).fit(X, Y)
    words = AUCRO(reject_cost=0.2).fit(X, np.where(Y == 1, "yes", "no"))

    assert estimator.predict_reject(X, reject_label=-1).dtype == Y.dtype
    assert set(estimator.predict_reject(X, reject_label=-1)) == {-1, 0, 1}
    assert set(words.predict_reject(X, reject_label="unsure")) == {"yes", "no", "unsure"}
    assert set(words.predict_reject(X)) == {"yes", "no", None}


# Labels

PAIRS = {
    "int8": np.array([0, 1], dtype=np.int8),
    "one and two": np.array([1, 2]),
    "minus one and one": np.array([-1, 1]),
    "bool": np.array([False, True]),
    "float": np.array([0.5, 0.25]),
    "float32": np.array([0, 1], dtype=np.float32),
    "text": np.array(["b", "a"]),
    "objects": np.array(["no", "yes"], dtype=object),
}


@pytest.mark.parametrize("pair", [pair for key, pair in PAIRS.items() if key != "float"], ids=str)
@pytest.mark.parametrize("name", ["AUCRO", "HedgeMower1"])
def test_labels_come_back_in_their_dtype_and_the_second_class_is_positive(name, pair):
    y = np.sort(pair)[Y]
    estimator = make(name).fit(X, y)

    assert estimator.classes_.dtype == y.dtype
    assert estimator.classes_.tolist() == sorted(pair.tolist())
    assert estimator.predict(X).dtype == y.dtype
    assert estimator.learner_.label_pair() == tuple(estimator.classes_)
    assert np.array_equal(estimator.decision_function(X), make(name).fit(X, Y).decision_function(X))


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.arange(N_ROWS) % 3, "Only binary classification is supported. The type of the target is multiclass"),
        (PAIRS["float"][Y], "Unknown label type"),
        (np.where(Y == 1, np.nan, 0.0), "NaN"),
        (np.where(Y == 1, "yes", None), "Unknown label type"),
        (Y[:-1], "inconsistent numbers of samples"),
        (None, "requires y to be passed"),
    ],
)
def test_labels_that_are_not_two_classes_are_refused(y, message):
    with pytest.raises(ValueError, match=message):
        AUCRO().fit(X, y)


def test_partial_fit_is_told_both_classes_or_sees_them_at_first():
    one = np.ones(3, dtype=int)
    told = AUCRO().partial_fit(X[:3], one, classes=[0, 1])

    assert told.predict_proba(X[:2]).tolist() == [[0.0, 1.0]] * 2
    assert told.partial_fit(X, Y).classes_.tolist() == [0, 1]
    with pytest.raises(ValueError, match="AUCRO: classes must be two labels in the first call"):
        AUCRO().partial_fit(X[:3], one)
    with pytest.raises(ValueError, match=r"AUCRO: y must be of the classes \[0, 1\], got 2"):
        told.partial_fit(X[:1], [2])
    with pytest.raises(ValueError, match="AUCRO: classes must be those of the first call"):
        told.partial_fit(X, Y, classes=[0, 2])


def test_rows_of_one_class_leave_one_class():
    estimator = AUCRO().fit(X, np.full(N_ROWS, 7))

    assert estimator.classes_.tolist() == [7]
    assert set(estimator.predict(X)) == {7}
    assert estimator.predict_proba(X).tolist() == [[1.0]] * N_ROWS


UNLABELLED = {
    "minus one": np.where(np.arange(N_ROWS) < 60, Y, -1),
    "nan": np.where(np.arange(N_ROWS) < 60, Y, np.nan),
    "none": np.where(np.arange(N_ROWS) < 60, Y.astype(object), None),
    "pandas nullable": pd.Series(Y, dtype="Int64").where(np.arange(N_ROWS) < 60),
}


@pytest.mark.parametrize("y", UNLABELLED.values(), ids=UNLABELLED)
def test_semi_supervised_learners_learn_rows_without_a_label(y):
    expected = learner_class("HedgeMower1")(n_trees=5).fit(X, np.where(np.arange(N_ROWS) < 60, Y.astype(object), None))

    estimator = make("HedgeMower1").fit(X, y)

    assert estimator.classes_.tolist() == [0, 1]
    assert np.array_equal(estimator.learner_.score_many(X), expected.score_many(X))
    assert not np.array_equal(
        make("HedgeMower1").fit(X[:60], Y[:60]).decision_function(X), estimator.decision_function(X)
    )


def test_words_may_be_missing_too():
    y = np.where(Y == 1, "yes", "no").astype(object)
    y[60:] = None

    assert set(make("Marvin").fit(X, y).predict(X)) == {"yes", "no"}
    assert make("Marvin").fit(X, y).classes_.tolist() == ["no", "yes"]


def test_minus_one_is_a_label_where_it_is_one_of_the_two_classes():
    estimator = make("HedgeMower1").fit(X, 2 * Y - 1)
    assert estimator.classes_.tolist() == [-1, 1]
    assert set(estimator.predict(X)) == {-1, 1}


def test_supervised_learners_refuse_minus_one_beside_two_classes():
    with pytest.raises(ValueError, match="Only binary classification"):
        AUCRO().fit(X, UNLABELLED["minus one"])


def test_a_batch_without_any_label_is_learned_once_the_classes_are_known():
    estimator = make("HedgeMower1").partial_fit(X[:50], np.full(50, -1), classes=[0, 1])
    assert estimator.predict_proba(X[:1]).tolist() == [[0.5, 0.5]]
    assert estimator.partial_fit(X, Y).score(X, Y) > 0.7


# Frames

COLUMNS = ["zero", "a", "b", "c"]
HIDDEN = np.column_stack([np.zeros(N_ROWS), X[:, 1], X[:, 0], X[:, 2]])
FRAMES = {
    "pandas": pd.DataFrame(HIDDEN, columns=COLUMNS, index=np.arange(N_ROWS)[::-1]),
    "pandas nullable": pd.DataFrame(HIDDEN, columns=COLUMNS).convert_dtypes(),
    "pandas arrow": pd.DataFrame(HIDDEN, columns=COLUMNS).convert_dtypes(dtype_backend="pyarrow"),
    "polars": pl.DataFrame(HIDDEN, schema=COLUMNS),
    "pyarrow": pa.table(dict(zip(COLUMNS, HIDDEN.T, strict=True))),
}


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_frames_of_every_kind_leave_one_model_that_knows_its_names(frame, tmp_path):
    plain = AUCRO().fit(HIDDEN, Y)
    estimator = AUCRO().fit(frame, Y)
    estimator.learner_.save(tmp_path / "model.safetensors")

    assert estimator.feature_names_in_.tolist() == COLUMNS
    assert np.allclose(estimator.decision_function(frame), plain.decision_function(HIDDEN), rtol=1e-12)
    loaded = load(tmp_path / "model.safetensors")
    row = dict(zip(COLUMNS, HIDDEN[0], strict=True))
    assert loaded.score_one(row) == estimator.learner_.score_one(row)
    with pytest.raises(ValueError, match="feature names should match"):
        AUCRO().fit(frame, Y).predict(pd.DataFrame(HIDDEN, columns=COLUMNS[::-1]))


def test_what_is_learned_comes_in_the_order_of_the_input():
    late = HIDDEN.copy()
    late[:50, 1] = 0.0  # the learner meets this feature after the others
    y = late @ [0.0, 3.0, -1.0, 2.0]

    regressor = ORLRegressor().fit(pd.DataFrame(late, columns=COLUMNS), y)
    median = GeometricMedian(window=N_ROWS).fit(late)
    components = ORLPCA(n_components=1, batch_size=100).fit(late * [1.0, 9.0, 1.0, 1.0])

    assert np.allclose(regressor.coef_, [0.0, 3.0, -1.0, 2.0], atol=1e-6)
    assert median.median_[0] == 0.0
    assert np.abs(median.median_ - np.median(late, axis=0)).max() < 0.2
    assert np.abs(components.components_[0]).argmax() == 1
    assert components.mean_.shape == (4,)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pd.DataFrame({"a": pd.date_range("2020-01-01", periods=N_ROWS, tz="UTC")}), "a column of Datetime.*UTC"),
        (pd.DataFrame({"a": pd.Categorical(Y)}), "a column of Categorical"),
        (pl.DataFrame({"a": [None, *Y[1:].tolist()]}), "None in row 0"),
        (pa.table({"a": Y.astype(str)}), "a column of String"),
    ],
)
def test_columns_that_are_not_numbers_are_refused_by_name(frame, message):
    with pytest.raises(BadValue, match=f"AUCRO: feature 'a' must be a finite number, got .*{message}"):
        AUCRO().fit(frame, Y)


def test_duplicate_names_and_other_indexes_are_refused():
    with pytest.raises(BadShape, match="'a' twice"):
        AUCRO().fit(pd.DataFrame(X[:, :2], columns=["a", "a"]), Y)
    with pytest.raises(BadShape, match="y must have the index of X"):
        AUCRO().fit(FRAMES["pandas"], pd.Series(Y))
    same = pd.Series(Y, index=FRAMES["pandas"].index)
    assert AUCRO().fit(FRAMES["pandas"], same).score(FRAMES["pandas"], same) > 0.7


def test_missing_cells_are_taken_where_the_parameter_says_so():
    holes = X.copy()
    holes[::7, 1] = np.nan

    with pytest.raises(ValueError, match="NaN"):
        ORLPCA(batch_size=50).fit(holes)
    for rows in (holes, pl.DataFrame(holes, schema=COLUMNS, nan_to_null=True)):
        estimator = ORLPCA(batch_size=50, missing="complete").fit(rows)
        assert np.isfinite(estimator.transform(rows)).all()


def test_sparse_rows_are_taken_or_refused_as_the_tags_say():
    rows = sparse.csr_array(X * (np.abs(X) > 1))
    for name in adapters.__all__:
        estimator = make(name)
        y = TARGET if is_regressor(estimator) else Y
        if not estimator.__sklearn_tags__().input_tags.sparse:
            with pytest.raises(TypeError, match=r"[Ss]parse"):
                estimator.fit(rows, y)
        else:
            dense = clone(estimator).fit(rows.toarray(), y)
            assert np.array_equal(
                estimator.fit(rows, y).decision_function(rows), dense.decision_function(rows.toarray())
            )
            assert np.array_equal(estimator.predict_proba(rows.tocsc()), dense.predict_proba(rows.toarray()))


# The rest of an estimator's life


@pytest.mark.parametrize("name", MODULES)
def test_pickles_go_on_learning_where_they_were(name):
    estimator = make(name)
    y = TARGET if is_regressor(estimator) else Y
    estimator.fit(X[:300], y[:300])
    copy = pickle.loads(pickle.dumps(estimator))  # noqa: S301 - our own, made in the line

    estimator.partial_fit(X[300:], y[300:])
    copy.partial_fit(X[300:], y[300:])

    assert_equal_states(estimator.learner_.state(), copy.learner_.state())


def test_fit_forgets_and_a_failed_lesson_changes_nothing():
    estimator = AUCRO().fit(X, Y)
    before = estimator.decision_function(X)
    with pytest.raises(ValueError, match="got 5"):
        estimator.partial_fit(X[:2], [0, 5])

    assert np.array_equal(estimator.decision_function(X), before)
    assert estimator.fit(X[:, :2], Y).n_features_in_ == 2
    assert np.array_equal(estimator.fit(X, Y).decision_function(X), before)


def test_parameters_are_checked_in_fit_and_nothing_works_before_it():
    with pytest.raises(BadParameter, match="AUCRO: reject_cost must be in"):
        AUCRO(reject_cost=0.9).fit(X, Y)
    for ask in (AUCRO().predict, AUCRO().decision_function, ORLPCA().transform, GeometricMedian().score_samples):
        with pytest.raises(NotFittedError):
            ask(X)


def test_an_estimator_can_be_the_base_of_orl():
    rough = TARGET.copy()
    rough[:100] = 1e6
    robust = ORL(base=LinearRegression(), batch_size=50).fit(X, rough)

    assert clone(robust).get_params()["base__fit_intercept"] is True
    assert robust.score(X[100:], TARGET[100:]) > 0.99


def test_fewer_rows_than_a_mini_batch_are_warned_of():
    with pytest.warns(UserWarning, match="ORL: fit must get batch_size=500 rows before anything is estimated, got 400"):
        ORL().fit(X, TARGET)


def test_far_rows_score_low():
    rows = np.vstack([X, np.full((1, N_FEATURES), 50.0)])
    for estimator in (GeometricMedian(), ORLPCA(n_components=1, batch_size=100)):
        assert estimator.fit(X).score_samples(rows).argmin() == N_ROWS


def test_probabilities_of_the_bent_hinge_are_not_its_decisions():
    estimator = HingeReject().fit(X, Y)
    assert (estimator.predict(X) == (estimator.decision_function(X) > 0)).all()
    assert roc_auc_score(Y, estimator.predict_proba(X)[:, 1]) == pytest.approx(
        roc_auc_score(Y, estimator.decision_function(X))
    )
