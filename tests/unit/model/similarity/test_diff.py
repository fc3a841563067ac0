"""Each case plants one difference and says which node must be named and why."""

import numpy as np
import onnx
import onnx_ir as ir
import pytest

import models
from tensortriage.model.mixed_precision.convert_precision import convert
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.model.similarity.changes import ChangeKind
from tensortriage.model.similarity.diff import diff
from tensortriage.values.dtype import Precision
from tensortriage_testing import models as networks


def net():
    return Model.from_ir(ir.from_proto(networks.encoder(seed=3)))


def renamed(model):
    """Every node and inner value gets another name, in another order of the alphabet."""
    clone = model.clone()
    for index, node in enumerate(clone.ir.graph):
        node.name = f"n{997 - index}"
        for number, value in enumerate(node.outputs):
            if not value.is_graph_output():
                value.name = f"w{997 - index}_{number}"
    return clone


def edited(model, edit):
    clone = model.clone()
    edit({node.name: node for node in clone.ir.graph}, clone.ir.graph)
    return Model.from_ir(clone.ir)


def kinds(found):
    return [(change.kind, change.reference_node or change.node) for change in found.changes]


def test_equal_models():
    found = diff(models.branchy(), models.branchy())
    assert found.is_equal
    assert found.nodes == {}
    assert found.pairs == {name: name for name in ("start", "left", "right", "join", "side")}


def test_a_renamed_model_is_equal():
    model = net()
    found = diff(model, renamed(model))
    assert found.is_equal, found
    others = [node for node in model.graph.nodes if node.op_type != "Constant"]
    assert len(found.pairs) == len(others) > 30
    assert all(found.pairs[node.name] == f"n{997 - node.index}" for node in others)


def test_a_constant_node_is_as_good_as_an_initializer_and_a_default_as_good_as_nothing():
    left = models.parse("""
        g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { [a] b = Mul(x, w) [s] y = Softmax(b) }""")
    right = models.parse("""
        g (float[2] x) => (float[2] y) {
            [c] w = Constant <value = float[2] {1, 2}> () [a] b = Mul(x, w) [s] y = Softmax <axis = -1> (b) }""")
    assert diff(left, right).is_equal


def change_epsilon(nodes, graph):
    nodes["norm"].attributes.add(ir.AttrFloat32("epsilon", 0.1))


def change_weight(nodes, graph):
    array = nodes["matmul"].inputs[1].const_value.numpy().copy()
    array[1, 1] += 0.5
    nodes["matmul"].inputs[1].const_value = ir.tensor(array, name="w")


def change_op(nodes, graph):
    nodes["act"].op_type = "Tanh"


def change_wiring(nodes, graph):
    nodes["residual"].replace_input_with(1, nodes["act"].inputs[0])


MODEL = """
    g (float[2, 2] x) => (float[2, 2] y) <float[2, 2] w = {1, 2, 3, 4}, float[2] s = {1, 1}> {
        [norm] a = LayerNormalization <axis = -1, epsilon = 0.001> (x, s)
        [matmul] b = MatMul(a, w)
        [act] c = Relu(b)
        [residual] d = Add(c, x)
        [end] y = Exp(d)
    }"""


def test_an_op_that_one_of_its_readers_does_without_is_named():
    text = """g (float[2, 2] x) => (float[2, 2] y) {
        [exp] a = Exp(x) [act] c = Relu(a) [add] d = Add(HERE, x) [end] y = Mul(d, c) }"""
    before, after = (models.parse(text.replace("HERE", name)) for name in "ca")
    (change,) = diff(before, after).changes
    assert (change.kind, change.node) == (ChangeKind.WIRING, "add")
    assert change.reason == "reads 'a' as operand 0 without Relu 'act' before it"


