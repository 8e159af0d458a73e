"""One AUCRO from several that learned different rows: exact statistics, and weights by solution or consensus.

The pairwise square loss depends on the data through each class's count, mean and covariance alone, so these are all
that has to travel. Those of disjoint rows add up exactly (Chan, Golub and LeVeque 1979), in the form for many parts::

    W = sum W_k,    c = sum W_k c_k / W,    G = sum W_k (G_k + (c_k - c)(c_k - c)') / W

The minimiser is then the solution of one linear system in the merged statistics, as in `AUCRO`: the model that one
process would have found, but for the bounds of clipping, which every part draws for itself (``clip=None`` is exact).
Wide models, which keep less than whole covariances, are merged in `merge_wide`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from streamlearn.contracts import FloatArray, IntArray
from streamlearn.errors import BadParameter
from streamlearn.kernels import auc, auc_sgd
from streamlearn.learners.auc.aucro import AUCRO
from streamlearn.learners.auc.merge_wide import WideMoments, agree_wide, fill_wide, merged_wide
from streamlearn.learners.auc.moments import Moments
from streamlearn.learners.auc.records import Records
from streamlearn.learners.auc.sketch import Sketches
from streamlearn.learners.consensus import Consensus, consensus
from streamlearn.learners.ground import Ground

_SAME = 1e-12
"""Values that differ by less of a feature's peak are one: positions were shifted and shifted back."""


@dataclass(frozen=True, slots=True)
class PartMoments:
    """What one model knows, its features in the order of all models' and its positions relative to a common origin.

    Attributes
    ----------
    count : float
        Labelled events.
    seen, weight : float64[2]
        Events and remembered weight of each class.
    centre : float64[2, n_features]
    covariance : float64[2, n_features, n_features]
    mean, variance, peak, least, most : float64[n_features]
        Of unclipped values; least and most of clipped ones.
    values : float64[2, n_features]
        The first two values; NaN where there was no second one, infinite where there were more.
    weights : float64[n_features]
    loss : float
    """

    count: float
    seen: FloatArray
    weight: FloatArray
    centre: FloatArray
    covariance: FloatArray
    mean: FloatArray
    variance: FloatArray
    peak: FloatArray
    least: FloatArray
    most: FloatArray
    values: FloatArray
    weights: FloatArray
    loss: float

    @property
    def complete(self) -> bool:
        """Both classes were seen."""
        return bool(self.seen.all())

    @classmethod
    def of(cls, model: AUCRO, ground: Ground[AUCRO], origin: FloatArray) -> PartMoments:
        """Read a model.

        Parameters
        ----------
        model : AUCRO
        ground : Ground
        origin : float64[n_features]
        """
        moments, place, n = model._moments, ground.places(model), len(ground.names)
        common, own, header, m = moments.common(), moments.own(0), moments.memory(0), model.n_features
        off = _spread(common[auc.SHIFT, :m], place, n) - origin

        def at(row: FloatArray) -> FloatArray:
            return off + _spread(row[:m], place, n)

        covariance = np.zeros((2, n, n))
        for label in (0, 1):
            covariance[label][np.ix_(place, place)] = moments.covariance(0, label)
        second = _spread(common[auc.SECOND, :m], place, n)
        values = np.stack([off, np.where(second == 0.0, np.nan, np.where(second == auc.MANY, np.inf, off + second))])
        return cls(
            count=float(moments.F[auc.COUNT]),
            seen=moments.F[auc.SEEN : auc.SEEN + 2].copy(),
            weight=header[auc.WEIGHT : auc.WEIGHT + 2].copy(),
            centre=np.stack([at(own[auc.CENTRE + label]) for label in (0, 1)]),
            covariance=covariance,
            mean=at(common[auc.MEAN]),
            variance=_spread(common[auc.VARIANCE, :m], place, n),
            peak=_spread(common[auc.PEAK, :m], place, n),
            least=at(common[auc.MINIMUM]),
            most=at(common[auc.MAXIMUM]),
            values=values,
            weights=_spread(own[auc.W, :m], place, n),
            loss=float(header[auc.LOSS]),
        )


_Part = PartMoments | WideMoments


