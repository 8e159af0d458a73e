"""Text to numbers: growing one-hot columns with a cap, or hashed columns. Never a silent number.

A category gets its own column when it is met for the first time, in the order of the events, so that the outcome does
not depend on the cut into batches.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import Batch, FeatureName, FloatArray, Snapshot
from streamlearn.errors import BadParameter, BadShape, BadSnapshot

Encoding = Literal["onehot", "hash"]

OTHER = "(other)"
"""The column of the categories past the cap is called ``name=(other)``."""


class Vectoriser:
    """Turns the text columns of batches into numeric ones.

    Parameters
    ----------
    encoding : "onehot" or "hash"
        ``onehot``: a column ``name=value`` a category, the first `max_categories` of each feature; later ones share
        ``name=(other)``. ``hash``: `n_buckets` columns ``name#k`` a feature, the bucket from CRC-32 of the text.
    max_categories : int
        Cap of one-hot columns a feature.
    n_buckets : int
        Number of hashed columns a feature.

    Notes
    -----
    A missing text (None) sets no column. State: the categories in the order in which they came.
    """

    def __init__(self, *, encoding: Encoding = "onehot", max_categories: int = 200, n_buckets: int = 64) -> None:
        if encoding not in ("onehot", "hash"):
            raise BadParameter(f"Vectoriser: encoding must be 'onehot' or 'hash', got {encoding!r}")
        for name, value in (("max_categories", max_categories), ("n_buckets", n_buckets)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise BadParameter(f"Vectoriser: {name} must be a whole number >= 1, got {value!r}")
        self.encoding: Encoding = encoding
        self.max_categories = max_categories
        self.n_buckets = n_buckets
        self._found: dict[str, dict[str, int]] = {}

    def columns(self, batch: Batch) -> tuple[tuple[FeatureName, ...], FloatArray]:
        """Return names and float64[n_events, n_names] of a batch, text columns encoded.

        Raises
        ------
        BadShape
            Where an encoded column has the name of a numeric one.
        """
        return self.encode(batch.names, batch.values, batch.text)

    def encode(
        self, names: tuple[FeatureName, ...], values: FloatArray, text: Mapping[str, NDArray[np.object_]]
    ) -> tuple[tuple[FeatureName, ...], FloatArray]:
        """Return names and values with the columns of `text` encoded and appended, features in sorted order."""
        if not text:
            return names, values
        blocks = [self._encode(name, text[name]) for name in sorted(text)]
        out = np.zeros((len(values), len(names) + sum(len(columns) for columns, _ in blocks)))
        out[:, : len(names)] = values
        all_names = list(names)
        for columns, codes in blocks:
            set_rows = np.flatnonzero(codes >= 0)
            out[set_rows, len(all_names) + codes[set_rows]] = 1.0
            all_names += columns
        if len(set(all_names)) != len(all_names):
            twice = next(name for k, name in enumerate(all_names) if name in all_names[:k])
            raise BadShape(f"Vectoriser: an encoded column must have a name of its own, got {twice!r} twice")
        return tuple(all_names), out

    def _encode(self, name: str, column: NDArray[np.object_]) -> tuple[list[str], NDArray[np.int64]]:
        if self.encoding == "hash":
            buckets = [-1 if v is None else zlib.crc32(str(v).encode()) % self.n_buckets for v in column]
            return [f"{name}#{k}" for k in range(self.n_buckets)], np.array(buckets, dtype=np.int64)
        found = self._found.setdefault(name, {})
        cap = self.max_categories
        codes = np.empty(len(column), dtype=np.int64)
        for i, value in enumerate(column):
            if value is None:
                codes[i] = -1
                continue
            code = found.get(value)
            if code is None:
                code = cap if len(found) >= cap else found.setdefault(str(value), len(found))
            codes[i] = code
        columns = [f"{name}={value}" for value in found]
        codes[codes == cap] = len(columns)
        return [*columns, f"{name}={OTHER}"], codes

    def state(self) -> Snapshot:
        """Return encoding, bounds and the categories found."""
        return {
            "encoding": self.encoding,
            "max_categories": self.max_categories,
            "n_buckets": self.n_buckets,
            "found": json.dumps({name: list(values) for name, values in self._found.items()}),
        }

    def restore(self, state: Snapshot) -> None:
        """Become what `state` describes.

        Raises
        ------
        BadSnapshot
            Where it is not a state of a vectoriser.
        """
        try:
            made = Vectoriser(**{key: state[key] for key in ("encoding", "max_categories", "n_buckets")})
            found: dict[str, list[Any]] = json.loads(state["found"])
            made._found = {name: {str(v): k for k, v in enumerate(values)} for name, values in found.items()}
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            raise BadSnapshot(f"Vectoriser: the saved state cannot be used: {error}") from error
        self.__dict__ = made.__dict__
