"""Sums of 8-bit products on a processor without VNNI, whatever this one is: where they do not fit, and the cure."""

import numpy as np
import pytest
from onnx import numpy_helper

from machine import NEWER, OLDER, be_processor
from models import proto
from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.diagnose.rungs.quantization import int16_sums
from tensortriage.diagnose.rungs.quantization.int16_sums import saturating_reference, saturating_sums
from tensortriage.diagnose.state.verdict import VerdictKind
from tensortriage.engines.spec import EngineSpec
from tensortriage_testing import quantized

ALIKE = {"x": np.random.default_rng(0).uniform(0.9, 1.0, (4, 8)).astype(np.float32)}
"""Close to the largest number that the quantizer knows: 230 to 255 of 255."""

IMAGE = {"x": np.random.default_rng(0).uniform(0.9, 1.0, (1, 2, 5, 5)).astype(np.float32)}
LARGE, MIXED = np.ones((8, 8), np.float32), np.eye(8, dtype=np.float32)
"""Weights of 127 throughout, of which two products with 255 are 64770; and such of which one in eight is not 0."""

KINDS = {
    "MatMul": ("float[4, 8]", "MatMul(x, w)"),
    "Gemm": ("float[4, 8]", "Gemm <transB: int = 1> (x, w)"),
}


@pytest.fixture(autouse=True)
def older(monkeypatch):
    be_processor(monkeypatch, OLDER)


@pytest.fixture
def asked(investigate, compared):
    def ask(weight=LARGE, target="saturating", *, shape="float[4, 8]", op="MatMul(x, w)", feed=ALIKE, ranks=0):
        message = proto(f"g ({shape} x) => (float y) {{ [product] y = {op} }}")
        message.graph.output[0].type.tensor_type.ClearField("shape")
        message.graph.initializer.append(numpy_helper.from_array(weight, "w"))
        message = quantized(message, feed)
        for tensor in message.graph.initializer if ranks else ():
            if not tensor.dims:  # scales and zero points
                tensor.dims.append(1)
        inv = investigate(message, feed, target=target)
        return inv, compared(inv)

    return ask


def test_a_zero_point_may_be_an_array_of_one_number(asked):
    answer = saturating_sums(*asked(ranks=1))
    assert (answer.verdict.kind, answer.verdict.culprits[0].node) == (VerdictKind.QUANTIZATION, "product")


@pytest.mark.parametrize("kind", KINDS)
def test_an_engine_that_is_right_with_weights_in_uint8_adds_in_int16(asked, last_step, kind):
    shape, op = KINDS[kind]
    inv, evidence = asked(shape=shape, op=op)
    answer = saturating_sums(inv, evidence)
    assert (answer.verdict.kind, answer.verdict.culprits[0].node) == (VerdictKind.QUANTIZATION, "product")
    cure = answer.findings["calibrated"]
    assert (cure.output, cure.kind) == ("y", "unsigned-weights")
    assert cure.after < 1e-6  # the same numbers
    sums = last_step(inv).evidence["sums"]["product"]
    assert cure.before == pytest.approx(sums["error"], rel=1e-3)
    assert cure.before == pytest.approx(1 - 32767 / (2 * 242.5 * 127), rel=0.02)  # data are 230 to 255
    assert 2 * 230 * 127 <= sums["largest"] <= 2 * 255 * 127
    assert sums["saturated"] == 1.0


def test_a_failure_that_stays_with_weights_in_uint8_has_another_reason(asked, last_step):
    inv, evidence = asked(target="faulty:kind=scale,node=product,amount=0.8")
    answer = saturating_sums(inv, evidence)
    assert (answer.verdict, answer.findings) == (None, {})
    assert last_step(inv).answer.startswith("not in every op, but that does not explain the error")


def test_sums_that_fit_are_said_to(asked, last_step):
    inv, evidence = asked(MIXED)
    assert saturating_sums(inv, evidence).verdict is None
    assert last_step(inv).answer == "yes, in all 1 ops that multiply 8-bit numbers"


