"""Whatever holds features becomes names and numbers, or is refused with feature and row."""

import datetime as dt
import decimal

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from streamlearn import LogisticReject
from streamlearn.errors import BadShape, BadValue
from streamlearn.features.frames import Columns, frame_like, from_frame, from_many, from_one, labels_of, series_like

NUMERIC = {
    "pandas int8": pd.DataFrame({"a": pd.Series([1, 0], dtype="int8")}),
    "pandas nullable Int64": pd.DataFrame({"a": pd.Series([1, 0], dtype="Int64")}),
    "pandas nullable Float32": pd.DataFrame({"a": pd.Series([1, 0], dtype="Float32")}),
    "pandas nullable boolean": pd.DataFrame({"a": pd.Series([True, False], dtype="boolean")}),
    "pandas bool": pd.DataFrame({"a": [True, False]}),
    "pandas arrow double": pd.DataFrame({"a": pd.Series([1, 0], dtype="double[pyarrow]")}),
    "pandas arrow int": pd.DataFrame({"a": pd.Series([1, 0], dtype="int32[pyarrow]")}),
    "pandas object of numbers": pd.DataFrame({"a": pd.Series([1, np.float32(0)], dtype=object)}),
    "pandas object of decimals": pd.DataFrame({"a": pd.Series([decimal.Decimal(1), 0], dtype=object)}),
    "polars int": pl.DataFrame({"a": [1, 0]}),
    "polars bool": pl.DataFrame({"a": [True, False]}),
    "polars decimal": pl.DataFrame({"a": [decimal.Decimal("1.0"), decimal.Decimal("0.0")]}),
    "arrow table": pa.table({"a": [1.0, 0.0]}),
    "list of dicts": [{"a": 1}, {"a": 0}],
}

REFUSED = {
    "pandas null": pd.DataFrame({"a": pd.Series([1, None], dtype="Int64")}),
    "pandas arrow null": pd.DataFrame({"a": pd.Series([1, None], dtype="double[pyarrow]")}),
    "pandas boolean null": pd.DataFrame({"a": pd.Series([True, None], dtype="boolean")}),
    "pandas text": pd.DataFrame({"a": ["1", "2"]}),
    "pandas categorical": pd.DataFrame({"a": pd.Categorical([1, 2])}),
    "pandas datetime": pd.DataFrame({"a": pd.to_datetime(["2020-01-01", "2020-01-02"])}),
    "pandas zoned datetime": pd.DataFrame({"a": pd.to_datetime(["2020-01-01", "2020-01-02"]).tz_localize("UTC")}),
    "pandas timedelta": pd.DataFrame({"a": pd.to_timedelta([1, 2], unit="s")}),
    "pandas object with text": pd.DataFrame({"a": pd.Series([1, "2"], dtype=object)}),
    "pandas object with None": pd.DataFrame({"a": pd.Series([1, None], dtype=object)}),
    "polars null": pl.DataFrame({"a": [1.0, None]}),
    "polars text": pl.DataFrame({"a": ["1", "2"]}),
    "polars date": pl.DataFrame({"a": [dt.date(2020, 1, 1)] * 2}),
    "polars list": pl.DataFrame({"a": [[1.0], [2.0]]}),
    "arrow null": pa.table({"a": [1.0, None]}),
    "list of dicts": [{"a": 1}, {"a": "0"}],
    "masked array": np.ma.masked_array([[1.0], [2.0]], mask=[[False], [True]]),
    "object array": np.array([[1], [None]], dtype=object),
    "text array": np.array([["1"], ["2"]]),
}


@pytest.mark.parametrize("X", NUMERIC.values(), ids=NUMERIC)
def test_numbers_of_every_kind_are_used(X):
    names, values = from_many("Test", X)
    assert names == ("a",)
    assert values.tolist() == [[1.0], [0.0]]
    assert values.dtype == np.float64


