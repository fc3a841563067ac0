"""Value types that onnx_ir cannot represent (maps, opaque types) are carried past it.

scikit-learn classifiers end in a ZipMap, whose output is a sequence of maps; such models load, keep the type of that
output through edits, and are saved with it. Nothing here computes on such values: their `ValueSpec` has no dtype.
"""

import onnx
import onnx_ir as ir

from tensortriage.frozen_dataclass import frozen_dataclass

_KEY = "tensortriage.type_proto"
_FOREIGN = frozenset({"map_type", "opaque_type"})


@frozen_dataclass
class ForeignTypes:
    """Serialized TypeProto per value name of the main graph."""

    types: dict[str, bytes]

    def attach(self, graph: ir.Graph) -> None:
        """Remember the types on the values they belong to."""
        if not self.types:
            return
        for name, value in ir.convenience.create_value_mapping(graph, include_subgraphs=False).items():
            if name in self.types:
                value.meta[_KEY] = self.types[name]


def take_foreign_types(graph: onnx.GraphProto) -> ForeignTypes:
    """Clear, in place, the types of a main graph that onnx_ir cannot read, and return them."""
    found: dict[str, bytes] = {}
    for value in (*graph.input, *graph.output, *graph.value_info):
        if _is_foreign(value.type):
            found[value.name] = value.type.SerializeToString()
            value.ClearField("type")
    return ForeignTypes(found)


def restore_foreign_types(proto: onnx.GraphProto, graph: ir.Graph) -> None:
    """Give the inputs and outputs of a serialized graph their removed types back."""
    for infos, values in ((proto.input, graph.inputs), (proto.output, graph.outputs)):
        for info, value in zip(infos, values, strict=True):
            if _KEY in value.meta:
                info.type.ParseFromString(value.meta[_KEY])


def _is_foreign(proto: onnx.TypeProto) -> bool:
    kind = proto.WhichOneof("value")
    while kind in ("sequence_type", "optional_type"):
        proto = getattr(proto, kind).elem_type
        kind = proto.WhichOneof("value")
    return kind in _FOREIGN
