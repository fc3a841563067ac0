"""A switched model computes what the same choice written into the model computes: bit for bit, for any choice."""

import random

import numpy as np
import pytest
from onnx import helper

from models import of_message, of_nodes, with_if, with_loop
from running import run
from tensortriage.model.mixed_precision.emulate_rounding import round_results
from tensortriage.model.mixed_precision.switchable_rounding import SWITCHES, switch_rounding
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.values.dtype import Precision
from tensortriage_testing import conv_net, feed_for, residual_dag

FORMATS = [Precision.FP16, Precision.BF16, Precision.FP8E4M3, Precision.INT8]


def same(model, feed, precision, kept):
    specs = value_specs(model)
    switched = switch_rounding(model, precision, specs=specs)
    wanted = run(round_results(model, precision, specs=specs, kept=kept), feed)
    found = run(switched.model, {**feed, **switched.feed(kept)})
    return all(np.array_equal(found[name], array, equal_nan=True) for name, array in wanted.items())


@pytest.mark.lengthy
@pytest.mark.parametrize("precision", FORMATS, ids=lambda precision: precision.value)
@pytest.mark.parametrize("make", [lambda: residual_dag(30, seed=3), conv_net], ids=["dag", "conv"])
def test_it_is_the_model_with_that_choice_written_in(make, precision):
    message = make()
    model, feed = of_message(message), feed_for(message)
    names = [node.name for node in model.graph.nodes]
    rng = random.Random(0)
    for count in (0, 1, len(names) // 3, len(names)):
        assert same(model, feed, precision, rng.sample(names, count))


@pytest.mark.parametrize("kept", [[], ["before"], ["choice"], ["after"], ["before", "choice", "after"]])
def test_the_branches_of_an_if_go_with_it(kept):
    x = np.array([0.1234567, 3.3333333], np.float32)
    for condition in (True, False):
        feed = {"c": np.array(condition), "x": -x if condition else x}
        assert same(with_if(), feed, Precision.BF16, kept) or not condition


@pytest.mark.parametrize("kept", [[], ["outer"], ["loop"]])
def test_the_body_of_a_loop_goes_with_it(kept):
    assert same(with_loop(), {"x": np.array([0.1234567, 3.3333333], np.float32)}, Precision.FP16, kept)


def test_one_input_holds_all_switches():
    model = of_message(residual_dag(12, seed=1))
    switched = switch_rounding(model, Precision.FP16, specs=value_specs(model))
    assert [spec.name for spec in switched.model.inputs] == ["x", SWITCHES]
    assert switched.model.inputs[-1].shape == (len(switched.switches),)
    assert not switched.feed(switched.nodes)[SWITCHES].any()


def test_nodes_that_hand_numbers_on_are_told_apart():
    nodes = [
        helper.make_node("Exp", ["x"], ["a"], name="exp"),
        helper.make_node("Transpose", ["a"], ["b"], name="turn"),
        helper.make_node("Max", ["b", "limit"], ["y"], name="limited"),
    ]
    model = of_nodes(
        nodes, inputs={"x": (2, 2)}, outputs={"y": (2, 2)}, initializers={"limit": np.ones((1,), np.float32)}
    )
    switched = switch_rounding(model, Precision.FP16, specs=value_specs(model))
    assert switched.nodes == ("exp", "turn", "limited")
    assert switched.rounding == ("exp", "limited")  # the constant of the Max gets rounded, and that is its doing
