"""Ops that are wrong alone, and whether what they do makes the failure; the faults and their sizes are planted."""

import dataclasses

import numpy as np
import pytest

from diagnosing import CHAIN_FEED, softmax_chain
from models import chain
from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.diagnose.measurements.evidence import Evidence
from tensortriage.diagnose.measurements.local_errors.injection import Influence
from tensortriage.diagnose.measurements.local_errors.local import Local, local_errors
from tensortriage.diagnose.rungs.operators.blame import (
    blame,
    blame_together,
    culprit_of,
    misled,
    weighed,
    with_instances,
)
from tensortriage.diagnose.state.verdict import Culprit
from tensortriage.engines.spec import EngineSpec
from tensortriage.envelope.ops import OpLimits
from tensortriage.envelope.setting import Floors
from tensortriage.values.store import MemoryStore

FAULT = "faulty:kind=scale,node=softmax,amount=1.05"
FUSED = f"{FAULT},fused_with=tanh"


def asked(investigate, compared, target):
    inv = investigate(softmax_chain(), CHAIN_FEED, target=target)
    return inv, compared(inv)


def local_of(errors, misshapen=()):
    """Return local figures with these errors, all floors being 1e-6."""
    one = np.float32([1])
    metrics = {name: measure(one, one + np.float32(error)) for name, error in errors.items()}
    floors = Floors(dict.fromkeys(errors, 1e-6), dict.fromkeys(errors, 1e-6), {}, "")
    return Local(metrics, floors, OpLimits.plain(floors), dict.fromkeys(misshapen, "another shape"), MemoryStore({}))


def test_an_op_that_is_wrong_alone_and_makes_the_failure_is_to_blame(investigate, compared, last_step):
    inv, evidence = asked(investigate, compared, FAULT)
    found, findings = blame(inv, evidence)
    (culprit,) = found.culprits
    assert (culprit.node, culprit.op_type, culprit.value) == ("softmax", "Softmax", "s")
    assert culprit.local_error == pytest.approx(0.05, rel=1e-4)
    assert culprit.influence == pytest.approx(0.05, rel=1e-4)  # all that follows is a product
    assert culprit.floor_ratio > 1000
    assert found.named == 1
    assert found.explained == pytest.approx(1.0, abs=1e-3)
    assert findings["influence"].alone.keys() == {"s"}  # the others do not differ
    assert last_step(inv).evidence["suspects"].keys() == {"s"}
    assert last_step(inv).answer.startswith("1 of 4 ops exceeds its floor; injecting the 1 that matters explains")


def test_what_is_known_already_is_not_measured_again(investigate, compared):
    inv, evidence = asked(investigate, compared, FAULT)
    local = local_of({"a": 0.0, "s": 0.0})
    found, findings = blame(inv, evidence.with_(local=local))
    assert found is None
    assert findings["local"].metrics == local.metrics


def test_ops_that_are_right_alone_are_not_to_blame(investigate, compared, last_step):
    inv, evidence = asked(investigate, compared, FUSED)
    found, findings = blame(inv, evidence)
    assert found is None
    assert len(findings["local"].metrics) == 4
    assert findings["influence"] is None
    assert last_step(inv).answer.startswith("no: all 4 ops")


def test_a_wrong_op_that_does_not_make_the_failure_is_not_to_blame(investigate, compared):
    """The failure is twice the softmax; what was measured alone is a hyperbolic tangent with the wrong sign."""
    inv, evidence = asked(investigate, compared, "faulty:kind=scale,node=softmax,amount=2")
    other = investigate(softmax_chain(), CHAIN_FEED, target="faulty:kind=sign,node=tanh")
    local = local_errors(other, other.question.feeds[0])
    found, weights = weighed(inv, evidence, local)
    assert found is None
    assert weights.alone["b"] > 0
    assert weights.explained < 0.5


def test_another_shape_needs_no_injection_unless_the_whole_model_has_the_right_one(investigate, compared, last_step):
    inv, evidence = asked(investigate, compared, FAULT)
    assert weighed(inv, evidence, local_of({"a": 0.0}, misshapen=["s"])) == (None, None)
    assert last_step(inv).evidence["misshapen"] == {"s": "another shape"}
    _, findings = blame(inv, evidence.with_(local=local_of({"a": 0.0}, misshapen=["s", "y"])))
    assert findings["local"].misshapen == {"s": "another shape"}  # y is an output, and has its shape there


def test_what_was_not_seen_is_not_said_to_be_right(investigate, compared, last_step):
    inv, evidence = asked(investigate, compared, FAULT)
    assert weighed(inv, evidence, local_of({})) == (None, None)
    assert last_step(inv).answer.startswith("unknown")


def test_where_single_ops_cannot_be_run_nothing_is_known_of_them(investigate, compared, last_step):
    _, evidence = asked(investigate, compared, FAULT)
    broken = EngineSpec.parse("faulty:kind=build-failure,node=tanh")
    refusing = investigate(softmax_chain(), CHAIN_FEED, target=FAULT, reference=broken)
    known = Influence({}, 0.0, 0.0)
    found, findings = blame(refusing, evidence.with_(influence=known))
    assert found is None
    assert "local" not in findings
    assert findings["influence"] is known
    assert last_step(refusing).answer.startswith("unknown: the exploded graph refuses")


