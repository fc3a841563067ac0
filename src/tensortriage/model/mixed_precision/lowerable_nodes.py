"""Decides which nodes of a model may compute in a lower precision.

Emulating a format and converting to it are two views of one decision, made here. A node stays as it is when the caller
keeps it, when it only computes shapes (a Slice bound of 257 is not a bfloat16), when it is a quantizer (scales are
calibrated in float32), or when it lies in the body of a node that stays. Model-local functions are inlined first, so
that what they compute is lowered as well.
"""

import dataclasses
from collections.abc import Collection, Iterator, Mapping

import onnx_ir as ir

from tensortriage.errors import ModelError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.model.ir.attributes import bodies
from tensortriage.model.ir.shape_operands import shape_like_values, shape_positions
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.type_inference import Types, infer_types
from tensortriage.model.transforms.inline_functions import inline_functions
from tensortriage.model.transforms.rewrite_helpers import STANDARD_DOMAINS, find_nodes, is_standard
from tensortriage.values.spec import ValueSpec

_KEPT_MARK = "tensortriage.kept"

QUANTIZERS = frozenset({"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "MatMulInteger", "ConvInteger"})


@dataclasses.dataclass(frozen=True, eq=False)
class Lowering:
    """A private copy of a model, ready to be edited, and the decision for each of its nodes.

    Attributes:
        model: The copy, model-local functions inlined.
        types: Type of every value, bodies included.
        kept: Nodes that stay in their own precision, Constant nodes included, in bodies as well.
    """

    model: ir.Model
    types: Types
    kept: frozenset[ir.Node]

    def lowered(self) -> Iterator[ir.Node]:
        """Yield the nodes that compute in the lower precision, bodies included."""
        return (node for node in ir.traversal.RecursiveGraphIterator(self.model.graph) if node not in self.kept)

    def tensor(self, value: ir.Value) -> ir.DataType | None:
        """Return the element type of a value; None when it is not a tensor or not known."""
        kind = self.types.get(value)
        return kind.dtype if isinstance(kind, ir.TensorType) else None


def decide(
    model: Model,
    *,
    specs: Mapping[str, ValueSpec],
    kept_nodes: Collection[str] = (),
    kept_op_types: Collection[str] = (),
) -> Lowering:
    """Copy a model and decide which nodes of the copy compute in a lower precision.

    Args:
        model: The model; it is not changed.
        specs: Types of values of the main graph.
        kept_nodes: Names of nodes of the main graph that stay as they are, their bodies and functions included.
        kept_op_types: Operators of which every node stays as it is.

    Raises:
        UsageError: When a kept node is unknown (``node-unknown``, ``node-in-body``).
        ModelError: When a model-local function cannot be inlined (``function-not-inlined``), or the type of a value
            that a lowered node uses or makes is not known (``value-type-unknown``).
    """
    clone = model.clone()
    for node in find_nodes(clone, kept_nodes):
        node.metadata_props[_KEPT_MARK] = "by name"
    if clone.ir.functions:
        inline_functions(clone.ir)
    kept: set[ir.Node] = set()
    op_types = frozenset(kept_op_types)
    _keep(clone.ir.graph, kept, op_types=op_types, constants=frozenset(), whole=False)
    lowering = Lowering(clone.ir, infer_types(clone.ir, specs), frozenset(kept))
    for node in lowering.lowered():
        _check_types(node, lowering.types)
    return lowering


def is_exempt_operand(node: ir.Node, index: int) -> bool:
    """Return whether an operand decides shapes (sizes of Resize, limits of Range, ...) or is a packed weight.

    Scales of MatMulNBits go into the weight when ONNX Runtime packs it; with ``accuracy_level=4`` it computes noise
    where they are no constants (1.32.0).
    """
    if node.op_type == "MatMulNBits":
        return 0 < index < 5
    return index in shape_positions(node.op_type, node.domain)


def _check_types(node: ir.Node, types: Types) -> None:
    for value in (*node.inputs, *node.outputs):
        if value is not None and value.name and value not in types:
            op = node.op_type if node.domain in STANDARD_DOMAINS else f"{node.domain}.{node.op_type}"
            raise ModelError(
                f"the element type of value {value.name!r} at {op} node {node.name!r} is not known, so whether it has "
                f"to be rounded is unknown",
                slug="value-type-unknown",
                cure="save the model with shape inference done, or keep that node as it is",
            )


def _keep(
    graph: ir.Graph, kept: set[ir.Node], *, op_types: frozenset[str], constants: frozenset[str], whole: bool
) -> None:
    """Collect the nodes of a graph and its bodies that stay as they are; all of them when `whole`."""
    constants |= set(graph.initializers)
    constants |= {node.outputs[0].name or "" for node in graph if is_standard(node, "Constant")}
    shapes = shape_like_values((_View.of(node) for node in graph), constants)
    for node in graph:
        marked = node.metadata_props.pop(_KEPT_MARK, None) is not None
        made = [value.name for value in node.outputs if value.name]
        stays = (
            whole
            or marked
            or node.op_type in op_types
            or node.op_type in QUANTIZERS
            or node.op_type.startswith("QLinear")
            or is_standard(node, "Constant")
            or (bool(made) and shapes.issuperset(made))
        )
        if stays:
            kept.add(node)
        for body in bodies(node):
            _keep(body, kept, op_types=op_types, constants=constants | shapes, whole=stays)


@frozen_dataclass
class _View:
    """A node as `shape_like_values` wants it; nodes with bodies never count as made from shapes alone."""

    op_type: str
    domain: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    uses: tuple[str, ...]

    @classmethod
    def of(cls, node: ir.Node) -> "_View":
        inputs = tuple("" if value is None else value.name or "" for value in node.inputs)
        outputs = tuple(value.name or "" for value in node.outputs)
        domain = "" if node.domain in STANDARD_DOMAINS else node.domain
        return cls(node.op_type, domain, inputs, outputs, () if bodies(node) else tuple(filter(None, inputs)))
