"""Two labels of any kind, and which of them is the positive one.

The positive label is the one named by ``positive=``, else True or 1, else the greater of the two. Until the second
label was seen the greater one may be unknown: the first then counts as negative for the time being, and the learner's
classes are exchanged exactly when it turns out to be the positive one.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import CodeArray, Label, is_missing
from streamlearn.errors import BadLabel, BadParameter, BadSnapshot

POSITIVE, NEGATIVE, UNLABELLED = 1, 0, -1

_NUMPY = {
    np.dtype(name).type.__name__: np.dtype(name).type
    for name in ("bool", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8")
}
_PYTHON: dict[str, type] = {"bool": bool, "int": int, "float": float, "str": str}


def checked_label(who: str, y: Any) -> Label:
    """Return y where it is a bool, number, text or numpy scalar of these; refuse other kinds."""
    if isinstance(y, str):
        return str(y)
    if isinstance(y, (bool, int, float)) and type(y) in (bool, int, float):
        return y
    if isinstance(y, (np.bool_, np.integer, np.floating)) and type(y).__name__ in _NUMPY:
        return y  # type: ignore[return-value]  # numpy scalars behave as the Python number they hold
    raise BadLabel(f"{who}: a label must be a bool, number or text, got {y!r} of {type(y).__name__}")


@dataclass(slots=True)
class LabelPair:
    """The labels seen so far.

    Attributes
    ----------
    who : str
        Name for messages.
    wanted : bool, int, float, str or None
        The label named as positive by the user.
    negative, positive : label or None
        As first seen, in the caller's own type.
    """

    who: str
    wanted: Label | None = None
    negative: Label | None = None
    positive: Label | None = None
    _codes: dict[Any, int] | None = None

    def __post_init__(self) -> None:
        if self.wanted is not None:
            try:
                checked_label(self.who, self.wanted)
            except BadLabel:
                raise BadParameter(f"{self.who}: positive must be a label, got {self.wanted!r}") from None
        self._index()

    def _index(self) -> None:
        codes: dict[Any, int] = {None: UNLABELLED}
        if self.negative is not None:
            codes[self.negative] = NEGATIVE
        if self.positive is not None:
            codes[self.positive] = POSITIVE
        self._codes = codes

    @property
    def complete(self) -> bool:
        """Both labels were seen."""
        return self.negative is not None and self.positive is not None

    def copy(self) -> LabelPair:
        """Return an independent pair with the same labels."""
        return LabelPair(self.who, self.wanted, self.negative, self.positive)

    def code(self, y: Any) -> int:
        """Return 1, 0 or -1 for a label that is known; -2 where `take` has to look at it."""
        try:
            return self._codes.get(y, -2)  # type: ignore[union-attr]  # filled in __post_init__
        except TypeError:
            return -2

    def take(self, y: Any) -> tuple[int, bool]:
        """Register one label; return its code, and whether the two classes have to be exchanged first.

        Raises
        ------
        BadLabel
            For a third label, or one that cannot be compared with the first.
        """
        if is_missing(y):
            return UNLABELLED, False
        label = checked_label(self.who, y)
        known = self.code(label)
        if known != -2:
            return known, False
        if self.complete:
            raise self._third_label(f"{_shown(self.negative)} or {_shown(self.positive)}", y)
        swap = False
        first = self.positive if self.negative is None else self.negative
        if first is not None and isinstance(first, str) != isinstance(label, str):
            raise BadLabel(f"{self.who}: labels must be both text or both numbers, got {first!r} and {label!r}")
        if self._is_positive(label, first):
            if self.positive is not None:
                raise self._third_label(f"{_shown(self.wanted)} and one other", y)
            self.positive = label
        elif self.negative is None:
            self.negative = label
        elif self.wanted is not None:
            raise self._third_label(f"{_shown(self.negative)} or {_shown(self.wanted)}", y)
        else:  # the first one was taken for the negative and is the greater
            self.negative, self.positive, swap = label, self.negative, True
        self._index()
        return self.code(label), swap

    def _third_label(self, allowed: str, y: Any) -> BadLabel:
        return BadLabel(f"{self.who}: labels must be {allowed}, got a third: {_shown(y)}")

    def _is_positive(self, label: Label, first: Label | None) -> bool:
        if self.wanted is not None:
            return bool(label == self.wanted)
        if label == 1:
            return True
        if first is None or self.negative is None:
            return False
        return bool(label > first)  # type: ignore[operator]  # both text or both numbers

    def take_many(self, labels: NDArray[Any]) -> tuple[CodeArray, int | None]:
        """Register an array of labels in order.

        Returns
        -------
        codes : int8[n]
        swap_at : int or None
            The row before which the classes have to be exchanged; codes of earlier rows are as before the exchange.
        """
        n = len(labels)
        codes = np.empty(n, dtype=np.int8)
        swap_at = None
        start = 0
        items = labels if labels.dtype.kind != "U" else labels.astype(object)
        while start < n and not self.complete:
            codes[start], swap = self.take(items[start])
            swap_at = start if swap else swap_at
            start += 1
        codes[start:] = self._encode(items[start:])
        return codes, swap_at

    def _encode(self, labels: NDArray[Any]) -> CodeArray:
        codes = np.full(len(labels), -2, dtype=np.int8)
        if labels.dtype.kind in "biuf" and isinstance(self.negative, str):
            self._third(labels, codes)
        elif labels.dtype.kind in "biuf":
            codes[labels == self.negative] = NEGATIVE
            codes[labels == self.positive] = POSITIVE
        else:
            codes[:] = [self.code(y) for y in labels]
        if (codes == -2).any():
            self._third(labels, codes)
        return codes

    def _third(self, labels: NDArray[Any], codes: CodeArray) -> None:
        for i in np.flatnonzero(codes == -2):
            codes[i], _ = self.take(labels[i])

    def to_text(self) -> str:
        """Return the labels and their types as JSON text."""
        return json.dumps([_typed(self.negative), _typed(self.positive)])

    def from_text(self, text: str) -> None:
        """Take the labels that `to_text` wrote."""
        try:
            self.negative, self.positive = (_untyped(item) for item in json.loads(text))
        except (ValueError, TypeError, KeyError) as error:
            raise BadSnapshot(f"{self.who}: labels of the saved state cannot be read ({error})") from error
        self._index()


def _shown(y: Any) -> str:
    return repr(y.item() if isinstance(y, np.generic) else y)


def _typed(label: Label | None) -> list[Any] | None:
    if label is None:
        return None
    return [type(label).__name__, label.item() if isinstance(label, np.generic) else label]


def _untyped(item: Any) -> Label | None:
    if item is None:
        return None
    kind, value = item
    numpy = type(kind) is str and kind not in _PYTHON
    plain = type(value)
    if plain not in _PYTHON.values():
        raise ValueError(f"a label must be a bool, number or text, got {value!r}")
    made = _NUMPY[kind](value) if numpy else _PYTHON[kind](value)
    if made != value or (not numpy and type(made) is not plain):
        raise ValueError(f"a label of type {kind} cannot be {value!r}")
    return made  # type: ignore[no-any-return]


def checked_reject_cost(who: str, reject_cost: float) -> float:
    """Return a cost in (0, 0.5], or raise BadParameter."""
    if isinstance(reject_cost, bool) or not isinstance(reject_cost, (int, float)) or not 0 < reject_cost <= 0.5:
        raise BadParameter(f"{who}: reject_cost must be in (0, 0.5], got {reject_cost!r}")
    return reject_cost