@pytest.mark.parametrize("rename", [False, True], ids=["same names", "renamed"])
@pytest.mark.parametrize(
    ("edit", "kind", "node", "reason"),
    [
        (change_epsilon, ChangeKind.EPSILON, "norm", "has another epsilon: 0.1 instead of 0.001"),
        (change_weight, ChangeKind.WEIGHT, "matmul", "[1, 2, 3, 4.5] instead of [1, 2, 3, 4]"),
        (change_op, ChangeKind.OP_TYPE, "act", "is Tanh instead of Relu"),
        (change_wiring, ChangeKind.WIRING, "residual", "as operand 1"),
    ],
)
def test_one_change_is_found_at_its_node(edit, kind, node, reason, rename):
    model = models.parse(MODEL)
    changed = edited(model, edit)
    found = diff(model, Model.from_ir(renamed(changed).ir) if rename else changed)
    assert kinds(found) == [(kind, node)]
    assert reason in found.changes[0].reason
    assert list(found.nodes) == [found.changes[0].node]
    assert not found.is_equal


def test_an_added_and_a_removed_node():
    model = models.parse(MODEL)

    def insert(nodes, graph):
        extra = ir.node("Neg", [nodes["act"].outputs[0]], name="extra")
        extra.outputs[0].name = "e"
        nodes["residual"].replace_input_with(0, extra.outputs[0])
        graph.insert_after(nodes["act"], extra)

    bigger = edited(model, insert)
    assert (diff(model, bigger).added, diff(model, bigger).removed) == (("extra",), ())
    assert list(diff(model, bigger).nodes) == ["extra"]
    assert (diff(bigger, model).added, diff(bigger, model).removed) == ((), ("extra",))
    assert (diff(model, renamed(bigger)).added, diff(model, renamed(bigger)).removed) == (("n994",), ())


def test_numbered_names_that_moved_do_not_mislead():
    """Exporters number nodes: one node more, and every later name belongs to another node."""
    texts = [
        "[n0] a = Neg(x) [n1] b = Exp(a) [n2] c = Neg(b) [n3] d = Exp(c) [n4] y = Neg(d)",
        "[n0] z = Abs(x) [n1] a = Neg(z) [n2] b = Exp(a) [n3] c = Neg(b) [n4] d = Exp(c) [n5] y = Neg(d)",
    ]
    before, after = (models.parse(f"g (float[2] x) => (float[2] y) {{ {text} }}") for text in texts)
    found = diff(before, after)
    assert found.added == ("n0",)
    assert found.pairs == {f"n{i}": f"n{i + 1}" for i in range(5)}


def test_a_changed_body_is_a_changed_attribute():
    changed = edited(
        models.with_if(),
        lambda nodes, graph: setattr(nodes["choice"].attributes["else_branch"].as_graph()[0], "op_type", "Exp"),
    )
    found = diff(models.with_if(), changed)
    assert kinds(found) == [(ChangeKind.ATTRIBUTE, "choice")]
    assert "else_branch" in found.changes[0].reason
    assert diff(models.with_if(), renamed(models.with_if())).is_equal


NESTED = """
    g (bool c, float[2] x) => (float[2] y) {
        [scan] y = Loop (n, c, x) <body = b (int64 i, bool m, float[2] s) => (bool m2, float[2] t) {
            m2 = Identity(m)
            t = Loop (n, m, s) <inner = b (int64 j, bool k, float[2] u) => (bool k2, float[2] v) {
                k2 = Identity(k)
                v = Add(u, USED)
            }>
        }>
        n = Constant <value = int64 {2}> ()
    }"""


def test_which_bodys_value_is_used_is_a_difference():
    inner, outer = (models.parse(NESTED.replace("inner =", "body =").replace("USED", used)) for used in "us")
    assert kinds(diff(inner, outer)) == [(ChangeKind.ATTRIBUTE, "scan")]


CALL = """
    <ir_version: 10, opset_import: ["": 18, "mine": 1]>
    g (float[2] x) => (float[2] y) { [call] a = mine.f(x) [end] y = Neg(a) }
    <domain: "mine", opset_import: ["": 18]> f (v) => (w) { u = OP(v, v) w = Neg(u) }"""


def test_a_changed_function_is_found_at_its_call():
    added, multiplied = (models.parse(CALL.replace("OP", op)) for op in ("Add", "Mul"))
    found = diff(added, multiplied)
    assert kinds(found) == [(ChangeKind.OP_TYPE, "call")]
    assert "calls a different function" in found.nodes["call"]


