"""Rectified muffling: weights of few, different members from labelled and unlabelled events together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamlearn.contracts import FloatArray
from streamlearn.errors import BadShape
from streamlearn.learners.muffled.descent import Problem, descend
from streamlearn.learners.muffled.potentials import checked_potential

_LEAST_KAPPA = 1e-3
_HUBER_WIDTH = 0.05
_TOLERANCE = 1e-6
_MAX_STEPS = 2_000


@dataclass(frozen=True, slots=True)
class Muffled:
    """Weights of members' votes.

    Attributes
    ----------
    weights : float64[n_members]
        Not negative; the ranking score of an event is its votes times these.
    slack, slack_of_anchor : float
        Slack with the same b, of these weights and of the anchor's (equal votes by default): never above it.
    b : float64[n_members]
        Rectified estimates of E[h y].
    """

    weights: FloatArray
    slack: float
    slack_of_anchor: float
    b: FloatArray


def rectified_b(
    H: FloatArray, y: FloatArray, F: FloatArray, on_labelled: FloatArray, on_unlabelled: FloatArray
) -> FloatArray:
    """Return mean_L H (y - g) + mean_U F g: unbiased for E[h y] whatever the forecast g, with far less noise.

    Parameters
    ----------
    H : float64[n_labelled, n_members]
        Votes made without the event's own label.
    y : float64[n_labelled]
        1 or -1.
    F : float64[n_unlabelled, n_members]
    on_labelled, on_unlabelled : float64[n_labelled], float64[n_unlabelled]
        g, in [-1, 1].
    """
    return np.asarray(H.T @ (y - on_labelled) / len(y) + F.T @ on_unlabelled / len(F))


def muffle(
    H: FloatArray,
    y: FloatArray,
    F: FloatArray,
    *,
    tau: float = 10.0,
    potential: str = "square",
    anchor: FloatArray | None = None,
    sizes: FloatArray | None = None,
) -> Muffled:
    """Return the weights of members by their votes on labelled and unlabelled events.

    The slack of Balsubramani and Freund (2015) with three changes, without which it loses to an equal vote: soft votes
    of few, different members (a whole forest is one); b by a control variate, from every label; a ridge towards the
    anchor, lambda = tau / n mean(F^2).

    Parameters
    ----------
    H : float64[n_labelled, n_members]
        Out-of-bag or cross-fitted votes in [-1, 1].
    y : float64[n_labelled]
        1 or -1.
    F : float64[n_unlabelled, n_members]
        Votes of the whole members.
    tau : float
        Strength of the anchor, in labels.
    potential : str
        Those with a kink are rounded off over 0.05.
    anchor : float64[n_members] or None
        Shares of the members, of sum 1; None = equal.
    sizes : float64[n_members] or None
        By which votes are made alike before shares are given out; None = their root mean squares.

    Returns
    -------
    Muffled

    Raises
    ------
    BadShape, BadParameter
    """
    p = H.shape[1]
    psi = checked_potential("muffle", potential).smoothed(_HUBER_WIDTH)
    if F.shape[1:] != (p,) or y.shape != H.shape[:1] or len(y) == 0 or len(F) == 0:
        raise BadShape(
            f"muffle: H, y, F must be [n, p], [n], [N, p] with n, N >= 1, got {H.shape}, {y.shape}, {F.shape}"
        )
    shares = np.full(p, 1.0 / p) if anchor is None else anchor
    size = np.sqrt(np.square(F).mean(axis=0)) if sizes is None else sizes
    least = size[size > 0.0].min(initial=np.inf)
    # A member that never votes keeps its (empty) vote as it is.
    scale = np.divide(least, size, where=size > 0.0, out=np.ones(p))
    Hs, Fs = H * scale, F * scale
    v, v_unlabelled = Hs @ shares, Fs @ shares
    kappa = max(float(v @ y) / max(float(v @ v), 1e-300), _LEAST_KAPPA)
    b = rectified_b(Hs, y, Fs, np.clip(kappa * v, -1.0, 1.0), np.clip(kappa * v_unlabelled, -1.0, 1.0))
    start = kappa * shares
    ridge = tau / len(y) * float(np.square(Fs).mean())
    problem = Problem(np.ascontiguousarray(Fs.T), b, psi, ridge, start)
    sigma = start if p == 1 else descend(problem, start, _TOLERANCE, _MAX_STEPS)[0]
    if not sigma.any():
        sigma = start
    plain = Problem(problem.F, b, psi, 0.0, start)
    slack, slack_of_anchor = (plain.value(s, plain.scores(s)) for s in (sigma, start))
    return Muffled(sigma * scale, slack, slack_of_anchor, b)
