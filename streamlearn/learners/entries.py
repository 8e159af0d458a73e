"""Rows of few values on their way to a learner: by the learner's columns, in order, and dense where it wants that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from streamlearn.contracts import FeatureName, FloatArray, IntArray
from streamlearn.features.entries import SparseRows
from streamlearn.features.sparse import from_sparse
from streamlearn.features.vocabulary import Vocabulary
from streamlearn.kernels.rows import count_nonzeros, list_nonzeros, sort_entries

MAX_CELLS = 1 << 22
"""Most cells of rows that are made dense at a time (32 MiB)."""


def nonzeros_of(X: FloatArray) -> SparseRows:
    """Return dense, finite rows by their nonzeros."""
    pointers = np.empty(len(X) + 1, dtype=np.int64)
    count_nonzeros(X, pointers)
    columns, values = np.empty(pointers[-1], dtype=np.int64), np.empty(pointers[-1])
    list_nonzeros(X, columns, values)
    return SparseRows(pointers, columns, values, X.shape[1])


def part_of(values: FloatArray | SparseRows, part: slice, n_features: int, by_entries: bool) -> Any:
    """Return some consecutive rows as a learner of this width wants them: by entries, or float64[n, n_features]."""
    if isinstance(values, SparseRows):
        rows = values.part(part.start, part.stop)
        return rows if by_entries else rows.dense(n_features)
    return np.ascontiguousarray(values[part, :n_features])


def rows_at_a_time(values: FloatArray | SparseRows, by_entries: bool) -> int:
    """Return how many rows go to a learner in one piece, so that no more than MAX_CELLS are made dense."""
    if by_entries or not isinstance(values, SparseRows):
        return max(len(values), 1)
    return max(MAX_CELLS // max(values.n_columns, 1), 1)


def positions_of(features: Vocabulary, X: Any) -> tuple[SparseRows, range, IntArray]:
    """Return the rows of a sparse matrix, the names of its columns, and their columns in the learner."""
    found = from_sparse(features.who, X)
    names = range(found.n_columns)
    features.refuse_other_kind(names)
    return found, names, features.columns_of_positions(found.n_columns)


def placed(found: SparseRows, columns: IntArray, n_columns: int) -> SparseRows:
    """Return rows by other columns, those whose entry in int64[found.n_columns] is -1 left out."""
    where, values = columns[found.columns], found.values
    known, pointers = where >= 0, found.pointers
    if known.all():
        values = values.copy()
    else:
        pointers = np.concatenate([[0], np.cumsum(known)]).astype(np.int64)[pointers]
        where, values = where[known], values[known]
    sort_entries(pointers, where, values)
    return SparseRows(pointers, where, values, n_columns)


def births_of(found: SparseRows, columns: IntArray, names: Sequence[FeatureName]) -> dict[int, list[FeatureName]]:
    """Return for each row that is the first with a name that has no column: those names."""
    absent = np.flatnonzero(columns[found.columns] < 0)
    births: dict[int, list[FeatureName]] = {}
    if not len(absent):
        return births
    first = np.full(found.n_columns, -1, dtype=np.int64)
    first[found.columns[absent[::-1]]] = absent[::-1]  # of several entries of one column the last assigned stays
    new = np.flatnonzero(first >= 0)
    rows = np.searchsorted(found.pointers, first[new], side="right") - 1
    for column, row in zip(new.tolist(), rows.tolist(), strict=True):
        births.setdefault(row, []).append(names[column])
    return births


def listed(events: Iterable[Mapping[FeatureName, float]], place: Mapping[FeatureName, int]) -> SparseRows:
    """Return events as rows; names without a place, which have no value but 0, are left out."""
    counts, columns, values = [0], [], []
    for event in events:
        known = sorted((place[name], value) for name, value in event.items() if value != 0.0)
        counts.append(counts[-1] + len(known))
        columns += [column for column, _ in known]
        values += [value for _, value in known]
    pointers = np.array(counts, dtype=np.int64)
    return SparseRows(pointers, np.array(columns, dtype=np.int64), np.array(values, dtype=np.float64), len(place))
