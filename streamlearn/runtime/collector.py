"""Python's collector of cycles, told that a job makes very many objects and hardly any cycles."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

YOUNG = 50_000


@contextmanager
def seldom_collecting() -> Iterator[None]:
    """Let the collector look less often within.

    By default it goes through the young objects whenever 700 more of them live. Messages of a broker come by the
    thousand and go at once, so it finds nothing, and takes 0.2 us of the 0.5 us that it takes to fetch a message.
    """
    before = gc.get_threshold()
    if 0 < before[0] < YOUNG:
        gc.set_threshold(YOUNG, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
