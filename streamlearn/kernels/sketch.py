"""Frequent Directions, and the weights of AUCRO from them: what is done every so many events.

A buffer of 2 k rows B stands for the scatter S of a class. When it is full, its singular values shrink,
``s_i <- sqrt(max(s_i^2 - s_k^2, 0))``, which leaves k - 1 rows: ``0 <= S - B'B <= |S|_F^2/k`` (Liberty 2013;
Ghashami, Liberty, Phillips & Woodruff 2016). Layout as in auc_sketch.py.
"""

from __future__ import annotations

import math

import numpy as np

from streamlearn.contracts import FloatArray
from streamlearn.kernels.jit import kernel

HEADER, MEMORY_HEADER = 16, 32
COUNT, SEEN = 0, 1
CLIP, WIDTH, RAW, N_MEMORIES, NONZEROS, SCALING, LOGS, N_LOGS = range(3, 11)
# Header of a memory, likewise: state, then parameters. COLUMN is its place among the ratios of a bank.
LLR, OFFSET, RHO, SOLVED_AT, FADE, SHRINK = range(6)
WEIGHT, SCALE, SCORE, SPREAD = 6, 8, 10, 12
DECAY, CLASS_CLOCK, EVERY, REGULARIZATION, RATE, COLUMN = range(14, 20)
# Record: TIMES it was not 0; MEAN and VARIANCE over all of the first AT events; two values other than 0.
TIMES, AT, MEAN, VARIANCE, PEAK, FIRST, SECOND, METRIC, LOG, N_COMMON = range(10)
# Own numbers: weight, mean and variance of class 0 and of class 1, as of its last event with the feature.
OWN_WEIGHT, OWN_MEAN, OWN_VARIANCE, CLASS_SIZE = 0, 1, 2, 3
W, MIDDLE, N_OWN = 6, 7, 8
TINY = 1e-14  # a spread below this fraction of the largest value is rounding, not signal
SMALLEST = 1e-140  # a spread below this counts as none: weights times values stay below the largest double
POOLING = 0.2  # strength of the pull to the pooled variance, in events per feature
UNIT_RIDGE = 1e-8
NO_ZEROS = 1e-11  # events at 0 that weigh less than this are rounding: a mean of 1e9 would make a variance of them
FILLED = 20  # rows in the buffer of each class
STEPS, ROUNDING = 60, 2.0**-54  # of QL for an eigenvalue, of which two are usual; what counts as 0 beside the largest
STRIP = 64  # columns that are worked on at a time: they stay in the nearest cache


@kernel
def _memory(F: FloatArray, e: int) -> FloatArray:
    """Return the header of memory e as a view."""
    return F[HEADER + e * MEMORY_HEADER : HEADER + (e + 1) * MEMORY_HEADER]


@kernel
def _known(weight: float, total: float) -> float:
    """Return the share of a class's weight that a feature's numbers are made of; the rest were zeros."""
    f = weight / total if total > 0.0 else 0.0
    return 1.0 if f > 1.0 - NO_ZEROS else f


@kernel
def _gram(B: FloatArray, scale: FloatArray, K: FloatArray) -> None:
    """Write ``B diag(scale)^2 B'`` to K, float64[n_rows, n_rows].

    Strips of columns are turned over, and eight of their outer products are added a pass: a sum of products along a row
    would go one by one, as its order is to be the same everywhere.
    """
    n, m = B.shape
    strip = np.zeros((STRIP, n))
    K[:] = 0.0
    for start in range(0, m, STRIP):
        w = min(STRIP, m - start)
        for i in range(n):
            for j in range(w):
                strip[j, i] = B[i, start + j] * scale[start + j]
        if w < STRIP:
            strip[w:] = 0.0
        for j in range(0, w, 8):
            p0, p1, p2, p3 = strip[j], strip[j + 1], strip[j + 2], strip[j + 3]
            p4, p5, p6, p7 = strip[j + 4], strip[j + 5], strip[j + 6], strip[j + 7]
            for i in range(n):
                a0, a1, a2, a3, a4, a5, a6, a7 = p0[i], p1[i], p2[i], p3[i], p4[i], p5[i], p6[i], p7[i]
                row = K[i]
                for k in range(i + 1):
                    four = (a0 * p0[k] + a1 * p1[k]) + (a2 * p2[k] + a3 * p3[k])
                    row[k] += four + ((a4 * p4[k] + a5 * p5[k]) + (a6 * p6[k] + a7 * p7[k]))
    for i in range(n):
        for k in range(i):
            K[k, i] = K[i, k]


