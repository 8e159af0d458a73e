"""Robust estimates of many workers as one: their geometric median, held in a filter that can go on.

The distributed form of Feng, Xu and Mannor (2017): every machine estimates from its own rows, and the geometric median
of the estimates is right while machines with more than half of the rows are, whatever the others send. A merged learner
is no mere vector: it goes on with the batches of the machine nearest to the median, moved as a whole so that their own
median is the merged one, which keeps the spread by which later batches are judged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from streamlearn.contracts import FloatArray
from streamlearn.errors import BadParameter
from streamlearn.learners.consensus import Consensus, consensus
from streamlearn.learners.ground import Ground
from streamlearn.learners.robust.batches import RobustBatches
from streamlearn.learners.robust.filters import Filter, ProximalFilter, WindowFilter
from streamlearn.learners.robust.median import GeometricMedian, geometric_median
from streamlearn.learners.robust.orl import ORL
from streamlearn.learners.robust.regression import ORLRegressor
from streamlearn.learners.robust.waiting import WaitingRows

Move = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, slots=True)
class Held:
    """One worker's filter in the coordinates of all.

    Attributes
    ----------
    filter : Filter
    count : float
        Estimates that it has taken.
    move : callable, float64[n, its own] -> float64[n, common]
        Affine.
    """

    filter: Filter
    count: float
    move: Move

    def centre(self) -> FloatArray:
        """Return the worker's estimate in common coordinates."""
        found: FloatArray = self.move(self.filter.centre().reshape(1, -1))[0]
        return found


def merge_median(
    models: Sequence[GeometricMedian], how: str, trim: float, before: GeometricMedian | None = None
) -> tuple[GeometricMedian, Consensus]:
    """Return one geometric median of rows from several; arguments as for `merge_aucro`."""
    ground = Ground.of([*models, *([] if before is None else [before])])
    made = ground.blank()
    held = [Held(m._filter, _taken(m._filter), _spreading(ground.places(m), len(ground.names))) for m in models]
    earlier = None
    if before is not None:
        earlier = Held(before._filter, _taken(before._filter), _spreading(ground.places(before), len(ground.names)))
    return made, _settle(made._filter, held, how, trim, earlier)


def merge_orl(models: Sequence[ORL], how: str, trim: float, before: ORL | None = None) -> tuple[ORL, Consensus]:
    """Return one ORL from several; arguments as for `merge_aucro`. Rows that wait for a batch are learned behind it."""
    everyone = [*models, *([] if before is None else [before])]
    ground = Ground.of(everyone)
    made = ground.blank()
    length = max(model._length for model in everyone)
    if made._free:
        made._set_numbers({"length": length})
    held = [_held_orl(model, ground, length) for model in everyone]
    found = _settle(made._held, held[: len(models)], how, trim, held[-1] if before is not None else None)
    batches = np.array([model._marks for model in everyone])
    made._marks[:2] = batches[:, :2].sum(axis=0)
    made._marks[2:] = batches[_nearest(found), 2:]
    made._classes[:] = max((tuple(model._classes) for model in everyone), default=(0.0, 0.0))
    if before is not None:
        _learn_waiting(made._learn, before._waiting, _spreading(ground.places(before), len(ground.names)))
    for model, trusted in zip(models, found.trusted, strict=True):
        if trusted:
            _learn_waiting(made._learn, model._waiting, _spreading(ground.places(model), len(ground.names)))
    return made, found


def merge_regressor(
    models: Sequence[ORLRegressor], how: str, trim: float, before: ORLRegressor | None = None
) -> tuple[ORLRegressor, Consensus]:
    """Return one regression from several; arguments as for `merge_aucro`.

    Coefficients are compared in the usual standardisation of the workers. Rows that wait for a batch are learned behind
    them.

    Raises
    ------
    BadParameter
        Where ``mode="events"``: such a model follows one stream, and rows of several have no common now.
    """
    everyone = [*models, *([] if before is None else [before])]
    for model in everyone:
        if not isinstance(model._body, RobustBatches):
            raise BadParameter(f"{model.name}: mode must be 'batches' to be merged, got {model.mode!r}")
    ground = Ground.of(everyone)
    made, bodies = ground.blank(), [_body(model) for model in everyone]
    body, places = _body(made), [ground.places(model) for model in everyone]
    first = 0 if before is None or not _body(before).n_batches else len(models)  # earlier rows have set the units
    _standardise_like(body, bodies[first:], places[first:])
    held = [
        Held(one._held, one.n_batches, _restandardised(one, body, place))
        for one, place in zip(bodies, places, strict=True)
    ]
    found = _settle(body._held, held[: len(models)], how, trim, held[-1] if before is not None else None)
    body._marks[:] = bodies[_nearest(found)]._marks
    body._marks[0] = sum(one.n_batches for one in bodies)
    trusted = [*found.trusted.tolist(), *([] if before is None else [True])]
    for one, place, good in zip(bodies, places, trusted, strict=True):
        if good:
            _learn_waiting(made._learn, one._waiting, _spreading(place, len(ground.names)))
    return made, found


def _body(model: ORLRegressor) -> RobustBatches:
    assert isinstance(model._body, RobustBatches)  # noqa: S101 - the caller looked
    return model._body


def _taken(held: Filter) -> float:
    return float(held.arrays()["count"][0])


def _nearest(found: Consensus) -> int:
    return int(np.argmin(found.distances))


