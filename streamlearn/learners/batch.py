"""One batch made ready for a learner, everything checked and nothing changed yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import CodeArray, FeatureName, FloatArray
from streamlearn.errors import TooManyFeatures
from streamlearn.features.frames import number, refuse
from streamlearn.features.vocabulary import Vocabulary, checked_names
from streamlearn.kernels.rows import first_bad_row


@dataclass(frozen=True, slots=True)
class Growth:
    """New features that come in with one row."""

    row: int
    names: tuple[FeatureName, ...]


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows in column order, as they will stand once all their names are known.

    Attributes
    ----------
    values : float64[n_rows, n_final]
        C-contiguous and finite.
    growth : tuple of Growth
        Where the width grows, in order.
    """

    values: FloatArray
    growth: tuple[Growth, ...] = ()

    def __len__(self) -> int:
        return len(self.values)

    def pieces(self, start: int, stop: int) -> Iterator[tuple[int, int, Growth | None]]:
        """Cut rows start ... stop where the width grows: a growing row stands alone, with its Growth."""
        for growth in self.growth:
            if start <= growth.row < stop:
                if start < growth.row:
                    yield start, growth.row, None
                yield growth.row, growth.row + 1, growth
                start = growth.row + 1
        if start < stop:
            yield start, stop, None


def rows_of_columns(
    features: Vocabulary, names: tuple[FeatureName, ...], values: FloatArray, *, check: bool = True
) -> Rows:
    """Return the rows of a block whose columns have names; refuse NaN and infinities."""
    if check:
        refuse_bad(features.who, names, values)
    if features.is_exactly(names):
        return Rows(np.ascontiguousarray(values))
    new = features.unseen(names)
    if not new or not len(values):
        return Rows(features.align(names, values))
    place = {name: k for k, name in enumerate((*features.names, *new))}
    out = np.zeros((len(values), len(place)))
    out[:, [place[name] for name in names]] = values
    return Rows(out, (Growth(0, tuple(new)),))


def rows_of_mappings(features: Vocabulary, X: Sequence[Mapping[Any, Any]]) -> Rows:
    """Return the rows of events whose keys may differ: absent ones are 0, new ones widen from their row on."""
    known = Vocabulary(features.who, features.max_features)
    known.grow(features.names)
    growth = []
    entries: list[tuple[list[int], list[float]]] = []
    for i, x in enumerate(X):
        names = checked_names(features.who, x)
        try:
            new = known.unseen(names)
        except TooManyFeatures as error:
            raise TooManyFeatures(f"{error} in row {i}") from None
        if new:
            growth.append(Growth(i, tuple(new)))
            known.grow(new)
        numbers = [number(features.who, name, i, x[key]) for name, key in zip(names, x, strict=True)]
        entries.append((known.columns(names).tolist(), numbers))
    values = np.zeros((len(X), len(known)))
    for i, (columns, numbers) in enumerate(entries):
        values[i, columns] = numbers
    return Rows(values, tuple(growth))


def refuse_bad(who: str, names: Sequence[FeatureName], values: FloatArray) -> None:
    """Raise BadValue for the first NaN or infinity."""
    rows = np.ascontiguousarray(values)
    bad = first_bad_row(rows)
    if bad >= 0:
        column = int(np.flatnonzero(~np.isfinite(rows[bad]))[0])
        refuse(who, names[column], bad, float(rows[bad, column]))


@dataclass(frozen=True, slots=True)
class Labelled:
    """Labels of a batch as codes, and the row before which the two classes are exchanged."""

    codes: CodeArray
    swap_at: int | None


def halves(n_rows: int, swap_at: int | None) -> tuple[tuple[int, int, bool], ...]:
    """Return (start, stop, exchange first) of the rows before and after the exchange of classes."""
    return ((0, n_rows, False),) if swap_at is None else ((0, swap_at, False), (swap_at, n_rows, True))


def table(negative: Any, positive: Any) -> NDArray[np.object_]:
    """Return the look-up of decisions: 0 negative, 1 positive, -1 abstained."""
    out = np.empty(3, dtype=object)
    out[:] = [negative, positive, None]
    return out
