"""One node at which a meaning may differ, as the rows of the table see it, and the ways to rewrite it."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from tensortriage.model.sdk import ValueSpec, array_of, is_standard

BROADCASTING = (
    "Add", "Sub", "Mul", "Div", "Pow", "Mod", "Max", "Min", "Sum", "Mean", "PRelu", "Less", "LessOrEqual", "Greater",
    "GreaterOrEqual", "Equal", "And", "Or", "Xor", "Where", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor",
)  # fmt: skip
"""Operators whose operands are broadcast to each other, element by element."""


@dataclasses.dataclass(frozen=True)
class MeantNode:
    """One node of a model.

    Attributes:
        opset: Version of the standard operators.
        specs: Types and shapes of values, as far as they are known, by name.
    """

    node: ir.Node
    opset: int
    specs: Mapping[str, ValueSpec]

    @property
    def op_type(self) -> str:
        """The node's operator."""
        return self.node.op_type

    @property
    def broadcasts(self) -> bool:
        """Whether it computes element by element what its operands are broadcast to."""
        return self.op_type in BROADCASTING

    def attribute(self, name: str) -> Any:
        """Return an attribute as a plain value, by default that of the operator; None where it has none."""
        given = self.node.attributes.get(name)
        if given is not None and not given.is_ref():
            return given.value
        schema = self.schema
        if schema is None or name not in schema.attributes:
            return None
        default = schema.attributes[name].default_value
        return onnx.helper.get_attribute_value(default) if default.type else None

    def takes(self, name: str) -> bool:
        """Return whether the operator has an attribute in this opset; one without a schema has those that it is given.

        ONNX Runtime's fused operators (domain ``com.microsoft``) have none here.
        """
        return name in (self.node.attributes if self.schema is None else self.schema.attributes)

    def text(self, name: str) -> str:
        """Return an attribute that is a word; empty without it."""
        value = self.attribute(name)
        return value.decode() if isinstance(value, bytes) else str(value or "")

    def shape(self, index: int = 0) -> tuple[int, ...] | None:
        """Return the shape of an operand; None where it is not known throughout."""
        return self._shape(self.node.inputs[index]) if index < len(self.node.inputs) else None

    def made(self, index: int = 0) -> tuple[int, ...] | None:
        """Return the shape of a result; None where it is not known throughout."""
        return self._shape(self.node.outputs[index])

    def rank(self, index: int = 0) -> int | None:
        """Return how many axes an operand has; None where that is not known."""
        value = self.node.inputs[index] if index < len(self.node.inputs) else None
        if value is None:
            return None
        spec = self.specs.get(value.name or "")
        array = array_of(value)
        return array.ndim if array is not None else None if spec is None or spec.shape is None else len(spec.shape)

    def kind(self, index: int = 0) -> str:
        """Return the kind of an operand's type, as of numpy (``f``, ``i``, ``u``, ``b``); empty where not known."""
        value = self.node.inputs[index] if index < len(self.node.inputs) else None
        dtype = None if value is None else self.dtype(value)
        return "" if dtype is None else dtype.kind

    def dtype(self, value: ir.Value) -> "np.dtype[Any] | None":
        """Return the type of a value's elements; None where it is not known."""
        if (array := array_of(value)) is not None:
            return array.dtype
        spec = self.specs.get(value.name or "")
        return np.dtype(spec.dtype.numpy) if spec is not None and spec.dtype is not None else None

    def constant(self, index: int) -> np.ndarray | None:
        """Return the array of an operand that is constant; None for others."""
        return array_of(self.node.inputs[index]) if index < len(self.node.inputs) else None

    def made_by(self, *op_types: str, index: int = 0) -> ir.Node | None:
        """Return the node that makes an operand, if it has one of these operators."""
        value = self.node.inputs[index] if index < len(self.node.inputs) else None
        maker = None if value is None else value.producer()
        return maker if is_standard(maker, *op_types) else None

    def only_user(self) -> ir.Node | None:
        """Return the node that alone reads the first result, which is no output of the model; None for others."""
        result = self.node.outputs[0]
        users = list(result.uses())
        return users[0].node if len(users) == 1 and not result.is_graph_output() else None

    def feeds(self, *op_types: str) -> ir.Node | None:
        """Return the only node that reads the first result, if it has one of these operators."""
        users = list(self.node.outputs[0].uses())
        return users[0].node if len(users) == 1 and is_standard(users[0].node, *op_types) else None

    def _shape(self, value: ir.Value | None) -> tuple[int, ...] | None:
        if value is None:
            return None
        if (array := array_of(value)) is not None:
            return array.shape
        spec = self.specs.get(value.name or "")
        if spec is None or spec.shape is None or not all(isinstance(size, int) for size in spec.shape):
            return None
        return tuple(size for size in spec.shape if isinstance(size, int))

    def alike(self, one: ir.Value, other: ir.Value) -> bool:
        """Return whether two values have the same type and shape, as far as these are known."""
        shapes = self._shape(one), self._shape(other)
        return shapes[0] is not None and shapes[0] == shapes[1] and self.dtype(one) == self.dtype(other)

    def input_name(self, index: int) -> str:
        """Return the name that the operator's definition gives to an input; its number where it gives none."""
        known = () if self.schema is None else self.schema.inputs
        alone = index < len(known) and known[index].option != onnx.defs.OpSchema.FormalParameterOption.Variadic
        return str(known[index].name) if alone else str(index)

    def gives(self, name: str) -> bool:
        """Return whether the node has an attribute whose value is a number, a word, or a list of them."""
        given = self.node.attributes.get(name)
        return given is not None and not given.is_ref() and isinstance(given.value, int | float | str | bytes | tuple)

    @property
    def schema(self) -> Any:
        """The operator's definition (`onnx.defs.OpSchema`); None where onnx has none."""
        try:
            return onnx.defs.get_schema(self.op_type, self.opset, self.node.domain)
        except onnx.defs.SchemaError:
            return None


