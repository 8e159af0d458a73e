"""A logistic regression by plain gradient steps: the smallest honest learner, for tests of the shared base."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamlearn.learners.base import BinaryScorer


class NaiveLogistic(BinaryScorer):
    """Online logistic regression, one step an event on log-compressed values."""

    def __init__(self, *, rate: float = 0.1, max_features: int = 100, positive: Any = None) -> None:
        self.rate = rate
        self.max_features = max_features
        self.positive = positive
        self._w = np.zeros(0)
        self._b = np.zeros(1)
        super().__init__()

    def _widen(self, n_features: int) -> None:
        self._w = np.concatenate([self._w, np.zeros(n_features - len(self._w))])

    def _swap_classes(self) -> None:
        self._w = 0.0 - self._w
        self._b = 0.0 - self._b

    def _arrays(self) -> dict[str, np.ndarray]:
        return {"w": self._w, "b": self._b}

    def _margin(self, row: np.ndarray) -> float:
        total = float(self._b[0])
        for w, v in zip(self._w.tolist(), self._squash(row).tolist(), strict=True):
            total += w * v
        return total

    @staticmethod
    def _squash(row: np.ndarray) -> np.ndarray:
        return np.sign(row) * np.log1p(np.abs(row))

    def _learn(self, X: np.ndarray, codes: np.ndarray) -> int:
        for row, code in zip(X, codes, strict=True):
            if code >= 0:
                # written so that exchanging the classes negates every step exactly
                m = self._margin(row) if code == 1 else -self._margin(row)
                step = self.rate / (1.0 + np.exp(np.clip(m, -500, 500)))
                step = step if code == 1 else -step
                self._w += step * self._squash(row)
                self._b += step
        return -1

    def _score(self, X: np.ndarray, out: np.ndarray) -> int:
        out[:] = [self._margin(row) for row in X]
        return -1

    def _probability(self, X: np.ndarray, out: np.ndarray) -> int:
        out[:] = [1.0 / (1.0 + np.exp(-np.clip(self._margin(row), -500, 500))) for row in X]
        return -1

    def _test_then_learn(
        self, X_test: np.ndarray, X_learn: np.ndarray, codes: np.ndarray, scores: np.ndarray, probabilities: np.ndarray
    ) -> int:
        for i in range(len(X_test)):
            self._score(X_test[i : i + 1], scores[i : i + 1])
            self._probability(X_test[i : i + 1], probabilities[i : i + 1])
            self._learn(X_learn[i : i + 1], codes[i : i + 1])
        return -1
