"""Changing keys of a job from outside: ``--set section.key=value`` and environment variables.

``STREAMLEARN_CHECKPOINT__EVERY=500`` sets ``checkpoint.every``: two underscores stand for the dot, so that variables
with one are not mistaken for keys. The command line wins over the environment, the environment over the file.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from streamlearn.errors import BadJob

PREFIX = "STREAMLEARN_"


def apply_overrides(tables: dict[str, Any], sets: Iterable[str], environ: Mapping[str, str]) -> None:
    """Change `tables` in place by the environment, then by the ``key=value`` texts of the command line.

    Raises
    ------
    BadJob
        A text is not of the form ``section.key=value``, or leads through something that is not a table.
    """
    for path, text in (*_from_environment(environ), *map(_split, sets)):
        _assign(tables, path, parse_value(text))


def parse_value(text: str) -> object:
    """Read a TOML value; what is not one is a plain string, so that paths need no quotes.

    Examples
    --------
    >>> parse_value("0.5"), parse_value("[1, 2]"), parse_value("data/events.csv")
    (0.5, [1, 2], 'data/events.csv')
    """
    try:
        parsed = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    # A text with a line break could smuggle in further keys: it is a string then.
    return parsed["value"] if parsed.keys() == {"value"} else text


def _from_environment(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name in sorted(environ):
        if name.startswith(PREFIX) and "__" in name:
            yield name.removeprefix(PREFIX).lower().replace("__", "."), environ[name]


def _split(assignment: str) -> tuple[str, str]:
    path, equals, text = assignment.partition("=")
    if not equals or not path.strip():
        raise BadJob(f"--set: must be section.key=value, got {assignment!r}")
    return path.strip(), text.strip()


def _assign(tables: dict[str, Any], path: str, value: object) -> None:
    *parents, key = path.split(".")
    place: object = tables
    for depth, part in enumerate(parents):
        place = _child(place, part, ".".join(parents[: depth + 1]))
    if isinstance(place, list):
        place[_index(place, key, path)] = value
    elif isinstance(place, dict):
        place[key] = value
    else:
        raise BadJob(f"{path}: {'.'.join(parents)} must be a table to have a key, got {place!r}")


def _child(place: object, part: str, path: str) -> object:
    if isinstance(place, list):
        return place[_index(place, part, path)]
    if isinstance(place, dict):
        return place.setdefault(part, {})
    raise BadJob(f"{path}: must lead through tables, got {place!r} on the way")


def _index(place: list[Any], part: str, path: str) -> int:
    if not part.isdecimal() or int(part) >= len(place):
        raise BadJob(f"{path}: must be a number from 0 to {len(place) - 1}, got {part!r}")
    return int(part)
