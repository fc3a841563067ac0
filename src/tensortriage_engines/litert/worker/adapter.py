"""LiteRT (TensorFlow Lite): onnx2tf converts the model as part of the build, ai_edge_litert runs the file.

Seen with onnx2tf 2.6.9 and ai_edge_litert 2.1.2: inputs and outputs keep their order, but not always their names; a
scalar becomes one element of rank 1; int64 may become int32; the results of convolutions and poolings leave the file
with their channels last. So both are known here by place, and results get the shape, the layout and the type of the
model, which the host passes. The converter's report names the value of the model that each tensor holds; a name that
begins with a slash has ``wa`` in front of it there.
"""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple

import numpy as np

from tensortriage_engines.litert.worker.weights import numbers_of, scale_of, weights_of
from tensortriage_worker.adapter import AdapterError, AdapterFailure
from tensortriage_worker.converters import Library, content_of, convert, imported, missing, one_line, telling
from tensortriage_worker.declared import DeclaredSession, as_declared
from tensortriage_worker.exchange import Item

FILES = {"fp32": "float32", "fp16": "float16", "int8": "dynamic_range_quant"}
"""The converter's file name for a format."""
_SWITCHES = {"int8": ["--output_dynamic_range_quantized_tflite"]}
_REPORT = "_tensor_correspondence_report.json"
_OBSERVED = ("direct", "rewritten")
_CHANNELS_LAST = frozenset({
    "CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV", "MAX_POOL_2D", "AVERAGE_POOL_2D", "L2_POOL_2D", "CONV_3D",
    "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR", "SPACE_TO_DEPTH", "DEPTH_TO_SPACE", "LOCAL_RESPONSE_NORMALIZATION",
})  # fmt: skip
_LAYOUTS = frozenset({"TRANSPOSE", "RESHAPE", "FULLY_CONNECTED", "BATCH_MATMUL", "GATHER", "CONCATENATION", "PACK"})
"""Operators behind which channels are where the converter put them on purpose."""
_LIBRARY = Library(
    "litert",
    "LiteRT",
    slug="litert-missing",
    modules=("ai_edge_litert.interpreter",),
    distribution="ai-edge-litert",
    oldest="1.4",
)


def probe(options: Mapping[str, str]) -> Dict[str, Any]:
    """Return the versions of runtime and converter.

    Raises:
        AdapterError: When the runtime is not installed, or the converter is not and no converted file is given.
    """
    imported(_LIBRARY)
    import importlib.metadata as metadata

    found = {}
    for key, package in (("version", "ai-edge-litert"), ("converter", "onnx2tf")):
        try:
            found[key] = metadata.version(package)
        except metadata.PackageNotFoundError:
            if key == "converter" and not options.get("file"):
                raise missing("litert", "onnx2tf is not installed there", slug="converter-missing") from None
    return found


def compile(model: Path, options: Mapping[str, str]) -> "LiteRtFile":
    """Convert an ONNX file, unless option ``file`` names a converted one, and load it."""
    (module,) = imported(_LIBRARY)
    declared = json.loads(options["declared"])
    packed, info, report = b"", {}, {}  # type: Tuple[bytes, Dict[str, Any], Dict[str, Any]]
    if not options.get("file"):
        packed, info = content_of(options, lambda: _converted(model, options, declared["inputs"]))
        content, report = _unpacked(packed)
        return LiteRtFile(_loaded(module, content, options), declared, info, report, packed)
    interpreter = _loaded(module, Path(options["file"]).read_bytes(), options)
    held = {
        what: [_told(row) for row in rows]
        for what, rows in (("inputs", interpreter.get_input_details()), ("outputs", _results(interpreter)))
    }
    if options.get("observe") == "preserved":
        kept = [row["shape"] for row in held["inputs"]] == [spec["shape"] for spec in declared["inputs"]]
        with contextlib.suppress(AdapterError):  # where the model cannot be converted, the file runs all the same
            packed, info = content_of(options, lambda: _converted(model, options, declared["inputs"] if kept else []))
            content, records = _unpacked(packed)
            report = _of_file(records, interpreter, _loaded(module, content, options))
    return LiteRtFile(interpreter, held, dict(info, weights=weights_of(interpreter)), report, packed, given=True)


