"""From an onnx_ir model to protobuf, without the values of large weights.

Writing a model, hashing it, inferring its shapes and checking it all want the graph without its numbers. The graph is
serialized through a view in which empty tensors stand for the large initializers; the model itself is not touched, so
that other threads may use it.
"""

import threading
from collections.abc import Collection
from typing import Any

import onnx
import onnx_ir as ir

from tensortriage.errors import ModelError
from tensortriage.model.io.lazy_weights import Hollow
from tensortriage.model.ir.around_graph import around_graph
from tensortriage.model.ir.display_names import first_cause, first_line

TRAINING = "tensortriage.training-info"
"""Key of a model's training information among the metadata of its main graph, excluded from the written metadata."""

FOREIGN_TYPE = "tensortriage.type_proto"
"""Key, among the metadata of a value, of a serialized type that onnx_ir cannot represent."""

_lock = threading.Lock()


def to_proto(model: ir.Model, *, hollow: Collection[str] = ()) -> onnx.ModelProto:
    """Serialize a model.

    Args:
        model: The model.
        hollow: Initializers of the main graph that are serialized with an empty raw_data.

    Raises:
        ModelError: When onnx_ir cannot serialize it (slug ``model-invalid``).
    """
    try:
        with _lock:  # onnx_ir writes the name of a value into its tensor, which models share, just before it reads it
            proto = ir.to_proto(_view(model, frozenset(hollow)))
    except Exception as error:  # onnx_ir and protobuf raise anything here; this is the border
        if isinstance(cause := first_cause(error), ModelError):  # of a tensor whose file is gone
            raise cause from None
        raise ModelError(
            f"the model cannot be serialized: {first_line(error)}",
            slug="model-invalid",
            cure="the file is damaged, or newer than the installed onnx: export the model again, or update onnx",
        ) from error
    for infos, values in ((proto.graph.input, model.graph.inputs), (proto.graph.output, model.graph.outputs)):
        for info, value in zip(infos, values, strict=True):
            if FOREIGN_TYPE in value.meta:
                info.type.ParseFromString(value.meta[FOREIGN_TYPE])
    proto.training_info.extend(model.graph.meta.get(TRAINING, ()))
    return proto


def _view(model: ir.Model, hollow: frozenset[str]) -> ir.Model:
    graph = model.graph
    view = ir.GraphView(
        graph.inputs,
        graph.outputs,
        nodes=graph,
        initializers=[_stand_in(v) if name in hollow else v for name, v in graph.initializers.items()],
        doc_string=graph.doc_string,
        opset_imports=graph.opset_imports,
        name=graph.name,
        metadata_props=graph.metadata_props,
    )
    return around_graph(view, model, model.functions.values(), device_configurations=model.device_configurations)


def _stand_in(value: ir.Value) -> ir.Value:
    stand_in = ir.Value(
        name=value.name,
        type=value.type,
        shape=value.shape,
        doc_string=value.doc_string,
        metadata_props=dict(value.metadata_props),
        const_value=Hollow(value.const_value),
    )
    stand_in.meta.update(value.meta)
    return stand_in


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
