"""Insert one node into a model between existing values; nodes between them that become unused are removed."""

import dataclasses
from collections.abc import Mapping, Sequence

import onnx
import onnx_ir as ir

from tensortriage.errors import ModelError, UsageError, nearest
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.model.ir.display_names import first_line
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.annotate import forget_shapes
from tensortriage.model.shape_inference.type_inference import infer_types
from tensortriage.model.transforms.rewrite_helpers import STANDARD_DOMAINS, Names, find_values, replace_output
from tensortriage.model.transforms.unused_removal import clean_in_place

Attribute = int | float | str | Sequence[int] | Sequence[float] | Sequence[str]


@frozen_dataclass(kw_only=True)
class NewNode:
    """A node to insert.

    Attributes:
        op_type: Operator.
        domain: Domain of the operator; empty for the ONNX standard.
        inputs: Names of values, in order; an empty name omits an optional input.
        outputs: Names of values that it makes instead of who makes them now. A name that is an input as well stands for
            what follows: everything that used the value uses the result of the node.
        name: Name of the node; empty for one made from the operator.
        attributes: By name.
        renamed: Name of the result for a value that the node takes too and that is no output of the model.
    """

    op_type: str
    domain: str = ""
    inputs: Sequence[str]
    outputs: Sequence[str]
    name: str = ""
    attributes: Mapping[str, Attribute] = dataclasses.field(default_factory=dict)
    renamed: str = "inserted::{value}"


def insert_node(model: Model, new: NewNode) -> Model:
    """Return the model with a node inserted, and without the nodes that served nothing but the values it now makes.

    A value that is both input and output keeps its name on the output side when it is an output of the model; else the
    result is renamed. Shapes that were declared downstream are forgotten, but for those of the model's
    outputs where nobody knows what the operator does to shapes.

    Args:
        model: The model; it is not changed.
        new: The node.

    Raises:
        UsageError: When a value is unknown (``value-unknown``), an output of the node is an input of the model or a
            constant (``value-not-made``), the node's name is taken (``node-name-taken``), ONNX does not know the node
            so (``node-invalid``), or it would close a circle (``graph-cycle``).
    """
    clone = model.clone()
    graph = clone.ir.graph
    names = Names(graph)
    if new.name and new.name in model.graph:
        raise UsageError(f"there is a node named {new.name!r}", slug="node-name-taken", cure="give another --name")
    values = find_values(clone, dict.fromkeys([*filter(None, new.inputs), *new.outputs]))
    node = ir.node(
        new.op_type,
        [values[name] if name else None for name in new.inputs],
        dict(new.attributes),
        domain=new.domain,
        num_outputs=len(new.outputs),
        name=new.name or names.fresh(f"inserted::{new.op_type}"),
    )
    for name, made in zip(new.outputs, node.outputs, strict=True):
        _take_over(graph, values[name], made, node, names, renamed=new.renamed if name in new.inputs else "")
    _check(model, node)
    makers = {value.producer() for value in node.inputs if value is not None}
    at = max((index for index, each in enumerate(graph) if each in makers), default=-1)
    if at < 0:
        graph.append(node)
    else:
        graph.insert_after(graph.node(at), node)
    clone.ir.opset_imports.setdefault(new.domain, 1)
    try:
        result = Model.from_ir(clone.ir)  # sorts the nodes
    except ModelError as error:
        raise UsageError(
            f"with that node, {error.message}", slug=error.slug, cure="its inputs must not depend on its outputs"
        ) from error
    clean_in_place(result.ir)
    _declare_types(result.ir, node)
    declared = {value.name: value.shape for value in model.ir.graph.outputs}
    forget_shapes(result.ir)
    if is_custom(new.domain, new.op_type):
        for value in result.ir.graph.outputs:
            value.shape = declared[value.name]
    return Model.from_ir(result.ir)


def _take_over(graph: ir.Graph, old: ir.Value, made: ir.Value, node: ir.Node, names: Names, *, renamed: str) -> None:
    """Make everything but the new node itself use the node's result instead of an existing value.

    A value that the node takes too has a pattern for the new name in `renamed`.
    """
    name = old.name or ""
    if not renamed and old.producer() is None:
        raise UsageError(
            f"{name!r} is an input of the model or a constant, so that no node can produce it",
            slug="value-not-made",
            cure=f"name it in --inputs too: nodes that used it then use the result (--inputs {name} --outputs {name})",
        )
    for user, index in tuple(old.uses()):
        if user is not node:
            user.replace_input_with(index, made)
    is_output = old in graph.outputs and old.producer() is not None
    replace_output(graph, old, made)
    if renamed and not is_output:
        made.name = names.fresh(renamed.format(value=name))
    else:
        old.name, made.name = names.fresh(f"before::{name}"), name
    made.type = old.type


def is_custom(domain: str, op_type: str) -> bool:
    """Whether an operator is none of ONNX's and no misspelt one of them: one of a plugin, often in their domain."""
    if domain not in STANDARD_DOMAINS:
        return True
    names = {schema.name for schema in onnx.defs.get_all_schemas() if schema.domain in STANDARD_DOMAINS}
    alike = [name for name in names if abs(len(name) - len(op_type)) <= 1]
    return op_type not in names and not nearest(op_type, alike)


def _check(model: Model, node: ir.Node) -> None:
    """Check operator, number of operands and attributes with ONNX; operators of other domains cannot be checked."""
    if is_custom(node.domain, node.op_type):
        return
    context = type(onnx.checker.DEFAULT_CONTEXT)()
    context.ir_version = model.ir.ir_version
    context.opset_imports = dict(model.ir.opset_imports)
    try:
        onnx.checker.check_node(ir.to_proto(node), context)
    except onnx.checker.ValidationError as error:
        raise UsageError(
            f"ONNX refuses the node: {first_line(error)}",
            slug="node-invalid",
            cure=f"see https://onnx.ai/onnx/operators/onnx__{node.op_type}.html for opset {model.opset}",
        ) from error


def _declare_types(model: ir.Model, node: ir.Node) -> None:
    """Declare the schema's types of the new results; an output of the model keeps its type where there is none."""
    before = {value: value.type for value in node.outputs}
    for value in node.outputs:
        value.type = None
    types = infer_types(model, {})
    for value in node.outputs:
        value.type = types.get(value, before[value])
