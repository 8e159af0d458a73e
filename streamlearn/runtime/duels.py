"""Bands for the metrics of a job's learners, and each learner against the first one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from streamlearn.contracts import Tested
from streamlearn.evaluation.comparison import ORDERLY, BlockBootstrap, Pair, percentiles
from streamlearn.evaluation.metric import BaseMetric
from streamlearn.runtime.tracks import Track

FADING = 0.999
"""Of McNemar's test of late: it looks at about the last thousand events."""
EXACT_EVENTS = 16_384
"""Scores that each resampled AUC keeps one by one: 400 kB."""


class Duels:
    """Resampled metrics of every learner, all with the same weights, and pairwise tests.

    Nothing of it goes into a checkpoint: it is for a comparison that runs through.

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
        self._boots = [BlockBootstrap(list(specs.values()), replicas=replicas) for _ in tracks]
        self._pairs = [Pair(FADING) for _ in tracks[1:]]
        for index, track in enumerate(tracks):
            track.listeners.append(self._listener(index))

    def _listener(self, index: int) -> Any:
        def hear(tested: Tested, labels: NDArray[Any]) -> None:
            self._boots[index].take(tested, labels)
            for other, pair in enumerate(self._pairs, start=1):
                if index in (0, other):
                    pair.take(int(index == other), tested)

        return hear

    def report(self) -> dict[str, Any]:
        """Return bands and tests as JSON values."""
        bands = {
            track.title: {name: _interval(boot.band(k)) for k, name in enumerate(self._names)}
            for track, boot in zip(self._tracks, self._boots, strict=True)
        }
        return {"method": _METHOD, "bands": bands, "against_first": [self._against(k) for k in range(len(self._pairs))]}

    def _against(self, k: int) -> dict[str, Any]:
        pair, first, other = self._pairs[k], self._boots[0], self._boots[k + 1]
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
