"""The effect of a changed attribute on a node, in words: a mode, an epsilon, the size of a window."""

import numpy as np
import onnx_ir as ir

from tensortriage.model.similarity.changes import ChangeKind, NodeDifference
from tensortriage.model.transforms.rewrite_helpers import is_standard, trains

_TEXT_LIMIT = 60
_RESAMPLES = ("Resize", "Upsample", "GridSample", "AffineGrid", "RoiAlign")
_RESAMPLING = frozenset(
    {
        "align_corners", "antialias", "coordinate_transformation_mode", "cubic_coeff_a", "exclude_outside",
        "extrapolation_value", "mode", "nearest_mode", "padding_mode", "sampling_ratio",
    }
)  # fmt: skip
_PADDING = frozenset({"auto_pad", "count_include_pad", "output_padding", "pads"})
_STRIDES = frozenset({"ceil_mode", "dilations", "kernel_shape", "strides"})
_BY_BATCH = "it normalizes by the mean and variance of the batch it is given, not by those that were learned"
_AT_RANDOM = "it zeroes elements at random"


def attribute_change(node: ir.Node, name: str, before: ir.Attr | None, after: ir.Attr | None) -> NodeDifference:
    """Return the effect of a changed attribute of a node.

    Args:
        node: The node as it is now.
        name: Name of the attribute.
        before: What it was; None when it was absent.
        after: What it is now.
    """
    words = f"has {name} {say(after)} instead of {say(before)}"
    if name == "training_mode" and is_standard(node, "BatchNormalization"):
        if trains(node):
            return NodeDifference(ChangeKind.TRAINING_MODE, f"is in training mode: {_BY_BATCH}")
        return NodeDifference(
            ChangeKind.TRAINING_MODE, "is no longer in training mode, as it is in the reference's model"
        )
    if name == "epsilon":
        return NodeDifference(ChangeKind.EPSILON, f"has another epsilon: {say(after)} instead of {say(before)}")
    if name in _RESAMPLING and is_standard(node, *_RESAMPLES):
        return NodeDifference(ChangeKind.RESAMPLING, f"resamples in another way: {words}")
    if name in _PADDING:
        return NodeDifference(ChangeKind.PADDING, words)
    return NodeDifference(ChangeKind.STRIDES if name in _STRIDES else ChangeKind.ATTRIBUTE, words)


def training_words(node: ir.Node) -> str:
    """Return the effect of training mode on a node, as the rest of a sentence that starts with the node."""
    if is_standard(node, "Dropout"):
        return f"is left on (training_mode is true): {_AT_RANDOM}"
    return f"is in training mode: {_BY_BATCH}"


def say(attr: ir.Attr | None) -> str:
    """Return an attribute in short."""
    if attr is None:
        return "absent"
    if attr.type in (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS):
        return "of another body"
    if attr.type == ir.AttributeType.TENSOR:
        return f"of {attr.as_tensor().dtype.name} {attr.as_tensor().shape}"
    text = str(np.float32(attr.as_float())) if attr.type == ir.AttributeType.FLOAT else repr(attr.value)
    return text if len(text) <= _TEXT_LIMIT else text[:_TEXT_LIMIT] + "..."
