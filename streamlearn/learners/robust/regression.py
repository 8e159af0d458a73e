"""ORLRegressor: linear regression on a stream, part of which may be anything."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import Document, FloatArray
from streamlearn.errors import BadParameter
from streamlearn.features.frames import labels_of, series_like
from streamlearn.learners.regressor import Regressor
from streamlearn.learners.robust.bank import RobustBank
from streamlearn.learners.robust.batches import RobustBatches
from streamlearn.learners.robust.checks import checked_choice, checked_count, checked_trim
from streamlearn.learners.robust.median import in_batches, make_filter

_OUTLIER_SIGMAS = 4.0


class ORLRegressor(Regressor):
    """Outlier-robust online linear regression.

    ``mode="events"`` learns from every event at once: a bank of recursive fits whose memories reach from 20 events to
    all of them, each with weights that fall to zero for residuals of ten sigmas, guarded by a convex companion with
    bounded leverage, and mixed by bounded losses. Nothing has to be tuned. It follows drift and withstands about a
    third of bad rows anywhere. This form is ours: the paper's batches do badly where columns are constant for a while.

    ``mode="batches"`` is ORL-LR of Feng, Xu and Mannor (2017): a robust fit for each mini-batch, held together by the
    geometric median of these. It withstands batches that are bad as a whole, while more than half of those in the
    window are good.

    Parameters
    ----------
    mode : {"events", "batches"}
    half_life : float or None
        Events after which every memory of ``mode="events"`` has forgotten half; None = some never forget. In
        ``mode="batches"`` events after which the recursion has forgotten half of an old centre; needs ``window=None``.
    batch_size : int
        Rows of a mini-batch; several times the number of features. This and what follows is of ``mode="batches"``.
    base : {"lts", "rotr"}
        A batch's fit: least trimmed squares from many starts, or the paper's robust thresholding regression, which
        over-trims good rows and is then shrunk towards zero.
    trim : "auto" or float
        Share of bad rows in a batch. "auto" = every row that does not fit ("lts"), one half ("rotr").
    window : int or None
        Batches whose exact geometric median counts; None = the paper's recursion over all.
    averaged : bool
        Average the iterates of the recursion; needs ``window=None``.
    max_features : int
        Bound of the width; memory grows with its square in ``mode="events"``.

    Attributes
    ----------
    coef_ : float64[n_features]
        In the order of `feature_names`.
    intercept_ : float
    scale_ : float
        Standard deviation of the residuals of good rows.

    Examples
    --------
    >>> import numpy as np
    >>> from streamlearn import ORLRegressor
    >>> X = np.random.default_rng(0).normal(size=(2000, 2))
    >>> y = X @ [2.0, -1.0] + 3.0
    >>> y[::4] = 1e6
    >>> ORLRegressor().learn_many(X, y).coef_.round(3)
    array([ 2., -1.])
    """

    def __init__(
        self,
        *,
        mode: str = "events",
        half_life: float | None = None,
        batch_size: int = 500,
        base: str = "lts",
        trim: str | float = "auto",
        window: int | None = 50,
        averaged: bool = False,
        max_features: int = 1000,
    ) -> None:
        self.mode = mode
        self.half_life = half_life
        self.batch_size = batch_size
        self.base = base
        self.trim = trim
        self.window = window
        self.averaged = averaged
        self.max_features = max_features
        self._body = self._make_body()
        super().__init__()

    def _make_body(self) -> RobustBank | RobustBatches:
        who = self.name
        checked_choice(who, "mode", self.mode, ("events", "batches"))
        checked_choice(who, "base", self.base, ("lts", "rotr"))
        checked_count(who, "batch_size", self.batch_size, 2)
        if self.trim != "auto":
            checked_trim(who, self.trim)
        half_life = in_batches(who, self.half_life, self.batch_size)
        if self.mode == "events":
            make_filter(who, self.window, self.averaged)
            return RobustBank(self.half_life)
        held = make_filter(who, self.window, self.averaged, half_life=half_life)
        return RobustBatches(self.batch_size, self.base, None if isinstance(self.trim, str) else self.trim, held)

    # Hooks

    def _widen(self, n_features: int) -> None:
        self._body.widen(n_features)

    def _learn(self, X: FloatArray, y: FloatArray) -> None:
        self._body.run(X, y, np.empty(len(X)))

    def _predict(self, X: FloatArray, out: FloatArray) -> int:
        self._body.predict(X, out)
        return -1

    def _test_then_learn(self, X: FloatArray, y: FloatArray, out: FloatArray) -> None:
        self._body.run(X, y, out)

    # What was learned

    @property
    def coef_(self) -> FloatArray:
        """Coefficients in the units of the data: float64[n_features]."""
        return self._body.coefficients()[1:]

    @property
    def intercept_(self) -> float:
        """Prediction where all features are 0, but for clipping."""
        return float(self._body.coefficients()[0])

    @property
    def scale_(self) -> float:
        """Standard deviation of the residuals of good rows; NaN before the start."""
        return self._body.scale

    @property
    def last_batch_(self) -> tuple[float, float, bool]:
        """Of the last mini-batch: distance of its fit to the centre before it, its weight there, is it suspicious.

        Raises
        ------
        BadParameter
            Where ``mode="events"``: there are no batches.
        """
        if isinstance(self._body, RobustBank):
            raise BadParameter(f"{self.name}: mode must be 'batches' to ask for batches, got {self.mode!r}")
        return self._body.last_batch

    def outliers_many(self, X: Any, y: Any) -> Any:
        """Return which rows lie further than four sigmas off: bool[n_rows], in the kind that X is."""
        predicted = self._outputs(X, self._predict)
        target = self._targets(labels_of(self.name, X, y, len(predicted)))
        return series_like(X, np.abs(target - predicted) > _OUTLIER_SIGMAS * self.scale_, "outlier")

    # State

    def _numbers(self) -> Document:
        return self._body.numbers()

    def _set_numbers(self, numbers: Document) -> None:
        self._body.set_numbers(numbers)

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return self._body.arrays()

    def _set_arrays(self, arrays: dict[str, NDArray[Any]]) -> None:
        super()._set_arrays(arrays)
        self._body.changed()
