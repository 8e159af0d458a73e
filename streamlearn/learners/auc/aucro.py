"""AUC optimisation with a reject option."""

from __future__ import annotations

import math
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import CodeArray, FloatArray, Label
from streamlearn.errors import BadParameter
from streamlearn.kernels import auc, auc_score, auc_sgd, auc_wide
from streamlearn.learners.auc.arena import SCALES
from streamlearn.learners.auc.moments import Moments
from streamlearn.learners.auc.pairs import PairRejecter
from streamlearn.learners.auc.records import Records
from streamlearn.learners.auc.wide import (
    COVARIANCES,
    FULL_UP_TO,
    NO_CHANCES,
    NOTHING,
    Covariance,
    Engine,
    checked_every,
    checked_sketch,
    decay,
    first_bad_in,
    forecast,
    made,
    rows_in,
    saved_on_diagonal,
    takes_steps,
    test_then_learn,
    write_parameters,
)
from streamlearn.learners.base import ONE_CODE

DEFAULT_REGULARIZATION = 1e-4
SMALLEST_REGULARIZATION = 1e-8


class AUCRO(PairRejecter):
    """Ranks events so as to maximise the AUC; refuses to rank pairs, and to name labels, where it would be guessing.

    The pairwise square loss depends on the data only through each class's count, mean and covariance. These are kept
    exactly, in one pass, and minimised in closed form (``solver="exact"``) or by the published stochastic gradient.

    Parameters
    ----------
    reject_cost : float
        Cost d in (0, 0.5] of a rejected pair, a wrong one costing 1; 0.5 never rejects. The state does not depend on
        it: set the attribute at any time.
    reject : {"cost", "rate"}
        Reject what costs more to decide than `reject_cost`, or what is least certain so that the share `reject_rate` of
        events, and of pairs, is rejected; the rate is held while the stream drifts.
    reject_rate : float
        Only for rate: in (0, 1].
    solver : {"exact", "sgd"}
        Closed form on a schedule, without scale or step size; or one gradient step an event (eq. (5)-(7)).
    half_life : float or None
        Events after which an event weighs half; None remembers everything alike.
    clock : {"time", "class"}
        Whether every event fades the statistics of both classes, or only of its own.
    margin : {"log-odds", "paper"}
        What scores are, and what the reject rule compares: calibrated log-likelihood ratios, against
        ``tau(d) = ln((1 - d)/d)``; or square-loss margins, against ``tau(d)/alpha(d)``, which needs d > 0.17604.
    learning_rate : "auto" or float
        Only for sgd: a step in (0, 1], or one below the smoothness bound of each event's loss.
    regularization : "auto" or float
        For sgd lambda, by default 1e-4. For exact the ridge relative to each feature's spread, by default m/W: features
        by remembered events.
    scale : {"auto", "standard", "range", "none"}
        Only for sgd: running scaling of the features; auto is standard. The exact solution is free of units.
    clip : float or None
        Values are cut to the running mean +- this many standard deviations, from the fourth event on, except in
        features that only ever took two values: least squares is hurt by single far values. None never cuts.
    solve_every : int or None
        Only for exact: solve every so many events; None by how much the statistics moved and what a solve costs.
    covariance : {"auto", "full", "diagonal", "means", "sketch"}
        What is kept of the covariance of m features, and so what an event costs. ``full``: all of it, O(m^2).
        ``diagonal``: variances. ``means``: nothing; one gradient step an event. Both take O(nonzeros of the event).
        ``sketch``: variances, and of the rest what `sketch_size` directions hold, O(m sketch_size). ``auto``: full up
        to 500 features, then, from the event on that brings more, means, whose steps go on from the solution's weights.
        For sgd: full, or auto, which is full then.
    sketch_size : int
        Only for sketch: directions kept of each class.
    max_features : int
    positive : bool, int, float, str or None
        The positive label; None: True, 1 or the greater of the two.

    Notes
    -----
    Shen, Yang, Gao 2020, "AUC Optimization with a Reject Option", eq. (5)-(9). Weights for cost d are alpha(d) times
    those for 1/2, so those for 1/2 are kept. Covariances are in Welford form, as (9) cancels for large means. The
    log-odds margin replaces the paper's rule, which holds log-odds thresholds against least-squares margins and so
    rejects 5-7 times too much.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> model = AUCRO(reject_cost=0.3).learn_many(X, (X[:, 0] > X[:, 1]).tolist())
    >>> model.predict_one([1.0, -1.0, 0.0]), model.predict_one([0.0, 0.0, 0.0])
    (True, None)
    """

    _needs_finite_rows = False

    def __init__(
        self,
        *,
        reject_cost: float = 0.5,
        reject: Literal["cost", "rate"] = "cost",
        reject_rate: float = 0.2,
        solver: Literal["exact", "sgd"] = "exact",
        half_life: float | None = None,
        clock: Literal["time", "class"] = "time",
        margin: Literal["log-odds", "paper"] = "log-odds",
        learning_rate: float | Literal["auto"] = "auto",
        regularization: float | Literal["auto"] = "auto",
        scale: Literal["auto", "standard", "range", "none"] = "auto",
        clip: float | None = 3.0,
        solve_every: int | None = None,
        covariance: Covariance = "auto",
        sketch_size: int = 32,
        max_features: int = 65_536,
        positive: Label | None = None,
    ) -> None:
        self.margin = margin
        self._among("margin", ("log-odds", "paper"))
        self.reject_cost = reject_cost
        self._set_reject(reject, reject_rate)
        self.solver = solver
        self.half_life = half_life
        self.clock = clock
        self.learning_rate = learning_rate
        self.regularization = regularization
        self.scale = scale
        self.clip = clip
        self.solve_every = solve_every
        self.covariance = covariance
        self.sketch_size = sketch_size
        self.max_features = max_features
        self.positive = positive
        self._check()
        self._moments = Moments(exact=solver == "exact")
        self._wide: Engine | None = made(covariance, 1, sketch_size)
        self._write_parameters()
        super().__init__()
        self._features.by_entries = self._wide is not None

    # Parameters

    def _check(self) -> None:
        self._among("solver", ("exact", "sgd"))
        self._among("clock", ("time", "class"))
        self._among("scale", ("auto", *SCALES))
        if self.half_life is not None:
            self._number("half_life", self.half_life, 0.0, math.inf)
        if self.clip is not None:
            self._number("clip", self.clip, 0.0, math.inf)
        if self.learning_rate != "auto":
            self._number("learning_rate", self.learning_rate, 0.0, 1.0)
        if self.regularization != "auto":
            self._number("regularization", self.regularization, SMALLEST_REGULARIZATION, math.inf)
        self._among("covariance", COVARIANCES)
        self._check_covariance()
        checked_every(self.name, self.solve_every)

    def _check_covariance(self) -> None:
        if self.solver == "sgd" and self.covariance not in ("auto", "full"):
            raise BadParameter(
                f"{self.name}: covariance must be 'auto' or 'full' with solver='sgd', got {self.covariance!r}"
            )
        if self.covariance == "means" and self.scale == "range":
            raise BadParameter(
                f"{self.name}: scale must be 'standard', 'auto' or 'none' with covariance='means', got 'range'"
            )
        checked_sketch(self.name, self.sketch_size)

    def _write_parameters(self) -> None:
        if self._wide is not None:
            write_parameters(
                self._wide,
                clip=self.clip,
                scaling=SCALES["none" if self.scale == "none" else "standard"],
                raw=self.margin == "paper",
            )
            self._write_memory(self._wide.memory(0), auc_wide)
            return
        F, H = self._moments.F, self._moments.memory(0)
        F[auc.CLIP] = 0.0 if self.clip is None else self.clip
        F[auc.SCALING] = SCALES["standard" if self.scale == "auto" else self.scale]
        F[auc.RAW] = self.margin == "paper"
        self._write_memory(H, auc)

    def _write_memory(self, H: FloatArray, slots: Any) -> None:
        H[slots.DECAY] = decay(self.half_life)
        H[slots.CLASS_CLOCK] = self.clock == "class"
        H[slots.EVERY] = 0.0 if self.solve_every is None else self.solve_every
        H[slots.RATE] = 0.0 if self.learning_rate == "auto" else self.learning_rate
        turned = self.covariance == "auto" and takes_steps(self._wide)  # what was given is the ridge of the solution
        steps = self.solver == "sgd" or takes_steps(self._wide)
        unset = DEFAULT_REGULARIZATION if steps else -1.0
        H[slots.REGULARIZATION] = unset if turned or self.regularization == "auto" else self.regularization
        H[slots.COLUMN] = 0.0

    # One event: the common case of the base's methods written out, which is 8 % of forecast and lesson of 50 features.

    def learn_one(self, x: Any, y: Any = None) -> Self:
        """Learn one event."""
        code = self._labels.code(y)
        if code >= -1 and self.solver == "exact" and self._hold is None and self._wide is None:
            row = self._features.row(x)
            if row is not None and auc.learn(self._moments.F, row, ONE_CODE[code]) < 0:
                return self
        return super().learn_one(x, y)

    def predict_one(self, x: Any) -> Label | None:
        """Return the more probable label, or None to abstain."""
        row = self._features.row(x)
        if row is not None and self._wide is None:
            p, cost = auc_score.probability(self._moments.F, row), self._reject_cost
            if p >= 0.5:
                return self._decided[1] if cost == 0.5 or p >= 1.0 - cost else None
            if p < 0.5:
                return self._decided[0] if cost == 0.5 or 1.0 - p >= 1.0 - cost else None
        return super().predict_one(x)  # nothing that is known yet, or a value that is refused

    # Hooks

    @property
    def takes_entries(self) -> bool:
        """Whether rows may come by their nonzeros, in any number of features."""
        return self._wide is not None

    def _widen(self, n_features: int) -> None:
        if self._wide is None and self.covariance == "auto" and self.solver == "exact" and n_features > FULL_UP_TO:
            self._wide = Records.of(self._moments, "means", standard=self.scale != "none")
            self._moments = Moments(exact=True)
            self._features.by_entries = True
            self._write_parameters()
        (self._moments if self._wide is None else self._wide).widen(n_features)

    @property
    def weight_norm(self) -> float:
        """Euclidean norm of the weights; NaN for "means" and "sketch", which keep them in parts."""
        if self._wide is None:
            weights = self._moments.own(0)[auc.W]
        elif isinstance(self._wide, Records) and self._wide.form == "diagonal":
            weights = self._wide.own(0)[:, auc_wide.W]
        else:
            return float("nan")
        return float(np.linalg.norm(weights))

    def _swap_classes(self) -> None:
        (self._moments if self._wide is None else self._wide).swap_classes()
        if self._hold is not None:
            self._hold.swap_classes()

    def even_score(self) -> float:
        """Return the ranking score at which both labels are equally likely: the scores leave the prior odds out."""
        wide, slots = self._wide, auc if self._wide is None else auc_wide
        F, H = (self._moments.F, self._moments.memory(0)) if wide is None else (wide.header(), wide.memory(0))
        counts = F[slots.SEEN :] if self.clock == "class" else H[slots.WEIGHT :]
        odds = math.log(counts[1] + 0.5) - math.log(counts[0] + 0.5)
        if self.margin == "log-odds":
            return -odds
        return -odds / float(H[slots.LLR]) if H[slots.LLR] > 0.0 else 0.0

    def _learn(self, X: Any, codes: CodeArray) -> int:
        if self._hold is not None:
            return self._learn_held(X, codes)
        if self._wide is not None:
            return self._wide.run(X, codes, NOTHING, NO_CHANCES)
        if self.solver == "exact":
            return auc.learn(self._moments.F, X, codes)
        return auc_sgd.learn(self._moments.F, X, codes)

    def _score(self, X: Any, out: FloatArray) -> int:
        if self._wide is not None:
            return forecast(self._wide, X, out.reshape(-1, 1), NO_CHANCES)
        return auc_score.margins(self._moments.F, X, out.reshape(-1, 1))

    def _probability(self, X: Any, out: FloatArray) -> int:
        if self._wide is not None:
            return forecast(self._wide, X, NOTHING, out)
        return auc_score.probabilities(self._moments.F, X, out)

    def _probability_one(self, row: Any) -> float:
        if self._wide is not None:
            return super()._probability_one(row)
        return auc_score.probability(self._moments.F, row)

    def _run(self, X_test: Any, X_learn: Any, codes: CodeArray, scores: FloatArray, chances: FloatArray) -> int:
        """Forecast and learn, without a look at the rate."""
        if self._wide is not None:
            return test_then_learn(self._wide, X_test, X_learn, codes, scores.reshape(-1, 1), chances)
        kernel = auc.test_then_learn if self.solver == "exact" else auc_sgd.test_then_learn
        return kernel(self._moments.F, X_test, X_learn, codes, scores.reshape(-1, 1), chances)

    def _test_then_learn(
        self, X_test: Any, X_learn: Any, codes: CodeArray, scores: FloatArray, probabilities: FloatArray
    ) -> int:
        if self._hold is None:
            return self._run(X_test, X_learn, codes, scores, probabilities)

        def run(part: slice) -> int:
            return self._run(
                rows_in(X_test, part), rows_in(X_learn, part), codes[part], scores[part], probabilities[part]
            )

        if X_test is not X_learn:
            bad = first_bad_in(X_test)
            return bad if bad >= 0 else self._one_by_one_held(X_learn, codes, run)
        bad = self._run(X_test, X_learn, codes, scores, probabilities)
        if bad < 0:
            self._take_held(codes, probabilities, scores)
        return bad

    def _arrays(self) -> dict[str, NDArray[Any]]:
        held = {} if self._hold is None else {"hold": self._hold.R}
        return {**(self._moments if self._wide is None else self._wide).arrays(), **held}

    def _set_arrays(self, arrays: dict[str, NDArray[Any]]) -> None:
        if self.covariance == "auto":
            self._wide = saved_on_diagonal(self._wide, arrays) or self._wide
        super()._set_arrays(arrays)
        (self._moments if self._wide is None else self._wide).write_sizes()
        self._write_parameters()
        self._refresh_held()
