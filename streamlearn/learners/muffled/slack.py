"""The slack: worst-case loss over all labellings of the unlabelled events that the members' correlations allow."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from streamlearn.contracts import FloatArray
from streamlearn.errors import BadParameter, BadShape, BadValue
from streamlearn.learners.muffled.descent import Problem, descend
from streamlearn.learners.muffled.potentials import POTENTIALS, Potential, checked_potential

_WHO = "minimise_slack"
_MAX_LP_ENTRIES = 2_000_000
_WIDTHS = (0.3, 0.1, 0.03, 0.01, 0.003, 0.001)
_SAFETY = 0.99  # of the greatest b that some labelling allows: at that b itself the weights may be infinite


@dataclass(frozen=True, slots=True)
class Slack:
    """Weights of least slack and what they prove.

    Attributes
    ----------
    weights : float64[n_members]
        s >= 0.
    slack : float
        gamma(s). Twice the value of the game.
    shrink : float
        1, or what b had to be multiplied with because no labelling allows it.
    n_steps : int
        Gradient steps, 0 for the linear program.
    """

    weights: FloatArray
    slack: float
    shrink: float
    n_steps: int

    @property
    def feasible(self) -> bool:
        """Some labelling allows all of b."""
        return self.shrink == 1.0

    @property
    def error_bound(self) -> float:
        """Largest expected loss of the minimax prediction, where b holds."""
        return max(self.slack, 0.0) / 2.0


def minimise_slack(
    F: ArrayLike, b: ArrayLike, *, potential: str = "zero-one", solver: str = "auto", tolerance: float = 1e-10
) -> Slack:
    """Return the weights s >= 0 that minimise gamma(s) = -b.s + mean_j Psi(x_j.s), x_j the columns of F.

    Theorem 1 of Balsubramani and Freund (2015): among all labellings z in [-1, 1]^n of the unlabelled events with
    F z / n >= b, the prediction g(x_j.s) loses at most gamma(s) / 2 on average, and no prediction can promise less.

    Where no labelling allows b (gamma has no lower bound; seen as gamma < 0) a RuntimeWarning tells so, and b is
    multiplied with a number below 1 that makes it possible.

    Parameters
    ----------
    F : float64[n_members, n_events] or scipy.sparse matrix
        Votes of the members on the unlabelled events; 0 where a specialist abstains.
    b : float64[n_members]
        Lower bounds of the members' correlations with the labels.
    potential : str
        "zero-one", "hinge", "square", "log" or "exp".
    solver : str
        "lp" (exact; zero-one and hinge), "fista" (any), or "auto": lp up to two million entries of F.
    tolerance : float
        Of the gradient (fista).

    Returns
    -------
    Slack

    Raises
    ------
    BadParameter, BadShape, BadValue

    Examples
    --------
    >>> from streamlearn import minimise_slack
    >>> solution = minimise_slack([[1.0, 1.0, -1.0], [1.0, -1.0, 1.0]], [0.4, 0.1])
    >>> solution.weights.round(3).tolist(), round(solution.error_bound, 3)
    ([1.0, 0.0], 0.3)
    """
    psi = checked_potential(_WHO, potential)
    if solver not in ("auto", "lp", "fista") or (solver == "lp" and psi.kink == 0.0):
        raise BadParameter(f"{_WHO}: solver must be 'auto', 'fista' or, with a kink, 'lp', got {solver!r}")
    votes, bounds = _checked(F, b)
    shrink = greatest_shrink(votes, bounds) if (bounds > 0.0).any() else 1.0
    if shrink < 1.0:
        shrink *= _SAFETY
        warnings.warn(
            f"{_WHO}: no labelling allows b, the slack has no lower bound: b is multiplied with {shrink:.4g}",
            RuntimeWarning,
            stacklevel=2,
        )
    return solve(votes, bounds * shrink, psi, solver, tolerance, shrink)


def _checked(F: Any, b: ArrayLike) -> tuple[Any, FloatArray]:
    sparse = hasattr(F, "tocsr")
    votes = F.tocsr().astype(np.float64) if sparse else np.asarray(F, dtype=np.float64)
    bounds = np.asarray(b, dtype=np.float64)
    if votes.ndim != 2 or votes.shape[1] == 0 or bounds.shape != votes.shape[:1]:
        raise BadShape(
            f"{_WHO}: F must be [n_members, n_events >= 1] and b [n_members], got {votes.shape}, {bounds.shape}"
        )
    if not np.isfinite(votes.data if sparse else votes).all() or not np.isfinite(bounds).all():
        raise BadValue(f"{_WHO}: F and b must be finite numbers")
    return votes, bounds


def solve(F: Any, b: FloatArray, psi: Potential, solver: str, tolerance: float, shrink: float = 1.0) -> Slack:
    """Minimise the slack of checked arrays for b that some labelling allows."""
    entries = F.nnz if hasattr(F, "nnz") else F.size
    if not (b > 0.0).any() and psi.kink != 0.0:
        return Slack(np.zeros(len(b)), psi.kink, shrink, 0)
    if psi.kink != 0.0 and (solver == "lp" or (solver == "auto" and entries <= _MAX_LP_ENTRIES)):
        # max(k, |m|) = k max(1, |m / k|), so the weights are k times those of the zero-one loss.
        weights, steps = psi.kink * _dual_weights(F, b), 0
    else:
        weights, steps = _gradients(F, b, psi, tolerance)
    problem = Problem(F, b, psi, 0.0, np.zeros(len(b)))
    return Slack(weights, problem.value(weights, problem.scores(weights)), shrink, steps)


def _gradients(F: Any, b: FloatArray, psi: Potential, tolerance: float) -> tuple[FloatArray, int]:
    """Descend; a kink is rounded off over ever smaller widths, each started where the one before ended."""
    s: FloatArray = np.zeros(len(b))
    total = 0
    exact = Problem(F, b, psi, 0.0, np.zeros(len(b)))
    if psi.kink == 0.0:
        return descend(exact, s, tolerance, 20_000)
    best, least = s, exact.value(s, exact.scores(s))
    for width in _WIDTHS:
        s, steps = descend(exact.with_potential(psi.smoothed(width)), s, tolerance, 2_000)
        total += steps
        value = exact.value(s, exact.scores(s))
        if value < least:
            best, least = s, value
    return best, total


def _split_rows(F: Any) -> Any:
    """Return [F, -F] / n for labellings written as z = z+ - z-."""
    if hasattr(F, "tocsr"):
        from scipy.sparse import hstack  # noqa: PLC0415 - the import costs 30 ms and learners do not need it

        return hstack([F, -F]) / F.shape[1]
    return np.hstack([F, -F]) / F.shape[1]


def _dual_weights(F: Any, b: FloatArray) -> FloatArray:
    """Return the weights of least zero-one slack as multipliers of min mean |z| s.t. F z / n >= b, z in [-1, 1].

    This program has a row a member and is solved much faster than the one in s, which has two rows an event.
    """
    n = F.shape[1]
    found = _program(np.full(2 * n, 1.0 / n), -_split_rows(F), -b, (0.0, 1.0))
    return np.maximum(-np.asarray(found.ineqlin.marginals, dtype=np.float64), 0.0)


def greatest_shrink(F: Any, b: FloatArray) -> float:
    """Return the greatest factor in [0, 1] with which some labelling allows b: max r with F z / n >= r b."""
    if _allows(F, b):
        return 1.0
    from scipy.sparse import csr_array, hstack  # noqa: PLC0415 - see above

    n = F.shape[1]
    rows = hstack([csr_array(-F / n), csr_array(b[:, None])])
    cost = np.zeros(n + 1)
    cost[n] = -1.0
    found = _program(cost, rows, np.zeros(len(b)), [(-1.0, 1.0)] * n + [(0.0, 1.0)])
    return float(min(found.x[n], 1.0))


def _program(cost: FloatArray, rows: Any, limits: FloatArray, bounds: Any) -> Any:
    """Solve min cost.x with rows x <= limits."""
    from scipy.optimize import linprog  # noqa: PLC0415 - the import costs 100 ms and learners do not need it

    found = linprog(cost, A_ub=rows, b_ub=limits, bounds=bounds, method="highs")
    if found.status != 0:
        raise BadValue(f"{_WHO}: the linear program must have a solution, got: {found.message}")
    return found


def _allows(F: Any, b: FloatArray) -> bool:
    """Tell quickly whether a labelling that allows b is at hand: the majority of the members, weighted by b."""
    z = np.sign(F.T @ np.maximum(b, 0.0))
    return bool((np.asarray(F @ z) / F.shape[1] >= b).all())


def certified_error(F: Any, b: FloatArray) -> float:
    """Return the bound of the zero-one error that b proves, at most 1/2; 1/2 where b is impossible."""
    shrink = greatest_shrink(F, b) if (b > 0.0).any() else 1.0
    if shrink < 1.0:
        return 0.5
    return min(solve(F, b, POTENTIALS["zero-one"], "auto", 1e-8).error_bound, 0.5)
