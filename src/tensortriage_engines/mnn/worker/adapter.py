"""MNN: its converter makes a .mnn file of the model as part of the build, and one of MNN's APIs runs it.

Seen with MNN 3.6.1: values that are not fused away keep their ONNX names; int64 and bool become int32, float16 and
float64 float32. The converter's command line installs a package with pip and reports to its maker when it is used, so
the function behind it is called instead, in a process of its own: it may end the process that calls it.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple

import numpy as np

from tensortriage_engines.mnn.worker.apis import APIS, said
from tensortriage_engines.mnn.worker.weights import numbers_of, weights_of
from tensortriage_worker.adapter import AdapterError, AdapterFailure, refusals
from tensortriage_worker.converters import Library, content_of, convert, imported
from tensortriage_worker.declared import DeclaredSession, as_declared
from tensortriage_worker.exchange import Item

_CONVERT = "import sys, _tools; _tools.mnnconvert(['mnnconvert'] + sys.argv[1:])"
_SWITCHES = {"fp16": ["--fp16"], "int8": ["--weightQuantBits", "8"]}
_RUNTIME = {"fp32": "high", "fp16": "low", "int8": "high"}
_LIBRARY = Library(
    "mnn", "MNN", slug="mnn-missing", modules=("MNN", "MNN.expr", "MNN.nn"), distribution="MNN", oldest="3.0"
)
_WHOLE = frozenset({"int64", "uint64", "uint32", "int16", "uint16", "int8", "uint8", "bool"})
_REAL = frozenset({"float64", "float16"})


def probe(options: Mapping[str, str]) -> Dict[str, Any]:
    """Return the version of MNN, which has runtime and converter."""
    return {"version": imported(_LIBRARY)[0].version()}


def compile(model: Path, options: Mapping[str, str]) -> "MnnSession":
    """Convert an ONNX file, unless options ``file`` or ``converted`` name a converted one, and load it."""
    libraries = imported(_LIBRARY)
    content, info = content_of(options, lambda: _converted(model, options), ("converted", "file"))
    return MnnSession(libraries, content, info, options)


class MnnSession(DeclaredSession):
    """A loaded file. One that is given has inputs and outputs of its own, others those that the model declares."""

    def __init__(
        self, libraries: Tuple[Any, ...], content: bytes, info: Dict[str, Any], options: Mapping[str, str]
    ) -> None:
        super().__init__(json.loads(options["declared"]), info, content)
        self._content = content if options.get("file") else b""
        self._folder = tempfile.TemporaryDirectory(prefix="triage-mnn-")
        path = str(Path(self._folder.name) / "model.mnn")
        Path(path).write_bytes(content)
        runtime = {"backend": "CPU", "precision": _RUNTIME[options["precision"]]}  # type: Dict[str, Any]
        self._told = (
            "float32" if runtime["precision"] == "high" else ""
        )  # with "low" the device decides, without a report
        runtime["numThread"] = int(options.get("threads", "1"))
        self._variables = {}  # type: Dict[str, Any]
        self._api = None  # type: Any
        try:
            with refusals(AdapterFailure.BUILD, "the file cannot be read: {}"):
                self._variables = libraries[1].load_as_dict(path) or {}
            inputs = {name: each for name, each in self._variables.items() if str(each.op_type) == "Input"}
            if options.get("file"):
                self.info["weights"] = weights_of(content)
                self.inputs = [_row(name, each) for name, each in inputs.items()]
                told = libraries[2].load_module_from_file(path, [], []).get_info()["outputNames"]
                self.outputs = [{"name": name, "dtype": None, "shape": None} for name in told]
            fed = {
                spec["name"]: inputs[spec["name"]].data_format for spec in self.inputs or () if spec["name"] in inputs
            }
            self._api = APIS[options.get("api", "module")](libraries, path, runtime, fed)
            self._fed = list(fed)
            self._module = self._built()
            if options.get("file"):
                self.outputs = self._seen_outputs()
        except BaseException:
            self._folder.cleanup()
            raise

    def run(self, feed: Mapping[str, Item]) -> Iterable[Item]:
        """Run once."""
        for spec, array in zip(self.outputs or (), self._results(self._module, feed)):  # noqa: B905 - Python 3.8
            yield as_declared(array, spec, _WHOLE | _REAL)

    def weights(self) -> Tuple[List[Optional[Tuple[np.ndarray, np.ndarray]]], Optional[List[int]]]:
        """Return the weights of a given file, which are made floating-point numbers when it is loaded."""
        return list(numbers_of(self._content)), []

    def plan(self) -> Optional[List[Dict[str, Any]]]:
        """Return the operators that the outputs need, in an order in which they can run."""
        rows = []  # type: List[Dict[str, Any]]
        for name, variable in self._in_order():
            kind = str(variable.op_type)
            if kind not in ("Input", "Const"):
                label = self._told if str(variable.dtype).endswith("float") else ""
                rows.append({"name": name, "nodes": [name], "kind": kind, "precision": label, "implementation": ""})
        return rows

    def seen(self, feed: Mapping[str, Item], wanted: Tuple[str, ...]) -> Iterable[Item]:
        """Return those of the wanted values that the file has."""
        reached = {name for name, _ in self._in_order()}
        names = [name for name in wanted if name in reached]
        if names:
            for name, array in zip(names, self._results(self._api.loaded(names), feed)):  # noqa: B905 - Python 3.8
                yield Item(name, array)

    def close(self) -> None:
        """Release the module and its file."""
        self._module = self._api = None
        self._variables = {}
        self._folder.cleanup()

    def _built(self) -> Any:
        """Return the module that computes all outputs.

        Raises:
            AdapterError: When the runtime refuses, or the file is not one of the model.
        """
        wanted = [spec["name"] for spec in self.outputs or ()]
        lacking = [name for name in wanted if name not in self._variables]
        if lacking:
            message = "the converted file has no value '{}', which is an output of the model".format(lacking[0])
            raise AdapterError(AdapterFailure.BUILD, message)
        return self._api.loaded(wanted)

    def _seen_outputs(self) -> List[Dict[str, Any]]:
        """Return a given file's outputs with the types and shapes that a run on zeros shows, if it succeeds."""
        rows = self.outputs or []
        if any(size is None for spec in self.inputs or () for size in spec["shape"]):
            return rows
        feed = {spec["name"]: Item(spec["name"], np.zeros(spec["shape"], spec["dtype"])) for spec in self.inputs or ()}
        try:
            found = list(self._results(self._module, feed))
        except AdapterError:
            return rows
        return [
            {"name": row["name"], "dtype": array.dtype.name, "shape": list(array.shape)}
            for row, array in zip(rows, found)  # noqa: B905 - Python 3.8
        ]

    def _results(self, module: Any, feed: Mapping[str, Item]) -> Iterator[np.ndarray]:
        arrays = {}
        for name in self._fed:
            array = np.ascontiguousarray(feed[name].array)
            if array.dtype.name in _WHOLE:
                array = _narrowed(name, array)
            elif array.dtype.name in _REAL:
                array = array.astype(np.float32)
            arrays[name] = array
        yield from self._api.results(module, arrays)

    def _in_order(self) -> List[Tuple[str, Any]]:
        placed = {}  # type: Dict[str, Any]
        pending = [self._variables[spec["name"]] for spec in self.outputs or ()]
        while pending:
            variable = pending[-1]
            rest = [source for source in variable.inputs if source.name not in placed]
            if variable.name in placed or not rest:
                placed.setdefault(pending.pop().name, variable)
            else:
                pending.extend(rest)
        return list(placed.items())


