"""What the AUCRO paper's Table 2 holds as far as it is known here, and what two Gaussians predict of it.

Shen, Yang, Gao, AAAI 2020. The columns d = .48 ... .42 are the paper's. Its standard deviations and the columns of the
other learners are not known here and stay empty. Its AUC at d = 1/2 is known indirectly: a published calculation with
the two-Gaussian model started from it, and `PREDICTED` holds that calculation's results to four digits. The model is
monotone in the AUC, so they determine it to within 0.0001: that is `implied_auc`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

COSTS = (0.5, 0.48, 0.46, 0.44, 0.42)
REJECTING = COSTS[1:]


@dataclass(frozen=True, slots=True)
class Prediction:
    """What the two-Gaussian model says at each of `REJECTING`."""

    auc: tuple[float, ...]
    reject_rate: tuple[float, ...]


AUCRO = {
    "a9a": (0.9206, 0.9390, 0.9548, 0.9680),
    "splice": (0.9435, 0.9591, 0.9714, 0.9810),
    "w8a": (0.9816, 0.9884, 0.9928, 0.9954),
    "covtype": (0.8494, 0.8734, 0.8953, 0.9155),
    "connect4": (0.8831, 0.9058, 0.9259, 0.9435),
    "diabetes": (0.8549, 0.8768, 0.8960, 0.9129),
    "letter": (0.8404, 0.8687, 0.8956, 0.9204),
    "fourclass": (0.8534, 0.8769, 0.9004, 0.9248),
    "german_numer": (0.8146, 0.8385, 0.8613, 0.8826),
}
"""AUCRO's AUC of the ranked pairs at each of `REJECTING`, as printed in the paper."""

PREDICTED = {
    "a9a": Prediction((0.9210, 0.9394, 0.9549, 0.9678), (0.058, 0.119, 0.185, 0.258)),
    "splice": Prediction((0.9430, 0.9583, 0.9706, 0.9802), (0.049, 0.101, 0.158, 0.224)),
    "w8a": Prediction((0.9807, 0.9879, 0.9929, 0.9961), (0.027, 0.056, 0.093, 0.140)),
    "covtype": Prediction((0.8493, 0.8737, 0.8964, 0.9175), (0.084, 0.169, 0.257, 0.350)),
    "connect4": Prediction((0.8824, 0.9047, 0.9246, 0.9424), (0.072, 0.147, 0.225, 0.309)),
    "diabetes": Prediction((0.8576, 0.8815, 0.9037, 0.9239), (0.081, 0.163, 0.249, 0.339)),
    "letter": Prediction((0.8372, 0.8622, 0.8858, 0.9079), (0.088, 0.177, 0.268, 0.364)),
    "fourclass": Prediction((0.8561, 0.8802, 0.9024, 0.9228), (0.081, 0.164, 0.250, 0.341)),
    "german_numer": Prediction((0.8164, 0.8423, 0.8671, 0.8908), (0.095, 0.191, 0.289, 0.390)),
}
"""Two-Gaussian predictions of the same columns, made from the paper's AUC at d = 1/2."""


def tau(cost: float) -> float:
    """Return the log-odds ``ln((1 - d)/d)``."""
    return math.log1p(-cost) - math.log(cost)


def alpha(cost: float) -> float:
    """Return the factor ``1 - (1 - 2d) tau(d)`` between the weights for cost d and those for 1/2."""
    return 1.0 - (1.0 - 2.0 * cost) * tau(cost)


def two_gaussians(auc: float, cost: float) -> tuple[float, float]:
    """Return AUC of the ranked pairs and reject rate of the square loss's minimiser on two Gaussians.

    With ``Delta = Phi^-1(AUC)`` a pair's margin is Gaussian with mean ``alpha Delta^2/(1 + Delta^2)`` and standard
    deviation ``alpha Delta/(1 + Delta^2)``; a pair is rejected where it is within +- tau.
    """
    delta = float(ndtri(auc))
    mean, spread = (alpha(cost) * delta**k / (1.0 + delta**2) for k in (2, 1))
    right, wrong = (float(ndtr((sign * mean - tau(cost)) / spread)) for sign in (1.0, -1.0))
    return right / (right + wrong), 1.0 - right - wrong


def implied_auc(name: str) -> float:
    """Return the paper's AUC at d = 1/2 of a set: what its `PREDICTED` columns were computed from."""
    columns = PREDICTED[name].auc
    solved: list[float] = [
        brentq(lambda auc, d=d, value=value: two_gaussians(auc, d)[0] - value, 0.55, 0.999)
        for d, value in zip(REJECTING, columns, strict=True)
    ]
    return float(np.mean(solved))


def published(name: str) -> NDArray[np.float64]:
    """Return the paper's AUCRO row at `COSTS`; the first is `implied_auc`, all are NaN for a set not in the table."""
    if name not in AUCRO:
        return np.full(len(COSTS), np.nan)
    return np.array([implied_auc(name), *AUCRO[name]])