def merge_aucro(models: Sequence[AUCRO], how: str, trim: float, before: AUCRO | None = None) -> tuple[AUCRO, Consensus]:
    """Return one model, and what it is made of.

    Parameters
    ----------
    models : sequence of AUCRO
        With equal parameters; none of them is changed.
    how : {"mean", "median", "trimmed"}
        "mean": all statistics; weights are their solution, or for ``solver="sgd"`` the average of the parts' weights.
        "median": weights are the geometric median of the parts' weights, in units of the features' spread and with the
        place of the decision beside them; statistics are those of the parts near it. "trimmed": as by the mean, of the
        parts that do not stand apart.
    trim : float
    before : AUCRO or None
        A model of earlier rows, which the others come behind: it fades by their events, and always counts. Weights are
        then the solution of its statistics and those of the parts near the median, whatever `how`.

    Returns
    -------
    AUCRO
    Consensus

    Raises
    ------
    BadParameter, BadLabel
    """
    everyone = [*models, *([] if before is None else [before])]
    for model in everyone:
        _check(model)
    ground = Ground.of(everyone)
    made = ground.blank()
    everyone = [ground.oriented(model) for model in everyone]
    if made._wide is not None:
        return made, _merge_wide(made, everyone, ground, how, trim, n_new=len(models))
    origin = _origin(everyone, ground)
    parts = [PartMoments.of(model, ground, origin) for model in everyone]
    new = parts[: len(models)]
    spread = _usual_spread(new)
    found = _consensus(new, spread, how, trim)
    kept = [part for part, trusted in zip(new, found.trusted, strict=True) if trusted]
    agreed: FloatArray = found.centre[: len(spread)] / spread
    if before is not None:
        earlier = replace(parts[-1], weight=_behind(parts[-1], kept, made))
        agreed = _averaged(earlier, kept, agreed)
        kept = [earlier, *kept]
    _fill(made._moments, _merged(kept), origin)
    _weigh(made, agreed, solved=how != "median" or before is not None or not any(part.complete for part in new))
    return made, found


def _check(model: AUCRO) -> None:
    if model.reject != "cost":
        raise BadParameter(f"{model.name}: reject must be 'cost' to be merged, got {model.reject!r}")


def _merge_wide(
    made: AUCRO, everyone: Sequence[AUCRO], ground: Ground[AUCRO], how: str, trim: float, *, n_new: int
) -> Consensus:
    """Merge wide models into a blank one; one of earlier rows stands behind the `n_new` others."""
    records = made._wide
    assert isinstance(records, Records)  # noqa: S101 - what learns wide events is one of these
    parts = [WideMoments.of(model, ground, records.form) for model in everyone]
    new, size = parts[:n_new], records.S.shape[2] if isinstance(records, Sketches) else 0
    spread = _usual_spread(new)
    found = _consensus(new, spread, how, trim)
    kept = [part for part, trusted in zip(new, found.trusted, strict=True) if trusted]
    if len(parts) > n_new:
        kept = [parts[-1].faded(_behind(parts[-1], kept, made)), *kept]
    fill_wide(records, merged_wide(kept, size))
    if how == "median" and len(parts) == n_new and any(part.complete for part in new):
        agree_wide(records, found.centre[: len(spread)] / spread)
    return found


def _spread(values: FloatArray, place: IntArray, n: int) -> FloatArray:
    out = np.zeros(n)
    out[place] = values
    return out


def _origin(models: Sequence[AUCRO], ground: Ground[AUCRO]) -> FloatArray:
    """Return the first event of the first model that has one: what all positions are measured from."""
    for model in models:
        if model._moments.F[auc.COUNT]:
            shift = model._moments.common()[auc.SHIFT, : model.n_features]
            return _spread(shift, ground.places(model), len(ground.names))
    return np.zeros(len(ground.names))


def _behind(before: _Part, parts: Sequence[_Part], model: AUCRO) -> FloatArray:
    """Return the weights of earlier statistics, faded as far as the parts' events fade them."""
    if model.half_life is None:
        return before.weight
    seen = np.sum([part.seen for part in parts], axis=0) if parts else np.zeros(2)
    events = seen if model.clock == "class" else np.full(2, seen.sum())
    faded: FloatArray = before.weight * 0.5 ** (events / model.half_life)
    return faded


def _usual_spread(parts: Sequence[_Part]) -> FloatArray:
    """Return what the features' weights are multiplied by to be of one unit: median standard deviation of the parts."""
    variances = np.array([part.variance for part in parts if part.count] or [parts[0].variance])
    spread = np.sqrt(np.median(variances, axis=0))
    spread = np.where(spread > auc.SMALLEST, spread, np.sqrt(variances.max(axis=0)))  # set in few parts
    return np.asarray(np.where(spread > auc.SMALLEST, spread, 1.0))


def _consensus(parts: Sequence[_Part], spread: FloatArray, how: str, trim: float) -> Consensus:
    """Hold the parts' models together: weights by the features' spread, and where they put the threshold.

    A part that saw one class has no weights and no vote; where no part saw both, nothing tells them apart.
    """
    counts = np.array([part.count if part.complete else 0.0 for part in parts])
    if not counts.any():
        counts = np.ones(len(parts))
    middles = np.array([0.5 * part.centre[0] + 0.5 * part.centre[1] for part in parts])
    usual = np.median(middles[counts > 0.0], axis=0)
    weights = np.array([part.weights for part in parts])
    thresholds = ((middles - usual) * weights).sum(axis=1)
    points = np.clip(np.column_stack([weights * spread, thresholds]), -auc.HUGE, auc.HUGE)
    return consensus(points, counts, how, trim)


def _averaged(before: PartMoments, parts: Sequence[PartMoments], agreed: FloatArray) -> FloatArray:
    """Return weights of earlier and later rows, each by what its rows still weigh."""
    old, new = before.weight.sum(), sum(part.weight.sum() for part in parts)
    return np.asarray((old * before.weights + new * agreed) / max(old + new, 1e-300))


