"""The rows of one stretch of text while they are being decoded, by a kernel or by the careful route."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import FeatureName, FloatArray, IntArray, Label
from streamlearn.kernels.decode import BOOLEAN, DECLINED, INTEGER, NO_LABEL, REAL, TAKEN, TEXT_LABEL
from streamlearn.runtime.decode import (
    CAREFUL,
    EXACT_INTEGER,
    Decoded,
    Event,
    Refusal,
    View,
    homogeneous_labels,
    object_array,
)

REFUSED = 2
"""Status of a row that the careful route refused."""


def kind_of(label: Label | None) -> int:
    """Return the kernels' kind of a label; CAREFUL where only the object will do."""
    if isinstance(label, bool):
        return BOOLEAN
    if isinstance(label, int):
        return INTEGER if abs(label) < EXACT_INTEGER else CAREFUL
    if isinstance(label, float):
        return REAL
    return NO_LABEL if label is None else CAREFUL


class Rows:
    """Room for `limit` rows: what kernels write, and what the careful route adds.

    Parameters
    ----------
    view : View
    limit : int
    n_spans : int
        Spans a row; the kernels leave out those of absent keys.
    """

    def __init__(self, view: View, limit: int, n_spans: int) -> None:
        self.view = view
        self.spans: IntArray = np.full((limit, n_spans, 2), -1, dtype=np.int64)
        self.label_values: FloatArray = np.zeros(limit)
        self.label_kinds: NDArray[np.int8] = np.zeros(limit, dtype=np.int8)
        self.places: IntArray = np.empty((limit, 3), dtype=np.int64)
        self.status: NDArray[np.int8] = np.empty(limit, dtype=np.int8)
        self.events: dict[int, Event] = {}
        self.refusals: list[tuple[int, str, str]] = []

    def raw(self, row: int) -> bytes:
        """Return the record as it came, without its line end."""
        begin, end, _ = self.places[row]
        return self.view.buffer[begin:end]

    def careful(self, row: int, decode: Callable[[bytes, int], Event]) -> Event | None:
        """Send one row through the careful route; None where it was refused."""
        try:
            event = decode(self.raw(row), int(self.places[row, 2]))
        except Refusal as refusal:
            self.refusals.append((row, refusal.kind, refusal.reason))
            self.status[row] = REFUSED
            return None
        self.events[row] = event
        self.label_kinds[row] = kind_of(event.label)
        if self.label_kinds[row] in {BOOLEAN, INTEGER, REAL}:
            self.label_values[row] = event.label
        self.status[row] = TAKEN
        return event

    def decline_bad_labels(self, n_rows: int, span: int, untyped: Callable[[bytes], Label | None]) -> None:
        """Leave the rows whose label's text is refused to the careful route, which says why."""
        for row in np.flatnonzero((self.label_kinds[:n_rows] == TEXT_LABEL) & (self.status[:n_rows] == TAKEN)).tolist():
            begin, end = self.spans[row, span]
            try:
                untyped(self.view.buffer[begin:end])
            except Refusal:
                self.status[row] = DECLINED

    def declined(self, n_rows: int) -> list[int]:
        """Return the rows that wait for the careful route."""
        found: list[int] = np.flatnonzero(self.status[:n_rows] == DECLINED).tolist()
        return found

    def accepted(self, n_rows: int) -> IntArray:
        """Return the rows that are events, ascending."""
        return np.flatnonzero(self.status[:n_rows] == TAKEN)

    def labels(self, accepted: IntArray, span: int, untyped: Callable[[bytes], Label | None] | None) -> NDArray[Any]:
        """Return the labels of the accepted rows.

        Parameters
        ----------
        accepted : int64[n]
        span : int
            Which span is the label's.
        untyped : callable or None
            How a label's text is understood where the source does not mark text as text.
        """
        kinds, values = self.label_kinds[accepted], self.label_values[accepted]
        found = homogeneous_labels(values, kinds)
        if found is not None:
            return found
        buffer, spans = self.view.buffer, self.spans[accepted, span].tolist()
        out: list[Label | None] = []
        for row, kind, value, (begin, end) in zip(
            accepted.tolist(), kinds.tolist(), values.tolist(), spans, strict=True
        ):
            if row in self.events:
                out.append(self.events[row].label)
            elif kind == TEXT_LABEL:
                raw = buffer[begin:end]
                out.append(raw.decode("utf-8") if untyped is None else untyped(raw))
            elif kind == INTEGER:
                out.append(int(buffer[begin:end]))
            else:
                out.append({NO_LABEL: None, REAL: value, BOOLEAN: value == 1.0}[kind])
        return object_array(out)

    def texts(self, accepted: IntArray, span: int, name: str, *, empty_is_missing: bool) -> NDArray[np.object_]:
        """Return one text column of the accepted rows."""
        found = self.view.texts(self.spans[accepted, span])
        if empty_is_missing:
            found = [text or None for text in found]
        for row, event in self.events.items():
            found[int(np.searchsorted(accepted, row))] = event.text.get(name)
        return object_array(found)

    def decoded(
        self,
        accepted: IntArray,
        names: tuple[FeatureName, ...],
        values: FloatArray,
        labels: NDArray[Any],
        text: dict[str, NDArray[np.object_]],
        keys: NDArray[np.object_] | None,
        end: tuple[int, int, int, bool],
    ) -> Decoded:
        """Return the finished rows; `end` is (rows, pos, line, open) as the kernels return them."""
        n_rows, pos, line, is_open = end
        return Decoded(
            names=names,
            values=values,
            labels=labels,
            text=text,
            keys=keys,
            accepted=accepted,
            places=self.places[:n_rows],
            refusals=sorted(self.refusals),
            pos=pos,
            line=line,
            open=is_open,
        )
