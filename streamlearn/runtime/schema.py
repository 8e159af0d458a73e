"""From the tables of a job file to its sections, with messages that begin with the path of the wrong key."""

from __future__ import annotations

import difflib
import re
from typing import Any, Literal, get_args, get_origin

import msgspec
from msgspec.structs import fields

from streamlearn.errors import BadJob
from streamlearn.runtime.sections import JobFile

_MSGSPEC_PLACE = re.compile(r"^(?P<what>.*?)(?: - at `\$\.?(?P<path>[^`]*)`)?$", re.DOTALL)
_MSGSPEC_FIELD = re.compile(r"`(?P<field>[^`]*)`")


def convert_tables(tables: dict[str, Any]) -> JobFile:
    """Return the tables as sections; BadJob names the path of the first key that is wrong."""
    try:
        return msgspec.convert(tables, JobFile)
    except msgspec.ValidationError as error:
        raise BadJob(_message(str(error), tables)) from error


def _message(text: str, tables: dict[str, Any]) -> str:
    """Turn msgspec's "what - at `$.path`" into "path: must be ..., got ..."."""
    found = _MSGSPEC_PLACE.match(text)
    assert found is not None  # noqa: S101  the pattern matches every text
    what, path = found["what"], found["path"] or ""
    field = _MSGSPEC_FIELD.search(what)
    if field and "unknown field" in what:
        return f"{_join(path, field['field'])}: unknown key{_suggestion(path, field['field'])}"
    if field and "missing required field" in what:
        return f"{_join(path, field['field'])}: must be given"
    value = _value_at(tables, path)
    rule = re.sub(r", got `[^`]*`$", "", what).replace("`", "")
    rule = rule.removeprefix("Expected ")
    if what.startswith("Invalid enum value"):
        rule = "one of " + ", ".join(_choices(path))
    return f"{path}: must be {rule}, got {value!r}"


def _join(path: str, field: str) -> str:
    return f"{path}.{field}" if path else field


def _section_type(path: str) -> type[msgspec.Struct] | None:
    """Return the Struct type behind a dotted path, or None."""
    section: type[msgspec.Struct] | None = JobFile
    for part in filter(None, path.split(".")):
        if section is None:
            return None
        types = [field.type for field in fields(section) if field.name == part]
        types = [option for found in types for option in get_args(found) or (found,)]
        section = next((t for t in types if isinstance(t, type) and issubclass(t, msgspec.Struct)), None)
    return section


def _suggestion(path: str, wrong: str) -> str:
    section = _section_type(path)
    if section is None:
        return ""
    known = [field.name for field in fields(section)]
    close = difflib.get_close_matches(wrong, known, n=1)
    return f", did you mean {close[0]!r}?" if close else f" (known: {', '.join(known)})"


def _choices(path: str) -> list[str]:
    parent, _, name = path.rpartition(".")
    section = _section_type(parent)
    found = next(field.type for field in fields(section or JobFile) if field.name == name)
    options = [option for part in (found, *get_args(found)) if get_origin(part) is Literal for option in get_args(part)]
    return [repr(option) for option in options]


def _value_at(tables: dict[str, Any], path: str) -> object:
    value: object = tables
    for part in re.findall(r"[^.\[\]]+", path):
        if isinstance(value, dict):
            value = value[part]
        elif isinstance(value, list):
            value = value[int(part)]
    return value
