"""Detectors that compare the late losses of a window with those before them: KSWIN and FHDDM."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import FloatArray
from streamlearn.errors import BadParameter
from streamlearn.evaluation.detector import DriftDetector, check_open
from streamlearn.evaluation.metric import check_count
from streamlearn.kernels import drift_windows as kernels

LEAST_DISTANCE = 0.1
"""Of two distribution functions: however large the samples are, a smaller one is no change (as in River)."""


class KSWIN(DriftDetector):
    """Kolmogorov-Smirnov test in a window (Raab, Heusinger and Schleif 2020); for losses of any kind.

    The last `stat_size` losses of the window are compared with as many drawn from those before. The draws are our own,
    from a counted generator that is part of the state; with the same draws the detections are River's, whose generator
    begins anew behind each detection. The p-value is the exact one of two equally large samples. It may see a change
    of the distribution that leaves the mean; that is told as a fall, since the loss did not rise.

    Parameters
    ----------
    alpha : float
        Chance of a false alarm with one loss, in (0, 1).
    window_size, stat_size : int
        The larger at least twice the smaller.
    seed : int
        Of the draws, at least 0; River's default is another one each time.
    """

    short = "kswin"
    n_numbers = 4
    unit = False

    def __init__(self, *, alpha: float = 0.005, window_size: int = 100, stat_size: int = 30, seed: int = 0) -> None:
        check_open("KSWIN", "alpha", alpha, 1.0)
        check_count("KSWIN", "stat_size", stat_size, 1)
        check_count("KSWIN", "window_size", window_size, 1)
        check_count("KSWIN", "seed", seed, 0)
        if window_size < 2 * stat_size:
            raise BadParameter(f"KSWIN: window_size must be at least twice stat_size, {stat_size}, got {window_size}")
        self.alpha, self.window_size, self.stat_size, self.seed = alpha, window_size, stat_size, seed
        super().__init__()
        self._window = np.zeros(window_size)
        self._critical = critical_distance(stat_size, alpha)
        self._places = np.zeros(window_size - stat_size, np.int64)
        self._pair = np.zeros((2, stat_size))

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {"numbers": self._numbers, "window": self._window}

    def _run(self, out: NDArray[np.int8], losses: FloatArray) -> None:
        seed = np.uint64(self.seed % 2**64)
        room = self._places, self._pair
        kernels.kswin(out, self._numbers, self._window, *room, losses, self._critical, seed)


def critical_distance(n: int, alpha: float) -> int:
    """Return the least n D, D the distance of the distribution functions of two samples of n, that is a change.

    Under equal continuous distributions the chance of n D >= h is the exact 2 sum_k (-1)^(k-1) C(2n, n - kh) / C(2n, n)
    (Gnedenko and Korolyuk 1951); n + 1, which no distance reaches, where not even n is rare enough.
    """
    least = math.floor(LEAST_DISTANCE * n) + 1
    for h in range(least, n + 1):
        ways = sum((-1) ** (k - 1) * math.comb(2 * n, n - k * h) for k in range(1, n // h + 1))
        if 2 * ways / math.comb(2 * n, n) <= alpha:
            return h
    return n + 1


class FHDDM(DriftDetector):
    """Fast Hoeffding drift detection (Pesaranghader and Viktor 2016); for losses in [0, 1].

    Parameters
    ----------
    sliding_window_size : int
    confidence_level : float
        Chance of a false alarm, in (0, 1).
    short_window_size : int or None
        The stacking form looks at so many of the latest losses as well.

    Notes
    -----
    River's takes right decisions, 1 for right, where all other detectors of it take errors: here it takes losses like
    all others.
    """

    short = "fhddm"
    n_numbers = 7

    def __init__(
        self,
        *,
        sliding_window_size: int = 100,
        confidence_level: float = 0.000001,
        short_window_size: int | None = None,
    ) -> None:
        check_count("FHDDM", "sliding_window_size", sliding_window_size, 1)
        check_open("FHDDM", "confidence_level", confidence_level, 1.0)
        if short_window_size is not None:
            check_count("FHDDM", "short_window_size", short_window_size, 1)
            if short_window_size > sliding_window_size:
                rule = f"at most sliding_window_size, {sliding_window_size}"
                raise BadParameter(f"FHDDM: short_window_size must be {rule}, got {short_window_size}")
        self.sliding_window_size, self.confidence_level = sliding_window_size, confidence_level
        self.short_window_size = short_window_size
        super().__init__()
        self._numbers[5] = short_window_size or 0
        self._window = np.zeros(sliding_window_size)

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {"numbers": self._numbers, "window": self._window}

    def _run(self, out: NDArray[np.int8], losses: FloatArray) -> None:
        cuts = (self._cut(self.sliding_window_size), self._cut(self.short_window_size or 1))
        kernels.fhddm(out, self._numbers, self._window, losses, *cuts)

    def _cut(self, n: int) -> float:
        return math.sqrt(math.log(1.0 / self.confidence_level) / (2.0 * n))
