"""IREE: iree-import-onnx and iree-compile make a module for this CPU as part of the build, the IREE runtime calls it.

Seen with IREE 3.13.0: the function has the name of the graph, inputs and outputs keep their order; both programs are
asked by command line, as they are by their users, so their words are those of the refusal.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Tuple

import numpy as np

from tensortriage_worker.adapter import AdapterError, AdapterFailure
from tensortriage_worker.by_place import SessionByPlace, check_types
from tensortriage_worker.converters import Library, convert, imported, missing, telling
from tensortriage_worker.exchange import Item
from tensortriage_worker.iree.imported_text import ImportedModel

_LIBRARY = Library("iree", "IREE", slug="iree-missing", modules=("iree.runtime",))
_BACKEND = ["--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu"]
_SAID_LINES = 3
_PLACE = re.compile(r"^\S*?\.mlir:\d+:\d+: ")


def probe(options: Mapping[str, str]) -> Dict[str, Any]:
    """Return the versions of runtime and compiler."""
    imported(_LIBRARY)
    import importlib.metadata as metadata

    for program in ("iree-import-onnx", "iree-compile"):
        _program(program)
    return {key: metadata.version("iree-base-" + key) for key in ("runtime", "compiler")}


def compile(model: Path, options: Mapping[str, str]) -> "IreeSession":
    """Import and compile an ONNX file, unless option ``converted`` names what was made of it, and load it.

    With option ``file``, what the importer wrote, that is compiled instead.
    """
    (runtime,) = imported(_LIBRARY)
    declared = json.loads(options["declared"])
    check_types(declared, "IREE")
    started = time.perf_counter()
    given = ImportedModel(Path(options["file"]).read_text(encoding="utf-8")) if options.get("file") else None
    if given is not None:
        given.check_whole(declared)
        content = _compiled(given.text, options)
    else:
        content = Path(options["converted"]).read_bytes() if options.get("converted") else _converted(model, options)
    info = {} if options.get("converted") else {"conversion_seconds": time.perf_counter() - started}
    return IreeSession(runtime, content, declared, info, options, given)


class IreeSession(SessionByPlace):
    """A loaded module."""

    def __init__(
        self,
        runtime: Any,
        content: bytes,
        declared: Mapping[str, Any],
        info: Dict[str, Any],
        options: Mapping[str, str],
        given: Optional[ImportedModel],
    ) -> None:
        super().__init__(declared, info)
        self._runtime, self._content, self._options = runtime, content, options
        self._narrow = options["precision"] == "fp16"
        self._given = given
        self._marked = {}  # type: Dict[Tuple[str, ...], Any]
        self._function = _function(runtime, content)

    def call(self, arrays: List[np.ndarray]) -> List[np.ndarray]:
        """Return the results; a module in fp16 takes and gives fp16."""
        return self._called(self._function, arrays)

    def _called(self, function: Any, arrays: List[np.ndarray]) -> List[np.ndarray]:
        if self._narrow:
            arrays = [array.astype(np.float16) if array.dtype == np.float32 else array for array in arrays]
        found = function(*arrays)
        results = found if isinstance(found, (list, tuple)) else [found]
        return [np.array(result.to_host() if hasattr(result, "to_host") else result) for result in results]

    def answer(
        self, question: str, feed: Mapping[str, Item], arguments: Mapping[str, Any], spill: Any
    ) -> Tuple[Dict[str, Any], List[Item]]:
        """Hand over the ``converted`` module, or those of the ``wanted`` values that a given file tells.

        They are the results of a second module, of the same file with these values returned as well.
        """
        if question == "converted":
            return {}, [Item("converted", np.frombuffer(self._content, np.uint8))]
        known = self._given.values(json.loads(self._options["nodes"])) if self._given is not None else {}
        wanted = tuple(name for name in arguments["wanted"] if name in known)
        if self._given is None or not wanted:
            return {}, []
        if wanted not in self._marked:
            text = self._given.marked([known[name] for name in wanted])
            self._marked[wanted] = _function(self._runtime, _compiled(text, self._options))
        fed = [np.ascontiguousarray(feed[spec["name"]].array) for spec in self.inputs or ()]
        found = self._called(self._marked[wanted], fed)[len(self.outputs or ()) :]
        for name, array in zip(wanted, found):  # noqa: B905 - Python 3.8
            spill.add(Item(name, array))
        return {}, []

    def close(self) -> None:
        """Release the module."""
        self._function = None
        self._marked = {}


def _function(runtime: Any, content: bytes) -> Any:
    try:
        context = runtime.SystemContext(config=runtime.Config("local-task"))
        module = runtime.VmModule.copy_buffer(context.instance, content)
        context.add_vm_module(module)
        names = [name for name in module.function_names if not name.startswith("__") and "$" not in name]
        return context.modules[module.name][names[0]]
    except (RuntimeError, ValueError, IndexError) as error:
        raise AdapterError(AdapterFailure.BUILD, "the runtime refuses the module: {}".format(error)) from error


def _converted(model: Path, options: Mapping[str, str]) -> bytes:
    with tempfile.TemporaryDirectory(prefix="triage-iree-") as folder:
        source = Path(folder) / "model.mlir"
        _called(
            ["iree-import-onnx", str(model), "-o", str(source), "--opset-version", options["opset"]], folder, source
        )
        return _compiled_file(source, options, folder)


def _compiled(text: str, options: Mapping[str, str]) -> bytes:
    with tempfile.TemporaryDirectory(prefix="triage-iree-") as folder:
        source = Path(folder) / "model.mlir"
        source.write_text(text, encoding="utf-8")
        return _compiled_file(source, options, folder)


def _compiled_file(source: Path, options: Mapping[str, str], folder: str) -> bytes:
    flags = json.loads(options["flags"])
    words = ["--{}{}".format(key, "={}".format(value) if value else "") for key, value in flags.items()]
    words += ["--iree-opt-level={}".format(options["optimize"])] if options.get("optimize") else []
    words += ["--iree-input-demote-f32-to-f16"] if options["precision"] == "fp16" else []
    if "iree-llvmcpu-target-cpu" not in flags:
        words += ["--iree-llvmcpu-target-cpu=host"]
    module = source.with_suffix(".vmfb")
    _called(["iree-compile", str(source), "-o", str(module), *_BACKEND, *words], folder, module)
    return module.read_bytes()


def _called(command: List[str], folder: str, made: Path) -> None:
    convert(command[0], [str(_program(command[0])), *command[1:]], Path(folder), [made], _said)


def _said(lines: List[str]) -> List[str]:
    return telling([_PLACE.sub("", line) for line in lines])[:_SAID_LINES]


def _program(name: str) -> Path:
    path = Path(sys.executable).with_name(name)
    if not path.is_file():
        raise missing("iree", "{} is not installed there".format(name), slug="iree-missing")
    return path
