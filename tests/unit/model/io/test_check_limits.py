"""Small files that stand for something endless are refused, by an error that names the limit, in no time."""

import pytest
from onnx import TensorProto, helper

from tensortriage.errors import TriageError
from tensortriage.inputs.synthetic.polygraphy import polygraphy_feeds
from tensortriage.inputs.synthetic.random import random_feeds
from tensortriage.model.io.check_limits import MAX_CALL_DEPTH, MAX_NODES
from tensortriage.model.model import Model

OPSETS = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]


def info(name, shape=(1, 4)):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def function(name, *called):
    names = ["a", *(f"v{place}" for place in range(len(called) - 1)), "b"]
    nodes = [
        helper.make_node(one, [names[place]], [names[place + 1]], domain="own" if one.startswith("F") else "")
        for place, one in enumerate(called)
    ]
    return helper.make_function("own", name, ["a"], ["b"], nodes, OPSETS)


def model(*nodes, functions=(), shape=(1, 4)):
    graph = helper.make_graph(list(nodes), "g", [info("x", shape)], [info("y", shape)])
    return helper.make_model(graph, opset_imports=OPSETS, functions=functions, ir_version=8)


def relu():
    return model(helper.make_node("Relu", ["x"], ["y"]))


def calling(levels, calls):
    functions = [function("F0", "Relu")]
    functions += [function(f"F{level}", *[f"F{level - 1}"] * calls) for level in range(1, levels)]
    return model(helper.make_node(f"F{levels - 1}", ["x"], ["y"], domain="own"), functions=functions)


def load(proto, tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    return Model.load(path)


def refusal(proto, tmp_path):
    with pytest.raises(TriageError) as caught:
        next(random_feeds(load(proto, tmp_path)))
    assert caught.value.cure
    return caught.value


def test_functions_that_expand_beyond_measure(tmp_path):
    error = refusal(calling(30, 2), tmp_path)
    assert error.slug == "function-expands-too-much"
    assert str(MAX_NODES) in error.message


def test_calls_from_the_main_graph_count_as_well(tmp_path):
    proto = calling(17, 2)  # 131,071 nodes: within the limit
    assert load(proto, tmp_path).inputs
    last = proto.graph.node[0].op_type
    proto.graph.node.extend(helper.make_node(last, ["x"], [f"more{copy}"], domain="own") for copy in range(3))
    assert refusal(proto, tmp_path).slug == "function-expands-too-much"


@pytest.mark.parametrize("levels", [MAX_CALL_DEPTH + 1, 3000])
def test_a_long_chain_of_functions(levels, tmp_path):
    error = refusal(calling(levels, 1), tmp_path)
    assert error.slug == "function-too-deep"
    assert str(MAX_CALL_DEPTH) in error.message


def test_a_chain_within_the_limit_is_read(tmp_path):
    assert len(load(calling(MAX_CALL_DEPTH, 1), tmp_path).ir.functions) == MAX_CALL_DEPTH


@pytest.mark.parametrize("functions", [[("F", "F")], [("F", "F1"), ("F1", "F2"), ("F2", "F1")]])
def test_functions_that_call_themselves(functions, tmp_path):
    proto = model(helper.make_node("F", ["x"], ["y"], domain="own"), functions=[function(*one) for one in functions])
    assert refusal(proto, tmp_path).slug == "function-recursive"


@pytest.mark.parametrize("version", [2**31, 2**63 - 1, -1])
def test_versions_that_no_integer_of_an_engine_holds(version, tmp_path):
    proto = relu()
    proto.ir_version = version
    assert refusal(proto, tmp_path).slug == "version-impossible"
    proto = relu()
    proto.opset_import[0].version = version
    assert refusal(proto, tmp_path).slug == "version-impossible"


@pytest.mark.parametrize("rank", [65, 3000])
def test_ranks_that_no_array_has(rank, tmp_path):
    proto = model(helper.make_node("Relu", ["x"], ["y"]), shape=(1,) * rank)
    error = refusal(proto, tmp_path)
    assert error.slug == "rank-too-high"
    assert "64" in error.message


@pytest.mark.parametrize("shape", [(2**62, 4), (2**31, 2**31), (10**4, 10**4, 10**4)])
def test_inputs_beyond_the_memory(shape, tmp_path):
    proto = model(helper.make_node("Relu", ["x"], ["y"]), shape=shape)
    assert refusal(proto, tmp_path).slug == "feed-too-large"
    with pytest.raises(TriageError) as caught:
        next(polygraphy_feeds(load(proto, tmp_path).inputs))
    assert caught.value.slug == "feed-too-large"


def test_a_negative_size_is_an_open_one(tmp_path):
    (spec,) = load(model(helper.make_node("Relu", ["x"], ["y"]), shape=(-1, 4)), tmp_path).inputs
    assert spec.shape == (None, 4)
