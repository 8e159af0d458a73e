"""Feature names and their columns: growing, bounded, the same for any order of the columns.

Names of one event are sorted when they come in for the first time (numbers before text), and appended. So any column
order of the same events gives the same columns, and the same bits in every sum over them.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from streamlearn.contracts import FeatureName, FloatArray, IntArray
from streamlearn.errors import BadShape, BadSnapshot, BadValue, TooManyFeatures


def _order(name: FeatureName) -> tuple[bool, int, str]:
    text = isinstance(name, str)
    return (True, 0, name) if isinstance(name, str) else (text, name, "")


class Vocabulary:
    """Names -> columns, and one reused row.

    Parameters
    ----------
    who : str
        Name for messages.
    max_features : int
        Bound of the width; more raises TooManyFeatures.
    """

    __slots__ = (
        "_buffer",
        "_columns",
        "_get",
        "_names",
        "_pack",
        "_packers",
        "_positional",
        "_row",
        "_scratch",
        "max_features",
        "who",
    )

    def __init__(self, who: str, max_features: int) -> None:
        self.who = who
        self.max_features = max_features
        self._names: list[FeatureName] = []
        self._columns: dict[FeatureName, int] = {}
        self._packers: dict[int, Callable[..., None]] = {}
        self._rebuild()

    def _rebuild(self) -> None:
        n = len(self._names)
        self._buffer: Any = np.zeros(n)
        self._row: FloatArray = self._buffer.reshape(1, n)
        self._scratch: Any = np.zeros(n)
        self._positional = self._names == list(range(n))
        self._pack = struct.Struct(f"{n}d").pack_into
        # itemgetter of one name gives the value itself, not a tuple of one.
        only = self._names[0] if n == 1 else None
        self._get: Callable[[Any], tuple[Any, ...]] = (
            itemgetter(*self._names) if n > 1 else lambda x: (x[only],) if n else ()
        )

    def __len__(self) -> int:
        return len(self._names)

    @property
    def names(self) -> tuple[FeatureName, ...]:
        """Feature names in column order."""
        return tuple(self._names)

    def row(self, x: Any) -> FloatArray | None:
        """Return float64[1, n], reused, for a dict of known names or an array as wide as the model; else None.

        The common case costs one look-up and one conversion a value. ``struct`` takes whatever is a real number and
        nothing else: text that looks like a number is refused, as `numpy.fromiter` would not.
        """
        if type(x) is not dict:
            return self._array_row(x)
        try:
            if len(x) == len(self._names):
                self._pack(self._buffer, 0, *self._get(x))
            else:
                self._scatter(x)
        except (KeyError, struct.error, OverflowError, TypeError):
            return None
        return self._row

    def _array_row(self, x: Any) -> FloatArray | None:
        fits = type(x) is np.ndarray and x.dtype == np.float64 and x.shape == (len(self._names),)
        if not fits or not self._positional:
            return None
        self._buffer[:] = x
        return self._row

    def _scatter(self, x: Mapping[Any, Any]) -> None:
        """Fill the row from a mapping with fewer names than columns; absent ones are 0."""
        columns = self._columns
        n = len(x)
        where = [columns[name] for name in x]
        pack = self._packers.get(n)
        if pack is None:
            pack = self._packers[n] = struct.Struct(f"{n}d").pack_into
        pack(self._scratch, 0, *x.values())
        self._buffer.fill(0.0)
        self._buffer[where] = self._scratch[:n]

    def unseen(self, names: Iterable[FeatureName]) -> list[FeatureName]:
        """Return the names without a column, in the order in which they would be appended.

        Raises
        ------
        TooManyFeatures
            Where they would not fit.
        """
        new = sorted({name for name in names if name not in self._columns}, key=_order)
        if len(self._names) + len(new) > self.max_features:
            raise TooManyFeatures(
                f"{self.who}: features must be at most max_features={self.max_features}, "
                f"got {len(self._names)} known and {len(new)} new ({new[0]!r}, ...)"
            )
        self.refuse_other_kind(new)
        return new

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
        self._rebuild()

    def columns(self, names: Iterable[FeatureName]) -> IntArray:
        """Return the column of each name, -1 where it has none: int64[n_names]."""
        find = self._columns.get
        return np.array([find(name, -1) for name in names], dtype=np.int64)

    def is_exactly(self, names: tuple[FeatureName, ...]) -> bool:
        """Tell whether `names` are the columns, in order."""
        return len(names) == len(self._names) and list(names) == self._names

    def align(self, names: tuple[FeatureName, ...], values: FloatArray) -> FloatArray:
        """Return float64[n_rows, n_columns] in column order: absent names are 0, names without a column are dropped.

        `values` itself comes back where it already fits.
        """
        if self.is_exactly(names):
            return np.ascontiguousarray(values)
        out = np.zeros((len(values), len(self._names)))
        where = self.columns(names)
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
        self.grow(names)


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
