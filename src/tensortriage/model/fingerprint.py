"""One hash for what a model computes: structure and weights, wherever the weights are stored."""

import hashlib

import onnx_ir as ir


def fingerprint(model: ir.Model) -> str:
    """Return the SHA-256, in hex, over structure and weights of a model."""
    digest = hashlib.sha256()
    for node in model.graph:
        digest.update(ir.to_proto(node).SerializeToString())
    for name, value in sorted(model.graph.initializers.items()):
        digest.update(name.encode())
        if value.const_value is not None:
            digest.update(value.const_value.tobytes())
    return digest.hexdigest()
