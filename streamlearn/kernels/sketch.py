"""Frequent Directions, and the weights of AUCRO from them: what is done every so many events.

A buffer of 2 k rows B stands for the scatter S of a class. When it is full, its singular values shrink,
``s_i <- sqrt(max(s_i^2 - s_k^2, 0))``, which leaves k - 1 rows: ``0 <= S - B'B <= |S|_F^2/k`` (Liberty 2013;
Ghashami, Liberty, Phillips & Woodruff 2016). Layout as in auc_sketch.py.
"""

from __future__ import annotations

import math

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
SWEEPS, ROUNDING = 30, 1e-15  # of Jacobi's rotations; ten sweeps are usual


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
def _gram(B: FloatArray, K: FloatArray) -> None:
    """Write ``B B'`` to K, float64[n_rows, n_rows]."""
    for i in range(B.shape[0]):
        for k in range(i + 1):
            a, b, s = B[i], B[k], 0.0
            for j in range(a.size):
                s += a[j] * b[j]
            K[i, k] = K[k, i] = s


@kernel
def diagonalise(K: FloatArray, Q: FloatArray) -> None:
    """Turn the symmetric K, in place, into the diagonal of its eigenvalues; its eigenvectors become the columns of Q.

    Cyclic Jacobi rotations: the same bits whatever the number of threads.

    Parameters
    ----------
    K, Q : float64[n, n]
    """
    n, scale = K.shape[0], 0.0
    for i in range(n):
        for k in range(n):
            Q[i, k] = 1.0 if i == k else 0.0
        scale = max(scale, abs(K[i, i]))
    for _ in range(SWEEPS):
        largest = 0.0
        for p in range(n - 1):
            for q in range(p + 1, n):
                largest = max(largest, abs(K[p, q]))
                if abs(K[p, q]) <= ROUNDING * scale:
                    continue
                theta = 0.5 * (K[q, q] - K[p, p]) / K[p, q]
                t = math.copysign(1.0, theta) / (abs(theta) + math.hypot(theta, 1.0))
                c = 1.0 / math.sqrt(t * t + 1.0)
                s = t * c
                for i in range(n):
                    a, b = K[i, p], K[i, q]
                    K[i, p], K[i, q] = c * a - s * b, s * a + c * b
                for i in range(n):
                    a, b = K[p, i], K[q, i]
                    K[p, i], K[q, i] = c * a - s * b, s * a + c * b
                for i in range(n):
                    a, b = Q[i, p], Q[i, q]
                    Q[i, p], Q[i, q] = c * a - s * b, s * a + c * b
        if largest <= ROUNDING * scale:
            return


@kernel
def shrink(B: FloatArray, C: FloatArray, K: FloatArray, Q: FloatArray, n_kept: int) -> None:
    """Shrink the singular values of the buffer so that fewer than `n_kept` rows remain, at its beginning, in place.

    Parameters
    ----------
    B, C : float64[n_rows, n_features]
        The buffer, written; and as much scratch.
    K, Q : float64[n_rows, n_rows]
        Scratch.
    n_kept : int
    """
    n = B.shape[0]
    _gram(B, K)
    diagonalise(K, Q)
    for i in range(n):  # columns of Q in the order of falling eigenvalues, by selection
        best = i
        for k in range(i + 1, n):
            if K[k, k] > K[best, best]:
                best = k
        K[i, i], K[best, best] = K[best, best], K[i, i]
        for r in range(n):
            Q[r, i], Q[r, best] = Q[r, best], Q[r, i]
    cut = max(K[n_kept - 1, n_kept - 1], 0.0)
    C[:] = B
    B[:] = 0.0
    for i in range(n_kept - 1):
        value = K[i, i]
        if value <= cut:
            break
        factor = math.sqrt((value - cut) / value)
        for r in range(n):
            a = factor * Q[r, i]
            if a != 0.0:
                for j in range(B.shape[1]):
                    B[i, j] += a * C[r, j]


