"""Rewrites a model so that nodes are computed in another way."""

from collections.abc import Mapping
from typing import Any

import onnx
import onnx_ir as ir

from tensortriage.model.sdk import Model, forget_shapes, initializer, inline_functions, require_opset
from tensortriage_meanings.site import Meaning

_DOMAIN = "meaning"
_ANY_TYPE = 15
"""Opset from which constants of a body can take the type of an operand (CastLike)."""
_RAISED = 17
"""Opset that a model is raised to, where its own is too low for a way."""


class Rewriter:
    """Rewrites one model.

    Args:
        model: The model; it is not changed.
    """

    def __init__(self, model: Model) -> None:
        self._raised = {0: model}

    def base(self, since: int) -> Model:
        """Return the model with an opset that is high enough; errors as `require_opset`."""
        wanted = 0 if self._raised[0].opset >= since else max(since, _RAISED)
        if wanted not in self._raised:
            self._raised[wanted] = require_opset(self._raised[0], wanted)
        return self._raised[wanted]

    def rewritten(self, ways: Mapping[str, Meaning]) -> Model:
        """Return a model in which nodes are computed in other ways, by their names.

        Raises:
            ModelError: When it cannot be raised to an opset that a way needs.
            ValueError: When one way leaves no place for another, or its body cannot be written.
        """
        clone = self.base(max((_since(way) for way in ways.values()), default=0)).clone().ir
        for node in list(clone.graph):
            if (way := ways.get(node.name or "")) is not None:
                try:
                    _change(clone, node, way)
                except (LookupError, StopIteration) as lost:
                    raise ValueError(f"not together: {way.words}") from lost
        if any(way.body for way in ways.values()):
            inline_functions(clone)
        forget_shapes(clone)
        return Model.from_ir(clone)


def _since(way: Meaning) -> int:
    return max(way.since, _ANY_TYPE if "CastLike" in way.body else 0)


def _change(model: ir.Model, node: ir.Node, way: Meaning) -> None:
    for name, value in way.attributes.items():
        if value is None:
            node.attributes.pop(name, None)
        else:
            node.attributes.add(ir.convenience.convert_attribute(name, value))
    given = list(node.inputs)
    for index, other in way.inputs.items():
        node.replace_input_with(index, None if other is None else given[other])
    for index, name in way.wired.items():
        node.replace_input_with(index, _values(model.graph)[name])
        model.graph.sort()
    for index, name in way.returned.items():
        _return(node.attributes["body"].as_graph(), index, name)
    for index, array in way.operands.items():
        value = initializer(f"{node.name}/meant:{index}", array)
        model.graph.register_initializer(value)
        while len(node.inputs) <= index:
            node.resize_inputs(index + 1)
        node.replace_input_with(index, value)
    while way.inputs and node.inputs and node.inputs[-1] is None:  # a variadic input has no empty places
        node.resize_inputs(len(node.inputs) - 1)
    if way.behind:
        _exchange(node, next(other for other in model.graph if other.name == way.behind), way.through)
        model.graph.sort()
    if way.op:
        known = onnx.defs.get_schema(way.op, model.opset_imports[node.domain], node.domain).attributes
        for attribute in [name for name in node.attributes if name not in known]:
            node.attributes.pop(attribute)
        node.op_type = way.op
    if way.body:
        name = f"as_{len(model.functions)}"
        imports = ", ".join(f'"{domain}" : {opset}' for domain, opset in model.opset_imports.items())
        text = f'<domain: "{_DOMAIN}", opset_import: [{imports}]> {name} {way.body}'
        try:
            function: Any = ir.from_proto(onnx.parser.parse_function(text))
        except onnx.parser.ParseError as error:  # attributes that the syntax has no words for
            raise ValueError(f"cannot be written: {way.words}") from error
        model.functions[function.identifier()] = function
        model.opset_imports[_DOMAIN] = 1
        node.attributes.clear()
        node.op_type, node.domain = name, _DOMAIN


def _return(body: ir.Graph, index: int, name: str) -> None:
    """Let a body return another of its values."""
    old = body.outputs[index]
    copied = ir.node("Identity", [_values(body)[name]])
    copied.outputs[0].name, copied.outputs[0].type, copied.outputs[0].shape = f"{name}/{index}", old.type, old.shape
    body.append(copied)
    body.outputs[index] = copied.outputs[0]


def _exchange(first: ir.Node, second: ir.Node, through: int) -> None:
    """Let each of two neighbours compute what the other does; the second takes the first's result."""
    ends = list(second.inputs).index(first.outputs[0])
    given = first.inputs[through]
    inputs = [list(second.inputs), list(first.inputs)]
    inputs[0][ends], inputs[1][through] = given, first.outputs[0]
    kinds = [(each.op_type, each.domain, dict(each.attributes)) for each in (second, first)]
    for node, values, (op_type, domain, attributes) in zip((first, second), inputs, kinds, strict=True):
        node.op_type, node.domain = op_type, domain
        node.attributes.clear()
        node.attributes.update(attributes)
        node.resize_inputs(len(values))
        for index, value in enumerate(values):
            node.replace_input_with(index, value)


def _values(graph: ir.Graph) -> dict[str | None, ir.Value]:
    """Return inputs and results by name."""
    return {value.name: value for value in [*graph.inputs, *(each for node in graph for each in node.outputs)]}
