"""OpenVINO: options, the plan it really runs (precision, fusion map), and tensors in the types the ONNX declares.

Three habits of OpenVINO (seen with 2026.4.1) shape this module. Its binding looks numpy dtypes up by identity and
refuses some int64 arrays ("Unsupported data type: int64"), so tensors are built from bytes with the element type that
the model states. It runs with garbage when an input is not fed, so feeds are checked. And it hands bfloat16 out as a
float16 view, so outputs are reinterpreted by element type, never by numpy's.

Inputs, outputs and nodes are identified by friendly name: the ONNX front end gives a Parameter the name of the graph
input, a Result the name of the graph output with `RESULT_SUFFIX`, an operation the name of its ONNX node or, where its
value is a graph output, of that value. 2024.0 and 2025.1 give a Parameter the name of the output that an Identity makes
of it, and drop inputs that nothing uses; the host finds the model's inputs by all names of their tensors.
"""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from tensortriage_worker.adapter import AdapterError, AdapterFailure, Spec
from tensortriage_worker.converters import Library, imported
from tensortriage_worker.encoding import pack, unpack
from tensortriage_worker.exchange import Item

RESULT_SUFFIX = "/sink_port_"
_LIBRARY = Library(
    "openvino",
    "openvino",
    slug="openvino-missing",
    modules=("openvino",),
    distribution="openvino",
    oldest="2024",
    cure="pip install openvino",
)
_PRECISIONS = {"fp32": "f32", "bf16": "bf16", "fp16": "f16", "dynamic": "dynamic"}
_WORDS = {"f32": "fp32", "bf16": "bf16", "f16": "fp16", "dynamic": "dynamic"}
_NEEDS = {"bf16": "BF16", "fp16": "FP16"}
_HINTS = {
    "performance": "PERFORMANCE_HINT",
    "execution": "EXECUTION_MODE_HINT",
    "requests": "PERFORMANCE_HINT_NUM_REQUESTS",
}
_NOT_KERNELS = ("Input", "Output", "Const")
# OpenVINO's names of element types: label, and bits per element if packed (low bits first, as ONNX packs).
_LABELS = {
    "boolean": ("bool", 0), "f32": ("float32", 0), "f16": ("float16", 0), "bf16": ("bfloat16", 0),
    "f64": ("float64", 0),
    "i8": ("int8", 0), "i16": ("int16", 0), "i32": ("int32", 0), "i64": ("int64", 0), "u8": ("uint8", 0),
    "u16": ("uint16", 0), "u32": ("uint32", 0), "u64": ("uint64", 0), "f8e4m3": ("float8_e4m3fn", 0),
    "f8e5m2": ("float8_e5m2", 0), "f8e8m0": ("float8_e8m0fnu", 0), "i4": ("int4", 4), "u4": ("uint4", 4),
    "f4e2m1": ("float4_e2m1fn", 4), "string": ("string", 0),
}  # fmt: skip


def probe(options: Mapping[str, str]) -> Dict[str, Any]:
    """Return version, name of the device, and the precision word that these options make it compute in."""
    (openvino,) = imported(_LIBRARY)
    core = openvino.Core()
    device = _device(core, options)
    config = _config(core, device, options)
    if config:
        core.set_property(device, config)
    return {
        "version": openvino.get_version(),
        "device": str(core.get_property(device, "FULL_DEVICE_NAME")).strip(),
        "precision": _precision_word(core.get_property(device, "INFERENCE_PRECISION_HINT")),
    }


def compile(model: Path, options: Mapping[str, str]) -> "OpenVinoSession":
    """Build an ONNX file for a device; options as in `tensortriage_engines.openvino.engine`, already checked there.

    Raises:
        AdapterError: When OpenVINO is not installed, has no such device, or does not read or build the model.
    """
    (openvino,) = imported(_LIBRARY)
    core = openvino.Core()
    device = _device(core, options)
    config = _config(core, device, options)
    try:
        compiled = core.compile_model(_given(core, options) or core.read_model(str(model)), device, config)
        return OpenVinoSession(openvino, compiled, json.loads(options.get("names", "[]")))
    except RuntimeError as error:
        raise AdapterError(AdapterFailure.BUILD, plain_words(str(error))) from error


