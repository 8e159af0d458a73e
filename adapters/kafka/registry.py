"""Avro, JSON-Schema and Protobuf messages whose schemas a registry keeps, as lines of JSON.

A message begins with a zero byte and the number of its schema. A schema that the registry does not have, or a message
that does not fit it, makes the event a bad one; a registry that does not answer is waited for, like a broker.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import msgspec
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient, SchemaRegistryError
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer
from confluent_kafka.serialization import SerializationError

from streamlearn.errors import BadJob, SourceError
from streamlearn.runtime.decode import Refusal

from .client import PAUSE_S, Contact
from .options import Options, resolved
from .protobuf import ProtobufMessages

try:  # what the registry's client speaks HTTP with
    from httpx2 import HTTPError, InvalidURL
except ImportError:
    from httpx import HTTPError, InvalidURL  # type: ignore[no-redef]  # the same names of the library before it

_HEADER_BYTES = 5
_NOT_FOUND = 404
_SERVER_ERROR = 500
_TOO_MANY = 429


class RegistryLines:
    """Turns messages into lines.

    Parameters
    ----------
    kind : "avro", "json-schema" or "protobuf"
    options : dict
        Of the registry's client, secrets as names of variables.
    contact : Contact
        Gives up when the registry is silent for too long.
    """

    def __init__(self, kind: str, options: Options, contact: Contact) -> None:
        try:
            self._client = SchemaRegistryClient({"max.retries": 0, **resolved(options)})
        except (ValueError, TypeError) as error:
            names = ", ".join(sorted(options))  # the values may be secrets
            raise BadJob(f"source.registry: must be options of the registry's client, got {names}: refused") from error
        self._contact = Contact(contact.give_up_s)
        self._known: set[int] = set()
        self._read: Callable[[bytes], Any] = self._reader(kind)
        self._format = "serialized" if kind == "protobuf" else None
        self._encode = msgspec.json.Encoder(enc_hook=str).encode

    def _reader(self, kind: str) -> Callable[[bytes], Any]:
        made: Callable[[bytes], Any]
        if kind == "avro":
            made = AvroDeserializer(self._client)
        elif kind == "json-schema":
            # The message names its schema; no subject is asked for another one to read it by.
            by_number = {"subject.name.strategy": lambda *_: None}
            made = JSONDeserializer(None, schema_registry_client=self._client, conf=by_number)
        else:
            made = ProtobufMessages(self._schema, self._reference)
        return made

    def line(self, value: bytes) -> bytes:
        """Return the message as one line of JSON.

        Raises
        ------
        Refusal
            It does not fit its schema, or there is no such schema.
        SourceError
            The registry refuses the job, or is silent for too long.
        """
        if len(value) <= _HEADER_BYTES or value[0] != 0:
            raise Refusal("schema", "must begin with a zero byte and the number of a schema, got something else")
        number = int.from_bytes(value[1:_HEADER_BYTES], "big")
        if number not in self._known:
            self._schema(number)
            self._known.add(number)
        try:
            return self._encode(self._read(value))
        except SchemaRegistryError:
            raise
        except (SerializationError, ValueError, TypeError, EOFError, IndexError, KeyError, StopIteration) as error:
            raise Refusal("schema", f"must fit schema {number}, got {type(error).__name__}: {_short(error)}") from None

    def _schema(self, number: int) -> Schema:
        return self._asked(f"schema {number}", lambda: self._client.get_schema(number, fmt=self._format))

    def _reference(self, subject: str, version: int) -> Schema:
        asked = f"version {version} of {subject}"
        return self._asked(asked, lambda: self._client.get_version(subject, version, fmt=self._format).schema)

    def _asked(self, what: str, call: Callable[[], Schema]) -> Schema:
        """Ask until the registry answers; its client keeps what it was told."""
        while True:
            try:
                found = call()
            except SchemaRegistryError as error:
                if error.http_status_code == _NOT_FOUND:
                    raise Refusal("schema", f"must be of a schema that the registry has, got {what}") from None
                if error.http_status_code < _SERVER_ERROR and error.http_status_code != _TOO_MANY:
                    reason = f"HTTP status {error.http_status_code}"
                    raise SourceError(f"source.registry: must be allowed to read schemas, got {reason}") from error
                self._contact.failed(f"the schema registry: HTTP status {error.http_status_code}")
            except InvalidURL as error:
                raise SourceError("source.registry.url: must be the address of a schema registry") from error
            except HTTPError as error:
                self._contact.failed(f"the schema registry: {type(error).__name__}")
            else:
                self._contact.heard()
                return found
            time.sleep(PAUSE_S)


def _short(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= 200 else f"{text[:200]}..."
