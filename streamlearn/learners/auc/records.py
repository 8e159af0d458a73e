"""Records of features: the class statistics of wide events behind AUCRO and its bank."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import CodeArray, FloatArray
from streamlearn.features.entries import SparseRows
from streamlearn.kernels import auc, auc_means, auc_wide
from streamlearn.kernels.rows import first_bad_row
from streamlearn.learners.auc.arena import capacity
from streamlearn.learners.auc.moments import Moments
from streamlearn.learners.entries import nonzeros_of

TINIEST = 1e-300


def entries(X: FloatArray | SparseRows) -> SparseRows | int:
    """Return rows by their nonzeros, or the first one that is not finite."""
    if isinstance(X, SparseRows):
        return X
    bad = first_bad_row(X)
    if bad >= 0:
        return bad
    return nonzeros_of(X)


class Records:
    """Class statistics of each feature, and the weights made of them, for one or several memories.

    Parameters
    ----------
    form : {"diagonal", "means"}
        The exact solution on variances alone, or steps against class means.
    n_memories : int

    Attributes
    ----------
    F : float64[header_size + n_memories * memory_header_size]
    R : float64[capacity, record_size]
    """

    def __init__(self, form: Literal["diagonal", "means"], n_memories: int = 1) -> None:
        self.form = form
        self.n_memories = n_memories
        self._class_size = auc_wide.CLASS_SIZE if form == "diagonal" else 1
        self.F: FloatArray = np.zeros(auc_wide.HEADER + n_memories * auc_wide.MEMORY_HEADER)
        self.R: FloatArray = np.zeros((capacity(0), auc_wide.N_COMMON + n_memories * self._kernels.N_OWN))
        for e in range(n_memories):
            H = self.memory(e)
            H[auc_wide.SCALE : auc_wide.SCALE + 2] = H[auc_wide.SHRINK] = H[auc_wide.FADE] = 1.0
        self.write_sizes()

    @property
    def _kernels(self) -> Any:
        return auc_wide if self.form == "diagonal" else auc_means

    @classmethod
    def of(cls, moments: Moments, form: Literal["diagonal", "means"] = "diagonal", *, standard: bool = True) -> Records:
        """Return what moments of whole covariances hold of each feature alone.

        Weights on the diagonal are solved anew; steps against class means, on features that are standardised or not, go
        on from the weights of the moments.
        """
        made = cls("diagonal", moments.n_memories)
        made.widen(moments.n_features)
        made._take(moments)
        if form == "means":
            weights = [moments.own(e)[auc.W, : moments.n_features] for e in range(moments.n_memories)]
            made = made.stepping(weights, standard=standard)
        if (made.F[auc_wide.SEEN : auc_wide.SEEN + 2] > 0.0).all():
            made._judge(moments)
        return made

    def stepping(self, weights: Sequence[FloatArray], *, standard: bool = True) -> Records:
        """Return records for steps against class means that go on from these weights; of records of variances.

        The curvature that a feature was stepped on is what all events so far would have had against the means of now.
        """
        m = int(self.F[auc_wide.WIDTH])
        made = Records("means", self.n_memories)
        made.widen(m)
        made.F[:] = self.F
        made.R[: len(self.R), : auc_wide.N_COMMON] = self.R[:, : auc_wide.N_COMMON]
        made.R[:, [auc_wide.METRIC, auc_wide.LOG]] = 0.0
        made.F[[auc_wide.LOGS, auc_wide.N_LOGS]] = 0.0
        made.F[auc_wide.SCALING] = auc_means.STANDARD if standard else 0.0
        for e in range(self.n_memories):
            H, own = made.memory(e), made.own(e)[:m]
            weight, centre, variance = self.classes(e)
            H[[auc_wide.SCALE, auc_wide.SCALE + 1, auc_wide.SHRINK, auc_wide.FADE]] = 1.0
            own[:, auc_means.SUM], own[:, auc_means.SUM + 1] = centre * weight[:, None]
            own[:, auc_means.W] = weights[e][:m]
            own[:, auc_means.CURVATURE] = self._curvature(H, weight, centre, variance)
        auc_means.begin(made.F, made.R)
        return made

    def classes(self, e: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return weight, mean and variance of both classes in memory e, float64[2] and [2, width], zeros included."""
        H, own = self.memory(e), self.own(e)[: int(self.F[auc_wide.WIDTH])]
        centre, variance = np.zeros((2, len(own))), np.zeros((2, len(own)))
        for k in range(2):
            known, mean, spread = (own[:, k * auc_wide.CLASS_SIZE + slot] for slot in range(auc_wide.CLASS_SIZE))
            centre[k], variance[k] = with_zeros(
                known * H[auc_wide.SCALE + k], float(H[auc_wide.WEIGHT + k]), mean, spread
            )
        return H[auc_wide.WEIGHT : auc_wide.WEIGHT + 2].copy(), centre, variance

    def _curvature(self, H: FloatArray, weight: FloatArray, centre: FloatArray, variance: FloatArray) -> FloatArray:
        """Return what the events with each feature curve the loss by, in units of what halves the steps."""
        R, total = self.R[: centre.shape[1]], np.zeros(centre.shape[1])
        if not weight.all():
            return total
        # Events at 0 are not stepped on; how many there were is known of features of two values.
        bits = (R[:, auc_wide.SECOND] == 0.0) & (R[:, auc_wide.FIRST] != 0.0)
        share = np.divide(centre, R[:, auc_wide.FIRST], out=np.ones_like(centre), where=bits)
        if H[auc_wide.CLASS_CLOCK] and H[auc_wide.DECAY] < 1.0:  # curvature fades by every event, by either clock
            seen, g = self.F[auc_wide.SEEN : auc_wide.SEEN + 2], H[auc_wide.DECAY]
            weight = seen / seen.sum() * (1.0 - g ** seen.sum()) / (1.0 - g)
        for k in range(2):
            heavy, other = 2.0 * weight[1 - k] / weight.sum(), centre[1 - k]
            squares = variance[k] + np.square(centre[k] - other) - (1.0 - np.clip(share[k], 0.0, 1.0)) * other**2
            total += heavy * weight[k] * np.maximum(squares, 0.0)
        return total / auc_means.NOISE

    def header(self) -> FloatArray:
        """Return the common header, a view."""
        return self.F[: auc_wide.HEADER]

    def memory(self, e: int) -> FloatArray:
        """Return the header of memory e, a view."""
        return self.F[auc_wide.HEADER :].reshape(self.n_memories, -1)[e]  # type: ignore[no-any-return]

    def own(self, e: int) -> FloatArray:
        """Return what memory e knows of each feature, float64[capacity, n_own], a view."""
        start = auc_wide.N_COMMON + e * self._kernels.N_OWN
        return self.R[:, start : start + self._kernels.N_OWN]

    def write_sizes(self) -> None:
        """Write what kernels rely on to the header."""
        self.F[auc_wide.N_MEMORIES] = self.n_memories
        self.F[auc_wide.WIDTH] = min(max(self.F[auc_wide.WIDTH], 0.0), len(self.R))

    def widen(self, n_features: int) -> None:
        """Make room for columns that were 0 for ever; the kernels count those that came."""
        if capacity(n_features) > len(self.R):
            R = np.zeros((capacity(n_features), self.R.shape[1]))
            R[: len(self.R)] = self.R
            self.R = R

    def keep(self, memories: Sequence[int]) -> None:
        """Keep but these memories."""
        headers, owns = [self.memory(e).copy() for e in memories], [self.own(e).copy() for e in memories]
        self.n_memories = len(memories)
        self.F = np.concatenate([self.header(), *headers])
        self.R = np.ascontiguousarray(np.hstack([self.R[:, : auc_wide.N_COMMON], *owns]))
        self.write_sizes()

    def swap_classes(self) -> None:
        """Exchange the classes; only one of them has been seen, so there are no weights yet."""
        _swap(self.F, auc_wide.SEEN, auc_wide.SEEN + 1)
        for e in range(self.n_memories):
            H = self.memory(e)
            for slot in (auc_wide.WEIGHT, auc_wide.SCALE):
                _swap(H, slot, slot + 1)
            if self.form == "means":
                _swap(H, auc_means.GRAM, auc_means.GRAM + 2)
            for k in range(self._class_size):
                _swap(self.own(e).T, k, k + self._class_size)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the state as views."""
        return {"header": self.F, "records": self.R}

    def run(self, X: FloatArray | SparseRows, codes: CodeArray, ratios: FloatArray, chances: FloatArray) -> int:
        """Forecast and learn each row; return -1, or the first row that is not finite."""
        rows = entries(X)
        if isinstance(rows, int):
            return rows
        self._kernels.run(self.F, self.R, rows.pointers, rows.columns, rows.values, codes, ratios, chances)
        return -1

    def _take(self, moments: Moments) -> None:
        """Take all that moments know of each feature alone, and how its new weights fare by what they know beside."""
        old, m = moments.F, moments.n_features
        n = self.F[auc_wide.COUNT] = old[auc.COUNT]
        self.F[auc_wide.SEEN : auc_wide.SEEN + 2] = old[auc.SEEN : auc.SEEN + 2]
        self.F[auc_wide.WIDTH] = m
        common, R = moments.common()[:, :m], self.R[:m]
        shift, second = common[auc.SHIFT], common[auc.SECOND]
        R[:, auc_wide.AT] = R[:, auc_wide.TIMES] = n
        R[:, auc_wide.MEAN], R[:, auc_wide.VARIANCE] = shift + common[auc.MEAN], common[auc.VARIANCE]
        R[:, auc_wide.PEAK] = common[auc.PEAK]
        other = shift + second
        zeros = (shift == 0.0) | (other == 0.0)  # else the two values, if there are but two, are none of them 0
        R[:, auc_wide.FIRST] = np.where(shift == 0.0, other, shift)
        R[:, auc_wide.SECOND] = np.where(
            second == auc.MANY, auc_wide.MANY, np.where(zeros | (second == 0.0), 0.0, other)
        )
        R[zeros, auc_wide.TIMES] = max(n - 1.0, 0.0)
        bits, value = zeros & (R[:, auc_wide.SECOND] == 0.0), R[:, auc_wide.FIRST]
        share = np.divide(R[:, auc_wide.MEAN], value, out=np.zeros(m), where=value != 0.0)
        R[bits, auc_wide.TIMES] = np.clip(np.rint(n * share), 0.0, n)[bits]
        for e in range(self.n_memories):
            H, own = self.memory(e), self.own(e)[:m]
            H[auc_wide.WEIGHT : auc_wide.WEIGHT + 2] = moments.memory(e)[auc.WEIGHT : auc.WEIGHT + 2]
            H[auc_wide.REGULARIZATION] = moments.memory(e)[auc.REGULARIZATION]
            H[auc_wide.CLASS_CLOCK], H[auc_wide.DECAY] = moments.memory(e)[[auc.CLASS_CLOCK, auc.DECAY]]
            for k in range(2):
                if H[auc_wide.WEIGHT + k] > 0.0:
                    at = k * auc_wide.CLASS_SIZE
                    own[:, at + auc_wide.OWN_WEIGHT] = H[auc_wide.WEIGHT + k]
                    own[:, at + auc_wide.OWN_MEAN] = shift + moments.own(e)[auc.CENTRE + k, :m]
                    own[:, at + auc_wide.OWN_VARIANCE] = np.diag(moments.covariance(e, k))
        if (old[auc.SEEN : auc.SEEN + 2] > 0.0).all():
            auc_wide.sweep(self.F, self.R)

    def _judge(self, moments: Moments) -> None:
        """Calibrate the new weights by the whole covariances, which say how their scores spread."""
        for e in range(self.n_memories):
            H, means = self.memory(e), self.centres(e)
            w = self.own(e)[: moments.n_features, self._kernels.W]
            middle = 0.5 * (w * means[0]).sum() + 0.5 * (w * means[1]).sum()
            for k in range(2):
                # Sums of numpy, not products of BLAS: their order does not depend on the number of threads.
                spread = (w * (moments.covariance(e, k) * w).sum(axis=1)).sum()
                H[auc_wide.SCORE + k], H[auc_wide.SPREAD + k] = (w * means[k]).sum() - middle, spread
                H[auc_wide.JUDGED + k] = H[auc_wide.WEIGHT + k]
            auc_wide.set_ratio(H)

    def centres(self, e: int) -> FloatArray:
        """Return the class means of memory e, float64[2, width]."""
        if self.form == "diagonal":
            return self.classes(e)[1]
        H, own = self.memory(e), self.own(e)[: int(self.F[auc_wide.WIDTH])]
        factors = H[auc_wide.SCALE : auc_wide.SCALE + 2] / np.maximum(H[auc_wide.WEIGHT : auc_wide.WEIGHT + 2], TINIEST)
        centres: FloatArray = factors[:, None] * own[:, auc_means.SUM : auc_means.SUM + 2].T
        return centres


def with_zeros(weight: FloatArray, total: float, mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, ...]:
    """Return mean and variance over all events, where the rest of the weight were zeros."""
    share = weight / total if total > 0.0 else np.zeros(len(weight))
    share = np.where(share > 1.0 - auc_wide.NO_ZEROS, 1.0, share)
    return share * mean, share * variance + share * (1.0 - share) * np.square(mean)


def _swap(array: FloatArray, first: int, second: int) -> None:
    array[[first, second]] = array[[second, first]]
