"""Late labels by key, the obvious way: one event and one label at a time, a dict for everything."""

from __future__ import annotations

from typing import Any


class NaiveLateLabels:
    """Forecasts, waits and learns by the rules of turns."""

    def __init__(
        self, learner: Any, *, timeout: float | None, capacity: int, timed: bool = False, in_events: bool = True
    ) -> None:
        self.learner, self.timeout, self.capacity = learner, timeout, capacity
        self.timed, self.in_events = timed, in_events  # labels have times; events are counted
        self.heard_until = self.time = float("-inf")
        self.entries: dict[str, dict[str, Any]] = {}  # newest entry of a key
        self.order: list[dict[str, Any]] = []
        self.answered: list[tuple[dict[str, Any], Any]] = []
        self.clock = 0.0
        self.n_events = 0
        self.forecasts: list[float] = []
        self.measured: list[tuple[float, Any]] = []
        names = ("matched", "early", "expired", "late", "unknown", "duplicate", "repeated")
        self.counts = dict.fromkeys(names, 0)

    def _keep(self, key: str, kind: str, **more: Any) -> dict[str, Any]:
        entry = {"key": key, "kind": kind, "state": "waits", "clock": self.clock, **more}
        self.entries[key] = entry
        self.order.append(entry)
        return entry

    def event(self, key: str, x: dict[Any, float], clock: float | None) -> None:
        self.time = self.time if clock is None else max(self.time, clock)
        self.clock = float(self.n_events) if self.in_events else self.time
        self.n_events += 1
        p = self.learner.predict_proba_one(x).get(1, 0.5)
        self.forecasts.append(p)
        known = self.entries.get(key)
        if known is not None and not (known["kind"] == "label" and known["state"] != "matched"):
            self.counts["repeated"] += 1
            return
        answer = known if known is not None and known["state"] == "waits" else None
        entry = self._keep(key, "event", x=x, p=p)
        if answer is not None:
            answer["state"] = "matched"
            self.answered.append((entry, answer["label"]))

    def label(self, key: str, y: Any) -> None:
        known = self.entries.get(key)
        if known is None or (known["kind"] == "label" and known["state"] == "expired"):
            self._keep(key, "label", label=y)
            self.counts["early"] += 1
        elif known["kind"] == "event" and known["state"] == "waits":
            self._match(known, y)
        elif known["state"] == "expired":
            self.counts["late"] += 1
        else:
            self.counts["duplicate"] += 1

    def _match(self, entry: dict[str, Any], y: Any) -> None:
        entry["state"] = "matched"
        self.counts["matched"] += 1
        self.measured.append((entry["p"], y))
        self.learner.learn_one(entry["x"], y)

    def end_turn(self) -> None:
        for entry, y in self.answered:
            self._match(entry, y)
        self.answered = []
        waiting = [entry for entry in self.order if entry["state"] == "waits"]
        surplus = len(waiting) - self.capacity
        now = self.heard_until if self.timed else self.clock
        self.heard_until = self.clock
        for n, entry in enumerate(waiting):
            if n < surplus or (self.timeout is not None and entry["clock"] < now - self.timeout):
                entry["state"] = "expired"
                self.counts["expired" if entry["kind"] == "event" else "unknown"] += 1
                if entry["kind"] == "event":
                    self.learner.learn_one(entry["x"], None)
