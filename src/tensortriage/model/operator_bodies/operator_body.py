"""The body of one node while it is written, and the table of writers of bodies, which other packages fill.

What writes bodies of an engine's own operators, in whatever package, is written with the names of this module.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from tensortriage.model.ir.attributes import constant_tensor
from tensortriage.values.registered import registered
from tensortriage.values.spec import ValueSpec

CONVOLUTION = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")
"""Attributes of convolutions."""
PAIRS = "pairs."
"""Beginning of the names, in the table of writers, of quantized operators on operands that a pair rounds already."""
INTEGERS = "integers."
"""The same of quantized operators whose products are each a MatMulInteger."""
GROUP = "tensortriage.operator_bodies"
"""Entry-point group of modules whose import fills the table of writers."""
Results = Sequence[ir.Value | None]
"""The values in place of a node's outputs, in order; None for one that the body does not compute."""


class OperatorBody:
    """Writes plain ONNX nodes that compute the same as one node.

    Args:
        node: The node.
        opset: Version of the standard operators in the model.
        specs: Types and shapes of values, as far as they are known, by name.
        coarse: Whether the body includes the coarser computation that the node permits to kernels.

    Attributes:
        coarse: As given.
        owner: Name of the node that the steps are named after.
        nodes: What was written, in order.
        weights: Initializers that the nodes read, made again.
    """

    def __init__(self, node: ir.Node, opset: int, specs: Mapping[str, ValueSpec], *, coarse: bool = False) -> None:
        self.coarse = coarse
        self.node = node
        self.owner = node.name or ""
        self.opset = opset
        self.nodes: list[ir.Node] = []
        self.weights: list[ir.Value] = []
        self._specs = specs

    def input(self, index: int) -> ir.Value | None:
        """Return an input of the node; None where it is omitted."""
        return self.node.inputs[index] if index < len(self.node.inputs) else None

    def inputs(self, count: int) -> list[ir.Value]:
        """Return the first inputs of the node, which its operator requires.

        Raises:
            OperatorBodyMissing: When one is omitted.
        """
        found = [self.input(index) for index in range(count)]
        return [needed(value) for value in found]

    def wants(self, index: int) -> bool:
        """Return whether an output of the node has a name."""
        return index < len(self.node.outputs) and bool(self.node.outputs[index].name)

    def attribute(self, name: str, default: Any) -> Any:
        """Return an attribute of the node as a plain value, or the default."""
        attr = self.node.attributes.get(name)
        if attr is None or attr.is_ref():
            return default
        return attr.value

    def given(self, *names: str) -> dict[str, Any]:
        """Return the given attributes of the node that are present, as plain values."""
        found = {name: self.attribute(name, None) for name in names}
        return {name: value for name, value in found.items() if value is not None}

    def plus(self, x: ir.Value, index: int) -> ir.Value:
        """Return a value plus an input of the node, which may be omitted."""
        other = self.input(index)
        return x if other is None else self.op("Add", x, other)

    def along(self, op_type: str, x: ir.Value, axes: Sequence[int], *, since: int, **attributes: Any) -> ir.Value:
        """Write a node over given axes, which are an input since an opset, and an attribute before."""
        if self.opset >= since:
            return self.op(op_type, x, self.integers(*axes), **attributes)
        return self.op(op_type, x, axes=list(axes), **attributes)

    def op(self, op_type: str, *inputs: ir.Value | None, **attributes: Any) -> ir.Value:
        """Write a node and return its first result."""
        return self.op_of(op_type, inputs, attributes)[0]

    def op_of(
        self, op_type: str, inputs: Sequence[ir.Value | None], attributes: Mapping[str, Any], outputs: int = 1
    ) -> Sequence[ir.Value]:
        """Write a node and return all of its results."""
        node = ir.node(op_type, list(inputs), dict(attributes), num_outputs=outputs)
        self.nodes.append(node)
        return node.outputs

    def constant(self, array: Any, dtype: type[np.generic] = np.float32) -> ir.Value:
        """Return a constant; numbers are float32, as engines write them into their kernels."""
        return self.op("Constant", value=ir.tensor(np.asarray(array, dtype)))

    def integers(self, *numbers: int) -> ir.Value:
        """Return a constant vector of int64."""
        return self.constant(numbers, np.int64)

    def weight(
        self, make: Callable[[], np.ndarray], shape: Sequence[int], dtype: type[np.generic] = np.float32
    ) -> ir.Value:
        """Return an initializer whose array is computed on every read."""
        kind = ir.DataType.from_numpy(np.dtype(dtype))
        tensor = ir.LazyTensor(lambda: ir.tensor(make()), kind, ir.Shape(shape))
        value = ir.Value(const_value=tensor, type=ir.TensorType(kind), shape=ir.Shape(shape))
        self.weights.append(value)
        return value

    def mean(self, x: ir.Value) -> ir.Value:
        """Return the mean over the last axis, which stays with size 1."""
        return self.along("ReduceMean", x, [-1], since=18)

    def largest(self, x: ir.Value) -> ir.Value:
        """Return the largest magnitude along the last axis, which stays with size 1."""
        return self.along("ReduceMax", self.op("Abs", x), [-1], since=18)

    def unsqueeze(self, x: ir.Value, *axes: int) -> ir.Value:
        """Return a tensor with axes of size 1 put in."""
        return self.along("Unsqueeze", x, axes, since=13)

    def squeeze(self, x: ir.Value, *axes: int) -> ir.Value:
        """Return a tensor without given axes of size 1."""
        return self.along("Squeeze", x, axes, since=13)

    def part(self, x: ir.Value, start: int | ir.Value, end: int | ir.Value, axis: int) -> ir.Value:
        """Return a slice along one axis; bounds are numbers or int64 vectors of one element."""
        first, last = (self.integers(bound) if isinstance(bound, int) else bound for bound in (start, end))
        return self.op("Slice", x, first, last, self.integers(axis))

    def size(self, x: ir.Value, axis: int) -> ir.Value:
        """Return the size of an axis as an int64 vector of one element."""
        return self.op("Gather", self.op("Shape", x), self.integers(axis))

    def rank(self, value: ir.Value, usual: int) -> int:
        """Return the number of axes of a value; the usual one where unknown, as behind operators without schema."""
        try:
            return len(self.shape_of(value))
        except OperatorBodyMissing:
            return usual

    def shape_of(self, value: ir.Value) -> tuple[int | str | None, ...]:
        """Return the shape of a value, symbols where sizes are not known.

        Raises:
            OperatorBodyMissing: When not even its rank is known.
        """
        tensor = array_of(value)
        if tensor is not None:
            return tuple(tensor.shape)
        spec = self._specs.get(value.name or "")
        if spec is not None and spec.shape is not None:
            return tuple(spec.shape)
        raise OperatorBodyMissing

    def type_of(self, name: str) -> int | None:
        """Return the ONNX number of a value's element type; None where it is not known."""
        spec = self._specs.get(name)
        return spec.dtype.value if spec is not None and spec.dtype is not None else None

    def known_size(self, value: ir.Value, axis: int) -> int:
        """Return the size of one axis.

        Raises:
            OperatorBodyMissing: When the size is not known.
        """
        size = self.shape_of(value)[axis]
        if not isinstance(size, int):
            raise OperatorBodyMissing
        return size


