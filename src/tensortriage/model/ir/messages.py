"""Contents of nodes as ONNX's messages have them: bodies, and attributes that are types or constants; no onnx_ir."""

from collections.abc import Iterator, Sequence

import onnx

from tensortriage.values.dtype import DType

DTYPE_ATTRIBUTES = {
    "Bernoulli": "dtype", "BlackmanWindow": "output_datatype", "Cast": "to", "DequantizeLinear": "output_dtype",
    "EyeLike": "dtype", "HammingWindow": "output_datatype", "HannWindow": "output_datatype", "Multinomial": "dtype",
    "MelWeightMatrix": "output_datatype", "QuantizeLinear": "output_dtype", "RandomNormal": "dtype",
    "RandomNormalLike": "dtype", "RandomUniform": "dtype", "RandomUniformLike": "dtype", "SequenceEmpty": "dtype",
}  # fmt: skip
"""Attributes that name the element type of an operator's output."""

CONSTANT_TYPES = {
    "value_float": DType.FLOAT, "value_floats": DType.FLOAT, "value_int": DType.INT64, "value_ints": DType.INT64,
    "value_string": DType.STRING, "value_strings": DType.STRING,
}  # fmt: skip
"""Attributes of a Constant that are plain numbers or texts, and the element type of its result."""


def bodies(node: onnx.NodeProto) -> Iterator[tuple[str, onnx.GraphProto]]:
    """Yield the graphs that a node holds (If, Loop, Scan), each with the name of its attribute; not recursive."""
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            yield attribute.name, attribute.g
        elif attribute.type == onnx.AttributeProto.GRAPHS:
            for number, graph in enumerate(attribute.graphs):
                yield f"{attribute.name}[{number}]", graph


def all_nodes(nodes: Sequence[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """Yield nodes and those of the bodies they hold, at any depth, each body right behind its node."""
    pending = list(reversed(nodes))
    while pending:
        node = pending.pop()
        yield node
        for _, body in bodies(node):
            pending.extend(reversed(body.node))
