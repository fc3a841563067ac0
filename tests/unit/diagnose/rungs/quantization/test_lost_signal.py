"""What a sound file costs: named op by op from a tenth of the signal on, and a verdict from half of it on."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import quantize_static

import models
from diagnosing import ask, step
from machine import exact_int8
from tensortriage.diagnose.rungs.quantization.starved_channels import starved_channels
from tensortriage.model.quantization.qdq import quantizers
from tensortriage_testing import encoder, feed_for, mlp, quantized, save_model

pytestmark = pytest.mark.slow

QUESTION = "how much of the signal does rounding cost?"


class Samples:
    """What ONNX Runtime calibrates on."""

    def __init__(self, feed):
        self._left = iter([feed])

    def get_next(self):
        return next(self._left, None)


def by_default(tmp_path, layers):
    """Diagnose an encoder whose mask is -10000, quantized as ONNX Runtime does by default: scores share its scale."""
    model = encoder(layers=layers, width=48, heads=4, tokens=16, batch=2)
    path, other = save_model(model, tmp_path / "float.onnx"), tmp_path / "other.onnx"
    quantize_static(path, other, Samples(feed_for(model)))
    return ask(tmp_path, path, feed_for(model), "onnxruntime:optimization=none", target_model=other)[0], other


def test_a_mask_that_shares_a_scale_with_scores_is_named(tmp_path):
    verdict, other = by_default(tmp_path, layers=1)
    graph = {node.name: node for node in onnx.load(other).graph.node}
    first = verdict.culprits[0]
    assert graph[first.node].op_type == "QuantizeLinear"
    assert "values of 10,010 share a scale" in first.reason
    alone = step(verdict, QUESTION).evidence["alone"]
    assert next(iter(alone)) == first.node
    assert "without the quantizer" in verdict.summary


def test_what_quantizers_make_nan_is_their_fault(tmp_path):
    """A quiet row's length is below half a step of a loud one's: it becomes 0, and 0 / 0 is NaN."""
    text = """g (float[4, 8] x) => (float[4, 8] y) {{
        [square] s = Mul(x, x)
        [sum] t = ReduceSum(s, last)
        [root] r = Sqrt(t)
        {quantized}
        [even] y = Div(x, {length})
    }}"""
    plain = text.replace("g (", '<ir_version: 8, opset_import: ["": 17]> g (', 1)
    constants = "<int64[1] last = {-1}, float step = {0.5}, uint8 zero = {0}>"
    pair = "[q] i = QuantizeLinear(r, step, zero)\n [dq] d = DequantizeLinear(i, step, zero)"
    path, other = tmp_path / "float.onnx", tmp_path / "int8.onnx"
    for file, between, length in ((path, "", "r"), (other, pair, "d")):
        filled = plain.format(quantized=between, length=length).replace(
            "(float[4, 8] y)", f"(float[4, 8] y) {constants}"
        )
        onnx.save(onnx.parser.parse_model(filled), file)
    x = np.random.default_rng(1).standard_normal((4, 8)).astype(np.float32)
    x[0] *= 1e-3
    verdict, _ = ask(tmp_path, path, {"x": x}, "onnxruntime", target_model=other)
    assert (verdict.verdict, verdict.exit_code) == ("quantization", 1), verdict.summary
    assert "which becomes NaN or Inf" in verdict.summary
    assert verdict.culprits[0].node == "q"


@pytest.mark.lengthy
def test_half_of_the_signal_is_a_verdict_with_a_remedy_that_was_tried(tmp_path):
    """No calibration helps where quantizers fit, so those that cost most are left out, on the target as well."""
    verdict, _ = by_default(tmp_path, layers=4)
    assert verdict.verdict == "quantization", verdict.summary
    assert "destroys the answer" in verdict.summary
    assert verdict.remedy is not None
    assert verdict.remedy.kind == "exclude"
    assert verdict.remedy.error_after < verdict.remedy.error_before / 2
    assert "nodes_to_exclude" in verdict.next[0]  # the line for the tool that made the file
    assert any("debug precision" in line for line in verdict.next)


def test_constants_below_the_format_are_named(tmp_path):
    """Weights of 1e-9 in fp16 are zeros: the file is useless, and no result overflows."""
    rng = np.random.default_rng(0)
    weight = (rng.standard_normal((16, 8)) * 1e-9).astype(np.float32)

    def saved(name, array, dtype):
        nodes = [
            helper.make_node("MatMul", ["x", "w"], ["s"], name="product"),
            helper.make_node("Mul", ["s", "k"], ["m"], name="scaled"),
            helper.make_node("Mul", ["m", "k"], ["y"], name="again"),
        ]
        large = numpy_helper.from_array(np.array(3e4, array.dtype), "k")
        graph = helper.make_graph(
            nodes,
            "g",
            [helper.make_tensor_value_info("x", dtype, [4, 16])],
            [helper.make_tensor_value_info("y", dtype, [4, 8])],
            [numpy_helper.from_array(array, "w"), large],
        )
        proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        return save_model(proto, tmp_path / name)

    original = saved("float.onnx", weight, TensorProto.FLOAT)
    other = saved("half.onnx", weight.astype(np.float16), TensorProto.FLOAT16)
    feed = {"x": rng.standard_normal((4, 16)).astype(np.float32)}
    verdict, _ = ask(tmp_path, original, feed, "onnxruntime:optimization=none", target_model=other)
    assert verdict.verdict == "range-overflow", verdict.summary
    assert "'w'" in verdict.summary
    assert verdict.culprits[0].node == "product"


@exact_int8
def test_a_small_cost_is_told_without_ops(tmp_path):
    model = mlp()
    other = save_model(quantized(model, feed_for(model)), tmp_path / "other.onnx")
    verdict, _ = ask(
        tmp_path, save_model(model, tmp_path / "f.onnx"), feed_for(model), "onnxruntime", target_model=other
    )
    assert verdict.verdict == "rounding"
    assert not verdict.culprits
    assert "alone" not in step(verdict, QUESTION).evidence


def detector(scale):
    """Return the message of a model whose output joins values of this magnitude with probabilities, and its feed.

    The probabilities are of a Sigmoid of -3 and less: at most 0.05.
    """
    numbers = np.random.default_rng(5)
    weight = numpy_helper.from_array((numbers.standard_normal((16, 8)) * 0.25).astype(np.float32), "w")
    constants = [numpy_helper.from_array(np.float32(value), name) for name, value in (("s", scale), ("b", -4.0))]
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"], "head"),
        helper.make_node("Sigmoid", ["h"], ["place"], "place"),
        helper.make_node("Mul", ["place", "s"], ["boxes"], "scale"),
        helper.make_node("Add", ["h", "b"], ["shifted"], "shift"),
        helper.make_node("Sigmoid", ["shifted"], ["scores"], "score"),
        helper.make_node("Concat", ["boxes", "scores"], ["y"], "join", axis=-1),
    ]
    graph = helper.make_graph(
        nodes,
        "detector",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [32, 16])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [32, 16])],
        [weight, *constants],
    )
    feed = {"x": numbers.standard_normal((32, 16)).astype(np.float32)}
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), feed


@pytest.mark.parametrize(("scale", "verdict"), [(300.0, "quantization"), (0.1, "rounding")])
def test_a_part_that_is_lost_is_a_verdict_though_the_whole_is_right(tmp_path, scale, verdict):
    """ONNX Runtime gives the operands of a Concat one scale: a step of 300 / 255 leaves nothing of 0.05."""
    model, feed = detector(scale)
    path, other = tmp_path / "float.onnx", tmp_path / "other.onnx"
    onnx.save(model, path)
    quantize_static(path, other, Samples(feed))
    found, _ = ask(tmp_path, path, feed, "onnxruntime:optimization=none", target_model=other)
    assert found.verdict == verdict, found.summary
    if verdict == "quantization":
        assert [culprit.node for culprit in found.culprits] == ["join"]
        assert "all of the signal of 'scores', a part of output 'y', is lost" in found.summary
        assert found.remedy is not None
        assert found.remedy.kind == "exclude"
    else:  # compared with the original: the file agrees with itself to the last bit
        assert found.sufficiency
        assert not any("cosine 1.0000" in each for each in found.sufficiency)


@pytest.mark.parametrize(
    ("weights", "words"),
    [("127, -90, 1, -2, 2, 1, 60, 9", "of which 2 of 4 have 2 steps at most: quantize it per channel"),
     ("127, -90, 5, -2, 40, 1, 60, 9", "")],
)  # fmt: skip
def test_channels_that_one_scale_starves_are_told(weights, words):
    text = f"""g (float[2, 2] x) => (float[2, 4] y) <float t = {{0.5}}, int8[4, 2] w = {{{weights}}}, int8 u = {{0}}> {{
        a = DequantizeLinear(w, t, u)
        y = Gemm<transB=1>(x, a)
    }}"""
    model = models.parse(text)
    (pair,) = quantizers(model.graph)
    told = starved_channels(model, pair)
    assert words in told
    assert bool(told) == bool(words)


def test_a_float_weight_with_a_quantizer_behind_it_is_told_of_like_a_stored_one(tmp_path):
    """As training exports it. Of channels from 0.001 to 1 four are below 0.0193, two and a half steps."""
    text = """<ir_version: 8, opset_import: ["": 17]> g (float[16, 8] x) => (float[16, 8] y)
        <float step = {0.0079}, int8 zero = {0}> { QUANTIZED [of] y = MatMul(x, WEIGHT) }"""
    pair = "[wq] i = QuantizeLinear(w, step, zero) [wd] d = DequantizeLinear(i, step, zero)"
    weight = (np.random.default_rng(1).uniform(-1, 1, (8, 8)) * np.geomspace(1e-3, 1, 8)[:, None]).astype(np.float32)
    path, other = tmp_path / "float.onnx", tmp_path / "trained.onnx"
    for file, between, name in ((path, "", "w"), (other, pair, "d")):
        model = onnx.parser.parse_model(text.replace("QUANTIZED", between).replace("WEIGHT", name))
        model.graph.initializer.append(numpy_helper.from_array(weight, "w"))
        onnx.save(model, file)
    x = (np.random.default_rng(2).standard_normal((16, 8)) / np.geomspace(1e-3, 1, 8)).astype(np.float32)
    verdict, _ = ask(tmp_path, path, {"x": x}, "onnxruntime:optimization=none", target_model=other)
    first = verdict.culprits[0]
    assert (verdict.verdict, first.node) == ("quantization", "wq")
    assert "its channels share one scale, of which 4 of 8 have 2 steps at most: quantize it per channel" in first.reason


def test_a_part_that_is_lost_comes_before_ranges_that_could_fit_better(tmp_path):
    """Calibrated on numbers three times as large: better ranges bring the boxes nearer, and no score back."""
    model, feed = detector(300.0)
    path, other = tmp_path / "float.onnx", tmp_path / "other.onnx"
    onnx.save(model, path)
    quantize_static(path, other, Samples({"x": 4 * feed["x"]}))
    found, _ = ask(tmp_path, path, feed, "onnxruntime:optimization=none", target_model=other)
    assert found.verdict == "quantization", found.summary
    assert [culprit.node for culprit in found.culprits] == ["join"]
    assert "a part of output 'y', is lost" in found.summary
