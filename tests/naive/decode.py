"""Slow, obvious decoding: one record at a time with the standard library."""

from __future__ import annotations

import csv
import io
import json
import math
import string

WHITE = " \t"


def number(text):
    """Return the float of a decimal number, None for every other text (float() alone takes nan, 1_000 and more)."""
    text = text.strip(WHITE)
    if not text or any(c not in string.digits + "+-.eE" for c in text):
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def label(text):
    if text.strip(WHITE).lower() in {"", "nan"}:
        return None
    value = number(text)
    if value is None:
        return text
    return int(text) if text.strip(WHITE).lstrip("+-").isdigit() else value


def csv_events(text, label_name, text_names=(), exclude=()):
    """Return (numbers, label, texts) for each record of a CSV text; None where it cannot be used."""
    rows = [row for row in csv.reader(io.StringIO(text, newline="")) if row]
    header, events = rows[0], []
    for row in rows[1:]:
        cell = dict(zip(header, row, strict=False))
        numbers = {k: number(v) for k, v in cell.items() if k not in {label_name, *text_names, *exclude}}
        if len(row) != len(header) or None in numbers.values():
            events.append(None)
        else:
            events.append((numbers, label(cell[label_name]), {k: cell[k] or None for k in text_names}))
    return events


def json_events(lines, label_name, text_names=(), exclude=()):
    """Return (numbers, label, texts) for each line; None where it cannot be used."""
    return [_json_event(line, label_name, text_names, exclude) for line in lines if line.strip()]


def _json_event(line, label_name, text_names, exclude):
    pairs = []
    try:
        found = json.loads(line, object_pairs_hook=lambda p: pairs.append(p) or dict(p))
    except ValueError:
        return None
    if not isinstance(found, dict) or len(pairs[-1]) != len(found):
        return None
    numbers, texts, the_label = {}, dict.fromkeys(text_names), None
    for name, value in found.items():
        if name in exclude:
            continue
        if name == label_name:
            if isinstance(value, dict | list):
                return None
            the_label = value
        elif name in text_names:
            if isinstance(value, dict | list):
                return None
            texts[name] = value if value is None or isinstance(value, str) else json.dumps(value)
        elif isinstance(value, bool | int | float) and math.isfinite(value):
            numbers[name] = float(value)
        else:
            return None
    return numbers, the_label, texts


def libsvm_events(lines):
    """Return (numbers, label) for each line with a label; None where it cannot be used."""
    events = []
    for line in lines:
        parts = line.split("#")[0].split()
        if not line.strip():
            continue
        event = None
        if parts and ":" not in parts[0] and "," not in parts[0]:
            pairs = [part.split(":") for part in parts[1:]]
            plain = all(len(pair) == 2 and pair[0].isdigit() and str(int(pair[0])) == pair[0] for pair in pairs)
            if plain:
                numbers = {int(k): number(v) for k, v in pairs}
                if len(numbers) == len(pairs) and None not in numbers.values():
                    event = (numbers, label(parts[0]))
        events.append(event)
    return events