def test_differences_of_inputs_outputs_and_opsets():
    left = models.parse("g (float[2] x) => (float[2] y, float[2] z) { [a] y = Neg(x) [b] z = Exp(x) }")
    right = models.parse("""
        <ir_version: 10, opset_import: ["": 19]>
        g (float[3] x) => (float[2] w, float[2] y) { [a] y = Neg(x) [b] w = Exp(x) }""")
    told = " ".join(diff(left, right).interface)
    assert "input 'x' (float32 [3]) was 'x' (float32 [2])" in told
    assert "output 'w' (float32 [2]) was 'z' (float32 [2])" in told
    assert "operator sets are {'ai.onnx': 19} instead of {'ai.onnx': 18}" in told


def test_swapped_outputs_of_one_name_each_are_told():
    left = models.parse("g (float[2] x) => (float[2] y, float[2] z) { [a] y = Neg(x) [b] z = Exp(x) }")
    right = models.parse("g (float[2] x) => (float[2] y, float[2] z) { [a] z = Neg(x) [b] y = Exp(x) }")
    assert not diff(left, right).is_equal


def test_a_converted_model_differs_in_casts_and_constants():
    model = models.mlp()
    found = diff(model, convert(model, Precision.FP16, specs=value_specs(model)))
    assert set(found.added) == {"cast::fp16::x", "cast::fp32::y"}
    assert found.removed == ()
    assert {kind for kind, _ in kinds(found)} == {ChangeKind.ADDED, ChangeKind.WEIGHT_ROUNDED}
    assert not found.nodes.keys() & {"/layer.0/Gemm", "/layer.1/Gemm"}


def test_unrelated_models():
    found = diff(models.chain(3), models.parse("g (float[2] p) => (float[2] q) { [one] q = Softmax(p) }"))
    assert not found.is_equal
    assert found.added == ("one",)
    assert found.removed == ("op_0", "op_1", "op_2")


def test_weights_are_compared_by_content_wherever_they_are(tmp_path):
    path = models.with_external_data(tmp_path)
    message = onnx.load(path)
    embedded = Model.from_ir(ir.from_proto(message))
    assert diff(Model.load(path), embedded).is_equal
    array = np.arange(32, dtype=np.float32).reshape(4, 8)
    array[0, 0] = 9
    message.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(array, "W"))
    found = diff(Model.load(path), Model.from_ir(ir.from_proto(message)))
    assert kinds(found) == [(ChangeKind.WEIGHT, "matmul")]


OPS = """
    <ir_version: 10, opset_import: ["": 19]>
    g (float[1, 4, 8, 8] x) => (float[1, 4, N, M] y)
    <float[4] s = {1, 2, 3, 4}, float[4] b = {0, 0, 0, 1}, float[4] m = {0, 1, 0, 0}, float[4] v = {1, 1, 2, 1},
     float half = {0.5}, bool on = {1}, float eps = {1e-5}, float[4] sizes = {1, 1, 2, 2}> {
        [norm] a = BatchNormalization (x, s, b, m, v)
        [conv] c = Conv <pads = [1, 1, 1, 1], strides = [1, 1]> (a, w)
        [drop] d = Dropout (c)
        [add] e = Add (d, eps)
        [root] f = Sqrt (e)
        [resize] h = Resize <mode = "linear"> (f, , sizes)
        [flat] k = Flatten <axis = 3> (h)
        [first] l = MatMul (k, w1)
        [second] n = MatMul (l, w2)
        [end] y = Reshape (n, shape)
    }"""


def ops(edit=lambda nodes, weights: None):
    message = models.proto(OPS)
    rng = np.random.default_rng(0)
    weights = {name: rng.standard_normal((16, 16)).astype(np.float32) for name in ("w1", "w2")}
    weights |= {"w": rng.standard_normal((4, 4, 3, 3)).astype(np.float32), "shape": np.array([1, 4, 16, 16])}
    edit({node.name: node for node in message.graph.node}, weights)
    for name, array in weights.items():
        message.graph.initializer.append(onnx.numpy_helper.from_array(np.ascontiguousarray(array), name))
    return models.of_message(message)


def set_attribute(node, name, value):
    kept = [attribute for attribute in node.attribute if attribute.name != name]
    del node.attribute[:]
    node.attribute.extend([*kept, onnx.helper.make_attribute(name, value)])


def attribute_of(node, name, value):
    return lambda nodes, weights: set_attribute(nodes[node], name, value)


