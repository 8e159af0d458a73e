"""One message is one event: topics hold what files hold, and every bad message is refused alone."""

from __future__ import annotations

import base64
import io
import json
import math

import fastavro
import numpy as np
import pytest
from google.protobuf import descriptor_pb2
from hypothesis import given
from hypothesis import strategies as st
from streamlearn.adapters.kafka.client import Contact
from streamlearn.adapters.kafka.payloads import make_payload
from streamlearn.adapters.kafka.registry import RegistryLines

from streamlearn.errors import BadJob, BadParameter, SourceError
from streamlearn.runtime.decode import Columns
from tests.adapters.kafka_registry import Registry

COLUMNS = Columns(label="y", key="id")


def decoded(payload, values):
    """Return events and refusals by message, as plain values."""
    events, refused, stop = {}, {}, 0
    for piece in payload.pieces("t/0", values):
        assert piece.stop > stop or not values
        stop = piece.stop
        keys = [None] * len(piece.rows) if piece.keys is None else piece.keys.tolist()
        for row, message in enumerate(piece.rows.tolist()):
            numbers = dict(zip(piece.names, piece.values[row].tolist(), strict=True))
            events[message] = (numbers, piece.labels.tolist()[row], keys[row])
        refused |= {message: (kind, reason) for message, kind, reason in piece.refused}
    assert stop == len(values)
    assert sorted([*events, *refused]) == list(range(len(values)))
    return events, refused


def json_payload():
    return make_payload("json", COLUMNS, None, None, None)


def test_json_messages_are_events_whether_or_not_line_ends_are_in_them():
    values = [b'{"id":"a","u":1.5,"y":1}', b'{"id":"b",\n "u":2,\n "y":0}\n', b'\r\n{"id":"c","u":-3,"y":1}']

    events, refused = decoded(json_payload(), values)

    assert events == {0: ({"u": 1.5}, 1, "a"), 1: ({"u": 2.0}, 0, "b"), 2: ({"u": -3.0}, 1, "c")}
    assert refused == {}


@pytest.mark.parametrize(
    ("bad", "kind"),
    [
        (None, "tombstone"),
        (b"", "syntax"),
        (b"   ", "syntax"),
        (b"\n\n", "syntax"),
        (b"{not json", "syntax"),
        (b"[1, 2]", "syntax"),
        (b'{"id":"x","u":"te\nxt","y":1}', "syntax"),
        (b'{"id":"x","u":"text","y":1}', "value"),
        (b'{"id":"x","u":1,"y":1}\n{"id":"z","u":1,"y":1}', "syntax"),
        (b'{"id":"\xff","u":1,"y":1}', "encoding"),
    ],
)
def test_a_bad_json_message_is_refused_and_its_neighbours_are_not(bad, kind):
    good = b'{"id":"a","u":1,"y":1}'

    events, refused = decoded(json_payload(), [good, bad, good])

    assert list(events) == [0, 2]
    assert refused[1][0] == kind
    assert "line" not in refused[1][1]


PIECES = st.sampled_from([b'{"u":1,"y":1}', b"\n", b" ", b"{", b'"', b"", b"\r", b'{"u":', b"2}", b"[]"])


@given(st.lists(st.one_of(st.none(), st.lists(PIECES, max_size=4).map(b"".join)), max_size=8))
def test_no_message_changes_what_another_one_means(values):
    together = decoded(json_payload(), values)
    alone = [decoded(json_payload(), [value]) for value in values]

    assert sorted(together[0]) == [k for k, (events, _) in enumerate(alone) if events]
    for k, event in together[0].items():
        assert event == alone[k][0][0]


def csv_payload():
    return make_payload("csv", COLUMNS, ("id", "u", "y"), None, None)


def test_csv_messages_are_records():
    events, refused = decoded(
        csv_payload(), [b"a,1.5,1", b'"b, c",2,0\r\n', b"d,,1", b"a,1,2,3", b'e,"1', b"f,1,1\ng,1,1"]
    )

    assert events == {0: ({"u": 1.5}, 1, "a"), 1: ({"u": 2.0}, 0, "b, c")}
    assert [refused[k][0] for k in (2, 3, 4, 5)] == ["value", "columns", "syntax", "syntax"]


@pytest.mark.parametrize(("kind", "dtype"), [("f4", "<f4"), ("f8", "<f8")])
def test_raw_numbers_are_columns_by_their_names(kind, dtype):
    payload = make_payload(kind, Columns(label="y", exclude=frozenset({"t"})), ("t", "u", "v", "y"), None, None)
    rows = [[9.0, 0.1, -2.5, 1.0], [9.0, math.inf, 0.0, 0.0], [9.0, 1e-3, 4.0, math.nan]]
    values = [np.array(row, dtype).tobytes() for row in rows]

    events, refused = decoded(payload, [*values, b"short", None])

    first = float(np.array(0.1, dtype))
    assert events[0] == ({"u": first, "v": -2.5}, 1, None)
    assert events[2][1] is None
    assert [refused[k][0] for k in (1, 3, 4)] == ["value", "columns", "tombstone"]


def test_raw_numbers_need_the_names_of_the_columns_that_the_job_declares():
    with pytest.raises(BadParameter, match="source: names must be different and hold"):
        make_payload("f8", Columns(label="y"), ("u", "v"), None, None)


RECORD = {
    "type": "record",
    "name": "Event",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "u", "type": "double"},
        {"name": "y", "type": ["null", "int"]},
    ],
}