def _row(name: str, variable: Any) -> Dict[str, Any]:
    """Return name, type and shape of an input of a given file."""
    kind = "float32" if str(variable.dtype).endswith("float") else "int32"
    return {"name": name, "dtype": kind, "shape": [size if size > 0 else None for size in variable.shape]}


def _converted(model: Path, options: Mapping[str, str]) -> bytes:
    with tempfile.TemporaryDirectory(prefix="triage-mnn-") as folder:
        made = Path(folder) / "model.mnn"
        words = ["-f", "ONNX", "--modelFile", str(model), "--MNNModel", str(made), "--bizCode", "triage"]
        words += ["--optimizeLevel", options["optimize"], "--useGeluApproximation", options["gelu"]]
        command = [sys.executable, "-I", "-c", _CONVERT, *words, *_SWITCHES.get(options["precision"], [])]
        convert("the converter mnnconvert", command, Path(folder), [made], said)
        return made.read_bytes()


def _narrowed(name: str, array: np.ndarray) -> np.ndarray:
    bounds = np.iinfo(np.int32)
    if array.size and array.dtype.kind != "b" and not bounds.min <= int(array.min()) <= int(array.max()) <= bounds.max:
        message = "input '{}' has values beyond int32, and MNN has no wider integers".format(name)
        raise AdapterError(AdapterFailure.RUN, message)
    return array.astype(np.int32)
