"""Models with scales per block, as operator set 21 writes them; what is wrong with the scales is put in by hand."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tensortriage.inputs.feed import Feed, Origin
from tensortriage.model.model import Model
from tensortriage.workflows.quantization.quantizer_inspection import inspect_quantizers

RNG = np.random.default_rng(0)
WEIGHT = RNG.standard_normal((64, 8)).astype(np.float32)
SCALES = np.abs(WEIGHT.reshape(2, 32, 8)).max(axis=1) / 127
X = RNG.standard_normal((4, 64)).astype(np.float32)


def saved(path, nodes, **constants):
    weights = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    values = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", size]) for name, size in (("x", 64), ("y", 8))
    ]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
    return Model.load(path)


def inspected(model, original=None):
    return inspect_quantizers(model, [Feed("x", {"x": X}, Origin.REAL)], original=original)


@pytest.mark.parametrize(
    ("scale", "known", "kind"),
    [
        (SCALES, True, "fits"),
        (1 / SCALES, True, "scale-inverted"),
        (np.ones_like(SCALES), False, "scale-unset"),
        (SCALES[:1], False, "scale-shape"),
    ],
    ids=["right", "inverted", "unset", "broadcast"],
)
def test_the_scales_of_a_stored_weight(tmp_path, scale, known, kind):
    stored = np.clip(np.rint(WEIGHT / np.repeat(SCALES, 32, axis=0)), -128, 127).astype(np.int8)
    nodes = [
        helper.make_node("DequantizeLinear", ["q", "s"], ["w"], "back", axis=0, block_size=32),
        helper.make_node("MatMul", ["x", "w"], ["y"], "product"),
    ]
    model = saved(tmp_path / "blocks.onnx", nodes, q=stored, s=scale)
    original = saved(tmp_path / "float.onnx", nodes[1:], w=WEIGHT) if known else None
    (row,) = inspected(model, original).blocks
    assert (row.node, row.weight, row.block, row.axis, row.kind) == ("back", True, 32, 0, kind)
    assert (row.error is None) is not known
    assert bool(row.words) is (kind != "fits")


def test_numbers_that_reach_a_quantizer_of_blocks_are_seen(tmp_path):
    scales = np.abs(X.reshape(4, 2, 32)).max(axis=2) / 127
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], "there", axis=1, block_size=32),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["b"], "back", axis=1, block_size=32),
        helper.make_node("MatMul", ["b", "w"], ["y"], "product"),
    ]
    for scale, kind in ((scales, "fits"), (scales * 20, "scale-too-large")):
        model = saved(tmp_path / f"{kind}.onnx", nodes, s=scale, z=np.zeros((4, 2), np.int8), w=WEIGHT)
        found = inspected(model)
        assert [(row.node, row.kind) for row in found.blocks] == [("there", kind)]
        assert found.error is None
