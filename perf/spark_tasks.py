"""What the workers of the measurements of Spark do: machines of the simulations, files, and nothing.

Rows of a simulation are a function of seed and machine, so no data travel and one machine can be given those of all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from streamlearn import AUCRO, ORLRegressor
from streamlearn.learners.robust.lts import LeastTrimmedSquaresFitter
from streamlearn.learners.robust.subspace import SubspaceFitter, principal
from streamlearn.runtime.rounds import Part
from streamlearn.snapshot import nest

D, TRIM, ENTRIES = 5, 0.5, 0.3
AT_ONCE = 16_384


def truth_of(seed: int, p: int, *, subspace: bool) -> np.ndarray:
    """The coefficients or the basis, float64[p] or [p, D], of one repeat."""
    rng = np.random.default_rng([seed, 1])
    return np.linalg.qr(rng.normal(size=(p, D)))[0] if subspace else rng.normal(size=p)


@dataclass(frozen=True)
class Several:
    """Machines of several conditions in one round; part: "condition/machine", seed of the repeat, rows."""

    tasks: tuple[Machine | Regression, ...]

    def estimate(self, part: Part, model: object) -> dict:
        condition, _, machine = part.partition.partition("/")
        found = self.tasks[int(condition)].estimate(Part(int(machine), machine, part.begin, part.end), model)
        return {"condition": int(condition), "machine": int(machine), **nest("answer", found)}


@dataclass(frozen=True)
class Machine:
    """One machine of the published simulation; part: machine, seed of the repeat, rows.

    `concentrated`: 45 % of the machines, or as few more as are needed, hold all outliers. Machines below `late` answer
    with what they have after one step; those below `turned` have the signs of 30 % of their answer turned on the way.
    """

    subspace: bool
    share: float
    p: int
    n_machines: int
    concentrated: bool = False
    late: int = 0
    turned: int = 0

    def estimate(self, part: Part, model: object) -> dict:
        seed, machine = part.begin, int(part.partition)
        if machine < 0:  # the centralised one
            X, y = (np.concatenate(rows) for rows in zip(*self.all_rows(seed, part.end), strict=True))
            return self.answers(X, y)
        rng = np.random.default_rng([seed, 3, machine])
        X, y = self.rows(seed, machine, part.end)
        if machine < self.late:
            return self.unfinished(rng, X, y)
        found = self.answers(X, y)
        if machine < self.turned:
            found = {name: self.spoiled(rng, value) for name, value in found.items()}
        return found

    def all_rows(self, seed: int, size: int):
        return (self.rows(seed, machine, size) for machine in range(self.n_machines))

    def rows(self, seed: int, machine: int, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Standard normal x, noise of variance 1; outliers uniform on [-10, 10], their response turned."""
        rng = np.random.default_rng([seed, 2, machine])
        truth = truth_of(seed, self.p, subspace=self.subspace)
        bad = np.arange(size) < self.n_bad(machine, size)
        X = rng.normal(size=(size, self.p))
        if self.subspace:
            X += rng.normal(size=(size, D)) @ truth.T
        X[bad] = rng.uniform(-10, 10, size=(int(bad.sum()), self.p))
        y = np.zeros(size) if self.subspace else np.where(bad, -1.0, 1.0) * (X @ truth) + rng.normal(size=size)
        return X, y

    def n_bad(self, machine: int, size: int) -> int:
        if not self.concentrated:
            return round(self.share * size)
        n_held = max(int(0.45 * self.n_machines), int(np.ceil(self.share * self.n_machines)), 1)
        return min(round(self.share * self.n_machines * size / n_held), size) if machine < n_held else 0

    def answers(self, X: np.ndarray, y: np.ndarray) -> dict[str, np.ndarray]:
        if self.subspace:
            fitter = SubspaceFitter()
            return {
                "rc": fitter.rc(X, D, TRIM).components,
                "lts": fitter.lts(X, D).components,
                "plain": principal(X, D).components,
            }
        plain = np.linalg.lstsq(X, y, rcond=None)[0]
        return {"lts": LeastTrimmedSquaresFitter().fit(X, y).theta[1:], "plain": plain}

    def unfinished(self, rng: np.random.Generator, X: np.ndarray, y: np.ndarray) -> dict[str, np.ndarray]:
        """One step of the power method, or of gradient descent from 0."""
        if self.subspace:
            found = np.linalg.qr(X.T @ (X @ rng.normal(size=(self.p, D))))[0].T
            return {"rc": found, "lts": found, "plain": found}
        found = X.T @ y / len(y)
        return {"lts": found, "plain": found}

    @staticmethod
    def spoiled(rng: np.random.Generator, answer: np.ndarray) -> np.ndarray:
        turned = np.where(rng.random(answer.shape) < ENTRIES, -answer, answer)
        return turned if answer.ndim == 1 else np.linalg.qr(turned.T)[0].T


@dataclass(frozen=True)
class Regression:
    """ORLRegressor on rows of its own; parts below `n_poisoned` were handed rows that somebody made.

    Kinds of poison: "turned" (targets of the opposite sign), "far" (other coefficients, a thousand times too large),
    "near" (coefficients off by a tenth, all in one direction, which no distance gives away).
    """

    p: int
    n_poisoned: int
    poison: str
    batch: int = 500

    def estimate(self, part: Part, model: object) -> dict:
        rng = np.random.default_rng([part.begin, 2, part.index])
        theta = truth_of(part.begin, self.p, subspace=False)
        if part.index < self.n_poisoned:
            size = np.linalg.norm(theta) / np.sqrt(self.p)
            theta = {"turned": -theta, "far": 1000.0 * theta[::-1], "near": theta + 0.1 * size}[self.poison]
        X = rng.normal(size=(part.end, self.p))
        y = X @ theta + rng.normal(size=part.end)
        return ORLRegressor(mode="batches", batch_size=self.batch).learn_many(X, y).state()


@dataclass(frozen=True)
class File:
    """AUCRO on one Parquet file; the estimate is its state."""

    def estimate(self, part: Part, model: object) -> dict:
        return learned([part.partition]).state()


@dataclass(frozen=True)
class Nothing:
    """A round that costs what rounds cost."""

    def estimate(self, part: Part, model: object) -> dict:
        return {"part": part.index}


def learned(paths: list[str]) -> AUCRO:
    model = AUCRO(clip=None)
    for path in paths:
        for batch in pq.ParquetFile(path).iter_batches(AT_ONCE):
            table = pa.Table.from_batches([batch])
            model.learn_many(table.drop_columns(["y"]), table.column("y").to_numpy())
    return model
