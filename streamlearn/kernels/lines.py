"""Linear members on rows as they come: log-odds of features and their squares."""

from __future__ import annotations

import math

from streamlearn.contracts import FloatArray
from streamlearn.kernels.jit import kernel

_LARGEST = 1e150
"""Its square is finite, and so is its product with any weight that a fit gives."""


@kernel
def line_votes(X: FloatArray, line: FloatArray, out: FloatArray) -> None:
    """Write tanh(t / 2) for t = bias + sum (w x + q x^2), that is 2 P - 1 for log-odds t; 0 where t is undefined.

    Parameters
    ----------
    X : float64[n_rows, n_features]
    line : float64[1 + 2 n_features]
        bias, w, q.
    out : float64[n_rows]
        Written.
    """
    m = X.shape[1]
    for i in range(X.shape[0]):
        total = line[0]
        for j in range(m):
            x = min(max(X[i, j], -_LARGEST), _LARGEST)
            total += x * (line[1 + j] + line[1 + m + j] * x)
        # Infinities of both signs can meet where weights are gross: such a row has no vote.
        out[i] = 0.0 if math.isnan(total) else math.tanh(0.5 * total)
