"""LIBSVM text rows cut into labels, indexes and values, straight from the bytes.

A row of the plain shape is taken, every other one declined to the Python route. Values are parsed afterwards from their
spans, because kernels do not call across files.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamlearn.kernels.jit import kernel

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]
Codes = NDArray[np.int8]

TAKEN, DECLINED = 0, 1
MORE, OPEN = 0, 1
MAX_INDEX_DIGITS = 9
TAB, NEWLINE, RETURN, SPACE, HASH, COMMA, ZERO, COLON = 9, 10, 13, 32, 35, 44, 48, 58


@kernel
def byte(buf: Bytes, i: int) -> int:
    """Return buf[i] for i >= 0; the unsigned index saves the test for a negative one (15 % of the whole)."""
    return np.int64(buf[np.uint64(i)])  # type: ignore[return-value]


@kernel
def libsvm_rows(
    buf: Bytes,
    pos: int,
    end: int,
    line: int,
    max_bytes: int,
    labels: Ints,
    pointers: Ints,
    indexes: Ints,
    spans: Ints,
    places: Ints,
    status: Codes,
) -> tuple[int, int, int, int]:
    """Cut LIBSVM rows with ascending indexes until the block or the room is used up.

    Parameters
    ----------
    buf : uint8[n]
    pos, end : int
        Stretch to parse; ``buf[end - 1]`` is a newline.
    line : int
        Line number at `pos`.
    max_bytes : int
        Longest record.
    labels : int64[limit, 2], written
        Begin and end of each label.
    pointers : int64[limit + 1], written
        Row k has the entries ``pointers[k]`` to ``pointers[k + 1]``; a declined row has none.
    indexes : int64[room], written
    spans : int64[room, 2], written
        Begin and end of each value.
    places : int64[limit, 3], written
        Begin, end (without the line end) and line of each record.
    status : int8[limit], written

    Returns
    -------
    rows, pos, line, why : int
    """
    row, entry = 0, 0
    pointers[0] = 0
    while row < len(places) and pos < end:
        i = pos
        while byte(buf, i) == SPACE or byte(buf, i) == TAB or byte(buf, i) == RETURN:
            i += 1
        if byte(buf, i) == NEWLINE:
            pos = i + 1
            line += 1
            continue
        labels[row, 0] = i
        while (
            byte(buf, i) > SPACE
            and byte(buf, i) < 128
            and byte(buf, i) != COLON
            and byte(buf, i) != HASH
            and byte(buf, i) != COMMA
        ):
            i += 1
        labels[row, 1] = i
        first, previous = entry, -1
        good = i > labels[row, 0] and (
            byte(buf, i) == SPACE or byte(buf, i) == TAB or byte(buf, i) == RETURN or byte(buf, i) == NEWLINE
        )
        while good:
            while byte(buf, i) == SPACE or byte(buf, i) == TAB:
                i += 1
            if byte(buf, i) == NEWLINE or byte(buf, i) == RETURN:
                break
            begin, index = i, 0
            while i < begin + MAX_INDEX_DIGITS and byte(buf, i) >= ZERO and byte(buf, i) < ZERO + 10:
                index = index * 10 + byte(buf, i) - ZERO
                i += 1
            # A leading zero and a plain "0" differ; the Python route knows what to say.
            good = (
                i > begin
                and byte(buf, i) == COLON
                and index > previous
                and (byte(buf, begin) != ZERO or i == begin + 1)
            )
            if not good:
                break
            i += 1
            begin = i
            while byte(buf, i) > SPACE and byte(buf, i) < 128 and byte(buf, i) != COLON and byte(buf, i) != HASH:
                i += 1
            good = i > begin and byte(buf, i) <= SPACE
            if good and entry == len(indexes):
                # The room is used up. A lone row always fits, since an entry takes four bytes at least.
                pointers[row] = first
                return row, pos, line, MORE
            if good:
                indexes[entry], spans[entry, 0], spans[entry, 1] = index, begin, i
                previous = index
                entry += 1
        while byte(buf, i) != NEWLINE:
            good = good and byte(buf, i) == RETURN
            i += 1
        stop = i - 1 if i > pos and byte(buf, i - 1) == RETURN else i
        if stop - pos > max_bytes:
            return row, pos, line, OPEN
        if not good:
            entry = first
        places[row, 0], places[row, 1], places[row, 2] = pos, stop, line
        status[row] = TAKEN if good else DECLINED
        row += 1
        pointers[row] = entry
        line += 1
        pos = i + 1
    return row, pos, line, MORE
