"""A model as steps: nodes that a freedom touches are computed in numpy, the parts between them by ONNX Runtime.

A step of ONNX Runtime is a stretch of neighbouring nodes, compiled without optimizations when it is first run, from the
types of the arrays that reach it. Where results are stored in a narrower format, a stretch ends behind every node that
computes, so that no number escapes its rounding.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from tensortriage.engines.sdk import Model, ValueSpec
from tensortriage.testing.sdk import Node, onnxruntime_library
from tensortriage_testing.simulated import elementwise, products, sums
from tensortriage_testing.simulated.freedoms import Freedoms

Values = dict[str, np.ndarray]
Kernel = Callable[[Sequence[np.ndarray | None]], np.ndarray]

MOVING = frozenset(
    {
        "Reshape", "Transpose", "Slice", "Gather", "Concat", "Split", "Squeeze", "Unsqueeze", "Expand", "Identity",
        "Flatten", "Pad", "Tile", "Where", "Relu", "MaxPool", "GlobalMaxPool", "Shape", "Size", "Constant",
        "Max", "Min", "GatherElements", "GatherND", "DepthToSpace", "SpaceToDepth", "Neg", "Abs", "Equal", "Less",
        "Greater", "Not", "And", "Or", "ConstantOfShape", "Range", "ArgMax", "ArgMin", "NonZero", "TopK",
        "ReduceMax", "ReduceMin", "QuantizeLinear", "Clip", "Trilu", "OneHot", "LessOrEqual", "GreaterOrEqual",
        "ReverseSequence",
    }
)  # fmt: skip
"""Operators whose results need no rounding of their own: they move or select values, or make no float32."""

_DIFFERENT_WHERE: Mapping[str, Callable[[Freedoms], bool]] = {
    **dict.fromkeys(("MatMul", "Gemm"), lambda f: not f.plain_products),
    "Conv": lambda f: not f.plain_products or f.winograd > 0,
    **dict.fromkeys(("ReduceSum", "ReduceMean", "LayerNormalization"), lambda f: f.order != "whole"),
    "Softmax": lambda f: f.order != "whole" or "Softmax" in f.functions,
    "QuantizeLinear": lambda f: f.ties_away,
}


@dataclasses.dataclass(frozen=True, slots=True)
class SimulatedStep:
    """One node in numpy, or several in ONNX Runtime.

    Attributes:
        nodes: The nodes, in order.
        kernel: The arithmetic of the one node; None for ONNX Runtime.
        wide: Whether the result goes on to the next step of its chain unrounded.
    """

    nodes: tuple[Node, ...]
    kernel: Kernel | None
    wide: bool = False


def divided(
    model: Model, freedoms: Freedoms, specs: Mapping[str, ValueSpec], *, apart: str, narrow: bool
) -> list[SimulatedStep]:
    """Divide a model's main graph into steps.

    Args:
        model: The model.
        freedoms: Freedoms that the accelerator takes.
        specs: Types of the model's values.
        apart: Node that gets a step of its own, and whose result is rounded; empty for none.
        narrow: Whether results are changed when they are stored.
    """
    outputs = {spec.name for spec in model.outputs}
    found: list[SimulatedStep] = []
    stretch: list[Node] = []
    for node in model.graph.nodes:
        kernel = _kernel(model, node, freedoms, specs)
        if stretch and (kernel is not None or node.name == apart):
            found.append(SimulatedStep(tuple(stretch), None))
            stretch = []
        if kernel is not None:
            found.append(
                SimulatedStep((node,), kernel, node.name != apart and _goes_on(model, node, freedoms, outputs))
            )
        elif node.name == apart or (narrow and node.op_type not in MOVING):
            found.append(SimulatedStep((*stretch, node), None))
            stretch = []
        elif node.op_type != "Constant":
            stretch.append(node)
    return [*found, SimulatedStep(tuple(stretch), None)] if stretch else found


def _goes_on(model: Model, node: Node, freedoms: Freedoms, outputs: set[str]) -> bool:
    """Return whether one element-wise node alone uses the result of another, which is no output."""
    users = model.graph.consumers(node.outputs[0])
    return (
        freedoms.fused
        and node.op_type in elementwise.CHAINED
        and node.outputs[0] not in outputs
        and len(users) == 1
        and users[0].op_type in elementwise.CHAINED
        and not users[0].domain
    )


def _kernel(model: Model, node: Node, freedoms: Freedoms, specs: Mapping[str, ValueSpec]) -> Kernel | None:
    """Return the arithmetic of a node that a freedom touches; None for any other."""
    shown = any(spec.name == node.outputs[0] for spec in model.outputs)
    op, attributes = node.op_type, node.attributes
    if node.domain not in ("", "ai.onnx") or not _floating(specs, node.inputs[0] if node.inputs else ""):
        return None
    approximated = freedoms.functions.get(op)
    if approximated is not None and op != "Softmax":
        return None if approximated.inside and shown else _pointwise(approximated.functions[op])
    if op in elementwise.CHAINED and freedoms.fused:
        return _pointwise(elementwise.FUNCTIONS[op])
    if op not in _DIFFERENT_WHERE or not _DIFFERENT_WHERE[op](freedoms) or len(node.outputs) > 1:
        return None
    unknown = model.opset < 13 if op == "Softmax" else op == "QuantizeLinear" and not _to_int8(model, node)
    if unknown:
        return None
    return _written(op, attributes, freedoms)


def _written(op: str, attributes: Mapping[str, object], freedoms: Freedoms) -> Kernel:
    kernels: Mapping[str, Kernel] = {
        "MatMul": lambda x: products.matmul(x, freedoms),
        "Gemm": lambda x: products.gemm(x, attributes, freedoms),
        "Conv": lambda x: products.conv(x, attributes, freedoms),
        "ReduceSum": lambda x: sums.reduction(x, attributes, freedoms, mean=False),
        "ReduceMean": lambda x: sums.reduction(x, attributes, freedoms, mean=True),
        "Softmax": lambda x: sums.softmax(x, attributes, freedoms),
        "LayerNormalization": lambda x: sums.layer_normalization(x, attributes, freedoms),
        "QuantizeLinear": lambda x: elementwise.quantize(x, attributes),
    }
    return kernels[op]


def _floating(specs: Mapping[str, ValueSpec], name: str) -> bool:
    dtype = specs[name].dtype if name in specs else None
    return dtype is not None and dtype.numpy in (np.float32, np.float16)


def _to_int8(model: Model, node: Node) -> bool:
    zero = model.graph.constants.get(node.inputs[2]) if len(node.inputs) > 2 else None
    return zero is not None and zero.dtype is not None and zero.dtype.numpy in (np.int8, np.uint8)


def _pointwise(function: Callable[..., np.ndarray]) -> Kernel:
    return lambda operands: function(*(np.asarray(each, np.float64) for each in operands))


class Stretch:
    """Nodes in ONNX Runtime; compiled when first run.

    Args:
        model: The model that the nodes are from.
        nodes: The nodes, in an order in which they can run.
        weights: Fetches a constant as it is stored.
    """

    def __init__(self, model: Model, nodes: Sequence[Node], weights: Callable[[str], np.ndarray]) -> None:
        self._model = model
        self._nodes = nodes
        self._weights = weights
        made = dict.fromkeys(name for node in nodes for name in node.outputs if name)
        used = dict.fromkeys(name for node in nodes for name in node.uses if name not in made)
        self._constants = [name for name in used if name in model.graph.constants]
        self.inputs = [name for name in used if name not in model.graph.constants]
        inside, shown = {node.name for node in nodes}, {spec.name for spec in model.outputs}
        self.outputs = [
            name
            for name in made
            if name in shown or any(user.name not in inside for user in model.graph.consumers(name))
        ]
        self._session: Any = None

    def run(self, values: Mapping[str, np.ndarray]) -> Values:
        """Return the results that are used outside."""
        if not self.outputs:
            return {}
        feed = {name: np.asarray(values[name]) for name in self.inputs}
        if self._session is None:
            self._session = self._opened(feed)
        return dict(zip(self.outputs, self._session.run(self.outputs, feed), strict=True))

    def _opened(self, feed: Mapping[str, np.ndarray]) -> Any:
        by_name = {node.name: node for node in self._model.ir.graph}
        protos = [ir.to_proto(by_name[node.name]) for node in self._nodes]
        inputs = [_declared(name, array) for name, array in feed.items()]
        constants = [onnx.numpy_helper.from_array(self._weights(name), name) for name in self._constants]
        outputs = [onnx.ValueInfoProto(name=name) for name in self.outputs]
        graph = onnx.helper.make_graph(protos, "stretch", inputs, outputs, constants)
        opsets = [onnx.helper.make_opsetid(d, v) for d, v in self._model.ir.opset_imports.items()]
        functions = [ir.to_proto(function) for function in self._model.ir.functions.values()]
        proto = onnx.helper.make_model(
            graph, opset_imports=opsets, functions=functions, ir_version=self._model.ir.ir_version
        )
        return _opened(proto.SerializeToString())


def _declared(name: str, array: np.ndarray) -> onnx.ValueInfoProto:
    """Return a graph input of the array's type and rank, with an open shape."""
    element = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
    return onnx.helper.make_tensor_value_info(name, element, [None] * array.ndim)


def _opened(model: bytes) -> Any:
    """Open a model in ONNX Runtime without optimizations."""
    onnxruntime = onnxruntime_library()
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