def _merged(parts: Sequence[PartMoments]) -> PartMoments:
    """Return the statistics of all rows together."""
    parts = [part for part in parts if part.count] or list(parts)
    total = np.array([part.count for part in parts])
    share = total / max(total.sum(), 1.0)
    mean, variance = _pooled(
        share, np.array([part.mean for part in parts]), np.array([part.variance for part in parts])
    )
    weight, peak = np.array([part.weight for part in parts]), np.max([part.peak for part in parts], axis=0)
    n = len(mean)
    centre, covariance = np.zeros((2, n)), np.zeros((2, n, n))
    for label in (0, 1):
        if weight[:, label].any():
            shares = weight[:, label] / weight[:, label].sum()
            centre[label] = shares @ np.array([part.centre[label] for part in parts])
            for part, w in zip(parts, shares, strict=True):
                if w > 0.0:
                    d = part.centre[label] - centre[label]
                    covariance[label] += w * (part.covariance[label] + np.outer(d, d))
    return PartMoments(
        count=float(total.sum()),
        seen=np.sum([part.seen for part in parts], axis=0),
        weight=weight.sum(axis=0),
        centre=centre,
        covariance=covariance,
        mean=mean,
        variance=variance,
        peak=peak,
        least=np.min([part.least for part in parts], axis=0),
        most=np.max([part.most for part in parts], axis=0),
        values=_two_values(np.array([part.values for part in parts]), peak),
        weights=np.zeros(n),
        loss=float(sum(part.loss for part in parts)),
    )


def _pooled(shares: FloatArray, means: FloatArray, variances: FloatArray) -> tuple[FloatArray, FloatArray]:
    mean: FloatArray = shares @ means
    return mean, np.asarray(shares @ (variances + np.square(means - mean)))


def _two_values(values: FloatArray, peak: FloatArray) -> FloatArray:
    """Return the first two of all values, float64[2, n], from float64[n_parts, 2, n]."""
    first = values[0, 0]
    rest = values.reshape(2 * len(values), values.shape[2])
    same = _SAME * peak
    other = np.where(np.abs(rest - first) <= same, np.nan, rest)  # NaN stays NaN
    known = ~np.isnan(other)
    low = np.where(known, other, np.inf).min(axis=0, initial=np.inf)
    high = np.where(known, other, -np.inf).max(axis=0, initial=-np.inf)
    two = known.any(axis=0) & np.isfinite(low) & np.isfinite(high)
    near = np.subtract(high, low, where=two, out=np.full(len(first), np.inf)) <= same
    return np.stack([first, np.where(~known.any(axis=0), np.nan, np.where(near, low, np.inf))])


def _fill(moments: Moments, part: PartMoments, origin: FloatArray) -> None:
    """Write statistics to the arena of a blank model."""
    m, F, common, header, own = len(origin), moments.F, moments.common(), moments.memory(0), moments.own(0)
    F[auc.COUNT], F[auc.SEEN : auc.SEEN + 2] = part.count, part.seen
    first, second = part.values
    common[auc.SHIFT, :m] = origin + first
    for row, value in (
        (auc.MEAN, part.mean - first),
        (auc.VARIANCE, part.variance),
        (auc.PEAK, part.peak),
        (auc.MINIMUM, part.least - first),
        (auc.MAXIMUM, part.most - first),
        (auc.SECOND, np.where(np.isnan(second), 0.0, np.where(np.isinf(second), auc.MANY, second - first))),
    ):
        common[row, :m] = value
    many = common[auc.SECOND, :m] == auc.MANY
    if F[auc.CLIP] and part.count >= auc.N_BEFORE_CLIP:
        width = np.where(many, F[auc.CLIP] * np.sqrt(part.variance), 2.0 * auc.HUGE)
        common[auc.LOW, :m] = np.maximum(common[auc.MEAN, :m] - width, -auc.HUGE)
        common[auc.HIGH, :m] = np.minimum(common[auc.MEAN, :m] + width, auc.HUGE)
    header[auc.WEIGHT : auc.WEIGHT + 2], header[auc.LOSS] = part.weight, part.loss
    for label in (0, 1):
        own[auc.CENTRE + label, :m] = np.where(part.weight[label] > 0.0, part.centre[label] - first, 0.0)
        moments.set_covariance(0, label, part.covariance[label])


def _weigh(model: AUCRO, agreed: FloatArray, *, solved: bool) -> None:
    """Set the weights: the solution of the statistics, or what the parts agree on."""
    moments, m = model._moments, model.n_features
    F, header = moments.F, moments.memory(0)
    if not F[auc.SEEN : auc.SEEN + 2].all() or m == 0:
        return
    if model.solver == "exact":
        auc.solve(F, moments.common(), header, m)
        if not solved:
            moments.own(0)[auc.W, :m] = agreed  # calibrated as the solution is
        return
    for label in (0, 1):
        header[auc.SPREAD + label] = float(agreed @ moments.covariance(0, label) @ agreed)
    auc_sgd.settle(F, np.ascontiguousarray(agreed))
