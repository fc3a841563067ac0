"""What is a finding. Expected judgements follow from the number formats: float32 holds all of float16 and bfloat16,
of these two neither holds the other."""

import pytest

import models
from tensortriage.engines.base import Plan, Region
from tensortriage.engines.registry import create
from tensortriage.engines.spec import EngineSpec
from tensortriage.runs.analyses.plan_audit import PrecisionMatch, audit, requested_precision
from tensortriage.values.dtype import Precision

MODEL = """
    g (float[2, 2] x, int64[1] axes) => (float[4] y, int64[2] s) <float[2, 2] w = {1, 2, 3, 4}, int64[1] flat = {-1}> {
        [mm] a = MatMul(x, w)
        [act] b = Relu(a)
        [shape] t = Shape(b)
        [twice] s = Add(t, t)
        [exp] c = Exp(b)
        [flatten] y = Reshape(c, flat)
    }"""


def audited(regions, text="openvino", model=MODEL):
    spec = EngineSpec.parse(text)
    plan = Plan(tuple(Region(nodes[0], nodes, "Kernel", precision) for nodes, precision in regions))
    return audit(plan, models.parse(model), spec, create(spec))


def match(nodes, built, text="openvino", model=MODEL):
    (region,) = audited([(nodes, built)], text, model).regions
    return region.match


@pytest.mark.parametrize(
    ("target", "built", "expected"),
    [
        ("openvino", "float32", PrecisionMatch.AS_ASKED),
        ("openvino", "bfloat16", PrecisionMatch.NARROWER),
        ("openvino:precision=auto", "bfloat16", PrecisionMatch.NARROWER),
        ("openvino:precision=dynamic", "float16", PrecisionMatch.NARROWER),
        ("openvino:precision=bf16", "bfloat16", PrecisionMatch.AS_ASKED),
        ("openvino:precision=bf16", "float32", PrecisionMatch.WIDER),
        ("openvino:precision=fp16", "float32", PrecisionMatch.WIDER),
        ("openvino:precision=fp16", "bfloat16", PrecisionMatch.OTHER),
        ("openvino:precision=fp16", "", PrecisionMatch.NOT_JUDGED),
        ("openvino:precision=fp16", "uint8", PrecisionMatch.NOT_JUDGED),
        ("openvino:precision=fp16", "no such type", PrecisionMatch.NOT_JUDGED),
        ("float64", "float64", PrecisionMatch.AS_ASKED),
    ],
)
def test_what_was_asked_against_what_was_built(target, built, expected):
    assert match(("mm", "act"), built, target) is expected


@pytest.mark.parametrize("nodes", [("act",), ("shape",), ("twice",), ("flatten",), ("act", "flatten")])
def test_what_rounds_nothing_is_not_judged(nodes):
    assert match(nodes, "bfloat16") is PrecisionMatch.NOT_JUDGED


def test_the_last_node_that_computes_decides():
    region = audited([(("mm", "act", "flatten"), "bfloat16")]).regions[0]
    assert (region.asked, region.op_types) == ("float32", ("MatMul", "Relu", "Reshape"))


def test_integers_are_right_where_the_model_is_quantized():
    model = """
        g (int8[2, 2] x) => (float[2, 2] y) <float s = {0.5}, float[2, 2] w = {1, 2, 3, 4}> {
            [dq] a = DequantizeLinear(x, s)  [mm] y = MatMul(a, w) }"""
    assert match(("dq", "mm"), "int8", model=model) is PrecisionMatch.AS_ASKED


PAIRS = """
    g (float[2, 2] x) => (float[2, 2] z)
    <float s = {0.5}, int8 o = {0}, int8[2, 2] w = {1, 2, 3, 4}, float[2, 2] v = {1, 2, 3, 4}> {
        [there] q = QuantizeLinear(x, s, o)
        [back] a = DequantizeLinear(q, s, o)
        [weight] b = DequantizeLinear(w, s, o)
        [mm] y = MatMul(a, b)
        [half] z = MatMul(y, v)
    }"""


@pytest.mark.parametrize(
    ("built", "expected"),
    [
        ("int8", PrecisionMatch.AS_ASKED),
        ("uint8", PrecisionMatch.AS_ASKED),
        ("float32", PrecisionMatch.WIDER),
        ("", PrecisionMatch.NOT_JUDGED),
    ],
)
@pytest.mark.parametrize("target", ["onnxruntime", "openvino:precision=bf16", "tensorrt:precision=int8"])
def test_a_product_of_dequantized_numbers_is_asked_for_in_integers(target, built, expected):
    regions = [(("there",), "float32"), (("back", "weight", "mm"), built), (("half",), "bfloat16")]
    found = audited(regions, target, PAIRS).regions
    assert (found[1].asked, found[1].match) == ("int8", expected)
    assert found[2].asked != "int8" or found[2].match is PrecisionMatch.NOT_JUDGED  # one operand of it is float


def test_a_half_typed_model_asks_for_half():
    model = "g (float16[2] x) => (float16[2] y) { [e] y = Exp(x) }"
    assert match(("e",), "float32", "openvino:precision=dynamic", model) is PrecisionMatch.WIDER


def test_nodes_in_no_region_but_those_of_shapes_and_constants():
    found = audited([(("mm",), "float32")])
    assert found.unplaced == ("act", "shape", "twice", "exp", "flatten")
    assert found.findings == ()


def test_names_that_are_no_nodes_are_left_out():
    assert audited([(("made up", "mm"), "float32")]).regions[0].nodes == ("mm",)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("onnxruntime", None), ("onnxruntime:precision=f16", Precision.FP16), ("float64", Precision.FP64)],
)
def test_requested_precision(text, expected):
    spec = EngineSpec.parse(text)
    assert requested_precision(spec, create(spec)) is expected


def test_what_runs_elsewhere_is_a_finding_in_any_format():
    spec = EngineSpec.parse("onnxruntime:ep=qnn,precision=fp16")
    regions = (
        Region("a", ("mm",), "FullyConnected", "float16", device="NPU"),
        Region("b", ("act",), "Relu", "float16", device="CPU"),
        Region("c", (), "Transpose", "", device="CPU"),  # its own: nothing of the model fell back
    )
    found = audit(Plan(regions, device="NPU"), models.parse(MODEL), spec, create(spec))
    assert [region.name for region in found.findings] == ["b"]
    assert [region.fell_back for region in found.regions] == [False, True, False]
    assert audit(Plan(regions), models.parse(MODEL), spec, create(spec)).findings == ()
