"""Whether a node computes as in training: by the statistics of its batch, or with elements zeroed at random."""

import onnx_ir as ir

from tensortriage.model.ir.attributes import constant_tensor
from tensortriage.model.transforms.rewrite_helpers import is_standard


def trains(node: ir.Node) -> bool:
    """Say whether a BatchNormalization or Dropout (opset 14 and 12 or higher) is in training mode."""
    if is_standard(node, "BatchNormalization"):
        attr = node.attributes.get("training_mode")
        return attr is not None and attr.as_int() == 1
    if not is_standard(node, "Dropout") or len(node.inputs) < 3 or (value := node.inputs[2]) is None:
        return False
    producer = value.producer()
    tensor = value.const_value if producer is None else constant_tensor(producer)
    return tensor is not None and bool(tensor.numpy().any())
