"""Saved files: safetensors bytes with a JSON document, a format version and a checksum over every byte.

Nothing is ever executed on load: a file is numbers, text and names, and every name is looked up in a table of ours.
The checksum stands inside the header in a field of fixed width; it is the SHA-256 of the whole file with that field
zeroed, so that a flip anywhere, padding included, is seen.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamlearn.contracts import Document, Snapshot
from streamlearn.errors import BadSnapshot, NewerSnapshot

FORMAT = 2
CHANGED = dict.fromkeys(
    ("AUCRO", "AdaptiveAUCRO", "OPAUC", "ORLRegressor", "HedgeMower1", "HedgeMower", "Marvin", "MarvinC", "MarvinD"), 2
)
"""Format from which on the states of a class are as they are now; those of a class that is not here never changed."""

_HEADER_KEY = "streamlearn"
_NO_SUM = b"sha256:" + b"0" * 64
_SUM = re.compile(rb"sha256:[0-9a-f]{64}")
_LENGTH_BYTES = 8

Arrays = dict[str, NDArray[Any]]


def pack(kind: str, document: Document, arrays: Arrays) -> bytes:
    """Return the bytes of one saved file; equal content gives equal bytes.

    Parameters
    ----------
    kind : str
        What it is: ``"model"`` or ``"checkpoint"``.
    document : dict
        JSON values; floats keep every bit, NaN and infinities included.
    arrays : dict of str to array
        Numeric or boolean arrays of any shape.
    """
    from safetensors.numpy import save  # noqa: PLC0415 - only those who save pay for the import

    for name, array in arrays.items():
        if array.dtype.kind not in "biuf":
            raise BadSnapshot(f"snapshot: array {name!r} must be numeric, got dtype {array.dtype}")
    text = json.dumps({"format": FORMAT, "kind": kind, "document": document}, separators=(",", ":"))
    tensors = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    data = bytes(save(tensors, metadata={_HEADER_KEY: _NO_SUM.decode() + text}))
    return data.replace(_NO_SUM, b"sha256:" + hashlib.sha256(data).hexdigest().encode(), 1)


def unpack(data: bytes, kind: str) -> tuple[Document, Arrays]:
    """Return document and arrays of one saved file.

    Raises
    ------
    BadSnapshot
        Where the bytes are truncated, altered, or not a file of this `kind`, or hold a class whose states have changed
        since.
    NewerSnapshot
        Where a newer release wrote them.
    """
    _verify(data)
    from safetensors import SafetensorError  # noqa: PLC0415 - only those who load pay for the import
    from safetensors.numpy import load  # noqa: PLC0415

    try:
        text = _header(data)["__metadata__"][_HEADER_KEY][len(_NO_SUM) :]
        content = json.loads(text)
        version, found, document = content["format"], content["kind"], content["document"]
        arrays = load(data)
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise BadSnapshot(f"snapshot: not a file of streamlearn ({error})") from error
    if version > FORMAT:
        raise NewerSnapshot(f"snapshot: format must be at most {FORMAT}, got {version}: use a newer streamlearn")
    if found != kind:
        raise BadSnapshot(f"snapshot: kind must be {kind!r}, got {found!r}")
    _refuse_changed(document, version)
    return document, {name: np.array(array) for name, array in arrays.items()}


def _refuse_changed(document: Document, version: int) -> None:
    """Refuse states that would be read with another meaning than they were written with, however deep they lie."""
    for name, value in document.items():
        if isinstance(value, dict):
            _refuse_changed(value, version)
        elif name.rpartition("/")[2] == "class" and version < CHANGED.get(str(value), 0):
            raise BadSnapshot(
                f"snapshot: a state of {value} must be of format {CHANGED[value]} or later, got {version}: it was "
                f"written by an older streamlearn and has to be learned anew"
            )


def _header(data: bytes) -> Any:
    size = int.from_bytes(data[:_LENGTH_BYTES], "little")
    return json.loads(data[_LENGTH_BYTES : _LENGTH_BYTES + size])


def _verify(data: bytes) -> None:
    size = int.from_bytes(data[:_LENGTH_BYTES], "little")
    if len(data) < _LENGTH_BYTES or size > len(data) - _LENGTH_BYTES:
        raise BadSnapshot(f"snapshot: the file is truncated or not one of streamlearn ({len(data)} bytes)")
    found = _SUM.search(data, _LENGTH_BYTES, _LENGTH_BYTES + size)
    if found is None:
        raise BadSnapshot("snapshot: no checksum in the header: altered, or not written by streamlearn")
    zeroed = hashlib.sha256(data[: found.start()])
    zeroed.update(_NO_SUM)
    zeroed.update(memoryview(data)[found.end() :])
    if found.group() != b"sha256:" + zeroed.hexdigest().encode():
        raise BadSnapshot("snapshot: the checksum does not match: the file is truncated or altered")


def split(state: Snapshot) -> tuple[Document, Arrays]:
    """Part a flat state into its JSON values and its arrays."""
    arrays = {name: value for name, value in state.items() if isinstance(value, np.ndarray)}
    return {name: value for name, value in state.items() if name not in arrays}, arrays


def join(document: Document, arrays: Arrays) -> Snapshot:
    """Undo `split`."""
    return {**document, **arrays}


def nest(prefix: str, state: Snapshot) -> Snapshot:
    """Return `state` with every name put below ``prefix/``."""
    return {f"{prefix}/{name}": value for name, value in state.items()}


def below(prefix: str, state: Snapshot) -> Snapshot:
    """Undo `nest`: the part of `state` below ``prefix/``."""
    start = prefix + "/"
    return {name[len(start) :]: value for name, value in state.items() if name.startswith(start)}


def read(path: str | os.PathLike[str], kind: str) -> tuple[Document, Arrays]:
    """Read one saved file; errors name the path."""
    data = Path(path).read_bytes()
    try:
        return unpack(data, kind)
    except BadSnapshot as error:
        raise type(error)(f"{os.fspath(path)}: {error}") from error


def write_atomic(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file so that a crash at any moment leaves the old one or the new one, durably.

    Temporary name, fsync, rename, fsync of the folder.

    Raises
    ------
    OSError
        With the name of the file that was to be written.
    """
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError) and error.errno is not None:
            # A full disk names no file, and the temporary name tells nobody anything.
            raise OSError(error.errno, error.strerror, str(target)) from error
        raise
    with _folder(target.parent) as descriptor:
        os.fsync(descriptor)


@contextlib.contextmanager
def _folder(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
