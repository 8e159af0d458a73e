"""Running sums in the order of the events, so that one by one and in batches give equal bits, and the scalar losses."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from streamlearn.kernels.jit import kernel

Floats = NDArray[np.float64]


@kernel
def add_sums(sums: Floats, rows: Floats) -> None:
    """Add rows to compensated sums (Neumaier 1974): the error does not grow with the number of events.

    Parameters
    ----------
    sums : float64[2, k]
        Sums and their compensations, updated in place; an infinite sum stays infinite.
    rows : float64[n, k]
    """
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            old = sums[0, j]
            value = rows[i, j]
            total = old + value
            if math.isinf(total):
                sums[1, j] = 0.0
            elif abs(old) >= abs(value):
                sums[1, j] += (old - total) + value
            else:
                sums[1, j] += (value - total) + old
            sums[0, j] = total


@kernel
def add_faded(sums: Floats, rows: Floats, fading: float) -> None:
    """Add rows to sums that forget: ``s <- fading s + row`` (Gama, Sebastiao and Rodrigues 2013, fading factors).

    Parameters
    ----------
    sums : float64[k]
        Updated in place.
    rows : float64[n, k]
    fading : float
        In (0, 1).
    """
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            sums[j] = fading * sums[j] + rows[i, j]


@kernel
def log_losses(out: Floats, codes: NDArray[np.int8], probabilities: Floats, smallest: float) -> None:
    """Write minus the log-likelihood of each label; probabilities are kept `smallest` away from 0 and 1.

    Parameters
    ----------
    out : float64[n]
        Output, in nats.
    codes : int8[n]
        1 or 0.
    probabilities : float64[n]
        P(positive).
    smallest : float
    """
    for i in range(codes.shape[0]):
        p = min(max(probabilities[i], smallest), 1.0 - smallest)
        out[i] = -math.log(p) if codes[i] == 1 else -math.log(1.0 - p)


@kernel
def log_odds(out: Floats, probabilities: Floats) -> None:
    """Write ln(p / (1 - p)); -inf at 0, inf at 1, NaN stays NaN.

    Parameters
    ----------
    out : float64[n]
        Output.
    probabilities : float64[n]
        In [0, 1].
    """
    for i in range(out.shape[0]):
        p = probabilities[i]
        if p <= 0.0:
            out[i] = -math.inf
        elif p >= 1.0:
            out[i] = math.inf
        else:
            out[i] = math.log(p) - math.log1p(-p)