class LiteRtFile(DeclaredSession):
    """A loaded file."""

    def __init__(
        self,
        interpreter: Any,
        declared: Mapping[str, Any],
        info: Dict[str, Any],
        report: Mapping[str, Any],
        packed: bytes = b"",
        *,
        given: bool = False,
    ) -> None:
        super().__init__(declared, info, packed)
        self._interpreter = interpreter
        self._report = report
        self._makers = None  # type: Optional[Dict[int, Dict[str, Any]]]
        self._fed = _matched(interpreter.get_input_details(), declared["inputs"], "inputs", all_needed=False)
        self._given = _matched(_results(interpreter), declared["outputs"], "outputs", all_needed=True)
        self._moved = {s["name"] for s in declared["outputs"] if not given and self._channels_are_last(s)}

    def run(self, feed: Mapping[str, Item]) -> Iterable[Item]:
        """Run once."""
        self._invoke(feed)
        found = []
        for spec in self.outputs or ():
            row = self._given[spec["name"]]
            array = _real(self._interpreter.get_tensor(row["index"]), row)
            if spec["name"] in self._moved:
                array = np.moveaxis(array, -1, 1)
            found.append(as_declared(array, spec, ("int64", "bool")))
        return found

    def plan(self) -> Optional[List[Dict[str, Any]]]:
        """Return the operators in order; the model's values that each makes identify nodes."""
        names = {row["index"]: row for row in self._interpreter.get_tensor_details()}
        values = {}  # type: Dict[str, List[str]]
        for record in self._report.get("records", ()):
            if record["exists_in_final_model"] and record["status"] in _OBSERVED:
                values.setdefault(record["resolved_tflite_tensor_name"], []).append(record["onnx_output_name"])
        rows = []
        for number, op in enumerate(self._operators()):
            made = [names[index] for index in op["outputs"] if index in names]
            rows.append(
                {
                    "name": "{} {}".format(number, made[0]["name"] if made else op["op_name"]),
                    "nodes": [value for row in made for value in values.get(row["name"], ())],
                    "kind": op["op_name"],
                    "precision": np.dtype(made[0]["dtype"]).name if made else "",
                    "implementation": "XNNPACK" if op["op_name"] == "DELEGATE" else "",
                }
            )
        return rows

    def weights(self) -> Tuple[List[Optional[Tuple[np.ndarray, np.ndarray]]], Optional[List[int]]]:
        """Return the weights that are integers; see `numbers_of`."""
        return numbers_of(self._interpreter)

    def answer(
        self, question: str, feed: Mapping[str, Item], arguments: Mapping[str, Any], spill: Any
    ) -> Tuple[Dict[str, Any], List[Item]]:
        """Answer ``records`` with the tensor that holds each value; else see `DeclaredSession.answer`.

        Hand over by place all ``tensors`` of real numbers, and inputs, and the operands of each.
        """
        if question == "tensors":
            return self._tensors(feed, spill)
        if question != "records":
            return super().answer(question, feed, arguments, spill)
        kept = ("onnx_output_name", "resolved_tflite_tensor_name", "status")
        rows = [row for row in self._report.get("records", ()) if row["exists_in_final_model"]]
        tensors = {row["name"]: row["index"] for row in self._interpreter.get_tensor_details()}
        fed = {row["index"]: name for name, row in self._fed.items()}
        records = []
        for row in rows:
            op, source = self._layout_of(tensors.get(row["resolved_tflite_tensor_name"], -1))
            last = bool(row["assume_channel_last_layout"]) or op in _CHANNELS_LAST
            records.append({**{key: row[key] for key in kept}, "channels_last": last, "input": fed.get(source, "")})
        return {"records": records}, []

    def _tensors(self, feed: Mapping[str, Item], spill: Any) -> Tuple[Dict[str, Any], List[Item]]:
        self._invoke(feed)
        rows = {row["index"]: row for row in self._interpreter.get_tensor_details()}
        made = {index: op for op in self._operators() if op["op_name"] != "DELEGATE" for index in op["outputs"]}
        fed = {row["index"] for row in self._fed.values()}
        for index in [*fed, *made]:
            with contextlib.suppress(KeyError, ValueError):  # its memory was not preserved
                array = _real(self._interpreter.get_tensor(index), rows[index])
                if array.dtype.kind == "f" or index in fed:
                    spill.add(Item(str(index), array))
        made_of = {
            str(index): [str(source) for source in op["inputs"] if source in made or source in fed]
            for index, op in made.items()
        }
        return {"made_of": made_of}, []

    def seen(self, feed: Mapping[str, Item], wanted: Tuple[str, ...]) -> Iterable[Item]:
        """Return the wanted tensors whose memory was preserved."""
        tensors = {row["name"]: row for row in self._interpreter.get_tensor_details()}
        self._invoke(feed)
        for name in wanted:
            try:
                row = tensors[name]
                yield Item(name, _real(self._interpreter.get_tensor(row["index"]), row))
            except (KeyError, ValueError):  # its memory was not preserved, or a delegate never had it
                continue

    def close(self) -> None:
        """Release the interpreter."""
        self._interpreter = None

    def _channels_are_last(self, spec: Mapping[str, Any]) -> bool:
        """Return whether an output leaves the file in another layout: by its shape, else by its producer."""
        row, declared = self._given[spec["name"]], spec["shape"]
        found = [int(size) for size in row["shape"]]
        if declared is None or len(found) != len(declared) or len(found) < 3:
            return False
        if all(isinstance(size, int) for size in declared):
            moved = [declared[0], *declared[2:], declared[1]]
            if moved != declared:
                return bool(found == moved)
        return self._layout_of(row["index"])[0] in _CHANNELS_LAST

    def _layout_of(self, index: int) -> Tuple[str, int]:
        """Return the operator that a tensor has its layout from, or none and the tensor at which it begins."""
        if self._makers is None:
            kinds = [op for op in self._operators() if op["op_name"] != "DELEGATE"]
            self._makers = {made: op for op in kinds for made in op["outputs"]}
        while index in self._makers:
            op = self._makers[index]
            if op["op_name"] in _CHANNELS_LAST or op["op_name"] in _LAYOUTS:
                return str(op["op_name"]), index
            sources = [source for source in op["inputs"] if source >= 0]
            index = next((source for source in sources if source in self._makers), sources[0] if sources else -1)
        return "", index

    def _invoke(self, feed: Mapping[str, Item]) -> None:
        try:
            for name, row in self._fed.items():
                array = np.ascontiguousarray(feed[name].array).reshape(row["shape"])
                self._interpreter.set_tensor(row["index"], _stored(array, row))
            self._interpreter.invoke()
        except (RuntimeError, ValueError) as error:
            raise AdapterError(AdapterFailure.RUN, one_line(error)) from error

    def _operators(self) -> List[Dict[str, Any]]:
        tell = getattr(self._interpreter, "_get_ops_details", None)  # there is no public way
        return list(tell()) if callable(tell) else []