def _spreading(place: np.ndarray, n: int) -> Move:
    """Return what puts columns into their common places."""

    def move(rows: FloatArray) -> FloatArray:
        out = np.zeros((len(rows), n))
        out[:, place] = rows
        return out

    return move


def _held_orl(model: ORL, ground: Ground[ORL], length: int) -> Held:
    if model._free and model.base != "mean":
        if model.n_batches_ and model._length != length:
            raise BadParameter(f"{model.name}: base must give vectors of one length, got {model._length} and {length}")
        return Held(model._held, model.n_batches_, _spreading(np.arange(model._length), length))
    offset = 0 if model.base == "mean" else 1  # the intercept comes first
    place = np.concatenate([np.arange(offset), ground.places(model) + offset])
    return Held(model._held, model.n_batches_, _spreading(place, len(ground.names) + offset))


def _standardise_like(body: RobustBatches, bodies: Sequence[RobustBatches], places: Sequence[np.ndarray]) -> None:
    """Set centres, scales and the unit of a blank model to the medians of those that have estimated something."""
    known = [(one, place) for one, place in zip(bodies, places, strict=True) if one.n_batches]
    if not known:
        return
    n = len(body._centre)
    centres, scales = np.full((len(known), n), np.nan), np.full((len(known), n), np.nan)
    for k, (one, place) in enumerate(known):
        varied = one._scale > 0.0
        centres[k, place[varied]], scales[k, place[varied]] = one._centre[varied], one._scale[varied]
    somewhere = ~np.isnan(scales).all(axis=0)
    body._centre[somewhere] = np.nanmedian(centres[:, somewhere], axis=0)
    body._scale[somewhere] = np.nanmedian(scales[:, somewhere], axis=0)
    body._unit[:] = np.median([one._unit for one, _ in known], axis=0)


def _restandardised(source: RobustBatches, target: RobustBatches, place: np.ndarray) -> Move:
    """Return what turns coefficients of one standardisation into those of the other."""
    centre, scale, unit = source._centre, source._scale, source._unit
    new_centre, new_scale, new_unit = target._centre, target._scale, target._unit

    def move(rows: FloatArray) -> FloatArray:
        slopes = np.divide(unit[1] * rows[:, 1:], scale, where=scale > 0.0, out=np.zeros_like(rows[:, 1:]))
        out = np.zeros((len(rows), 1 + len(new_scale)))
        out[:, 1 + place] = slopes * new_scale[place] / new_unit[1]
        offsets = unit[0] - new_unit[0] + unit[1] * rows[:, 0] + slopes @ (new_centre[place] - centre)
        out[:, 0] = offsets / new_unit[1]
        return out

    return move


def _settle(made: Filter, held: Sequence[Held], how: str, trim: float, before: Held | None) -> Consensus:
    """Fill a fresh filter, whose centre is then what the workers agree on.

    Behind an earlier filter each worker's estimate counts as that of one more batch.
    """
    centres = np.array([one.centre() for one in held])
    counts = np.array([one.count for one in held])
    found = consensus(centres, counts if counts.any() else np.ones(len(held)), how, trim)
    if before is not None and before.count:
        _adopt(made, [before], before.centre(), before.count)
        if counts.any():
            made.extend(np.ascontiguousarray(centres[counts > 0.0]))
    elif counts.any():
        order = np.argsort(np.where(counts > 0.0, found.distances, np.inf), kind="stable")
        good = [held[k] for k in order if found.trusted[k] and counts[k]]
        _adopt(made, good, found.centre, counts.sum())
    return found


def _adopt(made: Filter, held: Sequence[Held], centre: FloatArray, count: float) -> None:
    """Let a fresh filter go on where others, the nearest first, left off, each moved onto the common centre."""
    first = held[0]
    shift = centre - first.centre()
    saved, mine = first.filter.arrays(), made.arrays()
    if isinstance(made, ProximalFilter) and saved["count"][0] >= len(saved["start_points"]):
        for name in ("iterate", "centre"):
            mine[name][:] = first.move(saved[name].reshape(1, -1))[0] + shift
        for name in ("heights", "places", "last"):
            mine[name][:] = saved[name]
        mine["count"][0] = int(count)
        made.changed()
        return
    room = made.window if isinstance(made, WindowFilter) else len(saved["start_points"])
    for one in held:
        rows = _ring(one.filter)
        if len(rows) > room:
            break
        # The optimality condition of a median holds for its rows wherever they are moved to as a whole, so it holds at
        # the common centre for the rows of all workers together. It must be a median in the common units.
        moved = one.move(rows)
        made.extend(np.ascontiguousarray(moved + (centre - geometric_median(moved))))
        room -= len(rows)
    if isinstance(made, WindowFilter) and room == 0:
        mine["count"][0] = max(int(count), made.window)


def _ring(held: Filter) -> FloatArray:
    """Return the estimates that a filter remembers, in the order of their places."""
    saved = held.arrays()
    points = saved["points"] if "points" in saved else saved["start_points"]
    kept: FloatArray = points[: min(int(saved["count"][0]), len(points))]
    return kept


def _learn_waiting(learn: Callable[[FloatArray, FloatArray], None], waiting: WaitingRows, move: Move) -> None:
    n = len(waiting)
    learn(np.ascontiguousarray(move(waiting.rows[:n])), waiting.targets[:n].copy())
