"""Arithmetic of AdaptiveAUCRO's mixer: online Platt maps and stacks over five memories, and a fixed share of them.

The mixer is one float64 arena::

    class counts [2] | shares [9] | Platt maps [5, 5] | stacks [3, 6 + 21] | workspace

A Platt map is ``b, a, H00, H01, H11``; a stack is its weights, then the lower triangle of its curvature matrix H row by
row. The sizes are constants, and parts are addressed by place, not as views: with sizes known to the compiler, and
without the making of views, an event costs half.
"""

from __future__ import annotations

import math

import numpy as np

from streamlearn.contracts import CodeArray, FloatArray
from streamlearn.kernels.jit import kernel

N_EXPERTS = 5
N_STACKS = 3
N_FORECASTERS = 1 + N_EXPERTS + N_STACKS
DIM = 1 + N_EXPERTS
PLATT = 5
STACK = DIM + DIM * (DIM + 1) // 2
# Where the parts begin. From Z on lies the workspace: squashed ratios, P(class 1) and P(class 0) of each forecaster,
# f and the solution of a stack, and its matrix.
SHARES = 2
MAPS = SHARES + N_FORECASTERS
STACKS = MAPS + N_EXPERTS * PLATT
Z = STATE_SIZE = STACKS + N_STACKS * STACK
UP = Z + N_EXPERTS
DOWN = UP + N_FORECASTERS
SOLUTION = DOWN + N_FORECASTERS
MATRIX = SOLUTION + DIM
MIXER_SIZE = MATRIX + DIM * DIM
MEMO_WIDTH = N_EXPERTS + N_FORECASTERS

STACK_MEMORIES = np.array([1.0, 0.5 ** (1 / 1000), 0.5 ** (1 / 100)])
PLATT_DECAY = 0.5 ** (1 / 1000)  # of all maps but that of the endless memory
CURVATURE_FLOOR = 1e-3
LOGIT_BOUND = 30.0
SHARE = 0.001


@kernel
def reset_mixer(M: FloatArray) -> None:
    """Set the mixer's arena, in place, to its start: all maps are the identity; expert 0 is the endless memory."""
    M[:] = 0.0
    M[SHARES:MAPS] = 1.0 / (math.exp(3.0) + N_FORECASTERS - 1.0)  # e^3 : 1 for the forecaster without parameters
    M[SHARES] *= math.exp(3.0)
    for e in range(N_EXPERTS):
        M[MAPS + PLATT * e + 1] = 1.0
    for s in range(N_STACKS):
        M[STACKS + STACK * s + 1] = 1.0


@kernel
def _squash(llr: float) -> float:
    """Return sign(l) log(1 + |l|): the ends of a heavy-tailed ratio, tamed."""
    return math.copysign(math.log1p(abs(llr)), llr)


@kernel
def _offset(M: FloatArray) -> float:
    """Return the prior log-odds from the class counts."""
    return math.log(M[1] + 0.5) - math.log(M[0] + 0.5)


@kernel
def _set_probability(M: FloatArray, f: int, logit: float) -> None:
    """Write sigmoid(t) and sigmoid(-t), each to full precision: their difference from 1 would lose digits."""
    e = math.exp(-abs(logit))
    near, far = 1.0 / (1.0 + e), e / (1.0 + e)
    M[UP + f] = near if logit >= 0.0 else far
    M[DOWN + f] = far if logit >= 0.0 else near


@kernel
def _forecast(M: FloatArray, o: float, ratios: FloatArray, logits: FloatArray) -> None:
    """Squash ratios into the workspace; write the logits of all forecasters, within +-30, and their probabilities.

    Parameters
    ----------
    M : float64[MIXER_SIZE]
    o : float
        The prior log-odds.
    ratios : float64[>= N_EXPERTS]
    logits : float64[N_FORECASTERS]
    """
    for e in range(N_EXPERTS):
        M[Z + e] = _squash(ratios[e])
        k = MAPS + PLATT * e
        logits[1 + e] = o + M[k] + M[k + 1] * M[Z + e]
    logits[0] = o + M[Z]
    for s in range(N_STACKS):
        k = STACKS + STACK * s
        t = o + M[k]
        for e in range(N_EXPERTS):
            t += M[k + 1 + e] * M[Z + e]
        logits[1 + N_EXPERTS + s] = t
    for f in range(N_FORECASTERS):
        logits[f] = min(max(logits[f], -LOGIT_BOUND), LOGIT_BOUND)
        _set_probability(M, f, logits[f])


