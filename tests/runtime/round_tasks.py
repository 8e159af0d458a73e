"""Tasks that worker processes can import."""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from streamlearn import AUCRO, HedgeMower1, ORLRegressor


@dataclass(frozen=True)
class Summed:
    """Random numbers of the part's seed, summed by linear algebra, times what the model says."""

    size: int = 50_000

    def estimate(self, part, model):
        x = np.random.default_rng(part.begin).normal(size=self.size)
        factor = 1.0 if model is None else float(model["factor"])
        return {"sum": float(x @ x) * factor, "values": x[:3] * factor, "process": 0}


@dataclass(frozen=True)
class Learned:
    """AUCRO on rows of the part's seed."""

    def estimate(self, part, model):
        rng = np.random.default_rng(part.begin)
        X = rng.normal(size=(part.end, 5))
        return AUCRO().learn_many(X, X @ [1.0, -1.0, 0.5, 0.0, 2.0] + rng.normal(size=part.end) > 0).state()


@dataclass(frozen=True)
class Muffled:
    """HedgeMower-1 on rows of the part's seed, a fifth of them labelled."""

    def estimate(self, part, model):
        rng = np.random.default_rng(part.begin)
        X = rng.normal(size=(part.end, 4))
        y = [bool(v > 0) if k % 5 == 0 else None for k, v in enumerate(X[:, 0] + rng.normal(size=len(X)))]
        return HedgeMower1(n_trees=10, members="forest,logistic").fit(X, y).state()


@dataclass(frozen=True)
class Deadly:
    """Kills its worker, or the Spark executor that started it, the first so many times that it sees part 1."""

    folder: str
    times: int = 1
    executor: bool = False

    def estimate(self, part, model):
        killed = len(list(Path(self.folder).iterdir()))
        if part.index == 1 and killed < self.times:
            (Path(self.folder) / f"{os.getpid()}-{time.monotonic_ns()}").touch()
            os.kill(spark_executor() if self.executor else os.getpid(), signal.SIGKILL)
            time.sleep(60.0)  # it dies meanwhile: a part must not end before its executor has
        return {"part": part.index}


@dataclass(frozen=True)
class Regressed:
    """ORLRegressor on rows of the part's seed; the first parts are poisoned: other coefficients, times `factor`."""

    poisoned: int
    factor: float
    truth = np.array([1.0, -2.0, 0.5, 3.0, -1.0, 0.0, 2.0, 1.5])

    def estimate(self, part, model):
        rng = np.random.default_rng(part.begin)
        theta = self.factor * self.truth if part.index < self.poisoned else self.truth
        X = rng.normal(size=(part.end, len(theta)))
        y = X @ theta + rng.normal(size=part.end)
        return ORLRegressor(mode="batches", batch_size=100).learn_many(X, y).state()


@dataclass(frozen=True)
class Failing:
    """Refuses part 2."""

    def estimate(self, part, model):
        if part.index == 2:
            raise ValueError("part 2 is not to be had")
        return {"part": part.index}


def spark_executor():
    """Return the process of the Spark executor that started this worker."""
    pid = os.getpid()
    while pid > 1:
        process = Path("/proc") / str(pid)
        if b"CoarseGrainedExecutorBackend" in (process / "cmdline").read_bytes():
            return pid
        pid = int((process / "stat").read_text().rpartition(")")[2].split()[1])
    raise LookupError("no Spark executor started this process")
