"""One learner of CapyMOA on given events, for `compare.py`: it has an interpreter of its own, with Java beside it.

    python demos/docs/compare_capymoa.py NAME EVENTS.npz FORECASTS.npz

Reads X float64[n, m] and y bool[n]; writes P(y) before each event was learned, and the processor's seconds, those of
the virtual machine's compiler and collector among them. Events come from CapyMOA's own stream over an array.
"""

from __future__ import annotations

import sys
import time
from importlib.metadata import version

import numpy as np
from capymoa import classifier
from capymoa.stream import NumpyStream
from numpy.typing import NDArray


def forecasts(name: str, X: NDArray[np.float64], y: NDArray[np.bool_]) -> tuple[NDArray[np.float64], float]:
    """Return P(y) before each event, and seconds."""
    stream = NumpyStream(X, y.astype(int), target_type="categorical")
    model = getattr(classifier, name)(schema=stream.get_schema())
    found = np.full(len(X), 0.5)
    began = time.process_time()
    for k in range(len(X)):
        instance = stream.next_instance()
        chances = model.predict_proba(instance)
        if chances is not None and len(chances) > 1:
            found[k] = chances[1]
        model.train(instance)
    return found, time.process_time() - began


def main() -> None:
    """Run one learner."""
    name, source, target = sys.argv[1:]
    with np.load(source) as events:
        X, y = events["X"], events["y"]
    forecasts(name, X[:200], y[:200])  # classes are loaded
    scores, seconds = forecasts(name, X, y)
    np.savez(target, scores=scores, seconds=seconds, version=version("capymoa"))


if __name__ == "__main__":
    main()