@pytest.mark.parametrize("X", REFUSED.values(), ids=REFUSED)
def test_everything_else_is_refused_with_feature_and_row(X):
    feature = "0" if isinstance(X, np.ndarray) else "'a'"
    with pytest.raises(BadValue, match=rf"Test: feature {feature} must be a finite number, got .* in row [01]"):
        from_many("Test", X)


@pytest.mark.parametrize(
    "X",
    [
        pd.DataFrame([[1.0, 2.0]], columns=["a", "a"]),
        pa.table([[1.0], [2.0]], names=["a", "a"]),
        pd.DataFrame([[1.0, 2.0]], columns=[1, 1]),
    ],
)
def test_duplicate_columns_are_refused(X):
    with pytest.raises(BadShape, match="twice"):
        from_many("Test", X)


@pytest.mark.parametrize("X", [3.0, "text", np.zeros(3), np.zeros((2, 2, 2)), None, pd.Series([1.0])])
def test_other_shapes_are_refused(X):
    with pytest.raises(BadShape, match="Test: X must"):
        from_many("Test", X)


def test_one_event_may_be_a_mapping_a_series_or_an_array():
    for x in ({"a": 1, "b": 2.0}, pd.Series({"a": 1.0, "b": 2.0})):
        names, values = from_one("Test", x)
        assert names == ("a", "b")
        assert values.tolist() == [[1.0, 2.0]]
    for x in (np.array([1, 2]), [1.0, 2.0], (1, 2)):
        names, values = from_one("Test", x)
        assert names == (0, 1)
        assert values.tolist() == [[1.0, 2.0]]
    with pytest.raises(BadShape):
        from_one("Test", 3.0)


def test_labels_come_from_any_column_of_the_right_length():
    X = np.zeros((2, 1))
    for y in (
        [0, 1],
        (0, 1),
        np.array([0, 1]),
        np.array([[0], [1]]),
        pd.Series([0, 1]),
        pl.Series([0, 1]),
        pa.array([0, 1]),
    ):
        assert labels_of("Test", X, y, 2).tolist() == [0, 1]
    masked = np.ma.masked_array([0, 1], mask=[False, True])
    assert labels_of("Test", X, masked, 2).tolist() == [0, None]
    assert labels_of("Test", X, None, 2).tolist() == [None, None]
    for y in ([0], [0, 1, 2], np.zeros((2, 2))):
        with pytest.raises(BadShape):
            labels_of("Test", X, y, 2)


def test_outputs_follow_the_kind_of_the_input():
    values = np.array([1.0, 2.0])
    frame = pd.DataFrame({"a": [5, 6]}, index=[10, 20])
    assert series_like(frame, values, "score").equals(pd.Series(values, index=[10, 20], name="score"))
    assert isinstance(series_like(pl.DataFrame({"a": [1, 2]}), values, "score"), pl.Series)
    assert isinstance(series_like(pa.table({"a": [1, 2]}), values), pa.ChunkedArray)
    assert series_like(np.zeros((2, 1)), values) is values
    both = frame_like(frame, {False: 1 - values, True: values})
    assert list(both.columns) == [False, True]
    assert both.index.tolist() == [10, 20]
    objects = np.array(["yes", None], dtype=object)
    assert series_like(frame, objects, "p").tolist() == ["yes", None]
    counts = series_like(frame, np.array([1, None], dtype=object), "p").tolist()
    assert counts == [1, None]
    assert type(counts[0]) is int
    assert series_like(pl.DataFrame({"a": [1, 2]}), objects, "p").to_list() == ["yes", None]


CATEGORY = pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))
ZONED = pd.ArrowDtype(pa.timestamp("ns", tz="Europe/Berlin"))
MIDNIGHT = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)