@kernel
def _mixed(M: FloatArray, o: float) -> tuple[float, float]:
    """Return the score and P(class 1) that the present shares make of the forecasts in the workspace."""
    one = zero = 0.0
    for f in range(N_FORECASTERS):
        one += M[SHARES + f] * M[UP + f]
        zero += M[SHARES + f] * M[DOWN + f]
    return math.log(one) - math.log(zero) - o, one / (one + zero)


@kernel
def _reshare(M: FloatArray, likely: int) -> None:
    """Reweigh by fixed share on log-loss: ``pi <- (1 - share) pi P(y) / Z + share / n``; P(y) begins at `likely`."""
    total = 0.0
    for f in range(N_FORECASTERS):
        M[SHARES + f] *= M[likely + f]
        total += M[SHARES + f]
    for f in range(N_FORECASTERS):
        M[SHARES + f] = (1.0 - SHARE) * M[SHARES + f] / total + SHARE / N_FORECASTERS


@kernel
def _learn_map(M: FloatArray, e: int, wrong: float, sign: float, decay: float) -> None:
    """One online Newton step of a Platt map: ``H <- g H + h f f'; theta += (H + I)^-1 f (y - p)`` with f = (1, z).

    `wrong` is the probability that it gave to the other label, `sign` 1 for class 1 and -1 for class 0.
    """
    k, z = MAPS + PLATT * e, M[Z + e]
    h = max(wrong * (1.0 - wrong), CURVATURE_FLOOR)
    M[k + 2] = decay * M[k + 2] + h
    M[k + 3] = decay * M[k + 3] + h * z
    M[k + 4] = decay * M[k + 4] + h * z * z
    h00, h01, h11 = M[k + 2] + 1.0, M[k + 3], M[k + 4] + 1.0
    step = sign * wrong / (h00 * h11 - h01 * h01)
    M[k] += step * (h11 - h01 * z)
    M[k + 1] += step * (h00 * z - h01)


@kernel
def _learn_stack(M: FloatArray, s: int, wrong: float, sign: float, decay: float) -> None:
    """One online Newton step of a stack, as of a map, with f = (1, z_1, ..., z_5)."""
    h, at = max(wrong * (1.0 - wrong), CURVATURE_FLOOR), STACKS + STACK * s + DIM
    for i in range(DIM):
        fi = 1.0 if i == 0 else M[Z + i - 1]
        M[SOLUTION + i] = fi
        for j in range(i + 1):
            fj = 1.0 if j == 0 else M[Z + j - 1]
            M[at] = decay * M[at] + h * fi * fj
            M[MATRIX + DIM * i + j] = M[at]
            at += 1
        M[MATRIX + DIM * i + i] += 1.0
    for k in range(DIM):  # L D L' of a matrix that is at least I: no pivot can vanish
        inverse = 1.0 / M[MATRIX + DIM * k + k]
        for i in range(k + 1, DIM):
            a = M[MATRIX + DIM * i + k] * inverse
            M[SOLUTION + i] -= a * M[SOLUTION + k]
            for j in range(k + 1, i + 1):
                M[MATRIX + DIM * i + j] -= a * M[MATRIX + DIM * j + k]
        M[SOLUTION + k] *= inverse
        M[MATRIX + DIM * k + k] = inverse
    for k in range(DIM - 1, -1, -1):
        t = M[SOLUTION + k]
        for i in range(k + 1, DIM):
            t -= M[MATRIX + DIM * i + k] * M[MATRIX + DIM * k + k] * M[SOLUTION + i]
        M[SOLUTION + k] = t
    for i in range(DIM):
        M[STACKS + STACK * s + i] += sign * wrong * M[SOLUTION + i]


