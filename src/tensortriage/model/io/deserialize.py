"""From a parsed ONNX message to an onnx_ir model; what onnx_ir cannot represent is carried past it.

Training information goes into the metadata of the graph, value types that onnx_ir does not know (maps, opaque types)
into those of their values: scikit-learn classifiers end in a ZipMap, whose output is a sequence of maps. Such models
load, keep the type of that output through edits, and are saved with it by `tensortriage.model.io.serialize`. Nothing
here computes on such values: their `ValueSpec` has no dtype.
"""

import logging
from pathlib import Path

import onnx
import onnx_ir as ir

from tensortriage.errors import ModelError
from tensortriage.model.io.serialize import FOREIGN_TYPE, TRAINING
from tensortriage.model.ir.display_names import first_line

logging.getLogger("onnx_ir").addHandler(logging.NullHandler())  # else its warnings go to stderr unasked

_FOREIGN = frozenset({"map_type", "opaque_type"})


def deserialize(proto: onnx.ModelProto, path: Path) -> ir.Model:
    """Return a message as a model.

    Args:
        proto: The message; the types that onnx_ir cannot read are cleared in it.
        path: Its file, for messages.

    Raises:
        ModelError: When onnx_ir cannot read it (slug ``model-invalid``).
    """
    foreign_types = _take_foreign_types(proto.graph)
    try:
        model = ir.from_proto(proto)
    except Exception as error:  # onnx_ir raises RuntimeError around anything; this is the border where it ends
        raise ModelError(
            f"{path} is not a valid ONNX model: {first_line(error)}",
            slug="model-invalid",
            cure="export the model again; python -m onnx.checker names further faults",
        ) from error
    if foreign_types:
        for name, value in ir.convenience.create_value_mapping(model.graph, include_subgraphs=False).items():
            if name in foreign_types:
                value.meta[FOREIGN_TYPE] = foreign_types[name]
    if proto.training_info:  # metadata of a graph survive its clones
        model.graph.meta[TRAINING] = tuple(proto.training_info)
    return model


def _take_foreign_types(graph: onnx.GraphProto) -> dict[str, bytes]:
    """Clear, in place, the types of a main graph that onnx_ir cannot read; return each, serialized, by its value."""
    found: dict[str, bytes] = {}
    for value in (*graph.input, *graph.output, *graph.value_info):
        if _is_foreign(value.type):
            found[value.name] = value.type.SerializeToString()
            value.ClearField("type")
    return found


def _is_foreign(proto: onnx.TypeProto) -> bool:
    kind = proto.WhichOneof("value")
    while kind in ("sequence_type", "optional_type"):
        proto = getattr(proto, kind).elem_type
        kind = proto.WhichOneof("value")
    return kind in _FOREIGN
