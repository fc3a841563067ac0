"""A graph as the rules see it: its nodes, and the facts about each value, including the data of constants."""

import dataclasses
from collections.abc import Iterator, Mapping

import numpy as np
import onnx_ir as ir

from tensortriage.model.ir.attributes import bodies
from tensortriage.model.ir.graph import Graph, Node
from tensortriage.model.ir.specs import value_spec
from tensortriage.model.lint.finding import Aims, LintFinding, Severity
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.values.dtype import DType
from tensortriage.values.spec import ValueSpec

_PASS_ON = frozenset({"Cast", "CastLike", "Identity", "Unsqueeze", "Squeeze", "Reshape", "Expand"})
_FEW = 16


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class LintSubject:
    """One graph of a model: the main graph, a body, or a function.

    Attributes:
        graph: Index of the graph.
        specs: Types and shapes of its values, as far as known.
        opset: Version of the standard operator set it uses.
        aims: Where the model is meant to run.
        outputs: Names of its outputs.
        where: The body or function it is; empty for the main graph.
        outer: The enclosing graph, whose values it may use.
    """

    graph: Graph
    specs: Mapping[str, ValueSpec]
    opset: int
    aims: Aims
    outputs: frozenset[str]
    where: str = ""
    outer: "LintSubject | None" = None

    def is_output(self, value: str) -> bool:
        """Whether a value is an output of the graph."""
        return value in self.outputs

    def standard(self, *op_types: str) -> Iterator[Node]:
        """Yield the nodes of these operators of the ONNX standard."""
        return (node for node in self.graph.nodes if node.op_type in op_types and not node.domain)

    def made_by(self, value: str, *op_types: str) -> Node | None:
        """Return the node that makes a value when it is one of these standard operators, Casts looked through."""
        node = self.graph.producer(value)
        while node is not None and node.op_type in ("Cast", "Identity") and node.op_type not in op_types:
            node = self.graph.producer(node.inputs[0])
        return node if node is not None and node.op_type in op_types and not node.domain else None

    def dtype(self, value: str) -> DType | None:
        """Return the element type of a value; None when it is not known."""
        spec = self._spec(value)
        return None if spec is None else spec.dtype

    def shape(self, value: str) -> tuple[int | str | None, ...] | None:
        """Return the shape of a value; None when not even its rank is known."""
        spec = self._spec(value)
        return None if spec is None else spec.shape

    def constant(self, value: str) -> np.ndarray | None:
        """Return the numbers of a constant, of any size; None when the value is not constant."""
        if value in self.graph.constants:
            return self.graph.weight(value)
        if self.graph.producer(value) is None and self.outer is not None and value not in self.specs:
            return self.outer.constant(value)
        return None

    def few(self, value: str) -> np.ndarray | None:
        """Return the numbers of a small constant, also through Casts and reshaping; None when it is none."""
        for _ in range(_FEW):
            array = self.constant(value)
            if array is not None:
                return array if array.size <= _FEW else None
            node = self.graph.producer(value)
            if node is None or node.op_type not in _PASS_ON or node.domain or not node.inputs:
                return None
            value = node.inputs[0]
        return None

    def number(self, value: str) -> float | None:
        """Return the only number of a constant that holds just one, once or repeated; None when it does not."""
        array = self.few(value)
        if array is None or not array.size or array.dtype.kind in "OSU":
            return None
        numbers = array.astype(np.float64).ravel()
        return float(numbers[0]) if (numbers == numbers[0]).all() else None

    def finding(
        self, slug: str, node: Node, why: str, cure: str, *, severity: Severity = Severity.HINT, value: str = ""
    ) -> LintFinding:
        """Return a finding about a node of this graph."""
        origin = self.graph.origin(node.name)
        return LintFinding(slug, severity, node.name, node.op_type, value, self.where, why, cure, origin=origin)

    def _spec(self, value: str) -> ValueSpec | None:
        spec = self.specs.get(value)
        return spec if spec is not None or self.outer is None else self.outer._spec(value)


def subjects(model: Model, aims: Aims) -> Iterator[LintSubject]:
    """Yield the main graph of a model, its functions, and the bodies in all of them."""
    outputs = frozenset(spec.name for spec in model.outputs)
    main = LintSubject(graph=model.graph, specs=value_specs(model), opset=model.opset, aims=aims, outputs=outputs)
    yield main
    yield from _bodies(model.ir.graph, model.ir, main)
    for function in model.ir.functions.values():
        around = f"function {function.domain}::{function.name}"
        opset = function.opset_imports.get("", model.opset)
        subject = _inner(function.graph, model.ir, aims, opset=opset, where=around, outer=None)
        yield subject
        yield from _bodies(function.graph, model.ir, subject)


def _bodies(graph: ir.Graph, model: ir.Model, outer: LintSubject) -> Iterator[LintSubject]:
    for node in graph:
        for number, body in enumerate(bodies(node)):
            place = f"{node.name or node.op_type}/{body.name or number}"
            where = f"{outer.where}/{place}" if outer.where else place
            subject = _inner(body, model, outer.aims, opset=outer.opset, where=where, outer=outer)
            yield subject
            yield from _bodies(body, model, subject)


def _inner(
    graph: ir.Graph, model: ir.Model, aims: Aims, *, opset: int, where: str, outer: LintSubject | None
) -> LintSubject:
    values = [*graph.inputs, *graph.initializers.values(), *(value for node in graph for value in node.outputs)]
    specs = {value.name: value_spec(value) for value in values if value.name}
    index = Graph(ir.Model(graph, ir_version=model.ir_version))
    outputs = frozenset(value.name or "" for value in graph.outputs)
    return LintSubject(graph=index, specs=specs, opset=opset, aims=aims, outputs=outputs, where=where, outer=outer)
