"""Sorted lists of distinct scores with the mass of each class: the bounded-memory memory of a score distribution.

A list is ``keys`` (float64[capacity], ascending) and ``mass`` ([2, capacity], negatives then positives; int64 counts,
or float64 where events fade); its first ``size`` columns are in use. Rounding a list up or down shortens it and moves
every event to a key at or above (at or below) its own score, so that pairs counted on the rounded lists bound the
true counts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamlearn.kernels.jit import kernel

Floats = NDArray[np.float64]
Mass = NDArray[Any]

LIGHT = 1.0 / 64.0
"""Keys up to this part of the limit join any group: else masses that grow from key to key would never be joined."""


@kernel
def collapse(keys: Floats, mass: Mass, scores: Floats, codes: NDArray[np.int8], weights: Mass) -> int:
    """Turn sorted events into a list of distinct scores; return its size.

    Parameters
    ----------
    keys : float64[n]
        Output.
    mass : [2, n]
        Output.
    scores : float64[n]
        Ascending, no NaN.
    codes : int8[n]
        1 or 0.
    weights : [n]
        What each event counts, of the type of `mass`.
    """
    size = 0
    for i in range(scores.shape[0]):
        if size == 0 or keys[size - 1] != scores[i]:
            keys[size] = scores[i]
            mass[0, size] = 0
            mass[1, size] = 0
            size += 1
        mass[codes[i], size - 1] += weights[i]
    return size


@kernel
def count_pairs(out: Mass, keys: Floats, mass: Mass, new_keys: Floats, new_mass: Mass, tau: float) -> None:
    """Count the pairs of one event in the list and one new event of the other class, in one sweep over both.

    The test is on the rounded difference itself, which is monotone in either score. A pair of equal infinities has no
    difference and counts neither way.

    Parameters
    ----------
    out : [4]
        Output. Positive new: pairs whose positive is higher, and lower, by more than tau; then the same for negative
        new.
    keys, mass : float64[n], [2, n]
        The list.
    new_keys, new_mass : float64[k], [2, k]
        The new events, ascending too.
    tau : float
        At least 0.
    """
    n = keys.shape[0]
    out[:] = 0
    total_neg = mass[0].sum()
    total_pos = mass[1].sum()
    # The first i keys are lower than the new key by more than tau; the first j are not higher by more than tau. Without
    # tau at most one key lies between, and one sweep does for both.
    i = 0
    j = 0
    neg_i = 0 * total_neg
    pos_i = 0 * total_pos
    neg_j = 0 * total_neg
    pos_j = 0 * total_pos
    for k in range(new_keys.shape[0]):
        s = new_keys[k]
        while i < n and s - keys[i] > tau:
            neg_i += mass[0, i]
            pos_i += mass[1, i]
            i += 1
        if tau == 0.0:
            j = i
            neg_j = neg_i
            pos_j = pos_i
        while j < n and not keys[j] - s > tau:
            neg_j += mass[0, j]
            pos_j += mass[1, j]
            j += 1
        out[0] += new_mass[1, k] * neg_i
        out[1] += new_mass[1, k] * (total_neg - neg_j)
        out[2] += new_mass[0, k] * (total_pos - pos_j)
        out[3] += new_mass[0, k] * pos_i


@kernel
def merge(keys: Floats, mass: Mass, size: int, new_keys: Floats, new_mass: Mass) -> int:
    """Merge new events into the list in place, from its end; return the new size.

    Parameters
    ----------
    keys, mass : float64[capacity], [2, capacity]
        The list; its capacity is at least `size` + k.
    size : int
        Columns in use.
    new_keys, new_mass : float64[k], [2, k]
        Distinct and ascending.
    """
    n_fresh = 0
    i = 0
    for k in range(new_keys.shape[0]):
        while i < size and keys[i] < new_keys[k]:
            i += 1
        if i == size or keys[i] != new_keys[k]:
            n_fresh += 1
    i = size - 1
    end = size + n_fresh - 1
    for k in range(new_keys.shape[0] - 1, -1, -1):
        while i >= 0 and keys[i] > new_keys[k]:
            keys[end] = keys[i]
            mass[0, end] = mass[0, i]
            mass[1, end] = mass[1, i]
            i -= 1
            end -= 1
        keys[end] = new_keys[k]
        if i >= 0 and keys[i] == new_keys[k]:
            mass[0, end] = mass[0, i] + new_mass[0, k]
            mass[1, end] = mass[1, i] + new_mass[1, k]
            i -= 1
        else:
            mass[0, end] = new_mass[0, k]
            mass[1, end] = new_mass[1, k]
        end -= 1
    return size + n_fresh


@kernel
def round_down(keys: Floats, mass: Mass, size: int, limit: float) -> int:
    """Join keys to lighter or equal groups just below them, each at its lowest key, in place; return the new size.

    A key joins the group below it if both weigh up to `limit` together and it is light or at most twice as heavy as
    the group. The second condition keeps the events of a heavy key from being moved to the next light key at every
    call: between two keys lie many events that were rounded away before. An event moves only when its group grows by
    half, so that over any number of calls it moves past about `limit` events and not past `limit` events a call.
    """
    light = limit * LIGHT
    last = -1
    group = 0.0
    for i in range(size):
        weight = float(mass[0, i] + mass[1, i])
        if last >= 0 and group + weight <= limit and weight <= max(2.0 * group, light):
            mass[0, last] += mass[0, i]
            mass[1, last] += mass[1, i]
            group += weight
        else:
            last += 1
            keys[last] = keys[i]
            mass[0, last] = mass[0, i]
            mass[1, last] = mass[1, i]
            group = weight
    return last + 1


@kernel
def round_up(keys: Floats, mass: Mass, size: int, limit: float) -> int:
    """Join keys to groups just above them, each at its highest key, in place; return the new size.

    The mirror image of `round_down`: the same rule from the upper end.
    """
    light = limit * LIGHT
    first = size
    group = 0.0
    for i in range(size - 1, -1, -1):
        weight = float(mass[0, i] + mass[1, i])
        if first < size and group + weight <= limit and weight <= max(2.0 * group, light):
            mass[0, first] += mass[0, i]
            mass[1, first] += mass[1, i]
            group += weight
        else:
            first -= 1
            keys[first] = keys[i]
            mass[0, first] = mass[0, i]
            mass[1, first] = mass[1, i]
            group = weight
    for i in range(first, size):
        keys[i - first] = keys[i]
        mass[0, i - first] = mass[0, i]
        mass[1, i - first] = mass[1, i]
    return size - first