def test_ops_are_to_blame_together_only_if_several_are_wrong(investigate, compared):
    inv, evidence = asked(investigate, compared, FAULT)
    weights = Influence({"s": 0.05}, 0.05, 0.1)
    for known in (
        evidence,
        evidence.with_(local=local_of({"s": 0.05, "a": 0.05})),  # without influences
        evidence.with_(local=local_of({"s": 0.05, "a": 0.0}), influence=weights),
        evidence.with_(local=local_of({"s": 0.05, "a": 0.05}, misshapen=["y"]), influence=weights),
    ):
        assert blame_together(inv, known) == (None, {})


@pytest.mark.parametrize("scale", [1.05, 1.0])
def test_ops_fed_with_what_the_others_make_are_to_blame_if_that_is_the_failure(investigate, compared, last_step, scale):
    """Of two ops that were measured as wrong the target has one, or none."""
    inv, evidence = asked(investigate, compared, f"faulty:kind=scale,node=softmax,amount={scale}")
    feed = inv.question.feeds[0]
    arrays = {name: np.asarray(inv.golden.of(feed)[name]) * np.float32(scale) for name in ("s", "y")}
    local = dataclasses.replace(local_of({"s": 0.05, "y": 0.05}), arrays=MemoryStore(arrays))
    known = evidence.with_(local=local, influence=Influence({"s": 0.2, "y": 0.1}, 0.0, 0.0))
    found, findings = blame_together(inv, known)
    if scale == 1.0:
        assert (found, findings) == (None, {})
        assert last_step(inv).answer.startswith("no: the 2 ops")
        return
    assert [culprit.node for culprit in found.culprits] == ["softmax", "last"]
    assert (found.named, last_step(inv).evidence["ops"]) == (2, ["s", "y"])
    assert findings["influence"].explained == found.explained == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize(
    ("wrong", "misshapen", "words"),
    [
        ((0,), (), "the same op in the 2 other layers is right"),
        ((0, 1), (), "in 2 of 3 layers, not in 'op_2'"),
        ((0, 1, 2), (), "in 3 of 3 layers"),
        ((0,), (2,), "in 2 of 3 layers, not in 'op_1'"),
    ],
)
def test_instances_of_a_repeated_op_are_told(wrong, misshapen, words):
    values = ("v_0", "v_1", "y")
    local = local_of({name: 0.1 if place in wrong else 0.0 for place, name in enumerate(values)},
                     [values[place] for place in misshapen])  # fmt: skip
    alike = dict.fromkeys(("op_0", "op_1", "op_2"), ("op_0", "op_1", "op_2"))
    found = with_instances(chain(3).graph, local, alike, Culprit("op_0", "Relu", "v_0", reason="it is off"))
    assert found.reason.startswith("it is off; ")
    assert found.reason.endswith(words)
    assert (len(found.instances), found.alike) == (len({*wrong, *misshapen}), 3)


def test_no_instance_is_called_right_that_is_beyond_its_own_rounding():
    """A fusion that all layers are in may show most in one; those near the limit of a suspect are not innocent."""
    local = local_of({"v_0": 0.1, "v_1": 0.0, "y": 0.0})
    floor = local.floors.target["y"]
    near = local_of({"v_0": 0.1, "v_1": 0.0, "y": 1.7 * floor})
    alike = dict.fromkeys(("op_0", "op_1", "op_2"), ("op_0", "op_1", "op_2"))
    found = with_instances(chain(3).graph, near, alike, Culprit("op_0", "Relu", "v_0", reason="it is off"))
    assert found.reason.endswith("wrong in 1 of 3 layers, and beyond its own rounding in 1 more")


def test_an_op_that_is_not_repeated_has_no_instances():
    culprit = Culprit("op_0", "Relu", "v_0")
    assert with_instances(chain(2).graph, local_of({}), {"op_0": ("op_0",)}, culprit) is culprit
    assert with_instances(chain(2).graph, local_of({}), {}, culprit) is culprit


def test_a_culprit_has_its_figures(investigate):
    inv = investigate(softmax_chain(), CHAIN_FEED)
    found = culprit_of(inv, 0.5, Influence({"b": 0.25}, 0.0, 0.0), "b", 40.0)
    assert (found.node, found.local_error, found.influence, found.floor_ratio) == ("tanh", 0.5, 0.25, 40.0)
    assert culprit_of(inv, 0.5, Influence({}, 0.0, 0.0), "b", 40.0).influence is None


@pytest.mark.parametrize(
    ("error", "floors", "expected"),
    [(0.1, {"a": 1e-6}, True), (0.0, {"a": 1e-6}, False), (0.0, {}, True), (None, {"a": 1e-6}, False)],
)
def test_an_op_whose_operand_is_off_may_be_misled(investigate, error, floors, expected):
    node = investigate(softmax_chain(), CHAIN_FEED).model.graph.node("tanh")
    one = np.float32([1])
    seen = {} if error is None else {"a": measure(one, one + np.float32(error))}
    assert misled(Evidence(in_context=seen, floors=Floors(floors, floors, {}, "")), node) is expected
    assert misled(Evidence(), node) is False
