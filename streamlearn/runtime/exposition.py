"""The view of a job in Prometheus' text format."""

from __future__ import annotations

import time
from collections.abc import Iterator

from streamlearn.errors import MissingExtra
from streamlearn.runtime.view import LearnerView, View

try:
    from prometheus_client import CollectorRegistry, generate_latest
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
    from prometheus_client.exposition import CONTENT_TYPE_LATEST as CONTENT_TYPE
    from prometheus_client.registry import Collector
except ImportError as error:
    raise MissingExtra("the monitor", "prometheus-client", "monitor") from error

PREFIX = "streamlearn_"

__all__ = ["CONTENT_TYPE", "metrics_text"]


def metrics_text(view: View, *, healthy: bool) -> bytes:
    """Return all metrics of a view."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Once([*_job(view, healthy), *_learners(view.learners)]))
    text: bytes = generate_latest(registry)
    return text


class _Once(Collector):
    """A collector of metrics that are made already."""

    def __init__(self, metrics: list[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> list[Metric]:
        return self._metrics


def _job(view: View, healthy: bool) -> Iterator[Metric]:
    yield _counter("events", "events taken, bad ones included, since the job began", view.events)
    yield _gauge("events_per_second", "events a second over the last ten seconds", view.events_per_s)
    lead = GaugeMetricFamily(f"{PREFIX}lead", "1 for the learner whose predictions go out", labels=["learner"])
    for one in view.learners:
        lead.add_metric([one.title], float(one.title == view.lead))
    yield lead
    yield _gauge("healthy", "1 while the job gets on", float(healthy))
    yield _gauge("input_lost", "1 while the job has lost its input and tries again", float(bool(view.trouble)))
    yield _gauge("start_time_seconds", "unix time of the start of the process", view.started_s)
    bad = CounterMetricFamily(f"{PREFIX}bad_events", "events that could not be used, by kind", labels=["kind"])
    for kind, count in sorted(view.bad.items()):
        bad.add_metric([kind], count)
    yield bad
    lag = GaugeMetricFamily(f"{PREFIX}lag_events", "events still to read, by partition", labels=["partition"])
    for partition, count in sorted(view.lag.items()):
        lag.add_metric([partition], count)
    yield lag
    yield _gauge("waiting_labels", "events that wait for their label", view.waiting)
    labels = CounterMetricFamily(f"{PREFIX}labels", "what became of labels that come by key", labels=["fate"])
    for fate, count in view.labels.items():
        labels.add_metric([fate], count)
    yield labels
    yield _counter("checkpoints", "checkpoints made by this process", view.checkpoints)
    if view.checkpoint_s is not None and view.checkpoint_at_s is not None:
        yield _gauge("checkpoint_seconds", "time that the newest checkpoint took", view.checkpoint_s)
        yield _gauge("checkpoint_age_seconds", "age of the newest checkpoint", time.time() - view.checkpoint_at_s)


def _learners(learners: list[LearnerView]) -> Iterator[Metric]:
    label = ["learner"]
    events = CounterMetricFamily(f"{PREFIX}measured_events", "events that were measured", labels=label)
    labelled = CounterMetricFamily(f"{PREFIX}labelled_events", "measured events with a label", labels=label)
    abstained = CounterMetricFamily(f"{PREFIX}abstained_events", "measured events without a forecast", labels=label)
    seconds = CounterMetricFamily(f"{PREFIX}learner_seconds", "time in the learner, by this process", labels=label)
    norm = GaugeMetricFamily(f"{PREFIX}weight_norm", "norm of the learner's weights", labels=label)
    drifts = CounterMetricFamily(f"{PREFIX}drifts", "drifts detected in the learner's loss", labels=label)
    metric = GaugeMetricFamily(f"{PREFIX}metric", "prequential metrics", labels=["learner", "metric"])
    for one in learners:
        events.add_metric([one.title], one.events)
        labelled.add_metric([one.title], one.labelled)
        abstained.add_metric([one.title], one.abstained)
        seconds.add_metric([one.title], one.seconds)
        if one.norm is not None:
            norm.add_metric([one.title], one.norm)
        if one.drifts is not None:
            drifts.add_metric([one.title], one.drifts)
        for name, value in one.metrics.items():
            if value is not None:
                metric.add_metric([one.title, name], value)
    yield from (events, labelled, abstained, seconds, norm, drifts, metric)


def _counter(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(f"{PREFIX}{name}", text, value=value)


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"{PREFIX}{name}", text, value=value)
