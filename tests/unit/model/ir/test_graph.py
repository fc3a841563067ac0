import ml_dtypes
import numpy as np
import onnx
import pytest

import models
from tensortriage.errors import UsageError
from tensortriage.values.dtype import DType
from tensortriage.values.spec import ValueSpec


def names(nodes):
    return [node.name for node in nodes]


def test_producers_and_consumers():
    graph = models.branchy().graph
    assert graph.producer("a").name == "start"
    assert graph.producer("x") is None
    assert names(graph.consumers("a")) == ["left", "right", "side"]
    assert graph.consumers("y") == ()
    assert graph.values == ("a", "b", "c", "y", "z")
    assert graph.node("join").inputs == ("b", "c")
    assert "join" in graph
    assert "b" not in graph


def test_a_value_used_twice_by_one_node_has_one_consumer():
    graph = models.parse("g (float[1] x) => (float[1] y) { [twice] y = Mul(x, x) }").graph
    assert names(graph.consumers("x")) == ["twice"]


def test_depth_is_the_longest_way():
    graph = models.parse("""
        g (float[1] x) => (float[1] y) { [a] a = Neg(x)  [b] b = Neg(a)  [c] c = Neg(b)  [y] y = Add(a, c) }""").graph
    assert {node.name: graph.depth(node) for node in graph.nodes} == {"a": 0, "b": 1, "c": 2, "y": 3}


def test_ancestors_and_descendants_are_in_topological_order():
    graph = models.branchy().graph
    assert names(graph.ancestors(["y"])) == ["start", "left", "right", "join"]
    assert names(graph.ancestors(["x"])) == []
    assert names(graph.descendants(["c"])) == ["join"]
    assert names(graph.descendants(["x"])) == ["start", "left", "right", "join", "side"]


def test_ancestors_of_a_long_chain_need_no_recursion():
    graph = models.chain(5000).graph
    assert len(graph.ancestors(["y"])) == 5000
    assert graph.depth(graph.nodes[-1]) == 4999


def test_an_unknown_node_is_a_usage_error():
    with pytest.raises(UsageError) as caught:
        models.branchy().graph.node("nowhere")
    assert caught.value.slug == "node-unknown"


def test_omitted_optional_inputs_and_outputs_stay():
    graph = models.parse("""
        g (float[1, 2, 4, 4] x, float upper) => (float[1, 2, 4, 4] y) {
            [clip] c = Clip(x, , upper)
            [drop] y = Dropout(c)
        }""").graph
    assert graph.node("clip").inputs == ("x", "", "upper")
    assert graph.node("clip").uses == ("x", "upper")


def test_captures_of_if_branches_count_as_uses():
    graph = models.with_if().graph
    choice = graph.node("choice")
    assert choice.has_body
    assert choice.inputs == ("c",)
    assert choice.captures == ("a", "w", "x")
    assert names(graph.consumers("w")) == ["choice"]
    assert names(graph.ancestors(["y"])) == ["before", "choice", "after"]
    assert not graph.node("after").has_body


def test_loop_bodies_own_their_inputs():
    assert models.with_loop().graph.node("loop").captures == ("step",)


def test_captures_reach_through_nested_bodies():
    graph = models.parse("""
        g (bool c, float[2] x) => (float[2] y) {
            [outer] y = If (c) <
                then_branch = t () => (float[2] r) {
                    own = Neg(x)
                    r = If (c) <
                        then_branch = tt () => (float[2] p) { p = Add(own, x) },
                        else_branch = te () => (float[2] q) { q = Exp(own) }
                    >
                },
                else_branch = e () => (float[2] s) { s = Identity(x) }
            >
        }""").graph
    assert graph.node("outer").captures == ("x", "c")


def test_attributes_are_plain():
    graph = models.parse("""
        g (float[1, 3, 8, 8] x, float[4, 3, 3, 3] w) => (float[1, 4, 6, 6] y) {
            [conv] y = Conv <kernel_shape = [3, 3], auto_pad = "VALID", group = 1> (x, w)
        }""").graph
    assert dict(graph.node("conv").attributes) == {"kernel_shape": (3, 3), "auto_pad": "VALID", "group": 1}


