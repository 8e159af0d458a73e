"""CSV records cut into cells, straight from the bytes.

The kernel takes the plain shape (cells without inner quotes or line ends) and declines every other row to the csv
module; it never judges. Numbers are parsed afterwards from the spans, because kernels do not call across files.
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
FIELD_LIMIT = 131_072
"""Longer rows are left to the csv module, which refuses longer fields."""
NEWLINE, RETURN, QUOTE = 10, 13, 34
U0, U1, U2, U3, U4, U5, U6, U7, U8 = (np.uint64(k) for k in range(9))
U16, U24, U32, U40, U48, U56 = (np.uint64(k) for k in (16, 24, 32, 40, 48, 56))
ONES, QUOTES, BLANKS, HIGH_BITS, ODD_BITS, ODD_PAIRS, LOW_HALVES = (
    np.uint64(k * 0x0101010101010101) for k in (0x01, QUOTE, 0x20, 0x80, 0x55, 0x33, 0x0F)
)


@kernel
def byte(buf: Bytes, i: int) -> int:
    """Return buf[i] for i >= 0; the unsigned index saves the test for a negative one (15 % of the whole)."""
    return np.int64(buf[np.uint64(i)])  # type: ignore[return-value]


@kernel
def word(buf: Bytes, i: int) -> np.uint64:
    """Return the eight bytes at `i`, the first one lowest; the compiler makes it a single load."""
    u = np.uint64(i)
    low = np.uint64(buf[u]) | np.uint64(buf[u + U1]) << U8 | np.uint64(buf[u + U2]) << U16
    low |= np.uint64(buf[u + U3]) << U24 | np.uint64(buf[u + U4]) << U32 | np.uint64(buf[u + U5]) << U40
    return low | np.uint64(buf[u + U6]) << U48 | np.uint64(buf[u + U7]) << U56


@kernel
def _bits(v: np.uint64) -> np.uint64:
    """Count the bits that are set; left alone in a function, the compiler knows it as one instruction."""
    v = v - ((v >> U1) & ODD_BITS)
    v = (v & ODD_PAIRS) + ((v >> U2) & ODD_PAIRS)
    return (((v + (v >> U4)) & LOW_HALVES) * ONES) >> U56


@kernel
def _plain_end(buf: Bytes, i: int, delimiters: np.uint64) -> int:
    """Return the index of the next delimiter, quote, control character or byte beyond ASCII, eight bytes at a time."""
    while True:
        w = word(buf, i)
        # A byte that is zero after the xor, or below a blank, borrows into its own high bit; the lowest one is exact.
        d, q = w ^ delimiters, w ^ QUOTES
        flags = (((d - ONES) & ~d) | ((q - ONES) & ~q) | ((w - BLANKS) & ~w) | w) & HIGH_BITS
        if flags != U0:
            return i + np.int64(_bits((flags ^ (flags - U1)) >> U1) >> U3)  # type: ignore[return-value]
        i += 8


@kernel
def csv_record_end(buf: Bytes, pos: int, end: int, delimiter: int) -> tuple[int, int]:
    """Find the newline that ends the record at `pos`.

    Quotes open at the start of a field only, as in the csv module; elsewhere they are characters.

    Parameters
    ----------
    buf : uint8[n]
    pos, end : int
    delimiter : int

    Returns
    -------
    index : int
        -1 where no newline outside quotes comes before `end`.
    newlines : int
        Lines the record covers.
    """
    quoted, fresh, newlines, i = False, True, 0, pos
    while i < end:
        c = byte(buf, i)
        if quoted:
            if c == QUOTE:
                if i + 1 < end and byte(buf, i + 1) == QUOTE:
                    i += 1
                else:
                    quoted = False
            elif c == NEWLINE:
                newlines += 1
            fresh = False
        elif c == NEWLINE:
            return i, newlines + 1
        else:
            quoted = fresh and c == QUOTE
            fresh = c == delimiter
        i += 1
    return -1, newlines


@kernel
def csv_rows(
    buf: Bytes,
    pos: int,
    end: int,
    line: int,
    max_bytes: int,
    delimiter: int,
    utf8: bool,
    targets: Ints,
    spans: Ints,
    places: Ints,
    status: Codes,
) -> tuple[int, int, int, int]:
    """Cut CSV records into cells until the block or the room for rows is used up.

    Parameters
    ----------
    buf : uint8[n]
    pos, end : int
        Stretch to parse; ``buf[end - 1]`` is a newline, and eight more bytes follow.
    line : int
        Line number at `pos`.
    max_bytes : int
        Longest record.
    delimiter : int
    utf8 : bool
        Whether `buf` is known to be valid UTF-8; otherwise text beyond ASCII is declined.
    targets : int64[n_columns]
        Which span each column fills; -1 for none.
    spans : int64[limit, n_spans, 2], written
        Begin and end of each cell in `buf`, without enclosing quotes.
    places : int64[limit, 3], written
        Begin, end (without the line end) and line of each record.
    status : int8[limit], written
        TAKEN or DECLINED.

    Returns
    -------
    rows, pos, line : int
    why : int
        OPEN where the record at `pos` does not end within `max_bytes` or before `end`.
    """
    row, last, delimiters = 0, len(targets) - 1, np.uint64(delimiter) * ONES
    while row < len(places) and pos < end:
        if byte(buf, pos) == NEWLINE or (byte(buf, pos) == RETURN and byte(buf, pos + 1) == NEWLINE):
            pos += 1 if byte(buf, pos) == NEWLINE else 2
            line += 1
            continue
        i, stop, lines, good = pos, pos, 1, True
        for column in range(last + 1):
            quoted = byte(buf, i) == QUOTE
            if quoted:
                i += 1
            begin = i
            while True:
                i = _plain_end(buf, i, delimiters)
                c = byte(buf, i)
                if c == delimiter or c == RETURN:  # noqa: PLR1714 - for the compiler
                    plain = quoted
                else:
                    plain = c not in (NEWLINE, QUOTE, 0) and (c < 128 or utf8)
                if not plain:
                    break
                i += 1
            target = targets[column]
            if target >= 0:
                spans[row, target, 0] = begin
                spans[row, target, 1] = i
            if quoted:
                good = c == QUOTE
                if not good:
                    break
                i += 1
            if column < last:
                good = byte(buf, i) == delimiter
                i += 1
            else:
                stop = i
                if byte(buf, i) == RETURN:
                    i += 1
                good = byte(buf, i) == NEWLINE
            if not good:
                break
        if not good or stop - pos > min(max_bytes, FIELD_LIMIT):
            good = False
            # One byte for the newline, one for a carriage return before it.
            i, lines = csv_record_end(buf, pos, min(end, pos + max_bytes + 2), delimiter)
            stop = i - 1 if i > pos and byte(buf, i - 1) == RETURN else i
            if i < 0 or stop - pos > max_bytes:
                return row, pos, line, OPEN
        places[row, 0], places[row, 1], places[row, 2] = pos, stop, line
        status[row] = TAKEN if good else DECLINED
        row += 1
        line += lines
        pos = i + 1
    return row, pos, line, MORE
