"""Saved files: exact, deterministic, and refused when anything in them was changed."""

import errno
import json
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamlearn import snapshot
from streamlearn.errors import BadSnapshot, NewerSnapshot
from streamlearn.learners.registry import MODULES, load
from streamlearn.snapshot import nest
from tests.contract import same, stream
from tests.naive.logistic import NaiveLogistic

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text()


def model() -> NaiveLogistic:
    X, y = stream(0)
    return NaiveLogistic().learn_many(X, y)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.text(max_size=5), SCALARS, max_size=6), st.lists(st.floats(), max_size=9))
def test_content_comes_back_bit_for_bit(document, numbers):
    arrays = {"a": np.array(numbers), "b": np.array(numbers).reshape(1, -1) > 0, "c": np.int8(3) * np.ones((2, 0))}
    data = snapshot.pack("model", document, arrays)
    again, found = snapshot.unpack(data, "model")
    assert same({**again, **found}, {**document, **{k: found[k] for k in found}})
    assert {k: v.tobytes() for k, v in found.items()} == {k: v.tobytes() for k, v in arrays.items()}
    assert snapshot.pack("model", document, arrays) == data


def test_every_flipped_byte_is_seen():
    data = snapshot.pack("model", *snapshot.split(model().state()))
    for i in range(len(data)):
        for flip in (0x01, 0x80):
            changed = bytearray(data)
            changed[i] ^= flip
            with pytest.raises(BadSnapshot):
                snapshot.unpack(bytes(changed), "model")


def test_every_truncation_and_extension_is_seen():
    data = snapshot.pack("model", *snapshot.split(model().state()))
    for n in range(len(data)):
        with pytest.raises(BadSnapshot):
            snapshot.unpack(data[:n], "model")
    with pytest.raises(BadSnapshot):
        snapshot.unpack(data + b"\0", "model")
    with pytest.raises(BadSnapshot):
        snapshot.unpack(data + data, "model")


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300))
def test_any_other_bytes_are_refused(data):
    with pytest.raises(BadSnapshot):
        snapshot.unpack(data, "model")


def test_a_huge_header_length_is_refused_without_reading_on():
    with pytest.raises(BadSnapshot, match="truncated"):
        snapshot.unpack(struct.pack("<Q", 2**63) + b"{}", "model")


def test_a_safetensors_file_of_somebody_else_is_refused():
    from safetensors.numpy import save

    with pytest.raises(BadSnapshot, match="not written by streamlearn"):
        snapshot.unpack(save({"weight": np.zeros(3)}), "model")


def test_a_newer_format_says_so(monkeypatch):
    monkeypatch.setattr(snapshot, "FORMAT", 99)
    data = snapshot.pack("model", {}, {})
    monkeypatch.undo()
    with pytest.raises(NewerSnapshot, match="99"):
        snapshot.unpack(data, "model")


@pytest.mark.parametrize("place", [lambda state: state, lambda state: {"state": nest("track/0/learner", state)}])
def test_a_state_that_has_changed_since_its_format_is_refused_by_name(monkeypatch, place):
    monkeypatch.setattr(snapshot, "FORMAT", 1)
    old = snapshot.pack("model", place({"class": "Marvin"}), {})
    plain = snapshot.pack("model", place({"class": "FSAUC", "name": "Marvin"}), {})
    monkeypatch.undo()
    with pytest.raises(BadSnapshot, match=r"a state of Marvin must be of format 2 or later, got 1: .* learned anew"):
        snapshot.unpack(old, "model")
    assert snapshot.unpack(plain, "model")[0] == place({"class": "FSAUC", "name": "Marvin"})


def test_classes_whose_states_have_changed_are_learners():
    assert set(snapshot.CHANGED) <= set(MODULES)
    assert max(snapshot.CHANGED.values()) <= snapshot.FORMAT


def test_another_kind_is_refused():
    with pytest.raises(BadSnapshot, match="'checkpoint'"):
        snapshot.unpack(snapshot.pack("checkpoint", {}, {}), "model")


@pytest.mark.parametrize(
    "name", ["os.system", "NaiveLogistic", "builtins.eval", "Learner", "BinaryScorer", "aucro", "", "../AUCRO", None, 3]
)
def test_a_renamed_class_is_never_looked_up_outside_the_table(tmp_path, name):
    state = {**model().state(), "class": name}
    path = tmp_path / "m.safetensors"
    path.write_bytes(snapshot.pack("model", *snapshot.split(state)))
    with pytest.raises(BadSnapshot, match=str(path)):
        load(path)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("parameters", '{"rate": 0.1, "nonsense": 1}'),
        ("parameters", "[]"),
        ("parameters", '{"max_features": -3}'),
        ("parameters", "not json"),
        ("features", '["a", "a", "b", "c", "d"]'),
        ("features", '["a"]'),
        ("features", "[1.5, 2.5]"),
        ("labels", '[["int", 0]]'),
        ("labels", '[["int", 0], ["eval", 1]]'),
        ("labels", '[["int", "0"], ["int", 1]]'),
        ("array/w", np.zeros(4)),
        ("array/w", np.zeros(5, dtype=np.float32)),
        ("array/w", np.zeros((5, 1))),
        ("number/extra", 3),
    ],
)
def test_a_state_with_a_wrong_part_is_refused(key, value):
    state = {**model().state(), key: value}
    with pytest.raises(BadSnapshot):
        NaiveLogistic.from_state(state)


@pytest.mark.parametrize("key", ["class", "parameters", "features", "labels", "array/w", "array/b"])
def test_a_state_without_a_part_is_refused(key):
    state = model().state()
    del state[key]
    with pytest.raises(BadSnapshot):
        NaiveLogistic.from_state(state)


def test_a_failed_restore_leaves_the_learner_as_it_was():
    learner = model()
    before = learner.state()
    with pytest.raises(BadSnapshot):
        learner.restore({**before, "array/w": np.zeros(2)})
    assert same(before, learner.state())


def test_an_interrupted_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "m"
    snapshot.write_atomic(path, b"old")

    def full(_fd):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(snapshot.os, "fsync", full)
    with pytest.raises(OSError, match="No space") as caught:
        snapshot.write_atomic(path, b"new")
    assert caught.value.filename == str(path)
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["m"]


def test_objects_are_refused_on_writing():
    with pytest.raises(BadSnapshot, match="numeric"):
        snapshot.pack("model", {}, {"a": np.array([object()])})


def test_the_header_is_plain_json_with_nothing_to_execute():
    data = snapshot.pack("model", *snapshot.split(model().state()))
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    assert set(header) == {"__metadata__", "array/w", "array/b"}
