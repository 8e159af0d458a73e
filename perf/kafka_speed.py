"""Events a second from Kafka, each way in a fresh process, in turns; and the time from produce to prediction.

    python perf/kafka_speed.py [--quick] [--events 1000000] [--turns 3] [--partitions 1 4] [--bootstrap HOST:PORT]
                               [--learners AUCRO AdaptiveAUCRO] [--rate 5000] [--only rates latency]

raw       confluent-kafka's consume(1000), nothing done with the messages
values    the same, and the bytes taken out of every message
decode    the source of a job alone: events in arrays
job       `streamlearn run`: decode, test then learn, exact prequential AUC, a checkpoint every second
job+sink  the same with every prediction written to a file
job+topic the same with every prediction written to a topic, in a transaction from checkpoint to checkpoint
river     the pipeline one writes by hand: confluent-kafka, orjson, River's StandardScaler | LogisticRegression,
          its prequential ROCAUC, and a checkpoint of model, metric and offsets every second

An event is JSON of 20 numbers with six decimals and a label (309 bytes). Seconds are from the first call of the client
to the last event, by each process's own clock, so that imports are left out. Processor seconds are those of all threads
of the process in that time: on a machine that is shared they say more than the wall's. `river` reads the first
`--river-events`.

Without --bootstrap Apache Kafka is started by .ci/kafka/broker.py, on the same machine, and stopped behind.
Needs orjson (of the `dev` extra). Writes perf/out/kafka_speed.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from kafka_latency import latencies
from kafka_topics import broker, fill, make_topic

HERE = Path(__file__).parent
OUT = HERE / "out"
ROUTES = HERE / "kafka_routes.py"
WAYS = ["raw", "values", "orjson", "decode", "job", "job+sink", "job+topic", "river"]
TARGETS = {"events/s": 200_000, "of raw": 0.5, "of river": 7.0, "p99 ms": 50.0}
JOB = """
name = "speed"
out = "out"
[source]
kind = "kafka"
topics = ["{topic}"]
group = "{topic}-group"
until = "end"
[source.kafka]
"bootstrap.servers" = "{bootstrap}"
[features]
label = "label"
[[learner]]
name = "{learner}"
[evaluate]
metrics = ["auc"]
curve = false
picture = false
[checkpoint]
every_s = 1.0
"""
SINKS = {
    "job+sink": '[sink]\npredictions = "out/predictions.ndjson"\n',
    "job+topic": '[sink]\npredictions = "speed-predictions"\nformat = "kafka"\n',
}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small and short: that it runs, not what it measures")
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--river-events", type=int, default=50_000)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--partitions", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--learners", nargs="+", default=["AUCRO", "AdaptiveAUCRO"])
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS, help="raw and river are always among them")
    parser.add_argument("--rate", type=int, default=5000)
    parser.add_argument("--seconds", type=int, default=20, help="of the measurement of latency")
    parser.add_argument("--only", nargs="+", choices=["rates", "latency"], default=["rates", "latency"])
    parser.add_argument("--bootstrap", help="a broker that runs; its topics are kept and used again")
    found = parser.parse_args()
    if found.quick:
        found.events, found.river_events, found.turns, found.seconds = 20_000, 2000, 1, 2
    return found


class Ways:
    """The ways through one topic."""

    def __init__(self, args, bootstrap, work, partitions):
        self._args, self._bootstrap, self._work, self._partitions = args, bootstrap, work, partitions
        self._topic = fill(bootstrap, args.events, partitions)
        self._empty = f"speed-empty-{partitions}"
        make_topic(bootstrap, self._empty, partitions)
        make_topic(bootstrap, "speed-predictions", 1)

    def all(self):
        """Return {name: callable, () -> {events, seconds, cpu_s, ...}}."""
        args = self._args
        ways = {name: lambda name=name: self._route(name, args.events) for name in WAYS[:4]}
        for learner in args.learners:
            ways[f"job, {learner}"] = lambda learner=learner: self._job(learner, "")
        for way, sink in SINKS.items():
            ways[f"{way}, {args.learners[0]}"] = lambda sink=sink: self._job(args.learners[0], sink)
        ways["river"] = lambda: self._route("river", args.river_events)
        wanted = {"raw", "river", *args.ways}
        return {name: run for name, run in ways.items() if name.partition(",")[0] in wanted}

    def start(self):
        """Run the jobs on an empty topic: compiled code gets into its cache."""
        for learner in self._args.learners:
            self._run(self._empty, learner, "")

    def _route(self, name, events):
        words = [name, self._bootstrap, self._topic, self._partitions, events]
        done = subprocess.run(
            [sys.executable, str(ROUTES), *map(str, words)], check=True, capture_output=True, text=True
        )
        return json.loads(done.stdout.splitlines()[-1])

    def _job(self, learner, sink):
        report = self._run(self._topic, learner, sink)
        assert report["events"] == self._args.events, report["events"]
        timing = report["timing"]
        return {
            "events": report["events"], "seconds": timing["seconds"], "cpu_s": timing["processor_seconds"],
            "auc": report["learners"][0]["metrics"]["auc"], "learner_s": timing["learners"][learner],
        }  # fmt: skip

    def _run(self, topic, learner, sink):
        """Return the report of a job."""
        path = self._work / "job.toml"
        path.write_text(JOB.format(topic=topic, bootstrap=self._bootstrap, learner=learner) + sink)
        command = [sys.executable, "-m", "streamlearn.runtime.cli", "run", path.name, "--fresh", "--json"]
        done = subprocess.run(command, cwd=self._work, check=True, capture_output=True, text=True)
        return json.loads(done.stdout.splitlines()[-1])["report"]


def rates(args, bootstrap, work):
    """Print and return the table of one topic after the other."""
    found = {}
    for partitions in args.partitions:
        topic = Ways(args, bootstrap, work, partitions)
        topic.start()
        ways = topic.all()
        turns = [{name: run() for name, run in ways.items()} for _ in range(args.turns)]
        found[partitions] = turns
        print(f"\n{args.events:,} events in {partitions} partition(s), {args.turns} turns: median (least to greatest)")
        print(f"{'':24s}{'thousand events/s':>24s}{'us/event, processor':>24s}{'of raw':>24s}{'times river':>24s}")
        for name in ways:
            print(line(name, turns), flush=True)
    return found


def line(name, turns):
    """Return one line of the table; ratios are those of the same turn."""
    speed = [turn[name]["events"] / turn[name]["seconds"] for turn in turns]
    raw = [turn["raw"]["events"] / turn["raw"]["seconds"] for turn in turns]
    river = [turn["river"]["events"] / turn["river"]["seconds"] for turn in turns]
    cells = [
        spread([one / 1e3 for one in speed]),
        spread([turn[name]["cpu_s"] / turn[name]["events"] * 1e6 for turn in turns]),
        spread([a / b for a, b in zip(speed, raw, strict=True)]),
        spread([a / b for a, b in zip(speed, river, strict=True)]),
    ]
    auc = f"   AUC {turns[0][name]['auc']:.4f}" if "auc" in turns[0][name] else ""
    return f"{name:24s}" + "".join(f"{cell:>24s}" for cell in cells) + auc


def spread(figures):
    return f" {statistics.median(figures):.3g} ({min(figures):.3g} to {max(figures):.3g})"


def latency(args, bootstrap, work):
    """Print and return the percentiles of the time from produce to prediction."""
    found = {}
    print(f"\nms from produce() to a prediction that can be read, {args.rate:,} events/s for {args.seconds} s")
    for learner in args.learners:
        took = latencies(work, bootstrap, learner, args.rate, args.rate * args.seconds) * 1e3
        figures = {f"p{q}": float(np.percentile(took, q)) for q in (50, 90, 99, 99.9)} | {"most": float(took.max())}
        print(f"{learner:24s}" + "  ".join(f"{name} {value:.1f}" for name, value in figures.items()), flush=True)
        found[learner] = figures
    return found


def main():
    args = arguments()
    machine = {"cores": os.cpu_count(), "python": platform.python_version(), "load_before": os.getloadavg()}
    print(f"{machine['cores']} cores, load {machine['load_before'][0]:.1f} before")
    with tempfile.TemporaryDirectory() as folder, broker(args.bootstrap, Path(folder) / "broker") as bootstrap:
        work = Path(folder)
        found = {"rates": rates, "latency": latency}
        document = {name: found[name](args, bootstrap, work) for name in args.only}
    machine["load_after"] = os.getloadavg()
    print(f"\nload {machine['load_after'][0]:.1f} behind; aimed at: {TARGETS}")
    OUT.mkdir(exist_ok=True)
    name = "kafka_speed_quick.json" if args.quick else "kafka_speed.json"
    (OUT / name).write_text(json.dumps({"command": sys.argv, "machine": machine, **document}, indent=1))


if __name__ == "__main__":
    main()
