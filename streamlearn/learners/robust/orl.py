"""ORL: any estimator of a parameter vector made robust on a stream."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import Document, FloatArray, Snapshot
from streamlearn.errors import BadParameter, BadShape, BadSnapshot, BadValue, BaseFailed, StreamlearnError
from streamlearn.learners.batch import Rows
from streamlearn.learners.regressor import Regressor
from streamlearn.learners.robust.checks import checked_count
from streamlearn.learners.robust.filters import SUSPICIOUS
from streamlearn.learners.robust.lts import LeastTrimmedSquaresFitter, thresholding
from streamlearn.learners.robust.median import in_batches, make_filter
from streamlearn.learners.robust.scaling import median_and_deviation, scaled_targets, start_scaling
from streamlearn.learners.robust.waiting import WaitingRows, clipped

Estimate = Callable[[FloatArray, FloatArray], Any]

_OBJECT = "object: "
_ROTR_TRIM = 0.5


class ORL(Regressor):
    """Outlier-robust online learning around any mini-batch estimator.

    Feng, Xu and Mannor (2017): rows are collected to mini-batches, each is estimated by `base`, and the estimates are
    held together by their geometric median. While more than half of the batches in the window give a good estimate, the
    rest may be anything.

    Parameters
    ----------
    base : str, scikit-learn estimator, or callable
        "lts" (least trimmed squares), "rotr" (robust thresholding regression), "ols" (least squares) or "mean" (of the
        columns); an estimator with `fit`, `coef_` and `intercept_` for one target or two classes; or a function
        (X, y) -> vector of fixed length. Vectors of models begin with the intercept.
    batch_size : int
        Rows of a mini-batch.
    window : int or None
        Batches whose exact geometric median counts; None = the paper's recursion over all.
    averaged : bool
        Average the iterates of the recursion; needs ``window=None``.
    half_life : float or None
        Rows after which the recursion has forgotten half of an old centre; needs ``window=None``.
    max_features : int
        Bound of the width.

    Attributes
    ----------
    estimate_ : float64[n_parameters]
        The geometric median; zeros before the first batch.
    distance_, weight_ : float
        Of the last batch: distance of its estimate to the centre before it, its share in the median now (or the
        recursion's step).
    suspicious_ : bool
        The last batch was further off than four median distances.
    n_batches_, n_skipped_ : int
        Batches estimated; batches that a classifier could not fit, since they held one class alone.

    Notes
    -----
    A model with a base that is not named goes into checkpoints, and comes back by `restore` of an `ORL` with an equal
    base, or ``load(path, like=ORL(base))``; `load` alone and `from_state` cannot make such a base, since nothing is
    executed on load.

    Where `base` fails on a mini-batch, nothing of the call that completed it is learned, and `BaseFailed` tells why.
    The rows of before still wait: the next call estimates them anew, with what it brings.

    Examples
    --------
    >>> import numpy as np
    >>> from streamlearn import ORL
    >>> rows = np.random.default_rng(0).normal(size=(1000, 2)) + [3.0, -1.0]
    >>> rows[:300] = 1e9
    >>> ORL(base=lambda X, y: X.mean(axis=0), batch_size=100).learn_many(rows, rows[:, 0]).estimate_.round(0)
    array([ 3., -1.])
    """

    def __init__(
        self,
        base: Any = "lts",
        *,
        batch_size: int = 500,
        window: int | None = 50,
        averaged: bool = False,
        half_life: float | None = None,
        max_features: int = 10_000,
    ) -> None:
        self.base = base
        self.batch_size = batch_size
        self.window = window
        self.averaged = averaged
        self.half_life = half_life
        self.max_features = max_features
        checked_count(self.name, "batch_size", batch_size, 2)
        self._held = make_filter(self.name, window, averaged, half_life=in_batches(self.name, half_life, batch_size))
        self._estimate, self._free = self._estimator()
        self._waiting = WaitingRows(batch_size)
        self._marks = np.zeros(4)  # batches, skipped ones, distance and usual distance of the last
        self._classes = np.zeros(2)
        self._length = 0
        super().__init__()
        self._widen(0)

    def _estimator(self) -> tuple[Estimate, bool]:
        """Return the function batch -> vector, and whether the vector's length is the function's own affair."""
        named: dict[str, Estimate] = {
            "lts": _LeastTrimmed(),
            "rotr": _Thresholding(),
            "ols": _least_squares,
            "mean": _mean,
        }
        if isinstance(self.base, str) and self.base in named:
            return named[self.base], self.base == "mean"
        if hasattr(self.base, "fit") and hasattr(self.base, "get_params") and not inspect.isclass(self.base):
            return self._fit_foreign, False
        if callable(self.base) and not inspect.isclass(self.base):
            return self.base, True
        if isinstance(self.base, str) and self.base.startswith(_OBJECT):
            raise BadSnapshot(
                f"{self.name}: the saved base {self.base.removeprefix(_OBJECT)} must be given again, as in "
                "load(path, like=ORL(base)) or ORL(base).restore(state): nothing in a file is executed"
            )
        known = f"one of {list(named)}, a scikit-learn estimator or a function"
        raise BadParameter(f"{self.name}: base must be {known}, got {self.base!r}")

    def _fit_foreign(self, X: FloatArray, y: FloatArray) -> FloatArray | None:
        """Fit a clone of the scikit-learn estimator; None for a batch of one class."""
        from sklearn.base import clone, is_classifier  # noqa: PLC0415 - whoever brings an estimator has it loaded

        if is_classifier(self.base):
            classes = np.unique(y)
            if len(classes) < 2 or (self.n_batches_ and not np.array_equal(classes, self._classes)):
                return None
            if len(classes) > 2:
                raise BadParameter(f"{self.name}: base must be given two classes, got {classes.tolist()}")
            self._classes[:] = classes
        fitted = clone(self.base).fit(X, y)
        intercept = np.ravel(getattr(fitted, "intercept_", 0.0))
        coefficients = np.ravel(fitted.coef_)
        if len(coefficients) != X.shape[1] or len(intercept) != 1:
            raise BadParameter(f"{self.name}: base must have one coefficient a feature, got {np.shape(fitted.coef_)}")
        return np.concatenate([intercept, coefficients])

    # What was learned

    @property
    def estimate_(self) -> FloatArray:
        """The geometric median of the batches' estimates, a copy."""
        return self._held.centre().copy()

    @property
    def distance_(self) -> float:
        """Distance of the last batch's estimate to the centre before it."""
        return float(self._marks[2])

    @property
    def weight_(self) -> float:
        """Share of the last batch in the median, or the recursion's step towards it."""
        return self._held.last()[1]

    @property
    def suspicious_(self) -> bool:
        """Whether the last batch was further off than four median distances."""
        return bool(self.n_batches_ > 2 and self._marks[2] > SUSPICIOUS * self._marks[3])

    @property
    def n_batches_(self) -> int:
        """Batches estimated."""
        return int(self._marks[0])

    @property
    def n_skipped_(self) -> int:
        """Batches that a classifier could not fit."""
        return int(self._marks[1])

    # Hooks

    def _widen(self, n_features: int) -> None:
        self._waiting.widen(n_features)
        if not self._free:
            self._length = n_features + 1
            self._held.widen(self._length)
        elif self.base == "mean":
            self._length = n_features
            self._held.widen(n_features)

    def learn_one(self, x: Any, y: Any = None) -> Self:
        """Learn one event; where its mini-batch cannot be estimated the state is as before."""
        with self._whole_or_not(1):
            return super().learn_one(x, y)

    def _take(self, rows: Rows, y: FloatArray, out: FloatArray | None) -> None:
        with self._whole_or_not(len(rows)):
            super()._take(rows, y, out)

    @contextmanager
    def _whole_or_not(self, n_rows: int) -> Iterator[None]:
        """Put everything back where a mini-batch fails: `base` is foreign code, and may fail at any."""
        before = self.state() if n_rows >= self._waiting.room() else None
        try:
            yield
        except BaseException:
            if before is not None:
                self.restore(before)
            raise

    def _learn(self, X: FloatArray, y: FloatArray) -> None:
        for i in range(len(X)):
            if y[i] == y[i]:  # not NaN: it has a target
                self._waiting.take(X[i], y[i])
                if self._waiting.full:
                    self._take_batch()

    def _take_batch(self) -> None:
        theta = self._vector()
        self._waiting.clear()
        if theta is None:
            self._marks[1] += 1
            return
        if self._free and not self.n_batches_:
            self._length = theta.shape[1]
            self._held.widen(self._length)
        if theta.shape[1] != self._length:
            raise BadShape(f"{self.name}: base must give {self._length} numbers, got {theta.shape[1]}")
        distance = np.empty(1)
        self._held.push(clipped(theta), distance)
        self._marks[0] += 1
        self._marks[2:] = distance[0], self._held.usual_distance()

    def _vector(self) -> FloatArray | None:
        """Return the estimate of the full batch as one row; None where its base declines it."""
        try:
            vector = self._estimate(self._waiting.rows.copy(), self._waiting.targets.copy())
            theta = None if vector is None else np.array(vector, dtype=np.float64).reshape(1, -1)
        except StreamlearnError:
            raise
        except Exception as error:
            which = f"batch {self.n_batches_ + self.n_skipped_ + 1} of {self.batch_size} rows"
            raise BaseFailed(f"{self.name}: base must fit every batch, got {error!r} in {which}") from error
        if theta is not None and not (theta.size and np.isfinite(theta).all()):
            raise BadValue(f"{self.name}: base must give finite numbers, got {vector!r}")
        return theta

    def _predict(self, X: FloatArray, out: FloatArray) -> int:
        if not self.n_batches_:
            out[:] = self._waiting.middle()
            return -1
        theta = self._held.centre()
        if len(theta) != X.shape[1] + 1 or self.base == "mean":
            raise BadParameter(f"{self.name}: base must give an intercept and a coefficient a feature to predict")
        for i in range(len(X)):
            out[i] = theta[0] + float(np.dot(X[i], theta[1:]))
            if self._classes[0] < self._classes[1]:
                out[i] = self._classes[1] if out[i] > 0.0 else self._classes[0]
        return -1

    def _test_then_learn(self, X: FloatArray, y: FloatArray, out: FloatArray) -> None:
        for i in range(len(X)):
            self._predict(X[i : i + 1], out[i : i + 1])
            self._learn(X[i : i + 1], y[i : i + 1])

    # State

    def _saved_params(self) -> dict[str, Any]:
        params = self.params()
        if not isinstance(self.base, str):
            params["base"] = _OBJECT + (repr(self.base) if hasattr(self.base, "fit") else _path_of(self.base))
        return params

    def restore(self, state: Snapshot) -> None:
        """Become exactly what `state` describes; a base that is not named must be equal to this one's."""
        if isinstance(self.base, str):
            super().restore(state)
            return
        text = state.get("parameters")
        saved = json.loads(text) if isinstance(text, str) else {}
        if not isinstance(saved, dict) or saved != self._saved_params():
            raise BadSnapshot(f"{self.name}: the saved parameters must be {self._saved_params()}, got {saved}")
        self.__dict__ = type(self)._build(state, self.clone).__dict__

    def _numbers(self) -> Document:
        return {"length": self._length}

    def _set_numbers(self, numbers: Document) -> None:
        if self._free and self.base != "mean":
            self._length = int(numbers["length"])
            self._held.widen(self._length)

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {
            "marks": self._marks,
            "classes": self._classes,
            **self._waiting.arrays(),
            **{f"filter_{name}": array for name, array in self._held.arrays().items()},
        }

    def _set_arrays(self, arrays: dict[str, NDArray[Any]]) -> None:
        super()._set_arrays(arrays)
        self._held.changed()


def _path_of(function: Any) -> str:
    """Return module and name: the address that ``repr`` shows differs from run to run."""
    return f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', type(function).__qualname__)}"


class _LeastTrimmed:
    def __init__(self) -> None:
        self._fitter = LeastTrimmedSquaresFitter()

    def __call__(self, X: FloatArray, y: FloatArray) -> FloatArray:
        centre, scale = start_scaling(X)
        known = scale > 0.0
        Z = np.divide(X - centre, scale, where=known, out=np.zeros_like(X))
        middle, unit = median_and_deviation(y)
        theta = self._fitter.fit(np.clip(Z, -1e6, 1e6), scaled_targets(y, middle, unit)).theta * unit
        out = np.zeros(len(theta))
        out[1:][known] = theta[1:][known] / scale[known]
        out[0] = middle + theta[0] - out[1:] @ centre
        return out


class _Thresholding:
    def __init__(self) -> None:
        self._fitter = LeastTrimmedSquaresFitter()

    def __call__(self, X: FloatArray, y: FloatArray) -> FloatArray:
        *_, theta = thresholding(self._fitter.covariance, X, y, _ROTR_TRIM)
        return theta


def _least_squares(X: FloatArray, y: FloatArray) -> FloatArray:
    found = np.linalg.lstsq(np.column_stack([np.ones(len(X)), X]), y, rcond=None)[0]
    return np.asarray(found, dtype=np.float64)


def _mean(X: FloatArray, _: FloatArray) -> FloatArray:
    return np.asarray(X.mean(axis=0), dtype=np.float64)
