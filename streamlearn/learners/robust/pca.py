"""ORLPCA: principal components of a stream, part of which may be anything."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import FeatureName, FloatArray
from streamlearn.errors import BadParameter
from streamlearn.features.frames import series_like
from streamlearn.kernels.robust_subspace import distances_to_subspace, project_rows
from streamlearn.learners.batch import Rows, refuse_bad, rows_of_columns
from streamlearn.learners.robust.blas import one_blas_thread
from streamlearn.learners.robust.checks import checked_choice, checked_count, checked_trim
from streamlearn.learners.robust.filters import SUSPICIOUS, Filter, ProximalFilter
from streamlearn.learners.robust.median import in_batches, make_filter
from streamlearn.learners.robust.missing import fill_projections, pairwise_covariance, with_missing
from streamlearn.learners.robust.projectors import RECENT, ProjectorFilter, ProjectorRecursion, ProjectorWindow
from streamlearn.learners.robust.scaling import MAD_TO_SIGMA
from streamlearn.learners.robust.subspace import (
    Subspace,
    SubspaceFitter,
    cut_off,
    scores_and_distances,
    top_eigenvectors,
)
from streamlearn.learners.robust.waiting import WaitingRows, clipped
from streamlearn.learners.transformer import Transformer

_ENOUGH = 4096
"""Rows of a batch that tell its usual scores and distances: their medians are then right to about two per cent."""


class ORLPCA(Transformer):
    """Outlier-robust online principal components.

    Feng, Xu and Mannor (2017): a robust subspace of each mini-batch, held together by the geometric median of their
    projectors, and the leading eigenvectors of that median.

    ``base="rc"`` runs on all of Numba's threads. A matrix product of the caller's own leaves OpenBLAS threads that wait
    for the next one by spinning, for tens of milliseconds, beside which a batch takes twice as long. They cannot be
    stopped from here: set ``OPENBLAS_THREAD_TIMEOUT=4`` (they sleep at once) or ``OPENBLAS_NUM_THREADS=1`` before
    NumPy is loaded.

    Parameters
    ----------
    n_components : int
    batch_size : int
        Rows of a mini-batch; more than the features, and 20 or more a component.
    base : {"lts", "rc"}
        A batch's subspace: least trimmed squares from several starts, refined on the rows that fit; or the paper's
        RC-PCA by trimmed inner products, which loses much where it trims more or less than there is bad.
    trim : float
        Share of the products that ``base="rc"`` drops. One half (the paper's) withstands most and costs good rows most.
    window : int or None
        Batches whose exact geometric median counts; None = the paper's recursion over all, whose memory and time grow
        with the square of the features.
    averaged : bool
        Average the iterates of the recursion; needs ``window=None``.
    half_life : float or None
        Rows after which the recursion has forgotten half of an old centre; needs ``window=None``.
    missing : {"refuse", "pairwise", "complete"}
        NaN in rows. "pairwise" (``base="rc"`` only): each trimmed inner product over the rows that have both columns;
        "complete": batches are fitted on their complete rows, and skipped where these are fewer than twice the
        components. Scores and distances of incomplete rows come from the cells they have. Where columns are missing for
        a reason, pairs mix populations.
    max_features : int
        Bound of the width.

    Attributes
    ----------
    components_ : float64[n_components, n_features]
        Orthonormal rows in the order of `feature_names`; zeros before the first batch.
    mean_ : float64[n_features]
    last_batch_ : tuple of float, float, bool
        Of the last batch: distance of its projector, its weight in the median, is it suspicious.

    Examples
    --------
    >>> import numpy as np
    >>> from streamlearn import ORLPCA
    >>> X = np.random.default_rng(0).normal(size=(1000, 3)) * [9.0, 1.0, 1.0]
    >>> X[1::5] = [0.0, 1e6, 0.0]
    >>> abs(ORLPCA(n_components=1, batch_size=250).learn_many(X).components_).round(1)
    array([[1., 0., 0.]])
    """

    def __init__(
        self,
        *,
        n_components: int = 2,
        batch_size: int = 500,
        base: str = "lts",
        trim: float = 0.5,
        window: int | None = 50,
        averaged: bool = False,
        half_life: float | None = None,
        missing: str = "refuse",
        max_features: int = 2000,
    ) -> None:
        self.n_components = n_components
        self.batch_size = batch_size
        self.base = base
        self.trim = trim
        self.window = window
        self.averaged = averaged
        self.half_life = half_life
        self.missing = missing
        self.max_features = max_features
        checked_count(self.name, "n_components", n_components, 1)
        checked_count(self.name, "batch_size", batch_size, 2)
        checked_choice(self.name, "base", base, ("lts", "rc"))
        checked_trim(self.name, trim)
        checked_choice(self.name, "missing", missing, ("refuse", "pairwise", "complete"))
        if missing == "pairwise" and base != "rc":
            raise BadParameter(f"{self.name}: base must be 'rc' with missing='pairwise', got {base!r}")
        self._fitter = SubspaceFitter()
        self._waiting = WaitingRows(batch_size)
        self._means, self._projectors = self._make_filters()
        self._cuts = np.zeros(RECENT if window is None else window)  # of the orthogonal distances in each batch
        super().__init__()

    def _make_filters(self) -> tuple[Filter, ProjectorFilter]:
        def make() -> Filter:
            return make_filter(
                self.name, self.window, self.averaged, half_life=in_batches(self.name, self.half_life, self.batch_size)
            )

        means, steps = make(), make()
        if isinstance(steps, ProximalFilter):
            return means, ProjectorRecursion(self.n_components, steps)
        assert self.window is not None  # noqa: S101 - else the filter is the recursion
        return means, ProjectorWindow(self.window, self.n_components)

    @property
    def components_(self) -> FloatArray:
        """Principal components as rows: float64[n_components, n_features], a copy."""
        return self._projectors.components().copy()

    @property
    def mean_(self) -> FloatArray:
        """Centre: float64[n_features], a copy."""
        return self._means.centre().copy()

    @property
    def n_batches_(self) -> int:
        """Batches so far."""
        return self._projectors.n_batches

    @property
    def last_batch_(self) -> tuple[float, float, bool]:
        """Of the last batch: distance of its projector to the median, its weight there, is it suspicious."""
        distance, weight = self._projectors.last()
        usual = self._projectors.usual_distance()
        return distance, weight, bool(self.n_batches_ > 2 and distance > SUSPICIOUS * usual)

    # Hooks

    def _widen(self, n_features: int) -> None:
        self._waiting.widen(n_features)
        self._means.widen(n_features)
        self._projectors.widen(n_features)

    def _learn(self, X: FloatArray) -> None:
        start = 0
        while start < len(X):
            stop = min(start + self._waiting.room(), len(X))
            if stop - start == self.batch_size:
                self._estimate(clipped(X[start:stop]))  # a whole batch need not wait
            else:
                self._waiting.take_many(X[start:stop])
                if self._waiting.full:
                    self._estimate(self._waiting.rows)
                    self._waiting.clear()
            start = stop

    def _test_then_learn(self, X: FloatArray, out: FloatArray) -> None:
        start = 0
        while start < len(X):
            stop = min(start + self._waiting.room(), len(X))
            self._errors(X[start:stop], out[start:stop])
            self._learn(X[start:stop])
            start = stop

    def _errors(self, X: FloatArray, out: FloatArray) -> int:
        self._project(X, out)
        return -1

    def _transform(self, X: FloatArray) -> FloatArray:
        return self._project(X, np.empty(len(X)))

    def _project(self, X: FloatArray, off: FloatArray) -> FloatArray:
        """Write the distances of rows from the subspace, and return their scores."""
        mean, components = self._means.centre(), self._projectors.components()
        scores = np.empty((len(X), self.n_components))
        project_rows(X, mean, components, scores)
        distances_to_subspace(X, mean, components, scores, off)
        if self.missing != "refuse":
            fill_projections(X, mean, components, scores, off)
        return scores

    def _rows(self, X: Any) -> Rows:
        return super()._rows(X) if self.missing == "refuse" else self._rows_of(*with_missing(self.name, X))

    def _rows_of(self, names: tuple[FeatureName, ...], values: FloatArray) -> Rows:
        return rows_of_columns(self._features, names, values, missing=self.missing != "refuse")

    def _one_row(self, x: Any) -> tuple[tuple[FeatureName, ...], FloatArray]:
        return super()._one_row(x) if self.missing == "refuse" else with_missing(self.name, x)

    def _known_many(self, X: Any) -> FloatArray:
        return super()._known_many(X) if self.missing == "refuse" else self._known_rows(*with_missing(self.name, X))

    def _known_rows(self, names: tuple[FeatureName, ...], values: FloatArray) -> FloatArray:
        if self.missing == "refuse":
            return super()._known_rows(names, values)
        refuse_bad(self.name, names, np.where(np.isnan(values), 0.0, values))
        self._features.refuse_other_kind(names)
        return self._features.align(names, values)

    def _estimate(self, X: FloatArray) -> None:
        if self.missing == "complete":
            X = np.ascontiguousarray(X[~np.isnan(X).any(axis=1)])
            if len(X) < 2 * self.n_components:
                return
        if not X.shape[1]:
            return  # no feature was ever other than 0: there is no direction to find
        found = self._fit(X)
        sample = X[:: -(-len(X) // _ENOUGH)]
        with one_blas_thread():
            scores, off = scores_and_distances(sample, found)
            if self.missing == "pairwise":
                fill_projections(sample, found.mean, found.components, scores, off)
        self._cuts[self.n_batches_ % len(self._cuts)] = cut_off(off)
        self._means.extend(found.mean.reshape(1, -1))
        scales = MAD_TO_SIGMA * np.median(np.abs(scores - np.median(scores, axis=0)), axis=0)
        self._projectors.push(found.components, scales)

    def _fit(self, X: FloatArray) -> Subspace:
        if self.missing == "pairwise":
            medians, sigma = pairwise_covariance(X, self.trim)
            with one_blas_thread():
                return Subspace(medians, top_eigenvectors(sigma, self.n_components))
        if self.base == "rc":
            return self._fitter.rc(X, self.n_components, self.trim)
        return self._fitter.lts(X, self.n_components)

    # Outliers

    def distances_many(self, X: Any) -> tuple[FloatArray, FloatArray]:
        """Return how far each row lies along the subspace, in robust standard deviations, and how far off it.

        Parameters
        ----------
        X : array [n_rows, n_features], dataframe, or sequence of mappings

        Returns
        -------
        score_distance, orthogonal_distance : float64[n_rows]
        """
        rows = self._known_many(X)
        if not self.n_batches_:
            raise BadParameter(f"{self.name}: batch_size rows must be learned before distances, got fewer")
        scales = np.median(self._projectors.scales(), axis=0)
        off = np.empty(len(rows))
        scores = self._project(rows, off)
        scaled = np.divide(scores, scales, where=scales > 0.0, out=np.zeros_like(scores))
        return np.sqrt(np.square(np.clip(scaled, -1e100, 1e100)).sum(axis=1)), off

    def outliers_many(self, X: Any) -> Any:
        """Return which rows lie further off the subspace than good ones do: bool[n_rows], in the kind that X is."""
        _, off = self.distances_many(X)
        cut = float(np.median(self._cuts[: self.n_batches_]))
        return series_like(X, off > cut, "outlier")

    # State

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {
            **self._waiting.arrays(),
            **{f"mean_{name}": array for name, array in self._means.arrays().items()},
            **self._projectors.arrays(),
            "cuts": self._cuts,
        }

    def _set_arrays(self, arrays: dict[str, NDArray[Any]]) -> None:
        super()._set_arrays(arrays)
        self._means.changed()
        self._projectors.changed()
