"""Whatever holds features becomes names and numbers, or is refused with feature and row."""

import datetime as dt
import decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from streamlearn.errors import BadShape, BadValue
from streamlearn.features.frames import frame_like, from_many, from_one, labels_of, series_like

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
