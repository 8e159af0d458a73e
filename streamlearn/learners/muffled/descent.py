"""Least slack over weights >= 0: accelerated projected gradients, and the exact step along a ray."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamlearn.contracts import FloatArray
from streamlearn.learners.muffled.potentials import Potential

_POWER_STEPS = 60
_SMALL = 64  # up to so many members the Gram matrix is cheap and its greatest eigenvalue exact


@dataclass(frozen=True, slots=True)
class Problem:
    """Slack -b.s + mean Psi(F's) + ridge / 2 |s - centre|^2 over s >= 0.

    Attributes
    ----------
    F : float64[n_members, n_events] or scipy.sparse
        Votes of the members.
    b : float64[n_members]
    potential : Potential
    ridge : float
    centre : float64[n_members]
    """

    F: Any
    b: FloatArray
    potential: Potential
    ridge: float
    centre: FloatArray

    @property
    def n_events(self) -> int:
        """Number of unlabelled events."""
        return int(self.F.shape[1])

    def scores(self, s: FloatArray) -> FloatArray:
        """Return F's: float64[n_events]."""
        return np.asarray(self.F.T @ s)

    def value(self, s: FloatArray, scores: FloatArray) -> float:
        """Return the objective at s, whose scores are known."""
        off = s - self.centre
        return float(self.potential.value(scores).mean() - self.b @ s + 0.5 * self.ridge * (off @ off))

    def gradient(self, s: FloatArray, scores: FloatArray) -> FloatArray:
        """Return the gradient at s."""
        pull = np.asarray(self.F @ self.potential.slope(scores))
        return pull / self.n_events - self.b + self.ridge * (s - self.centre)

    def with_potential(self, potential: Potential) -> Problem:
        """Return the same problem with another potential."""
        return Problem(self.F, self.b, potential, self.ridge, self.centre)


def greatest_eigenvalue(F: Any) -> float:
    """Return an upper bound of the greatest eigenvalue of F F' / n, close to it."""
    p, n = F.shape
    if p <= _SMALL:
        gram = F @ F.T
        dense = gram.toarray() if hasattr(gram, "toarray") else gram
        return float(np.linalg.eigvalsh(dense)[-1] / n)
    x: FloatArray = np.full(p, 1.0 / np.sqrt(p))
    found = 0.0
    for _ in range(_POWER_STEPS):
        x = np.asarray(F @ (F.T @ x))
        found = float(np.linalg.norm(x))
        if found == 0.0:
            return 0.0
        x = x / found
    return float(1.1 * found / n)  # the power method comes from below


def descend(problem: Problem, start: FloatArray, tolerance: float, max_steps: int) -> tuple[FloatArray, int]:
    """Minimise a problem with a smooth potential: FISTA (Beck and Teboulle 2009), restarted where it turns back.

    Parameters
    ----------
    problem : Problem
    start : float64[n_members]
        Not negative.
    tolerance : float
        Largest entry of the projected gradient at which to stop.
    max_steps : int

    Returns
    -------
    s : float64[n_members]
    n_steps : int
    """
    bound = problem.potential.curvature * greatest_eigenvalue(problem.F) + problem.ridge
    if bound == 0.0:
        return start.copy(), 0
    s, ahead, t = start.copy(), start.copy(), 1.0
    for step in range(max_steps):
        gradient = problem.gradient(ahead, problem.scores(ahead))
        new = np.maximum(ahead - gradient / bound, 0.0)
        if np.abs(new - ahead).max() * bound <= tolerance:
            return new, step + 1
        if (ahead - new) @ (new - s) > 0.0:  # momentum points uphill (O'Donoghue and Candes 2015)
            t = 1.0
        t_next = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
        ahead = new + ((t - 1.0) / t_next) * (new - s)
        s, t = new, t_next
    return s, max_steps


def exact_step(scores: FloatArray, moves: FloatArray, drop: float, longest: float = np.inf, kink: float = 1.0) -> float:
    """Return the step along a ray that minimises -step * drop + mean max(kink, |scores + step * moves|).

    The function is convex and piecewise linear: its slope jumps by |u_j| / n where a score enters or leaves the flat
    zone, so the minimum is the breakpoint at which the slope turns positive. O(n log n).

    Parameters
    ----------
    scores : float64[n_events]
    moves : float64[n_events]
        u, change of the scores per unit of step.
    drop : float
        b.d for the direction d of the ray.
    longest : float
        Upper end of the steps.
    kink : float

    Returns
    -------
    float
        In [0, longest]; of several minima the shortest step; 0 where nothing falls; `longest` where it falls for ever.
    """
    n = len(scores)
    size = np.abs(moves)
    outward = (np.abs(scores) > kink) | ((np.abs(scores) == kink) & (np.sign(scores) == np.sign(moves)))
    slope = float(np.where(outward, np.sign(scores) * moves, 0.0).sum() / n) - drop
    if slope >= 0.0:
        return 0.0
    moving = size > 0.0
    at = np.concatenate([(side * kink - scores[moving]) / moves[moving] for side in (-1.0, 1.0)])
    jumps = np.concatenate([size[moving], size[moving]]) / n
    ahead = at > 0.0
    at, jumps = at[ahead], jumps[ahead]
    order = np.argsort(at, kind="stable")
    slopes = slope + np.cumsum(jumps[order])
    turn = np.flatnonzero(slopes >= -1e-12 * max(1.0, abs(drop)))
    return float(min(at[order[turn[0]]], longest)) if len(turn) else float(longest)


def step_by_bisection(slope_at: Callable[[float], float], longest: float, n_steps: int = 50) -> float:
    """Return the step in [0, longest] at which an increasing slope turns positive."""
    if slope_at(0.0) >= 0.0:
        return 0.0
    if slope_at(longest) <= 0.0:
        return longest
    low, high = 0.0, longest
    for _ in range(n_steps):
        middle = 0.5 * (low + high)
        if slope_at(middle) < 0.0:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)
