"""Feature names and their columns: growing, bounded, the same for any order of the columns.

A name gets its column with its first value that is not 0, since an absent feature counts as 0. Names that come in with
the same event are sorted (numbers before text). So the columns, and with them the bits of every sum over them, depend
on the values of the events alone: not on the order in which features are listed, not on the cut into batches, and not
on whether zeros are written out (dense rows, frames) or left out (sparse rows, one-hot columns of a growing batch).
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from streamlearn.contracts import FeatureName, FloatArray, IntArray
from streamlearn.errors import BadShape, BadSnapshot, BadValue
from streamlearn.features.entries import SparseRows


def _order(name: FeatureName) -> tuple[bool, int, str]:
    text = isinstance(name, str)
    return (True, 0, name) if isinstance(name, str) else (text, name, "")


class Vocabulary:
    """Names -> columns, and one reused row.

    Names that were met with nothing but zeros are remembered as dormant (up to `max_features` of them, no part of the
    state), so that events which carry them still take the fast path.

    Parameters
    ----------
    who : str
        Name for messages.
    max_features : int
        Bound of the width; what would exceed it is refused before anything changes.
    """

    row: Callable[[Any], Any]
    """Return float64[1, n], reused, for a dict of known names or an array as wide as the model; else None.

    By entries: `SparseRows` of one row, for a dict of known names and finite numbers.
    """

    def __init__(self, who: str, max_features: int) -> None:
        self.who = who
        self.max_features = max_features
        self._names: list[FeatureName] = []
        self._columns: dict[FeatureName, int] = {}
        self._dormant: list[FeatureName] = []
        self._by_entries: bool = False
        self._planned: tuple[tuple[FeatureName, ...], IntArray] = ((), np.empty(0, dtype=np.int64))
        self._rebuild()

    @property
    def by_entries(self) -> bool:
        """Whether rows are given by their nonzeros: nothing then costs more than what an event brings."""
        return self._by_entries

    @by_entries.setter
    def by_entries(self, value: bool) -> None:
        if value != self._by_entries:
            self._by_entries = value
            self._dormant = []
            self._rebuild()

    def _rebuild(self) -> None:
        self._of_positions = np.empty(0, dtype=np.int64)
        self._n_placed = 0
        if self._by_entries:
            self._places = self._columns
            self.row = _entries_of(self._columns)
            self._planned = ((), np.empty(0, dtype=np.int64))
            return
        listed = self._names + self._dormant
        self._places = {name: k for k, name in enumerate(listed)}
        self.row = _row_of(self._places, len(self._names))
        self._planned = ((), np.empty(0, dtype=np.int64))

    def __getstate__(self) -> tuple[str, int, list[FeatureName], list[FeatureName], bool]:
        return self.who, self.max_features, list(self._names), list(self._dormant), self._by_entries

    def __setstate__(self, state: tuple[str, int, list[FeatureName], list[FeatureName], bool]) -> None:
        self.who, self.max_features, self._names, self._dormant, self._by_entries = state
        self._columns = {name: k for k, name in enumerate(self._names)}
        self._rebuild()

    def __len__(self) -> int:
        return len(self._names)

    @property
    def names(self) -> tuple[FeatureName, ...]:
        """Feature names in column order."""
        return tuple(self._names)

    def unseen(self, names: Iterable[FeatureName]) -> list[FeatureName]:
        """Return those of the names that have no column, in the order in which they would get one."""
        return sorted({name for name in names if name not in self._columns}, key=_order)

    def refuse_other_kind(self, names: Sequence[FeatureName]) -> None:
        """Raise BadShape where a model that learned by name is given positions, or the other way round."""
        if not names or not self._names or isinstance(self._names[0], str) == isinstance(names[0], str):
            return
        have, got = ("name", "position") if isinstance(self._names[0], str) else ("position", "name")
        raise BadShape(f"{self.who}: features must come by {have}, as learned before, got them by {got} ({names[0]!r})")

    def grow(self, new: Iterable[FeatureName]) -> None:
        """Append columns for names that `unseen` returned."""
        for name in new:
            self._columns[name] = len(self._names)
            self._names.append(name)
        if self._by_entries:
            self._planned = ((), np.empty(0, dtype=np.int64))
            return
        if self._dormant:
            self._dormant = [name for name in self._dormant if name not in self._columns]
        self._rebuild()

    def remember(self, names: Iterable[FeatureName]) -> None:
        """Take note of names met with nothing but zeros, as far as there is room."""
        if self._by_entries:
            return
        dormant = [name for name in names if name not in self._places]
        if dormant and len(self._dormant) + len(dormant) <= self.max_features:
            self._dormant += dormant
            self._rebuild()

    def columns(self, names: tuple[FeatureName, ...]) -> IntArray:
        """Return the column of each name, -1 where it has none: int64[n_names]; kept for the next batch of the like."""
        if names == self._planned[0] and names:
            return self._planned[1]
        find = self._columns.get
        found = np.array([find(name, -1) for name in names], dtype=np.int64)
        self._planned = (names, found)
        return found

    def columns_of_positions(self, n: int) -> IntArray:
        """Return the columns of the names 0 ... n - 1, -1 where one has none: int64[n], a view."""
        known = len(self._of_positions)
        if known < n:
            longer = np.full(max(n, known + known // 8), -1, dtype=np.int64)
            longer[:known] = self._of_positions
            self._of_positions, self._n_placed = longer, 0
        for column in range(self._n_placed, len(self._names)):
            name = self._names[column]
            if isinstance(name, int) and 0 <= name < len(self._of_positions):
                self._of_positions[name] = column
        self._n_placed = len(self._names)
        return self._of_positions[:n]

    def is_exactly(self, names: tuple[FeatureName, ...]) -> bool:
        """Tell whether `names` are the columns, in order."""
        return len(names) == len(self._names) and list(names) == self._names

    def align(self, names: tuple[FeatureName, ...], values: FloatArray) -> FloatArray:
        """Return float64[n_rows, n_columns] in column order: absent names are 0, names without a column are dropped.

        `values` itself comes back where it already fits.
        """
        if self.is_exactly(names):
            return np.ascontiguousarray(values)
        where = self.columns(names)
        if len(names) == len(self._names) and (where >= 0).all():
            source = np.empty(len(names), dtype=np.int64)
            source[where] = np.arange(len(names))
            return np.take(values, source, axis=1)  # a quarter of what writing to ``out[:, where]`` takes
        out = np.zeros((len(values), len(self._names)))
        if (where >= 0).all():
            out[:, where] = values
        else:
            known = where >= 0
            out[:, where[known]] = values[:, known]
        return out

    def to_text(self) -> str:
        """Return the names as JSON text."""
        return json.dumps(self._names, ensure_ascii=True, separators=(",", ":"))

    def from_text(self, text: str) -> None:
        """Take the names that `to_text` wrote."""
        names = json.loads(text)
        if not isinstance(names, list) or not all(type(name) in (str, int) for name in names):
            raise BadSnapshot(f"{self.who}: feature names must be a list of text or whole numbers")
        if len(set(names)) != len(names):
            raise BadSnapshot(f"{self.who}: feature names must differ from each other")
        self._names = []
        self._columns = {}
        self._dormant = []
        self._rebuild()
        self.grow(names)


def _row_of(places: dict[FeatureName, int], n_columns: int) -> Callable[[Any], FloatArray | None]:
    """Return the function from one event to its row.

    The common case costs one look-up and one conversion a value, and the look-ups alone where the values are those of
    the event before (forecast, then learn). A closure, since every attribute it would read of an object is measurable
    here. ``struct`` takes whatever is a real number and nothing else: text that looks like a number is refused, as
    `numpy.fromiter` would not.

    Parameters
    ----------
    places : dict of name to place
        Names with a column, then dormant ones.
    n_columns : int
    """
    n_places = len(places)
    buffer: Any = np.zeros(n_places)
    scratch: Any = np.zeros(n_places)
    row: FloatArray = buffer[:n_columns].reshape(1, n_columns)
    tail = buffer[n_columns:] if n_places > n_columns else None
    positions = _positions(places)
    pack = struct.Struct(f"{n_places}d").pack_into
    packers: dict[int, Callable[..., None]] = {}
    get = _values_of(list(places))
    last: tuple[Any, ...] | None = None
    found: FloatArray | None = None

    def scatter(x: Mapping[Any, Any]) -> None:
        where = [places[name] for name in x]
        n = len(where)
        if n not in packers:
            packers[n] = struct.Struct(f"{n}d").pack_into
        packers[n](scratch, 0, *x.values())
        buffer.fill(0.0)
        buffer[where] = scratch[:n]

    def row_of(x: Any) -> FloatArray | None:
        nonlocal last, found
        try:
            if type(x) is dict and len(x) == n_places:
                values = get(x)
                if values == last:
                    return found
                last = None
                pack(buffer, 0, *values)
                # Dormant names: any() of a few values takes a tenth of what numpy takes to look at an array.
                found = None if n_places > n_columns and any(values[n_columns:]) else row
                last = values
                return found
            last = None
            if type(x) is dict:
                scatter(x)
            elif positions is None or type(x) is not np.ndarray or x.dtype != np.float64 or x.shape != buffer.shape:
                return None
            else:
                x.take(positions, out=buffer, mode="clip")
        except (KeyError, struct.error, OverflowError, TypeError, ValueError):
            return None
        return row if tail is None or not tail.any() else None

    return row_of


def _entries_of(columns: dict[FeatureName, int]) -> Callable[[Any], SparseRows | None]:
    """Return the function from a dict to its nonzeros, in time of its length; `columns` may grow meanwhile."""
    packers: dict[int, struct.Struct] = {}

    def row_of(x: Any) -> SparseRows | None:
        if type(x) is not dict:
            return None
        n = len(x)
        try:
            where = np.array([columns[name] for name in x], dtype=np.int64)
            if n not in packers:
                packers[n] = struct.Struct(f"{n}d")
            values = np.frombuffer(packers[n].pack(*x.values()), dtype=np.float64)
        except (KeyError, struct.error, OverflowError, TypeError, ValueError):
            return None
        if not np.isfinite(values).all():
            return None
        if n and not values.all():
            where, values = where[values != 0.0], values[values != 0.0]
        order = where.argsort()
        pointers = np.array([0, len(where)], dtype=np.int64)
        return SparseRows(pointers, where[order], values[order], len(columns))

    return row_of


def _values_of(names: list[FeatureName]) -> Callable[[Any], tuple[Any, ...]]:
    # itemgetter of one name gives the value itself, not a tuple of one.
    if len(names) > 1:
        return itemgetter(*names)
    return lambda x: tuple(x[name] for name in names)


def _positions(names: Iterable[FeatureName]) -> IntArray | None:
    listed = list(names)
    positional = all(type(name) is int and 0 <= name < len(listed) for name in listed)
    return np.array(listed, dtype=np.int64) if positional else None


def checked_names(who: str, names: Iterable[Any]) -> tuple[FeatureName, ...]:
    """Return the names as str or int; refuse other kinds and duplicates.

    Raises
    ------
    BadValue
        For a name that is neither text nor a whole number.
    BadShape
        For a name that comes twice.
    """
    out: list[FeatureName] = []
    for name in names:
        if isinstance(name, str):
            out.append(str(name))
        elif isinstance(name, (int, np.integer)) and not isinstance(name, (bool, np.bool_)):
            out.append(int(name))
        else:
            raise BadValue(f"{who}: feature names must be text or whole numbers, got {name!r}")
    if len(set(out)) != len(out):
        twice = next(name for k, name in enumerate(out) if name in out[:k])
        raise BadShape(f"{who}: feature names must differ from each other, got {twice!r} twice")
    return tuple(out)
