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


STRIDE = 8
"""Keys passed at once where there are many between two new ones."""


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
def count_pairs(out: Mass, keys: Floats, sums: Mass, new_keys: Floats, new_neg: Mass, new_pos: Mass) -> None:
    """Count the pairs of one event in the list and one new event of the other class, in one sweep over both.

    Parameters
    ----------
    out : [4]
        Output. Positive new: pairs whose positive is higher, and lower; then the same for negative new.
    keys : float64[n]
        Distinct scores of the list, ascending.
    sums : [2, n + 1]
        Negatives and positives at the first so many of them.
    new_keys, new_neg, new_pos : float64[k], [k], [k]
        The new events, ascending too.
    """
    n = keys.shape[0]
    neg, pos = sums[0], sums[1]
    right, wrong, right_old, wrong_old = 0 * neg[n], 0 * neg[n], 0 * neg[n], 0 * neg[n]
    i = 0
    for k in range(new_keys.shape[0]):
        s = new_keys[k]
        while i + STRIDE <= n and keys[i + STRIDE - 1] < s:
            i += STRIDE
        lower, upto = 0, 0
        # Without a branch, which would be guessed wrongly as often as not: whole strides are compared at once.
        if i + STRIDE <= n:
            for t in range(STRIDE):
                lower += keys[i + t] < s
                upto += keys[i + t] <= s
        else:
            for t in range(i, n):
                lower += keys[t] < s
                upto += keys[t] <= s
        right += new_pos[k] * neg[i + lower]
        wrong += new_pos[k] * (neg[n] - neg[i + upto])
        right_old += new_neg[k] * (pos[n] - pos[i + upto])
        wrong_old += new_neg[k] * pos[i + lower]
    out[0], out[1], out[2], out[3] = right, wrong, right_old, wrong_old


@kernel
def count_pairs_beyond(
    out: Mass, keys: Floats, sums: Mass, new_keys: Floats, new_neg: Mass, new_pos: Mass, tau: float
) -> None:
    """Count pairs like `count_pairs`, those whose scores differ by more than `tau`.

    The test is on the rounded difference itself, which is monotone in either score. A pair of equal infinities has no
    difference and counts neither way.
    """
    n = keys.shape[0]
    neg, pos = sums[0], sums[1]
    out[:] = 0
    lower, upto = 0, 0  # so many keys are lower than the new key by more than tau, and so many not higher by more
    for k in range(new_keys.shape[0]):
        s = new_keys[k]
        while lower < n and s - keys[lower] > tau:
            lower += 1
        while upto < n and not keys[upto] - s > tau:
            upto += 1
        out[0] += new_pos[k] * neg[lower]
        out[1] += new_pos[k] * (neg[n] - neg[upto])
        out[2] += new_neg[k] * (pos[n] - pos[upto])
        out[3] += new_neg[k] * pos[lower]


@kernel
def count_inside(out: Mass, sums: Mass, pos: Mass) -> None:
    """Count the pairs of two events of one list: what `count_pairs` does for a list and itself where tau is 0.

    Parameters
    ----------
    out : [2]
        Output: pairs whose positive is higher, and lower.
    sums : [n + 1]
        Negatives at the first so many scores, ascending.
    pos : [n]
        Positives at each.
    """
    out[:] = 0
    n = pos.shape[0]
    for k in range(n):
        out[0] += pos[k] * sums[k]
        out[1] += pos[k] * (sums[n] - sums[k + 1])


@kernel
def merge(
    out: Mass, keys: Floats, mass: Mass, old_keys: Floats, old_neg: Mass, old_pos: Mass, new_keys: Floats,
    new_neg: Mass, new_pos: Mass,
) -> int:  # fmt: skip
    """Write the list of old and new events, and count their pairs on the way; return the size of the list.

    Parameters
    ----------
    out : [4]
        Output: what `count_pairs` writes, which is quicker where there is nothing to merge.
    keys, mass : float64[>= n + k], [2, >= n + k]
        Output.
    old_keys, old_neg, old_pos : float64[n], [n], [n]
    new_keys, new_neg, new_pos : float64[k], [k], [k]
        Distinct and ascending both.
    """
    n, k = old_keys.shape[0], new_keys.shape[0]
    neg, pos = mass[0], mass[1]
    out[:] = 0
    total_neg, total_pos = 0 * out[0], 0 * out[0]
    for i in range(n):  # a loop over integers vectorises, ``old_neg.sum()`` does not
        total_neg += old_neg[i]
        total_pos += old_pos[i]
    neg_i, pos_i = 0 * out[0], 0 * out[0]  # of the old events below the present key
    i, size = 0, 0
    for j in range(k):
        key, more_neg, more_pos = new_keys[j], new_neg[j], new_pos[j]
        while i < n and old_keys[i] < key:
            keys[size], neg[size], pos[size] = old_keys[i], old_neg[i], old_pos[i]
            neg_i += old_neg[i]
            pos_i += old_pos[i]
            i += 1
            size += 1
        keys[size], neg[size], pos[size] = key, more_neg, more_pos
        out[0] += more_pos * neg_i
        out[3] += more_neg * pos_i
        if i < n and old_keys[i] == key:
            neg[size] += old_neg[i]
            pos[size] += old_pos[i]
            neg_i += old_neg[i]
            pos_i += old_pos[i]
            i += 1
        out[1] += more_pos * (total_neg - neg_i)
        out[2] += more_neg * (total_pos - pos_i)
        size += 1
    while i < n:
        keys[size], neg[size], pos[size] = old_keys[i], old_neg[i], old_pos[i]
        i += 1
        size += 1
    return size


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