# kind of column -> the kind that the message names
NAMED_KINDS = {
    "pandas categorical": (pd.DataFrame({"a": pd.Categorical([1, 2])}), "Categorical"),
    "pandas arrow dictionary": (
        pd.DataFrame({"a": pd.Series(pa.array(["x", "y"]).dictionary_encode(), dtype=CATEGORY)}),
        "Categorical",
    ),
    "pandas arrow zoned": (pd.DataFrame({"a": pd.Series([MIDNIGHT] * 2, dtype=ZONED)}), "Europe/Berlin"),
    "polars categorical": (pl.DataFrame({"a": pl.Series(["x", "y"], dtype=pl.Categorical)}), "Categorical"),
    "polars enum": (pl.DataFrame({"a": pl.Series(["x", "y"], dtype=pl.Enum(["x", "y"]))}), "Enum"),
    "polars zoned": (pl.DataFrame({"a": pl.Series([MIDNIGHT] * 2, dtype=pl.Datetime("us", "UTC"))}), "UTC"),
    "polars struct": (pl.DataFrame({"a": [{"b": 1}, {"b": 2}]}), "Struct"),
    "polars null": (pl.DataFrame({"a": [1, None]}), "Int64"),
    "arrow dictionary": (pa.table({"a": pa.array(["x", "y"]).dictionary_encode()}), "Categorical"),
    "arrow zoned": (pa.table({"a": pa.array([MIDNIGHT] * 2, pa.timestamp("us", tz="UTC"))}), "UTC"),
    "arrow duration": (pa.table({"a": pa.array([1, 2], pa.duration("s"))}), "Duration"),
}


@pytest.mark.parametrize(("X", "kind"), NAMED_KINDS.values(), ids=NAMED_KINDS)
def test_the_kind_of_a_refused_column_is_named(X, kind):
    with pytest.raises(BadValue, match=rf"feature 'a' must be .* in row [01] \(a column of .*{kind}"):
        from_many("Test", X)


FRAMES = {
    "pandas": pd.DataFrame({"b": [1.0, 2.0, 3.0], "a": [True, False, True]}, index=[7, 8, 9]),
    "pandas nullable": pd.DataFrame({"b": [1.0, 2.0, 3.0], "a": [True, False, True]}).convert_dtypes(),
    "pandas arrow": pd.DataFrame({"b": [1.0, 2.0, 3.0], "a": [True, False, True]}).convert_dtypes(
        dtype_backend="pyarrow"
    ),
    "polars": pl.DataFrame({"b": [1.0, 2.0, 3.0], "a": [True, False, True]}),
    "pyarrow": pa.table({"b": [1.0, 2.0, 3.0], "a": [True, False, True]}),
    "narwhals": nw.from_native(pl.DataFrame({"b": [1.0, 2.0, 3.0], "a": [True, False, True]})),
}

LABELS = {
    "list": ["no", "yes", "no"],
    "array": np.array(["no", "yes", "no"]),
    "polars": pl.Series(["no", "yes", "no"]),
    "polars categorical": pl.Series(["no", "yes", "no"], dtype=pl.Categorical),
    "polars frame": pl.DataFrame({"y": ["no", "yes", "no"]}),
    "pyarrow": pa.chunked_array([["no"], ["yes", "no"]]),
    "pyarrow table": pa.table({"y": ["no", "yes", "no"]}),
    "narwhals": nw.from_native(pl.Series(["no", "yes", "no"]), series_only=True),
}


@pytest.mark.parametrize("y", LABELS.values(), ids=LABELS)
@pytest.mark.parametrize("X", FRAMES.values(), ids=FRAMES)
def test_every_frame_meets_every_kind_of_labels_by_position(X, y):
    model = LogisticReject().learn_many(X, y)

    plain = LogisticReject().learn_many(
        [{"b": 1.0, "a": 1.0}, {"b": 2.0, "a": 0.0}, {"b": 3.0, "a": 1.0}], LABELS["list"]
    )
    assert model.score_one({"b": 2.5, "a": 0.5}) == plain.score_one({"b": 2.5, "a": 0.5})
    assert model.label_pair() == ("no", "yes")


