"""The published table of distributed faults: machines that did not finish, and answers that arrive spoiled.

python perf/robust_faults.py [--batches T] [--features P] [--repeats R] [--quick]

One machine a batch, a fifth of the rows outliers, R repeats. Latency: 49 % of the machines return what they have before
they begin, a random subspace or coefficients of 0. Communication: a tenth of the answers arrive with the sign of 30 %
of their entries turned; a turned basis is made orthonormal again. For projectors averaging is a vote itself, so little
separates it from the median there; what a bad answer adds to an average of coefficients has no bound, which answers
times 1000 show.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from robust_figures import averaged, held, pca_batches, projector_error, regression_batches
from robust_show import options, spent, table

from streamlearn import geometric_median
from streamlearn.learners.robust.lts import LeastTrimmedSquaresFitter
from streamlearn.learners.robust.subspace import SubspaceFitter

LATE, TURNED, ENTRIES, BAD = 0.49, 0.1, 0.3, 0.2


def turned(rng: np.random.Generator, answers: np.ndarray) -> np.ndarray:
    """Answers with some signs turned."""
    return np.where(rng.random(answers.shape) < ENTRIES, -answers, answers)


def subspaces(rng: np.random.Generator, chosen: argparse.Namespace) -> dict[str, tuple[float, float]]:
    """Errors of median and average, fault by fault."""
    p, d, size, n = chosen.features, 5, 20 * chosen.features, chosen.batches
    truth = np.linalg.qr(rng.normal(size=(p, d)))[0]
    fitter = SubspaceFitter()
    wrong = [rng.random(size) < BAD for _ in range(n)]
    found = [fitter.rc(X, d, BAD).components for X in pca_batches(rng, truth, truth, wrong, "uniform")]
    late = [np.linalg.qr(rng.normal(size=(p, d)))[0].T for _ in range(int(LATE * n))]
    spoiled = [np.linalg.qr(turned(rng, c).T)[0].T for c in found[: max(int(TURNED * n), 1)]]
    answers = {
        "no fault": found,
        "latency": late + found[len(late) :],
        "communication": spoiled + found[len(spoiled) :],
    }
    return {
        name: (projector_error(held(given, n), truth), projector_error(averaged(given), truth))
        for name, given in answers.items()
    }


def coefficients(rng: np.random.Generator, chosen: argparse.Namespace) -> dict[str, tuple[float, float]]:
    """Errors of median and average, fault by fault."""
    p, size, n = chosen.features, 20 * chosen.features, chosen.batches
    theta = rng.normal(size=p)
    fitter = LeastTrimmedSquaresFitter()
    wrong = [rng.random(size) < BAD for _ in range(n)]
    found = np.array([fitter.fit(X, y).theta[1:] for X, y in regression_batches(rng, theta, size, wrong)])
    n_late, n_turned = int(LATE * n), max(int(TURNED * n), 1)
    answers = {
        "no fault": found,
        "latency": np.concatenate([np.zeros((n_late, p)), found[n_late:]]),
        "communication": np.concatenate([turned(rng, found[:n_turned]), found[n_turned:]]),
        "communication, times 1000": np.concatenate([turned(rng, 1000 * found[:n_turned]), found[n_turned:]]),
    }
    size_of_truth = float(np.linalg.norm(theta))
    return {
        name: tuple(float(np.linalg.norm(v - theta)) / size_of_truth for v in (geometric_median(g), g.mean(axis=0)))
        for name, g in answers.items()
    }


def main() -> None:
    chosen, start = options(argparse.ArgumentParser()), time.process_time()
    for title, run in (("PCA, base rc", subspaces), ("regression, base lts", coefficients)):
        errors: dict[str, list[tuple[float, float]]] = {}
        for repeat in range(chosen.repeats):
            for fault, pair in run(np.random.default_rng(repeat), chosen).items():
                errors.setdefault(fault, []).append(pair)
        lines = []
        for fault, pairs in errors.items():
            for form, values in zip(("geometric median", "average"), np.transpose(pairs), strict=True):
                lines.append((f"{fault}: {form}", [values.mean(), values.std(), values.min(), values.max()]))
        setting = f"p={chosen.features}, {chosen.batches} machines, {BAD:.0%} outliers, {chosen.repeats} repeats"
        table(f"distributed {title}, {setting}: error", ["mean", "std", "least", "greatest"], lines)
    spent(start)


if __name__ == "__main__":
    main()
