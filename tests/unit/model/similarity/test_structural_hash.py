"""Texts that are equal exactly when two nodes say the same, and hashes that are when an engine treats them alike."""

import models
from tensortriage.model.similarity.structural_hash import NodeKeys, operands, tensor_key

HEADER = "g (float[2, 4] x) => (float[2, 4] y) "


def signature(body, place=-1):
    model = models.parse(HEADER + body).ir
    return NodeKeys(model.functions).signature(list(model.graph)[place])


def test_names_do_not_count_and_attributes_and_operators_do():
    plain = signature("{ [n] y = Softmax <axis = 1> (x) }")
    assert signature("{ [other] a = Relu(x) [m] y = Softmax <axis = 1> (a) }") == plain
    assert signature("{ y = Softmax <axis = 0> (x) }") != plain
    assert signature("{ y = LogSoftmax <axis = 1> (x) }") != plain


def branches(then):
    return models.parse(
        "g (bool c, float[2] x, float[2] z) => (float[2] y) { [n] y = If (c) <then_branch = t () => (float[2] a) "
        "{ a = THEN }, else_branch = e () => (float[2] b) { b = Neg(x) }> }".replace("THEN", then)
    )


def test_bodies_count_by_what_they_do():
    def of(model):
        (node,) = model.ir.graph
        return NodeKeys(model.ir.functions).signature(node)

    relu = of(branches("Relu(x)"))
    assert of(branches("Sigmoid(x)")) != relu
    assert of(branches("Sub(x, z)")) == of(branches("Sub(x, z)"))
    assert [value.name for value in operands(next(iter(branches("Sub(z, x)").ir.graph)))] == ["c", "z", "x"]


def test_a_function_counts_by_its_body_and_may_not_hang():
    header = '<ir_version: 8, opset_import: ["": 17, "own": 1]> g (float[2] x) => (float[2] y) { [n] y = own.f(x) } '
    function = '<opset_import: ["": 17], domain: "own"> f (a) => (b) { b = OP(a) }'
    keys = []
    for op_type in ("Relu", "Relu", "Tanh"):
        model = models.of_message(models.onnx.parser.parse_model(header + function.replace("OP", op_type))).ir
        keys.append(NodeKeys(model.functions).function(next(iter(model.graph))))
    assert (keys[0] == keys[1], keys[0] == keys[2], bool(keys[0])) == (True, False, True)
    plain = models.parse(HEADER + "{ y = Relu(x) }").ir
    assert NodeKeys(plain.functions).function(next(iter(plain.graph))) == ""


def test_tensors_count_by_type_shape_and_content():
    model = models.parse(
        HEADER + "<float[2] a = {1, 2}, float[2] b = {1, 2}, float[2, 1] c = {1, 2}> { y = Relu(x) }"
    ).ir
    one, same, other = (tensor_key(model.graph.initializers[name].const_value) for name in "abc")
    assert (one == same, one == other) == (True, False)


def test_windows_that_do_what_they_do_anyway_are_as_good_as_nothing_said():
    def keys(attributes):
        text = f"g (float[1,2,8,8] x, float[3,2,3,3] w) => (float[1,3,h,v] y) {{ [n] y = Conv {attributes} (x, w) }}"
        model = models.parse(text).ir
        return [NodeKeys(model.functions).attribute(next(iter(model.graph)), name) for name in ("strides", "pads")]

    assert keys("<strides = [1, 1], pads = [0, 0, 0, 0]>") == keys("") == ["", ""]
    assert "" not in keys("<strides = [1, 2], pads = [0, 0, 1, 1]>")