@pytest.mark.parametrize("X", FRAMES.values(), ids=FRAMES)
def test_forecasts_come_in_the_kind_of_the_frame(X):
    model = LogisticReject().learn_many(X, ["no", "yes", "no"])

    scores, chances = model.score_many(X), model.predict_proba_many(X)

    assert type(chances) is type(X)
    assert list(nw.from_native(chances).columns) == ["no", "yes"]
    assert type(scores) is type(
        next(nw.from_native(X).iter_columns()) if isinstance(X, nw.DataFrame) else _column_of(X)
    )
    if isinstance(X, pd.DataFrame):
        assert scores.index.equals(X.index)
        assert chances.index.equals(X.index)


def _column_of(X):
    return nw.from_native(X)["b"].to_native()


@pytest.mark.parametrize(
    "y", [pd.Series([0, 1, 0]), pd.Series([0, 1, 0], index=[9, 8, 7]), pd.DataFrame({"y": [0, 1, 0]})], ids=str
)
def test_labels_of_another_index_are_refused(y):
    X = FRAMES["pandas"]
    with pytest.raises(BadShape, match="Test: y must have the index of X"):
        labels_of("Test", X, y, 3)
    assert labels_of("Test", FRAMES["polars"], y, 3).tolist() == [0, 1, 0]  # polars has no index to disagree with
    assert labels_of("Test", X, y.set_axis([7, 8, 9]), 3).tolist() == [0, 1, 0]


@pytest.mark.parametrize("y", [pd.DataFrame({"y": [0], "z": [1]}), pl.DataFrame({"y": [0], "z": [1]})])
def test_labels_of_two_columns_are_refused(y):
    with pytest.raises(BadShape, match="Test: y must be one column, got DataFrame of 2"):
        labels_of("Test", np.zeros((1, 1)), y, 1)


def test_lazy_frames_are_refused_with_what_to_do():
    with pytest.raises(BadShape, match="got LazyFrame: collect it first"):
        from_many("Test", pl.LazyFrame({"a": [1.0]}))


@pytest.mark.parametrize("columns", [[1.0], [None], [("a", "b")], [dt.date(2020, 1, 1)]], ids=str)
def test_column_names_are_text_or_whole_numbers(columns):
    X = pd.DataFrame([[1.0]])
    X.columns = pd.Index(columns, dtype=object, tupleize_cols=False)
    with pytest.raises(BadValue, match="feature names must be text or whole numbers"):
        from_many("Test", X)


def test_named_columns_are_taken_as_they_are():
    block = Columns(("b", "a"), np.array([[1.0, 2.0]]))
    names, values = from_many("Test", block)
    assert names == ("b", "a")
    assert values is block.values
    assert series_like(block, values[0]).tolist() == [1.0, 2.0]
    with pytest.raises(BadShape, match="'a' twice"):
        from_many("Test", Columns(("a", "a"), np.zeros((1, 2))))


@pytest.mark.parametrize(
    "X",
    [
        pd.DataFrame({"a": pd.Series([1, None], dtype="Int64")}),
        pd.DataFrame({"a": pd.Series([1, None], dtype="double[pyarrow]")}),
        pd.DataFrame({"a": pd.Series([decimal.Decimal(1), None], dtype=object)}),
        pl.DataFrame({"a": [1, None]}),
        pl.DataFrame({"a": [decimal.Decimal(1), None]}),
        pa.table({"a": [1.0, None]}),
    ],
    ids=lambda X: str(nw.from_native(X)["a"].dtype),
)
def test_nulls_become_nan_where_missing_values_are_wanted(X):
    _, values = from_frame("Test", X, missing=True)
    assert values[0, 0] == 1.0
    assert np.isnan(values[1, 0])


def test_text_is_refused_where_missing_values_are_wanted():
    with pytest.raises(BadValue, match="got 'x' in row 1"):
        from_frame("Test", pl.DataFrame({"a": [None, "x"]}), missing=True)
    assert np.isnan(from_frame("Test", pl.DataFrame({"a": [None, None]}), missing=True)[1]).all()
