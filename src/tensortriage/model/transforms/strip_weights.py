"""Take the values of the weights out of a model, and fill in made-up ones.

A stripped model is small and says nothing secret, and TensorRT can build an engine from the result and fill in the real
weights later. Before that it needs numbers of the right type, shape and sparsity: the reconstructed ones. What counts
as a weight, and the marks in doc_string, are Polygraphy's (``surgeon weight-strip``, ``weight-reconstruct``). Unlike
there, indices of a Gather are never stripped, and the made-up numbers depend on a seed and the weight's name only.
"""

import hashlib
import math
from collections.abc import Collection, Iterator
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from tensortriage.errors import UsageError
from tensortriage.model.inspect.sparsity import dense_groups, pruned, sparse_candidates
from tensortriage.model.io.check_tensors import STRIPPED_MARK
from tensortriage.model.io.serialize import Hollow
from tensortriage.model.ir.graph import Graph
from tensortriage.model.model import Model
from tensortriage.model.transforms.rewrite_helpers import nearest_name
from tensortriage.values.dtype import DType

_SPARSE = "SPARSE_2_4"
_WEIGHTED = ("Conv", "ConvTranspose", "Gemm", "MatMul")
_LARGE_OPERANDS = {"Gather": (0,), "Slice": (0,)}
_LARGE = 1024
_PASSED_THROUGH = ("Transpose", "DequantizeLinear", "QuantizeLinear")


def strip_weights(
    model: Model, *, exclude: Collection[str] = (), needs_weights: bool = True
) -> tuple[Model, tuple[str, ...]]:
    """Return the model without the numbers of its weights, and the names of those weights.

    Weights are initializers that Conv, ConvTranspose, Gemm and MatMul use directly, through a Transpose or through
    quantizers (behind a dequantizer alone the stored integers are the weight), and initializers of at least 1024
    elements that Gather and Slice take from or that an operator outside the ONNX standard uses. Fold constants first,
    so that they are initializers.

    Args:
        model: The model; it is not changed. Weights are read to see whether they are 2:4 sparse, which is noted.
        exclude: Initializers to leave alone.
        needs_weights: Whether it is an error when nothing is stripped; else the model comes back as it is.

    Raises:
        UsageError: When a name in `exclude` is no initializer (``initializer-unknown``) or there is nothing to strip
            (``nothing-to-strip``).
    """
    graph = model.graph
    for name in exclude:
        if name not in graph.initializers:
            raise UsageError(
                f"the model has no initializer named {name!r}",
                slug="initializer-unknown",
                cure=nearest_name(name, graph.initializers),
            )
    names = [name for name in dict.fromkeys(_weights(graph)) if name not in exclude]
    if not names and not needs_weights:
        return model, ()
    if not names:
        raise UsageError("the model has no weights to strip", slug="nothing-to-strip", cure="fold its constants first")
    axes = {candidate.weight: candidate.axis for candidate in sparse_candidates(graph)}
    clone = model.clone()
    for name in names:
        value = clone.ir.graph.initializers[name]
        is_sparse = name in axes and dense_groups(graph.weight(name), axes[name]) == 0
        value.const_value = _hollow(value.const_value, f"{STRIPPED_MARK}/{_SPARSE if is_sparse else ''}")
    clone.ir.doc_string = "-".join(filter(None, [clone.ir.doc_string, STRIPPED_MARK]))
    return Model.from_ir(clone.ir), tuple(names)


def reconstruct_weights(model: Model, *, seed: int = 0, needs_weights: bool = True) -> tuple[Model, tuple[str, ...]]:
    """Return the model with made-up numbers for the weights that were stripped, and their names.

    Floats are normally distributed with a variance of one over the elements per first index, so that values neither
    explode nor vanish on their way; integers are uniform. Weights that were 2:4 sparse are so again. The numbers are
    made when the model is saved.

    Args:
        model: The model; it is not changed.
        seed: The same seed gives the same numbers.
        needs_weights: Whether it is an error when nothing was stripped; else the model comes back as it is.

    Raises:
        UsageError: When nothing was stripped (slug ``nothing-stripped``).
    """
    axes = {candidate.weight: candidate.axis for candidate in sparse_candidates(model.graph)}
    clone = model.clone()
    names: list[str] = []
    for name, value in clone.ir.graph.initializers.items():
        tensor = value.const_value
        if isinstance(tensor, Hollow):
            axis = axes.get(name) if (tensor.doc_string or "").endswith(_SPARSE) else None
            value.const_value = _made_up(tensor, name, seed, axis)
            names.append(name)
    if not names and needs_weights:
        raise UsageError(
            "no weight of the model was stripped", slug="nothing-stripped", cure="give a model that weight-strip wrote"
        )
    return Model.from_ir(clone.ir), tuple(names)


def _weights(graph: Graph) -> Iterator[str]:
    for node in graph.nodes:
        if node.domain not in ("", "ai.onnx") or not onnx.defs.has(node.op_type):
            yield from (name for name in node.inputs if _elements(graph, name) >= _LARGE)
            continue
        for index in _LARGE_OPERANDS.get(node.op_type, ()):
            if index < len(node.inputs) and _elements(graph, node.inputs[index]) >= _LARGE:
                yield node.inputs[index]
        for value in node.inputs if node.op_type in _WEIGHTED else ():
            name = _source(graph, value)
            if _elements(graph, name):
                yield name


def _source(graph: Graph, value: str) -> str:
    """Return the value behind an operand, through Transpose, quantizers and dequantizers."""
    while (producer := graph.producer(value)) is not None and producer.op_type in _PASSED_THROUGH:
        value = producer.inputs[0]
    return value


def _elements(graph: Graph, name: str) -> int:
    """Return the number of elements of an initializer that may be stripped; 0 for other values."""
    spec = graph.initializers.get(name)
    if spec is None or spec.dtype in (DType.UINT8, DType.STRING):
        return 0
    return math.prod(size for size in spec.shape or () if isinstance(size, int))


def _hollow(tensor: Any, doc_string: str) -> Hollow:
    hollow = Hollow(tensor)
    hollow.doc_string = doc_string
    return hollow


def _made_up(tensor: Hollow, name: str, seed: int, axis: int | None) -> ir.LazyTensor:
    shape = tuple(int(size) for size in tensor.shape.numpy())
    dtype = tensor.dtype.numpy()

    def compute() -> Any:
        state = hashlib.sha256(f"{seed}/{name}".encode()).digest()
        rng = np.random.default_rng(int.from_bytes(state, "little"))
        if dtype.kind in "iu":
            limits = np.iinfo(dtype)
            array = rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
        else:
            per_first = max(1, math.prod(shape[1:]))
            array = (rng.standard_normal(shape, np.float32) / np.float32(math.sqrt(per_first))).astype(dtype)
        return ir.Tensor(array if axis is None else pruned(array, axis), dtype=tensor.dtype, name=name)

    return ir.LazyTensor(compute, tensor.dtype, tensor.shape, name=name, doc_string=tensor.doc_string)
