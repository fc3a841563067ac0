"""Which nodes of a model are lowered, by name."""

import pytest

import models
from tensortriage.errors import ModelError, UsageError
from tensortriage.model.mixed_precision.lowerable_nodes import decide
from tensortriage.model.shape_inference.value_specs import value_specs


def lowered(model, **options):
    return {node.name for node in decide(model, specs=value_specs(model), **options).lowered()}


def test_everything_but_constants():
    model = models.parse("""
        g (float[2] x) => (float[2] y) { [c] c = Constant <value = float {2.0}> () [a] b = Neg(x)
            [d] y = Add(b, c) }""")
    assert lowered(model) == {"a", "d"}


def test_kept_by_name_and_by_operator():
    assert lowered(models.branchy(), kept_nodes=["left"]) == {"start", "right", "join", "side"}
    assert lowered(models.branchy(), kept_op_types=["Abs", "Sqrt"]) == {"left", "right", "join"}
    with pytest.raises(UsageError):
        lowered(models.branchy(), kept_nodes=["nope"])


def test_bodies_go_with_their_node():
    assert lowered(models.with_if()) == {"before", "choice", "scaled", "rooted", "after"}
    assert lowered(models.with_if(), kept_nodes=["choice"]) == {"before", "after"}


def test_shape_computations_stay_in_bodies_as_well():
    steps = "[shape] s = Shape(x) [half] h = Mul(s, two) [reshape] r = Reshape(x, h)"
    constant = models.parse(f"g (float[N] x) => (float[K] r) <int64[1] two = {{1}}> {{ {steps} }}")
    assert lowered(constant) == {"reshape"}
    inside = models.parse(f"""
        g (bool c, float[N] x) => (float[K] y) <int64[1] two = {{1}}> {{
            [choice] y = If (c) <then_branch = t () => (float[K] r) {{ {steps} }},
                                 else_branch = e () => (float[K] n) {{ [neg] n = Neg(x) }}> }}""")
    assert lowered(inside) == {"choice", "reshape", "neg"}


def test_quantizers_stay():
    model = models.parse("""
        g (float[2] x) => (float[2] y) <float s = {0.1}, uint8 z = {0}> {
            [q] q = QuantizeLinear(x, s, z) [d] d = DequantizeLinear(q, s, z) [n] y = Neg(d) }""")
    assert lowered(model) == {"n"}


def test_the_copy_carries_no_marks_and_the_model_is_not_changed():
    model = models.branchy()
    decision = decide(model, specs=value_specs(model), kept_nodes=["left"])
    assert all(not node.metadata_props for node in (*decision.model.graph, *model.ir.graph))


def test_a_function_that_cannot_be_inlined():
    model = models.parse("""
        <ir_version: 10, opset_import: ["": 18, "mine": 1]>
        g (float[2] x) => (float[2] y) { [call] y = mine.f(x) }
        <domain: "mine", opset_import: ["": 17]> f (v) => (w) { w = Neg(v) }""")
    with pytest.raises(ModelError) as caught:
        decide(model, specs=value_specs(model))
    assert caught.value.slug == "function-not-inlined"
    assert "17" in caught.value.message
