"""What a model must hold for a planted fault to show, and what is refused before one is planted."""

import numpy as np
import pytest

import models
from tensortriage.errors import UsageError
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.model.transforms.mark_outputs import mark_outputs
from tensortriage_testing.fault import Fault, FaultKind, values_between

CHAIN = models.chain(4)


def shows(fault, model=CHAIN):
    return fault.shows_in(model, value_specs(model))


def test_the_word_of_a_kind_will_do_and_another_word_is_refused():
    assert Fault("off-by-one", "op_0").kind is FaultKind.OFF_BY_ONE
    for wrong in ({"kind": "odd"}, {"kind": "scale", "from_level": "some"}):
        with pytest.raises(UsageError) as raised:
            Fault(**wrong, node="op_0")
        assert raised.value.slug == "fault-unknown"


def test_a_model_without_the_node_runs_right():
    assert shows(Fault("scale", "op_1"))
    assert not shows(Fault("scale", "elsewhere"))


def test_a_fault_of_a_fusion_needs_its_nodes_in_one_piece_with_nothing_marked_between():
    pair = Fault("scale", "op_1", fused_with="op_2")
    assert (shows(pair), pair.fused) == (True, ("op_1", "op_2"))
    assert not shows(pair, mark_outputs(CHAIN, ["v_1"]))
    assert shows(pair, mark_outputs(CHAIN, ["v_0"]))  # before the pair
    assert not shows(Fault("scale", "op_0", fused_with="op_2"))  # op_1 is between them
    assert shows(Fault("scale", "op_0", fused_with="op_2+op_1"))
    first, second = CHAIN.graph.nodes[:2]
    assert values_between(second, first) == {"v_0"}


def test_a_fault_of_one_type_shows_in_no_other():
    assert shows(Fault("scale", "op_1", dtype="float32"))
    assert not shows(Fault("scale", "op_1", dtype="float16"))


def test_a_fault_of_one_length_shows_by_an_axis_or_an_integer_operand():
    fault = Fault("scale", "op_1", length=5)
    assert fault.shows_among(np.zeros((2, 5)), [])
    assert fault.shows_among(np.zeros(2), [None, np.array([3, 5])])
    assert not fault.shows_among(np.zeros(2), [np.array([5.0])])
    assert Fault("scale", "op_1").shows_among(np.zeros(2), [])


def test_an_output_that_the_node_lacks_is_refused():
    node = CHAIN.graph.node("op_1")
    assert Fault("scale", "op_1").value_of(node) == "v_1"
    with pytest.raises(UsageError) as raised:
        Fault("scale", "op_1", output=1).value_of(node)
    assert raised.value.slug == "fault-unsupported"


def test_a_share_of_runs():
    assert Fault("scale", "n").shows_in_run()
    assert not Fault("scale", "n", run_chance=0.0).shows_in_run()
