"""onnx's shape inference, in a process apart: a crash or a hang of it is no result."""

from tensortriage.model.ir.onnx_subprocess import ExtensionFailed, call_extension

_SECONDS = 10.0
_CALL = "extension.shape_inference.infer_shapes(model, False, False, True)"  # check_type, strict_mode, data_prop


def infer_shapes(model: bytes, *, limit_seconds: float = _SECONDS) -> bytes | None:
    """Return a serialized model with the inferred types added to its value_info.

    Args:
        model: Serialized ModelProto.
        limit_seconds: Longest time; ordinary models take a fraction of a second.

    Returns:
        The same model with more value_info (onnx.shape_inference, lenient, with data propagation); None when inference
        refused the model, crashed, or ran out of time or memory (4 GiB).
    """
    try:
        return call_extension(_CALL, model, limit_seconds=limit_seconds)
    except ExtensionFailed:
        return None
