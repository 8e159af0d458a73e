"""The cluster that the measurements of Spark run on, and the time of all its processes."""

from __future__ import annotations

import os
import time
from pathlib import Path

from streamlearn.runtime.executor import LocalExecutor
from streamlearn.runtime.rounds import Executor

MASTER = "local-cluster[2,1,1024]"
_TICKS = os.sysconf("SC_CLK_TCK")


def open_engine(slices: int | None = None) -> Executor:
    """Two executors of one core and 1 GiB each."""
    from streamlearn.adapters.spark import SparkExecutor, open_session  # noqa: PLC0415 - an extra

    # Workers import the tasks beside this file.
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    session = open_session(MASTER)
    session.sparkContext.setLogLevel("ERROR")
    return SparkExecutor(session, owns=True, slices=slices)


class Engines:
    """The executors, each started when it is first asked for."""

    def __init__(self, slices: int | None = None) -> None:
        self._slices = slices
        self._open: dict[str, Executor] = {}

    def __getitem__(self, name: str) -> Executor:
        if name not in self._open:
            began = time.perf_counter()
            self._open[name] = LocalExecutor(2) if name == "local" else open_engine(self._slices)
            print(f"{name} began in {time.perf_counter() - began:.0f} s", flush=True)
        return self._open[name]

    def close(self) -> None:
        for executor in self._open.values():
            executor.close()


def processor_seconds() -> float:
    """Seconds of the processors that this process and all that it started have used."""
    stats = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended while we looked
        # State, parent, ...; 11 to 14 are user and system time, its own and of the children it waited for.
        stats[int(path.parent.name)] = int(fields[1]), sum(map(int, fields[11:15]))
    ours, total = {os.getpid()}, 0
    while True:
        more = {pid for pid, (parent, _) in stats.items() if parent in ours} - ours
        if not more:
            break
        ours |= more
    for pid in ours:
        total += stats[pid][1]
    return total / _TICKS
