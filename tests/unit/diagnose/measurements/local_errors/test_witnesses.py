"""Who agrees with whom at one op, and that engines with the same kernels count as one witness."""

import math

import numpy as np
import pytest

from tensortriage.diagnose.measurements.local_errors.witnesses import (
    FLOAT64,
    ONNX,
    REFERENCE,
    Opinion,
    family_of,
    independent_engines,
    opinions,
)
from tensortriage.engines.spec import EngineSpec

RIGHT, WRONG = np.float32([1, 2]), np.float32([1, 3])
SAME_KERNELS = {REFERENCE: "onnxruntime", "ort": "onnxruntime", "emulate": "onnxruntime"}
MODEL = "g (float[2] x) => (float[2] y) { [root] a = Sqrt(x) [turned] y = Neg(a) }"
FEED = {"x": np.float32([4, 9])}


def opinion(families=SAME_KERNELS, **results):
    return Opinion("y", 1e-6, results, families)


@pytest.mark.parametrize(
    ("results", "against", "alone"),
    [
        ({FLOAT64: RIGHT, "openvino": RIGHT}, {FLOAT64, "openvino"}, True),
        ({FLOAT64: RIGHT, "openvino": RIGHT, "mnn": WRONG}, {FLOAT64, "openvino"}, False),  # the third sides with it
        ({FLOAT64: RIGHT}, set(), False),  # nobody confirms it
        ({FLOAT64: RIGHT, "openvino": WRONG}, set(), False),
        ({FLOAT64: RIGHT, "openvino": np.float32([5, 5])}, set(), False),  # two who do not agree either
        ({"ort": RIGHT, "emulate": RIGHT}, set(), False),  # the reference's own kernels are no witnesses
    ],
)
def test_the_reference_is_contradicted_by_two_independent_witnesses_who_agree(results, against, alone):
    found = opinion(**{REFERENCE: WRONG}, **results)
    assert set(found.against) == against
    assert found.reference_is_alone is alone


def test_the_only_family_that_agrees_with_a_reference_of_unknown_kernels_is_no_second_witness():
    right = {FLOAT64: RIGHT, "openvino": RIGHT}
    one = opinion({REFERENCE: "script:net.py"}, **{REFERENCE: WRONG, ONNX: WRONG}, **right)
    assert (one.reference_is_alone, one.same_code) == (True, (ONNX,))
    two = opinion({REFERENCE: "script:net.py"}, **{REFERENCE: WRONG, ONNX: WRONG, "mnn": WRONG}, **right)
    assert (two.reference_is_alone, two.same_code) == (False, ())


def test_two_engines_with_the_same_kernels_confirm_nothing():
    families = {"mnn": "shared", "ncnn": "shared"}
    assert opinion(families, **{REFERENCE: WRONG, "mnn": RIGHT, "ncnn": RIGHT}).against == ()


@pytest.mark.parametrize(
    ("witness", "disputed", "alone"),
    [(WRONG, True, True), (RIGHT, True, False), (np.float32([7, 7]), True, False)],
)
def test_float64_is_alone_where_another_sides_with_the_reference(witness, disputed, alone):
    found = opinion(**{REFERENCE: WRONG, FLOAT64: RIGHT, "openvino": witness})
    assert (found.disputed, found.float64_is_alone) == (disputed, alone)


def test_without_float64_or_where_it_agrees_there_is_no_dispute():
    assert not opinion(**{REFERENCE: RIGHT, "openvino": WRONG}).disputed
    assert not opinion(**{REFERENCE: RIGHT, FLOAT64: RIGHT, "openvino": RIGHT}).float64_is_alone


def test_a_missing_result_or_one_of_another_shape_is_infinitely_far():
    found = opinion(**{REFERENCE: RIGHT, "openvino": RIGHT[:1]})
    assert found.error("openvino", REFERENCE) == math.inf
    assert found.error("mnn", REFERENCE) == math.inf
    assert found.error(REFERENCE, "mnn") == math.inf


@pytest.mark.slow
def test_every_independent_implementation_is_asked_at_the_ops_in_question(investigate):
    inv = investigate(MODEL, FEED)
    found = opinions(inv, inv.question.feeds[0], ["a", "x"])  # nobody computes x
    assert [each.value for each in found] == ["a"]
    assert {REFERENCE, FLOAT64, ONNX} <= found[0].results.keys()
    for array in found[0].results.values():
        np.testing.assert_allclose(array, [2, 3], rtol=1e-6)  # square roots
    assert found[0].family(REFERENCE) == "onnxruntime"
    assert found[0].family(ONNX) == ONNX
    assert found[0].bound > 0
    assert opinions(inv, inv.question.feeds[0], ["x"]) == []


def test_a_target_with_kernels_of_its_own_is_a_witness_unless_it_rounds(investigate):
    plain, target = "onnxruntime:optimization=none", "faulty:kind=scale,node=root"
    assert target in independent_engines(investigate(MODEL, FEED, target=target))
    assert not any(
        "faulty" in name for name in independent_engines(investigate(MODEL, FEED, target="faulty:precision=fp16"))
    )
    assert plain not in independent_engines(investigate(MODEL, FEED))
    assert plain in independent_engines(investigate(MODEL, FEED, reference=EngineSpec("float64")))
    assert family_of(EngineSpec("emulate", {"precision": "fp16"})) == "onnxruntime"
    assert family_of(EngineSpec.parse(target)) == target