def _given(core: Any, options: Mapping[str, str]) -> Any:
    """Return the model of a given file; None where none is given.

    Raises:
        AdapterError: When this release does not read it.
    """
    if "file" not in options:
        return None
    try:
        return core.read_model(options["file"], options["weights"])
    except RuntimeError as error:
        message = "this release of OpenVINO does not read {}: {}".format(options["file"], plain_words(str(error)))
        cure = "use the release that wrote it, or convert the model with this one; operators of extensions are not run"
        raise AdapterError(AdapterFailure.USAGE, message, "engine-option-file", cure) from error


class OpenVinoSession:
    """A compiled model; see `AdapterSession`."""

    def __init__(self, openvino: Any, compiled: Any, names: Sequence[Sequence[str]] = ()) -> None:
        self._openvino = openvino
        self._compiled = compiled
        self._request = compiled.create_infer_request()
        own = [[_name(port) for port in side] for side in (compiled.inputs, compiled.outputs)]
        self._names = names or own
        self.inputs = [_input_spec(port) for port in compiled.inputs]  # type: Optional[List[Spec]]
        self.outputs = [_spec(port) for port in compiled.outputs]  # type: Optional[List[Spec]]
        for rows, called in zip((self.inputs, self.outputs), self._names):  # noqa: B905 - Python 3.8
            for row, name in zip(rows, called):  # noqa: B905
                row["name"] = name
        precision = compiled.get_property("INFERENCE_PRECISION_HINT")
        self.info = {"precision": _precision_word(precision)}  # type: Dict[str, Any]

    def run(self, feed: Mapping[str, Item]) -> Iterator[Item]:
        """Run once; the outputs are views of memory that the next run overwrites.

        Raises:
            AdapterError: When OpenVINO refuses the feed or fails.
        """
        kept = []  # type: List[np.ndarray]  # tensors do not keep the memory they are built on alive
        try:
            for index, port in enumerate(self._compiled.inputs):
                self._request.set_input_tensor(index, self._tensor(port, self._names[0][index], feed, kept))
            self._request.infer()
        except RuntimeError as error:
            raise AdapterError(AdapterFailure.RUN, plain_words(str(error))) from error
        return self._results()

    def _results(self) -> Iterator[Item]:
        for index, port in enumerate(self._compiled.outputs):
            tensor = self._request.get_output_tensor(index)
            (label, bits), name = _label(port), self._names[1][index]
            shape = tuple(tensor.shape)
            if label == "string":
                yield Item(name, np.asarray(tensor.str_data, dtype=object).reshape(shape), label)
            elif bits:
                items = unpack(tensor.data.reshape(-1).view(np.uint8), bits, math.prod(shape), signed=label == "int4")
                yield Item(name, items.reshape(shape), label)
            else:
                data = tensor.data
                raw = data.view("u{}".format(data.itemsize)) if label not in _NATIVE else data
                yield Item(name, raw.reshape(shape), label)

    def plan(self) -> Optional[List[Dict[str, Any]]]:
        """Return the executed nodes of the runtime model in execution order."""
        rows = []  # type: List[Tuple[int, Dict[str, Any]]]
        for node in self._compiled.get_runtime_model().get_ops():
            info = {key: value.astype(str) for key, value in node.get_rt_info().items()}
            if info.get("layerType") in _NOT_KERNELS:
                continue
            region = {
                "name": node.get_friendly_name(),
                "nodes": [name for name in info.get("originalLayersNames", "").split(",") if name],
                "kind": info.get("layerType", ""),
                "precision": info.get("runtimePrecision", ""),
                "implementation": info.get("primitiveType", ""),
            }
            rows.append((int(info.get("execOrder", "0")), region))
        return [region for _, region in sorted(rows, key=lambda row: row[0])]

    def close(self) -> None:
        """Release the engine's memory."""
        self._request = self._compiled = None

    def _tensor(self, port: Any, name: str, feed: Mapping[str, Item], kept: List[np.ndarray]) -> Any:
        label, bits = _label(port)
        item = feed.get(name)
        if item is None or item.label != label:
            told = "is not fed" if item is None else "is {}, fed as {}".format(label, item.label)
            raise AdapterError(AdapterFailure.USAGE, "input '{}' {}".format(name, told), "feed-mismatch")
        shape = self._openvino.Shape(list(item.array.shape))
        if label == "string":
            return self._openvino.Tensor(np.array(item.array.tolist(), dtype=str).reshape(item.array.shape))
        if item.array.size == 0:
            return self._openvino.Tensor(port.element_type, shape)
        flat = np.ascontiguousarray(item.array).reshape(-1).view(np.uint8)
        kept.append(pack(flat, bits) if bits else flat)
        return self._openvino.Tensor(kept[-1], shape, port.element_type)