@kernel
def _combine(M: FloatArray, v: FloatArray, first: int, beta: float, w: FloatArray) -> None:
    """Write ``beta v' M`` to w, from row and column `first` on; four rows a pass."""
    n, four = v.size, v.size - (v.size - first) % 4
    u = w[first:]
    u[:] = 0.0
    for i in range(first, four, 4):
        a0, a1, a2, a3 = beta * v[i], beta * v[i + 1], beta * v[i + 2], beta * v[i + 3]
        r0, r1, r2, r3 = M[i, first:], M[i + 1, first:], M[i + 2, first:], M[i + 3, first:]
        for j in range(u.size):
            u[j] += (a0 * r0[j] + a1 * r1[j]) + (a2 * r2[j] + a3 * r3[j])
    for i in range(four, n):
        row, a = M[i, first:], beta * v[i]
        for j in range(u.size):
            u[j] += a * row[j]


@kernel
def _reflect(K: FloatArray, V: FloatArray, d: FloatArray, e: FloatArray) -> None:
    """Bring the symmetric K, in place, to three diagonals by Householder's reflections, whose product goes to V.

    Then ``K = V' T V`` with T of diagonal d and of e beside it, float64[n] both.
    """
    n = K.shape[0]
    betas, w = np.zeros(n), np.zeros(n)
    for k in range(n):
        d[k], v, square = K[k, k], K[k], 0.0  # the reflected row becomes v, of which betas[k] is 2/v'v
        for i in range(k + 1, n):
            square += v[i] * v[i]
        e[k] = v[k + 1] if k < n - 1 else 0.0
        if k >= n - 2 or square - e[k] * e[k] <= ROUNDING * ROUNDING:
            continue
        e[k] = -math.copysign(math.sqrt(square), v[k + 1])
        betas[k] = 1.0 / (square - e[k] * v[k + 1])
        v[k + 1] -= e[k]
        product = 0.0
        _combine(K, v, k + 1, betas[k], w)
        for i in range(k + 1, n):
            product += v[i] * w[i]
        for i in range(k + 1, n):
            w[i] -= 0.5 * betas[k] * product * v[i]
        for i in range(k + 1, n):
            row, a, b = K[i], v[i], w[i]
            for j in range(k + 1, n):
                row[j] -= a * w[j] + b * v[j]
    for i in range(n):
        V[i] = 0.0
        V[i, i] = 1.0
    for k in range(n - 3, -1, -1):  # the last first: what comes before it is still the identity
        v = K[k]
        _combine(V, v, k + 1, betas[k], w)
        for i in range(k + 1, n):
            row, a = V[i], v[i]
            for j in range(k + 1, n):
                row[j] -= a * w[j]
    for i in range(n):
        for k in range(i):
            V[i, k], V[k, i] = V[k, i], V[i, k]


@kernel
def _rotate(d: FloatArray, e: FloatArray, V: FloatArray, first: int, last: int) -> None:
    """Take one implicit QL step with Wilkinson's shift on rows `first` to `last` of three diagonals."""
    half = 0.5 * (d[first + 1] - d[first]) / e[first]
    g = d[last] - d[first] + e[first] / (half + math.copysign(math.sqrt(half * half + 1.0), half))
    s, c, p = 1.0, 1.0, 0.0
    for i in range(last - 1, first - 1, -1):
        f, b = s * e[i], c * e[i]
        r = math.sqrt(f * f + g * g)
        e[i + 1] = r
        if r == 0.0:
            d[i + 1] -= p
            e[last] = 0.0
            return
        s, c = f / r, g / r
        g = d[i + 1] - p
        r = (d[i] - g) * s + 2.0 * c * b
        p = s * r
        d[i + 1] = g + p
        g = c * r - b
        upper, lower = V[i], V[i + 1]
        for j in range(upper.size):
            x, y = upper[j], lower[j]
            lower[j], upper[j] = s * x + c * y, c * x - s * y
    d[first] -= p
    e[first], e[last] = g, 0.0


