"""TensorTriage: why an ONNX model gives wrong numbers on an inference engine.

The commands as functions of models, arrays and names of engines; see `tensortriage.functions`:

    import tensortriage

    verdict = tensortriage.diagnose("model.onnx", "openvino:precision=fp16", inputs={"x": array})
"""

import importlib
from typing import Any

from tensortriage_worker.silence import silence

__version__ = "0.1.0"
FUNCTIONS = ("compare", "diagnose", "find_precision", "reduce", "run")
"""Commands that are functions here. Three have packages of their names, which can be called."""
_LOADED = ("api", "compare", "diagnose", "reduce")

silence()  # before anything imports an engine


def __getattr__(name: str) -> Any:
    if name in _LOADED:
        return importlib.import_module(f"tensortriage.{name}")
    if name in FUNCTIONS:
        return getattr(importlib.import_module("tensortriage.functions"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({"api", "__version__", *FUNCTIONS})
