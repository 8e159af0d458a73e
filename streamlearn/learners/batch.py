"""One batch made ready for a learner, everything checked and nothing changed yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import CodeArray, FeatureName, FloatArray, IntArray
from streamlearn.errors import TooManyFeatures
from streamlearn.features.entries import SparseRows
from streamlearn.features.frames import number, refuse
from streamlearn.features.vocabulary import Vocabulary, checked_names
from streamlearn.kernels.rows import first_bad_row
from streamlearn.learners.entries import births_of, listed, nonzeros_of, placed, rows_at_a_time


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
    values : float64[n_rows, n_final] or SparseRows
        C-contiguous and finite.
    growth : tuple of Growth
        Where the width grows, in order.
    """

    values: Any
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

    def spans(self) -> Iterator[tuple[int, int, Growth | None]]:
        """Cut all rows where the width grows, for learning alone: a growing row begins its piece, with its Growth."""
        start, last = 0, None
        for growth in self.growth:
            if start < growth.row:
                yield start, growth.row, last
            start, last = growth.row, growth
        if start < len(self):
            yield start, len(self), last

    def align(self, features: Vocabulary, names: tuple[FeatureName, ...], values: FloatArray) -> Any:
        """Return other rows in the column order of these; names without a column are dropped."""
        if features.by_entries:
            place = _places(features, self.growth)
            columns = np.array([place.get(name, -1) for name in names], dtype=np.int64)
            return placed(nonzeros_of(np.ascontiguousarray(values)), columns, len(place))
        if not self.growth:
            return features.align(names, values)
        place = _places(features, self.growth)
        if list(names) == list(place):
            return np.ascontiguousarray(values)
        kept = [j for j, name in enumerate(names) if name in place]
        out = np.zeros((len(values), len(place)))
        out[:, [place[names[j]] for j in kept]] = values[:, kept]
        return out


@dataclass(slots=True)
class Forecasts:
    """Where the forecasts of a batch are written, and what else they need.

    Attributes
    ----------
    scores, probabilities : float64[n_rows]
    memo : float64[n_rows, memo_width]
        What the learner wants back with a late label.
    test : float64[n_rows, n_final], SparseRows or None
        The rows to forecast, in column order as they will be, where they are not those to learn.
    late_memo : float64[n_rows, memo_width] or None
        The memo of the rows to learn.
    told : (int, float) or None
        The row whose label exchanges the classes, if one does, and the score it had before. `scores` has that of the
        classes the right way round, as metrics want it.
    """

    scores: FloatArray
    probabilities: FloatArray
    memo: FloatArray
    test: Any = None
    late_memo: FloatArray | None = None
    told: tuple[int, float] | None = None

    @classmethod
    def empty(cls, n_rows: int, memo_width: int) -> Forecasts:
        """Return room for `n_rows` forecasts."""
        return cls(np.empty(n_rows), np.empty(n_rows), np.empty((n_rows, memo_width)))


def rows_of_columns(
    features: Vocabulary, names: tuple[FeatureName, ...], values: FloatArray, *, missing: bool = False
) -> Rows:
    """Return the rows of a block whose columns have names; refuse infinities, and NaN where `missing` is False."""
    refuse_bad(features.who, names, np.where(np.isnan(values), 0.0, values) if missing else values)
    if features.by_entries:
        features.refuse_other_kind(names)
        return rows_of_entries(features, nonzeros_of(np.ascontiguousarray(values)), names, features.columns(names))
    if features.is_exactly(names):
        return Rows(np.ascontiguousarray(values))
    features.refuse_other_kind(names)
    births: dict[int, list[FeatureName]] = {}
    absent = np.flatnonzero(features.columns(names) < 0)
    for j in absent:
        occurs = values[:, j] != 0.0
        if occurs.any():
            births.setdefault(int(occurs.argmax()), []).append(names[j])
    if not births:
        features.remember(names[j] for j in absent)
        return Rows(features.align(names, values))
    growth = _growth(features, births)
    return Rows(Rows(values, growth).align(features, names, values), growth)


def rows_of_entries(features: Vocabulary, found: SparseRows, names: Sequence[FeatureName], columns: IntArray) -> Rows:
    """Return rows of few values by the learner's columns.

    Parameters
    ----------
    features : Vocabulary
    found : SparseRows
    names : sequence [found.n_columns]
    columns : int64[found.n_columns]
        The learner's column of each name, -1 where it has none.
    """
    births = births_of(found, columns, names)
    if not births:
        return Rows(placed(found, columns, len(features)))
    growth = _growth(features, births)
    place = {name: len(features) + k for k, name in enumerate(name for step in growth for name in step.names)}
    columns = columns.copy()
    for j in np.flatnonzero(columns < 0).tolist():
        columns[j] = place.get(names[j], -1)
    return Rows(placed(found, columns, len(features) + len(place)), growth)


