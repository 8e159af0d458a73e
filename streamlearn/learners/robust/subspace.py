"""Robust subspaces of one batch: RC-PCA, and least trimmed squares PCA from several starts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streamlearn.contracts import FloatArray
from streamlearn.errors import BadParameter, BadShape
from streamlearn.kernels.robust_subspace import distances_to_subspace, project_rows
from streamlearn.learners.robust.blas import one_blas_thread
from streamlearn.learners.robust.checks import checked_count, checked_trim
from streamlearn.learners.robust.scaling import MAD_TO_SIGMA
from streamlearn.learners.robust.trimmed import LARGEST, TrimmedCovariance, finite

_STEPS = 30
_SLICE = 256  # rows: three temporaries of so many and 100 columns stay in a second-level cache
_LEAST_SQUARE, _LARGEST_SQUARE = 1e-200, 1e300  # beyond, squares may vanish or overflow: sizes are divided out first
_SAME = 1e-9  # share of the greatest singular value below which a direction is rounding
_REWEIGHT_SIGMAS, _CUT_SIGMAS = 2.5, 3.0
_WIDE = 4
"""Columns per row from which on the work is done in the space that the rows span: its dimension is that of the rows."""


@dataclass(frozen=True, slots=True)
class Subspace:
    """A subspace with its centre.

    Attributes
    ----------
    mean : float64[p]
    components : float64[d, p]
        Orthonormal rows by falling variance, each with its largest entry positive; zeros where there are not so many.
    """

    mean: FloatArray
    components: FloatArray


def rc_pca(X: ArrayLike, n_components: int, trim: float) -> FloatArray:
    """Return the principal components by trimmed inner products.

    Feng, Xu and Mannor (2017), Algorithm 3: the eigenvectors of the matrix whose entries are trimmed inner products of
    columns, here about their medians. Where more is trimmed than is bad, products of good rows are lost, on the
    diagonal and off it to different degrees: choose `trim` near the share of bad rows. Not equivariant under rotation.

    Parameters
    ----------
    X : float64[n_rows, n_features]
    n_components : int
    trim : float
        Share of the products to drop, in [0, 1).

    Returns
    -------
    float64[n_components, n_features]
        Orthonormal rows.

    Raises
    ------
    BadShape, BadValue, BadParameter

    Examples
    --------
    >>> import numpy as np
    >>> from streamlearn import rc_pca
    >>> X = np.random.default_rng(0).normal(size=(500, 3)) * [9.0, 1.0, 1.0]
    >>> X[:50] = [0.0, 1e6, 0.0]
    >>> abs(rc_pca(X, 1, 0.2)).round(1) + 0.0
    array([[1., 0., 0.]])
    """
    who = "rc_pca"
    rows = finite(who, "X", X, 2)
    if min(rows.shape) == 0:
        raise BadShape(f"{who}: X must have at least one row and one column, got shape {rows.shape}")
    checked_count(who, "n_components", n_components, 1)
    checked_trim(who, trim)
    if n_components > rows.shape[1]:
        raise BadParameter(f"{who}: n_components must be at most {rows.shape[1]}, got {n_components}")
    return SubspaceFitter().rc(rows.clip(-LARGEST, LARGEST), n_components, trim).components


class SubspaceFitter:
    """Fits one batch after the other; keeps buffers, never anything that changes a result."""

    def __init__(self) -> None:
        self._covariance = TrimmedCovariance()

    def rc(self, X: FloatArray, n_components: int, trim: float) -> Subspace:
        """Return the subspace by trimmed inner products.

        Parameters
        ----------
        X : float64[n, p]
            Finite, of size at most 1e150, at least one row.
        n_components : int
        trim : float
        """
        if X.shape[1] <= _WIDE * len(X):
            # No copy but the kernel's own: a batch may be most of the memory there is.
            sigma = self._covariance.of(X, trim)
            with one_blas_thread():
                return Subspace(self._covariance.medians.copy(), top_eigenvectors(sigma, n_components))
        rows, basis, origin, size = _manageable(X)
        sigma = self._covariance.of(rows, trim)
        with one_blas_thread():
            found = Subspace(self._covariance.medians.copy(), top_eigenvectors(sigma, n_components))
            return _back(found, basis, origin, size)

    def lts(self, X: FloatArray, n_components: int) -> Subspace:
        """Return the subspace nearest to the better half of the rows, then refined on all rows that fit.

        Concentration steps from three starts: directions of the rows only (spherical), the half of the rows with the
        smallest norm, and RC-PCA at one half. None of them alone withstands all kinds of outliers. Which is nearest is
        judged between two at a time, in the few directions that these are about.

        Parameters
        ----------
        X : float64[n, p]
            Finite, of size at most 1e150, at least one row.
        n_components : int
        """
        rows, basis, origin, size = _manageable(X)
        sigma = self._covariance.of(rows, 0.5)
        with one_blas_thread():
            half = max(len(rows) // 2, 1)
            starts = _starts(rows, n_components, half, self._covariance.medians, sigma)
            best, *rivals = (_concentrate(rows, start, half) for start in starts)
            for k, rival in enumerate(rivals):
                if _is_nearer(rows, rival, best, half):
                    best, rivals[k] = rival, best
            fits = _fitting(rows, best, rivals, half)
            return _back(principal(rows[fits], n_components), basis, origin, size)


def _span(left: Subspace, right: Subspace) -> FloatArray:
    """Return an orthonormal basis float64[m, p] of the directions in which two subspaces differ or lie."""
    apart = right.mean - left.mean
    size = float(np.linalg.norm(apart))
    rows = np.concatenate([left.components, right.components, apart[None] / (size or 1.0)])
    _, values, basis = np.linalg.svd(rows, full_matrices=False)
    found: FloatArray = basis[values > _SAME * values[0]]
    return found


def _distances_within(X: FloatArray, subspace: Subspace, span: FloatArray) -> FloatArray:
    """Return the distance of each row from a subspace as it is seen in a span that contains it."""
    seen = Subspace(subspace.mean @ span.T, subspace.components @ span.T)
    return scores_and_distances(X @ span.T, seen)[1]


def _is_nearer(X: FloatArray, left: Subspace, right: Subspace, half: int) -> bool:
    """Tell whether the better half of the rows is nearer to one subspace than to another.

    Seen in the span of the two alone: what lies outside is as far from either, and its noise, of all other columns,
    blurs which half is the better one. At a signal of the noise's size in 5 of 100 directions rows that are 30 % in one
    wrong subspace would win by it.
    """
    span = _span(left, right)
    sums = []
    for subspace in (left, right):
        off = _distances_within(X, subspace, span)
        sums.append(float(np.square(np.partition(off, half - 1)[:half]).sum()))
    return sums[0] < sums[1]


def _fitting(X: FloatArray, best: Subspace, rivals: Sequence[Subspace], half: int) -> NDArray[np.bool_]:
    """Return which rows fit: near in all directions together, and in those of each rival.

    Rows of a coherent minority are far off in a rival's few directions, where they stand out, and less so in all.
    """
    off = scores_and_distances(X, best)[1]
    ratio = off / (cut_off(off, _REWEIGHT_SIGMAS) or 1.0)
    for rival in rivals:
        span = _span(best, rival)
        if len(span) > len(best.components):
            off = _distances_within(X, best, span)
            ratio = np.maximum(ratio, off / (cut_off(off, _REWEIGHT_SIGMAS) or 1.0))
    fits: NDArray[np.bool_] = ratio <= max(1.0, float(np.partition(ratio, half - 1)[half - 1]))
    return fits


def _starts(X: FloatArray, n_components: int, half: int, middle: FloatArray, sigma: FloatArray) -> Iterator[Subspace]:
    centred = X - middle
    norms = np.sqrt(np.square(centred).sum(axis=1))
    away = norms > 0.0
    directions = centred[away] / norms[away, None]
    yield Subspace(middle, top_eigenvectors(directions.T @ directions, n_components))
    yield principal(X[np.argsort(norms, kind="stable")[:half]], n_components)
    yield Subspace(middle, top_eigenvectors(sigma, n_components))


def _concentrate(X: FloatArray, start: Subspace, half: int) -> Subspace:
    found, last = start, None
    for _ in range(_STEPS):
        nearest = np.sort(np.argsort(scores_and_distances(X, found)[1], kind="stable")[:half])
        if last is not None and np.array_equal(nearest, last):
            break
        found, last = principal(X[nearest], len(start.components)), nearest
    return found


def principal(X: FloatArray, n_components: int) -> Subspace:
    """Return mean and leading principal components of rows."""
    mean = X.mean(axis=0)
    centred = X - mean
    return Subspace(mean, top_eigenvectors(centred.T @ centred, n_components))


def top_eigenvectors(matrix: FloatArray, n: int) -> FloatArray:
    """Return the eigenvectors of the n largest eigenvalues as rows float64[n, p], zeros beyond p."""
    from scipy.linalg import eigh  # noqa: PLC0415 - only those who fit pay for the import

    p = len(matrix)
    out = np.zeros((n, p))
    m = min(n, p)
    if m:
        size = float(np.abs(matrix).max())
        vectors = eigh(matrix / size if size > 0.0 else matrix, subset_by_index=[p - m, p - 1], check_finite=False)[
            1
        ].T[::-1]
        largest = np.abs(vectors).argmax(axis=1)
        out[:m] = vectors * np.where(vectors[np.arange(m), largest] < 0.0, -1.0, 1.0)[:, None]
    return out


def scores_and_distances(X: FloatArray, subspace: Subspace) -> tuple[FloatArray, FloatArray]:
    """Return coordinates float64[n, d] of the rows in the subspace, and their distances from it float64[n].

    By matrix products over slices of rows: several times as fast as `orthogonal_distances`, but the last bits of a row
    depend on its neighbours.
    """
    scores, off = np.empty((len(X), len(subspace.components))), np.empty(len(X))
    for start in range(0, len(X), _SLICE):
        part = slice(start, start + _SLICE)
        centred = X[part] - subspace.mean
        scores[part] = centred @ subspace.components.T
        centred -= scores[part] @ subspace.components
        squares = np.einsum("ij,ij->i", centred, centred)
        if not _LEAST_SQUARE < squares.max() < _LARGEST_SQUARE:
            size = float(np.abs(centred).max(initial=0.0)) or 1.0
            centred /= size
            off[part] = size * np.sqrt(np.einsum("ij,ij->i", centred, centred))
            continue
        off[part] = np.sqrt(squares)
    return scores, off


def orthogonal_distances(X: FloatArray, subspace: Subspace) -> FloatArray:
    """Return the distance of each row from the subspace: float64[n]."""
    scores, out = np.empty((len(X), len(subspace.components))), np.empty(len(X))
    project_rows(X, subspace.mean, subspace.components, scores)
    distances_to_subspace(X, subspace.mean, subspace.components, scores, out)
    return out


def cut_off(distances: FloatArray, sigmas: float = _CUT_SIGMAS) -> float:
    """Return the distance that good rows stay below: their 2/3 powers are about normal (Wilson and Hilferty)."""
    powers = np.cbrt(distances) ** 2
    middle = float(np.median(powers))
    return float((middle + sigmas * MAD_TO_SIGMA * float(np.median(np.abs(powers - middle)))) ** 1.5)


def _manageable(X: FloatArray) -> tuple[FloatArray, FloatArray | None, FloatArray, float]:
    """Return rows, the basis they are in (None: their own), origin and size, so that X = origin + size rows basis.

    Scaled to about one, so that squares neither overflow nor vanish. Far more columns than rows are rotated away.
    """
    origin = np.median(X, axis=0)
    centred = X - origin
    size = float(np.abs(centred).max(initial=0.0))
    if size == 0.0:
        return centred, None, origin, 1.0
    # The median size of the rows' largest entries: one far row must not push all others into rounding.
    usual = float(np.median(np.abs(centred).max(axis=1)))
    size = usual if usual > size * 1e-100 else size
    rows = np.ascontiguousarray(centred / size)
    n, p = rows.shape
    if p <= _WIDE * n:
        return rows, None, origin, size
    with one_blas_thread():
        basis = np.linalg.svd(rows, full_matrices=False)[2][: max(n - 1, 1)]
        return np.ascontiguousarray(rows @ basis.T), basis, origin, size


def _back(found: Subspace, basis: FloatArray | None, origin: FloatArray, size: float) -> Subspace:
    if basis is None:
        return Subspace(origin + size * found.mean, found.components)
    components = found.components @ basis
    largest = np.abs(components).argmax(axis=1)
    signs = np.where(components[np.arange(len(components)), largest] < 0.0, -1.0, 1.0)
    return Subspace(origin + size * (found.mean @ basis), np.ascontiguousarray(components * signs[:, None]))
