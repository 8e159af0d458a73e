"""Where a job on a topic spends the processor: microseconds an event of each stage, by the thread it runs in.

    python perf/kafka_stages.py BOOTSTRAP [--learner AUCRO] [--events 1000000] [--partitions 1]

A job's threads are: the client's own (sockets and fetch responses), the one that fetches (message objects, and taking
them apart; under the global lock), the one that reads ahead (joins lines; the kernel that decodes holds no lock), and
the loop's (learning and counting pairs in kernels without the lock; checkpoints). Where the times of all threads
together exceed what the cores give, the cores are the bound; where one thread's do, that thread is. The clock is each
thread's own of the processor, read around whole batches. What is loaded before the loop starts is left out.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from kafka_speed import JOB
from kafka_topics import fill
from streamlearn.adapters.kafka import fetcher
from streamlearn.adapters.kafka.source import KafkaSource

from streamlearn.runtime import cli, tracks
from streamlearn.runtime.decode_ndjson import NdjsonDecoder
from streamlearn.runtime.loop import Loop

SPENT: dict[str, float] = defaultdict(float)
WALL: dict[str, float] = {}


def timed(owner, method: str, stage: str) -> None:
    """Add up the processor's time of the calling thread in a method."""
    original = getattr(owner, method)

    def call(*args, **named):
        began = time.thread_time()
        try:
            return original(*args, **named)
        finally:
            SPENT[stage] += time.thread_time() - began

    setattr(owner, method, call)


def watch_loop() -> None:
    """Note the clock and the processor's time of the process while the loop runs."""
    original = Loop.run

    def run(self, **named):
        SPENT.clear()  # a first block was learned to load the kernels
        began, cpu, thread = time.perf_counter(), time.process_time(), time.thread_time()
        try:
            return original(self, **named)
        finally:
            WALL["seconds"] = time.perf_counter() - began
            WALL["process"] = time.process_time() - cpu
            SPENT["loop"] = time.thread_time() - thread

    Loop.run = run


def listed(source) -> list:
    """Return the stretches as a list, so that their time is not that of whoever goes through them."""
    return lambda messages, **named: list(source(messages, **named))


def watch() -> None:
    """Put the clocks in place."""
    fetcher.stretches = listed(fetcher.stretches)
    timed(fetcher, "stretches", "taken apart")
    timed(fetcher.Fetcher, "_run", "fetch")
    timed(KafkaSource, "poll", "read ahead")
    timed(NdjsonDecoder, "decode", "decoded")
    timed(tracks.Track, "test_then_learn", "learned")
    timed(tracks.Track, "measure", "measured")
    timed(Loop, "_checkpoint", "saved")
    watch_loop()


def rows() -> list[tuple[str, float]]:
    """Return (stage, processor's seconds)."""
    client = WALL["process"] - SPENT["fetch"] - SPENT["read ahead"] - SPENT["loop"]
    parts = SPENT["learned"] + SPENT["measured"] + SPENT["saved"]
    return [
        ("client's threads", client),
        ("fetching thread", SPENT["fetch"]),
        ("  message objects", SPENT["fetch"] - SPENT["taken apart"]),
        ("  taken apart", SPENT["taken apart"]),
        ("reading ahead", SPENT["read ahead"]),
        ("  lines joined", SPENT["read ahead"] - SPENT["decoded"]),
        ("  decoded", SPENT["decoded"]),
        ("the loop", SPENT["loop"]),
        ("  learned", SPENT["learned"]),
        ("  AUC counted", SPENT["measured"]),
        ("  checkpoints", SPENT["saved"]),
        ("  else", SPENT["loop"] - parts),
        ("all", WALL["process"]),
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bootstrap")
    parser.add_argument("--learner", default="AUCRO")
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--partitions", type=int, default=1)
    args = parser.parse_args()
    topic = fill(args.bootstrap, args.events, args.partitions)
    watch()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "job.toml"
        path.write_text(JOB.format(topic=topic, bootstrap=args.bootstrap, learner=args.learner))
        sys.argv = ["streamlearn", "run", str(path), "--fresh", "--json"]
        with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
            cli.main()
    print(f"{args.learner}, {args.events:,} events, {args.partitions} partition(s): us of the processor an event")
    for stage, seconds in rows():
        print(f"{stage:20s}{seconds / args.events * 1e6:8.3f}")
    print(f"wall {WALL['seconds'] / args.events * 1e6:.3f} us an event, load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