def _converted(model: Path, options: Mapping[str, str], inputs: List[Dict[str, Any]]) -> bytes:
    """Return the file that the converter makes, and its report, in one."""
    precision, names = options["precision"], [spec["name"] for spec in inputs]
    with tempfile.TemporaryDirectory(prefix="triage-litert-") as folder:
        command = [sys.executable, "-m", "onnx2tf", "-i", str(model), "-o", folder, "-n"]
        command += _SWITCHES.get(precision, []) + (["-kat", *names] if names else [])
        made = Path(folder) / "{}_{}.tflite".format(model.stem, FILES[precision])
        convert("the converter onnx2tf", command, Path(folder), [made], _said)
        content, report = made.read_bytes(), Path(folder) / (model.stem + _REPORT)
        records = json.dumps(json.loads(report.read_text()) if report.is_file() else {})
    return len(content).to_bytes(8, "little") + content + records.encode("ascii")


def _results(interpreter: Any) -> List[Dict[str, Any]]:
    """Return the outputs with their shapes after the run: files may declare others (seen: onnx2tf).

    Raises:
        AdapterError: When it does not run, in the runtime's words.
    """
    for fill in (0, 1):
        try:
            for row in interpreter.get_input_details():
                interpreter.set_tensor(row["index"], np.full(row["shape"], fill, row["dtype"]))
            interpreter.invoke()
            return list(interpreter.get_output_details())
        except (RuntimeError, ValueError) as error:
            reason = one_line(error)
    raise AdapterError(AdapterFailure.BUILD, "the runtime refuses the converted file: " + reason)


def _told(row: Mapping[str, Any]) -> Dict[str, Any]:
    """Return name, type and shape of a file's input or output; quantized ones take and give real numbers."""
    dtype = "float32" if scale_of(row) else np.dtype(row["dtype"]).name
    return {"name": row["name"], "dtype": dtype, "shape": [int(size) for size in row["shape"]]}


