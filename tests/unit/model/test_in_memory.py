"""Models that are given in Python."""

from pathlib import Path

import onnx
import onnx.parser
import onnx_ir as ir
import pytest

from tensortriage.model.in_memory import model_file
from tensortriage.model.model import Model

TEXT = '<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) { y = Relu(x) }'


@pytest.fixture
def proto():
    return onnx.parser.parse_model(TEXT)


def test_a_path_is_itself(tmp_path):
    assert model_file("m.onnx") == Path("m.onnx")
    assert model_file(tmp_path / "m.onnx") == tmp_path / "m.onnx"


@pytest.mark.parametrize("given", [lambda p: p, lambda p: p.SerializeToString(), ir.serde.deserialize_model])
def test_a_model_in_memory_becomes_a_file(proto, given):
    found = onnx.load(model_file(given(proto)))
    assert [node.op_type for node in found.graph.node] == ["Relu"]


def test_the_same_model_is_the_same_file(proto):
    assert model_file(proto) == model_file(onnx.parser.parse_model(TEXT))


def test_a_loaded_model_keeps_its_file(proto, tmp_path):
    onnx.save(proto, tmp_path / "m.onnx")
    assert model_file(Model.load(tmp_path / "m.onnx")) == tmp_path / "m.onnx"
    assert model_file(Model.from_ir(ir.serde.deserialize_model(proto))).is_file()


@pytest.mark.parametrize("given", [3, None, ["m.onnx"], object()])
def test_anything_else_is_a_type_error_with_a_cure(given):
    with pytest.raises(TypeError, match="give the path of an ONNX file"):
        model_file(given)