@kernel
def _step(M: FloatArray, code: int) -> None:
    """Teach maps and stacks the label of the event whose forecasts are in the workspace."""
    wrong, sign = (DOWN, 1.0) if code else (UP, -1.0)
    for e in range(N_EXPERTS):
        _learn_map(M, e, M[wrong + 1 + e], sign, 1.0 if e == 0 else PLATT_DECAY)
    for s in range(N_STACKS):
        _learn_stack(M, s, M[wrong + 1 + N_EXPERTS + s], sign, STACK_MEMORIES[s])


@kernel
def _learn_row(M: FloatArray, code: int) -> None:
    """Learn the label of the event whose forecasts, made just now, are in the workspace; -1 teaches nothing."""
    if code < 0:
        return
    if M[0] and M[1]:  # one class alone says nothing about ranking
        _reshare(M, UP if code else DOWN)
        _step(M, code)
    M[code] += 1.0


@kernel
def mix(M: FloatArray, memo: FloatArray, scores: FloatArray, chances: FloatArray) -> None:
    """Write scores and P(class 1), float64[n] each; the rows of `memo` are ratios, and become ratios and logits.

    Parameters
    ----------
    M : float64[MIXER_SIZE]
    memo : float64[n, MEMO_WIDTH]
    scores, chances : float64[n]
    """
    o = _offset(M)
    for i in range(memo.shape[0]):
        _forecast(M, o, memo[i], memo[i, N_EXPERTS:])
        scores[i], chances[i] = _mixed(M, o)


@kernel
def mixed_probability(M: FloatArray, memo: FloatArray) -> float:
    """Return P(class 1) of the one event in `memo`, float64[1, MEMO_WIDTH], as `mix` writes it."""
    o = _offset(M)
    _forecast(M, o, memo[0], memo[0, N_EXPERTS:])
    return _mixed(M, o)[1]


@kernel
def learn(M: FloatArray, memo: FloatArray, codes: CodeArray) -> None:
    """Learn from ratios, float64[n, MEMO_WIDTH], and labels; -1 teaches nothing."""
    for i in range(memo.shape[0]):
        _forecast(M, _offset(M), memo[i], memo[i, N_EXPERTS:])
        _learn_row(M, int(codes[i]))


@kernel
def mix_then_learn(M: FloatArray, memo: FloatArray, codes: CodeArray, scores: FloatArray, chances: FloatArray) -> None:
    """For each row: mix it as `mix` does, then learn its label ``codes[i]``; -1 teaches nothing."""
    for i in range(memo.shape[0]):
        o = _offset(M)
        _forecast(M, o, memo[i], memo[i, N_EXPERTS:])
        scores[i], chances[i] = _mixed(M, o)
        _learn_row(M, int(codes[i]))


@kernel
def mix_then_learn_late(
    M: FloatArray, tested: FloatArray, learned: FloatArray, codes: CodeArray, scores: FloatArray, chances: FloatArray
) -> None:
    """For each row: mix ``tested[i]``, then learn the label ``codes[i]`` of the event whose memo is ``learned[i]``.

    ``learned[i]`` may be an earlier row of `tested`: each memory and each forecaster is trusted as far as it was right
    *at that delay*, while maps and stacks step from what they say of the same ratios now.
    """
    logits = np.empty(N_FORECASTERS)
    for i in range(tested.shape[0]):
        o, code = _offset(M), int(codes[i])
        _forecast(M, o, tested[i], tested[i, N_EXPERTS:])
        scores[i], chances[i] = _mixed(M, o)
        if code >= 0:
            if M[0] and M[1]:
                for f in range(N_FORECASTERS):
                    _set_probability(M, f, learned[i, N_EXPERTS + f])
                _reshare(M, UP if code else DOWN)
                _forecast(M, o, learned[i], logits)
                _step(M, code)
            M[code] += 1.0
