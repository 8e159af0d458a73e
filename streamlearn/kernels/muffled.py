"""Buffers of a semi-supervised stream: the last labelled events, a reservoir of unlabelled ones, and when to refit."""

from __future__ import annotations

import numpy as np

from streamlearn.contracts import CodeArray, FloatArray, IntArray
from streamlearn.kernels.jit import kernel

EVENTS, LABELLED, UNLABELLED, NEW, POSITIVE, NEGATIVE, REFITS, DUE, SWAP, AT_REFIT = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
"""Elements of `counters`: events, labelled and unlabelled ones so far, labels since the last refit, labels of either
class in the buffer, refits, whether one is due, the event after which the model of the last one comes into use (0 =
none is waiting), and the labelled events so far at the last refit."""
N_COUNTERS = 10
UNIFORM, BIASED, SLIDING = 0, 1, 2
"""Reservoirs: Vitter's, a random slot for each arrival (ages are then geometric), and the last ones."""
LEAST_OF_A_CLASS = 2


@kernel
def mixed(seed: int, count: int) -> np.uint64:
    """Return 64 pseudo-random bits for a seed and a count: splitmix64 (Steele, Lea and Flood 2014).

    Parameters
    ----------
    seed, count : int
    """
    # Products wrap around: the constants are odd, so that every step is a bijection.
    x = np.uint64(seed) * np.uint64(0xD1342543DE82EF95) + np.uint64(count) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@kernel
def _below(seed: int, count: int, n: int) -> int:
    """Return a pseudo-random integer in [0, n)."""
    return int(float(mixed(seed, count) >> np.uint64(11)) * 2.0**-53 * n)


@kernel
def is_due(counters: IntArray, filled: int, least: int, share: float) -> bool:
    """Tell whether enough labels came since the last refit, with both classes in the buffer and no model waiting.

    Parameters
    ----------
    counters : int64[10]
    filled : int
        Labelled events in the buffer.
    least, share : int, float
        A refit takes max(least, share * filled) new labels.
    """
    return bool(
        counters[SWAP] == 0
        and counters[NEW] >= max(float(least), share * filled)
        and counters[POSITIVE] >= LEAST_OF_A_CLASS
        and counters[NEGATIVE] >= LEAST_OF_A_CLASS
    )


@kernel
def absorb(
    X: FloatArray,
    codes: CodeArray,
    first: int,
    stop_at_label: bool,
    labelled: FloatArray,
    labels: CodeArray,
    unlabelled: FloatArray,
    counters: IntArray,
    sizes: IntArray,
    share: float,
) -> int:
    """Put rows into the buffers until a refit or a swap is due; return the index of the row to go on with.

    Parameters
    ----------
    X : float64[n_rows, n_features]
    codes : int8[n_rows]
        1, 0, or -1 for an unlabelled row.
    first : int
        The row to begin with.
    stop_at_label : bool
        Stop behind every labelled row.
    labelled : float64[>= min(n_labelled, size), n_features]
        Ring of labelled rows; changed.
    labels : int8[same]
        Their codes; changed.
    unlabelled : float64[>= min(n_unlabelled, size), n_features]
        The reservoir; changed.
    counters : int64[10]
        Changed.
    sizes : int64[5]
        Size of ring and reservoir, kind of reservoir, least new labels of a refit, seed.
    share : float
        New labels of a refit as a share of those in the ring.
    """
    for i in range(first, X.shape[0]):
        counters[EVENTS] += 1
        if codes[i] >= 0:
            n = counters[LABELLED]
            slot = n % sizes[0]
            if n >= sizes[0]:
                counters[POSITIVE if labels[slot] == 1 else NEGATIVE] -= 1
            counters[POSITIVE if codes[i] == 1 else NEGATIVE] += 1
            labels[slot] = codes[i]
            for j in range(X.shape[1]):
                labelled[slot, j] = X[i, j]
            counters[LABELLED] = n + 1
            counters[NEW] += 1
            if is_due(counters, min(n + 1, sizes[0]), sizes[3], share):
                counters[DUE] = 1
                return i + 1
            if stop_at_label:
                return i + 1
        elif sizes[1] > 0:
            n = counters[UNLABELLED]
            counters[UNLABELLED] = n + 1
            slot = n
            if n >= sizes[1]:
                if sizes[2] == UNIFORM:
                    slot = _below(sizes[4], n, n + 1)
                elif sizes[2] == BIASED:
                    slot = _below(sizes[4], n, sizes[1])
                else:
                    slot = n % sizes[1]
            if slot < sizes[1]:
                for j in range(X.shape[1]):
                    unlabelled[slot, j] = X[i, j]
        if counters[SWAP] == counters[EVENTS]:
            return i + 1
    return len(X)


@kernel
def add_votes(votes: FloatArray, weights: FloatArray, out: FloatArray) -> None:
    """Add weighted votes to scores, one after the other: for one row as for many.

    Parameters
    ----------
    votes : float64[n_rows, n_votes]
    weights : float64[n_votes]
    out : float64[n_rows]
        Changed.
    """
    for i in range(votes.shape[0]):
        for c in range(votes.shape[1]):
            out[i] += weights[c] * votes[i, c]
