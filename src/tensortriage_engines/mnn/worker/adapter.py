"""MNN: its converter makes a .mnn file of the model as part of the build, and MNN's module API runs it.

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

from tensortriage_worker.adapter import AdapterError, AdapterFailure, own_fault, refusals
from tensortriage_worker.converters import Library, content_of, convert, imported, one_line, telling
from tensortriage_worker.declared import DeclaredSession, as_declared
from tensortriage_worker.exchange import Item
from tensortriage_worker.heard import hearing

_CONVERT = "import sys, _tools; _tools.mnnconvert(['mnnconvert'] + sys.argv[1:])"
_SWITCHES = {"fp16": ["--fp16"], "int8": ["--weightQuantBits", "8"]}
_RUNTIME = {"fp32": "high", "fp16": "low", "int8": "high"}
_SAID_LINES = 6
_ERRORS = ("error", "not support", "fail", "can't", "cannot")
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
    """A loaded file."""

    def __init__(
        self, libraries: Tuple[Any, ...], content: bytes, info: Dict[str, Any], options: Mapping[str, str]
    ) -> None:
        declared = json.loads(options["declared"])
        super().__init__(declared, info, content)
        _, self._expr, self._nn = libraries
        self._folder = tempfile.TemporaryDirectory(prefix="triage-mnn-")
        self._path = str(Path(self._folder.name) / "model.mnn")
        Path(self._path).write_bytes(content)
        runtime = {"backend": "CPU", "precision": _RUNTIME[options["precision"]]}  # type: Dict[str, Any]
        self._told = (
            "float32" if runtime["precision"] == "high" else ""
        )  # with "low" the device decides, and tells nobody
        runtime["numThread"] = int(options.get("threads", "1"))
        self._manager = self._nn.create_runtime_manager((runtime,))
        self._variables = {}  # type: Dict[str, Any]
        self._fed = []  # type: List[str]
        try:
            self._module = self._built(declared)
        except BaseException:
            self._folder.cleanup()
            raise

    def run(self, feed: Mapping[str, Item]) -> Iterable[Item]:
        """Run once."""
        for spec, array in zip(self.outputs or (), self._results(self._module, feed)):  # noqa: B905 - Python 3.8
            yield as_declared(array, spec, _WHOLE | _REAL)

    def plan(self) -> Optional[List[Dict[str, Any]]]:
        """Return the operators that the outputs need, in an order in which they can run."""
        rows = []  # type: List[Dict[str, Any]]
        for name, variable in self._in_order():
            kind = str(variable.op_type)
            if kind not in ("Input", "Const"):
                told = self._told if str(variable.dtype).endswith("float") else ""
                rows.append({"name": name, "nodes": [name], "kind": kind, "precision": told, "implementation": ""})
        return rows

    def seen(self, feed: Mapping[str, Item], wanted: Tuple[str, ...]) -> Iterable[Item]:
        """Return those of the wanted values that the file has."""
        reached = {name for name, _ in self._in_order()}
        names = [name for name in wanted if name in reached]
        if names:
            for name, array in zip(names, self._results(self._loaded(names), feed)):  # noqa: B905 - Python 3.8
                yield Item(name, array)

    def close(self) -> None:
        """Release the module and its file."""
        self._module = self._manager = None
        self._variables = {}
        self._folder.cleanup()

    def _built(self, declared: Mapping[str, Any]) -> Any:
        """Return the module of all outputs, once it is known which values the file has.

        Raises:
            AdapterError: When the file cannot be read, or is not one of the model.
        """
        with refusals(AdapterFailure.BUILD, "the file cannot be read: {}"):
            self._variables = self._expr.load_as_dict(self._path) or {}
        self._fed = [spec["name"] for spec in declared["inputs"] if spec["name"] in self._variables]
        wanted = [spec["name"] for spec in declared["outputs"]]
        lacking = [name for name in wanted if name not in self._variables]
        if lacking:
            message = "the converted file has no value '{}', which is an output of the model".format(lacking[0])
            raise AdapterError(AdapterFailure.BUILD, message)
        return self._loaded(wanted)

    def _loaded(self, outputs: List[str]) -> Any:
        reason = ""
        with hearing() as printed:
            try:
                module = self._nn.load_module_from_file(self._path, self._fed, outputs, runtime_manager=self._manager)
            except Exception as error:
                if own_fault(error):
                    raise
                module, reason = None, one_line(error)
        if module is None:
            words = [*_said(printed), reason] if reason else _said(printed)
            message = "the runtime refuses the converted file: {}".format(" | ".join(words) or "it says no reason")
            raise AdapterError(AdapterFailure.BUILD, message)
        return module

    def _results(self, module: Any, feed: Mapping[str, Item]) -> Iterator[np.ndarray]:
        constants = []
        for name in self._fed:
            array = np.ascontiguousarray(feed[name].array)
            if array.dtype.name in _WHOLE:
                array = _narrowed(name, array)
            elif array.dtype.name in _REAL:
                array = array.astype(np.float32)
            kind = self._expr.int if array.dtype.kind in "iu" else self._expr.float
            constants.append(self._expr.const(array, list(array.shape), self._expr.NCHW, kind))
        with hearing() as printed, refusals(AdapterFailure.RUN):
            found = module.forward(constants)
        if not found:
            message = "MNN gave no result: {}".format(" | ".join(_said(printed)) or "it says no reason")
            raise AdapterError(AdapterFailure.RUN, message)
        for variable in found if isinstance(found, (list, tuple)) else [found]:
            if str(variable.data_format).endswith("NC4HW4"):
                variable = self._expr.convert(variable, self._expr.NCHW)
            with refusals(AdapterFailure.RUN, "MNN gave no result: {}"):
                array = np.array(variable.read())
            yield array

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


def _converted(model: Path, options: Mapping[str, str]) -> bytes:
    with tempfile.TemporaryDirectory(prefix="triage-mnn-") as folder:
        made = Path(folder) / "model.mnn"
        words = ["-f", "ONNX", "--modelFile", str(model), "--MNNModel", str(made), "--bizCode", "triage"]
        words += ["--optimizeLevel", options["optimize"], "--useGeluApproximation", options["gelu"]]
        command = [sys.executable, "-I", "-c", _CONVERT, *words, *_SWITCHES.get(options["precision"], [])]
        convert("the converter mnnconvert", command, Path(folder), [made], _said)
        return made.read_bytes()


def _said(lines: List[str]) -> List[str]:
    return telling([line for line in lines if not line.startswith("The device supports")], _ERRORS)[-_SAID_LINES:]


def _narrowed(name: str, array: np.ndarray) -> np.ndarray:
    bounds = np.iinfo(np.int32)
    if array.size and array.dtype.kind != "b" and not bounds.min <= int(array.min()) <= int(array.max()) <= bounds.max:
        message = "input '{}' has values beyond int32, and MNN knows no wider whole numbers".format(name)
        raise AdapterError(AdapterFailure.RUN, message)
    return array.astype(np.int32)
