"""Rules of the robust learners' parameters."""

from __future__ import annotations

import math
from typing import Any

from streamlearn.errors import BadParameter


def checked_count(who: str, name: str, value: Any, least: int) -> int:
    """Return a whole number >= least, or raise BadParameter."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise BadParameter(f"{who}: {name} must be a whole number >= {least}, got {value!r}")
    return value


def checked_positive(who: str, name: str, value: Any) -> float:
    """Return a finite number > 0, or raise BadParameter."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < math.inf:
        raise BadParameter(f"{who}: {name} must be a number > 0, got {value!r}")
    return value


def checked_trim(who: str, value: Any) -> float:
    """Return a share to drop in [0, 1), or raise BadParameter."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1:
        raise BadParameter(f"{who}: trim must be a number in [0, 1), got {value!r}")
    return value


def checked_choice(who: str, name: str, value: Any, choices: tuple[str, ...]) -> str:
    """Return one of the choices, or raise BadParameter."""
    if value not in choices:
        raise BadParameter(f"{who}: {name} must be one of {list(choices)}, got {value!r}")
    return str(value)
