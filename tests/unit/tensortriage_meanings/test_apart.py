"""Which of several changed attributes is named first: the one that, alone, gives the file's outputs."""

import dataclasses

import numpy as np
import pytest

from investigations import investigate, last_step  # noqa: F401 - fixtures
from meant_otherwise import model
from tensortriage.diagnose.measurements.evidence import Evidence
from tensortriage.diagnose.state.confidence import OBSERVED
from tensortriage.diagnose.state.verdict import Conclusion, Culprit, VerdictKind
from tensortriage.model.similarity.correspondence import Correspondence
from tensortriage_meanings.apart import attribute_apart

NET = """g (float[1,1,6,6] x) => (float[1,1,N,N] y) <float[4] s = {1.0, 1.0, 1.7, 1.7}> {
  [up] u = Resize<ATTRIBUTES>(x, , s)
  [y] y = Tanh(u)
}""".replace("N", "10")
POOL = """g (float[1,1,6,6] x) => (float[1,1,6,6] y) {
  [up] u = AveragePool<kernel_shape=[3,3], pads=[1,1,1,1], ATTRIBUTES>(x)
  [y] y = Tanh(u)
}"""
NEAREST = 'mode="nearest", nearest_mode="floor"'
X = {"x": np.random.default_rng(4).standard_normal((1, 1, 6, 6)).astype(np.float32)}


@pytest.fixture
def told(investigate):  # noqa: F811
    def ask(was, now, net=NET, opsets=(18, 18), change=""):
        inv = investigate(f'<ir_version: 8, opset_import: ["": {opsets[0]}]>\n{net.replace("ATTRIBUTES", was)}', X)
        file = model(net.replace("ATTRIBUTES", now), opset=opsets[1])
        beside = Correspondence.of(inv.model, file)
        first = Culprit(
            "up", beside.original.graph.node("up").op_type, "u", reason=beside.diff.nodes["up"], change=change
        )
        found = Conclusion(VerdictKind.MODEL_CHANGED, OBSERVED, f"differs: {first.reason}", culprits=[first])
        inv = inv.about(dataclasses.replace(inv.question, target_model=file))
        answer = attribute_apart(inv, Evidence(model_diff=beside, concluded=found))
        return answer and answer.verdict

    return ask


@pytest.mark.parametrize(
    ("was", "now", "first", "idle"),
    [
        (
            f'{NEAREST}, coordinate_transformation_mode="half_pixel", cubic_coeff_a=-0.75',
            f'{NEAREST}, coordinate_transformation_mode="asymmetric", cubic_coeff_a=-0.5',
            "coordinate_transformation_mode",
            "cubic_coeff_a",
        ),
        (f"{NEAREST}, antialias=0", 'mode="linear", nearest_mode="ceil", antialias=0', "mode", "nearest_mode"),
    ],
    ids=["grid", "mode"],
)
def test_the_attribute_that_carries_the_difference_is_named_first(told, was, now, first, idle):
    verdict = told(was, now)
    reason = verdict.culprits[0].reason
    assert reason.startswith(f"resamples in another way: has {first} ")
    assert f"the difference alone; of no matter here: has {idle} " in reason
    assert reason in verdict.summary


def test_two_that_make_it_together_are_both_named(told):
    grid = 'coordinate_transformation_mode="asymmetric"'
    verdict = told(f"{NEAREST}, cubic_coeff_a=-0.75", f'mode="linear", nearest_mode="ceil", {grid}, cubic_coeff_a=-0.5')
    assert "which make the difference together; of no matter here" in verdict.culprits[0].reason


def test_it_holds_for_any_operator(told):
    verdict = told("count_include_pad=0, ceil_mode=0", "count_include_pad=1, ceil_mode=1", POOL)
    assert verdict.culprits[0].reason.startswith("has count_include_pad 1 instead of ")
    assert "of no matter here: has ceil_mode 1" in verdict.culprits[0].reason


def test_one_attribute_is_told_with_what_to_write(told):
    verdict = told(NEAREST, 'mode="nearest", nearest_mode="ceil"')
    assert verdict.summary.endswith("; cure: set nearest_mode=floor at 'up' of the file, as the original has it")


def test_an_opset_that_was_raised_by_hand_is_told_so(told):
    """The axis of a Softmax without one is 1 before opset 13, and -1 since."""
    net = "g (float[1,1,6,6] x) => (float[1,1,6,6] y) { [up] y = SoftmaxATTRIBUTES(x) }"
    verdict = told("", "", net, opsets=(11, 13), change="attribute")
    assert "the original declares opset 11 and the file 13" in verdict.summary
    assert "raise the opset with onnx.version_converter" in verdict.summary
    assert told("", "<axis=2>", net, opsets=(13, 13), change="attribute").summary.startswith("differs: has axis 2")
