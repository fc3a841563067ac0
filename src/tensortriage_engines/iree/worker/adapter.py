"""IREE: iree-import-onnx and iree-compile make a module for this CPU as part of the build, the IREE runtime calls it.

Seen with IREE 3.13.0: the function has the name of the graph, inputs and outputs keep their order; both programs are
run by command line, as by their users, so their words are those of the refusal.
"""

from __future__ import annotations

import functools
import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Any, Dict, List, Mapping

import numpy as np

from tensortriage_worker.adapter import AdapterError, AdapterFailure
from tensortriage_worker.converters import Library, content_of, convert, imported, missing, telling
from tensortriage_worker.declared import SessionByPlace, check_types

_LIBRARY = Library(
    "iree", "IREE", slug="iree-missing", modules=("iree.runtime",), distribution="iree-base-compiler", oldest="3.3"
)
_BACKEND = ["--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu"]
_SAID_LINES = 3
_PLACE = re.compile(r"^\S*?\.mlir:\d+:\d+: ")


def probe(options: Mapping[str, str]) -> Dict[str, Any]:
    """Return the versions of runtime and compiler."""
    imported(_LIBRARY)
    import importlib.metadata as metadata

    for program in ("iree-import-onnx", "iree-compile"):
        _program(program)
    found = {key: metadata.version("iree-base-" + key) for key in ("runtime", "compiler")}
    if found["runtime"].split(".")[:2] != found["compiler"].split(".")[:2]:
        message = "IREE's compiler {compiler} and runtime {runtime} are of two releases".format(**found)
        raise missing("iree", message, slug="iree-missing")
    return found


def compile(model: Path, options: Mapping[str, str]) -> "IreeSession":
    """Import and compile an ONNX file, unless option ``converted`` names an earlier conversion, and load it."""
    (runtime,) = imported(_LIBRARY)
    declared = json.loads(options["declared"])
    check_types(declared, "IREE")
    content, info = content_of(options, lambda: _converted(model, options))
    return IreeSession(runtime, content, declared, info, options)


class IreeSession(SessionByPlace):
    """A loaded module."""

    def __init__(
        self,
        runtime: Any,
        content: bytes,
        declared: Mapping[str, Any],
        info: Dict[str, Any],
        options: Mapping[str, str],
    ) -> None:
        super().__init__(declared, info, content)
        self._narrow = options["precision"] == "fp16"
        self._function = _function(runtime, content)
        self.another = functools.partial(type(self), runtime, content, declared, {}, options)

    def call(self, arrays: List[np.ndarray]) -> List[np.ndarray]:
        """Return the results; a module in fp16 takes and gives fp16."""
        if self._narrow:
            arrays = [array.astype(np.float16) if array.dtype == np.float32 else array for array in arrays]
        found = self._function(*arrays)
        results = found if isinstance(found, (list, tuple)) else [found]
        return [np.array(result.to_host() if hasattr(result, "to_host") else result) for result in results]

    def close(self) -> None:
        """Release the module."""
        self._function = None


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
        return _compiled(source, options, folder)


def _compiled(source: Path, options: Mapping[str, str], folder: str) -> bytes:
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