_NATIVE = frozenset(label for label, _ in _LABELS.values() if hasattr(np, label) or label == "bool")


def plain_words(text: str) -> str:
    """Return an OpenVINO error without the source lines it wraps around its reason."""
    lines = [line.strip() for line in text.splitlines()]
    kept = [line for line in lines if line and not re.match(r"Exception from |Check '.*' failed at ", line)]
    return " ".join(kept or lines).strip().rstrip(".")


def _precision_word(element_type: Any) -> str:
    name = str(element_type.get_type_name())
    return _WORDS.get(name, name)


def _device(core: Any, options: Mapping[str, str]) -> str:
    device = options.get("device", "CPU").upper()
    available = list(core.available_devices)
    if not any(name == device or name.startswith(device + ".") for name in available):
        raise AdapterError(
            AdapterFailure.MISSING,
            "OpenVINO finds no device {} here".format(device),
            "device-missing",
            "use one of: " + ", ".join(available),
        )
    wanted = _NEEDS.get(options.get("precision", ""))
    if wanted and wanted not in core.get_property(device, "OPTIMIZATION_CAPABILITIES"):
        raise AdapterError(
            AdapterFailure.MISSING,
            "{} cannot compute in {}".format(device, options["precision"]),
            "precision-unsupported",
            "use precision=fp32, a machine that has it, or emulate:precision={}".format(options["precision"]),
        )
    return device


def _config(core: Any, device: str, options: Mapping[str, str]) -> Dict[str, str]:
    config = {}  # type: Dict[str, str]
    for key, value in options.items():
        family, _, rest = key.partition(".")
        if family == "config":
            config[rest] = value
        elif family == "hint":
            config[_HINTS[rest]] = value.upper()
    precision = _PRECISIONS.get(options.get("precision", "auto"))
    if precision:
        config["INFERENCE_PRECISION_HINT"] = precision
    if "threads" in options:
        config["INFERENCE_NUM_THREADS"] = options["threads"]
    known = core.get_property(device, "SUPPORTED_PROPERTIES")
    for key in config:
        if key not in known:
            raise AdapterError(
                AdapterFailure.USAGE,
                "{} has no property {}".format(device, key),
                "engine-option-value",
                "use one of: " + ", ".join(sorted(known)),
            )
    return config


def _name(port: Any) -> str:
    node = port.get_node()
    name = str(node.get_friendly_name())
    return name.rsplit(RESULT_SUFFIX, 1)[0] if node.get_type_name() == "Result" else name


def _label(port: Any) -> Tuple[str, int]:
    word = port.get_element_type().get_type_name()
    if word not in _LABELS:
        raise AdapterError(AdapterFailure.BUILD, "'{}' has type {}".format(_name(port), word), "openvino-type-unknown")
    return _LABELS[word]


def _spec(port: Any) -> Spec:
    shape = port.get_partial_shape()
    dimensions = None  # type: Optional[List[Optional[int]]]
    if not shape.rank.is_dynamic:
        dimensions = [None if dimension.is_dynamic else dimension.get_length() for dimension in shape]
    return {"name": _name(port), "dtype": _label(port)[0], "shape": dimensions}


def _input_spec(port: Any) -> Spec:
    return dict(_spec(port), names=sorted(port.get_names()))
