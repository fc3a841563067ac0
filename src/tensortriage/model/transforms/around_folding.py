"""Repairs around constant folding: inputs and initializers, names of nodes, operands of Range."""

from collections.abc import Callable, Collection, Mapping

import onnx_ir as ir

from tensortriage.model.ir.attributes import constant_tensor
from tensortriage.model.ir.traversal import all_graphs, all_nodes
from tensortriage.model.transforms.constant_nodes import lift_constant
from tensortriage.model.transforms.rewrite_helpers import Names, initializer, is_standard

_FOLDED_FROM = "pkg.onnxscript.optimizer.folded_from"
_IR_WITH_CONSTANTS = 4


def undeclare_initializers(model: ir.Model) -> Callable[[], None]:
    """Take initializers off the inputs of a model of IR version 3 or lower; return a function that restores all inputs.

    These versions demand that every initializer is an input as well, so it says nothing; since version 4 it says that
    the caller may replace it, and what may be replaced is not constant (onnx/docs/IR.md).
    """
    if model.ir_version >= _IR_WITH_CONSTANTS:
        return lambda: None
    graph = model.graph
    before = list(graph.inputs)
    real = {value for value in before if not value.is_initializer()}
    for value in [value for value in before if value.is_initializer()]:
        graph.inputs.remove(value)

    def declare() -> None:
        constants = set(graph.initializers.values())
        kept = [value for value in before if value in constants or value in real]
        new = [value for value in graph.initializers.values() if value not in set(before)]
        graph.inputs.clear()
        graph.inputs.extend([*kept, *new])

    return declare


def constants_to_initializers(model: ir.Model, before: set[ir.Node]) -> None:
    """Turn the Constant nodes that folding made into initializers: some have a form that only opset 12 introduced."""
    for graph in all_graphs(model):
        for node in [node for node in graph if node not in before]:
            lift_constant(graph, node)


def constant_names(model: ir.Model) -> set[str]:
    """Return the names of the initializers and of the outputs of Constant nodes, in all graphs."""
    found = {name for graph in all_graphs(model) for name in graph.initializers}
    return found | {node.outputs[0].name or "" for node in all_nodes(model) if constant_tensor(node) is not None}


def give_range_scalars(model: ir.Model, constant_before: set[str]) -> None:
    """Feed Range scalars where folding made an operand a constant of shape [1].

    Exporters write such operands, ONNX's own AffineGrid among them. ONNX Runtime accepts them as long as it does not
    know their rank, which a constant gives away. Other users of the constant keep its shape, and what was constant
    before is left as the file has it.
    """
    names = Names(model.graph)
    for graph in all_graphs(model):
        for node in [node for node in graph if is_standard(node, "Range")]:
            for index, value in enumerate(node.inputs):
                if value is None or value.name in constant_before or value.const_value is None:
                    continue
                array = value.const_value.numpy()
                if array.shape == (1,):
                    scalar = initializer(names.fresh(f"scalar::{value.name}"), array.reshape(()))
                    graph.register_initializer(scalar)
                    node.replace_input_with(index, scalar)


def inherit_names(model: ir.Model, own: Collection[str], makers: Mapping[str, str | None]) -> None:
    """Give a node without a name of its own the name of the node whose result it makes now, so that a user finds it.

    These are the nodes that take the place of others, and unnamed ones of a branch that takes the place of its If.
    """
    used = {node.name for node in all_nodes(model)}
    for node in all_nodes(model):
        old = next((makers[name] for v in node.outputs if (name := v.name or "") in makers), None)
        if node.name not in own and old and old not in used:
            node.name = old
            used.add(old)


def drop_provenance(graph: ir.Graph) -> None:
    """Remove what the folder writes into the metadata of values."""
    for value in (*graph.initializers.values(), *(v for node in graph for v in node.outputs)):
        value.metadata_props.pop(_FOLDED_FROM, None)
