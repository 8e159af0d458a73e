"""What ten million events that wait for their labels cost: memory, disk, and time of each kind of operation.

    python perf/waiting.py [--events 10000000]

Times are the wall's and, in brackets, the processor's of the process, which say more where others work, too.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from pathlib import Path

import numpy as np

from streamlearn.runtime.waiting import EVENT, MATCHED, Entry, WaitingTable

BATCH = 4096
N_DOUBLES = 26  # 20 features and what a learner keeps


def us(spent: tuple[float, float], n: int) -> str:
    """Return the wall's and the processor's microseconds of one of `n`."""
    return f"{spent[0] / n * 1e6:.1f} us ({spent[1] / n * 1e6:.1f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=10_000_000)
    n_events = parser.parse_args().events
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "waiting.sqlite"
        table = WaitingTable(path, keep=2, remember=n_events)
        table.create()
        form = table.form("[]")
        payload = rng.normal(size=N_DOUBLES).tobytes()
        began = saved = time.perf_counter()
        cpu = time.process_time()
        worst = 0.0
        for start in range(0, n_events, BATCH):
            keys = [f"transaction-{i * 2654435761 % 2**32:08x}" for i in range(start, min(n_events, start + BATCH))]
            table.look_up(keys)
            table.add([Entry(table.next_op(), EVENT, key, float(start), form, payload) for key in keys])
            now = time.perf_counter()
            if now - saved > 5.0:
                table.flush()
                saved = time.perf_counter()
                worst = max(worst, saved - now)
        table.flush()
        filled = (time.perf_counter() - began, time.process_time() - cpu)
        chosen = rng.integers(0, n_events, 100_000 // BATCH * BATCH)
        began, cpu = time.perf_counter(), time.process_time()
        for start in range(0, len(chosen), BATCH):
            keys = [f"transaction-{int(i) * 2654435761 % 2**32:08x}" for i in chosen[start : start + BATCH]]
            known = [found for found in table.look_up(keys).values() if found.how is None]
            table.fetch([found.op for found in known])
            table.settle([(found.op, EVENT, table.next_op()) for found in known], MATCHED)
        table.flush()
        matched = (time.perf_counter() - began, time.process_time() - cpu)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        size = sum(file.stat().st_size for file in Path(folder).iterdir()) / 2**20
        table.close()
    print(f"{n_events:,} waiting events of {N_DOUBLES} doubles: {memory:,.0f} MiB of memory, {size:,.0f} MiB on disk")
    keeping, matching = us(filled, n_events), us(matched, len(chosen))
    print(f"keeping one: {keeping}; matching one, checkpoint included: {matching}; load {os.getloadavg()[0]:.1f}")
    print(f"the longest checkpoint (every 5 s): {worst:.2f} s")


if __name__ == "__main__":
    main()
