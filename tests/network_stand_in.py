"""A network of three operations in two modules, its exported model, and a stand-in for the process that runs it."""

import types

from models import proto
from tensortriage.model.provenance.origin import FX_NODE, NAME_SCOPES

MODEL = """g (float[2, 3] x) => (float[3, 2] y) {
    [act] a = Tanh(x)
    [moved] b = Transpose <perm = [1, 0]> (a)
    [last] y = Neg(b)
}"""
OPERATIONS = (("first", "tanh"), ("second", "permute"), ("second", "neg"))
"""Module and name of the operation of each node."""


def call(name):
    """Return what an exporter writes of the operation with this name."""
    return f"%{name} : [num_users=1] = call_function[target=aten.{name}](args = (%x,), kwargs = {{}})"


def entry(node, key, text):
    """Write metadata of an exporter to a node of a message."""
    made = node.metadata_props.add()
    made.key, made.value = key, text


def exported():
    """Return the model as exported: the module ``first`` makes ``a``, ``second`` the output."""
    message = proto(MODEL)
    for node, (module, name) in zip(message.graph.node, OPERATIONS, strict=True):
        entry(node, FX_NODE, call(name))
        entry(node, NAME_SCOPES, f"['', '{module}', '{name}']")
    return message


class Worker:
    """Answers as the process of a network does, with numbers that it is given.

    Args:
        known: Inner values, by ONNX name.
        wide: Outputs in float64.
        training: Whether a module is in training mode.
        fails: Error to raise by the word that asks.
        premises: What is told of the network made and called again, besides what nothing is wrong with.
    """

    inputs = outputs = ()

    def __init__(
        self, known, wide, *, training=False, fails=types.MappingProxyType({}), premises=types.MappingProxyType({})
    ):
        self.premises = premises
        self.known, self.wide, self.fails, self.asked = known, wide, fails, []
        self.info = {"training": training}

    def answer(self, word, feed=None, **given):
        self.asked.append(word)
        if word in self.fails:
            raise self.fails[word]
        if word == "values":
            return {"reason": ""}, {name: self.known[name] for name in given["wanted"] if name in self.known}
        if word == "calls":
            return {"calls": [("first", ""), ("second", "first")]}, {}
        if word == "premises":
            return {"again": {}, "calls": {}, "paths": ["first", "second"], "shapes": {}, **self.premises}, {}
        if word == "modules":
            return {"modules": {"first": "Tanh()"}, **self.info}, {}
        made = [{FX_NODE: call(name), NAME_SCOPES: f"['', '{module}', '{name}']"} for module, name in OPERATIONS]
        return ({"operations": made}, {}) if word == "program" else ({}, self.wide)