@kernel
def diagonalise(K: FloatArray, V: FloatArray) -> None:
    """Turn the symmetric K, in place, into the diagonal of its eigenvalues; its eigenvectors become the rows of V.

    Three diagonals by reflections, then QL: the same bits whatever the number of threads.

    Parameters
    ----------
    K, V : float64[n, n]
    """
    n, scale = K.shape[0], 0.0
    for i in range(n):
        for k in range(n):
            scale = max(scale, abs(K[i, k]))
    for i in range(n):
        for k in range(n):
            K[i, k] = K[i, k] / scale if scale > 0.0 else 0.0
    d, e = np.zeros(n), np.zeros(n)
    _reflect(K, V, d, e)
    for first in range(n):
        for _ in range(STEPS):
            last = first
            while last < n - 1 and abs(e[last]) > ROUNDING:
                last += 1
            if last == first:
                break
            _rotate(d, e, V, first, last)
    K[:] = 0.0
    for i in range(n):
        K[i, i] = scale * d[i]


@kernel
def shrink(B: FloatArray, K: FloatArray, V: FloatArray, n_kept: int) -> None:
    """Shrink the singular values of the buffer so that fewer than `n_kept` rows remain, at its beginning, in place.

    Parameters
    ----------
    B : float64[n_rows, n_features]
        The buffer, written.
    K, V : float64[n_rows, n_rows]
        Scratch.
    n_kept : int
    """
    n, m = B.shape
    _gram(B, np.ones(m), K)
    diagonalise(K, V)
    for i in range(n):  # rows of V in the order of falling eigenvalues, by selection
        best = i
        for k in range(i + 1, n):
            if K[k, k] > K[best, best]:
                best = k
        K[i, i], K[best, best] = K[best, best], K[i, i]
        for r in range(n):
            V[i, r], V[best, r] = V[best, r], V[i, r]
    cut = max(K[n_kept - 1, n_kept - 1], 0.0)
    for i in range(n):
        factor = math.sqrt((K[i, i] - cut) / K[i, i]) if i < n_kept - 1 and K[i, i] > cut else 0.0
        for r in range(n):
            V[i, r] *= factor
    C, whole = np.empty((n, 4 * STRIP)), n - n % 4
    for start in range(0, m, 4 * STRIP):
        w = min(4 * STRIP, m - start)
        for i in range(n):
            C[i, :w] = B[i, start : start + w]
            B[i, start : start + w] = 0.0
        for i in range(n_kept - 1):
            row, a = B[i, start : start + w], V[i]
            for r in range(0, whole, 4):
                a0, a1, a2, a3 = a[r], a[r + 1], a[r + 2], a[r + 3]
                r0, r1, r2, r3 = C[r], C[r + 1], C[r + 2], C[r + 3]
                for j in range(w):
                    row[j] += (a0 * r0[j] + a1 * r1[j]) + (a2 * r2[j] + a3 * r3[j])
            for r in range(whole, n):
                for j in range(w):
                    row[j] += a[r] * C[r, j]


@kernel
def solve(B: FloatArray, rest: FloatArray, rhs: FloatArray, K: FloatArray, y: FloatArray, out: FloatArray) -> None:
    """Write the solution of ``(B'B + diag(rest)) out = rhs`` by Woodbury's identity.

    ``D^-1 b - D^-1 B' (I + B D^-1 B')^-1 B D^-1 b``; the inner matrix is at least I, so no pivot of it can vanish.

    Parameters
    ----------
    B : float64[n_rows, n_features]
    rest, rhs : float64[n_features]
        `rest` is positive, or infinite where a feature is off.
    K, y : float64[n_rows, n_rows], float64[n_rows]
        Scratch.
    out : float64[n_features], written
    """
    n, m = B.shape
    scale = np.empty(m)
    for j in range(m):
        scale[j] = 1.0 / math.sqrt(rest[j])
        out[j] = rhs[j] / rest[j]
    _gram(B, scale, K)
    for i in range(n):
        row, s, t = B[i], 0.0, 0.0
        even = m - m % 2
        for j in range(0, even, 2):
            s += row[j] * out[j]
            t += row[j + 1] * out[j + 1]
        y[i] = s + t + (row[m - 1] * out[m - 1] if even < m else 0.0)
        K[i, i] += 1.0
    for k in range(n):
        pivot = K[k]
        pivot[k] = 1.0 / max(pivot[k], 1.0)
        for i in range(k + 1, n):
            row, a = K[i], pivot[i] * pivot[k]
            for j in range(i, n):
                row[j] -= a * pivot[j]
            y[i] -= a * y[k]
    for k in range(n - 1, -1, -1):
        for i in range(k + 1, n):
            y[k] -= K[k, i] * y[i]
        y[k] *= K[k, k]
    scale[:] = 0.0
    for i in range(n):
        row, a = B[i], y[i]
        for j in range(m):
            scale[j] += a * row[j]
    for j in range(m):
        out[j] -= scale[j] / rest[j]