def weight_to(name, change):
    def edit(nodes, weights):
        weights[name] = change(weights)

    return edit


def leave_on(nodes, weights):
    nodes["drop"].input.extend(["half", "on"])


def scalar_epsilon(nodes, weights):
    weights["larger"] = np.float32(1e-3).reshape(())
    nodes["add"].input[1] = "larger"


@pytest.mark.parametrize("rename", [False, True], ids=["same names", "renamed"])
@pytest.mark.parametrize(
    ("edit", "kind", "node", "words"),
    [
        (attribute_of("norm", "training_mode", 1), "training-mode", "norm", "is in training mode: it normalizes by"),
        (attribute_of("norm", "epsilon", 1e-3), "epsilon", "norm", "has another epsilon: 0.001 instead of 1e-05"),
        (leave_on, "training-mode", "drop", "is left on (training_mode is true): it zeroes elements at random"),
        (scalar_epsilon, "epsilon", "add", "has another epsilon: 0.001 instead of 1e-05"),
        (attribute_of("resize", "mode", "nearest"), "resampling", "resize", "mode 'nearest' instead of 'linear'"),
        (
            attribute_of("resize", "coordinate_transformation_mode", "asymmetric"),
            "resampling",
            "resize",
            "coordinate_transformation_mode 'asymmetric' instead of 'half_pixel'",
        ),
        (attribute_of("conv", "pads", [0, 0, 2, 2]), "padding", "conv", "has pads (0, 0, 2, 2) instead of"),
        (attribute_of("conv", "strides", [2, 2]), "strides", "conv", "has strides (2, 2) instead of (1, 1)"),
        (weight_to("w1", lambda w: w["w1"].T), "weight-transposed", "first", "has its weight 'w1' transposed"),
        (weight_to("w", lambda w: w["w"].swapaxes(0, 1)), "weight-transposed", "conv", "transposed, axes [1, 0, 2, 3]"),
        (weight_to("w1", lambda w: w["w2"]), "weight-of-another-node", "first", "has the weight of MatMul 'second'"),
        (weight_to("w2", lambda w: w["w2"] * np.float32(0.9)), "weight-rescaled", "second", "'w2' multiplied by 0.9"),
        (weight_to("w2", lambda w: w["w2"] + 1), "weight", "second", "256 of 256 elements differ"),
        (weight_to("w2", lambda w: w["w2"].astype("f2").astype("f4")), "weight-rounded", "second", "rounded"),
        (weight_to("w2", lambda w: w["w2"] * np.float32(1.003)), "weight-rescaled", "second", "multiplied by 1.003"),
    ],
)  # fmt: skip
def test_what_happened_to_a_node_is_named(edit, kind, node, words, rename):
    changed = ops(edit)
    found = diff(ops(), Model.from_ir(renamed(changed).ir) if rename else changed)
    assert [(change.kind.value, change.reference_node) for change in found.changes] == [(kind, node)]
    assert words in found.changes[0].reason
    assert (found.nodes == {}) == (kind == "weight-rounded")


def test_a_dropout_that_the_reference_lacks_is_no_mere_addition():
    def insert(nodes, weights):
        leave_on(nodes, weights)

    def take_out(nodes, weights):
        nodes["drop"].op_type = "Identity"

    found = diff(ops(take_out), ops(insert))
    assert ("training-mode", "drop") in [(change.kind.value, change.node) for change in found.changes]


def test_values_at_the_same_place():
    model = models.parse(MODEL)
    assert diff(model, renamed(model)).values["x"] == "x"
    assert set(diff(model, renamed(model)).values.values()) == {"x", "a", "b", "c", "d", "y"}


def test_what_a_folded_node_made_is_what_the_other_one_makes():
    """Conv and BatchNormalization against one Conv of another name: its result is that of the BatchNormalization."""
    apart = models.parse("g (float[2] x) => (float[2] y) { [a] a = Neg(x) [b] b = Exp(a) [c] y = Relu(b) }")
    joined = models.parse("g (float[2] x) => (float[2] y) { [n] z = Neg(x) [c] y = Relu(z) }")
    assert diff(apart, joined).values == {"x": "x", "y": "y", "z": "b"}
    assert diff(joined, apart).values == {"x": "x", "y": "y", "b": "z"}
