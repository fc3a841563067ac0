"""Models with scales per block, as operator set 21 writes them; what is wrong with the scales is put in by hand."""

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tensortriage.inputs.feed import Feed, Origin
from tensortriage.model.model import Model
from tensortriage_quantize.inspection.quantizer_inspection import inspect_quantizers

RNG = np.random.default_rng(0)
WEIGHT = RNG.standard_normal((64, 8)).astype(np.float32)
SCALES = np.abs(WEIGHT.reshape(2, 32, 8)).max(axis=1) / 127
X = RNG.standard_normal((4, 64)).astype(np.float32)


FP4 = TensorProto.FLOAT4E2M1


def saved(path, nodes, *, opset=21, **constants):
    weights = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    values = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", size]) for name, size in (("x", 64), ("y", 8))
    ]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], weights)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("far.away", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=11), path)
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


def in_two_steps(path, blocks, whole):
    """Weights as ModelOpt stores NVFP4: elements E2M1, scales E4M3 of 16 each, and a float32 scale of these."""
    scales = blocks.astype(np.float32) * whole
    stored = np.clip(WEIGHT / np.repeat(FOUR_BITS, 16, axis=0), -6, 6).astype(ml_dtypes.float4_e2m1fn)
    nodes = [
        helper.make_node("DequantizeLinear", ["blocks", "whole"], ["s"], "scales"),
        helper.make_node("DequantizeLinear", ["q", "s"], ["w"], "back", axis=0, block_size=16),
        helper.make_node("MatMul", ["x", "w"], ["y"], "product"),
    ]
    assert scales.shape == (4, 8)
    return saved(path, nodes, opset=23, q=stored, blocks=blocks, whole=np.float32(whole))


WHOLE = np.abs(WEIGHT).max() / (448 * 6)
BLOCKS = (np.abs(WEIGHT.reshape(4, 16, 8)).max(axis=1) / 6 / WHOLE).astype(ml_dtypes.float8_e4m3fn)
FOUR_BITS = BLOCKS.astype(np.float32) * WHOLE


@pytest.mark.parametrize(
    ("blocks", "whole", "kind"),
    [
        (BLOCKS, WHOLE, "fits"),
        (np.ones_like(BLOCKS), 1.0, "scale-unset"),
        (BLOCKS, 8 * WHOLE, "scale-too-large"),
        (np.full_like(BLOCKS, BLOCKS.astype(np.float32).max()), 64 * WHOLE, "scale-repeated"),
    ],
    ids=["right", "unset", "large", "repeated"],
)
def test_scales_that_are_dequantized_themselves(tmp_path, blocks, whole, kind):
    model = in_two_steps(tmp_path / "nvfp4.onnx", np.asarray(blocks, BLOCKS.dtype), whole)
    original = saved(tmp_path / "float.onnx", [helper.make_node("MatMul", ["x", "w"], ["y"], "product")], w=WEIGHT)
    (row,) = inspected(model, original).blocks
    assert (row.node, row.weight, row.dtype, row.kind) == ("back", True, "float4_e2m1fn", kind)


def test_scales_of_mx_that_are_cast(tmp_path):
    powers = np.exp2(np.floor(np.log2(np.abs(WEIGHT.reshape(2, 32, 8)).max(axis=1))) - 8)
    stored = np.clip(WEIGHT / np.repeat(powers, 32, axis=0), -448, 448).astype(ml_dtypes.float8_e4m3fn)
    nodes = [
        helper.make_node("Cast", ["e"], ["s"], "cast", to=TensorProto.FLOAT),
        helper.make_node("DequantizeLinear", ["q", "s"], ["w"], "back", axis=0, block_size=32),
        helper.make_node("MatMul", ["x", "w"], ["y"], "product"),
    ]
    for scale, kind in ((powers, "fits"), (powers * 0 + 1, "scale-unset")):
        model = saved(tmp_path / f"{kind}.onnx", nodes, opset=24, q=stored, e=scale.astype(ml_dtypes.float8_e8m0fnu))
        assert [row.kind for row in inspected(model).blocks] == [kind]


@pytest.mark.parametrize(("operands", "kind"), [(["top", "c"], "fits"), (["c", "top"], "scale-inverted")])
def test_scales_that_are_computed_of_the_numbers(tmp_path, operands, kind):
    nodes = [
        helper.make_node("Reshape", ["x", "shape"], ["split"], "split"),
        helper.make_node("Abs", ["split"], ["sizes"], "sizes"),
        helper.make_node("ReduceMax", ["sizes", "last"], ["top"], "top", keepdims=0),
        helper.make_node("Div", operands, ["s"], "scale"),
        helper.make_node("QuantizeLinear", ["x", "s"], ["q"], "there", axis=1, block_size=16, output_dtype=FP4),
        helper.make_node("DequantizeLinear", ["q", "s"], ["b"], "back", axis=1, block_size=16),
        helper.make_node("MatMul", ["b", "w"], ["y"], "product"),
    ]
    given = {"shape": np.array([0, -1, 16]), "last": np.array([2]), "c": np.float32(6), "w": WEIGHT}
    model = saved(tmp_path / "dynamic.onnx", nodes, opset=23, **given)
    assert [(row.node, row.kind) for row in inspected(model).blocks] == [("there", kind)]


def test_what_cannot_be_run_here_is_not_judged_and_said_so(tmp_path):
    nodes = [
        helper.make_node("Unheard", ["x"], ["s"], "strange", domain="far.away"),
        helper.make_node("DequantizeLinear", ["q", "s"], ["w"], "back", axis=0, block_size=32),
        helper.make_node("MatMul", ["x", "w"], ["y"], "product"),
    ]
    model = saved(tmp_path / "strange.onnx", nodes, q=np.ones((64, 8), np.int8))
    (row,) = inspected(model).blocks
    assert row.kind == "not-judged"
    assert "cannot be run here" in row.words