def framed(number: int, body: bytes) -> bytes:
    return b"\0" + number.to_bytes(4, "big") + body


def avro(number: int, event: dict) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(RECORD), event)
    return framed(number, out.getvalue())


def registry_payload(kind, url, **options):
    lines = RegistryLines(kind, {"url": url, **options}, Contact(5.0))
    return make_payload(kind, COLUMNS, None, None, lines)


def test_avro_messages_are_read_by_the_schema_that_wrote_them():
    with Registry({3: {"schema": json.dumps(RECORD)}}) as registry:
        payload = registry_payload("avro", registry.url)
        values = [
            avro(3, {"id": "a", "u": 0.1, "y": 1}),
            avro(4, {"id": "b", "u": 1.0, "y": 0}),
            b"\1no",
            framed(3, b"\0"),
        ]
        values += [None, avro(3, {"id": "c", "u": 2.0, "y": None})]
        events, refused = decoded(payload, values)

    assert events == {0: ({"u": 0.1}, 1, "a"), 5: ({"u": 2.0}, None, "c")}
    assert {k: kind for k, (kind, _) in refused.items()} == {1: "schema", 2: "schema", 3: "schema", 4: "tombstone"}
    assert len([path for path in registry.asked if "/ids/3" in path]) == 1


def test_messages_of_json_schema_are_checked_against_it():
    schema = {"type": "object", "properties": {"u": {"type": "number", "minimum": 0}}, "required": ["u"]}
    with Registry({1: {"schemaType": "JSON", "schema": json.dumps(schema)}}) as registry:
        payload = registry_payload("json-schema", registry.url)
        values = [framed(1, b'{"id": "a", "u": 0.25, "y": true}'), framed(1, b'{"id": "b", "u": -1, "y": true}')]
        events, refused = decoded(payload, values)

    assert events == {0: ({"u": 0.25}, True, "a")}
    assert refused[1][0] == "schema"


def protobuf_file(name: str, message: str, fields: dict[str, int], **imports) -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(
        name=name, syntax="proto3", package="p", dependency=list(imports.values())
    )
    made = file.message_type.add(name=message)
    for number, (field, kind) in enumerate(fields.items(), start=1):
        one = made.field.add(name=field, number=number, label=1)
        if isinstance(kind, str):
            one.type, one.type_name = 11, kind
        else:
            one.type = kind
    return file


def serialized(file) -> str:
    return base64.b64encode(file.SerializeToString()).decode()


TEXT, DOUBLE, INT64 = 9, 1, 3


def test_protobuf_messages_are_read_by_descriptors_and_their_imports():
    part = protobuf_file("part.proto", "Part", {"z": DOUBLE})
    main = protobuf_file(
        "main.proto", "Event", {"id": TEXT, "u": DOUBLE, "y": INT64, "part": ".p.Part"}, part="part.proto"
    )
    references = [{"name": "part.proto", "subject": "part", "version": 1}]
    schemas = {
        5: {"schemaType": "PROTOBUF", "schema": "", "serialized": serialized(main), "references": references},
        6: {"schemaType": "PROTOBUF", "schema": "", "serialized": serialized(part)},
    }
    with Registry(schemas, {("part", 1): 6}) as registry:
        payload = registry_payload("protobuf", registry.url)
        # Fields 1 to 3 by hand: text "a", double 0.5, varint 1; the index 0 before them stands for the first message.
        body = b"\x0a\x01a" + b"\x11" + np.float64(0.5).tobytes() + b"\x18\x01"
        events, refused = decoded(
            payload, [framed(5, b"\0" + body), framed(5, b"\0\xff"), framed(5, b"\x02\x08" + body)]
        )

    assert events == {0: ({"u": 0.5}, 1, "a")}
    assert [refused[k][0] for k in (1, 2)] == ["schema", "schema"]


def test_a_registry_that_does_not_answer_is_waited_for(monkeypatch):
    monkeypatch.setattr("streamlearn.adapters.kafka.registry.PAUSE_S", 0.0)
    with Registry({3: {"schema": json.dumps(RECORD)}}, failures=2) as registry:
        events, _ = decoded(registry_payload("avro", registry.url), [avro(3, {"id": "a", "u": 0.1, "y": 1})])

    assert list(events) == [0]


def test_the_registry_is_asked_with_the_secret_of_the_environment_and_a_refusal_does_not_show_it(monkeypatch):
    monkeypatch.setenv("REGISTRY_USER", "alice:s3cret")
    expected = base64.b64encode(b"alice:s3cret").decode()
    secret = {"basic.auth.user.info": "${REGISTRY_USER}"}
    message = avro(3, {"id": "a", "u": 0.1, "y": 1})
    with Registry({3: {"schema": json.dumps(RECORD)}}, user_info=expected) as registry:
        events, _ = decoded(registry_payload("avro", registry.url, **secret), [message])
        registry.user_info = "another"
        with pytest.raises(SourceError, match="must be allowed to read schemas") as caught:
            decoded(registry_payload("avro", registry.url, **secret), [message])

    assert list(events) == [0]
    assert "s3cret" not in str(caught.value)


def test_wrong_options_of_the_registry_are_refused_without_their_values():
    with pytest.raises(BadJob, match=r"source\.registry: must be options of the registry's client") as caught:
        RegistryLines("avro", {"url": "http://127.0.0.1:1", "nonsense": "s3cret"}, Contact(1.0))

    assert "s3cret" not in str(caught.value)
