"""Detectors of drift in a stream of losses, by name: ``"adwin"``, ``"page_hinkley:threshold=20"``."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import FloatArray
from streamlearn.errors import BadParameter
from streamlearn.evaluation.detector import DriftDetector, check_open
from streamlearn.evaluation.drift_windows import FHDDM, KSWIN
from streamlearn.evaluation.metric import check_count
from streamlearn.evaluation.registry import parse_spec
from streamlearn.kernels import drift as kernels


class Adwin(DriftDetector):
    """Adaptive windowing (Bifet and Gavalda 2007); for losses of any bounded kind.

    Parameters
    ----------
    delta : float
        Chance of a false alarm at a look, in (0, 1).
    clock : int
        Losses between two looks.
    max_buckets : int
        Buckets of one size before two are merged.
    min_window_length, grace_period : int
        The shortest half that is looked at; losses before the first look.

    Examples
    --------
    >>> from streamlearn.evaluation import make_detector
    >>> adwin = make_detector("adwin")
    >>> adwin.update_many([0.0] * 500 + [1.0] * 500).tolist()
    [511]
    """

    short = "adwin"
    n_numbers = 5
    unit = False

    def __init__(
        self,
        *,
        delta: float = 0.002,
        clock: int = 32,
        max_buckets: int = 5,
        min_window_length: int = 5,
        grace_period: int = 10,
    ) -> None:
        check_open("Adwin", "delta", delta, 1.0)
        for name, value in (("clock", clock), ("max_buckets", max_buckets), ("min_window_length", min_window_length)):
            check_count("Adwin", name, value, 1)
        check_count("Adwin", "grace_period", grace_period, 1)
        self.delta, self.clock, self.max_buckets = delta, clock, max_buckets
        self.min_window_length, self.grace_period = min_window_length, grace_period
        super().__init__()
        self._counts = np.zeros(kernels.ADWIN_ROWS, np.int64)
        self._buckets = np.zeros((2, kernels.ADWIN_ROWS, max_buckets + 1))

    @property
    def width(self) -> int:
        """Losses in the window."""
        return int(self._numbers[2])

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {"numbers": self._numbers, "counts": self._counts, "buckets": self._buckets}

    def _run(self, out: NDArray[np.int8], losses: FloatArray) -> None:
        rules = float(self.delta), self.clock, self.min_window_length, self.grace_period
        kernels.adwin(out, self._numbers, self._counts, self._buckets, losses, *rules)


class PageHinkley(DriftDetector):
    """Page-Hinkley test (Page 1954); for losses of any kind.

    Parameters
    ----------
    min_instances : int
        No detection before so many losses.
    delta, threshold : float
        Tolerated change of the mean; size of the alarm.
    alpha : float
        What a deviation still counts one loss later, in (0, 1].
    mode : str
        ``"up"``, ``"down"`` or ``"both"``.
    """

    short = "page_hinkley"
    n_numbers = 7
    unit = False

    def __init__(
        self,
        *,
        min_instances: int = 30,
        delta: float = 0.005,
        threshold: float = 50.0,
        alpha: float = 1.0 - 0.0001,
        mode: str = "both",
    ) -> None:
        check_count("PageHinkley", "min_instances", min_instances, 1)
        for name, value in (("delta", delta), ("threshold", threshold)):
            if not 0.0 <= value < math.inf:
                raise BadParameter(f"PageHinkley: {name} must be a number >= 0, got {value!r}")
        if not 0.0 < alpha <= 1.0:
            raise BadParameter(f"PageHinkley: alpha must be in (0, 1], got {alpha!r}")
        if mode not in _SIDES:
            raise BadParameter(f"PageHinkley: mode must be one of {', '.join(_SIDES)}, got {mode!r}")
        self.min_instances, self.delta, self.threshold = min_instances, delta, threshold
        self.alpha, self.mode = alpha, mode
        super().__init__()

    def _run(self, out: NDArray[np.int8], losses: FloatArray) -> None:
        rules = float(self.delta), float(self.threshold), float(self.alpha), _SIDES[self.mode]
        kernels.page_hinkley(out, self._numbers, losses, self.min_instances, *rules)


_SIDES = {"up": 1, "down": 2, "both": 3}


class DDM(DriftDetector):
    """Drift detection method (Gama et al. 2004); for errors, 1 or 0.

    Parameters
    ----------
    warm_start : int
        No detection before more errors and successes than this.
    drift_threshold : float
        Deviations above the best error rate.
    """

    short = "ddm"
    n_numbers = 5

    def __init__(self, *, warm_start: int = 30, drift_threshold: float = 3.0) -> None:
        check_count("DDM", "warm_start", warm_start, 1)
        check_open("DDM", "drift_threshold", drift_threshold, math.inf)
        self.warm_start, self.drift_threshold = warm_start, drift_threshold
        super().__init__()

    def _run(self, out: NDArray[np.int8], losses: FloatArray) -> None:
        kernels.ddm(out, self._numbers, losses, self.warm_start, float(self.drift_threshold))


class EDDM(DriftDetector):
    """Early drift detection method (Baena-Garcia et al. 2006); for errors, 1 or 0.

    Parameters
    ----------
    warm_start : int
        No detection before more errors than this.
    beta : float
        Share of the largest distance between errors below which there is drift, in (0, 1).
    """

    short = "eddm"
    n_numbers = 7

    def __init__(self, *, warm_start: int = 30, beta: float = 0.9) -> None:
        check_count("EDDM", "warm_start", warm_start, 1)
        check_open("EDDM", "beta", beta, 1.0)
        self.warm_start, self.beta = warm_start, beta
        super().__init__()

    def _run(self, out: NDArray[np.int8], losses: FloatArray) -> None:
        kernels.eddm(out, self._numbers, losses, self.warm_start, float(self.beta))


class HDDMA(DriftDetector):
    """HDDM with the A test (Frias-Blanco et al. 2015); for losses in [0, 1].

    Parameters
    ----------
    drift_confidence : float
        Chance of a false alarm, in (0, 1).
    two_sided_test : bool
        Whether a fall of the loss is a change too.
    """

    short = "hddm_a"
    n_numbers = 7

    def __init__(self, *, drift_confidence: float = 0.001, two_sided_test: bool = False) -> None:
        check_open("HDDMA", "drift_confidence", drift_confidence, 1.0)
        self.drift_confidence, self.two_sided_test = drift_confidence, two_sided_test
        super().__init__()

    def _run(self, out: NDArray[np.int8], losses: FloatArray) -> None:
        kernels.hddm_a(out, self._numbers, losses, float(self.drift_confidence), bool(self.two_sided_test))


class HDDMW(DriftDetector):
    """HDDM with the W test (Frias-Blanco et al. 2015), which weighs late losses more; for losses in [0, 1].

    Parameters
    ----------
    drift_confidence : float
        Chance of a false alarm, in (0, 1).
    lambda_val : float
        Weight of the latest loss in a mean, in (0, 1).
    two_sided_test : bool
        Whether a fall of the loss is a change too.
    """

    short = "hddm_w"
    n_numbers = 18

    def __init__(
        self, *, drift_confidence: float = 0.001, lambda_val: float = 0.05, two_sided_test: bool = False
    ) -> None:
        check_open("HDDMW", "drift_confidence", drift_confidence, 1.0)
        check_open("HDDMW", "lambda_val", lambda_val, 1.0)
        self.drift_confidence, self.lambda_val, self.two_sided_test = drift_confidence, lambda_val, two_sided_test
        super().__init__()

    def _run(self, out: NDArray[np.int8], losses: FloatArray) -> None:
        rules = float(self.drift_confidence), float(self.lambda_val), bool(self.two_sided_test)
        kernels.hddm_w(out, self._numbers, losses, *rules)


DETECTORS: dict[str, type[DriftDetector]] = {
    detector.short: detector for detector in (Adwin, PageHinkley, DDM, EDDM, HDDMA, HDDMW, FHDDM, KSWIN)
}


def make_detector(spec: str) -> DriftDetector:
    """Return the detector that a text describes: ``name`` or ``name:parameter=value,parameter=value``.

    Raises
    ------
    BadParameter
        Unknown name or parameter, or a value that breaks the detector's rule.
    """
    short, rest = (part.strip() for part in (*spec.partition(":")[::2],))
    detector = DETECTORS.get(short)
    if detector is None:
        raise BadParameter(f"drift: the name must be one of {', '.join(DETECTORS)}, got {short!r}")
    values = parse_spec(detector, rest, texts=("mode",))
    make: Callable[..., DriftDetector] = detector
    return make(**values)
