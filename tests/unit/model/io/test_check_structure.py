"""Graphs that do not hang together; each refusal names the place."""

import onnx
import pytest

import models
from tensortriage.errors import ModelError
from tensortriage.model.model import Model


def refusal(tmp_path, model):
    with pytest.raises(ModelError) as caught:
        Model.load(models.write(tmp_path / "m.onnx", model))
    assert "\n" not in caught.value.message
    assert len(caught.value.message) < 1000
    return caught.value


def test_no_nodes(tmp_path):
    error = refusal(tmp_path, "g (float[1] x) => (float[1] x) { }")
    assert (error.slug, error.message) == ("model-empty", "the model has no nodes")


def test_no_outputs(tmp_path):
    assert refusal(tmp_path, "g (float[1] x) => () { y = Neg(x) }").message == "the model has no outputs"


@pytest.mark.parametrize(
    ("text", "twice"),
    [
        ("g (float[1] x) => (float[1] y) { y = Neg(x)  y = Exp(x) }", "y"),
        ("g (float[1] x) => (float[1] y) { y, y = Split(x) }", "y"),
        ("g (float[1] x, float[1] x) => (float[1] y) { y = Neg(x) }", "x"),
        ("g (float[1] x) => (float[1] y) { x = Neg(x)  y = Exp(x) }", "x"),
        ("g (float[1] x) => (float[1] w) <float[1] w = {1}> { w = Neg(x) }", "w"),
    ],
)
def test_a_name_defined_twice(tmp_path, text, twice):
    error = refusal(tmp_path, text)
    assert error.slug == "value-defined-twice"
    assert repr(twice) in error.message


def test_an_initializer_defined_twice(tmp_path):
    message = models.proto("g (float[1] x) => (float[1] y) <float[1] w = {1}> { y = Add(x, w) }")
    message.graph.initializer.append(message.graph.initializer[0])
    assert refusal(tmp_path, message).slug == "value-defined-twice"


def test_an_undefined_input_names_the_node(tmp_path):
    error = refusal(tmp_path, "g (float[1] x) => (float[1] y) { [sum] y = Add(x, nowhere) }")
    assert error.slug == "value-undefined"
    assert "'nowhere'" in error.message
    assert "'sum'" in error.message


def test_an_undefined_output(tmp_path):
    error = refusal(tmp_path, "g (float[1] x) => (float[1] y) { z = Neg(x) }")
    assert (error.slug, "'y'" in error.message) == ("value-undefined", True)


BODY = """
    g (bool c, float[1] x) => (float[1] y) {{
        [choice] y = If (c) <
            then_branch = t () => (float[1] a) {{ {then} }},
            else_branch = e () => (float[1] b) {{ b = Exp(x) }}
        >
    }}"""


def test_undefined_values_in_bodies(tmp_path):
    error = refusal(tmp_path, BODY.format(then="a = Neg(nowhere)"))
    assert error.slug == "value-undefined"
    assert "'then_branch'" in error.message
    assert "'choice'" in error.message


def test_a_body_sees_nothing_of_its_sibling(tmp_path):
    assert refusal(tmp_path, BODY.format(then="a = Neg(b)")).slug == "value-undefined"


def test_a_body_that_returns_an_outer_value_is_refused_as_engines_do(tmp_path):
    message = models.proto(BODY.format(then="a = Neg(x)"))
    message.graph.node[0].attribute[0].g.output[0].name = "x"
    assert refusal(tmp_path, message).slug == "value-undefined"


def test_undefined_values_in_functions(tmp_path):
    text = """<ir_version: 10, opset_import: ["": 18, "own": 1]>
        g (float[1] x) => (float[1] y) { y = own.F(x) }
        <opset_import: ["": 18], domain: "own"> F (a) => (b) { b = Add(a, x) }"""
    error = refusal(tmp_path, text)
    assert (error.slug, "'F'" in error.message) == ("value-undefined", True)


def test_nodes_need_not_be_in_order(tmp_path):
    message = models.proto(BODY.format(then="a = Add(late, x)"))
    message.graph.node.append(onnx.helper.make_node("Neg", ["x"], ["late"], name="late"))
    model = Model.load(models.write(tmp_path / "m.onnx", message))
    assert [node.name for node in model.graph.nodes] == ["late", "choice"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (
            "g (float[1] x) => (float[1] y) { [one] a = Add(x, b)  [two] b = Neg(a)  [three] y = Exp(b) }",
            ("one", "two"),
        ),
        ("g (float[1] x) => (float[1] y) { [own] y = Add(x, y) }", ("own",)),
        (BODY.format(then="p = Neg(q)  q = Neg(p)  a = Exp(q)"), ("Neg",)),
        (BODY.format(then="a = Neg(y)"), ("choice",)),
    ],
)
def test_circles(tmp_path, text, names):
    error = refusal(tmp_path, text)
    assert error.slug == "graph-cycle"
    for name in names:
        assert repr(name) in error.message
    assert "three" not in error.message


def test_an_empty_initializer_name(tmp_path):
    message = models.proto("g (float[1] x) => (float[1] y) <float[1] w = {1}> { y = Neg(x) }")
    message.graph.initializer[0].name = ""
    assert refusal(tmp_path, message).slug == "name-invalid"


def test_an_empty_op_type(tmp_path):
    message = models.proto("g (float[1] x) => (float[1] y) { [odd] y = Neg(x) }")
    message.graph.node[0].op_type = ""
    assert refusal(tmp_path, message).slug == "name-invalid"


@pytest.mark.parametrize("place", [b"first", b"Negate", b"value", b"N_dim", b"note", b"graph_name", b"producer"])
def test_names_that_are_not_utf8(tmp_path, place):
    message = models.proto("graph_name (float[N_dim] x) => (float[1] y) { [first] value = Negate(x)  y = Exp(value) }")
    message.graph.node[0].metadata_props.add(key="k", value="note")
    message.producer_name = "producer"
    data = message.SerializeToString()
    assert place in data
    (tmp_path / "m.onnx").write_bytes(data.replace(place, b"\xff" * len(place)))
    with pytest.raises(ModelError) as caught:
        Model.load(tmp_path / "m.onnx")
    assert caught.value.slug == "name-invalid"


@pytest.mark.parametrize(
    "name", ["</script><b>", "../../etc", "a\nb\r\x1b[31m", "a\0b", "\u202egnp", "x" * 100_000, " ", "*?"]
)
def test_any_text_is_a_name_and_survives(tmp_path, name):
    message = models.proto("g (float[1] x) => (float[1] y) { [node] value = Neg(x)  y = Exp(value) }")
    message.graph.node[0].name = message.graph.node[0].output[0] = message.graph.node[1].input[0] = name
    model = Model.load(models.write(tmp_path / "m.onnx", message))
    saved = Model.load(model.save(tmp_path / "saved.onnx"))
    assert saved.graph.nodes[0].name == saved.graph.nodes[1].inputs[0] == name


def test_hostile_names_are_harmless_in_messages(tmp_path):
    message = models.proto("g (float[1] x) => (float[1] y) { [node] y = Add(x, z) }")
    message.graph.node[0].name = "\x1b[31m\n" + "x" * 100_000
    message.graph.node[0].input[1] = "\r\n\0" + "y" * 100_000
    message.graph.node[0].op_type = "Add\n"
    text = refusal(tmp_path, message).message
    assert text.isprintable()
