"""A labelled stream in whatever form it comes, as blocks of named columns."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import FeatureName, FloatArray
from streamlearn.errors import BadShape, BadValue

WHO = "prequential"


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive events.

    Attributes
    ----------
    names : tuple of str or int
    values : float64[n_events, n_names]
        A feature that an event does not have is 0.
    labels : array [n_events]
    """

    names: tuple[FeatureName, ...]
    values: FloatArray
    labels: NDArray[Any]

    def __len__(self) -> int:
        return len(self.values)

    def rows(self, start: int, stop: int) -> Block:
        """Return some of the events, as views."""
        return Block(self.names, self.values[start:stop], self.labels[start:stop])


def blocks(stream: Any, size: int) -> Iterator[Block]:
    """Cut a stream into blocks of at most `size` events.

    Parameters
    ----------
    stream : (X, y), or iterable of (x, y), or iterable of (X, y)
        x is a mapping or 1-D array, X a 2-D array, a dataframe or a sequence of mappings.
    size : int

    Raises
    ------
    BadValue, BadShape
        A value is not a number; lengths or dimensions do not fit.
    """
    if isinstance(stream, tuple) and len(stream) == 2 and not isinstance(stream[0], tuple):
        stream = (stream,)
    events: list[tuple[Any, Any]] = []
    n_before = 0
    for item in stream:
        x, y = _pair(item)
        if _is_event(x):
            events.append((x, y))
            if len(events) < size:
                continue
        if events:
            yield _block_of_events(events, n_before)
            n_before += len(events)
            events = []
        if not _is_event(x):
            block = _block_of_batch(x, y, n_before)
            n_before += len(block)
            yield from (block.rows(i, i + size) for i in range(0, len(block), size))
    if events:
        yield _block_of_events(events, n_before)


def _pair(item: Any) -> tuple[Any, Any]:
    if not isinstance(item, tuple | list) or len(item) != 2:
        raise BadShape(f"{WHO}: stream must give (x, y) pairs, got {type(item).__name__}")
    return item[0], item[1]


def _is_event(x: Any) -> bool:
    if isinstance(x, np.ndarray):
        return x.ndim == 1
    if isinstance(x, Mapping):
        return True
    return isinstance(x, Sequence) and len(x) > 0 and isinstance(x[0], int | float)


def _block_of_events(events: Sequence[tuple[Any, Any]], n_before: int) -> Block:
    names, values = _columns([x for x, _ in events], n_before)
    return Block(names, values, _labels([y for _, y in events]))


def _block_of_batch(X: Any, y: Any, n_before: int) -> Block:
    names: tuple[FeatureName, ...]
    if isinstance(X, np.ndarray):
        if X.ndim != 2:
            raise BadShape(f"{WHO}: X must be two-dimensional, got shape {X.shape}")
        names, values = tuple(range(X.shape[1])), _array(X, n_before)
    elif isinstance(X, Sequence):
        names, values = _columns(X, n_before)
    else:
        names, values = _frame(X, n_before)
    index, other = getattr(X, "index", None), getattr(y, "index", None)
    if hasattr(index, "equals") and hasattr(other, "equals") and not cast(Any, index).equals(other):
        raise BadShape(f"{WHO}: y must have the index of X, got another")
    labels = _labels(y)
    if len(labels) != len(values):
        raise BadShape(f"{WHO}: y must have one label for each of {len(values)} rows, got {len(labels)}")
    return Block(names, values, labels)


def _columns(rows: Sequence[Any], n_before: int) -> tuple[tuple[FeatureName, ...], FloatArray]:
    """Return the union of the names, in order of appearance, and the values."""
    mappings = [x if isinstance(x, Mapping) else dict(enumerate(x)) for x in rows]
    place = {name: j for j, name in enumerate(dict.fromkeys(chain.from_iterable(mappings)))}
    values = np.zeros((len(rows), len(place)))
    for i, x in enumerate(mappings):
        values[i, [place[name] for name in x]] = _numbers(x, n_before + i)
    return tuple(place), values


def _numbers(x: Mapping[Any, Any], row: int) -> array[float]:
    if _PLAIN.issuperset(map(type, x.values())):
        try:
            return array("d", x.values())
        except OverflowError:
            pass  # an integer past the largest double, refused by name below
    return array("d", [_number(name, value, row) for name, value in x.items()])


_PLAIN = frozenset((float, int, bool, np.float64, np.float32, np.int64))
"""Of these values none but too large integers is refused."""


def _number(name: FeatureName, value: Any, row: int) -> float:
    if not isinstance(value, np.generic) or value.dtype.kind in "biuf":  # numpy's times are no nanoseconds
        try:
            return float(array("d", (value,))[0])  # refuses text, which numpy would convert
        except (TypeError, OverflowError):
            pass
    raise BadValue(f"{WHO}: feature {name!r} must be a finite number, got {value!r} in row {row}")


def _array(X: NDArray[Any], n_before: int) -> FloatArray:
    """Return an array as numbers; numpy would take text, times and masked values for some."""
    masked = np.ma.getmaskarray(X)
    if masked.any():
        row, j = np.argwhere(masked)[0].tolist()
        _number(j, None, n_before + row)
    if X.dtype.kind in "biuf":
        return np.ascontiguousarray(X, np.float64)
    values = np.empty(X.shape)
    for (i, j), value in np.ndenumerate(X):
        values[i, j] = _number(j, value, n_before + i)
    return values


def _frame(X: Any, n_before: int) -> tuple[tuple[FeatureName, ...], FloatArray]:
    import narwhals as nw  # noqa: PLC0415  only those who bring frames pay for the import

    try:
        frame = nw.from_native(X, eager_only=True)
    except TypeError:
        raise BadShape(f"{WHO}: X must be an array, a dataframe or mappings, got {type(X).__name__}") from None
    except ValueError as error:  # what narwhals raises where two columns have one name
        raise BadShape(f"{WHO}: feature names must differ from each other: {error}") from error
    values = np.empty(frame.shape)
    for j, column in enumerate(frame.iter_columns()):
        values[:, j] = _column(column, n_before)
    return tuple(frame.columns), values


def _column(column: Any, n_before: int) -> FloatArray | list[float]:
    import narwhals as nw  # noqa: PLC0415

    if column.dtype == nw.Object:
        return [_number(column.name, value, n_before + i) for i, value in enumerate(column.to_list())]
    if not (column.dtype.is_numeric() or column.dtype == nw.Boolean):
        found = f"{column.dtype} in row {n_before}"
        raise BadValue(f"{WHO}: feature {column.name!r} must be a finite number, got {found}")
    # Where the numbers are numpy's, what narwhals calls null is NaN, which some learners take.
    if not isinstance(getattr(column.to_native(), "dtype", None), np.dtype) and column.null_count():
        _number(column.name, None, n_before + column.is_null().to_list().index(True))
    values: FloatArray = column.cast(nw.Float64).to_numpy()
    return values


def _labels(y: Any) -> NDArray[Any]:
    """Return a one-dimensional array: numeric arrays as they are, everything else as objects of their own types."""
    if isinstance(y, np.ndarray):
        labels = y
    elif hasattr(y, "columns"):
        raise BadShape(f"{WHO}: y must be one-dimensional, got a frame: give its column")
    else:
        native = next((getattr(y, name) for name in ("to_list", "to_pylist") if hasattr(y, name)), None)
        items = list(cast(Iterable[Any], native() if native is not None else y))
        labels = np.empty(len(items), object)
        labels[:] = items
    if labels.ndim != 1:
        raise BadShape(f"{WHO}: y must be one-dimensional, got shape {labels.shape}")
    return labels
