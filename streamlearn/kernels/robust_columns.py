"""Columns of a batch: its transpose about the medians, and logarithms of sizes for `robust_covariance`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import FloatArray
from streamlearn.kernels.jit import kernel, parallel_kernel, prange

_LARGEST = 1e150  # values are clipped here: their products and sums of these stay finite
_MOST = 512  # values about the last median among which the next one is looked for
_SAMPLE = 32
OCTAVE = 512  # steps of a logarithm per doubling: about four of 10,000 usual products share one
LEAST_LOG = -(2**14)  # of all sizes that are not larger, zero among them; a sum of two fits into 16 bits
_LARGEST_SIZE = 3e38  # near the end of single precision
_LARGEST_BITS = (127 + 31) << 23  # of a scaled size in single precision: 2^31
_LOG2 = tuple(  # of 1 + m, right to 2e-5: a hundredth of a step
    np.polynomial.Chebyshev.interpolate(lambda m: np.log2(1.0 + m), 5, [0.0, 1.0])
    .convert(kind=np.polynomial.Polynomial)
    .coef.tolist()
)

Logs = NDArray[np.int16]
"""Sizes as `OCTAVE` times their binary logarithms, rounded."""


@kernel
def _sort(values: FloatArray) -> None:
    """Sort by insertion."""
    for i in range(1, len(values)):
        v, k = values[i], i
        while k > 0 and values[k - 1] > v:
            values[k] = values[k - 1]
            k -= 1
        values[k] = v


@kernel
def _slope(column: FloatArray) -> float:
    """Return about how far neighbours of the median are apart, by the quartiles of a sample."""
    n = len(column)
    m = min(n, 4 * _SAMPLE)
    held = np.empty(m)
    for i in range(m):
        held[i] = column[i * (n // m)]
    _sort(held)
    return float((held[(3 * m) // 4] - held[m // 4]) / (0.5 * n))


@kernel
def _median(column: FloatArray, hint: float, slope: float, found: FloatArray) -> float:
    """Return the median of a column; write the lower middle value and the slope there into `found`.

    Where the middle ones lie between the values that they should by the last batch, only what is there is sorted.
    """
    n = len(column)
    rank = (n + 1) // 2
    half = slope * (1.5 * np.sqrt(n) + 4.0)
    lo, hi = hint - half, hint + half
    below = inside = 0
    flags = np.empty(n, dtype=np.uint8)
    for i in range(n if slope > 0.0 else 0):
        v = column[i]
        hit = (v >= lo) & (v <= hi)
        flags[i] = hit
        below += v < lo
        inside += hit
    held = column
    if slope > 0.0 and below < rank < below + inside <= below + _MOST:
        held, m = np.empty(inside), 0
        for i in range(n):
            if flags[i]:
                held[m] = column[i]
                m += 1
        rank -= below
    near = np.partition(held, rank - 1)
    lower = near[rank - 1]
    found[0], found[1] = lower, (hi - lo) / inside if len(held) < n else _slope(column)
    if n % 2:
        return float(lower)
    return float(0.5 * lower + 0.5 * near[rank:].min())


@kernel
def _transpose(X: FloatArray, first: int, block: int, out: FloatArray) -> None:
    """Write 64 rows of some columns of X into columns of `out`, clipped; eight columns, a cache line, at a time."""
    top = block * 64
    rows = X[top : top + 64]
    for left in range(0, len(out), 8):
        for j in range(left, min(left + 8, len(out))):
            to = out[j, top : top + len(rows)]
            for i in range(len(rows)):
                to[i] = min(max(rows[i, first + j], -_LARGEST), _LARGEST)


@kernel
def _scale_of(column: FloatArray, median: float) -> float:
    """Return a power of two over a usual distance of a column from its median."""
    n = len(column)
    m = min(n, _SAMPLE)
    held = np.empty(m)
    for i in range(m):
        held[i] = abs(column[i * (n // m)] - median)
    _sort(held)
    usual = held[m // 2]
    return float(2.0 ** -np.floor(np.log2(usual))) if 1e-100 < usual < 1e100 else 1.0


@kernel
def _logs_of(rounded: NDArray[np.float32], logs: Logs) -> float:
    """Write the logarithms of sizes, and return a bound of them; or return infinity, where one is 2^31 or more.

    The bits of a number in single precision are its power of two and, behind it, what it is more than that.
    """
    bits = rounded.view(np.int32)
    most = np.int32(0)
    for i in range(len(bits)):
        most = max(most, bits[i])
    if most >= _LARGEST_BITS:
        return np.inf
    c0, c1, c2 = np.float32(_LOG2[0]), np.float32(_LOG2[1]), np.float32(_LOG2[2])
    c3, c4, c5 = np.float32(_LOG2[3]), np.float32(_LOG2[4]), np.float32(_LOG2[5])
    octave, unit = np.float32(OCTAVE), np.float32(2.0**-23)
    up = np.int32(128 * OCTAVE)  # makes all positive: cutting the fraction off then rounds down
    for i in range(len(bits)):
        power = np.float32(np.int32(bits[i] >> 23) - 127)
        v = np.float32(np.int32(bits[i] & 0x7FFFFF)) * unit
        v = c0 + v * (c1 + v * (c2 + v * (c3 + v * (c4 + v * c5))))
        key = np.int32((power + v) * octave + (np.float32(up) + np.float32(0.5))) - up
        logs[i] = np.int16(max(key, np.int32(LEAST_LOG)))
    return max(float(OCTAVE * ((most >> 23) - 126)), float(LEAST_LOG))


@kernel
def _centre(column: FloatArray, j: int, hints: FloatArray, medians: FloatArray, logs: Logs, scales: FloatArray) -> None:
    """Take the median from one column, in place, and write the logarithms of what is left."""
    n = len(column)
    found, rounded = np.empty(2), np.empty(n, dtype=np.float32)
    median = _median(column, hints[0, j], hints[1, j], found)
    hints[0, j], hints[1, j], medians[j] = found[0], found[1], median
    scale = _scale_of(column, median)
    for i in range(n):
        v = column[i] - median
        column[i] = v
        rounded[i] = min(abs(v * scale), _LARGEST_SIZE)
    bound = _logs_of(rounded, logs)
    scales[0, j], scales[1, j] = scale if bound < np.inf else 0.0, bound


@kernel
def centred_columns(
    X: FloatArray,
    first: int,
    hints: FloatArray,
    medians: FloatArray,
    out: FloatArray,
    logs: Logs,
    scales: FloatArray,
) -> None:
    """Transpose some columns of a batch and take its median from each.

    Parameters
    ----------
    X : float64[n, p]
        Without NaN.
    first : int
        The first of these columns.
    hints : float64[2, p]
        Medians and slopes of the last batch, zeros at first; changed. They save time and do not touch the result.
    medians : float64[p]
        Written where these columns are.
    out : float64[m, n]
        X[:, first : first + m].T - medians, clipped to size 1e150; written.
    logs : int16[p, n]
        `OCTAVE` times the binary logarithms of the sizes of `out` times `scales`, rounded, at least `LEAST_LOG`;
        written where these columns are.
    scales : float64[2, p]
        Powers of two that bring usual sizes to about one, and bounds of the logarithms; written likewise. Where a size
        is too far from the usual one the scale is 0, and there are no logarithms.
    """
    for block in range((len(X) + 63) // 64):
        _transpose(X, first, block, out)
    for j in range(len(out)):
        _centre(out[j], first + j, hints, medians, logs[first + j], scales)


@parallel_kernel
def centred_columns_parallel(
    X: FloatArray,
    first: int,
    hints: FloatArray,
    medians: FloatArray,
    out: FloatArray,
    logs: Logs,
    scales: FloatArray,
) -> None:
    """Fill what `centred_columns` fills, bit for bit, on all of Numba's threads."""
    for block in prange((len(X) + 63) // 64):
        _transpose(X, first, block, out)
    for j in prange(len(out)):
        _centre(out[j], first + j, hints, medians, logs[first + j], scales)


@kernel
def _transpose_less(X: FloatArray, first: int, block: int, medians: FloatArray, out: FloatArray) -> None:
    """Do what `_transpose` does, and take the medians off."""
    _transpose(X, first, block, out)
    top = block * 64
    for j in range(len(out)):
        to, median = out[j, top : top + 64], medians[first + j]
        for i in range(len(to)):
            to[i] -= median


@kernel
def columns_again(X: FloatArray, first: int, medians: FloatArray, out: FloatArray) -> None:
    """Fill what `columns_again_parallel` fills."""
    for block in range((len(X) + 63) // 64):
        _transpose_less(X, first, block, medians, out)


@parallel_kernel
def columns_again_parallel(X: FloatArray, first: int, medians: FloatArray, out: FloatArray) -> None:
    """Fill `out` as `centred_columns` did, by the medians that it found."""
    for block in prange((len(X) + 63) // 64):
        _transpose_less(X, first, block, medians, out)
