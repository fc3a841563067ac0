import onnx_ir as ir

import models
from tensortriage.model.model import Model
from tensortriage.model.transforms.unused_removal import clean


def names(model):
    return [node.name for node in model.graph.nodes]


def test_what_nobody_uses_goes_and_what_only_served_it():
    model = models.parse("""
        g (float[2] x, float[2] spare) => (float[2] y) <float[2] w = {1, 2}, float[2] unused = {3, 4}> {
            [dead] a = Neg(x) [deader] b = Mul(a, w) [used] y = Exp(x)
        }""")
    cleaned = clean(model)
    assert names(cleaned) == ["used"]
    assert set(cleaned.graph.initializers) == set()
    assert [spec.name for spec in cleaned.inputs] == ["x", "spare"]
    assert names(model) == ["dead", "deader", "used"]


def test_unused_results_of_used_nodes_keep_their_names():
    cleaned = clean(models.parse("g (float[2] x) => (float[2] y) { [drop] y, mask = Dropout(x) }"))
    assert cleaned.graph.nodes[0].outputs == ("y", "mask")


def test_bodies_are_cleaned_and_what_only_they_used_goes_with_them():
    model = models.parse("""
        g (bool c, float[2] x) => (float[2] y) <float[2] w = {1, 2}> {
            [outer] a = Neg(x)
            [choice] y = If (c) <
                then_branch = t () => (float[2] r) { [dead] d = Add(a, w) [m] r = Exp(x) },
                else_branch = e () => (float[2] r) { [n] r = Abs(x) }
            >
        }""")
    cleaned = clean(model)
    assert names(cleaned) == ["choice"]
    body = cleaned.ir.graph.node("choice").attributes["then_branch"].as_graph()
    assert [node.name for node in body] == ["m"]
    assert set(cleaned.graph.initializers) == set()


def test_a_dead_node_with_bodies_releases_what_they_used():
    model = models.with_loop()
    clone = model.clone().ir
    keep = ir.node("Neg", [clone.graph.inputs[0]], name="keep")
    keep.outputs[0].name, keep.outputs[0].type = "z", ir.TensorType(ir.DataType.FLOAT)
    clone.graph.append(keep)
    clone.graph.outputs.clear()
    clone.graph.outputs.append(keep.outputs[0])
    cleaned = clean(Model.from_ir(clone))
    assert names(cleaned) == ["keep"]
    assert set(cleaned.graph.initializers) == set()


def test_functions_that_nobody_calls_go():
    model = models.parse("""
        <ir_version: 10, opset_import: ["": 18, "own": 1]>
        g (float[2] x) => (float[2] y) { [call] y = own.used(x) }
        <domain: "own", opset_import: ["": 18, "own": 1]> used (a) => (b) { b = own.inner(a) }
        <domain: "own", opset_import: ["": 18]> inner (a) => (b) { b = Neg(a) }
        <domain: "own", opset_import: ["": 18]> spare (a) => (b) { b = Exp(a) }""")
    assert {key[1] for key in clean(model).ir.functions} == {"used", "inner"}
