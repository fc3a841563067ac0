"""A model as a message without the numbers of its large weights, for those that look at types and shapes."""

import onnx
import onnx_ir as ir

from tensortriage.model.io.lazy_weights import large_initializers
from tensortriage.model.io.serialize import to_proto


def hollow_proto(model: ir.Model, *, above_bytes: int) -> onnx.ModelProto:
    """Serialize a model with its large weights turned into inputs: the same graph, the same types, few bytes.

    Args:
        model: The model.
        above_bytes: Initializers of the main graph larger than this become inputs. Small ones stay, because shape
            inference reads their numbers.
    """
    large = large_initializers(model, above_bytes=above_bytes)
    proto = to_proto(model, hollow=large)
    undeclared = large.keys() - {info.name for info in proto.graph.input}
    small: list[onnx.TensorProto] = []
    for tensor in proto.graph.initializer:
        if tensor.name not in large:
            small.append(tensor)
        elif tensor.name in undeclared:
            proto.graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    kept = onnx.GraphProto(initializer=small)
    proto.graph.ClearField("initializer")
    proto.graph.initializer.extend(kept.initializer)
    return proto
