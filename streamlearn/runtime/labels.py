"""Labels that come by key from an input of their own: minutes or weeks later, in any order, twice, early, or never.

An event is forecast when it comes, and waits in a table with its features and forecasts. When its label comes, the
forecasts made then are measured and the event is learned, once. All learning happens between two turns of the inputs
(see `streamlearn.runtime.turns`): a turn of events is only forecast; at its end those whose label was there before them
are learned, then those that have waited too long, without label; a turn of labels is only learned. So the result does
not depend on batches.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from operator import attrgetter
from typing import Any

import numpy as np

from streamlearn.contracts import Batch, FeatureName, FloatArray, IntArray, PredictionRows, Rejected, Snapshot, Tested
from streamlearn.evaluation.blocks import Block
from streamlearn.evaluation.forecasts import Forecast, put_together
from streamlearn.features.categories import Vectoriser
from streamlearn.runtime.due import LABELS, times_of
from streamlearn.runtime.label_rules import Patience
from streamlearn.runtime.loop import bad_events, prediction_rows
from streamlearn.runtime.screen import Screened, screen
from streamlearn.runtime.tracks import Track
from streamlearn.runtime.turn_batch import TurnBatch
from streamlearn.runtime.waiting import EVENT, EXPIRED, LABEL, MATCHED, Entry, Known, WaitingTable

N_FIXED = 6
"""Doubles a learner keeps of each event before its memo: generation, made at, score, P(positive), decision, label."""

NOWHERE = -1
"""Record number of a dead letter that belongs to no record of the batch it came with."""


@dataclass(slots=True)
class LabelCounts:
    """What became of events and labels.

    Attributes
    ----------
    matched : int
        Events that were learned with their label.
    early : int
        Labels that came before their event.
    expired : int
        Events that have waited too long.
    late : int
        Labels whose event had expired.
    unknown : int
        Labels that have waited too long for an event.
    duplicate : int
        Labels of an event, or for a key, that had one already.
    repeated : int
        Events with a key that was there before: forecast, but not learned.
    records : int
        Records of the labels' input.
    refused : int
        Events that came before and that no learner could learn at the end of a turn, although it could forecast them.
    """

    matched: int = 0
    early: int = 0
    expired: int = 0
    late: int = 0
    unknown: int = 0
    duplicate: int = 0
    repeated: int = 0
    records: int = 0
    refused: int = 0


class LateLabels:
    """Forecasts events, keeps them, and learns them when their labels come.

    Parameters
    ----------
    tracks : sequence of Track
    vectoriser : Vectoriser
    table : WaitingTable
    patience : Patience
    """

    def __init__(
        self, tracks: Sequence[Track], vectoriser: Vectoriser, table: WaitingTable, patience: Patience
    ) -> None:
        self.tracks, self.vectoriser, self.table, self.patience = tracks, vectoriser, table, patience
        self.counts = LabelCounts()
        self._clock = -np.inf
        self._heard_until = -np.inf  # all labels that were due by then have had their turn
        self._n_events = 0
        self._answered: list[tuple[int, str]] = []  # events of this turn whose label was there first, and the label
        self._names: list[Any] = []  # labels that were predicted

    @property
    def waiting(self) -> int:
        """How many events wait for their label."""
        return self.table.waiting[EVENT]

    @property
    def n_not_events(self) -> int:
        """How much of what the loop counts was no event that came."""
        return self.counts.records + self.counts.refused

    def take(self, batch: Batch, lead: int) -> tuple[PredictionRows | None, list[Rejected]]:
        """Take a batch of either input.

        Parameters
        ----------
        batch : Batch
            A `TurnBatch`.
        lead : int
            The learner whose predictions go out.

        Returns
        -------
        PredictionRows or None
            Of the events of the batch.
        list of Rejected
        """
        assert isinstance(batch, TurnBatch)  # noqa: S101  a job with late labels reads in turns
        self.table.records += len(batch) + len(batch.rejected)
        if batch.are_labels:
            self.counts.records += len(batch) + len(batch.rejected)
            return None, self._take_labels(batch)
        rows, rejected = self._take_events(batch, lead)
        return rows, rejected + (self._end_turn() if batch.ends_turn else [])

    # -- events --------------------------------------------------------------------------------------------------------
    def _take_events(self, batch: Batch, lead: int) -> tuple[PredictionRows | None, list[Rejected]]:
        if not len(batch):
            return None, list(batch.rejected)
        clocks = self._clocks(batch)
        names, values = self.vectoriser.columns(self._without_time(batch))
        none = np.full(len(batch), None)
        screened = _keyed(batch, screen(self.tracks, names, values, none))
        good = screened.good
        rejected = bad_events(batch, screened)
        if not len(good):
            return None, rejected
        block = Block(names, values[good], none[good])
        forecasts = [track.forecast(block) for track in self.tracks]
        self._wait(_keys(batch, good), clocks[good], block, forecasts)
        return prediction_rows(batch, good, forecasts[lead].tested), rejected

    def _clocks(self, batch: Batch) -> FloatArray:
        """Return the time of each event, which never goes back: in the unit of the timeout, else as its column says."""
        if self.patience.time is None or self.patience.timeout_events is not None:
            clocks = np.arange(self._n_events, self._n_events + len(batch), dtype=np.float64)
        else:
            times = times_of(batch, self.patience.time, self._clock)
            clocks = np.maximum(np.maximum.accumulate(times), self._clock)
        self._n_events += len(batch)
        self._clock = float(clocks[-1])
        return clocks

    def _without_time(self, batch: Batch) -> Batch:
        if self.patience.time is None:
            return batch
        kept = [k for k, name in enumerate(batch.names) if name != self.patience.time]
        names = tuple(batch.names[k] for k in kept)
        return replace(batch, names=names, values=np.ascontiguousarray(batch.values[:, kept]))

    def _wait(self, keys: list[str], clocks: FloatArray, block: Block, forecasts: list[Forecast]) -> None:
        known = self.table.look_up(keys)
        numbers = np.hstack([*(self._numbers(index, made) for index, made in enumerate(forecasts)), block.values])
        data, width = np.ascontiguousarray(numbers).tobytes(), 8 * numbers.shape[1]
        form = self.table.form(json.dumps([[made.memo.shape[1] for made in forecasts], list(block.names)]))
        new: list[Entry] = []
        answered: list[tuple[int, int, int]] = []
        answers: list[tuple[int, int]] = []
        for row, (key, clock) in enumerate(zip(keys, clocks.tolist(), strict=True)):
            op = self.table.next_op()
            before = self.table.remembered(known.get(key), op)
            if before is not None and not (before.kind == LABEL and before.how != MATCHED):
                self.counts.repeated += 1
                continue
            if before is not None and before.how is None:
                answered.append((before.op, LABEL, op))
                answers.append((op, before.op))
            new.append(Entry(op, EVENT, key, clock, form, data[row * width : (row + 1) * width]))
            known[key] = Known(op, EVENT)
        self.table.add(new)
        labels = self.table.fetch([label for _, label in answers])
        self._answered += [(op, entry.payload.decode()) for (op, _), entry in zip(answers, labels, strict=True)]
        self.table.settle(answered, MATCHED)

    def _numbers(self, index: int, made: Forecast) -> FloatArray:
        """Return what one learner keeps of each event, float64[n_events, N_FIXED + memo_width]."""
        n, tested = len(made), made.tested
        named = np.full(n, -1.0)
        for row, label in enumerate(tested.predictions.tolist()):
            if label is not None:
                if label not in self._names:
                    self._names.append(label)
                named[row] = self._names.index(label)
        generation = np.full(n, float(self.tracks[index].generation))
        fixed = [generation, made.made_at, tested.scores, tested.probabilities, tested.decisions, named]
        return np.hstack([np.column_stack(fixed), made.memo])

    # -- labels --------------------------------------------------------------------------------------------------------
    def _take_labels(self, batch: Batch) -> list[Rejected]:
        if not len(batch):
            return list(batch.rejected)
        missing = {row: ("label", "must have a label, got none") for row, y in enumerate(batch.labels) if _none(y)}
        good = np.array([row for row in range(len(batch)) if row not in missing], np.int64)
        screened = _keyed(batch, Screened(good, dict(missing)))
        keys = _keys(batch, screened.good)
        labels = batch.labels[screened.good].tolist()
        matched = self._sort(keys, labels)
        if matched:
            entries = self.table.fetch([op for op, _, _ in matched])
            rows = screened.good[[row for _, row, _ in matched]]
            told = [labels[row] for _, row, _ in matched]
            for row, reason in self._learn(entries, told).items():
                screened.refused[int(rows[row])] = reason
            self.table.settle([(op, EVENT, now) for op, _, now in matched], MATCHED)
        return bad_events(batch, screened)

    def _sort(self, keys: list[str], labels: list[Any]) -> list[tuple[int, int, int]]:
        """Return (event, row, operation) of the labels whose event waits; count and keep the others."""
        known = self.table.look_up(keys)
        matched: list[tuple[int, int, int]] = []
        new: list[Entry] = []
        for row, key in enumerate(keys):
            op = self.table.next_op()
            before = self.table.remembered(known.get(key), op)
            if before is None or (before.kind == LABEL and before.how == EXPIRED):
                new.append(Entry(op, LABEL, key, self._clock, -1, _text(labels[row]).encode()))
                known[key] = Known(op, LABEL)
                self.counts.early += 1
            elif before.kind == EVENT and before.how is None:
                matched.append((before.op, row, op))
                known[key] = Known(before.op, EVENT, MATCHED, op)
            elif before.how == EXPIRED:
                self.counts.late += 1
            else:
                self.counts.duplicate += 1
        self.table.add(new)
        return matched

    # -- learning ------------------------------------------------------------------------------------------------------
    def _end_turn(self) -> list[Rejected]:
        """Learn the events whose label was there first, then, without label, those that have waited too long."""
        rejected = self._learn_answered()
        before = self._waited_too_long()
        surplus = sum(self.table.waiting) - self.patience.capacity
        for entries in self.table.oldest(before, surplus):
            events = [entry for entry in entries if entry.kind == EVENT]
            now = self.table.next_op()
            self.table.settle([(entry.op, entry.kind, now) for entry in entries], EXPIRED)
            self.counts.expired += len(events)
            self.counts.unknown += len(entries) - len(events)
            if events:
                rejected += self._dead(events, [None] * len(events), self._learn(events, [None] * len(events)))
        self.counts.refused += len(rejected)
        return rejected

    def _waited_too_long(self) -> float:
        """Return the time before which what still waits has expired.

        Where labels have times, those due by the end of this turn come behind it: an event expires a turn later, lest
        its label be in time and yet too late.
        """
        now = self._clock if self.patience.time is None else self._heard_until
        self._heard_until = self._clock
        if self.patience.timeout_s is not None:
            return float(now - self.patience.timeout_s)
        return float(now - self.patience.timeout_events) if self.patience.timeout_events is not None else -np.inf

    def _learn_answered(self) -> list[Rejected]:
        answered, self._answered = self._answered, []
        if not answered:
            return []
        entries = self.table.fetch([op for op, _ in answered])
        labels = [json.loads(label) for _, label in answered]
        refused = self._learn(entries, labels)
        now = self.table.next_op()
        self.table.settle([(entry.op, EVENT, now) for entry in entries], MATCHED)
        return self._dead(entries, labels, refused)

    @staticmethod
    def _dead(entries: list[Entry], labels: list[Any], refused: dict[int, tuple[str, str]]) -> list[Rejected]:
        """Return the dead letters of refused events: where their records stood is not known any more."""
        made = []
        for row, (kind, reason) in refused.items():
            raw = json.dumps({"key": entries[row].key, "label": labels[row]}).encode()
            made.append(Rejected(LABELS, NOWHERE, NOWHERE, kind, reason, raw))
        return made

    def _learn(self, entries: list[Entry], labels: list[Any]) -> dict[int, tuple[str, str]]:
        """Let every learner learn events; return which of them were refused, by row, and why."""
        told = np.empty(len(labels), object)
        told[:] = labels
        forecasts = self._forecasts(entries)
        block = forecasts[0].block
        screened = screen(self.tracks, block.names, block.values, told)
        good = screened.good
        for track, late in zip(self.tracks, forecasts, strict=True):
            kept = late.rows(good)
            track.learn_late(replace(kept, block=replace(kept.block, labels=told[good])))
        self.counts.matched += sum(labels[row] is not None for row in good.tolist())
        return screened.refused

    def _forecasts(self, entries: list[Entry]) -> list[Forecast]:
        """Return events and the forecasts each learner made for them; `ready` holds the learner's generation."""
        parts = [self._read(list(alike)) for _, alike in groupby(entries, attrgetter("form"))]
        return [put_together(list(made)) for made in zip(*parts, strict=True)]

    def _read(self, entries: list[Entry]) -> list[Forecast]:
        """Return events of one form, a forecast a learner."""
        memos, listed = json.loads(self.table.text(entries[0].form))
        names: tuple[FeatureName, ...] = tuple(listed)
        numbers = np.frombuffer(b"".join(entry.payload for entry in entries)).reshape(len(entries), -1)
        values = np.ascontiguousarray(numbers[:, numbers.shape[1] - len(names) :])
        made = []
        start = 0
        for width in memos:
            stop = start + N_FIXED + width
            made.append(self._made(numbers[:, start:stop], names, values))
            start = stop
        return made

    def _made(self, numbers: FloatArray, names: tuple[FeatureName, ...], values: FloatArray) -> Forecast:
        """Return the forecasts that one learner keeps as `numbers`."""
        generation, made_at, scores, probabilities, decisions, named = numbers[:, :N_FIXED].T.copy()
        predictions = np.empty(len(numbers), object)
        predictions[:] = [None if name < 0 else self._names[int(name)] for name in named.tolist()]
        tested = Tested(np.full(len(numbers), -1, np.int8), scores, probabilities, predictions, decisions)
        memo = numbers[:, N_FIXED:].copy()
        return Forecast(Block(names, values, predictions), tested, memo, made_at.astype(np.int64), generation)

    # -- state ---------------------------------------------------------------------------------------------------------
    def state(self) -> Snapshot:
        """Return counts, clock, and what the table has to be brought back to."""
        texts = {"counts": asdict(self.counts), "answered": self._answered, "names": self._names}
        clocks = {"clock": float(self._clock), "heard_until": float(self._heard_until)}
        numbers = {**clocks, "n_events": self._n_events}
        return {**{k: json.dumps(v) for k, v in texts.items()}, **numbers, **self.table.state()}

    def restore(self, state: Snapshot) -> None:
        """Become what `state` describes, the table too."""
        self.counts = LabelCounts(**json.loads(state["counts"]))
        self._answered = [(op, label) for op, label in json.loads(state["answered"])]
        self._names = json.loads(state["names"])
        self._clock, self._n_events = float(state["clock"]), int(state["n_events"])
        self._heard_until = float(state.get("heard_until", -np.inf))  # earlier checkpoints have none
        self.table.restore(state)


def _none(y: Any) -> bool:
    return y is None or (isinstance(y, float | np.floating) and bool(np.isnan(y)))


def _text(label: Any) -> str:
    return json.dumps(label.item() if isinstance(label, np.generic) else label)


def _keys(batch: Batch, rows: IntArray) -> list[str]:
    """Return keys as text, so that 7 in one input is "7" in the other."""
    assert batch.keys is not None  # noqa: S101  both inputs of late labels have a key column
    return [str(key) for key in batch.keys[rows].tolist()]


def _keyed(batch: Batch, screened: Screened) -> Screened:
    """Refuse the records that have no key, or one that the table cannot look up."""
    assert batch.keys is not None  # noqa: S101  both inputs of late labels have a key column
    refused = {row: ("key", reason) for row in screened.good.tolist() if (reason := _wrong(batch.keys[row]))}
    if not refused:
        return screened
    good = np.array([row for row in screened.good.tolist() if row not in refused], np.int64)
    return Screened(good, {**screened.refused, **refused})


def _wrong(key: Any) -> str:
    if key is None or key == "":
        return "must have a key, got none"
    return "must have a key without NUL characters, got one with them" if type(key) is str and "\0" in key else ""
