"""Arithmetic of AdaptiveAUCRO's mixer: online Platt maps and stacks over a bank of memories, and a fixed share of them.

The mixer's state is one float64 arena::

    counts of the classes [2] | shares [n_forecasters] | Platt maps [n_experts, 5] | stacks [3, dim + dim * dim]

with ``dim = n_experts + 1`` and ``n_forecasters = 1 + n_experts + 3``. A Platt map is ``b, a, H00, H01, H11``; a stack
is its weights, then its curvature matrix H row by row.
"""

from __future__ import annotations

import math

import numpy as np

from streamlearn.contracts import CodeArray, FloatArray
from streamlearn.kernels.jit import kernel

N_STACKS = 3
PLATT = 5
STACK_MEMORIES = np.array([1.0, 0.5 ** (1 / 1000), 0.5 ** (1 / 100)])
PLATT_DECAY = 0.5 ** (1 / 1000)  # of all maps but that of the endless memory
CURVATURE_FLOOR = 1e-3
LOGIT_BOUND = 30.0
SHARE = 0.001


@kernel
def mixer_size(n_experts: int) -> int:
    """Return the length of the mixer's arena."""
    dim = n_experts + 1
    return 2 + 1 + n_experts + N_STACKS + n_experts * PLATT + N_STACKS * (dim + dim * dim)


@kernel
def reset_mixer(M: FloatArray, n_experts: int) -> None:
    """Set the mixer's arena, in place, to its start: all maps are the identity; expert 0 is the endless memory."""
    dim = n_experts + 1
    n_forecasters = 1 + n_experts + N_STACKS
    M[:] = 0.0
    shares = M[2 : 2 + n_forecasters]
    shares[:] = 1.0 / (math.exp(3.0) + n_forecasters - 1.0)  # e^3 : 1 for the forecaster without parameters
    shares[0] *= math.exp(3.0)
    k = 2 + n_forecasters
    for _ in range(n_experts):
        M[k + 1] = 1.0
        k += PLATT
    for _ in range(N_STACKS):
        M[k + 1] = 1.0
        k += dim + dim * dim


@kernel
def _sigmoid(t: float) -> float:
    """Return 1/(1 + exp(-t)), exactly 1 - sigmoid(-t) up to one rounding."""
    e = math.exp(-abs(t))
    return 1.0 / (1.0 + e) if t >= 0.0 else e / (1.0 + e)


@kernel
def _bounded(t: float) -> float:
    """Keep a logit within +-30, where the probability still differs from 0 and 1."""
    return min(max(t, -LOGIT_BOUND), LOGIT_BOUND)


@kernel
def _squash(llr: float) -> float:
    """Return sign(l) log(1 + |l|): the ends of a heavy-tailed ratio, tamed."""
    return math.log1p(llr) if llr >= 0.0 else -math.log1p(-llr)


@kernel
def _offset(M: FloatArray) -> float:
    """Return the prior log-odds from the class counts."""
    return math.log(M[1] + 0.5) - math.log(M[0] + 0.5)


@kernel
def _forecast(M: FloatArray, z: FloatArray, logits: FloatArray) -> None:
    """Write the logits of all forecasters for the squashed ratios z, float64[n_experts]."""
    n_experts = z.size
    dim = n_experts + 1
    o = _offset(M)
    logits[0] = _bounded(o + z[0])
    k = 2 + 1 + n_experts + N_STACKS
    for e in range(n_experts):
        logits[1 + e] = _bounded(o + M[k] + M[k + 1] * z[e])
        k += PLATT
    for s in range(N_STACKS):
        t = o + M[k]
        for e in range(n_experts):
            t += M[k + 1 + e] * z[e]
        logits[1 + n_experts + s] = _bounded(t)
        k += dim + dim * dim


@kernel
def _mixed(M: FloatArray, logits: FloatArray) -> tuple[float, float]:
    """Return the mixed probabilities of class 1 and of class 0, both summed: a difference would lose digits."""
    up = down = 0.0
    for f in range(logits.size):
        up += M[2 + f] * _sigmoid(logits[f])
        down += M[2 + f] * _sigmoid(-logits[f])
    return up, down


@kernel
def _reshare(M: FloatArray, logits: FloatArray, sign: float) -> None:
    """Reweigh by fixed share on log-loss: ``pi <- (1 - share) pi P(y) / Z + share / n``."""
    n = logits.size
    total = 0.0
    for f in range(n):
        M[2 + f] *= _sigmoid(sign * logits[f])
        total += M[2 + f]
    for f in range(n):
        M[2 + f] = (1.0 - SHARE) * M[2 + f] / total + SHARE / n


@kernel
def _learn_platt(P: FloatArray, z: float, logit: float, sign: float, decay: float) -> None:
    """One online Newton step of a Platt map: ``H <- g H + h f f'; theta += (H + I)^-1 f (y - p)`` with f = (1, z)."""
    wrong = _sigmoid(-sign * logit)
    h = max(wrong * (1.0 - wrong), CURVATURE_FLOOR)
    P[2] = decay * P[2] + h
    P[3] = decay * P[3] + h * z
    P[4] = decay * P[4] + h * z * z
    h00, h11 = P[2] + 1.0, P[4] + 1.0
    step = sign * wrong / (h00 * h11 - P[3] * P[3])
    P[0] += step * (h11 - P[3] * z)
    P[1] += step * (h00 * z - P[3])


