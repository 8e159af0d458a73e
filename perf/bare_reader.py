"""Poll a file source to its end, as the loop of a job does, and do nothing with the events.

python perf/bare_reader.py KIND PATH
"""

from __future__ import annotations

import json
import sys
import time

from streamlearn.runtime.sources import Columns, open_source

BATCH = 8192


def main():
    kind, path = sys.argv[1:]
    began = time.perf_counter()
    source = open_source(kind, path, Columns(label="label"))
    n = 0
    while (batch := source.poll(BATCH, 0.0)) is not None:
        n += len(batch)
    source.close()
    print(json.dumps({"events": n, "seconds": time.perf_counter() - began}))


if __name__ == "__main__":
    main()
