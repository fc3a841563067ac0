"""ncnn: pnnx converts the model as part of the build, for the fed shapes, and ncnn runs the result.

Seen with ncnn 1.0.20250503 to 1.0.20261020 and pnnx of the same days: the names of values are lost, inputs are in0,
in1, ... and outputs out0, out1, ...; arrays have four axes at most and, next to them, a batch, which is 1 before
1.0.20261020; numbers are float32, whole numbers are indices of embeddings alone. Which axis is the batch, or was left
out, stands in the script that pnnx writes for its user.
"""

from __future__ import annotations

import difflib
import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple

import numpy as np

from tensortriage_worker.adapter import AdapterError, AdapterFailure
from tensortriage_worker.converters import Library, content_of, convert, imported, missing, telling
from tensortriage_worker.declared import DeclaredSession, as_declared
from tensortriage_worker.exchange import Item
from tensortriage_worker.heard import hearing

_LIBRARY = Library("ncnn", "ncnn", slug="ncnn-missing", modules=("ncnn",), distribution="ncnn", oldest="1.0.20250503")
_INPUT = re.compile(r'ex\.input\("(\w+)", ncnn\.Mat\(\w+(?:\.squeeze\((\d+)\))?\.numpy\(\)(?:, batch_index=(\d+))?\)')
_OUTPUT = re.compile(
    r"from_numpy\((?:np\.array\((?=\w+\)))?(\w+)(?:\.numpy\((?:batch_index=(\d+))?)?\)\)(?:\.unsqueeze\((\d+)\))?"
)
_TYPES = {
    "float32": "f32", "float64": "f64", "float16": "f16", "int64": "i64", "int32": "i32", "int16": "i16", "int8": "i8",
    "uint8": "u8", "bool": "bool",
}  # fmt: skip
_FP16_WEIGHTS = 0x01306B47
"""Tag in front of weights stored in fp16, as pnnx does by default."""
_FP16 = ("use_fp16_packed", "use_fp16_storage", "use_fp16_arithmetic")
_BF16 = ("use_bf16_packed", "use_bf16_storage")
_WINOGRAD = ("use_winograd_convolution", "use_sgemm_convolution")
_ERRORS = ("error", "not supported", "unsupported", "failed", "ignore", "fallback", "not implemented")
_SAID_LINES = 4


def probe(options: Mapping[str, str]) -> Dict[str, Any]:
    """Return the version of the runtime, and see that the converter is there."""
    _converter()
    return {"version": imported(_LIBRARY)[0].__version__}


def compile(model: Path, options: Mapping[str, str]) -> "LoadedNetwork":
    """Convert an ONNX file unless option ``converted`` names an earlier conversion, and load it.

    With options ``file`` and ``weights``, a .param and a .bin, these run; the conversion gives inputs and outputs.
    """
    (runtime,) = imported(_LIBRARY)
    packed, info = content_of(options, lambda: _converted(model, options))
    return LoadedNetwork(runtime, packed, info, options)


