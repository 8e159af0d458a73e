"""Robust subspaces of many workers as one (the distributed PCA of Feng, Xu and Mannor 2017)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamlearn.contracts import FloatArray
from streamlearn.errors import BadParameter
from streamlearn.learners.consensus import Consensus, consensus
from streamlearn.learners.ground import Ground
from streamlearn.learners.robust.blas import one_blas_thread
from streamlearn.learners.robust.filters import WindowFilter
from streamlearn.learners.robust.pca import ORLPCA
from streamlearn.learners.robust.projectors import ProjectorWindow
from streamlearn.learners.robust.subspace import top_eigenvectors

Subspaces = FloatArray


def merge_subspaces(components: Subspaces, counts: FloatArray, how: str, trim: float) -> tuple[FloatArray, Consensus]:
    """Return the leading eigenvectors of the projectors' consensus, and its shares.

    Geometric median and mean are taken in the space of symmetric matrices with Frobenius distances. It is never built:
    the k projectors span at most k dimensions of it, and their inner products ``|U_i U_j'|^2`` place them there.

    Parameters
    ----------
    components : float64[k, d, p]
        Orthonormal rows, or zeros.
    counts : float64[k]
    how, trim
        As for `consensus`.

    Returns
    -------
    float64[d, p]
        Orthonormal rows by falling share of the consensus.
    Consensus
    """
    k, d, p = components.shape
    flat = components.reshape(k * d, p)
    with one_blas_thread():
        gram = np.square(flat @ flat.T).reshape(k, d, k, d).sum(axis=(1, 3))
        values, vectors = np.linalg.eigh(gram)
        found = consensus(vectors * np.sqrt(np.maximum(values, 0.0)), counts, how, trim)
        stacked = (np.sqrt(found.shares)[:, None, None] * components).reshape(k * d, p)
        if p <= k * d:
            return top_eigenvectors(stacked.T @ stacked, d), found
        small = top_eigenvectors(stacked @ stacked.T, d) @ stacked
        return np.ascontiguousarray(np.linalg.qr(small.T)[0].T), found


def merge_pca(
    models: Sequence[ORLPCA], how: str, trim: float, before: ORLPCA | None = None
) -> tuple[ORLPCA, Consensus]:
    """Return one ORLPCA from several; arguments as for `merge_aucro`.

    It goes on with the batches of the model nearest to the consensus, turned as a whole so that their median is the
    merged subspace. Rows that wait for a batch are learned behind them.
    """
    everyone = [*models, *([] if before is None else [before])]
    for model in everyone:
        if not (isinstance(model._projectors, ProjectorWindow) and isinstance(model._means, WindowFilter)):
            raise BadParameter(f"{model.name}: window must be a number to be merged, got {model.window!r}")
    ground = Ground.of(everyone)
    made, d, p = ground.blank(), models[0].n_components, len(ground.names)
    places = [ground.places(model) for model in everyone]
    components = np.zeros((len(models), d, p))
    means = np.zeros((len(models), p))
    for k, model in enumerate(models):
        components[k][:, places[k]] = model.components_
        means[k, places[k]] = model.mean_
    batches = np.array([float(model.n_batches_) for model in models])
    counts = batches if batches.any() else np.ones(len(models))
    merged, found = merge_subspaces(components, counts, how, trim)
    centre = consensus(means, counts, how, trim).centre
    if before is not None and before.n_batches_:
        _copy(made, before, places[-1], before.components_, before.mean_)
        for k in np.flatnonzero(batches).tolist():
            scales = models[k]._projectors.scales()
            cut = float(np.median(models[k]._cuts[: len(scales)]))
            _push(made, components[k], means[k], np.median(scales, axis=0), cut)
    elif batches.any():
        nearest = int(np.argmin(np.where(batches > 0.0, found.distances, np.inf)))
        _copy(made, models[nearest], places[nearest], merged, centre)
    good = [*found.trusted.tolist(), *([] if before is None else [True])]
    for model, place, trusted in zip(everyone, places, good, strict=True):
        if trusted and len(model._waiting):
            rows = np.zeros((len(model._waiting), p))
            rows[:, place] = model._waiting.rows[: len(rows)]
            made._learn(rows)
    return made, found


def _push(made: ORLPCA, components: FloatArray, mean: FloatArray, scales: FloatArray, cut: float) -> None:
    made._cuts[made.n_batches_ % len(made._cuts)] = cut
    made._means.extend(mean.reshape(1, -1))
    made._projectors.push(np.ascontiguousarray(components), scales)


def _copy(made: ORLPCA, source: ORLPCA, place: np.ndarray, components: FloatArray, mean: FloatArray) -> None:
    """Let a blank model go on with the batches of another, turned and moved onto subspace and mean."""
    p = made.n_features
    own, own_mean = np.zeros_like(components), np.zeros(p)
    own[:, place], own_mean[place] = source.components_, source.mean_
    turn = _rotation(own, components) if not np.array_equal(own, components) else None
    shift = mean - own_mean if len(mean) == p else np.zeros(p)
    ring, scales = source._projectors.arrays()["subspaces"], source._projectors.scales()
    n, size = len(scales), len(ring)
    start = source.n_batches_ % size if n == size else 0
    for slot in (np.arange(start, start + n) % size).tolist():
        wide, centre = np.zeros_like(components), np.zeros(p)
        wide[:, place], centre[place] = ring[slot], source._means.arrays()["points"][slot]
        _push(made, wide if turn is None else wide @ turn.T, centre + shift, scales[slot], source._cuts[slot])


def _rotation(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return the direct rotation of the span of a's rows to that of b's: float64[p, p] (Davis and Kahan 1970)."""
    from scipy.linalg import polar  # noqa: PLC0415 - only those who merge pay for the import

    one, other, same = a.T @ a, b.T @ b, np.eye(a.shape[1])
    with one_blas_thread():
        turn: FloatArray = polar(other @ one + (same - other) @ (same - one))[0]
    return turn
