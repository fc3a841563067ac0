"""Lines that leave ops unquantized, by what each tool writes into its files."""

import numpy as np
import onnx_ir
import pytest
from onnx import numpy_helper, parser

from tensortriage.model.model import Model
from tensortriage.model.quantization.quantizer_tools import corrects_biases, excluding


def file(quantize="q", producer="", **metadata):
    """Return a Relu, quantized behind, between two quantizers of given names."""
    proto = parser.parse_model("""<ir_version: 8, opset_import: ["": 17]> g (float[4] x) => (float[4] y) {
        a = Relu(x)
        i = QuantizeLinear(a, s)
        y = DequantizeLinear(i, s) }""")
    for node, name in zip(proto.graph.node, ("/head/act/Relu", quantize, "d"), strict=True):
        node.name = name
    proto.graph.initializer.append(numpy_helper.from_array(np.float32(0.1), "s"))
    proto.producer_name = producer
    for key, value in metadata.items():
        proto.metadata_props.add(key=key.replace("__", "/"), value=value)
    return Model.from_ir(onnx_ir.from_proto(proto))


@pytest.mark.parametrize(
    ("made", "line"),
    [
        (file(producer="onnx.quantize"), "quantize_static(..., nodes_to_exclude=['/head/act/Relu'])"),
        (file("a_QuantizeLinear"), "quantize_static(..., nodes_to_exclude=['/head/act/Relu'])"),
        (
            file(nncf__version="3.4.0"),
            "nncf.quantize(..., ignored_scope=nncf.IgnoredScope(names=['/head/act/Relu']))",
        ),
        (
            file("QuantizeLinear_a_1"),
            "nncf.quantize(..., ignored_scope=nncf.IgnoredScope(names=['/head/act/Relu']))",
        ),
        (
            file(nncf__weight_compression__mode="int4_sym"),
            "nncf.compress_weights(..., ignored_scope=nncf.IgnoredScope(names=['/head/act/Relu']))",
        ),
        (file("/head/act/input_quantizer/QuantizeLinear"), "mtq.disable_quantizer(model, '*head.act*')"),
        (file(producer="AIMET"), "sim.exclude_layers_from_quantization([model.head.act])"),
    ],
    ids=["onnxruntime", "its names", "nncf", "its names in onnx", "weights", "modelopt", "aimet"],
)
def test_the_line_is_in_the_words_of_the_tool(made, line):
    quantizer = next(node.name for node in made.graph.nodes if node.op_type == "QuantizeLinear")
    assert excluding(made, [quantizer]) == (line,)  # of a quantizer the op whose result it rounds
    assert excluding(made, ["/head/act/Relu"]) == (line,)


def test_of_an_unknown_tool_nothing_is_said():
    assert excluding(file("quantizer 1"), ["/head/act/Relu"]) == ()
    assert excluding(file(producer="onnx.quantize"), []) == ()


def test_nncf_says_that_it_corrects_biases():
    assert corrects_biases(file(nncf__quantization__fast_bias_correction="True"))
    assert not corrects_biases(file())


@pytest.mark.parametrize("operand", ["x", "w"], ids=["input", "float weight"])
def test_a_quantizer_that_no_op_is_before_stands_for_the_one_that_reads_it(operand):
    """As quantization-aware training exports weights: in floating point, with the pair behind them."""
    proto = parser.parse_model(f"""<ir_version: 8, opset_import: ["": 17]> g (float[4,4] x) => (float[4,4] y) {{
        i = QuantizeLinear({operand}, s)
        d = DequantizeLinear(i, s)
        y = MatMul(x, d) }}""")
    for node, name in zip(proto.graph.node, ("q_QuantizeLinear", "d", "/head/MatMul"), strict=True):
        node.name = name
    proto.graph.initializer.append(numpy_helper.from_array(np.float32(0.1), "s"))
    proto.graph.initializer.append(numpy_helper.from_array(np.ones((4, 4), np.float32), "w"))
    proto.producer_name = "onnx.quantize"
    made = Model.from_ir(onnx_ir.from_proto(proto))
    assert excluding(made, ["q_QuantizeLinear", "d"]) == ("quantize_static(..., nodes_to_exclude=['/head/MatMul'])",)
