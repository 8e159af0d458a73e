"""Files cut into parts of about equal size, each read by the readers of whole files."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from streamlearn.contracts import Position, Source
from streamlearn.errors import SourceError
from streamlearn.runtime.bytestream import HEAD_BYTES, fingerprint
from streamlearn.runtime.decode import Columns
from streamlearn.runtime.rounds import Part
from streamlearn.runtime.sections import SourceSection
from streamlearn.runtime.sources import open_source

_BLOCK = 1 << 22
_PACKED = (".gz", ".zst")
WHOLE = 0
"""The end of a part that is a whole file: a compressed one can only be read from its start."""


def plan_parts(source: SourceSection, paths: Sequence[str], n_parts: int) -> list[Part]:
    """Cut files into about `n_parts` parts: bytes between two records, or rows of a Parquet file.

    The cut depends on the files alone, so it is the same for every run, executor and number of workers. A compressed
    file is one part.

    Parameters
    ----------
    source : SourceSection
    paths : sequence of str
        In the order in which they are read.
    n_parts : int

    Raises
    ------
    SourceError
        A file cannot be read.
    """
    size_of = _rows if source.kind == "parquet" else _bytes
    sizes = [size_of(path) for path in paths]
    step = max(1, -(-sum(sizes) // n_parts))
    parts: list[Part] = []
    for path, size in zip(paths, sizes, strict=True):
        if path.endswith(_PACKED):
            parts.append(Part(len(parts), path, 0, WHOLE))
            continue
        wanted = list(range(step, size, step))
        if source.kind != "parquet":
            wanted = list(_record_starts(path, wanted, quoted=source.kind == "csv"))
        cuts = sorted({0, *(cut for cut in wanted if cut < size), size})
        for begin, end in itertools.pairwise(cuts):
            parts.append(Part(len(parts), path, begin, end))
    return parts


def open_part(source: SourceSection, columns: Columns, part: Part) -> Source:
    """Return a source of the events of one part."""
    opened = open_source(
        source.kind,
        part.partition,
        columns,
        delimiter=source.delimiter,
        header=source.header,
        end=None if part.end == WHOLE else part.end,
    )
    # Rows of a Parquet file are numbered by their place, records of text from the part's first one.
    record = part.begin if source.kind == "parquet" else 0
    opened.seek((Position(part.partition, offset=part.begin, record=record),) if part.begin else ())
    return opened


def plan_fingerprint(parts: Sequence[Part]) -> str:
    """Return a hash of the cut and of the files' sizes and beginnings: a changed input is another job."""
    digest = hashlib.blake2b(digest_size=16)
    seen: set[str] = set()
    for part in parts:
        digest.update(f"{part.partition}\0{part.begin}\0{part.end}\0".encode())
        if part.partition not in seen:
            seen.add(part.partition)
            digest.update(f"{_bytes(part.partition)}\0{_head(part.partition)}\0".encode())
    return digest.hexdigest()


def _bytes(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError as error:
        raise SourceError(f"{path}: must be a readable file, got {error.strerror or error}") from None


def _head(path: str) -> str:
    with Path(path).open("rb") as file:
        return fingerprint(file.read(HEAD_BYTES))


def _rows(path: str) -> int:
    import polars as pl  # noqa: PLC0415 - 0.2 s that other sources need not pay

    try:
        return int(pl.scan_parquet(path, glob=False).select(pl.len()).collect().item())
    except (OSError, pl.exceptions.PolarsError) as error:
        raise SourceError(f"{path}: must be a readable Parquet file, got {error}") from None


def _record_starts(path: str, wanted: Sequence[int], *, quoted: bool) -> Iterator[int]:
    """Yield the first start of a record at or behind each of the wanted bytes; none where no more begins.

    A line end inside quotes ends no record. So files that may have quotes are read from their start, counting them (at
    the speed of memory); others are looked into near the wanted bytes only.
    """
    with Path(path).open("rb") as file:
        at, odd = 0, False
        for want in wanted:
            if want <= at:
                continue  # a record longer than a part
            if quoted:
                odd ^= _count_quotes(file, want - at) % 2 == 1
            else:
                file.seek(want)
            found, odd = _next_line(file, want, odd=odd if quoted else None)
            if found < 0:
                return
            at = found
            file.seek(at)
            yield at


def _count_quotes(file: BinaryIO, n_bytes: int) -> int:
    count = 0
    while n_bytes > 0:
        block = file.read(min(_BLOCK, n_bytes))
        if not block:
            break
        count += block.count(b'"')
        n_bytes -= len(block)
    return count


def _next_line(file: BinaryIO, at: int, *, odd: bool | None) -> tuple[int, bool]:
    """Return the byte behind the next line end outside quotes, or -1; `odd`: an odd number of quotes came before."""
    inside = bool(odd)
    while block := file.read(1 << 16):
        begin = 0
        while (stop := block.find(b"\n", begin)) >= 0:
            if odd is not None:
                inside ^= block.count(b'"', begin, stop) % 2 == 1
            if not inside:
                return at + stop + 1, False
            begin = stop + 1
        if odd is not None:
            inside ^= block.count(b'"', begin) % 2 == 1
        at += len(block)
    return -1, inside
