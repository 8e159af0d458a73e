"""Detectors of a change between the late and the earlier losses of a window: one pass, all state in arrays.

As in `kernels/drift.py`, each value gets a sign, and a state with its flag up stands for a fresh one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamlearn.kernels.jit import kernel

Floats = NDArray[np.float64]
Signs = NDArray[np.int8]


@kernel
def _mixed(seed: np.uint64, count: int) -> np.uint64:
    """Return 64 pseudo-random bits for a seed and a count: splitmix64 (Steele, Lea and Flood 2014)."""
    # Products wrap around: the constants are odd, so that every step is a bijection.
    x = seed * np.uint64(0xD1342543DE82EF95) + np.uint64(count) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@kernel
def drawn(out: NDArray[np.int64], seed: np.uint64, count: int) -> int:
    """Draw places without replacement; return the count for the next draw.

    Parameters
    ----------
    out : int64[n_places]
        Written: all places, those that were drawn first; a call for the first k of them reads no further.
    seed : uint64
    count : int
        Bits that were drawn before.
    """
    n = len(out)
    for k in range(n):
        out[k] = k
    for k in range(n - 1):
        # The remainder favours small places by less than n / 2^53.
        other = k + int(_mixed(seed, count + k) >> np.uint64(11)) % (n - k)
        out[k], out[other] = out[other], out[k]
    return count + n - 1


@kernel
def kswin(
    out: Signs,
    numbers: Floats,
    window: Floats,
    places: NDArray[np.int64],
    pair: Floats,
    values: Floats,
    critical: int,
    seed: np.uint64,
) -> None:
    """KSWIN (Raab, Heusinger and Schleif 2020): the last r values of a window against r drawn from those before.

    Parameters
    ----------
    out : int8[n]
        Output: 1 the mean rose, -1 it did not though the distribution changed, 0 no change.
    numbers : float64[4]
        Flag, values in the window, place of the oldest one, bits drawn; updated in place.
    window : float64[w]
        A ring; updated in place.
    places : int64[w - r]
        Room for the draw.
    pair : float64[2, r]
        Room for the two samples.
    values : float64[n]
    critical : int
        Least distance of the two distribution functions, times r, that is a change.
    seed : uint64
    """
    w, r = window.shape[0], pair.shape[1]
    for i in range(values.shape[0]):
        if numbers[0] == 1.0:
            numbers[1] = numbers[2] = 0.0
        n, oldest = int(numbers[1]), int(numbers[2])
        window[(oldest + n) % w] = values[i]
        if n == w:
            oldest = (oldest + 1) % w
        else:
            n += 1
        numbers[1], numbers[2] = n, oldest
        change = 0
        if n == w:
            numbers[3] = drawn(places, seed, int(numbers[3]))
            for k in range(r):
                pair[0, k] = window[(oldest + places[k]) % w]
                pair[1, k] = window[(oldest + w - r + k) % w]
            before, late = pair[0].sum(), pair[1].sum()
            pair[0].sort()
            pair[1].sort()
            a, b, distance = 0, 0, 0
            while a < r and b < r:
                # Equal values are passed together, in both samples.
                value = min(pair[0, a], pair[1, b])
                while a < r and pair[0, a] == value:
                    a += 1
                while b < r and pair[1, b] == value:
                    b += 1
                distance = max(distance, abs(a - b))
            if distance >= critical:
                change = 1 if late > before else -1
        out[i] = change
        numbers[0] = abs(change)


@kernel
def fhddm(out: Signs, numbers: Floats, window: Floats, values: Floats, long_cut: float, short_cut: float) -> None:
    """FHDDM (Pesaranghader and Viktor 2016): right decisions of late fall below their best share by a Hoeffding bound.

    With `short_cut` below 1 it is the stacking form, which looks at the latest part of the window as well.

    Parameters
    ----------
    out : int8[n]
        Output: 1 the mean loss rose, 0 no change.
    numbers : float64[7]
        Flag, values in the window, place of the oldest one, sum of the window, best share in it, values in its latest
        part (fixed), best share in that; updated in place.
    window : float64[w]
        A ring of 1 - loss; updated in place.
    values : float64[n]
        Losses in [0, 1].
    long_cut, short_cut : float
        Largest fall of the share that is no change.
    """
    w, latest = window.shape[0], int(numbers[5])
    for i in range(values.shape[0]):
        if numbers[0] == 1.0:
            numbers[1] = numbers[2] = numbers[3] = numbers[4] = numbers[6] = 0.0
        n, oldest = int(numbers[1]), int(numbers[2])
        window[(oldest + n) % w] = 1.0 - values[i]
        numbers[3] += 1.0 - values[i]
        n += 1
        found = False
        if n == w:
            share = numbers[3] / w
            numbers[4] = max(numbers[4], share)
            found = numbers[4] - share > long_cut
            if latest > 0:
                total = 0.0
                for k in range(w - latest, w):
                    total += window[(oldest + k) % w]
                numbers[6] = max(numbers[6], total / latest)
                found = found or numbers[6] - total / latest > short_cut
            numbers[3] -= window[oldest]
            oldest = (oldest + 1) % w
            n -= 1
        numbers[1], numbers[2] = n, oldest
        out[i] = 1 if found else 0
        numbers[0] = 1.0 if found else 0.0
