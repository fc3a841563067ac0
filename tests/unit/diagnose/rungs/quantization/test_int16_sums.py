"""Sums of 8-bit products on a processor without VNNI, whatever processor this is: where they do not fit, and the cure.

The engine is wrong only where weights are beyond 7 bits, as one that adds in saturating int16 is.
"""

import numpy as np
import pytest
from onnx import numpy_helper

from models import proto
from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.diagnose.rungs.quantization import int16_sums
from tensortriage.diagnose.rungs.quantization.int16_sums import saturating_sums
from tensortriage.diagnose.state.verdict import VerdictKind
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
TARGET = "saturating:kind=scale,node=product,amount=0.8"


@pytest.fixture(autouse=True)
def processor(monkeypatch):
    """Return a function that says whether the processor sums in int16; it does until that is said."""
    set_to = lambda sums: monkeypatch.setattr(int16_sums, "sums_in_int16", lambda: sums)  # noqa: E731
    set_to(True)
    return set_to


@pytest.fixture
def asked(investigate, compared):
    def ask(weight=LARGE, target=TARGET, *, shape="float[4, 8]", op="MatMul(x, w)", feed=ALIKE, ranks=0):
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
def test_an_engine_that_is_right_with_weights_in_7_bits_adds_in_int16(asked, last_step, kind):
    shape, op = KINDS[kind]
    inv, evidence = asked(shape=shape, op=op)
    answer = saturating_sums(inv, evidence)
    assert (answer.verdict.kind, answer.verdict.culprits[0].node) == (VerdictKind.QUANTIZATION, "product")
    cure = answer.findings["calibrated"]
    assert (cure.output, cure.kind) == ("y", "seven-bit-weights")
    assert cure.before == pytest.approx(0.2, rel=1e-3)  # what was planted
    assert cure.after < 0.02  # half as many steps
    sums = last_step(inv).evidence["sums"]["product"]
    assert 2 * 230 * 127 <= sums["largest"] <= 2 * 255 * 127
    assert sums["saturated"] == 1.0


def test_a_failure_that_stays_with_weights_in_7_bits_has_another_reason(asked, last_step):
    inv, evidence = asked(target="faulty:kind=scale,node=product,amount=0.8")
    answer = saturating_sums(inv, evidence)
    assert (answer.verdict, answer.findings) == (None, {})
    assert last_step(inv).answer.startswith("not in every op, but that does not explain the error")


def test_sums_that_fit_are_said_to(asked, last_step):
    inv, evidence = asked(MIXED)
    assert saturating_sums(inv, evidence).verdict is None
    assert last_step(inv).answer == "yes, in all 1 ops that multiply them"


def test_a_model_without_products_of_integers_is_not_asked_about(investigate, compared):
    inv = investigate("g (float[2] x) => (float[2] y) { y = Neg(x) }", {"x": np.float32([1, 2])})
    answer, before = saturating_sums(inv, compared(inv)), inv.record.steps
    assert answer.verdict is None
    assert not [step for step in before if step.question == int16_sums.QUESTION]


@pytest.mark.parametrize("why", ["processor", "nonfinite", "engine"])
def test_nothing_is_asked_where_it_cannot_be(asked, processor, last_step, why):
    inv, evidence = asked(target="float64" if why == "engine" else TARGET)
    if why == "processor":
        processor(False)
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
