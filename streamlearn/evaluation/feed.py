"""What of a learner's forecasts each metric is fed with."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import FloatArray, Metric, Tested
from streamlearn.kernels.tally import log_odds


def feed(metric: Metric, tested: Tested, labels: NDArray[Any]) -> None:
    """Give a metric the pairs that it takes.

    Parameters
    ----------
    metric : Metric
    tested : Tested
    labels : array [n]
        At the source; only metrics of values look at them.
    """
    takes = metric.takes
    if takes == "value":
        metric.update_many(targets(labels), tested.scores)
    elif takes == "score":
        metric.update_many(tested.codes, tested.scores)
    elif takes == "prediction":
        metric.update_many(tested.codes, tested.decisions)
    elif takes == "probability":
        metric.update_many(tested.codes, tested.probabilities)
    else:
        odds = np.empty(len(tested.codes))
        log_odds(odds, np.ascontiguousarray(tested.probabilities))
        metric.update_many(tested.codes, odds)


def targets(labels: NDArray[Any]) -> FloatArray:
    """Return labels as numbers to be predicted: float64[n], NaN where there is none, or text."""
    if labels.dtype.kind in "OU":
        return np.array([np.nan if y is None or isinstance(y, str) else y for y in labels.tolist()], np.float64)
    return labels.astype(np.float64)