class LoadedNetwork(DeclaredSession):
    """A loaded network."""

    def __init__(self, runtime: Any, packed: bytes, info: Dict[str, Any], options: Mapping[str, str]) -> None:
        super().__init__(json.loads(options["declared"]), info, packed)
        end = 8 + int.from_bytes(packed[:8], "little")
        told = json.loads(packed[8:end])
        self._runtime, self._options = runtime, options
        self._param, self._weights = told["param"], packed[end:]
        self._called = None  # type: Optional[Dict[str, str]]
        if options.get("file"):
            self._param = Path(options["file"]).read_text(encoding="utf-8", errors="replace")
            self._weights = Path(options["weights"]).read_bytes()
            words = np.frombuffer(self._weights, "<u4", len(self._weights) // 4)
            self._called = _renamed(told["param"], self._param)
            self.info["weights"] = "fp16" if bool(np.any(words == _FP16_WEIGHTS)) else ""
        self._fed, self._given = told["inputs"], told["outputs"]
        self._network = self._loaded(light=True)

    def run(self, feed: Mapping[str, Item]) -> Iterable[Item]:
        """Run once.

        Raises:
            AdapterError: When the converted network lacks an output of the model, or does not run.
        """
        extractor = self._started(self._network, feed)
        found = []
        for number, spec in enumerate(self.outputs or ()):
            row = self._given.get("out{}".format(number))
            if row is None:
                message = "the converted network has no output out{}, for '{}'".format(number, spec["name"])
                raise AdapterError(AdapterFailure.RUN, message)
            array = _read(extractor, self._own("out{}".format(number)), row["batch"])
            if row["axis"] is not None:
                array = np.expand_dims(array, row["axis"])
            found.append(as_declared(_with_ones(array, spec["shape"]), spec, ("float64", "float16")))
        return found

    def plan(self) -> Optional[List[Dict[str, Any]]]:
        """Return the layers in order; they name blobs; only the host knows their values."""
        blobs = [blob.name for blob in self._network.blobs()]
        if self._called is not None:
            converted = {theirs: name for name, theirs in self._called.items()}
            blobs = [converted.get(name, "") for name in blobs]
        return [
            {
                "name": layer.name,
                "nodes": [blobs[top] for top in layer.tops if blobs[top]],
                "kind": layer.type,
                "precision": "float32" if self._options["precision"] == "fp32" else "",
                "implementation": "",
            }
            for layer in self._network.layers()
            if layer.type not in ("Input", "MemoryData", "Split")
        ]

    def seen(self, feed: Mapping[str, Item], wanted: Tuple[str, ...]) -> Iterable[Item]:
        """Return the wanted blobs, all where none is named; names are those of the converted network."""
        network = self._loaded(light=False)
        extractor = self._started(network, feed)
        batched = any(row["batch"] is not None for row in [*self._fed.values(), *self._given.values()])
        for name in wanted or [blob.name for blob in network.blobs()]:
            if self._called is not None and name not in self._called:
                continue
            try:
                yield Item(name, _read(extractor, self._own(name), 0 if batched else None))
            except (AdapterError, RuntimeError):  # a layer that works in place leaves none
                continue

    def close(self) -> None:
        """Release the network."""
        self._network = None

    def _own(self, name: str) -> str:
        """Return the converted network's name of a blob."""
        return (self._called or {}).get(name, name)

    def _loaded(self, *, light: bool) -> Any:
        network = self._runtime.Net()
        options, precision = network.opt, self._options["precision"]
        options.use_vulkan_compute, options.lightmode = False, light
        options.num_threads = int(self._options.get("threads", "1"))
        for names, switched in ((_FP16, precision == "fp16"), (_BF16, precision == "bf16")):
            for name in names:
                if hasattr(options, name):  # 1.0.20250503 has no use_bf16_packed
                    setattr(options, name, switched)
        if self._options["kernels"] == "plain":
            for name in _WINOGRAD:
                setattr(options, name, False)
        with tempfile.TemporaryDirectory(prefix="triage-ncnn-") as folder:
            param, weights = Path(folder) / "m.param", Path(folder) / "m.bin"
            param.write_text(self._param, encoding="utf-8")
            weights.write_bytes(self._weights)
            with hearing() as printed:
                refused = network.load_param(str(param)) or network.load_model(str(weights))
            if refused:
                said = _said(printed)
                message = "the runtime refuses the converted network: {}".format(" | ".join(said) or "no reason given")
                raise AdapterError(AdapterFailure.BUILD, message)
        return network

    def _started(self, network: Any, feed: Mapping[str, Item]) -> Any:
        extractor = network.create_extractor()
        for number, spec in enumerate(self.inputs or ()):
            name = "in{}".format(number)
            if name not in self._fed:
                continue  # the converter has no use for it
            array, row = feed[spec["name"]].array, self._fed[name]
            array = np.ascontiguousarray(array, np.int32 if array.dtype.kind in "iub" else np.float32)
            if row["axis"] is not None:
                array = array.squeeze(row["axis"])
            words = {} if row["batch"] is None else {"batch_index": row["batch"]}  # which releases before lack
            if extractor.input(self._own(name), self._runtime.Mat(array, **words).clone()):
                raise AdapterError(AdapterFailure.RUN, "ncnn refuses '{}'".format(spec["name"]))
        return extractor


def _read(extractor: Any, name: str, batch: Optional[int]) -> np.ndarray:
    code, mat = extractor.extract(name)
    if code or mat.empty():
        raise AdapterError(AdapterFailure.RUN, "ncnn ends with {} where '{}' is made".format(code, name))
    return np.array(mat.numpy() if batch is None else mat.numpy(batch_index=batch))


def _renamed(converted: str, given: str) -> Dict[str, str]:
    """Return a given network's names of the converted one's blobs, of similar layers in a common order.

    pnnx numbers blobs as it meets them: one of a PyTorch network has other numbers than one of its ONNX model.
    """
    sides = [_layers(text) for text in (converted, given)]
    kinds = [[kind for kind, _ in side] for side in sides]
    called = {}  # type: Dict[str, str]
    for one, other, length in difflib.SequenceMatcher(None, kinds[0], kinds[1], autojunk=False).get_matching_blocks():
        for (_, mine), (_, theirs) in zip(sides[0][one : one + length], sides[1][other : other + length]):  # noqa: B905
            called.update(zip(mine, theirs))  # noqa: B905 - Python 3.8
    return called


def _layers(param: str) -> List[Tuple[str, List[str]]]:
    """Return kind and parameters of each layer of a .param file, and the names of its results."""
    found = []
    for line in param.splitlines()[2:]:
        kind, _, sources, results, *rest = line.split()
        end = int(sources) + int(results)
        found.append((" ".join([kind, sources, results, *rest[end:]]), rest[int(sources) : end]))
    return found


def _with_ones(array: np.ndarray, shape: Optional[List[Any]]) -> np.ndarray:
    """Return an array in a declared shape where it lacks axes of one only, as a global pooling's result does."""
    sizes = [size for size in shape or () if size != 1]
    return array.reshape(shape) if shape and sizes == [size for size in array.shape if size != 1] else array


def _converted(model: Path, options: Mapping[str, str]) -> bytes:
    declared = json.loads(options["declared"])
    shapes = []
    for spec in declared["inputs"]:
        kind = _TYPES.get(str(spec["dtype"]))
        if kind is None:
            raise AdapterError(AdapterFailure.BUILD, "pnnx supports no inputs of type {}".format(spec["dtype"]))
        shapes.append("[{}]{}".format(",".join(map(str, spec["shape"])), kind))
    for spec in declared["outputs"]:
        if not str(spec["dtype"]).startswith("float"):
            message = "ncnn computes in floating point, and output '{}' is {}".format(spec["name"], spec["dtype"])
            raise AdapterError(AdapterFailure.BUILD, message)
    with tempfile.TemporaryDirectory(prefix="triage-ncnn-") as folder:
        files = {name: Path(folder) / name for name in ("ncnnparam", "ncnnbin", "ncnnpy", "pnnxparam", "pnnxbin",
                                                        "pnnxpy", "pnnxonnx")}  # fmt: skip
        words = ["{}={}".format(name, path) for name, path in files.items()]
        words += ["fp16={}".format(int(options["precision"] == "fp16"))]
        words += ["inputshape={}".format(",".join(shapes))] if shapes else []
        onnx_file = Path(folder) / "m.onnx"  # files without an option of their own are written next to the model
        onnx_file.write_bytes(model.read_bytes())
        made = [files[name] for name in ("ncnnparam", "ncnnbin", "ncnnpy")]
        convert("the converter pnnx", [str(_converter()), str(onnx_file), *words], Path(folder), made, _said)
        script = files["ncnnpy"].read_text(encoding="utf-8")
        param = files["ncnnparam"].read_text(encoding="utf-8")
        fed = _places(_INPUT, script, (2, 3))
        _check_left_out(fed, declared["inputs"])
        places = {"param": param, "inputs": fed, "outputs": _places(_OUTPUT, script, (3, 2))}
        header = json.dumps(places).encode("ascii")
        return len(header).to_bytes(8, "little") + header + files["ncnnbin"].read_bytes()


def _places(pattern: "re.Pattern[str]", script: str, groups: Tuple[int, int]) -> Dict[str, Dict[str, Optional[int]]]:
    """Return by name which axis is left out, and which is the batch."""
    found = {}  # type: Dict[str, Dict[str, Optional[int]]]
    for match in pattern.finditer(script):
        axis, batch = (None if match[group] is None else int(match[group]) for group in groups)
        found[match[1]] = {"axis": axis, "batch": batch}
    return found


def _check_left_out(rows: Mapping[str, Mapping[str, Optional[int]]], specs: List[Mapping[str, Any]]) -> None:
    """Refuse a batch that the converter left out although it is more than one, as it does before 20261020."""
    for number, spec in enumerate(specs):
        axis = rows.get("in{}".format(number), {}).get("axis")
        if axis is not None and spec["shape"] and spec["shape"][axis] != 1:
            message = "this release of pnnx takes a batch of 1, and '{}' has {}".format(
                spec["name"], spec["shape"][axis]
            )
            raise AdapterError(AdapterFailure.BUILD, message)


def _said(lines: List[str]) -> List[str]:
    return telling([line for line in lines if "Unknown CPU" not in line], _ERRORS)[-_SAID_LINES:]


def _converter() -> Path:
    found = [Path(folder) / "pnnx" / "pnnx" for folder in sys.path]
    for path in found:
        if path.is_file():
            return path
    raise missing("ncnn", "pnnx is not installed there", slug="converter-missing")
