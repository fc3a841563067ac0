"""Files that are taken for ONNX models, by their first bytes, and what to do with each."""

from pathlib import Path

from tensortriage.errors import ModelError

_MAGICS = (
    (0, b"version https://git-lfs", "a Git LFS pointer", "run git lfs pull"),
    (0, b"PK\x03\x04", "a zip file, perhaps a PyTorch checkpoint", "export it with torch.onnx.export"),
    (4, b"ORTM", "a model in ONNX Runtime's own format", "use the ONNX file it was made from"),
    (4, b"TFL3", "a TensorFlow Lite model", "convert it with tf2onnx"),
    (0, b"\x89HDF", "an HDF5 file, perhaps a Keras model", "convert it with tf2onnx"),
    (0, b"ptrt", "a TensorRT engine", "use the ONNX file it was built from"),
    (0, b"ftrt", "a TensorRT engine", "use the ONNX file it was built from"),
    (0, b"vtrt", "a TensorRT-RTX engine", "use the ONNX file it was built from"),
    (8, b"{", "a safetensors file", "export the network with torch.onnx.export"),
    (0, b"\x1f\x8b", "a gzip file", "unpack it first"),
    (0, b"<!DOCTYPE", "a web page", "download the model itself"),
    (0, b"<html", "a web page", "download the model itself"),
    (0, b"<?xml", "an XML file, perhaps an OpenVINO model", "use the ONNX file it was converted from"),
)


def not_onnx(path: Path, start: bytes, reason: str) -> ModelError:
    """Return the error for a file that cannot be parsed: its format where its first bytes show one.

    Args:
        path: The file.
        start: Its first bytes, 64 at most.
        reason: What the parser says, for a file of no known format.
    """
    for offset, magic, kind, cure in _MAGICS:
        if start[offset:].startswith(magic):
            return ModelError(f"{path} is not an ONNX model but {kind}", slug="model-unreadable", cure=cure)
    return ModelError(
        f"{path} is not an ONNX model, or is damaged or truncated: {reason}",
        slug="model-unreadable",
        cure="compare its size with the original; export or download it again",
    )
