"""Engines that work in this process, in a worker instead: for models that brought this process down.

The worker runs `in_worker.py` as the script of a `script:` engine, under the same interpreter, so that an engine has
its full abilities there. Only memory cannot be shared: it lacks `CompilesInPlace`.
"""

import importlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from tensortriage.engines.base import Engine
from tensortriage.engines.process.isolated import IsolatedEngine, IsolatedSession

IN_PROCESS: Mapping[str, tuple[str, str]] = {
    "onnxruntime": ("tensortriage.engines.onnxruntime.engine", "OnnxRuntimeEngine"),
    "emulate": ("tensortriage.engines.emulate", "EmulateEngine"),
}
"""Engines of native code in this process: name to module and class."""
NAME = "apart.engine"
"""Option that names the engine for the worker."""


def engine_class(name: str) -> Callable[..., Engine]:
    """Return the class of an engine, whose sessions live in workers."""
    own = own_class(name)

    def compile_apart(self: Any, model: Path, options: Mapping[str, str]) -> IsolatedSession:
        isolated = IsolatedEngine("script", title=name, limits=self.limits)
        script = Path(__file__).with_name("in_worker.py")
        there = {**options, "file": str(script), "attribute": "EngineInWorker", NAME: name}
        return isolated.compile(model, there, affinity=f"apart {name}")

    return cast(Callable[..., Engine], type(f"{own.__name__}Apart", (own,), {"compile": compile_apart}))


def own_class(name: str) -> Any:
    """Return the class of an engine as it works in a process of its own."""
    module, attribute = IN_PROCESS[name]
    return getattr(importlib.import_module(module), attribute)
