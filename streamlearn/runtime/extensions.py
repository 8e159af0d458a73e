"""What adapters bring to the runtime by entry point: learners, brokers, engines."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Any

from streamlearn.errors import MissingExtra


def extensions(group: str) -> dict[str, EntryPoint]:
    """Return the installed entry points of a group, by name."""
    return {entry.name: entry for entry in entry_points(group=group)}


def load_extension(entry: EntryPoint, who: str, library: str | None = None) -> Any:
    """Return what an entry point names, whose extra has its name.

    Parameters
    ----------
    entry : EntryPoint
    who : str
        Who needs it, for the message.
    library : str, optional
        What is told to be missing; by default what could not be imported.

    Raises
    ------
    MissingExtra
        The library behind it is not installed.
    """
    try:
        return entry.load()
    except ImportError as error:
        raise MissingExtra(who, library or error.name or entry.name, entry.name) from error