@kernel
def _learn_stack(T: FloatArray, z: FloatArray, logit: float, sign: float, decay: float, work: FloatArray) -> None:
    """One online Newton step of a stack, f = (1, z_1, ..., z_n); work is float64[dim, dim + 2]."""
    dim = z.size + 1
    wrong = _sigmoid(-sign * logit)
    h = max(wrong * (1.0 - wrong), CURVATURE_FLOOR)
    f, b = work[:, dim], work[:, dim + 1]
    f[0] = 1.0
    for i in range(1, dim):
        f[i] = z[i - 1]
    for i in range(dim):
        b[i] = f[i]
        for j in range(i + 1):
            T[dim + dim * i + j] = decay * T[dim + dim * i + j] + h * f[i] * f[j]
            work[i, j] = T[dim + dim * i + j]
        work[i, i] += 1.0
    for k in range(dim):  # L D L' of a matrix that is at least I: no pivot can vanish
        inverse = 1.0 / work[k, k]
        for i in range(k + 1, dim):
            a = work[i, k] * inverse
            b[i] -= a * b[k]
            for j in range(k + 1, i + 1):
                work[i, j] -= a * work[j, k]
        b[k] *= inverse
        work[k, k] = inverse
    for k in range(dim - 1, -1, -1):
        t = b[k]
        for i in range(k + 1, dim):
            t -= work[i, k] * work[k, k] * b[i]
        b[k] = t
    for i in range(dim):
        T[i] += sign * wrong * b[i]


@kernel
def _learn(M: FloatArray, z: FloatArray, logits: FloatArray, sign: float, work: FloatArray) -> None:
    """Learn one label: maps and stacks, by steps from what they say of z now, `logits`."""
    n_experts = z.size
    dim = n_experts + 1
    k = 2 + 1 + n_experts + N_STACKS
    for e in range(n_experts):
        _learn_platt(M[k : k + PLATT], z[e], logits[1 + e], sign, 1.0 if e == 0 else PLATT_DECAY)
        k += PLATT
    for s in range(N_STACKS):
        stack = M[k : k + dim + dim * dim]
        _learn_stack(stack, z, logits[1 + n_experts + s], sign, STACK_MEMORIES[s], work)
        k += dim + dim * dim


@kernel
def mix(M: FloatArray, memo: FloatArray, scores: FloatArray, chances: FloatArray) -> None:
    """Write scores and P(class 1), float64[n] each; the rows of `memo` are ratios, and become ratios and logits.

    Parameters
    ----------
    M : float64[mixer_size]
    memo : float64[n, n_experts + n_forecasters]
    scores, chances : float64[n]
    """
    n_experts = (memo.shape[1] - 1 - N_STACKS) // 2
    z = np.empty(n_experts)
    o = _offset(M)
    for i in range(memo.shape[0]):
        _mix_row(M, memo[i], z, o, i, scores, chances)


@kernel
def _mix_row(
    M: FloatArray, memo: FloatArray, z: FloatArray, o: float, i: int, scores: FloatArray, chances: FloatArray
) -> None:
    """Forecast one event: logits into its memo, float64[n_experts + n_forecasters], score and chance into row i."""
    for e in range(z.size):
        z[e] = _squash(memo[e])
    _forecast(M, z, memo[z.size :])
    up, down = _mixed(M, memo[z.size :])
    chances[i] = up / (up + down)
    scores[i] = math.log(up) - math.log(down) - o


@kernel
def mix_then_learn(
    M: FloatArray, tested: FloatArray, learned: FloatArray, codes: CodeArray, scores: FloatArray, chances: FloatArray
) -> None:
    """For each row: mix ``tested[i]`` as `mix` does, then learn from label ``codes[i]`` and the memo ``learned[i]``.

    With late labels ``learned[i]`` is the memo of the forecast made for that event, which may be an earlier row of
    `tested`: each memory and each forecaster is trusted as far as it was right *at that delay*.
    """
    n_experts = (tested.shape[1] - 1 - N_STACKS) // 2
    z, logits = np.empty(n_experts), np.empty(1 + n_experts + N_STACKS)
    work = np.empty((n_experts + 1, n_experts + 3))
    for i in range(tested.shape[0]):
        _mix_row(M, tested[i], z, _offset(M), i, scores, chances)
        code = int(codes[i])
        if code < 0:
            continue
        if M[0] and M[1]:  # one class alone says nothing about ranking
            for e in range(n_experts):
                z[e] = _squash(learned[i, e])
            _reshare(M, learned[i, n_experts:], 2.0 * code - 1.0)
            _forecast(M, z, logits)
            _learn(M, z, logits, 2.0 * code - 1.0, work)
        M[code] += 1.0
