"""From whatever holds features (mappings, arrays, dataframes) to names and numbers, and back.

Everything that is not a finite number is refused with the feature and the row; the finite check itself is made in a
kernel by the learner.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, cast

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import FeatureName, FloatArray
from streamlearn.errors import BadShape, BadValue
from streamlearn.features.entries import is_sparse
from streamlearn.features.vocabulary import checked_names


@dataclass(frozen=True, slots=True)
class Columns:
    """Rows of numbers whose columns have names, for callers that hold neither a frame nor mappings.

    Attributes
    ----------
    names : tuple of str or int
    values : float64[n_rows, n_names]
    """

    names: tuple[FeatureName, ...]
    values: FloatArray

    def __len__(self) -> int:
        return len(self.values)


def refuse(who: str, name: FeatureName, row: int, value: object, where: str = "") -> NoReturn:
    """Raise the one BadValue message."""
    raise BadValue(f"{who}: feature {name!r} must be a finite number, got {value!r} in row {row}{where}")


def number(who: str, name: FeatureName, row: int, value: object) -> float:
    """Return a finite float, or refuse; text is refused even where it looks like a number.

    So are numpy's times and complex numbers, which it would turn into nanoseconds and into their real parts.
    """
    if isinstance(value, np.generic) and value.dtype.kind not in "biuf":
        refuse(who, name, row, value)
    try:
        result = struct.unpack("d", struct.pack("d", value))[0]
    except (struct.error, OverflowError, TypeError):
        refuse(who, name, row, value)
    if not np.isfinite(result):
        refuse(who, name, row, value)
    return float(result)


def from_one(who: str, x: Any) -> tuple[tuple[FeatureName, ...], FloatArray]:
    """Return names and float64[1, n] of one event: a mapping, or a 1-D array whose names are 0, 1, ..."""
    if isinstance(x, Mapping) or hasattr(x, "keys"):
        names = checked_names(who, x.keys())
        return names, np.array([[number(who, name, 0, x[key]) for name, key in zip(names, x.keys(), strict=True)]])
    array = np.asarray(x)
    if array.ndim != 1:
        raise BadShape(f"{who}: x must be a mapping or a 1-D array, got {type(x).__name__} of {array.ndim} dimensions")
    return from_array(who, array.reshape(1, -1))


def from_array(who: str, array: NDArray[Any]) -> tuple[tuple[FeatureName, ...], FloatArray]:
    """Return names 0 ... n-1 and float64[n_rows, n] of a 2-D array."""
    if array.ndim != 2:
        raise BadShape(f"{who}: X must have 2 dimensions, got {array.ndim}")
    names = tuple(range(array.shape[1]))
    if isinstance(array, np.ma.MaskedArray) and np.ma.is_masked(array):
        row, column = np.argwhere(np.ma.getmaskarray(array))[0]
        refuse(who, int(column), int(row), None)
    if array.dtype.kind in "biuf":
        return names, np.ascontiguousarray(array, dtype=np.float64)
    values = np.empty(array.shape)
    for (i, j), value in np.ndenumerate(array):
        values[i, j] = number(who, j, i, value)
    return names, values


def from_many(who: str, X: Any) -> tuple[tuple[FeatureName, ...], FloatArray]:
    """Return names and float64[n_rows, n] of a 2-D array, a dataframe or a sequence of mappings of equal keys."""
    if isinstance(X, np.ndarray):
        return from_array(who, X)
    if isinstance(X, Columns):
        return checked_names(who, X.names), X.values
    if is_mappings(X):
        names = checked_names(who, X[0])
        rows = [[number(who, name, i, x[name]) for name in names] for i, x in enumerate(X)]
        return names, np.array(rows, dtype=np.float64).reshape(len(X), len(names))
    if isinstance(X, Sequence):
        array = np.asarray(X)
        return from_array(who, array if array.size else array.reshape(len(X), -1 if len(X) else 0))
    return from_frame(who, X)


def is_mappings(X: Any) -> bool:
    """Tell whether X is a non-empty sequence of mappings."""
    return isinstance(X, Sequence) and len(X) > 0 and isinstance(X[0], Mapping)


def from_frame(who: str, X: Any, *, missing: bool = False) -> tuple[tuple[FeatureName, ...], FloatArray]:
    """Return names and float64[n_rows, n] of a dataframe.

    Columns of numbers, booleans, decimals and objects that are numbers are used; nulls, categories, text, times and
    nested values are refused.

    Parameters
    ----------
    who : str
    X : dataframe that narwhals knows, in memory
    missing : bool
        NaN in the place of nulls, in place of refusing them.
    """
    frame = _narwhals(who, X)
    names = checked_names(who, frame.columns)
    values = np.empty((frame.shape[0], len(names)))
    for j, (name, column) in enumerate(zip(names, frame.iter_columns(), strict=True)):
        values[:, j] = _column(who, name, column, missing)
    return names, values


def _narwhals(who: str, X: Any) -> Any:
    import narwhals as nw  # noqa: PLC0415 - only those who bring frames pay for the import

    lazy = hasattr(X, "collect")
    raw_names = None if lazy else getattr(X, "column_names", getattr(X, "columns", None))
    if raw_names is not None and not callable(raw_names):
        checked_names(who, raw_names)  # before narwhals, whose message on duplicates does not name us
    try:
        return nw.from_native(X, eager_only=True)
    except TypeError:
        hint = ": collect it first" if lazy else ""
        raise BadShape(
            f"{who}: X must be a 2-D array, a sequence of mappings or a dataframe, got {type(X).__name__}{hint}"
        ) from None


def _column(who: str, name: FeatureName, column: Any, missing: bool) -> FloatArray:
    import narwhals as nw  # noqa: PLC0415

    kind = column.dtype
    null = column.is_null().to_numpy()
    if null.any() and not missing:
        refuse(who, name, int(null.argmax()), None, f" (a column of {kind})")
    if (kind.is_numeric() and not kind.is_decimal()) or kind == nw.Boolean:
        return cast(FloatArray, column.cast(nw.Float64).to_numpy())
    cells = [np.nan if gone else value for gone, value in zip(null.tolist(), column.to_list(), strict=True)]
    if not null.all() and not kind.is_decimal() and kind not in (nw.Object, nw.Unknown):
        first = int(null.argmin())
        refuse(who, name, first, cells[first], f" (a column of {kind})")
    return np.array([np.nan if gone else number(who, name, i, cells[i]) for i, gone in enumerate(null.tolist())])


def refuse_other_index(who: str, X: Any, y: Any) -> None:
    """Raise BadShape where X and y both have an index and these differ; else rows are meant by position."""
    index, other = getattr(X, "index", None), getattr(y, "index", None)
    if hasattr(index, "equals") and hasattr(other, "equals") and not cast(Any, index).equals(other):
        raise BadShape(f"{who}: y must have the index of X, got another")


def labels_of(who: str, X: Any, y: Any, n_rows: int) -> NDArray[Any]:
    """Return the labels as a 1-D array with one entry a row; None means all unlabelled.

    Raises
    ------
    BadShape
        Where the lengths differ, or X and y are pandas objects with different indexes.
    """
    if y is None:
        return np.full(n_rows, None, dtype=object)
    refuse_other_index(who, X, y)
    if isinstance(y, np.ma.MaskedArray):
        filled = np.asarray(y).astype(object)
        filled[np.ma.getmaskarray(y)] = None
        y = filled
    array = y if isinstance(y, np.ndarray) else _as_objects(_only_column(who, y))
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1 or len(array) != n_rows:
        raise BadShape(f"{who}: y must have one entry a row, got shape {array.shape} for {n_rows} rows")
    return array


def _only_column(who: str, y: Any) -> Any:
    """Return the column of a frame of one; iterating over a frame would give names or columns, not labels."""
    if not hasattr(y, "columns"):
        return y
    import narwhals as nw  # noqa: PLC0415

    frame = nw.from_native(y, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame) or frame.shape[1] != 1:
        raise BadShape(f"{who}: y must be one column, got {type(y).__name__} of {len(frame.columns)}")
    return next(frame.iter_columns())


def _as_objects(y: Any) -> NDArray[np.object_]:
    items: Iterable[Any] = y.to_list() if hasattr(y, "to_list") else y.to_pylist() if hasattr(y, "to_pylist") else y
    items = list(items)
    out = np.empty(len(items), dtype=object)
    out[:] = items
    return out


def series_like(X: Any, values: NDArray[Any], name: str | None = None) -> Any:
    """Return `values` in the kind that X is: an array for arrays, else a series with X's index."""
    if isinstance(X, (np.ndarray, Sequence, Columns)) or is_sparse(X):
        return values
    import narwhals as nw  # noqa: PLC0415

    frame = nw.from_native(X, eager_only=True)
    data = values.tolist() if values.dtype == object else values
    # pandas would turn None beside numbers or text into NaN, and whole numbers beside it into floats.
    kind = nw.Object() if values.dtype == object and hasattr(X, "index") else None
    series = nw.new_series(name or "", data, kind, backend=nw.get_native_namespace(frame))
    if frame is X:
        return series
    native = series.to_native()
    if hasattr(X, "index"):
        native.index = X.index
        native.name = name
    return native


def frame_like(X: Any, columns: Mapping[Any, NDArray[Any]]) -> Any:
    """Return equal-length columns in the kind that X is: a 2-D array for arrays, else a dataframe with X's index."""
    if isinstance(X, (np.ndarray, Sequence, Columns)) or is_sparse(X):
        n_rows = X.shape[0] if is_sparse(X) else len(X)
        return np.column_stack(list(columns.values())) if columns else np.empty((n_rows, 0))
    import narwhals as nw  # noqa: PLC0415

    frame = nw.from_native(X, eager_only=True)
    named = {str(name): values for name, values in columns.items()}
    made = nw.from_dict(named, backend=nw.get_native_namespace(frame))
    if frame is X:
        return made
    native = made.to_native()
    if hasattr(X, "index"):
        native.columns = list(columns)
        native.index = X.index
    return native
