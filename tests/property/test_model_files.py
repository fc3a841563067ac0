"""Whatever bytes a file holds, it is a model that can be used, or a ModelError; nothing else, ever."""

import functools
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

import models
from tensortriage.errors import ModelError
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.value_specs import value_specs


@functools.cache
def originals():
    with tempfile.TemporaryDirectory() as name:
        made = (models.mlp(), models.branchy(), models.with_if(), models.with_loop())
        files = [model.save(Path(name, "m.onnx")).read_bytes() for model in made]
        return [*files, models.with_external_data(Path(name)).read_bytes()]


EDITS = st.lists(
    st.tuples(st.sampled_from(["set", "insert", "delete", "copy"]), st.integers(0, 2**16), st.integers(0, 255)),
    min_size=1,
    max_size=6,
)


def damage(data, edits):
    damaged = bytearray(data)
    for kind, place, byte in edits:
        at = place % len(damaged)
        if kind == "set":
            damaged[at] = byte
        elif kind == "insert":
            damaged[at:at] = bytes([byte])
        elif kind == "copy":
            damaged[at:at] = damaged[at : at + byte // 8]
        elif len(damaged) > 20:
            del damaged[at : at + byte // 16 + 1]
    return bytes(damaged)


def use_everything(path):
    model = Model.load(path)
    for constant in model.graph.constants:
        model.graph.weight(constant)
    assert model.graph.shape_like <= set(value_specs(model))
    saved = Model.load(model.save(path.with_name("saved.onnx")))
    assert saved.fingerprint == model.fingerprint
    model.check()


def error_of(action):
    try:
        action()
    except ModelError as error:
        return error
    return None


@settings(max_examples=300, deadline=None)
@given(which=st.integers(0, 4), edits=EDITS)
def test_a_damaged_file_is_a_model_or_a_model_error(which, edits):
    with tempfile.TemporaryDirectory() as name:
        path = Path(name, "m.onnx")
        path.write_bytes(damage(originals()[which], edits))
        Path(name, "weights.bin").write_bytes(bytes(128))
        error = error_of(lambda: use_everything(path))
        assert error is None or error.message.isprintable()


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200))
def test_random_bytes_are_no_model(data):
    with tempfile.TemporaryDirectory() as name:
        path = Path(name, "m.onnx")
        path.write_bytes(data)
        error = error_of(lambda: Model.load(path))
        assert error is not None
        assert error.message.isprintable()
