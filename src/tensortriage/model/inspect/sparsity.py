"""Structured 2:4 sparsity: of every four weights along the axis that is summed over, at most two are not zero.

GPUs skip the zeros of Conv, Gemm and MatMul weights of that form. Which weights count, and along which axis, follows
from the operator; quantizers, Casts and Transposes between weight and operator are looked through.
Source: NVIDIA TensorRT developer guide, "Structured Sparsity", and Polygraphy's ``surgeon prune``.
"""

import dataclasses
import math
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from tensortriage.errors import ModelError
from tensortriage.model.ir.attributes import constant_tensor
from tensortriage.model.ir.graph import Graph, Node
from tensortriage.model.model import Model
from tensortriage.values.dtype import DType

GROUP, MOST_NONZERO = 4, 2
ROWS = 1 << 18
"""Groups looked at at once."""
_LOOKED_THROUGH = frozenset(
    {"QuantizeLinear", "DequantizeLinear", "Cast", "TRT_FP8QuantizeLinear", "TRT_FP8DequantizeLinear"}
)
_TYPES = frozenset({DType.FLOAT, DType.FLOAT16, DType.BFLOAT16})


@dataclasses.dataclass(frozen=True, slots=True)
class SparseCandidate:
    """A weight that can be 2:4 sparse.

    Attributes:
        weight: Name of an initializer or of the output of a Constant node.
        axis: The axis that is summed over; its length is a multiple of four.
        node: Name of the operator that sums.
    """

    weight: str
    axis: int
    node: str


def sparse_candidates(graph: Graph) -> tuple[SparseCandidate, ...]:
    """Return the weights of Conv, Gemm and MatMul that can be 2:4 sparse, each once, without reading their numbers.

    These are float32, float16 and bfloat16 constants whose summed axis has a length that four divides.
    """
    found: dict[str, SparseCandidate] = {}
    for node in graph.nodes:
        for value, axis_from_end in _summed_operands(node):
            weight = _weight_behind(graph, value, axis_from_end)
            if weight is None or weight[0] in found:
                continue
            name, axis = weight
            spec = graph.constants[name]
            shape = spec.shape or ()
            axis = axis if axis >= 0 else len(shape) + axis
            if 0 <= axis < len(shape) and spec.dtype in _TYPES:
                length = shape[axis]
                if isinstance(length, int) and length and length % GROUP == 0:
                    found[name] = SparseCandidate(name, axis, node.name)
    return tuple(found.values())


def dense_groups(array: np.ndarray, axis: int) -> int:
    """Return how many groups of four along an axis have more than two numbers that are not zero; 0 is 2:4 sparse."""
    return sum(int(((rows != 0).sum(axis=1) > MOST_NONZERO).sum()) for rows in _groups(array, axis))


def pruned(array: np.ndarray, axis: int) -> np.ndarray:
    """Return a copy in which the two smallest magnitudes of every group of four along an axis are zero.

    Of equal magnitudes the first go, as in Polygraphy.
    """
    moved = np.moveaxis(array, axis, -1)
    result = np.array(moved, order="C")
    rows = result.reshape(-1, GROUP)
    smallest = np.argsort(np.abs(rows.astype(np.float32)), axis=1, kind="stable")[:, : GROUP - MOST_NONZERO]
    np.put_along_axis(rows, smallest, np.zeros((), array.dtype), axis=1)
    return np.ascontiguousarray(np.moveaxis(result, -1, axis))


def prune(model: Model) -> tuple[Model, tuple[SparseCandidate, ...]]:
    """Return the model with the smallest numbers of every candidate zeroed, and the candidates.

    Accuracy is lost: this is for testing that an engine uses sparsity. The weights are pruned one at a time when the
    model is saved.
    """
    candidates = tuple(sparse_candidates(model.graph))
    axes = {candidate.weight: candidate.axis for candidate in candidates}
    clone = model.clone()
    replace_constants(clone.ir, {name: _lazily_pruned(tensor, axes[name]) for name, tensor in _tensors(clone.ir, axes)})
    return Model.from_ir(clone.ir), candidates


def replace_constants(model: ir.Model, tensors: Mapping[str, Any]) -> None:
    """Put other numbers into initializers and Constant nodes of the main graph, in place.

    Args:
        model: The model, which must not share its initializer values with another one.
        tensors: onnx_ir tensors of the same type and shape as before, by name of the constant value.
    """
    for name, value in model.graph.initializers.items():
        if name in tensors:
            value.const_value = tensors[name]
    for node in model.graph:
        if constant_tensor(node) is not None and (name := node.outputs[0].name or "") in tensors:
            node.attributes.clear()
            node.attributes.add(ir.AttrTensor("value", tensors[name]))