@dataclasses.dataclass(frozen=True)
class Meaning:
    """One way in which a side may compute an operator differently.

    Attributes:
        words: The difference, as the rest of a sentence that begins with the node and ``as if``.
        attributes: Changed attributes of the node; None for one that is left out.
        operands: Changed constant operands, by index.
        inputs: Inputs that take the place of others, by index; None for one that is left out.
        op: Another operator in the place of the node's; empty for its own.
        body: The nodes that stand for it, in ONNX's text syntax after a function's name: ``(x) => (y) { ... }``; empty
            where attributes and operands suffice.
        wired: Names of values that take the place of inputs, by index.
        returned: Names of values of the node's body that take the place of what the body returns, by index.
        group: What ways of nodes with different operators have in common that are one difference, as of the two of a
            pair; empty for ways that are one where operator and words are the same.
        behind: Name of the only node that takes the node's result, in whose place it is, and the other way round.
        through: Which of its inputs the node in its place is applied to then, by index.
        since: Opset that the rewritten model has at least.
        cure: How to write it into a model, as an instruction; empty where the attributes or operands show it.
        is_open: Whether ONNX leaves the choice open, so that nobody is wrong.
        alone: Whether it is no explanation together with others: what leaves out an operator changes so much that two
            of that kind stand for any other network.
    """

    words: str
    attributes: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    operands: Mapping[int, np.ndarray] = dataclasses.field(default_factory=dict)
    inputs: Mapping[int, int | None] = dataclasses.field(default_factory=dict)
    op: str = ""
    body: str = ""
    wired: Mapping[int, str] = dataclasses.field(default_factory=dict)
    returned: Mapping[int, str] = dataclasses.field(default_factory=dict)
    group: str = ""
    behind: str = ""
    through: int = 0
    since: int = 0
    cure: str = ""
    is_open: bool = False
    alone: bool = False


@dataclasses.dataclass(frozen=True)
class MeaningRow:
    """A row of the table.

    Attributes:
        ops: Operators with several interpretations; empty for rows about every operator.
        ways: Yields the ways in which others may compute a node, the likeliest first.
        since: Opset from which the row applies; older models are converted first.
    """

    ops: tuple[str, ...]
    ways: Callable[[MeantNode], Iterable[Meaning]]
    since: int = 0