@kernel
def solve(B: FloatArray, rest: FloatArray, rhs: FloatArray, K: FloatArray, y: FloatArray, out: FloatArray) -> None:
    """Write the solution of ``(B'B + diag(rest)) out = rhs`` by Woodbury's identity.

    ``D^-1 b - D^-1 B' (I + B D^-1 B')^-1 B D^-1 b``, the inner matrix by Cholesky; it is at least I.

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
    for j in range(m):
        out[j] = rhs[j] / rest[j]
    for i in range(n):
        y[i] = 0.0
        for j in range(m):
            y[i] += B[i, j] * out[j]
        for k in range(i + 1):
            s = 0.0
            for j in range(m):
                s += B[i, j] * B[k, j] / rest[j]
            K[i, k] = s
        K[i, i] += 1.0
    for k in range(n):
        for i in range(k):
            K[k, k] -= K[k, i] * K[k, i]
        K[k, k] = math.sqrt(max(K[k, k], 1.0))
        for i in range(k + 1, n):
            for r in range(k):
                K[i, k] -= K[i, r] * K[k, r]
            K[i, k] /= K[k, k]
    for i in range(n):
        for k in range(i):
            y[i] -= K[i, k] * y[k]
        y[i] /= K[i, i]
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            y[i] -= K[k, i] * y[k]
        y[i] /= K[i, i]
    for i in range(n):
        for j in range(m):
            out[j] -= y[i] * B[i, j] / rest[j]


@kernel
def sweep(F: FloatArray, R: FloatArray, S: FloatArray, T: FloatArray, K: FloatArray, v: FloatArray) -> None:
    """Set all weights: ``A w = delta`` with the sketch for A off the diagonal, ridge and pooling as in auc.py.

    S, float64[n_memories, 2, 2 k, capacity], are the buffers; T, float64[4 k + 1, capacity], K,
    float64[4 k + 1, 4 k + 1], and v, float64[4, capacity], are scratch.
    """
    m, n_rows = int(F[WIDTH]), S.shape[2]
    rest, delta, w = v[0], v[1], v[2]
    for e in range(int(F[N_MEMORIES])):
        H, own = _memory(F, e), N_COMMON + e * N_OWN
        w0, w1, kappa = H[WEIGHT], H[WEIGHT + 1], POOLING * m
        total = w0 + w1
        pooled = kappa / total * (1.0 / (w0 + kappa) + 1.0 / (w1 + kappa))
        a0, a1 = 1.0 / (w0 + kappa) + pooled, 1.0 / (w1 + kappa) + pooled
        rho = (H[REGULARIZATION] if H[REGULARIZATION] >= 0.0 else m / total) + UNIT_RIDGE
        root0, root1 = math.sqrt(a0 * H[SCALE]), math.sqrt(a1 * H[SCALE + 1])
        for j in range(m):
            f0 = _known(R[j, own + OWN_WEIGHT] * H[SCALE], w0)
            f1 = _known(R[j, own + CLASS_SIZE + OWN_WEIGHT] * H[SCALE + 1], w1)
            m0, m1 = R[j, own + OWN_MEAN], R[j, own + CLASS_SIZE + OWN_MEAN]
            v0 = f0 * R[j, own + OWN_VARIANCE] + f0 * (1.0 - f0) * m0 * m0
            v1 = f1 * R[j, own + CLASS_SIZE + OWN_VARIANCE] + f1 * (1.0 - f1) * m1 * m1
            d, mean, f = f1 * m1 - f0 * m0, R[j, MEAN], R[j, AT] / F[COUNT]
            a, kept = a0 * w0 * v0 + a1 * w1 * v1 + d * d, d * d
            p = 1.0 / R[j, METRIC] if R[j, METRIC] > 0.0 else 0.0
            for i in range(n_rows):
                T[i, j], T[n_rows + i, j] = root0 * p * S[e, 0, i, j], root1 * p * S[e, 1, i, j]
                kept += T[i, j] * T[i, j] + T[n_rows + i, j] * T[n_rows + i, j]
            T[2 * n_rows, j] = delta[j] = d
            everything = f * R[j, VARIANCE] + f * (1.0 - f) * mean * mean
            on = a > max(TINY * R[j, PEAK], SMALLEST) ** 2 and p > 0.0
            rest[j] = max(a - kept, 0.0) + rho * (a + rho / total * everything) if on else math.inf
            R[j, own + MIDDLE] = 0.5 * (f0 * m0) + 0.5 * (f1 * m1)
        solve(T[: 2 * n_rows + 1, :m], rest[:m], delta[:m], K, v[3], w[:m])
        H[OFFSET] = 0.0
        for j in range(m):
            R[j, own + W] = w[j]
            H[OFFSET] += w[j] * R[j, own + MIDDLE]
        H[SOLVED_AT] = F[COUNT]
