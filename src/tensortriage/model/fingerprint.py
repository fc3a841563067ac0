"""One hash for the function that a model computes: structure and weights, wherever the weights are stored."""

import hashlib

import onnx
import onnx_ir as ir

from tensortriage.model.io.lazy_weights import content_sha256
from tensortriage.model.io.serialize import to_bytes, to_proto
from tensortriage.model.ir.messages import bodies


def fingerprint(model: ir.Model) -> str:
    """Return the SHA-256, in hex, over a model.

    Equal for two files that hold the same graph (names included), the same numbers and the same operator sets, whether
    the weights are embedded or external. Documentation, metadata, producer and declared intermediate shapes do not
    count. The hash of a tensor is computed once and kept with it, so that the hundreds of variants of one model that a
    search makes, which share their weights, cost only their structure.
    """
    proto = to_proto(model, hollow=model.graph.initializers)
    digest = hashlib.sha256()
    for opset in sorted(proto.opset_import, key=lambda opset: opset.domain):
        digest.update(f"{opset.domain}:{opset.version};".encode())
    _strip(proto.graph)
    digest.update(to_bytes(proto.graph))
    for function in proto.functions:
        for node in function.node:
            _strip_node(node)
        digest.update(to_bytes(onnx.FunctionProto(name=function.name, domain=function.domain, node=function.node)))
        digest.update(repr((list(function.input), list(function.output))).encode())
    for value in model.graph.initializers.values():
        if value.const_value is not None:
            digest.update(content_sha256(value.const_value).encode())
    return digest.hexdigest()


def _strip(graph: onnx.GraphProto) -> None:
    for field in ("doc_string", "metadata_props", "value_info", "name"):
        graph.ClearField(field)
    for value in (*graph.input, *graph.output, *graph.initializer):
        value.ClearField("doc_string")
        value.ClearField("metadata_props")
    for node in graph.node:
        _strip_node(node)


def _strip_node(node: onnx.NodeProto) -> None:
    node.ClearField("doc_string")
    node.ClearField("metadata_props")
    attributes = sorted(node.attribute, key=lambda attribute: attribute.name)
    del node.attribute[:]
    node.attribute.extend(attributes)
    for attribute in node.attribute:
        attribute.ClearField("doc_string")
    for _, body in bodies(node):
        _strip(body)
