"""A graph is a list of nodes and a set of weights that grow together; this collects both and draws the numbers."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17
IR_VERSION = 8
"""As old as opset 17 allows, so that every engine reads the file."""

ModelProto: TypeAlias = onnx.ModelProto
GraphProto: TypeAlias = onnx.GraphProto
NodeProto: TypeAlias = onnx.NodeProto

Dim = int | str
"""A static size, or the name of a symbolic dimension."""


class GraphWriter:
    """Collects nodes and weights, and draws the random numbers."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self._nodes: list[onnx.NodeProto] = []
        self._weights: dict[str, onnx.TensorProto] = {}

    def op(self, op_type: str, *inputs: str, name: str, **attributes: Any) -> str:
        """Add a node with one output and return the name of that output."""
        output = f"{name}_output_0"
        self._nodes.append(helper.make_node(op_type, inputs, [output], name=name, **attributes))
        return output

    def publish(self, name: str) -> str:
        """Rename the output of the latest node, which nothing reads yet, to ``name``."""
        self._nodes[-1].output[0] = name
        return name

    def weight(self, name: str, array: np.ndarray | np.generic) -> str:
        """Add an initializer, once per name, and return the name; float64 becomes float32."""
        if name not in self._weights:
            value = np.asarray(array, np.float32 if array.dtype == np.float64 else array.dtype)
            self._weights[name] = numpy_helper.from_array(value, name)
        return name

    def scalar(self, name: str, value: float) -> str:
        """Add a float32 scalar, once per name, and return the name."""
        return self.weight(name, np.float32(value))

    def indices(self, name: str, *values: int) -> str:
        """Add an int64 vector, once per name, and return the name."""
        return self.weight(name, np.array(values, np.int64))

    def normal(self, name: str, shape: Sequence[int], scale: float, *, mean: float = 0) -> str:
        """Add an initializer of normal numbers with standard deviation ``scale`` around ``mean``."""
        return self.weight(name, self.rng.standard_normal(shape, np.float32) * np.float32(scale) + np.float32(mean))

    def finish(
        self, name: str, inputs: Sequence[onnx.ValueInfoProto], outputs: Sequence[onnx.ValueInfoProto]
    ) -> onnx.ModelProto:
        """Return the model, checked."""
        graph = helper.make_graph(self._nodes, name, inputs, outputs, list(self._weights.values()))
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="tensortriage_testing",
        )
        onnx.checker.check_model(model)
        return model


def floats(name: str, *shape: Dim) -> onnx.ValueInfoProto:
    """Return the declaration of a float32 input or output."""
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def integers(name: str, *shape: Dim) -> onnx.ValueInfoProto:
    """Return the declaration of an int64 input or output."""
    return helper.make_tensor_value_info(name, TensorProto.INT64, shape)


def with_changed_weight(
    model: onnx.ModelProto, name: str, change: Callable[[np.ndarray], np.ndarray]
) -> onnx.ModelProto:
    """Return a copy of a model in which one initializer went through ``change``."""
    other = onnx.ModelProto()
    other.CopyFrom(model)
    for tensor in other.graph.initializer:
        if tensor.name == name:
            tensor.CopyFrom(numpy_helper.from_array(change(numpy_helper.to_array(tensor)), name))
    return other