def _tensors(model: ir.Model, wanted: Collection[str]) -> Iterator[tuple[str, Any]]:
    for name, value in model.graph.initializers.items():
        if name in wanted:
            yield name, value.const_value
    for node in model.graph:
        name = node.outputs[0].name or "" if node.outputs else ""
        if name in wanted and (tensor := constant_tensor(node)) is not None:
            yield name, tensor


def _lazily_pruned(tensor: Any, axis: int) -> ir.LazyTensor:
    def compute() -> Any:
        return ir.Tensor(pruned(tensor.numpy(), axis), dtype=tensor.dtype, name=tensor.name)

    return ir.LazyTensor(compute, tensor.dtype, tensor.shape, name=tensor.name, doc_string=tensor.doc_string)


def _groups(array: np.ndarray, axis: int) -> Iterator[np.ndarray]:
    moved = np.moveaxis(array, axis, -1)
    slabs = moved if moved.ndim > 1 else moved[np.newaxis]
    step = max(1, ROWS * GROUP // max(1, slabs[0].size if len(slabs) else 1))
    for start in range(0, len(slabs), step):
        yield np.ascontiguousarray(slabs[start : start + step]).reshape(-1, GROUP)


def _summed_operands(node: Node) -> Iterator[tuple[str, int]]:
    """Yield the operands of a node that may be weights, with the axis that is summed over."""
    if node.domain or len(node.inputs) < 2:
        return
    first, second = node.inputs[:2]
    if node.op_type == "Conv":
        yield second, 1
    elif node.op_type == "MatMul":
        yield first, -1
        yield second, -2
    elif node.op_type == "Gemm":
        yield first, 0 if node.attributes.get("transA", 0) else 1
        yield second, 1 if node.attributes.get("transB", 0) else 0


def _weight_behind(graph: Graph, value: str, axis: int) -> tuple[str, int] | None:
    """Return the constant that a value is made of by quantizers, Casts and Transposes, and what its axis is there."""
    while value not in graph.constants:
        node = graph.producer(value)
        if node is None or not node.inputs:
            return None
        if node.op_type == "Transpose":
            order = node.attributes.get("perm")
            if not isinstance(order, tuple) or not -len(order) <= axis < len(order):
                return None
            axis = order[axis]
        elif node.op_type not in _LOOKED_THROUGH:
            return None
        value = node.inputs[0]
    return value, axis


@dataclasses.dataclass(frozen=True, slots=True)
class WeightSparsity:
    """One weight that could be 2:4 sparse.

    Attributes:
        weight: Name of the constant.
        node: The operator that sums over it.
        shape: Dimensions.
        axis: The axis that is summed over.
        groups: Number of groups of four along that axis.
        dense_groups: How many of them have more than two numbers that are not zero; 0 is 2:4 sparse.
    """

    weight: str
    node: str
    shape: tuple[int, ...]
    axis: int
    groups: int
    dense_groups: int


@dataclasses.dataclass(frozen=True, slots=True)
class SparsityReport:
    """The weights that could be 2:4 sparse, in the order of their operators.

    Attributes:
        model: The file.
        weights: One entry per weight.
    """

    model: str
    weights: tuple[WeightSparsity, ...]
    format: str = "tensortriage.sparsity/1"

    @property
    def is_sparse(self) -> bool:
        """Whether all of them are."""
        return all(weight.dense_groups == 0 for weight in self.weights)


def check_sparsity(model: Model) -> SparsityReport:
    """Read every weight that could be 2:4 sparse, one at a time.

    Raises:
        ModelError: When the model has none (slug ``no-sparse-candidates``).
    """
    found = []
    for candidate in sparse_candidates(model.graph):
        array = model.graph.weight(candidate.weight)
        groups = math.prod(array.shape) // GROUP
        dense = dense_groups(array, candidate.axis)
        found.append(WeightSparsity(candidate.weight, candidate.node, array.shape, candidate.axis, groups, dense))
    if not found:
        raise ModelError(
            f"{model.path or 'the model'} has no weight that could be 2:4 sparse",
            slug="no-sparse-candidates",
            cure="only float32, float16 and bfloat16 constants of Conv, Gemm and MatMul can be, if the length of the "
            "summed axis is a multiple of four",
        )
    return SparsityReport(str(model.path or ""), tuple(found))
