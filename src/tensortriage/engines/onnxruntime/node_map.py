"""The original nodes that each kernel of an optimized ONNX graph executes, inferred from surviving value names.

Optimizers rewrite nodes but keep the names of the values between them: a fused kernel's output is an original value,
and it executes every original node from there back to values that other kernels provide. Values an optimizer made up
stand for an original one in recognised ways: the kernel that makes them kept its name, or its name carries the value's
(``r1_nchwc``); an inserted cast carries it; an inserted data movement (Reshape, ReorderOutput, ...) connects them.
Where none applies, a region names no nodes rather than wrong ones.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from tensortriage.engines.base import Region
from tensortriage.model.ir.graph import Graph, Node
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.values.dtype import DType

_MOVEMENT = frozenset(
    {"Reshape", "Transpose", "Squeeze", "Unsqueeze", "Cast", "ReorderInput", "ReorderOutput", "Identity"}
)
_INSERTED_CAST = "InsertedPrecisionFreeCast_"
_BLOCKED_LAYOUT = "_nchwc"
_INTEGER_KERNELS = ("QLinear", "QGemm", "QAttention", "MatMulInteger", "ConvInteger", "DynamicQuantizeMatMul")
"""Prefixes of operators that multiply and add integers."""
_INTEGERS_TO_FLOAT = frozenset({"MatMulIntegerToFloat", "QAttention", "DynamicQuantizeMatMul"})


class Kernel(Protocol):
    """One operation of an optimized graph, by the names of its values; a `Node` is one."""

    @property
    def name(self) -> str:
        """The engine's own name."""
        ...

    @property
    def op_type(self) -> str:
        """The engine's word for the operation."""
        ...

    @property
    def inputs(self) -> Sequence[str]:
        """Values it takes."""
        ...

    @property
    def outputs(self) -> Sequence[str]:
        """Values it makes."""
        ...

    @property
    def attributes(self) -> Mapping[str, object]:
        """The attributes that show an absorbed operation."""
        ...


def fused_regions(original: Model, optimized: Model) -> tuple[Region, ...]:
    """Return one region per node of the optimized graph, in its execution order.

    Args:
        original: The model as given to the engine.
        optimized: The graph that the engine reports.
    """
    graph = original.graph
    known = {*graph.values, *graph.constants, *(spec.name for spec in original.inputs)}
    kernels = [node for node in optimized.graph.nodes if node.op_type != "Constant"]
    placed = executed_nodes(kernels, graph, known, given=optimized.graph.initializers)
    dtypes = {name: spec.dtype for name, spec in value_specs(optimized).items()}
    return tuple(
        Region(kernel.name, nodes, kernel.op_type, _precision(kernel, dtypes))
        for kernel, nodes in zip(kernels, placed, strict=True)
    )


def executed_nodes(
    kernels: Sequence[Kernel], graph: Graph, known: set[str], *, given: Iterable[str] = ()
) -> list[tuple[str, ...]]:
    """Return the original nodes that each kernel executes, in order.

    Args:
        kernels: The engine's kernels, in execution order.
        graph: Index of the original model.
        known: Names of values of the original model.
        given: Values that no kernel has to make, constants for example.
    """
    stands_for = _stands_for(kernels, graph, known)
    provided = {*given, *stands_for.values()} & known
    made: set[str] = set()  # a value is made by the first kernel that holds it; those after it move or round it
    placed = []
    for kernel in kernels:
        own = {stands_for[name] for name in kernel.outputs if name in stands_for} - made
        made |= own
        placed.append(_executed(own, graph, provided))
    return placed


def _stands_for(kernels: Sequence[Kernel], graph: Graph, known: set[str]) -> dict[str, str]:
    """Return for each value of the optimized graph the original value that it holds, where that is certain."""
    found = {name: name for kernel in kernels for name in (*kernel.inputs, *kernel.outputs) if name in known}
    for kernel in kernels:
        hint = kernel.name.removesuffix(_BLOCKED_LAYOUT)
        if hint != kernel.name and hint in known:
            found.setdefault(kernel.outputs[0], _after_fusion(kernel, hint, graph))
        if kernel.name in graph:
            for name, value in zip(kernel.outputs, graph.node(kernel.name).outputs, strict=False):
                found.setdefault(name, value)
        for name in kernel.outputs:
            if name.removeprefix(_INSERTED_CAST) in known:
                found.setdefault(name, name.removeprefix(_INSERTED_CAST))
    moves = [kernel for kernel in kernels if _is_inserted_move(kernel, graph)]
    for kernel in reversed(moves):
        if kernel.outputs[0] in found:
            found.setdefault(kernel.inputs[0], found[kernel.outputs[0]])
    for kernel in moves:
        if kernel.inputs[0] in found:
            found.setdefault(kernel.outputs[0], found[kernel.inputs[0]])
    return found


def _after_fusion(kernel: Kernel, value: str, graph: Graph) -> str:
    """Return the value after the Add and the activation that a kernel in blocked layout may have absorbed later."""
    added = kernel.op_type == "Conv" and len(kernel.inputs) > 3 and bool(kernel.inputs[3])
    absorbed: list[tuple[str, ...]] = [("Add", "Sum")] if added else []
    if kernel.attributes.get("activation"):
        absorbed.append((str(kernel.attributes["activation"]),))
    for op_types in absorbed:
        users = graph.consumers(value)
        if len(users) == 1 and users[0].op_type in op_types:
            value = users[0].outputs[0]
    return value


def _is_inserted_move(kernel: Kernel, graph: Graph) -> bool:
    return kernel.op_type in _MOVEMENT and kernel.name not in graph and bool(kernel.inputs)


def _executed(own: set[str], graph: Graph, provided: set[str]) -> tuple[str, ...]:
    """Return the nodes between values that a kernel makes and values that other kernels provide, in order."""
    pending = [node for node in map(graph.producer, own) if node is not None]
    seen: dict[str, Node] = {node.name: node for node in pending}
    while pending:
        for value in pending.pop().uses:
            node = graph.producer(value)
            if node is not None and value not in provided and node.name not in seen and node.op_type != "Constant":
                seen[node.name] = node
                pending.append(node)
    return tuple(node.name for node in sorted(seen.values(), key=lambda node: node.index))


def _precision(kernel: Node, dtypes: dict[str, DType | None]) -> str:
    """Return the label of the type a kernel computes in, an integer only where it multiplies integers; empty for none.

    The types of ONNX Runtime's own operators are not inferred; all that leave their output's open give that of their
    input, which is noted for the kernels behind them.
    """
    if kernel.op_type.startswith(_INTEGER_KERNELS):
        data = dtypes.get(kernel.inputs[0]) or DType.INT8
        result = DType.FLOAT if kernel.op_type in _INTEGERS_TO_FLOAT else data
        dtypes.update((name, result) for name in kernel.outputs if dtypes.get(name) is None)
        return data.label if data.is_integer else DType.INT8.label
    found = (dtypes.get(name) for name in (*kernel.outputs, *kernel.inputs))
    dtype = next((dtype for dtype in found if dtype is not None and dtype.is_float), None)
    if kernel.domain:
        dtypes.update((name, dtype) for name in kernel.outputs if dtypes.get(name) is None)
    return "" if dtype is None else dtype.label
