"""AUC optimisation that finds its own memory."""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import CodeArray, FloatArray, Label
from streamlearn.kernels import auc, auc_adaptive, auc_score, auc_wide
from streamlearn.learners.auc.arena import SCALES
from streamlearn.learners.auc.moments import Moments
from streamlearn.learners.auc.pairs import PairRejecter
from streamlearn.learners.auc.records import Records
from streamlearn.learners.auc.wide import (
    COVARIANCES,
    FULL_UP_TO,
    NO_CHANCES,
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


class Memory(NamedTuple):
    """How fast one of the bank forgets, by which clock, and up to which width it is kept."""

    half_life: float | None
    by_class: bool
    max_width: int | None = None


WIDE = 128
MEMORIES = (
    Memory(None, False),
    Memory(1000.0, False, WIDE),
    Memory(100.0, False),
    Memory(20.0, False, WIDE),
    Memory(100.0, True),
)
CLIP = 3.0
REGULARIZATION_OF_STEPS = 1e-4
MEMO_WIDTH = auc_adaptive.MEMO_WIDTH  # what the memories said, and what the forecasters made of it


class AdaptiveAUCRO(PairRejecter):
    """Ranks events by exact AUCRO over several memories at once, calibrated and mixed by how well each does now.

    Five memories of different half-lives see every event. Calibrated alone and stacked together they make nine
    forecasters of the label, and a fixed share of these, reweighed by log-loss, is the probability. Nothing to tune.

    Parameters
    ----------
    reject_cost : float
        Cost d in (0, 0.5] of a rejected pair, a wrong one costing 1; 0.5 never rejects. May be set at any time.
    reject : {"cost", "rate"}
        Reject what costs more to decide than `reject_cost`, or what is least certain so that the share `reject_rate` of
        events, and of pairs, is rejected; the rate is held while the stream drifts.
    reject_rate : float
        Only for rate: in (0, 1].
    covariance, sketch_size
        As in `AUCRO`: what each memory keeps.
    solve_every : int or None
        As in `AUCRO`, for all memories. Solutions are most of what an event costs: rarer ones are cheaper, and rank
        worse where the last few events say most.
    max_features : int
    positive : bool, int, float, str or None
        The positive label; None: True, 1 or the greater of the two.

    Notes
    -----
    Memories have half-lives of infinity, 1000, 100 and 20 events, and of 100 events of the own class. Beyond 128
    features those of 1000 and 20 are dropped for good where whole covariances are kept or sketched (they count as
    undecided); with ``covariance="auto"`` only class means are kept beyond 500. The mixture
    is that of Herbster, Warmuth 1998, "Tracking the Best Expert", on log-loss.

    Scores are log-likelihood ratios: the log-odds of the mixture less those of the class counts.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> model = AdaptiveAUCRO().learn_many(X, X[:, 0] > X[:, 1])
    >>> model.score_one([1.0, -1.0, 0.0]) > model.score_one([0.0, 0.0, 0.0])
    True
    """

    _needs_finite_rows = False
    margin = "log-odds"

    def __init__(
        self,
        *,
        reject_cost: float = 0.5,
        reject: Literal["cost", "rate"] = "cost",
        reject_rate: float = 0.2,
        covariance: Covariance = "auto",
        sketch_size: int = 32,
        solve_every: int | None = None,
        max_features: int = 65_536,
        positive: Label | None = None,
    ) -> None:
        self.reject_cost = reject_cost
        self._set_reject(reject, reject_rate)
        self.covariance = covariance
        self._among("covariance", COVARIANCES)
        self.sketch_size = checked_sketch(self.name, sketch_size)
        self.solve_every = checked_every(self.name, solve_every)
        self.max_features = max_features
        self.positive = positive
        self._kept = list(range(len(MEMORIES)))
        self._bank: Moments | Engine = made(covariance, len(MEMORIES), sketch_size) or Moments(
            n_memories=len(MEMORIES), exact=True
        )
        self._mixer = np.zeros(auc_adaptive.MIXER_SIZE)
        auc_adaptive.reset_mixer(self._mixer)
        self._make_scratch()
        self._write_parameters()
        super().__init__()
        self._features.by_entries = self.takes_entries

    @property
    def takes_entries(self) -> bool:
        """Whether rows may come by their nonzeros, in any number of features."""
        return not isinstance(self._bank, Moments)

    def _make_scratch(self) -> None:
        # Room for one event, so that one by one nothing is allocated.
        self._memo_of_one = np.zeros((1, MEMO_WIDTH))
        self._unread = np.zeros(1)

    def _write_parameters(self) -> None:
        slots: Any = auc
        if isinstance(self._bank, Moments):
            self._bank.F[auc.CLIP] = CLIP
        else:
            slots = auc_wide
            write_parameters(self._bank, clip=CLIP, scaling=SCALES["standard"], raw=False)
        for e, column in enumerate(self._kept):
            memory, H = MEMORIES[column], self._bank.memory(e)
            H[slots.DECAY] = decay(memory.half_life)
            H[slots.CLASS_CLOCK] = memory.by_class
            H[slots.EVERY] = 0.0 if self.solve_every is None else self.solve_every
            H[slots.REGULARIZATION] = REGULARIZATION_OF_STEPS if takes_steps(self._bank) else -1.0
            H[slots.COLUMN] = column

    # Hooks

    def _widen(self, n_features: int) -> None:
        if self.covariance not in ("diagonal", "means"):
            self._drop_memories(n_features)
        if isinstance(self._bank, Moments) and self.covariance == "auto" and n_features > FULL_UP_TO:
            self._bank = Records.of(self._bank, "means")
            self._features.by_entries = True
            self._write_parameters()
        self._bank.widen(n_features)

    def _drop_memories(self, n_features: int) -> None:
        """Drop the memories that are not kept at this width."""
        staying = [e for e, k in enumerate(self._kept) if n_features <= (MEMORIES[k].max_width or n_features)]
        if len(staying) < len(self._kept):
            self._bank.keep(staying)
            self._kept = [self._kept[e] for e in staying]
            self._memo_of_one[:] = 0.0

    def _swap_classes(self) -> None:
        self._bank.swap_classes()
        self._mixer[:2] = self._mixer[1::-1].copy()
        if self._hold is not None:
            self._hold.swap_classes()

    def _score(self, X: Any, out: FloatArray) -> int:
        return self._score_memo(X, out, self._room(len(X)), self._memo(len(X)))

    def _probability(self, X: Any, out: FloatArray) -> int:
        return self._score_memo(X, self._room(len(X)), out, self._memo(len(X)))

    def _room(self, n: int) -> FloatArray:
        return self._unread if n == 1 else np.empty(n)

    def _memo(self, n: int) -> FloatArray:
        """Return room for n memos, with zeros for the memories that were dropped: they are undecided."""
        return self._memo_of_one if n == 1 else np.zeros((n, MEMO_WIDTH))

    def _margins(self, X: Any, memo: FloatArray) -> int:
        """Write what the memories say."""
        if isinstance(self._bank, Moments):
            return auc_score.margins(self._bank.F, X, memo)
        return forecast(self._bank, X, memo, NO_CHANCES)

    def _margins_then_learn(self, X_test: Any, X_learn: Any, codes: CodeArray, memo: FloatArray) -> int:
        """For each i: write what the memories say of X_test[i], then let them learn X_learn[i]."""
        if isinstance(self._bank, Moments):
            return auc.test_then_learn(self._bank.F, X_test, X_learn, codes, memo, NO_CHANCES)
        return test_then_learn(self._bank, X_test, X_learn, codes, memo, NO_CHANCES)

    def _probability_one(self, row: Any) -> float:
        memo = self._memo_of_one
        if self._margins(row, memo) >= 0:
            return math.nan
        return auc_adaptive.mixed_probability(self._mixer, memo)

    def even_score(self) -> float:
        """Return the ranking score at which both labels are equally likely: the scores leave the prior odds out."""
        negatives, positives = self._mixer[:2]
        return math.log(negatives + 0.5) - math.log(positives + 0.5)

    def _learn(self, X: Any, codes: CodeArray) -> int:
        if self._hold is not None:
            return self._learn_held(X, codes)
        memo = self._memo(len(X))
        bad = self._margins_then_learn(X, X, codes, memo)
        if bad < 0:
            auc_adaptive.learn(self._mixer, memo, codes)
        return bad

    def _test_then_learn(
        self, X_test: Any, X_learn: Any, codes: CodeArray, scores: FloatArray, probabilities: FloatArray
    ) -> int:
        if X_test is X_learn:
            memo = self._memo(len(X_test))
            return self._test_then_learn_memo(X_test, X_learn, codes, scores, probabilities, memo, memo)
        bad = max(first_bad_in(X_test), first_bad_in(X_learn))
        if bad >= 0:
            return bad
        for i in range(len(X_test)):
            row = slice(i, i + 1)
            self._score_memo(rows_in(X_test, row), scores[row], probabilities[row], self._memo(1))
            self._learn(rows_in(X_learn, row), codes[row])
        return -1

    # Late labels

    @property
    def memo_width(self) -> int:
        """Numbers to keep of each forecast until its label comes."""
        return MEMO_WIDTH

    def _clear_dropped(self, memo: FloatArray) -> None:
        if len(self._kept) < len(MEMORIES):
            memo[:, : len(MEMORIES)] = 0.0

    def _score_memo(self, X: Any, scores: FloatArray, probabilities: FloatArray, memo: FloatArray) -> int:
        """Forecast, and write to memo[n, memo_width] what the memories said."""
        self._clear_dropped(memo)
        bad = self._margins(X, memo)
        if bad >= 0:
            return bad
        auc_adaptive.mix(self._mixer, memo, scores, probabilities)
        return -1

    def _test_then_learn_memo(
        self,
        X_test: Any,
        X_learn: Any,
        codes: CodeArray,
        scores: FloatArray,
        probabilities: FloatArray,
        memo_test: FloatArray,
        memo_learn: FloatArray,
    ) -> int:
        """For each i: forecast X_test[i] into memo_test[i], then learn X_learn[i], memo_learn[i] being of its forecast.

        The mixture then trusts each memory as far as it was right at that delay. The two memos may be overlapping views
        of one array, row i of memo_learn being an earlier row of memo_test.
        """
        if self._hold is not None and memo_test is not memo_learn:
            bad = first_bad_in(X_test)

            def run(part: slice) -> int:
                return self._mix_then_learn(
                    rows_in(X_test, part),
                    rows_in(X_learn, part),
                    codes[part],
                    scores[part],
                    probabilities[part],
                    memo_test[part],
                    memo_learn[part],
                )

            return bad if bad >= 0 else self._one_by_one_held(X_learn, codes, run)
        bad = self._mix_then_learn(X_test, X_learn, codes, scores, probabilities, memo_test, memo_learn)
        if bad < 0:
            self._take_held(codes, probabilities, scores)
        return bad

    def _mix_then_learn(
        self,
        X_test: Any,
        X_learn: Any,
        codes: CodeArray,
        scores: FloatArray,
        probabilities: FloatArray,
        memo_test: FloatArray,
        memo_learn: FloatArray,
    ) -> int:
        """Do so, without a look at the rate."""
        self._clear_dropped(memo_test)
        bad = self._margins_then_learn(X_test, X_learn, codes, memo_test)
        if bad >= 0:
            return bad
        if memo_test is memo_learn:
            auc_adaptive.mix_then_learn(self._mixer, memo_test, codes, scores, probabilities)
        else:
            auc_adaptive.mix_then_learn_late(self._mixer, memo_test, memo_learn, codes, scores, probabilities)
        return -1

    # State

    def _arrays(self) -> dict[str, NDArray[Any]]:
        held = {} if self._hold is None else {"hold": self._hold.R}
        return {"mixer": self._mixer[: auc_adaptive.STATE_SIZE], **self._bank.arrays(), **held}

    def _set_arrays(self, arrays: dict[str, NDArray[Any]]) -> None:
        if self.covariance == "auto":
            self._bank = saved_on_diagonal(self._bank, arrays) or self._bank
        super()._set_arrays(arrays)
        self._bank.write_sizes()
        self._write_parameters()
        self._refresh_held()
