"""Numbers and flat JSON rows straight from the bytes.

A row kernel either takes a row or declines it; it never judges. What it takes is what the careful Python route would
have taken, bit for bit, so correctness never depends on it. Every buffer ends with a newline at ``end - 1``: scanning
stops there at the latest, which is why the inner loops carry no bound of their own. Eight more bytes must follow, of
any kind: words are loaded whole.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamlearn.kernels.jit import kernel

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]
Codes = NDArray[np.int8]
Floats = NDArray[np.float64]

SKIP, NUMBER, TEXT, LABEL = 0, 1, 2, 3
"""Roles of a column. The label's span is number 0, text columns (and the key) have the others."""
NO_LABEL, INTEGER, REAL, TEXT_LABEL, BOOLEAN = 0, 1, 2, 3, 4
"""Kinds of a label, and of a parsed number (0 = declined)."""
TAKEN, DECLINED = 0, 1
"""Status of a row."""
MORE, OPEN, NEW_KEY = 0, 1, 2
"""Why a row kernel returned: input or room used up; the record at `pos` does not end within bounds; unknown key."""
MARK, ORDER, FIRST = 0, 1, 2
FIRST_SHIFT = 20
"""A first appearance is kept as ``row << FIRST_SHIFT | place``; a row has fewer than 2**20 keys."""

TAB, NEWLINE, RETURN, SPACE, QUOTE, PLUS, COMMA, MINUS, DOT, ZERO, COLON = 9, 10, 13, 32, 34, 43, 44, 45, 46, 48, 58
BACKSLASH, OPENING, CLOSING = 92, 123, 125
LOWER_CASE = 32
MAX_DIGITS = 19  # 10**19 < 2**64
MAX_EXACT = np.uint64(2**53)
LOWEST_POWER, HIGHEST_POWER = -300, 288  # with 1 to 19 digits: never subnormal, never infinite
EXACT_TEN = 10.0 ** np.arange(23)
LOWEST_TWO = -1074
TWO = 2.0 ** np.arange(LOWEST_TWO, 972)
U0, U1, U2, U3, U4, U5, U6, U7, U8, U9, U10 = (np.uint64(k) for k in range(11))
U16, U24, U32, U40, U48, U56, U63, U64 = (np.uint64(k) for k in (16, 24, 32, 40, 48, 56, 63, 64))
HUNDRED, MYRIAD, MILLION = (np.uint64(10**k) for k in (2, 4, 6))
TENS = 10 ** np.arange(9, dtype=np.uint64)
ONES, ASCII_ZEROS, ASCII_BITS, ABOVE_NINE, HIGH_BITS, ODD_BITS, ODD_PAIRS, LOW_HALVES = (
    np.uint64(k * 0x0101010101010101) for k in (0x01, 0x30, 0x7F, 0x76, 0x80, 0x55, 0x33, 0x0F)
)
TWO_PAIRS, HIGH_PAIRS, LOW_PAIRS = (np.uint64(k) for k in (255 << 32 | 255, 10**6 << 32 | 100, 10**4 << 32 | 1))
SIGN = np.array([1.0, -1.0])
COMMAS, CLOSINGS = np.uint64(COMMA) * ONES, np.uint64(CLOSING) * ONES
LUCK = 4  # so many rows that are not in a row are tried as usual ones
LOW_BYTE, LOW_40 = np.uint64(255), np.uint64(2**40 - 1)
TRUE, FALSE, NULL = (np.uint64(int.from_bytes(text, "little")) for text in (b"true", b"false", b"null"))
LOW_32, ALL_ONES, LOW_9 = np.uint64(2**32 - 1), np.uint64(2**64 - 1), np.uint64(511)