def rows_of_mappings(features: Vocabulary, X: Sequence[Mapping[Any, Any]]) -> Rows:
    """Return the rows of events whose keys may differ: absent ones are 0, new ones widen from their row on."""
    events: list[dict[FeatureName, float]] = []
    births: dict[int, list[FeatureName]] = {}
    seen = set(features.names)
    for i, x in enumerate(X):
        names = checked_names(features.who, x)
        features.refuse_other_kind(names)
        event = {name: number(features.who, name, i, x[key]) for name, key in zip(names, x, strict=True)}
        new = [name for name, value in event.items() if value != 0.0 and name not in seen]
        if new:
            births[i] = new
            seen.update(new)
        events.append(event)
    growth = _growth(features, births)
    place = _places(features, growth)
    if features.by_entries:
        return Rows(listed(events, place), growth)
    values = np.zeros((len(X), len(place)))
    for i, event in enumerate(events):
        for name, value in event.items():
            if name in place:
                values[i, place[name]] = value
    return Rows(values, growth)


def _growth(features: Vocabulary, births: Mapping[int, Sequence[FeatureName]]) -> tuple[Growth, ...]:
    """Return the growth row by row, names of one row in their fixed order; refuse what would not fit."""
    growth = []
    room = features.max_features - len(features)
    for row in sorted(births):
        new = features.unseen(births[row])
        room -= len(new)
        if room < 0:
            raise TooManyFeatures(
                f"{features.who}: features must be at most max_features={features.max_features}, "
                f"got one too many with {new[-1]!r} in row {row}"
            )
        growth.append(Growth(row, tuple(new)))
    return tuple(growth)


def _places(features: Vocabulary, growth: Sequence[Growth]) -> dict[FeatureName, int]:
    """Return name -> column as they will be after the growth."""
    names = [*features.names, *(name for step in growth for name in step.names)]
    return {name: k for k, name in enumerate(names)}


def refuse_bad(who: str, names: Sequence[FeatureName], values: FloatArray) -> None:
    """Raise BadValue for the first NaN or infinity."""
    rows = np.ascontiguousarray(values)
    bad = first_bad_row(rows)
    if bad >= 0:
        column = int(np.flatnonzero(~np.isfinite(rows[bad]))[0])
        refuse(who, names[column], bad, float(rows[bad, column]))


class TakesRows(Protocol):
    """A learner, as far as cutting rows for it goes."""

    @property
    def takes_entries(self) -> bool:
        """Whether rows may come by their nonzeros, in any number of features."""
        ...

    def widen_by(self, names: Sequence[FeatureName]) -> None:
        """Give these names columns."""
        ...


@dataclass(frozen=True, slots=True)
class Labelled:
    """Labels of a batch as codes, and the row before which the two classes are exchanged."""

    codes: CodeArray
    swap_at: int | None


def pieces_of(rows: Rows, start: int, stop: int, learner: TakesRows) -> Iterator[tuple[int, int, Growth | None]]:
    """Cut rows start ... stop for a learner, which may change while it learns.

    One that takes entries learns rows of any width at once: what comes in with them is made known before. For others
    the width grows row by row, and few enough rows of few values are made dense at a time.
    """
    while start < stop:
        if learner.takes_entries:
            learner.widen_by([name for step in rows.growth if start <= step.row < stop for name in step.names])
            yield start, stop, None
            return
        most = rows_at_a_time(rows.values, by_entries=False)
        for a, b, growth in rows.pieces(start, min(stop, start + most)):
            yield a, b, growth
            start = b
            if _turned(learner):
                break


def _turned(learner: TakesRows) -> bool:
    """Tell whether a learner has come to take entries; it does so with the width."""
    return learner.takes_entries


def halves(n_rows: int, swap_at: int | None) -> tuple[tuple[int, int, bool], ...]:
    """Return (start, stop, exchange first) of the rows before and after the exchange of classes."""
    return ((0, n_rows, False),) if swap_at is None else ((0, swap_at, False), (swap_at, n_rows, True))


def table(negative: Any, positive: Any) -> NDArray[np.object_]:
    """Return the look-up of decisions: 0 negative, 1 positive, -1 abstained."""
    out = np.empty(3, dtype=object)
    out[:] = [negative, positive, None]
    return out
