"""Protobuf messages by the descriptors of a schema registry: nothing is generated, nothing compiled."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

from confluent_kafka.schema_registry import Schema
from google.protobuf import descriptor_pb2, descriptor_pool, message, message_factory
from google.protobuf import timestamp_pb2 as _timestamp  # puts what schemas import most often into the default pool
from google.protobuf import wrappers_pb2 as _wrappers
from google.protobuf.descriptor import Descriptor, FieldDescriptor, FileDescriptor

from streamlearn.errors import SourceError

_HEADER_BYTES = 5
_MOST_INDEXES = 100
_SHIPPED = (_timestamp.DESCRIPTOR, _wrappers.DESCRIPTOR)


class ProtobufMessages:
    """Decodes messages with a registry's header.

    Parameters
    ----------
    schema : callable, number -> Schema
        With the descriptor in the format "serialized".
    reference : callable, (subject, version) -> Schema
        What a schema imports.
    """

    def __init__(self, schema: Callable[[int], Schema], reference: Callable[[str, int], Schema]) -> None:
        self._schema, self._reference = schema, reference
        self._classes: dict[tuple[int, tuple[int, ...]], type[message.Message]] = {}

    def __call__(self, value: bytes) -> dict[str, Any]:
        """Return the fields of a message as JSON values; ValueError where it does not fit its schema."""
        number = int.from_bytes(value[1:_HEADER_BYTES], "big")
        indexes, at = _indexes(value, _HEADER_BYTES)
        made = self._classes.get((number, indexes))
        if made is None:
            made = self._classes[number, indexes] = self._make(number, indexes)
        found = made()
        try:
            found.ParseFromString(value[at:])
        except message.DecodeError as error:
            raise ValueError(str(error)) from error
        return _fields(found)

    def _make(self, number: int, indexes: tuple[int, ...]) -> type[message.Message]:
        pool = descriptor_pool.DescriptorPool()
        file = self._add(pool, f"schema-{number}.proto", self._schema(number))
        messages = list(file.message_types_by_name.values())
        found: Descriptor | None = None
        for index in indexes:
            if index >= len(messages):
                raise ValueError(f"no message {list(indexes)} in it")
            found = messages[index]
            messages = list(found.nested_types)
        if found is None:
            raise ValueError("no message is named")
        made: type[message.Message] = message_factory.GetMessageClass(found)
        return made

    def _add(self, pool: descriptor_pool.DescriptorPool, name: str, schema: Schema) -> FileDescriptor:
        """Add a schema's file and all that it imports to the pool."""
        file = descriptor_pb2.FileDescriptorProto()
        try:
            file.ParseFromString(base64.b64decode(schema.schema_str or "", validate=True))
        except (ValueError, message.DecodeError) as error:
            raise SourceError(
                "source.registry: must give Protobuf schemas in the format 'serialized', got something else"
            ) from error
        file.name = name
        known = {reference.name: reference for reference in schema.references or []}
        for wanted in file.dependency:
            if wanted in known:
                reference = known[wanted]
                self._add(pool, wanted, self._reference(str(reference.subject), int(reference.version or -1)))
            else:
                _add_shipped(pool, wanted)
        pool.Add(file)
        return pool.FindFileByName(name)


def _add_shipped(pool: descriptor_pool.DescriptorPool, name: str) -> None:
    for shipped in _SHIPPED:
        if shipped.name == name:
            copied = descriptor_pb2.FileDescriptorProto()
            shipped.CopyToProto(copied)
            pool.Add(copied)
            return
    raise ValueError(f"the schema imports {name!r}, which the registry does not name as a reference")


def _indexes(value: bytes, at: int) -> tuple[tuple[int, ...], int]:
    """Return which message of the file it is, and where its bytes begin. A count of 0 stands for the first one."""
    count, at = _signed(value, at)
    if not 0 <= count <= _MOST_INDEXES:
        raise ValueError(f"{count} message indexes")
    if count == 0:
        return (0,), at
    found = []
    for _ in range(count):
        index, at = _signed(value, at)
        if index < 0:
            raise ValueError(f"message index {index}")
        found.append(index)
    return tuple(found), at


def _signed(value: bytes, at: int) -> tuple[int, int]:
    """Read one zigzag varint."""
    number = shift = 0
    while True:
        byte = value[at]
        at += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return (number >> 1) ^ -(number & 1), at


def _fields(found: message.Message) -> dict[str, Any]:
    """Return every field that has a value; without presence that is all of them, as the default is one."""
    values: dict[str, Any] = {}
    for field in found.DESCRIPTOR.fields:
        if not field.has_presence or found.HasField(field.name):
            values[field.name] = _plain(field, getattr(found, field.name))
    return values


def _plain(field: FieldDescriptor, value: Any) -> Any:
    if field.is_repeated:
        return [str(one) for one in value]  # a list is no feature; it may be excluded
    if field.type in {FieldDescriptor.TYPE_MESSAGE, FieldDescriptor.TYPE_GROUP}:
        return _fields(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value
