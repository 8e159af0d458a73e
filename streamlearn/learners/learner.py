"""What every learner shares: parameters, features, state, files."""

from __future__ import annotations

import inspect
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray

from streamlearn import snapshot
from streamlearn.contracts import Document, FeatureName, FloatArray, Snapshot
from streamlearn.errors import BadParameter, BadSnapshot, StreamlearnError, TooManyFeatures
from streamlearn.features.entries import is_sparse
from streamlearn.features.frames import from_many, from_one, is_mappings
from streamlearn.features.vocabulary import Vocabulary, checked_names
from streamlearn.kernels.rows import first_bad_row
from streamlearn.learners.batch import Rows, refuse_bad, rows_of_columns, rows_of_entries, rows_of_mappings
from streamlearn.learners.entries import nonzeros_of, part_of, placed, positions_of, rows_at_a_time

_ARRAY = "array"
_NUMBER = "number"
_TEXTS = ("class", "parameters", "features", "labels")


class Learner(ABC):
    """Base of all learners.

    A subclass stores its keyword-only parameters unchanged under their own names, checks them, and calls
    ``super().__init__()`` last. It keeps its numbers in arrays and gives them to `_arrays` and `_numbers`.

    A learner is not thread-safe: it reuses one row for all events.
    """

    max_features: int
    _cuts_entries: ClassVar[bool] = False
    """True where batches of few values are made dense piece by piece, if at all, and not as a whole."""
    _needs_finite_rows: ClassVar[bool] = True
    """False where the kernels check rows themselves, before they change anything, and return the first bad one."""

    def __init__(self) -> None:
        if not isinstance(self.max_features, int) or self.max_features < 1:
            raise BadParameter(f"{self.name}: max_features must be a whole number >= 1, got {self.max_features!r}")
        self._features = Vocabulary(self.name, self.max_features)
        self._out = np.zeros(1)

    # What a learner must tell

    @abstractmethod
    def _widen(self, n_features: int) -> None:
        """Make room for new columns at the end, as if they had been 0 for ever."""

    @abstractmethod
    def _arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of the state (not copies); their shapes follow from parameters and width."""

    def _set_arrays(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Fill the arrays of the state from saved ones of the same names, dtypes and shapes."""
        for name, mine in self._arrays().items():
            mine[...] = fitting(self.name, name, arrays, mine)

    def _numbers(self) -> Document:
        """Return what of the state is not in arrays, as JSON values."""
        return {}

    def _set_numbers(self, numbers: Document) -> None:
        """Take what `_numbers` gave."""
        if numbers:
            raise BadSnapshot(f"{self.name}: the saved state has unknown numbers {sorted(numbers)}")

    # Parameters

    @property
    def name(self) -> str:
        """The learner's name in reports and files: that of its class."""
        return type(self).__name__

    @property
    def n_features(self) -> int:
        """Number of columns so far."""
        return len(self._features)

    @property
    def feature_names(self) -> tuple[FeatureName, ...]:
        """Names of the columns, in order."""
        return self._features.names

    @classmethod
    def parameter_names(cls) -> tuple[str, ...]:
        """Names of the constructor's parameters."""
        return tuple(p for p in inspect.signature(cls).parameters)

    def params(self) -> dict[str, Any]:
        """Return the parameters as they stand."""
        return {name: getattr(self, name) for name in self.parameter_names()}

    def _saved_params(self) -> dict[str, Any]:
        """Return the parameters as they go into the state: numbers, text or None."""
        return self.params()

    def clone(self, **changes: Any) -> Self:
        """Return an untrained learner with the same parameters but for `changes`."""
        unknown = sorted(set(changes) - set(self.parameter_names()))
        if unknown:
            raise BadParameter(f"{self.name}: parameters must be of {list(self.parameter_names())}, got {unknown}")
        return type(self)(**{**self.params(), **changes})

    def __repr__(self) -> str:
        defaults = {p.name: p.default for p in inspect.signature(type(self)).parameters.values()}
        shown = (f"{name}={value!r}" for name, value in self.params().items() if value != defaults[name])
        return f"{self.name}({', '.join(shown)})"

    # Rows

    @property
    def takes_entries(self) -> bool:
        """Whether rows may come by their nonzeros, in any number of features."""
        return False

    def widen_by(self, names: Sequence[FeatureName]) -> None:
        """Give these names, which have none, columns."""
        if names:
            self._features.grow(names)
            self._widen(self.n_features)

    def _rows(self, X: Any) -> Rows:
        if is_mappings(X):
            return rows_of_mappings(self._features, X)
        if is_sparse(X):
            rows = rows_of_entries(self._features, *positions_of(self._features, X))
            return rows if self._cuts_entries else Rows(rows.values.dense(rows.values.n_columns), rows.growth)
        names, values = from_many(self.name, X)
        return rows_of_columns(self._features, names, values)

    def _one(self, x: Any, hook: Callable[[Any, FloatArray], int]) -> float:
        """Return what the hook writes for one event; names without a column are dropped."""
        row = self._features.row(x)
        if row is None or (self._needs_finite_rows and first_bad_row(row) >= 0) or hook(row, self._out) >= 0:
            hook(self._known_rows(*from_one(self.name, x)), self._out)
        return self._out.item()

    def _known_rows(self, names: tuple[FeatureName, ...], values: FloatArray) -> FloatArray:
        refuse_bad(self.name, names, values)
        self._features.refuse_other_kind(names)
        if self._features.by_entries:
            rows = placed(nonzeros_of(np.ascontiguousarray(values)), self._features.columns(names), self.n_features)
            return cast(FloatArray, rows)  # only for learners whose hooks take them
        return self._features.align(names, values)

    def _outputs(self, X: Any, hook: Callable[[Any, FloatArray], int]) -> FloatArray:
        if is_sparse(X):
            return self._outputs_of_entries(X, hook)
        if is_mappings(X) and self._features.by_entries:
            return np.array([self._one(x, hook) for x in X])
        if is_mappings(X):
            rows = np.concatenate([self._known_rows(*from_one(self.name, x)) for x in X])
        else:
            rows = self._known_rows(*from_many(self.name, X))
        out = np.empty(len(rows))
        hook(rows, out)
        return out

    def begin(self, names: Sequence[FeatureName]) -> None:
        """Give features their columns in this order before anything was learned, as workers need to agree on.

        Parameters
        ----------
        names : sequence of str or int

        Raises
        ------
        BadParameter
            Something was learned already.
        TooManyFeatures
        """
        wanted = checked_names(self.name, names)
        if self.n_features:
            raise BadParameter(f"{self.name}: features must be declared before the first event, got {wanted!r} late")
        if len(wanted) > self.max_features:
            raise TooManyFeatures(
                f"{self.name}: features must be at most max_features={self.max_features}, got {len(wanted)}"
            )
        self._features.grow(wanted)
        self._widen(len(wanted))

    def _outputs_of_entries(self, X: Any, hook: Callable[[Any, FloatArray], int]) -> FloatArray:
        found, _, columns = positions_of(self._features, X)
        rows = placed(found, columns, self.n_features)
        out, step = np.empty(len(rows)), rows_at_a_time(rows, self.takes_entries)
        for start in range(0, len(rows), step):
            part = slice(start, min(start + step, len(rows)))
            hook(part_of(rows, part, self.n_features, self.takes_entries), out[part])
        return out

    # State

    def state(self) -> Snapshot:
        """Return everything as a flat dict of arrays (copies), numbers and text."""
        return {
            "class": self.name,
            "parameters": json.dumps(
                {name: _plain(self.name, name, value) for name, value in self._saved_params().items()}
            ),
            "features": self._features.to_text(),
            "labels": self._labels_text(),
            **snapshot.nest(_NUMBER, self._numbers()),
            **snapshot.nest(_ARRAY, {name: array.copy() for name, array in self._arrays().items()}),
        }

    def _labels_text(self) -> str:
        return ""

    def _take_labels_text(self, text: str) -> None:
        if text:
            raise BadSnapshot(f"{self.name}: the saved state has labels, this learner has none")

    @classmethod
    def from_state(cls, state: Snapshot) -> Self:
        """Return the learner that `state` describes.

        Raises
        ------
        BadSnapshot
            Where it is not a state of this class.
        """
        texts = {name: state.get(name) for name in _TEXTS}
        if not all(isinstance(text, str) for text in texts.values()):
            raise BadSnapshot(f"{cls.__name__}: the saved state must have the texts {list(_TEXTS)}")
        if texts["class"] != cls.__name__:
            raise BadSnapshot(f"{cls.__name__}: the saved state must be of this class, got {texts['class']!r}")
        return cls._build(state)

    @classmethod
    def _build(cls, state: Snapshot, make: Callable[[], Self] | None = None) -> Self:
        try:
            made = cls(**json.loads(state["parameters"])) if make is None else make()
            made._features.from_text(state["features"])
            made._take_labels_text(state["labels"])
            made._widen(made.n_features)
            made._set_numbers(snapshot.below(_NUMBER, state))
            made._set_arrays(snapshot.below(_ARRAY, state))
        except BadSnapshot:
            raise
        except (StreamlearnError, TypeError, ValueError, KeyError) as error:
            raise BadSnapshot(f"{cls.__name__}: the saved state cannot be used: {error}") from error
        return made

    def restore(self, state: Snapshot) -> None:
        """Become exactly what `state` describes, parameters included; untouched where that fails."""
        self.__dict__ = type(self).from_state(state).__dict__

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the whole learner to one file, atomically; `streamlearn.load` reads it."""
        snapshot.write_atomic(path, snapshot.pack("model", *snapshot.split(self.state())))


def fitting(who: str, name: str, arrays: dict[str, NDArray[Any]], like: NDArray[Any]) -> NDArray[Any]:
    """Return the saved array of this name, where dtype and shape are those of `like`."""
    found = arrays.get(name)
    if found is None:
        raise BadSnapshot(f"{who}: the saved state has no array {name!r}")
    if found.dtype != like.dtype or found.shape != like.shape:
        raise BadSnapshot(
            f"{who}: array {name!r} must be {like.dtype}{list(like.shape)}, got {found.dtype}{list(found.shape)}"
        )
    return found


def _plain(who: str, name: str, value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    if value is not None and not isinstance(value, (bool, int, float, str)):
        raise BadSnapshot(f"{who}: parameter {name} must be a number, text or None to be saved, got {value!r}")
    return value