class OperatorBodyMissing(Exception):
    """A node is of a form that has no body here."""


def needed(value: ir.Value | None) -> ir.Value:
    """Return a value that has to be there.

    Raises:
        OperatorBodyMissing: When it is not.
    """
    if value is None:
        raise OperatorBodyMissing
    return value


def refuse_if(asked: bool) -> None:
    """Refuse a form of an operator that has no body here.

    Raises:
        OperatorBodyMissing: When its array is needed.
    """
    if asked:
        raise OperatorBodyMissing


def array_of(value: ir.Value | None) -> np.ndarray | None:
    """Return the array of an initializer or Constant node; None for a value that is computed, and for no value."""
    if value is None:
        return None
    if value.const_value is not None and value.is_initializer():
        return np.asarray(value.const_value.numpy())
    producer = value.producer()
    tensor = None if producer is None else constant_tensor(producer)
    return None if tensor is None else np.asarray(tensor.numpy())


def in_int8(body: OperatorBody, x: ir.Value, terms: int, block: int) -> ir.Value:
    """Return activations as ONNX Runtime's CPU kernels round them: symmetric int8, with a scale for each block."""
    refuse_if(terms % block != 0)
    blocks = body.op(
        "Reshape", x, body.op("Concat", body.part(body.op("Shape", x), 0, -1, 0), body.integers(-1, block), axis=0)
    )
    step = body.op("Div", body.largest(blocks), body.constant(127))
    step = body.op("Max", step, body.constant(np.finfo(np.float32).tiny))
    return body.op("Reshape", body.op("Mul", body.op("Round", body.op("Div", blocks, step)), step), body.op("Shape", x))


Writer = Callable[[OperatorBody], Results]
"""Writes a body and returns the values of the outputs; raises `OperatorBodyMissing` for an unknown form."""

WRITERS: dict[str, Writer] = {}
"""Writers of the bodies of ONNX Runtime's operators, by name: those that were imported."""


@functools.cache
def writers() -> Mapping[str, Writer]:
    """Return `WRITERS` with those of all installed packages."""
    for point in registered(GROUP).values():
        point.load()
    return WRITERS


def body_of(*op_types: str) -> Callable[[Writer], Writer]:
    """Enter a function into `WRITERS` for one or more operators."""

    def enter(writer: Writer) -> Writer:
        WRITERS.update(dict.fromkeys(op_types, writer))
        return writer

    return enter
