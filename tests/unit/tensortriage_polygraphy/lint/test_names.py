"""What the file says of names and uses, before loading repairs it."""

import models
from tensortriage_polygraphy.lint.names import check_file


def rows(text, edit=lambda message: None):
    message = models.proto(text)
    edit(message)
    return [(f.slug, f.severity.value, f.node or f.value) for f in check_file(message)]


CLEAN = "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { [a] b = Add(x, w)  [c] y = Relu(b) }"


def test_a_clean_file():
    assert rows(CLEAN) == []


def test_one_name_for_two_nodes():
    def edit(message):
        message.graph.node[1].name = "a"

    assert rows(CLEAN, edit) == [("node-name-twice", "problem", "a")]


def test_nodes_without_names():
    assert rows(CLEAN.replace("[a]", "").replace("[c]", "")) == [("nodes-unnamed", "hint", "")]


def test_what_nothing_uses():
    text = """
        g (float[2] x, float[2] z) => (float[2] y) <float[2] w = {1, 2}> {
            [dead] d = Exp(x)  [live] y = Relu(x) }"""
    assert rows(text) == [
        ("node-unused", "hint", "dead"),
        ("input-unused", "hint", "z"),
        ("initializer-unused", "hint", "w"),
    ]


def test_what_only_something_unused_reads_is_unused():
    text = """
        g (bool c, float[2] x, float[2] z) => (float[2] y) {
            [second] e = If (c) <then_branch = t () => (float[2] a) { [n] a = Neg(d) },
                                 else_branch = o () => (float[2] b) { [m] b = Identity(z) }>
            [first] d = Exp(z)  [live] y = Relu(x) }"""
    assert rows(text) == [
        ("node-unused", "hint", "second"),
        ("node-unused", "hint", "first"),
        ("input-unused", "hint", "c"),
        ("input-unused", "hint", "z"),
    ]


def test_an_output_of_unknown_rank_is_no_fault():
    def edit(message):
        message.graph.output[0].type.tensor_type.ClearField("shape")

    assert rows(CLEAN, edit) == []


def test_bodies_use_values_too():
    text = """
        g (bool c, float[2] x) => (float[2] y) <float[2] w = {1, 2}> {
            [i] y = If (c) <then_branch = t () => (float[2] a) { [n] a = Add(x, w) },
                            else_branch = e () => (float[2] b) { [m] b = Identity(x) }> }"""
    assert rows(text) == []


def test_functions_that_nothing_calls():
    text = """
        <ir_version: 10, opset_import: ["": 18, "l": 1]>
        g (float[2] x) => (float[2] y) { [a] y = l.used(x) }
        <domain: "l", opset_import: ["": 18]> used (i) => (o) { o = Neg(i) }
        <domain: "l", opset_import: ["": 18]> forgotten (i) => (o) { o = Abs(i) }"""
    assert rows(text) == [("function-unused", "hint", "l::forgotten")]
