"""One wide AUCRO from several that learned different rows: variances add exactly, sketches by Frequent Directions.

A record holds count, mean and variance of a feature in either class, all events at 0 included once they are made up
for. Those of disjoint rows add up as whole covariances do, feature by feature (Chan, Golub and LeVeque 1979), so the
merged model on the diagonal is that of one process, but for clipping (``clip=None`` is exact).

A sketch B of k directions stands for a scatter S with ``0 <= S - B'B <= |S|_F^2 / k``. The scatter of all rows is::

    S = sum S_p + sum W_p (c_p - c)(c_p - c)'

so the rows of all B_p and one row ``sqrt(W_p) (c_p - c)`` a part are put into one buffer, which is shrunk when it is
full: the bounds of the parts and of the merge add up to that of one sketch of everything (Ghashami, Liberty, Phillips
and Woodruff 2016). It is not the sketch that one process would have found, and as good by its bound.

Steps against class means leave counts and means, which add up, and weights, which do not: those of a feature are
averaged by the curvature that each part stepped on, so that a part which hardly saw the feature has hardly a say. The
merged weights are not those that one process would have found, and go on by the steps of one that saw all rows.

How far scores spread is not known from variances: the scores that the parts made before they learned are pooled.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from streamlearn.contracts import FloatArray, IntArray
from streamlearn.kernels import auc_means, auc_sketch, auc_wide, sketch
from streamlearn.learners.auc.records import TINIEST, Records, with_zeros
from streamlearn.learners.auc.sketch import Sketches
from streamlearn.learners.ground import Ground

if TYPE_CHECKING:
    from streamlearn.learners.auc.aucro import AUCRO


@dataclass(frozen=True, slots=True)
class WideMoments:
    """What one model knows of each feature and class, its features in the order of all models'.

    Attributes
    ----------
    count : float
        Labelled events.
    seen, weight : float64[2]
    centre, spread : float64[2, n_features]
        Mean and variance of a class, events at 0 included.
    mean, variance, peak, times : float64[n_features]
        Of unclipped values; `times` counts those other than 0.
    values : float64[n_features, 2]
        The first two values other than 0; 0 where there was none, the second `MANY` where there were more.
    weights, curvature : float64[n_features]
        `curvature` is what steps were taken on; 0 where weights are solved.
    judged, score, score_spread : float64[2]
        Weight, mean and variance of the scores made before their events were learned.
    rows : pair of float64[n_rows, n_features]
        Rows whose outer products sum to the scatter of a class; none where variances are all there is.
    """

    count: float
    seen: FloatArray
    weight: FloatArray
    centre: FloatArray
    spread: FloatArray
    mean: FloatArray
    variance: FloatArray
    peak: FloatArray
    times: FloatArray
    values: FloatArray
    weights: FloatArray
    curvature: FloatArray
    judged: FloatArray
    score: FloatArray
    score_spread: FloatArray
    rows: tuple[FloatArray, FloatArray]

    @property
    def complete(self) -> bool:
        """Both classes were seen."""
        return bool(self.seen.all())

    @classmethod
    def of(cls, model: AUCRO, ground: Ground[AUCRO], form: str) -> WideMoments:
        """Read a model; one that is not wide yet counts by what the form keeps."""
        records, place, n, m = _records(model, form), ground.places(model), len(ground.names), model.n_features
        F, H, R, own = records.header(), records.memory(0), records.R[:m], records.own(0)[:m]
        count = float(F[auc_wide.COUNT])

        def spread(values: FloatArray) -> FloatArray:
            out = np.zeros((n, *values.shape[1:]))
            out[place[: len(values)]] = values
            return out

        mean, variance = with_zeros(R[:, auc_wide.AT], count, R[:, auc_wide.MEAN], R[:, auc_wide.VARIANCE])
        centres = records.centres(0)
        spreads = records.classes(0)[2] if form == "diagonal" else np.zeros_like(centres)
        curvature = own[:, auc_means.CURVATURE] * H[auc_wide.FADE] if form == "means" else np.zeros(m)

        def pair(slot: int) -> FloatArray:
            return H[slot : slot + 2].copy()

        return cls(
            count=count,
            seen=F[auc_wide.SEEN : auc_wide.SEEN + 2].copy(),
            weight=pair(auc_wide.WEIGHT),
            centre=spread(centres.T).T.copy(),
            spread=spread(spreads.T).T.copy(),
            mean=spread(mean),
            variance=spread(variance),
            peak=spread(R[:, auc_wide.PEAK]),
            times=spread(R[:, auc_wide.TIMES]),
            values=spread(R[:, [auc_wide.FIRST, auc_wide.SECOND]]),
            weights=spread(own[:, auc_means.W if form == "means" else auc_wide.W]),
            curvature=spread(curvature),
            judged=pair(auc_wide.JUDGED),
            score=pair(auc_wide.SCORE),
            score_spread=pair(auc_wide.SPREAD),
            rows=_rows(records, place, n, m),
        )

    def faded(self, weight: FloatArray) -> WideMoments:
        """Return the same with other weights, as forgetting leaves them."""
        share = np.divide(weight, self.weight, where=self.weight > 0.0, out=np.ones(2))
        rows = self.rows[0] * np.sqrt(share[0]), self.rows[1] * np.sqrt(share[1])
        curvature = self.curvature * share.mean()
        return replace(self, weight=weight, judged=self.judged * share, rows=rows, curvature=curvature)


def merged_wide(parts: Sequence[WideMoments], size: int) -> WideMoments:
    """Return the statistics of all rows together.

    Parameters
    ----------
    parts : sequence of WideMoments
    size : int
        Rows of a buffer of a sketch, 2 k; 0 where variances are all there is.
    """
    parts = [part for part in parts if part.count] or list(parts[:1])
    counts = np.array([part.count for part in parts])
    mean, variance = _pooled(counts, [part.mean for part in parts], [part.variance for part in parts])
    weight = np.array([part.weight for part in parts])
    curvature = np.sum([part.curvature for part in parts], axis=0)
    weights = np.sum([part.curvature * part.weights for part in parts], axis=0) / np.maximum(curvature, TINIEST)
    centre, spread, rows = np.zeros((2, len(mean))), np.zeros((2, len(mean))), []
    score, score_spread, judged = np.zeros(2), np.zeros(2), np.array([part.judged for part in parts])
    for k in (0, 1):
        centre[k], spread[k] = _pooled(weight[:, k], [p.centre[k] for p in parts], [p.spread[k] for p in parts])
        found = _pooled(judged[:, k], [p.score[k : k + 1] for p in parts], [p.score_spread[k : k + 1] for p in parts])
        score[k], score_spread[k] = float(found[0][0]), float(found[1][0])
        between = [np.sqrt(p.weight[k]) * (p.centre[k] - centre[k]) for p in parts if p.weight[k] > 0.0]
        rows.append(_shrunk([*(p.rows[k] for p in parts), np.array(between).reshape(-1, len(mean))], variance, size))
    return WideMoments(
        count=float(counts.sum()),
        seen=np.sum([part.seen for part in parts], axis=0),
        weight=weight.sum(axis=0),
        centre=centre,
        spread=spread,
        mean=mean,
        variance=variance,
        peak=np.max([part.peak for part in parts], axis=0),
        times=np.sum([part.times for part in parts], axis=0),
        values=_two_values(np.concatenate([part.values.T for part in parts])),
        weights=weights,
        curvature=curvature,
        judged=judged.sum(axis=0),
        score=score,
        score_spread=score_spread,
        rows=(rows[0], rows[1]),
    )


def fill_wide(records: Records, part: WideMoments) -> None:
    """Write statistics to the records of a blank model and solve its weights."""
    F, H, m = records.header(), records.memory(0), len(part.mean)
    records.widen(m)
    R, own = records.R[:m], records.own(0)[:m]
    F[auc_wide.COUNT], F[auc_wide.SEEN : auc_wide.SEEN + 2], F[auc_wide.WIDTH] = part.count, part.seen, m
    for slot, column in (
        (auc_wide.TIMES, part.times),
        (auc_wide.AT, part.count),
        (auc_wide.MEAN, part.mean),
        (auc_wide.VARIANCE, part.variance),
        (auc_wide.PEAK, part.peak),
        (auc_wide.FIRST, part.values[:, 0]),
        (auc_wide.SECOND, part.values[:, 1]),
    ):
        R[:, slot] = column
    for slot, numbers in (
        (auc_wide.WEIGHT, part.weight),
        (auc_wide.JUDGED, part.judged),
        (auc_wide.SCORE, part.score),
        (auc_wide.SPREAD, part.score_spread),
    ):
        H[slot : slot + 2] = numbers
    if records.form == "means":
        _fill_steps(records, part)
        return
    for k in (0, 1):
        at = k * auc_wide.CLASS_SIZE
        own[:, at + auc_wide.OWN_WEIGHT] = part.weight[k]
        own[:, at + auc_wide.OWN_MEAN], own[:, at + auc_wide.OWN_VARIANCE] = part.centre[k], part.spread[k]
    if isinstance(records, Sketches):
        metric = _metric(part.variance, part.peak)
        R[:, auc_sketch.METRIC] = metric
        for k in (0, 1):
            n = len(part.rows[k])
            records.S[0, k, :n, :m] = part.rows[k] * metric
            H[auc_sketch.FILLED + k] = n
    if part.complete:
        solve_wide(records)


def _fill_steps(records: Records, part: WideMoments) -> None:
    """Write what steps against class means go on from."""
    H, own = records.memory(0), records.own(0)[: len(part.mean)]
    for k in (0, 1):
        own[:, auc_means.SUM + k] = part.centre[k] * part.weight[k]
    own[:, auc_means.W], own[:, auc_means.CURVATURE] = part.weights, part.curvature
    auc_means.begin(records.F, records.R)
    if part.judged.all():
        auc_means.set_ratio(H)


def solve_wide(records: Records) -> None:
    """Set the weights by the statistics, and what turns scores into chances by the scores made before."""
    if isinstance(records, Sketches):
        records.sweep()
    else:
        auc_wide.sweep(records.F, records.R)
    if records.memory(0)[auc_wide.JUDGED : auc_wide.JUDGED + 2].all():
        auc_wide.set_ratio(records.memory(0))


def agree_wide(records: Records, weights: FloatArray) -> None:
    """Set the weights that the parts agree on, with the threshold half-way between the classes."""
    own = records.own(0)[: len(weights)]
    if records.form == "means":
        own[:, auc_means.W] = weights
        auc_means.sweep(records.F, records.R)
        return
    own[:, auc_wide.W] = weights
    records.memory(0)[auc_wide.OFFSET] = (weights * own[:, auc_wide.MIDDLE]).sum()


def _records(model: AUCRO, form: str) -> Records:
    """Return the records of a model, or a copy, in that form and with all weights worked in."""
    wide = model._wide
    if wide is None:
        return Records.of(model._moments, "means" if form == "means" else "diagonal", standard=model.scale != "none")
    assert isinstance(wide, Records)  # noqa: S101 - what learns wide events is one of these
    if form != "means":
        return wide
    if wide.form != form:  # read from a state of a time when these were kept
        return wide.stepping([wide.own(0)[:, auc_wide.W]], standard=model.scale != "none")
    settled = copy.deepcopy(wide)
    auc_means.sweep(settled.F, settled.R)
    return settled


def _pooled(
    weights: FloatArray, means: Sequence[FloatArray], variances: Sequence[FloatArray]
) -> tuple[FloatArray, FloatArray]:
    shares = weights / max(float(weights.sum()), 1e-300)
    mean: FloatArray = shares @ np.array(means)
    return mean, np.asarray(shares @ (np.array(variances) + np.square(np.array(means) - mean)))


def _metric(variance: FloatArray, peak: FloatArray) -> FloatArray:
    """Return what brings features to units near their spread; 0 where they have none."""
    known = variance > np.square(np.maximum(auc_sketch.TINY * peak, auc_sketch.SMALLEST))
    return np.where(known, 1.0 / np.sqrt(np.where(known, variance, 1.0)), 0.0)


def _rows(records: Records, place: IntArray, n: int, m: int) -> tuple[FloatArray, FloatArray]:
    if not isinstance(records, Sketches):
        return np.zeros((0, n)), np.zeros((0, n))
    H, metric = records.memory(0), records.R[:m, auc_sketch.METRIC]
    unit = np.divide(1.0, metric, where=metric > 0.0, out=np.zeros(m))
    found = []
    for k in (0, 1):
        filled = int(H[auc_sketch.FILLED + k])
        rows = np.zeros((filled, n))
        rows[:, place] = np.sqrt(H[auc_sketch.SCALE + k]) * records.S[0, k, :filled, :m] * unit
        found.append(rows)
    return found[0], found[1]


def _shrunk(stacks: Sequence[FloatArray], variance: FloatArray, size: int) -> FloatArray:
    """Return fewer than `size` rows for all, by Frequent Directions in units of the features' spread."""
    if size == 0:
        return np.zeros((0, len(variance)))
    spread = np.sqrt(variance)
    unit = np.divide(1.0, spread, where=spread > auc_sketch.SMALLEST, out=np.zeros(len(variance)))
    buffer = np.zeros((size, len(variance)))
    K, Q, filled = np.zeros((size, size)), np.zeros((size, size)), 0
    for row in np.concatenate(stacks) * unit:
        buffer[filled] = row
        filled += 1
        if filled == size:
            sketch.shrink(buffer, K, Q, size // 2)
            filled = size // 2 - 1
    return buffer[:filled] * spread


def _two_values(values: FloatArray) -> FloatArray:
    """Return the first two values other than 0 of each feature, float64[n, 2], from float64[2 n_parts, n]."""
    known = values != 0.0
    first = values[known.argmax(axis=0), np.arange(values.shape[1])]  # 0 where there is none
    other = np.where(known & (values != first), values, np.nan)
    low = np.where(np.isnan(other), np.inf, other).min(axis=0)
    high = np.where(np.isnan(other), -np.inf, other).max(axis=0)
    second = np.where(np.isinf(low), 0.0, np.where(low == high, low, auc_wide.MANY))
    return np.column_stack([first, second])
