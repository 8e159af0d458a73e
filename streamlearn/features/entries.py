"""Rows of few values: where each row's nonzeros begin, their columns and their values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from streamlearn.contracts import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class SparseRows:
    """Rows given by their nonzero values; what is not there is 0.

    Attributes
    ----------
    pointers : int64[n_rows + 1]
        Row i has the entries ``pointers[i]`` to ``pointers[i + 1]``.
    columns : int64[n_entries]
        Ascending in each row, without duplicates.
    values : float64[n_entries]
        Finite and not 0.
    n_columns : int
    """

    pointers: IntArray
    columns: IntArray
    values: FloatArray
    n_columns: int

    def __len__(self) -> int:
        return len(self.pointers) - 1

    def part(self, start: int, stop: int) -> SparseRows:
        """Return rows start ... stop."""
        if start == 0 and stop >= len(self):
            return self
        pointers = self.pointers[start : stop + 1]
        entries = slice(pointers[0], pointers[-1])
        return SparseRows(pointers - pointers[0], self.columns[entries], self.values[entries], self.n_columns)

    def dense(self, n_columns: int) -> FloatArray:
        """Return float64[n_rows, n_columns]; what lies beyond is dropped."""
        out = np.zeros((len(self), max(n_columns, self.n_columns)))
        out[np.repeat(np.arange(len(self)), np.diff(self.pointers)), self.columns] = self.values
        return np.ascontiguousarray(out[:, :n_columns])

    @classmethod
    def interleaved(cls, first: SparseRows, second: SparseRows) -> SparseRows:
        """Return row 0 of the first, row 0 of the second, row 1 of the first, ..."""
        counts = np.stack([np.diff(first.pointers), np.diff(second.pointers)], axis=1).ravel()
        pointers = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        columns, values = np.empty(pointers[-1], dtype=np.int64), np.empty(pointers[-1])
        for start, rows in enumerate((first, second)):
            n = np.diff(rows.pointers)
            places = np.arange(len(rows.columns)) + np.repeat(pointers[start:-1:2] - rows.pointers[:-1], n)
            columns[places], values[places] = rows.columns, rows.values
        return cls(pointers, columns, values, max(first.n_columns, second.n_columns))


def is_sparse(X: Any) -> bool:
    """Tell whether X is a matrix or array of ``scipy.sparse``."""
    return hasattr(X, "tocsr") and hasattr(X, "nnz")