@kernel
def _take_rows(S: FloatArray, root: float, unit: FloatArray, T: FloatArray, kept: FloatArray) -> None:
    """Write rows of a buffer, in the features' own units, to T; add their squares to `kept`."""
    for i in range(S.shape[0]):
        source, row = S[i], T[i]
        for j in range(kept.size):
            value = root * unit[j] * source[j]
            row[j] = value
            kept[j] += value * value


@kernel
def sweep(
    F: FloatArray, R: FloatArray, S: FloatArray, T: FloatArray, K: FloatArray, v: FloatArray, y: FloatArray
) -> None:
    """Set all weights: ``A w = delta`` with the sketch for A off the diagonal, ridge and pooling as in auc.py.

    S, float64[n_memories, 2, 2 k, capacity], are the buffers; T, float64[4 k + 1, capacity], K,
    float64[(4 k + 1)^2], v, float64[3, capacity], and y,
    float64[4 k + 1], are scratch.
    """
    m = int(F[WIDTH])
    rest, delta, w, unit, kept = v[0], v[1], v[2], np.zeros(m), np.zeros(m)
    rest[m:], delta[m:] = math.inf, 0.0  # whole rows lie side by side, which is what loops over them want
    for e in range(int(F[N_MEMORIES])):
        H, own = _memory(F, e), N_COMMON + e * N_OWN
        w0, w1, kappa = H[WEIGHT], H[WEIGHT + 1], POOLING * m
        total = w0 + w1
        pooled = kappa / total * (1.0 / (w0 + kappa) + 1.0 / (w1 + kappa))
        a0, a1 = 1.0 / (w0 + kappa) + pooled, 1.0 / (w1 + kappa) + pooled
        rho = (H[REGULARIZATION] if H[REGULARIZATION] >= 0.0 else m / total) + UNIT_RIDGE
        n0, n1 = int(H[FILLED]), int(H[FILLED + 1])
        for j in range(m):
            unit[j], kept[j] = 1.0 / R[j, METRIC] if R[j, METRIC] > 0.0 else 0.0, 0.0
        _take_rows(S[e, 0, :n0], math.sqrt(a0 * H[SCALE]), unit, T, kept)
        _take_rows(S[e, 1, :n1], math.sqrt(a1 * H[SCALE + 1]), unit, T[n0:], kept)
        for j in range(m):
            f0 = _known(R[j, own + OWN_WEIGHT] * H[SCALE], w0)
            f1 = _known(R[j, own + CLASS_SIZE + OWN_WEIGHT] * H[SCALE + 1], w1)
            m0, m1 = R[j, own + OWN_MEAN], R[j, own + CLASS_SIZE + OWN_MEAN]
            v0 = f0 * R[j, own + OWN_VARIANCE] + f0 * (1.0 - f0) * m0 * m0
            v1 = f1 * R[j, own + CLASS_SIZE + OWN_VARIANCE] + f1 * (1.0 - f1) * m1 * m1
            d, mean, f = f1 * m1 - f0 * m0, R[j, MEAN], R[j, AT] / F[COUNT]
            a = a0 * w0 * v0 + a1 * w1 * v1 + d * d
            T[n0 + n1, j] = delta[j] = d
            everything = f * R[j, VARIANCE] + f * (1.0 - f) * mean * mean
            on = a > max(TINY * R[j, PEAK], SMALLEST) ** 2 and unit[j] > 0.0
            left = max(a - (kept[j] + d * d), 0.0)
            rest[j] = left + rho * (a + rho / total * everything) if on else math.inf
            R[j, own + MIDDLE] = 0.5 * (f0 * m0) + 0.5 * (f1 * m1)
        n = n0 + n1 + 1
        solve(T[:n], rest, delta, K[: n * n].reshape(n, n), y, w)
        H[OFFSET] = 0.0
        for j in range(m):
            R[j, own + W] = w[j]
            H[OFFSET] += w[j] * R[j, own + MIDDLE]
        H[SOLVED_AT] = F[COUNT]
