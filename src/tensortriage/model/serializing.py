"""From an onnx_ir model to protobuf, with other tensors standing in for its own.

Writing a model, hashing it, inferring its shapes and checking it all want the graph without its numbers. onnx_ir
serializes a graph together with the tensors it holds, so the initializers are exchanged for the time of the call, under
a lock; the model is the same afterwards.
"""

import threading
from collections.abc import Callable
from typing import Any, NoReturn

import onnx
import onnx_ir as ir

from tensortriage.errors import ModelError
from tensortriage.model.foreign_types import restore_foreign_types
from tensortriage.model.quoting import first_cause, first_line
from tensortriage.model.walk import all_graphs

_lock = threading.Lock()


class Hollow(ir.LazyTensor):
    """A tensor that has a type and a shape and no numbers."""

    def __init__(self, tensor: Any) -> None:
        super().__init__(
            _no_numbers,
            tensor.dtype,
            tensor.shape,
            name=tensor.name,
            doc_string=tensor.doc_string,
            metadata_props=dict(tensor.metadata_props),
        )

    def tobytes(self) -> bytes:
        """Return no bytes."""
        return b""


def _no_numbers() -> NoReturn:
    raise TypeError("a hollow tensor has no numbers")


def to_proto(model: ir.Model, substitute: Callable[[ir.Value, Any], Any]) -> onnx.ModelProto:
    """Serialize a model.

    Args:
        model: The model; unchanged after the call.
        substitute: For every initializer (its value, its tensor), bodies included, the tensor to serialize instead.

    Raises:
        ModelError: When onnx_ir cannot serialize it (slug ``model-invalid``).
    """
    with _lock:
        held = [(v, v.const_value) for graph in all_graphs(model) for v in graph.initializers.values()]
        try:
            for value, tensor in held:
                if tensor is not None:
                    value.const_value = substitute(value, tensor)
            proto = ir.to_proto(model)
        except Exception as error:  # onnx_ir and protobuf raise anything here; this is the border
            if isinstance(cause := first_cause(error), ModelError):  # of a tensor whose file is gone
                raise cause from None
            raise ModelError(f"the model cannot be serialized: {first_line(error)}", slug="model-invalid") from error
        finally:
            for value, tensor in held:
                value.const_value = tensor
    restore_foreign_types(proto.graph, model.graph)
    return proto


def hollow_proto(model: ir.Model, *, above_bytes: int) -> onnx.ModelProto:
    """Serialize a model with its large weights turned into inputs: the same graph, the same types, few bytes.

    Args:
        model: The model.
        above_bytes: Initializers of the main graph larger than this become inputs. Small ones stay, because shape
            inference reads their numbers.
    """
    large = {
        id(value): name
        for name, value in model.graph.initializers.items()
        if (tensor := value.const_value) is not None
        and tensor.dtype != ir.DataType.STRING
        and tensor.nbytes > above_bytes
    }
    proto = to_proto(model, lambda value, tensor: Hollow(tensor) if id(value) in large else tensor)
    hollow = set(large.values())
    undeclared = hollow - {info.name for info in proto.graph.input}
    small: list[onnx.TensorProto] = []
    for tensor in proto.graph.initializer:
        if tensor.name not in hollow:
            small.append(tensor)
        elif tensor.name in undeclared:
            proto.graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    kept = onnx.GraphProto(initializer=small)
    proto.graph.ClearField("initializer")
    proto.graph.initializer.extend(kept.initializer)
    return proto


def to_bytes(message: Any) -> bytes:
    """Serialize a protobuf message.

    Raises:
        ModelError: When it exceeds the 2 GiB limit of protobuf (slug ``model-too-large``).
    """
    try:
        serialized: bytes = message.SerializeToString(deterministic=True)
    except Exception as error:  # EncodeError, ValueError or MemoryError, depending on the version of protobuf
        raise ModelError(
            f"the model without its initializers does not fit into one ONNX file: {first_line(error)}",
            slug="model-too-large",
            cure="turn large Constant nodes into initializers",
        ) from error
    return serialized