def test_a_model_without_products_of_integers_is_not_asked_about(investigate, compared):
    inv = investigate("g (float[2] x) => (float[2] y) { y = Neg(x) }", {"x": np.float32([1, 2])})
    answer, before = saturating_sums(inv, compared(inv)), inv.record.steps
    assert answer.verdict is None
    assert not [step for step in before if step.question == int16_sums.QUESTION]


@pytest.mark.parametrize("why", ["processor", "nonfinite", "engine"])
def test_nothing_is_asked_where_it_cannot_be(asked, monkeypatch, last_step, why):
    inv, evidence = asked(target="float64" if why == "engine" else "saturating")
    if why == "processor":
        be_processor(monkeypatch, NEWER)
    if why == "nonfinite":
        one = np.float32([1])
        evidence = evidence.with_(in_context={"y": measure(one, one * np.float32(np.nan))})
    assert saturating_sums(inv, evidence).verdict is None
    assert last_step(inv).question != int16_sums.QUESTION


@pytest.mark.parametrize(
    ("options", "asks"), [("", True), ("<dilations: ints = [2, 2]>", False), ("<group: int = 2>", False)]
)
def test_convolutions_are_looked_into_but_dilated_and_grouped_ones(asked, last_step, options, asks):
    weight = np.ones((2, 1 if "group" in options else 2, 2, 2), np.float32)
    inv, evidence = asked(weight, shape="float[1, 2, 5, 5]", op=f"Conv {options} (x, w)", feed=IMAGE)
    found = saturating_sums(inv, evidence)
    assert (found.verdict is not None) is asks
    assert asks or last_step(inv).answer.startswith("yes")


def test_a_transposed_operand_is_read_as_it_is(asked, last_step):
    feed = {"x": np.ascontiguousarray(ALIKE["x"].T)}
    inv, evidence = asked(shape="float[8, 4]", op="Gemm <transA: int = 1> (x, w)", feed=feed)
    assert saturating_sums(inv, evidence).verdict is not None
    assert last_step(inv).evidence["sums"]["product"]["saturated"] == 1.0


INTEGERS = """
    g (uint8[4, 8] x) => (int32[4, 8] y) {
        [product] y = MatMulInteger(x, w)
    }"""


@pytest.fixture
def on_integers(investigate):
    def ask(reference, weight=None):
        message = proto(INTEGERS)
        weight = np.full((8, 8), 127, np.int8) if weight is None else weight
        message.graph.initializer.append(numpy_helper.from_array(weight, "w"))
        feed = {"x": np.full((4, 8), 255, np.uint8)}
        return investigate(message, feed, reference=EngineSpec(reference), target="onnxruntime")

    return ask


def test_a_reference_that_adds_in_int16_is_replaced_by_float64(on_integers, compared):
    answer = saturating_reference(inv := on_integers("saturating"), compared(inv))
    assert answer.question.reference.name == "float64"
    assert answer.findings["exact_reference"].startswith("float64 is the reference: saturating adds products")
    exact = inv.about(answer.question).golden.outputs(inv.question.feeds[0])
    assert (np.asarray(exact["y"]) == 8 * 255 * 127).all()
    assert answer.verdict is None


@pytest.mark.parametrize(
    ("reference", "flags", "weight"),
    [
        ("float64", OLDER, None),
        ("onnxruntime", NEWER, None),
        ("saturating", OLDER, np.full((8, 8), 64, np.int8)),  # 255 * 64 * 2 fits
        ("saturating", OLDER, np.full((8, 8), 127, np.uint8)),
    ],
)
def test_a_reference_that_adds_exactly_stays(on_integers, compared, monkeypatch, reference, flags, weight):
    be_processor(monkeypatch, flags)
    answer = saturating_reference(inv := on_integers(reference, weight), compared(inv))
    assert (answer.question, answer.findings) == (None, {})
