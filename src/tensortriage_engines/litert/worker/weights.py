"""Weights of a .tflite file: their format, and the real numbers of stored integers."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Tuple

import numpy as np

_WIDENS = "DEQUANTIZE"


def weights_of(interpreter: Any) -> str:
    """Return the narrowest format in which a file keeps a weight, in this package's word; empty for float32."""
    rows = _constants(interpreter)
    if any(map(_is_rounded, rows)):
        return "int8"  # with one scale, or one a channel
    return "fp16" if any(np.dtype(row["dtype"]) == np.float16 and len(row["shape"]) > 1 for row in rows) else ""


def numbers_of(interpreter: Any) -> Tuple[List[Optional[Tuple[np.ndarray, np.ndarray]]], Optional[List[int]]]:
    """Return the weights that are integers, and the places of those that are met by integers.

    Weights are met by integers that no operator makes floating-point numbers of before they are used. See
    `tensortriage_worker.declared.DeclaredSession.weights`.
    """
    rows = list(filter(_is_rounded, _constants(interpreter)))
    operators = _operators(interpreter)
    made = {index for op in operators for index in op["outputs"]}
    everything = any(row["index"] in made and scale_of(row) for row in interpreter.get_tensor_details())
    widened = {index for op in operators if op["op_name"] == _WIDENS for index in op["inputs"]}
    narrow = [number for number, row in enumerate(rows) if row["index"] not in widened]
    return [_numbers(interpreter, row) for row in rows], None if everything else narrow


def scale_of(row: Mapping[str, Any]) -> Optional[Tuple[float, int]]:
    """Return scale and zero point of a tensor of quantized integers; None for any other."""
    scale, zero_point = row["quantization"]
    return (float(scale), int(zero_point)) if scale and np.dtype(row["dtype"]).kind in "iu" else None


def _operators(interpreter: Any) -> List[Dict[str, Any]]:
    tell = getattr(interpreter, "_get_ops_details", list)  # type: Any # there is no public way
    return [op for op in tell() if op["op_name"] != "DELEGATE"]


def _constants(interpreter: Any) -> List[Dict[str, Any]]:
    """Return the tensors that operators read and none makes; without that information, all that are no inputs."""
    operators, rows = _operators(interpreter), interpreter.get_tensor_details()
    read = {index for op in operators for index in op["inputs"]} or {row["index"] for row in rows}
    made = {index for op in operators for index in op["outputs"]}
    fed = {row["index"] for row in interpreter.get_input_details()}
    return [row for row in rows if row["index"] in read - made - fed]


def _is_rounded(row: Mapping[str, Any]) -> bool:
    """Return whether a tensor holds real numbers as integers; a single one is exact in a scale of its own."""
    scaled = np.dtype(row["dtype"]).kind in "iu" and len(row["quantization_parameters"]["scales"]) > 0
    return scaled and int(np.prod(row["shape"])) > 1


def _numbers(interpreter: Any, row: Mapping[str, Any]) -> Optional[Tuple[np.ndarray, np.ndarray]]:
    """Return the real numbers of a quantized constant, and their step; None where they cannot be read."""
    parameters = row["quantization_parameters"]
    try:
        whole = np.asarray(interpreter.get_tensor(row["index"])).astype(np.float64)
    except ValueError:
        return None
    shape = [1] * whole.ndim
    if len(parameters["scales"]) > 1:
        shape[parameters["quantized_dimension"]] = -1
    step, zero = (np.asarray(parameters[key], np.float64).reshape(shape) for key in ("scales", "zero_points"))
    return (whole - zero) * step, step