def _powers_of_five() -> NDArray[np.uint64]:
    """Return the leading 128 bits of 5**q as (high, low) words, rounded as Lemire 2021, section 5 asks."""
    rows = []
    for q in range(LOWEST_POWER, HIGHEST_POWER + 1):
        power = 5 ** abs(q)
        bits = power.bit_length()  # for q < 0 the exponent of the next power of two as well: 5**-q is odd
        word = power << 128 >> bits if q >= 0 else (1 << (bits + 127 if q >= -27 else 2 * bits + 128)) // power + 1
        word >>= max(word.bit_length() - 128, 0)
        rows.append((word >> 64, word & (2**64 - 1)))
    return np.array(rows, dtype=np.uint64)


FIVE = _powers_of_five()


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
def _digits(buf: Bytes, i: int, stop: int, digits: np.uint64) -> tuple[np.uint64, int]:
    """Append the decimal digits at `i`, up to `stop`, to the number `digits`; return it and the index after them."""
    while i < stop:
        w = word(buf, i) ^ ASCII_ZEROS
        above_nine = ((w & ASCII_BITS) + ABOVE_NINE | w) & HIGH_BITS
        # The bits below the lowest flag, or all: eight for every leading digit.
        below = (above_nine ^ (above_nine - U1)) >> U1 if above_nine != U0 else ALL_ONES
        k = np.int64(_bits(below) >> U3)
        # Returns instead of breaks, here and below, save 4 ns of 23 a number.
        if k == 0:
            return digits, i
        if k > stop - i:  # noqa: PLR1730 - min() is part of those 4 ns
            k = stop - i  # type: ignore[assignment]
        w = w << (U64 - (np.uint64(k) << U3))
        w = w * U10 + (w >> U8)  # every second byte: a pair of digits
        pairs = (w & LOW_BYTE) * MILLION + (w >> U16 & LOW_BYTE) * MYRIAD + (w >> U32 & LOW_BYTE) * HUNDRED
        digits = digits * TENS[np.uint64(k)] + pairs + (w >> U48 & LOW_BYTE)
        i += k  # type: ignore[assignment]
        if k < 8:
            return digits, i
    return digits, i


