"""AUC optimisation that finds its own memory."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import CodeArray, FloatArray, Label
from streamlearn.kernels import auc, auc_adaptive, auc_score
from streamlearn.kernels.rows import first_bad_row
from streamlearn.learners.auc.moments import Moments
from streamlearn.learners.auc.pairs import PairRejecter


class Memory(NamedTuple):
    """How fast one of the bank forgets, by which clock, and up to which width it is kept."""

    half_life: float | None
    by_class: bool
    max_width: int | None = None


WIDE = 128
DIAGONAL_ABOVE = 500
MEMORIES = (
    Memory(None, False),
    Memory(1000.0, False, WIDE),
    Memory(100.0, False),
    Memory(20.0, False, WIDE),
    Memory(100.0, True),
)
CLIP = 3.0
MEMO_WIDTH = 2 * len(MEMORIES) + 1 + auc_adaptive.N_STACKS  # what the memories said, and the forecasters made of it


class AdaptiveAUCRO(PairRejecter):
    """Ranks events by exact AUCRO over several memories at once, calibrated and mixed by how well each does now.

    Five memories of different half-lives see every event. Calibrated alone and stacked together they make nine
    forecasters of the label, and a fixed share of these, reweighed by log-loss, is the probability. Nothing to tune.

    Parameters
    ----------
    reject_cost : float
        Cost d in (0, 0.5] of a rejected pair, a wrong one costing 1; 0.5 never rejects. May be set at any time.
    max_features : int
    positive : bool, int, float, str or None
        The positive label; None: True, 1 or the greater of the two.

    Notes
    -----
    Memories have half-lives of infinity, 1000, 100 and 20 events, and of 100 events of the own class; beyond 128
    features those of 1000 and 20 are dropped (they count as undecided), beyond 500 only variances are kept. The mixture
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

    def __init__(self, *, reject_cost: float = 0.5, max_features: int = 2048, positive: Label | None = None) -> None:
        self.reject_cost = reject_cost
        self.max_features = max_features
        self.positive = positive
        self._bank: list[Moments | None] = [Moments(n_matrices=3, diagonal_above=DIAGONAL_ABOVE) for _ in MEMORIES]
        self._mixer = np.zeros(auc_adaptive.mixer_size(len(MEMORIES)))
        auc_adaptive.reset_mixer(self._mixer, len(MEMORIES))
        self._write_parameters()
        super().__init__()

    def _write_parameters(self) -> None:
        for memory, moments in zip(MEMORIES, self._bank, strict=True):
            if moments is not None:
                F = moments.F
                F[auc.DECAY] = 1.0 if memory.half_life is None else 0.5 ** (1.0 / memory.half_life)
                F[auc.CLASS_CLOCK] = memory.by_class
                F[auc.CLIP] = CLIP
                F[auc.REGULARIZATION] = -1.0

    # Hooks

    def _widen(self, n_features: int) -> None:
        for e, memory in enumerate(MEMORIES):
            moments = self._bank[e]
            if moments is not None and memory.max_width is not None and n_features > memory.max_width:
                self._bank[e] = None
            elif moments is not None:
                moments.widen(n_features)

    def _swap_classes(self) -> None:
        for moments in self._bank:
            if moments is not None:
                moments.swap_classes()
        self._mixer[:2] = self._mixer[1::-1].copy()

    def _score(self, X: FloatArray, out: FloatArray) -> int:
        return self._mix(X, out, np.empty(len(X)))

    def _probability(self, X: FloatArray, out: FloatArray) -> int:
        return self._mix(X, np.empty(len(X)), out)

    def _mix(self, X: FloatArray, scores: FloatArray, probabilities: FloatArray) -> int:
        return self._score_memo(X, scores, probabilities, np.empty((len(X), MEMO_WIDTH)))

    def _learn(self, X: FloatArray, codes: CodeArray) -> int:
        return self._test_then_learn(X, X, codes, np.empty(len(X)), np.empty(len(X)))

    def _test_then_learn(
        self, X_test: FloatArray, X_learn: FloatArray, codes: CodeArray, scores: FloatArray, probabilities: FloatArray
    ) -> int:
        memo = np.empty((len(X_test), MEMO_WIDTH))
        if X_test is X_learn:
            return self._test_then_learn_memo(X_test, X_learn, codes, scores, probabilities, memo, memo)
        bad = max(first_bad_row(X_test), first_bad_row(X_learn))
        if bad >= 0:
            return bad
        for i in range(len(X_test)):
            row = slice(i, i + 1)
            self._score_memo(X_test[row], scores[row], probabilities[row], memo[row])
            self._learn(X_learn[row], codes[row])
        return -1

    # Late labels

    @property
    def memo_width(self) -> int:
        """Numbers to keep of each forecast until its label comes."""
        return MEMO_WIDTH

    def _score_memo(self, X: FloatArray, scores: FloatArray, probabilities: FloatArray, memo: FloatArray) -> int:
        """Forecast, and write to memo[n, memo_width] what the memories said."""
        ratios = np.zeros((len(MEMORIES), len(X)))
        for e, moments in enumerate(self._bank):
            if moments is not None:
                bad = auc_score.margins(moments.F, X, ratios[e])
                if bad >= 0:
                    return bad
        memo[:, : len(MEMORIES)] = ratios.T
        auc_adaptive.mix(self._mixer, memo, scores, probabilities)
        return -1

    def _test_then_learn_memo(
        self,
        X_test: FloatArray,
        X_learn: FloatArray,
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
        ratios = np.zeros((len(MEMORIES), len(X_test)))
        chances = np.empty(len(X_test))
        for e, moments in enumerate(self._bank):
            if moments is not None:
                bad = auc.test_then_learn(moments.F, X_test, X_learn, codes, ratios[e], chances)
                if bad >= 0:
                    return bad
        memo_test[:, : len(MEMORIES)] = ratios.T
        auc_adaptive.mix_then_learn(self._mixer, memo_test, memo_learn, codes, scores, probabilities)
        return -1

    # State

    def _arrays(self) -> dict[str, NDArray[Any]]:
        arrays: dict[str, NDArray[Any]] = {"mixer": self._mixer}
        for e, moments in enumerate(self._bank):
            if moments is not None:
                arrays |= {f"{name}_of_{e}": array for name, array in moments.arrays().items()}
        return arrays

    def _set_arrays(self, arrays: dict[str, NDArray[Any]]) -> None:
        super()._set_arrays(arrays)
        for moments in self._bank:
            if moments is not None:
                moments.restored()
        self._write_parameters()
