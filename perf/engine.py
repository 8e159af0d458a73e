"""The measured table of the engine: every case beside its peer, in turns, in one run, with the AUC of both.

    python perf/engine.py [--quick] [--only NAME ...] [--repeats 7] [--rows 1000000] [--data FOLDER] [--work FOLDER]

Cases (for --only): dicts, batches, adaptive, csv, ndjson, checkpoint, memory. Ours and the peer take turns, so that a
busy machine slows both alike; a line shows the median ratio of the turns and their spread (lowest to highest). In one
process the clock is the processor's (one thread on either side), between processes the wall's. Kernels are compiled and
cached before anything is timed; a run's start-up (imports, loading what is cached) is part of the whole-process cases.
Needs vowpalwabbit for its rows; they are left out without it. Writes perf/out/engine.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

import engine_files
import engine_learners
import engine_steady
from engine_row import Settings

ROOT = Path(__file__).parent.parent
DATA = ROOT.parent / "shared" / "data"
OUT = Path(__file__).parent / "out"
CASES = {**engine_learners.CASES, **engine_files.CASES, **engine_steady.CASES}
QUICK = {"repeats": 2, "rows": 20_000, "block": 300, "memory_files": 2}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small and short: that it runs, not what it measures")
    parser.add_argument("--only", nargs="*", choices=list(CASES), default=list(CASES))
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the files")
    parser.add_argument("--data", type=Path, default=DATA, help="real data; made-up data alone where it is not there")
    parser.add_argument("--work", type=Path, default=None, help="where the files go; a temporary folder if not given")
    return parser.parse_args()


def main():
    args = arguments()
    with tempfile.TemporaryDirectory(dir=args.work) as work:
        settings = Settings(Path(work), args.data, repeats=args.repeats, rows=args.rows)
        if args.quick:
            settings = Settings(Path(work), args.data, **QUICK)
        machine = {"cores": os.cpu_count(), "python": platform.python_version(), "load_before": os.getloadavg()}
        print(f"{machine['cores']} cores, load {machine['load_before'][0]:.1f}, {settings.repeats} turns")
        rows = []
        for name in args.only:
            began = time.perf_counter()
            for row in CASES[name](settings):
                print(row, flush=True)
                rows.append(row)
            print(f"    ({name}: {time.perf_counter() - began:.0f} s)")
    machine["load_after"] = os.getloadavg()
    document = {"command": sys.argv, "machine": machine, "rows": [{**asdict(r), "reached": r.reached} for r in rows]}
    OUT.mkdir(exist_ok=True)
    (OUT / ("engine_quick.json" if args.quick else "engine.json")).write_text(json.dumps(document, indent=1))


if __name__ == "__main__":
    main()
