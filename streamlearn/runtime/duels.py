"""Bands for the metrics of a job's learners, and each learner against the first one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import HasState, Snapshot, Tested
from streamlearn.evaluation.comparison import ORDERLY, BlockBootstrap, Pair, percentiles
from streamlearn.evaluation.forecasts import cut
from streamlearn.evaluation.metric import BaseMetric
from streamlearn.runtime.tracks import Track
from streamlearn.runtime.trajectory import Trajectory
from streamlearn.snapshot import below, nest

FADING = 0.999
"""Of McNemar's test of late: it looks at about the last thousand events."""
EXACT_EVENTS = 16_384
"""Scores that each resampled AUC keeps one by one: 400 kB."""


class Banded:
    """One learner's resampled metrics, and how their bands moved: sampled where the metrics are."""

    def __init__(self, specs: Sequence[str], replicas: int) -> None:
        self.boot = BlockBootstrap(specs, replicas=replicas)
        self.trajectory = Trajectory(2 * len(specs))
        self._events = 0

    def take(self, tested: Tested, labels: NDArray[Any]) -> None:
        """Take the forecasts of consecutive events."""
        n, done = len(labels), 0
        while done < n:
            sample_at = self.trajectory.next_after(self._events)
            stop = min(n, done + sample_at - self._events)
            self.boot.take(cut(tested, done, stop), labels[done:stop])
            self._events += stop - done
            done = stop
            if self._events == sample_at:
                self.trajectory.add(np.array([self.boot.band(k) for k in range(len(self.boot.metrics))]).ravel())

    def moved(self, metric: int) -> dict[str, list[float]]:
        """Return the band of one metric over time as JSON values."""
        low, high = self.trajectory.samples[:, 2 * metric : 2 * metric + 2].T.tolist()
        return {"low": low, "high": high}

    def state(self) -> Snapshot:
        """Return the flat state."""
        parts = nest("boot", self.boot.state()) | nest("trajectory", self.trajectory.state())
        return {"events": self._events, **parts}

    def restore(self, state: Snapshot) -> None:
        """Become what `state` describes."""
        self._events = int(state["events"])
        self.boot.restore(below("boot", state))
        self.trajectory.restore(below("trajectory", state))


class Duels:
    """Resampled metrics of every learner, all with the same weights, and pairwise tests.

    Parameters
    ----------
    tracks : sequence of Track
        Each tells what it measures from now on.
    replicas : int
        Of the bootstrap.
    """

    def __init__(self, tracks: Sequence[Track], replicas: int) -> None:
        self._tracks = tuple(tracks)
        specs = {metric.name: spec for metric in tracks[0].metrics if (spec := _spec(metric)) is not None}
        self._names = tuple(specs)
        self._banded = [Banded(list(specs.values()), replicas) for _ in tracks]
        self._pairs = [Pair(FADING) for _ in tracks[1:]]
        for index, track in enumerate(tracks):
            track.listeners.append(self._listener(index))

    def _listener(self, index: int) -> Callable[[Tested, NDArray[Any]], None]:
        def hear(tested: Tested, labels: NDArray[Any]) -> None:
            self._banded[index].take(tested, labels)
            for other, pair in enumerate(self._pairs, start=1):
                if index in (0, other):
                    pair.take(int(index == other), tested)

        return hear

    def state(self) -> Snapshot:
        """Return the flat state: up to 400 kB for each copy of an AUC."""
        flat: Snapshot = {}
        for prefix, part in self._stateful():
            flat |= nest(prefix, part.state())
        return flat

    def restore(self, state: Snapshot) -> None:
        """Become what `state` describes."""
        for prefix, part in self._stateful():
            part.restore(below(prefix, state))

    def _stateful(self) -> list[tuple[str, HasState]]:
        banded: list[tuple[str, HasState]] = [(f"banded/{k}", part) for k, part in enumerate(self._banded)]
        return [*banded, *((f"pair/{k}", pair) for k, pair in enumerate(self._pairs))]

    def report(self) -> dict[str, Any]:
        """Return bands and tests as JSON values."""
        bands = {
            track.title: {name: _interval(banded.boot.band(k)) for k, name in enumerate(self._names)}
            for track, banded in zip(self._tracks, self._banded, strict=True)
        }
        moved = {
            track.title: {
                "events": banded.trajectory.events,
                "bands": {name: banded.moved(k) for k, name in enumerate(self._names)},
            }
            for track, banded in zip(self._tracks, self._banded, strict=True)
        }
        against = [self._against(k) for k in range(len(self._pairs))]
        return {"method": _METHOD, "bands": bands, "bands_over_time": moved, "against_first": against}

    def _against(self, k: int) -> dict[str, Any]:
        pair, first, other = self._pairs[k], self._banded[0].boot, self._banded[k + 1].boot
        differences = {
            name: _interval(percentiles(other.values(j) - first.values(j))) for j, name in enumerate(self._names)
        }
        only_first, only_this = pair.whole.counts
        return {
            "title": self._tracks[k + 1].title,
            "first": self._tracks[0].title,
            "events": pair.n_events,
            "only_first_right": only_first,
            "only_this_right": only_this,
            "p_value": _number(pair.whole.p_value),
            "recent_p_value": _number(pair.recent.p_value),
            "differences": differences,
        }


_METHOD = (
    "bands: 2.5th to 97.5th percentile of a Poisson bootstrap of blocks of 100 events; p_value: McNemar; "
    f"recent_p_value: McNemar with fading {FADING}"
)


def told(report: dict[str, Any]) -> list[str]:
    """Return a comparison as lines for people."""
    lines = []
    for row in report["against_first"]:
        found = [
            f"{name} {low:+.4f} to {high:+.4f}"
            for name, (low, high) in row["differences"].items()
            if low is not None and high is not None
        ]
        p = "the same decisions" if row["p_value"] is None else f"p = {row['p_value']:.2g} (McNemar)"
        recent = "" if row["recent_p_value"] is None else f", {row['recent_p_value']:.2g} of late"
        lines.append(f"{row['title']} against {row['first']}: {p}{recent}; {', '.join(found)} (95 %)")
    return lines


def _spec(metric: BaseMetric) -> str | None:
    """Return the text that makes a metric, None for one that cannot be resampled."""
    params = {name: value for name, value in metric.params().items() if value is not None}
    if metric.short in ORDERLY or {"window", "fading"} & params.keys() or metric.short == "reject_curve":
        return None
    if "exact_events" in params:
        params["exact_events"] = min(EXACT_EVENTS, params["exact_events"])
    return f"{metric.short}:{','.join(f'{name}={value!r}' for name, value in params.items())}"


def _interval(band: tuple[float, float]) -> list[float | None]:
    return [_number(value) for value in band]


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value
