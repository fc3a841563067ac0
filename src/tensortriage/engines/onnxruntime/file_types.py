"""The narrow format of a precompiled or optimized file, as far as the file shows it.

Files for the CPU hold few fp16 values, since most kernels there compute in float32: conversions to fp16 and constants
remain. Any of them shows that results are rounded to it. The part that a provider compiled is opaque (EPContext); then
only inputs and outputs show it.
"""

import functools
from collections.abc import Iterator
from pathlib import Path

from tensortriage.errors import ModelError
from tensortriage.values.dtype import Precision

_ORT = ".ort"
_NARROW = {10: Precision.FP16, 16: Precision.BF16}
"""By the number that ONNX, and so ONNX Runtime's own format, has for an element type."""


def file_precision(path: str) -> Precision | None:
    """Return fp16 or bf16 where a file holds such numbers; None where it holds none or cannot be read."""
    file = Path(path)
    try:
        state = file.stat()
    except OSError:
        return None
    return _read(file.absolute(), state.st_mtime_ns, state.st_size)


@functools.lru_cache(maxsize=16)
def _read(file: Path, changed: int, size: int) -> Precision | None:
    del changed, size  # they identify one state of the file
    kinds = {*(_kinds_of_ort(file) if file.suffix == _ORT else _kinds_of_onnx(file))}
    return next((precision for kind, precision in _NARROW.items() if kind in kinds), None)


def _kinds_of_onnx(file: Path) -> Iterator[int]:
    """Yield the element types of inputs, outputs, constants and conversions."""
    from tensortriage.model.model import Model

    try:
        graph = Model.load(file).ir.graph
    except ModelError:
        return
    for value in (*graph.inputs, *graph.outputs, *graph.initializers.values()):
        if value.dtype is not None:
            yield value.dtype.value
    for node in graph:
        if node.op_type == "Cast" and "to" in node.attributes:
            yield node.attributes["to"].as_int()


def _kinds_of_ort(file: Path) -> Iterator[int]:
    """Yield the same of a file in ONNX Runtime's own format, which is a flatbuffer."""
    try:
        from onnxruntime.tools.ort_format_model.ort_flatbuffers_py.fbs import InferenceSession, TypeInfoValue
        from onnxruntime.tools.ort_format_model.ort_flatbuffers_py.fbs.TensorTypeAndShape import TensorTypeAndShape
    except ImportError:  # several packages of ONNX Runtime come without their tools
        return
    content = file.read_bytes()
    if content[4:8] != b"ORTM":
        return
    graph = InferenceSession.InferenceSession.GetRootAs(content, 0).Model().Graph()
    for index in range(graph.InitializersLength()):
        yield graph.Initializers(index).DataType()
    for index in range(graph.NodeArgsLength()):
        type_name = graph.NodeArgs(index).Type()
        if type_name is not None and type_name.ValueType() == TypeInfoValue.TypeInfoValue.tensor_type:
            tensor = TensorTypeAndShape()
            tensor.Init(type_name.Value().Bytes, type_name.Value().Pos)
            yield tensor.ElemType()
