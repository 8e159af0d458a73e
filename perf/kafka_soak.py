"""A job on a real topic for hours, killed again and again: memory, lag, and that every event came out exactly once.

python perf/kafka_soak.py [--minutes 20] [--rate 20000] [--kill-every 60] [--quick]

Events are written at a fixed rate by one process and learned by another, whose predictions and dead letters go out in
transactions with its checkpoints. The latter is killed with SIGKILL and started again at once. In the end, what a
consumer with read_committed has seen is counted: each event once, as a prediction or as a dead letter. With one
partition, and as long as the topic still has all its events, the model is also compared, bit for bit, with one of a job
that reads the same topic undisturbed.

Lag is counted in committed events, so that it is never less than what comes between two checkpoints.
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic
from kafka_proof import Lag, Proof
from kafka_topics import broker

HERE = Path(__file__).parent
KEPT_MINUTES = 40  # a longer run lets the topic forget, and is not compared
SAMPLE_S = 1.0
STALL_S = 120.0
SEED = 5
JOB = """
name = "{name}"
[source]
kind = "kafka"
topics = ["{topic}"]
group = "{topic}-group"
[source.kafka]
"bootstrap.servers" = "{bootstrap}"
[features]
label = "label"
[labels]
key = "id"
[[learner]]
name = "AUCRO"
[evaluate]
metrics = ["auc", "logloss"]
window = 1000
picture = false
[checkpoint]
every_s = {every_s}
"""
OUTPUTS = """
[sink]
predictions = "{predictions}"
format = "kafka"
[bad_events]
topic = "{dead}"
"""


@dataclass
class Incarnation:
    """One life of the job."""

    process: subprocess.Popen
    began: float
    committed: int = 0
    caught_up_s: float | None = None
    rss: list[float] = field(default_factory=list)
    lag: list[int] = field(default_factory=list)

    def sample(self, committed: int, lag: int, caught_up: float) -> None:
        self.lag.append(lag)
        self.committed = self.committed or committed
        if self.caught_up_s is None and committed > self.committed and lag <= caught_up:
            self.caught_up_s = time.monotonic() - self.began
        if committed > self.committed:  # it is at work
            self.rss.append(rss_mib(self.process.pid))

    def line(self) -> str:
        """Return when it had caught up, its memory since it was at work (first, last, peak), and the largest lag."""
        caught = "never" if self.caught_up_s is None else f"{self.caught_up_s:.1f} s"
        first, last, peak = (self.rss[0], self.rss[-1], max(self.rss)) if self.rss else (0.0, 0.0, 0.0)
        return f"{caught:>8}  {first:7.0f} {last:7.0f} {peak:7.0f}  {max(self.lag, default=0):12,}"


def rss_mib(pid: int) -> float:
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.partition("VmRSS:")[2].split()[0]) / 1024 if "VmRSS:" in text else 0.0


class Soak:
    """The topic, the job and those who look on."""

    def __init__(self, bootstrap: str, folder: Path, options: argparse.Namespace) -> None:
        self.bootstrap, self.folder, self.options = bootstrap, folder, options
        self.topic = f"soak-{uuid.uuid4().hex[:8]}"
        self.compared = options.partitions == 1 and options.minutes <= KEPT_MINUTES
        outputs = [f"{self.topic}-{kind}" for kind in ("predictions", "dead")]
        self._make_topics(outputs)
        names = {"topic": self.topic, "bootstrap": bootstrap, "every_s": options.every_s}
        outs = OUTPUTS.format(predictions=outputs[0], dead=outputs[1])
        (folder / "job.toml").write_text(JOB.format(name="soak", **names) + outs)
        (folder / "whole.toml").write_text(JOB.format(name="whole", **names))
        self.proof = Proof(bootstrap, self.topic, options.partitions, outputs)
        self.lag = Lag(bootstrap, self.topic, options.partitions, f"{self.topic}-group")
        self.lives: list[Incarnation] = []
        self.kills = 0
        self._chance = random.Random(SEED)  # noqa: S311  when to kill is no secret

    def _make_topics(self, outputs: list[str]) -> None:
        kept = {} if self.compared else {"retention.ms": str(KEPT_MINUTES * 60_000), "segment.ms": "60000"}
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        wanted = [NewTopic(self.topic, self.options.partitions, config=kept)]
        wanted += [NewTopic(name, 1, config=kept) for name in outputs]
        for made in admin.create_topics(wanted).values():
            made.result(60)

    # -- the job -------------------------------------------------------------------------------------------------------
    def start(self, name: str, *arguments: str) -> subprocess.Popen:
        with (self.folder / "log.txt").open("ab") as log:
            command = [sys.executable, "-P", "-m", "streamlearn.runtime.cli", "run", f"{name}.toml", "--json"]
            command += arguments
            return subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log)

    def live(self) -> Incarnation:
        self.lives.append(Incarnation(self.start("job"), time.monotonic()))
        return self.lives[-1]

    def run_to_end(self, name: str) -> None:
        assert self.start(name, "--set", "source.until=end").wait() == 0, self.log()

    def log(self) -> str:
        return (self.folder / "log.txt").read_text()[-4000:]

    # -- the run -------------------------------------------------------------------------------------------------------
    def run(self, load: subprocess.Popen) -> None:
        """Kill and start the job until the time is over."""
        until = time.monotonic() + 60.0 * self.options.minutes
        while time.monotonic() < until:
            life = self.live()
            self._watch(life, min(until, self._next_kill()), load)
            if time.monotonic() < until:
                self._kill(life)

    def _next_kill(self) -> float:
        every = self.options.kill_every
        return time.monotonic() + every * self._chance.uniform(0.8, 1.2) if every else float("inf")

    def _watch(self, life: Incarnation, until: float, load: subprocess.Popen) -> None:
        sampled = 0.0
        while time.monotonic() < until:
            self.proof.look(0.1)
            assert load.poll() is None, "the load must go on"
            if time.monotonic() - sampled >= SAMPLE_S:
                sampled = time.monotonic()
                assert life.process.poll() is None, f"the job must go on, got:\n{self.log()}"
                life.sample(*self.lag.now(), self.options.rate * (2 * self.options.every_s + 1))

    def _kill(self, life: Incarnation) -> None:
        life.process.send_signal(signal.SIGKILL)
        life.process.wait()
        self.kills += 1
        print(f"{len(self.lives):4}  {life.line()}  {self.proof.read:13,}", flush=True)

    def drain(self, produced: int) -> float:
        """Wait until everything that was produced is committed; return the seconds."""
        began = moved = time.monotonic()
        before = -1
        while (left := self.lag.now()[1]) > 0:
            self.proof.look(0.1)
            if left != before:
                before, moved = left, time.monotonic()
            assert time.monotonic() - moved < STALL_S, f"lag must return to 0, got {left:,}\n{self.log()}"
        seconds = time.monotonic() - began
        assert sum(self.lag.ends().values()) == produced, "the topic must hold what was produced"
        return seconds

    def stop(self) -> None:
        life = self.lives[-1]
        life.process.send_signal(signal.SIGTERM)
        assert life.process.wait() == 130, self.log()
        self.proof.finish()
        print(f"{len(self.lives):4}  {life.line()}  {self.proof.read:13,}", flush=True)

    def same_model(self) -> bool:
        """Let the job come to its end, and another one that reads the topic from the beginning; compare the models."""
        for name in ("job", "whole"):
            self.run_to_end(name)
        made = [(self.folder / "out" / f"{name}.AUCRO.safetensors").read_bytes() for name in ("soak", "whole")]
        return made[0] == made[1]

    def close(self) -> None:
        if self.lives and self.lives[-1].process.poll() is None:
            self.lives[-1].process.kill()
            self.lives[-1].process.wait()
        self.proof.close()
        self.lag.close()


def soak(bootstrap: str, folder: Path, options: argparse.Namespace) -> bool:
    """Run it all and print the figures; return whether nothing was lost and nothing came twice."""
    run = Soak(bootstrap, folder, options)
    command = [sys.executable, str(HERE / "kafka_load.py"), bootstrap, run.topic, str(options.rate)]
    command += ["--partitions", str(options.partitions)]
    print("life  caught up   RSS MiB: first, last, peak   largest lag   outputs seen", flush=True)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as load:
        try:
            run.run(load)
            load.send_signal(signal.SIGTERM)
            produced = int(load.communicate()[0])
            drained = run.drain(produced)
            run.stop()
            return show(run, produced, drained)
        finally:
            load.kill()
            run.close()


def show(run: Soak, produced: int, drained: float) -> bool:
    """Print the figures; return whether they are as they must be."""
    ends = run.lag.ends()
    once, never, more = run.proof.verdict(ends)
    rss = [mib for life in run.lives for mib in life.rss]
    lasts = [life.rss[-1] for life in run.lives if life.rss] or [0.0]
    caught = sorted(life.caught_up_s for life in run.lives if life.caught_up_s is not None)
    print(f"{produced:,} events at {run.options.rate:,} a second in {run.options.minutes:g} minutes; {run.kills} kills")
    peak = max(rss, default=0.0)
    print(f"memory at the end of each life: {min(lasts):.0f} to {max(lasts):.0f} MiB; peak {peak:.0f} MiB")
    after = f"median {caught[len(caught) // 2]:.1f} s, longest {caught[-1]:.1f} s" if caught else "never"
    print(f"caught up after a start: {after} ({len(caught)} of {len(run.lives)} lives)")
    print(f"lag was 0 {drained:.1f} s after the last event")
    print(f"read_committed: {once:,} events exactly once, {never:,} never, {more:,} more than once")
    fine = once == produced and not never and not more
    if run.compared:
        same = run.same_model()
        print(f"model: {'bit-identical to' if same else 'NOT that of'} an undisturbed run over the same topic")
        fine = fine and same
    return fine


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--rate", type=int, default=20_000, help="events a second (20000)")
    parser.add_argument("--kill-every", type=float, default=60.0, help="seconds, on average; 0: never (60)")
    parser.add_argument("--every-s", type=float, default=1.0, help="seconds between two checkpoints (1)")
    parser.add_argument("--partitions", type=int, default=1)
    parser.add_argument("--bootstrap", help="address of a broker that is there already")
    parser.add_argument("--quick", action="store_true", help="a minute at 1,000 events a second, killed every 15 s")
    options = parser.parse_args()
    if options.quick:
        options.minutes, options.rate, options.kill_every = 1.0, 1000, 15.0
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kafka-soak-")))
        bootstrap = stack.enter_context(broker(options.bootstrap, folder / "cluster"))
        return 0 if soak(bootstrap, folder, options) else 1


if __name__ == "__main__":
    sys.exit(main())