def test_tensor_attributes_are_specs_and_bodies_are_left_out():
    graph = models.parse("""
        g () => (float[2] y) { [constant] y = Constant <value = float[2] {1, 2}> () }""").graph
    spec = graph.node("constant").attributes["value"]
    assert (spec.dtype, spec.shape) == (DType.FLOAT, (2,))
    assert dict(models.with_if().graph.node("choice").attributes) == {}


def test_constants_are_initializers_and_constant_nodes():
    graph = models.parse("""
        g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> {
            c = Constant <value = float[2] {3, 4}> ()
            i = Constant <value_ints = [5, 6]> ()
            f = Constant <value_float = 0.5> ()
            s = Constant <value_strings = ["a", "ü"]> ()
            a = Add(x, w)
            y = Add(a, c)
        }""").graph
    assert dict(graph.initializers) == {"w": ValueSpec("w", DType.FLOAT, (2,))}
    assert list(graph.constants) == ["w", "c", "i", "f", "s"]
    assert graph.constants["f"] == ValueSpec("f", DType.FLOAT, ())
    assert graph.weight("c").tolist() == [3, 4]
    assert graph.weight("i").tolist() == [5, 6]
    assert graph.weight("i").dtype == np.int64
    assert graph.weight("f") == np.float32(0.5)
    assert graph.weight("s").tolist() == ["a", "ü"]


def test_the_weight_of_a_computed_value_is_a_usage_error():
    with pytest.raises(UsageError) as caught:
        models.branchy().graph.weight("a")
    assert caught.value.slug == "value-not-constant"


EVERY_DTYPE = [dtype for dtype in DType if dtype is not DType.STRING]


@pytest.mark.parametrize("storage", ["raw", "typed"])
@pytest.mark.parametrize("dtype", EVERY_DTYPE, ids=lambda dtype: dtype.label)
def test_weights_of_every_type_come_as_ml_dtypes_arrays(dtype, storage):
    # 0 and 1 exist in every format but float8_e8m0, which has no zero: there the halves stand in.
    wanted = np.array([0.5, 1, 2] if dtype is DType.FLOAT8E8M0 else [0, 1, 1]).astype(dtype.numpy)
    raw = storage == "raw"
    vals = wanted.tobytes() if raw and dtype.bits >= 8 else wanted
    if raw and dtype.bits < 8:
        packed = sum(
            int(code) << (dtype.bits * i) for i, code in enumerate(wanted.view(np.uint8) & (2**dtype.bits - 1))
        )
        vals = packed.to_bytes((3 * dtype.bits + 7) // 8, "little")
    tensor = onnx.helper.make_tensor("w", dtype.value, [3], vals, raw=raw)
    message = models.proto("g (float[1] x) => (float[1] y) { y = Neg(x) }")
    message.graph.initializer.append(tensor)
    graph = models.of_message(message).graph
    assert graph.initializers["w"] == ValueSpec("w", dtype, (3,))
    assert graph.weight("w").dtype == dtype.numpy
    assert graph.weight("w").tolist() == wanted.tolist()


def test_packed_negative_numbers_keep_their_sign():
    # int4 -8 is the code 8, int4 7 the code 7; the first element is in the low half (onnx.proto, raw_data).
    tensor = onnx.helper.make_tensor("w", onnx.TensorProto.INT4, [3], b"\x78\x0f", raw=True)
    message = models.proto("g (float[1] x) => (float[1] y) { y = Neg(x) }")
    message.graph.initializer.append(tensor)
    weight = models.of_message(message).graph.weight("w")
    assert weight.dtype == ml_dtypes.int4
    assert weight.tolist() == [-8, 7, -1]


def test_a_call_of_a_function_is_one_node():
    graph = models.parse("""
        <ir_version: 10, opset_import: ["": 18, "own": 1]>
        g (float[2] x) => (float[2] y) { [call] y = own.Twice(x) }
        <opset_import: ["": 18], domain: "own"> Twice (a) => (b) { t = Neg(a)  b = Neg(t) }""").graph
    assert [(node.domain, node.op_type) for node in graph.nodes] == [("own", "Twice")]