def _stored(array: np.ndarray, row: Mapping[str, Any]) -> np.ndarray:
    """Return numbers as a tensor of the file holds them."""
    scale, dtype = scale_of(row), np.dtype(row["dtype"])
    if scale is None or array.dtype.kind != "f":
        return array.astype(dtype)
    bounds = np.iinfo(dtype)
    steps = np.rint(array / scale[0]) + scale[1]  # type: np.ndarray
    return steps.clip(bounds.min, bounds.max).astype(dtype)


def _real(array: np.ndarray, row: Mapping[str, Any]) -> np.ndarray:
    """Return the numbers that a tensor of the file holds."""
    scale = scale_of(row)
    if scale is None:
        return array
    return np.asarray((array.astype(np.float32) - scale[1]) * np.float32(scale[0]))


def _unpacked(packed: bytes) -> Tuple[bytes, Dict[str, Any]]:
    end = 8 + int.from_bytes(packed[:8], "little")
    return packed[8:end], json.loads(packed[end:])


def _of_file(report: Dict[str, Any], interpreter: Any, converted: Any) -> Dict[str, Any]:
    """Return a converter's report about a file that may have been edited since.

    A tensor of the file is the one of the report that has its name, if the file of the report has it in that shape.
    """
    _results(converted)  # as the other ran: shapes that files leave open are known then
    mine, theirs = (
        {row["name"]: tuple(int(size) for size in row["shape"]) for row in each.get_tensor_details()}
        for each in (interpreter, converted)
    )
    kept = [
        record
        for record in report.get("records", ())
        if record["resolved_tflite_tensor_name"] in mine
        and mine[record["resolved_tflite_tensor_name"]] == theirs.get(record["resolved_tflite_tensor_name"])
    ]
    return {"records": kept}


def _said(lines: List[str]) -> List[str]:
    """Return the last lines that are no progress bars."""
    return telling([line for line in lines if "it/s]" not in line])[-3:]


def _loaded(module: Any, content: bytes, options: Mapping[str, str]) -> Any:
    kinds = module.OpResolverType
    plain = options["delegate"] == "none"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that keeping all tensors costs memory
        try:
            interpreter = module.Interpreter(
                model_content=content,
                num_threads=int(options["threads"]) if options.get("threads") else None,
                experimental_op_resolver_type=kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES if plain else kinds.BUILTIN,
                experimental_preserve_all_tensors=options.get("observe") == "preserved",
            )
            interpreter.allocate_tensors()
        except (RuntimeError, ValueError) as error:
            message = "the runtime refuses the converted file: " + one_line(error)
            raise AdapterError(AdapterFailure.BUILD, message) from error
    return interpreter


def _matched(
    rows: List[Dict[str, Any]], specs: List[Dict[str, Any]], what: str, *, all_needed: bool
) -> Dict[str, Dict[str, Any]]:
    """Return the file's tensor of each declared one: by place where there are as many, else by name."""
    if len(rows) == len(specs):
        pairs = list(zip(specs, rows))  # noqa: B905 - Python 3.8
        for spec, row in pairs:
            if not _may_hold(row, spec["shape"]):
                message = "'{}' of the converted file has the shape {}; '{}' of the model has {}".format(
                    row["name"], [int(size) for size in row["shape"]], spec["name"], spec["shape"]
                )
                raise AdapterError(AdapterFailure.BUILD, message)
        return {spec["name"]: row for spec, row in pairs}
    named = {row["name"]: row for row in rows}
    found = {spec["name"]: named[spec["name"]] for spec in specs if spec["name"] in named}
    if len(found) < (len(specs) if all_needed else len(rows)):
        message = "the converted file has {} {}: {}; the model has {}".format(
            len(rows), what, ", ".join(named), len(specs)
        )
        raise AdapterError(AdapterFailure.BUILD, message)
    return found


def _may_hold(row: Mapping[str, Any], declared: Optional[List[Any]]) -> bool:
    """Return whether a tensor of the file has room for a declared shape, in any layout; shapes known later may."""
    known = declared is not None and all(isinstance(size, int) and size >= 0 for size in declared)
    signature = [int(size) for size in row.get("shape_signature", row["shape"])]
    if not known or any(size < 0 for size in signature):
        return True
    return int(np.prod(declared or [1], dtype=np.int64)) == int(np.prod(row["shape"], dtype=np.int64))
