"""What a refit works on: labelled and unlabelled rows, their scaling, folds and seeds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import FloatArray, IntArray
from streamlearn.kernels import forest as kernels
from streamlearn.kernels.grow import mixed
from streamlearn.learners.muffled.trees import Floats32, Ranked, Trees

N_FOLDS = 5
_FOLDS = 1 << 32  # beyond the counts of members and stages
_ROWS_OF_CENTRE = 1000  # medians of so many rows tell the centre of a feature well enough


def derived_seed(seed: int, count: int) -> int:
    """Return a 64-bit seed for the count-th use of a seed."""
    return int(mixed(np.uint64(seed), count))


@dataclass(frozen=True, slots=True)
class Warm:
    """What forests hand on to the next refit.

    Attributes
    ----------
    affine : float64[4, n_features]
        Its trees compare keys of values scaled so.
    trees : mapping of name to Trees
        Oldest first.
    used : mapping of name to bool[n_labelled, n_trees]
        Labelled rows of this sample that each tree saw.
    """

    affine: FloatArray
    trees: Mapping[str, Trees]
    used: Mapping[str, NDArray[np.bool_]]

    @property
    def splits(self) -> NDArray[np.bool_]:
        """Features on which some tree splits: bool[n_features]."""
        found = np.zeros(self.affine.shape[1], dtype=np.bool_)
        for part in self.trees.values():
            found[part.nodes[part.nodes[:, 3] < 0, 0]] = True
        return found


@dataclass(frozen=True)
class Sample:
    """Labelled and unlabelled rows of one refit.

    Attributes
    ----------
    labelled : float64[n_labelled, n_features]
    y : float64[n_labelled]
        1 or -1, at least two of each.
    unlabelled : float64[n_unlabelled, n_features]
    seed : int
        64 bits, other ones at each refit.
    labelled_ranks, unlabelled_ranks : float64[n_rows, n_features] or None
        Ranks of the same rows when they came, under drift.
    warm : Warm or None
        What the last model hands on, under drift.
    weights : mapping of name to float
        Of the last model's votes; empty at the first refit.
    """

    labelled: FloatArray
    y: FloatArray
    unlabelled: FloatArray
    seed: int
    labelled_ranks: FloatArray | None = None
    unlabelled_ranks: FloatArray | None = None
    warm: Warm | None = None
    weights: Mapping[str, float] = field(default_factory=dict)

    @cached_property
    def prior(self) -> float:
        """Mean label."""
        return float(self.y.mean())

    @cached_property
    def affine(self) -> FloatArray:
        """Scaling of rows, float64[4, n_features]: centre and spread for trees, mean and sd for linear members.

        Trees need it because float32 has no digits left at a mean of 1e9 and no room for 1e150.
        """
        rows = np.concatenate([self.labelled, self.unlabelled[:_ROWS_OF_CENTRE]])
        affine = np.ones((4, rows.shape[1]))
        affine[kernels.CENTRE] = np.median(rows, axis=0)
        # Halves: the difference of two numbers near the largest one would overflow.
        away = np.abs(rows / 2.0 - affine[kernels.CENTRE] / 2.0)
        typical, largest = np.median(away, axis=0), away.max(axis=0, initial=0.0)
        spread = np.where(typical > 0.0, typical, largest) * 2.0
        affine[kernels.SPREAD] = np.where((spread > 0.0) & np.isfinite(spread), spread, 1.0)
        if self.warm is not None:
            kept = self.warm.splits
            affine[: kernels.MEAN_OF, kept] = self.warm.affine[: kernels.MEAN_OF, kept]
        everything = np.concatenate([self.values(self.labelled, affine), self.values(self.unlabelled, affine)])
        wide = everything.astype(np.float64)
        affine[kernels.MEAN_OF] = wide.mean(axis=0)
        sd = wide.std(axis=0)
        affine[kernels.SD_OF] = np.where(sd > 0.0, sd, 1.0)
        return affine

    @staticmethod
    def values(X: FloatArray, affine: FloatArray) -> Floats32:
        """Return rows as trees see them: float32[n_rows, n_features]."""
        out = np.empty(X.shape, dtype=np.float32)
        kernels.row_keys(np.ascontiguousarray(X), affine, out)
        return out

    @cached_property
    def labelled_values(self) -> Floats32:
        """Labelled rows as trees see them."""
        return self.values(self.labelled, self.affine)

    @cached_property
    def unlabelled_values(self) -> Floats32:
        """Unlabelled rows as trees see them."""
        return self.values(self.unlabelled, self.affine)

    @cached_property
    def ranked(self) -> Ranked:
        """Labelled rows ready for growing trees."""
        return Ranked.of(self.labelled_values)

    @cached_property
    def labelled_keys(self) -> kernels.Keys:
        """Keys of the labelled rows: int32[n_labelled, n_features]."""
        return ordered(self.labelled_values)

    @cached_property
    def unlabelled_keys(self) -> kernels.Keys:
        """Keys of the unlabelled rows: int32[n_unlabelled, n_features]."""
        return ordered(self.unlabelled_values)

    @cached_property
    def standardised(self) -> FloatArray:
        """Labelled rows as linear members see them: float64[n_labelled, n_features]."""
        z = (self.labelled_values.astype(np.float64) - self.affine[kernels.MEAN_OF]) / self.affine[kernels.SD_OF]
        return np.asarray(np.clip(z, -kernels.LINEAR_CLIP, kernels.LINEAR_CLIP))

    @cached_property
    def folds(self) -> IntArray:
        """Fold of each labelled row, 0 to 4, each class spread over all of them: int64[n_labelled]."""
        return folds_of(self.y, derived_seed(self.seed, _FOLDS))

    def derived(self, count: int) -> int:
        """Return the seed of one member."""
        return derived_seed(self.seed, count)

    def generator(self, count: int) -> np.random.Generator:
        """Return a generator of the count-th use."""
        return np.random.Generator(np.random.Philox(key=self.derived(count)))


def ordered(values: Floats32) -> kernels.Keys:
    """Return the keys of float32 rows: int32[n_rows, n_features]."""
    keys: NDArray[np.int32] = values.copy().view(np.int32)
    kernels.order_keys(keys)
    return keys


def folds_of(y: FloatArray, seed: int) -> IntArray:
    """Return a fold for each row, the rows of each class dealt out in random order: int64[n]."""
    shuffled = np.random.Generator(np.random.Philox(key=seed)).permutation(len(y))
    folds = np.empty(len(y), dtype=np.int64)
    positive = y[shuffled] > 0
    for members in (shuffled[positive], shuffled[~positive]):
        folds[members] = np.arange(len(members)) % N_FOLDS
    return folds