@kernel
def _product(a: np.uint64, b: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Return the low and high words of a * b (no 128-bit integer exists here)."""
    a_low, a_high, b_low, b_high = a & LOW_32, a >> U32, b & LOW_32, b >> U32
    low, cross, other = a_low * b_low, a_low * b_high, a_high * b_low
    middle = (low >> U32) + (cross & LOW_32) + (other & LOW_32)
    high = a_high * b_high + (cross >> U32) + (other >> U32) + (middle >> U32)
    return (middle << U32) | (low & LOW_32), high


@kernel
def _scaled(digits: np.uint64, q: int) -> tuple[float, bool]:
    """Return the double nearest to digits * 10**q, ties to even, and whether that is certain.

    Lemire 2021, "Number parsing at a gigabyte per second", algorithm 1. The rare product whose low word is all ones is
    declined rather than proved harmless.
    """
    word, zeros = digits, 0
    for step in (32, 16, 8, 4, 2, 1):
        if word >> np.uint64(64 - step) == U0:
            word = word << np.uint64(step)
            zeros += step
    low, high = _product(word, FIVE[q - LOWEST_POWER, 0])
    if high & LOW_9 == LOW_9:
        carried = _product(word, FIVE[q - LOWEST_POWER, 1])[1]
        room = ALL_ONES - low
        high = high + U1 if carried > room else high
        low = carried - room - U1 if carried > room else low + carried
    if low == ALL_ONES:
        return 0.0, False
    upper = high >> U63
    drop = upper + U9
    mantissa = high >> drop
    if low <= U1 and -4 <= q <= 23 and mantissa & U3 == U1 and mantissa << drop == high:
        mantissa = mantissa - U1  # a tie: to even
    mantissa = (mantissa + (mantissa & U1)) >> U1
    # floor(q * log2(10)) + 63, exact for |q| < 400
    exponent = ((217706 * q) >> 16) + 63 + np.int64(upper) - zeros
    return np.float64(mantissa) * TWO[exponent - 52 - LOWEST_TWO], True


@kernel
def number(buf: Bytes, i: int, strict: bool) -> tuple[float, int, int]:
    """Parse the decimal number at `i`.

    Parameters
    ----------
    buf : uint8[n]
        Must hold a byte that cannot belong to a number somewhere after `i`.
    i : int
    strict : bool
        JSON's grammar (no plus sign, no leading zeros, digits around the point) instead of ``float``'s.

    Returns
    -------
    value : float64
        Equal to Python's ``float`` of the text, bit for bit.
    end : int
        Index after the number.
    kind : int
        INTEGER, REAL, or 0 where declined: not a number, more than 19 digits, or an extreme exponent.
    """
    negative = byte(buf, i) == MINUS
    if negative or (byte(buf, i) == PLUS and not strict):
        i += 1
    begin = i
    while byte(buf, i) == ZERO:
        i += 1
    zeros = i - begin
    digits, i = _digits(buf, i, i + MAX_DIGITS, U0)
    whole = i - begin - zeros
    if strict and (zeros > 1 or (zeros == 1 and whole > 0) or zeros + whole == 0):
        return 0.0, i, 0
    kind, fraction, exponent = INTEGER, 0, 0
    if byte(buf, i) == DOT:
        kind = REAL
        i += 1
        point = i
        if whole == 0:
            while byte(buf, i) == ZERO:
                i += 1
        digits, i = _digits(buf, i, i + MAX_DIGITS - whole, digits)
        fraction = i - point
        exponent = -fraction
    if zeros + whole + fraction == 0 or (strict and kind == REAL and fraction == 0):
        return 0.0, i, 0
    if byte(buf, i) >= ZERO and byte(buf, i) < ZERO + 10:
        return 0.0, i, 0
    if byte(buf, i) | LOWER_CASE == 101:  # e, E
        kind = REAL
        i += 1
        down = byte(buf, i) == MINUS
        if down or byte(buf, i) == PLUS:
            i += 1
        start = i
        power, i = _digits(buf, i, i + 5, U0)
        if i == start or i == start + 5:
            return 0.0, i, 0
        exponent += -np.int64(power) if down else np.int64(power)  # type: ignore[assignment]
    if digits == U0:
        return -0.0 if negative else 0.0, i, kind
    certain = LOWEST_POWER <= exponent <= HIGHEST_POWER
    if digits <= MAX_EXACT and -22 <= exponent <= 22:
        # Both factors are exact doubles, so one rounding is all there is (Clinger 1990).
        value = np.float64(digits) * EXACT_TEN[exponent] if exponent >= 0 else np.float64(digits) / EXACT_TEN[-exponent]
    elif certain:
        value, certain = _scaled(digits, exponent)
    else:
        value = 0.0
    return -value if negative else value, i, kind if certain else 0


@kernel
def cells(
    buf: Bytes, spans: Ints, label: int, values: Floats, label_values: Floats, label_kinds: Codes, status: Codes
) -> None:
    """Parse the number cells of rows that were cut into spans; decline the rows in which one is not a number.

    Parameters
    ----------
    buf : uint8[n]
    spans : int64[n_rows, n_spans, 2]
        Begin and end of each cell; the first ``values.shape[1]`` are numbers.
    label : int
        Which span is the label, or -1.
    values : float64[n_rows, n_numbers], written
    label_values, label_kinds : float64[n_rows], int8[n_rows], written
        The kind is NO_LABEL for an empty cell, INTEGER, REAL or TEXT_LABEL.
    status : int8[n_rows], changed
    """
    for row in range(len(status)):
        if status[row] != TAKEN:
            continue
        for k in range(values.shape[1]):
            values[row, k], stop, kind = number(buf, spans[row, k, 0], False)
            if kind == 0 or stop != spans[row, k, 1]:
                status[row] = DECLINED
                break
        if label >= 0:
            begin, end = spans[row, label, 0], spans[row, label, 1]
            label_values[row], stop, kind = number(buf, begin, False)
            if begin == end:
                label_kinds[row] = NO_LABEL
            else:
                label_kinds[row] = kind if stop == end and kind != 0 else TEXT_LABEL


@kernel
def _n_digits(w: np.uint64) -> int:
    """Return how many digits eight characters begin with, given without the bits of ASCII_ZEROS."""
    above_nine = ((w & ASCII_BITS) + ABOVE_NINE | w) & HIGH_BITS
    below = (above_nine ^ (above_nine - U1)) >> U1 if above_nine != U0 else ALL_ONES
    return np.int64(_bits(below) >> U3)  # type: ignore[return-value]


@kernel
def _of_digits(w: np.uint64, k: int) -> np.uint64:
    """Return the number that the first k of such characters make, 1 <= k <= 8."""
    w = w << (U64 - (np.uint64(k) << U3))
    w = w * U10 + (w >> U8)  # every second byte: a pair of digits
    return ((w & TWO_PAIRS) * HIGH_PAIRS + (w >> U16 & TWO_PAIRS) * LOW_PAIRS) >> U32


@kernel
def _find(buf: Bytes, i: int, eight: np.uint64) -> int:
    """Return where the byte that `eight` repeats comes first among the 16 bytes at `i`; -1 where it does not."""
    first, second = word(buf, i) ^ eight, word(buf, i + 8) ^ eight
    first, second = (first - ONES) & ~first & HIGH_BITS, (second - ONES) & ~second & HIGH_BITS
    if first | second == U0:
        return -1
    shift = 0 if first != U0 else 8
    flags = first if first != U0 else second
    return i + shift + np.int64(_bits((flags ^ (flags - U1)) >> U1) >> U3)  # type: ignore[return-value]


@kernel
def _usual_rows(
    buf: Bytes, pos: int, end: int, line: int, max_bytes: int, words: NDArray[np.uint64], keys: Ints, row: int,
    values: Floats, spans: Ints, label_values: Floats, label_kinds: Codes, places: Ints, status: Codes,
) -> tuple[int, int, int]:  # fmt: skip
    """Parse lines like `ndjson_rows` as long as they have all known keys in their order, each with a number.

    Half the time of the general way. The end of a number is looked for first, so that the next one is begun before this
    one is worked out; its sign, its length and a leading zero, which are as good as random, are no branch. Numbers of
    more than 8 digits on a side of the point go to `number`. Returns row, pos and line behind the last such row.
    """
    n_keys, good = len(keys) - 1, True
    while row < len(places) and pos < end and byte(buf, pos) == OPENING:
        i, label, label_kind, label_begin, label_end = pos, 0.0, NO_LABEL, -1, -1
        for k in range(n_keys):
            i += 1
            if byte(buf, i) == SPACE:
                i += 1
            good = byte(buf, i) == QUOTE
            i += 1
            at = i
            for j in range(keys[k, 0], keys[k + 1, 0]):
                good = good and (word(buf, at) ^ words[np.uint64(j), 0]) & words[np.uint64(j), 1] == U0
                at += 8
                if not good:
                    break
            if not good or byte(buf, i + keys[k, 1]) != COLON or i + keys[k, 1] + 18 > len(buf):
                good = False
                break
            i += keys[k, 1] + 1
            if byte(buf, i) == SPACE:
                i += 1
            last = k == n_keys - 1
            stop, kind, value = _find(buf, i, CLOSINGS if last else COMMAS), 0, 0.0
            negative = np.uint64(byte(buf, i) == MINUS)
            begin = i + np.int64(negative)
            w = word(buf, begin) ^ ASCII_ZEROS
            whole = _n_digits(w)
            fraction = stop - begin - whole - 1
            zero = ((w & LOW_BYTE) - U1) >> U63  # whether it begins with one
            if whole > 0 and zero * np.uint64(whole) <= U1 and fraction >= -1:
                digits = _of_digits(w, whole)
                if fraction == -1:
                    value, kind = np.float64(np.int64(digits)) * SIGN[negative], INTEGER
                elif byte(buf, begin + whole) == DOT and fraction > 0:
                    w = word(buf, begin + whole + 1) ^ ASCII_ZEROS
                    if fraction <= _n_digits(w):
                        digits = digits * TENS[np.uint64(fraction)] + _of_digits(w, fraction)
                        value = np.float64(np.int64(digits)) / EXACT_TEN[np.uint64(fraction)] * SIGN[negative]
                        kind = REAL if digits <= MAX_EXACT else 0
            if kind == 0:
                value, stop, kind = number(buf, i, True)
            role = keys[k, 2]
            good = kind != 0 and byte(buf, stop) == (CLOSING if last else COMMA) and role in (NUMBER, LABEL)
            if not good:
                break
            if role == NUMBER:
                values[row, np.uint64(keys[k, 3])] = value
            else:
                label, label_kind, label_begin, label_end = value, kind, i, stop
            i = stop
        stop = i + 1
        newline = stop + 1 if byte(buf, stop) == RETURN else stop
        if not good or byte(buf, newline) != NEWLINE or stop - pos > max_bytes:
            values[row] = 0.0
            break
        label_kinds[row] = label_kind
        if label_begin >= 0:
            label_values[row], spans[row, 0, 0], spans[row, 0, 1] = label, label_begin, label_end
        places[row, 0], places[row, 1], places[row, 2] = pos, stop, line
        status[row] = TAKEN
        row, line, pos = row + 1, line + 1, newline + 1
    return row, pos, line


@kernel
def ndjson_rows(
    buf: Bytes, pos: int, end: int, line: int, max_bytes: int, utf8: bool, words: NDArray[np.uint64], keys: Ints,
    scratch: Ints, first_row: int, values: Floats, spans: Ints, label_values: Floats, label_kinds: Codes, places: Ints,
    status: Codes,
) -> tuple[int, int, int, int]:  # fmt: skip
    """Parse lines of flat JSON objects whose keys are known, in any order.

    Parameters
    ----------
    buf, pos, end, line, max_bytes, utf8
        As in `decode_csv.csv_rows`.
    words : uint64[n_words, 2]
        The known keys as they are written, with the closing quote; beside each word the mask of the bytes that count.
    keys : int64[n_keys + 1, 4]
        First word (also of the end), bytes with the quote, role, and column of `values` or span (0 is the label's).
    scratch : int64[n_keys, 3], changed
        Where each key was last seen (start below 0), the keys of the present row in order, and each key's first
        appearance in a row that was taken (start at the largest integer).
    first_row : int
        Row to go on with.
    values : float64[limit, n_numbers], written
        Zero where a key is absent (must come zeroed).
    spans : int64[limit, n_spans, 2], written
        Begin and end of a text (without quotes) or another token; untouched where absent.
    label_values, label_kinds : float64[limit], int8[limit], written
    places, status
        As in `decode_csv.csv_rows`.

    Returns
    -------
    rows, pos, line, why : int
    """
    row, n_keys, usual, luck = first_row, len(keys) - 1, False, LUCK
    while row < len(places) and pos < end:
        if luck > 0 and n_keys:
            before = row
            row, pos, line = _usual_rows(
                buf, pos, end, line, max_bytes, words, keys, row, values, spans, label_values, label_kinds, places,
                status,
            )  # fmt: skip
            luck = luck - 1 if row == before else LUCK
            if row > before and not usual:
                for place in range(n_keys):
                    scratch[place, FIRST] = min(scratch[place, FIRST], before << FIRST_SHIFT | place)
                usual = True
            if row == len(places) or pos >= end:
                break
        i = pos
        while byte(buf, i) == SPACE or byte(buf, i) == TAB or byte(buf, i) == RETURN:
            i += 1
        if byte(buf, i) == NEWLINE:
            pos, line = i + 1, line + 1
            continue
        good, unknown, in_order, count, expected = byte(buf, i) == OPENING, False, True, 0, 0
        label_kinds[row] = NO_LABEL
        while good:
            i += 1
            while byte(buf, i) == SPACE or byte(buf, i) == TAB:
                i += 1
            if byte(buf, i) != QUOTE:
                good = False
                break
            i += 1
            key = -1
            for attempt in range(n_keys):
                k = expected + attempt
                k = k - n_keys if k >= n_keys else k
                j, at, last = keys[k, 0], i, keys[k + 1, 0]
                while j < last and (word(buf, at) ^ words[j, 0]) & words[j, 1] == U0:
                    at += 8
                    j += 1
                if j == last:
                    key, i = k, i + keys[k, 1]
                    break
            if key < 0:
                while byte(buf, i) >= SPACE and byte(buf, i) != QUOTE and byte(buf, i) != BACKSLASH:
                    i += 1
                unknown, good = byte(buf, i) == QUOTE, False
                break
            in_order = in_order and key == expected
            expected = key + 1 if key + 1 < n_keys else 0
            while byte(buf, i) == SPACE or byte(buf, i) == TAB:
                i += 1
            if byte(buf, i) != COLON or scratch[key, MARK] == pos:
                good = False
                break
            scratch[key, MARK] = pos
            scratch[count, ORDER] = key
            count += 1
            i += 1
            while byte(buf, i) == SPACE or byte(buf, i) == TAB:
                i += 1
            role, begin, stop, kind, value, null = keys[key, 2], i, i, 0, 0.0, False
            if byte(buf, i) == QUOTE:
                begin, i = i + 1, i + 1
                while (
                    byte(buf, i) >= SPACE
                    and byte(buf, i) != QUOTE
                    and byte(buf, i) != BACKSLASH
                    and (utf8 or byte(buf, i) < 128)
                ):
                    i += 1
                stop, kind, good = i, TEXT_LABEL, byte(buf, i) == QUOTE and role != NUMBER
                i += 1 if byte(buf, i) == QUOTE else 0  # never over a line end
            elif word(buf, i) & LOW_32 == TRUE:
                i += 4
                stop, kind, value = i, BOOLEAN, 1.0
            elif word(buf, i) & LOW_40 == FALSE:
                i += 5
                stop, kind = i, BOOLEAN
            elif word(buf, i) & LOW_32 == NULL:
                i += 4
                null, good = True, role != NUMBER
            else:
                value, i, kind = number(buf, i, True)
                good, stop = kind != 0, i
            if role == NUMBER:
                values[row, keys[key, 3]] = value
            elif role != SKIP and not null:
                spans[row, keys[key, 3], 0] = begin
                spans[row, keys[key, 3], 1] = stop
                if role == LABEL:
                    label_values[row], label_kinds[row] = value, kind
            while byte(buf, i) == SPACE or byte(buf, i) == TAB:
                i += 1
            if byte(buf, i) != COMMA:
                break
        good = good and byte(buf, i) == CLOSING
        if good:
            i += 1
            while byte(buf, i) == SPACE or byte(buf, i) == TAB or byte(buf, i) == RETURN:
                i += 1
            good = byte(buf, i) == NEWLINE
        if not good:
            while byte(buf, i) != NEWLINE:
                i += 1
        stop = i - 1 if i > pos and byte(buf, i - 1) == RETURN else i
        if stop - pos > max_bytes:
            return row, pos, line, OPEN
        places[row, 0], places[row, 1], places[row, 2] = pos, stop, line
        status[row] = TAKEN if good else DECLINED
        if good and not (usual and in_order and count == n_keys):
            for place in range(count):
                key = scratch[place, ORDER]
                scratch[key, FIRST] = min(scratch[key, FIRST], row << FIRST_SHIFT | place)
            usual = in_order and count == n_keys
        if unknown:
            return row, pos, line, NEW_KEY
        row, line, pos = row + 1, line + 1, i + 1
    return row, pos, line, MORE
